// The list of jobs; /jobs/ID is the page of a job.
import {useSignal} from '@preact/signals';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {is_unreachable} from '../api/client';
import {count_text} from '../app/format';
import {server_now, useRefresh} from '../app/live';
import {place, query_value, set_query, to, navigate} from '../app/router';
import {me} from '../app/session';
import {useShortcuts} from '../app/shortcuts';
import {Icon} from '../ui/icons';
import {ActionDialog, type Action} from '../ui/job_actions';
import {ErrorNote, Link, Page, toast, useSize} from '../ui/parts';
import {JobPage} from './job/job';
import {JobRows, page_of, type JobRow} from './job_rows';
import {useMayChange} from './rights';
import {Filters, server_query} from './job_filters';
import {kColumns} from './job_columns';

export function Jobs({parts}: {parts: string[]}) {
  if (parts[0]) return <JobPage key={parts[0]} id={parts[0]} tab={parts[1] ?? 'summary'} />;
  return <JobList />;
}

const kRow = 32;
/** The rows above and below the view that are laid out, too. */
const kMargin = 6;

const kBulkActions: [Action, string][] = [
  ['stop', 'Stop'],
  ['suspend', 'Suspend'],
  ['resume', 'Resume'],
  ['rerun', 'Rerun'],
  ['delete', 'Delete'],
];

function JobList() {
  const query = place.value.query;
  const text = query.toString();
  const user = me.value?.user ?? '';
  const key = JSON.stringify(server_query(query, user, 0));
  const rows = useMemo(() => new JobRows(() => server_query(query, user, server_now())), [key]);
  const version = useSignal(0);
  const first = useSignal(0);
  const fault = useSignal<unknown>(null);
  const loaded = useSignal(false);
  const selected = useSignal<ReadonlyMap<string, JobRow>>(new Map());
  const at = useSignal('');
  const action = useSignal<Action | null>(null);
  const region = useRef<HTMLDivElement>(null);
  const size = useSize(region);
  const abort = useRef<AbortController | null>(null);
  /** An aborted request was to renew the rows; the next one does. */
  const renewal_pending = useRef(false);
  /** The rows that the request in flight loads. */
  const in_flight = useRef<{first: number; last: number} | null>(null);
  /** The id of the job whose selection was changed last: a range begins there, also after the row has moved. */
  const last_clicked = useRef('');
  const repaint = useRef(0);
  void version.value;

  const visible = Math.ceil((size.height || 600) / kRow) + 1;
  const height = useRef(visible);
  height.current = visible;
  const range = () => ({
    first: Math.max(0, first.peek() - kMargin),
    last: first.peek() + height.current + kMargin,
  });

  const load = async (refresh: boolean) => {
    // If this request replaces one that was to renew the rows, it renews them itself.
    const renews = refresh || renewal_pending.current;
    renewal_pending.current = renews;
    abort.current?.abort();
    const mine = new AbortController();
    abort.current = mine;
    const element = region.current;
    const begin = Math.floor((element?.scrollTop ?? 0) / kRow);
    // The row at the top stays in its place when rows are added above it.
    const anchor = begin > 0 ? rows.at(begin)?.id : undefined;
    const wanted = range();
    in_flight.current = wanted;
    try {
      await rows.load(wanted.first, wanted.last, mine.signal, renews);
      if (mine.signal.aborted) return true;
      renewal_pending.current = false;
      if (anchor && element) {
        const moved = rows.index_of(anchor);
        if (moved >= 0 && moved !== begin) element.scrollTop += (moved - begin) * kRow;
      }
      // The actions on selected jobs need the present phases of these jobs.
      if (selected.value.size) {
        const next = new Map(selected.value);
        for (const row of rows.kept()) if (next.has(row.id)) next.set(row.id, row);
        selected.value = next;
      }
      fault.value = null;
      loaded.value = true;
      version.value++;
      return true;
    } catch (problem) {
      if ((problem as Error).name === 'AbortError' || mine.signal.aborted) return true;
      fault.value = problem;
      return !is_unreachable(problem);
    } finally {
      if (in_flight.current === wanted) in_flight.current = null;
    }
  };
  useEffect(() => {
    loaded.value = false;
    if (region.current) region.current.scrollTop = 0;
    first.value = 0;
    last_clicked.current = '';
  }, [rows]);
  // The stream does not report the progress of programs.
  const in_progress = [...rows.kept()].some((row) => row.progress && row.phase === 'Running');
  const by_time = (query.get('sort') || '-submitted').endsWith('submitted');
  const by_labels = query.has('text') || query.has('label');
  // Rows leave the list as time passes.
  const by_age = query.has('within') || query.has('ended');
  const ask = useRefresh((only_missing) => load(!only_missing), [rows, in_progress], {
    // A loaded row that changed is shown at once. The list is loaded again only if the counts or the place of the row
    // may have changed, or if the answer to a request in flight may replace the row by its former state.
    match: ({row}) => {
      const before = row && rows.put(row);
      if (before)
        repaint.current ||= requestAnimationFrame(() => {
          repaint.current = 0;
          version.value++;
        });
      return (
        !before ||
        !by_time ||
        before.phase !== row.phase ||
        (by_labels && !same_labels(before, row)) ||
        in_flight.current !== null
      );
    },
    interval: 700,
    ...(in_progress || by_age ? {every: 15_000} : {}),
  });
  useEffect(() => () => cancelAnimationFrame(repaint.current), []);
  useEffect(() => () => abort.current?.abort(), []);
  const begin = first.value;
  useEffect(() => {
    const wanted = range();
    const loading = in_flight.current;
    // A request for a part of the view is not replaced: when it has been answered, this effect runs again.
    if (loading && wanted.first < loading.last && wanted.last > loading.first) return;
    if (rows.lacks(wanted.first, wanted.last)) ask();
  }, [begin, visible, rows, version.value]);

  const shown_columns = kColumns.filter((column) => (size.width || 1200) >= (column.min ?? 0));
  const length = rows.length;
  const from = Math.max(0, begin - kMargin);
  const until = Math.min(length, begin + visible + kMargin);
  const page: (JobRow | undefined)[] = [];
  for (let i = from; i < until; i++) page.push(rows.at(i));

  const toggle = (row: JobRow, range: boolean) => {
    const next = new Map(selected.value);
    const on = !next.has(row.id);
    let changed = [row];
    if (range && last_clicked.current) {
      const whole = rows.between(last_clicked.current, row.id);
      if (whole) changed = whole;
      else
        toast(
          `The range cannot be selected, because some of its rows are not loaded or its first job has left the list: only ${row.name} was ${on ? 'selected' : 'removed from the selection'}`,
          'error',
        );
    }
    for (const each of changed)
      if (on) next.set(each.id, each);
      else next.delete(each.id);
    last_clicked.current = row.id;
    selected.value = next;
  };

  const move = (step: number) => {
    const index = Math.max(0, Math.min(rows.length - 1, rows.index_of(at.value) + step));
    const row = rows.at(index);
    if (!row) return;
    at.value = row.id;
    const element = region.current!;
    if (index * kRow < element.scrollTop) element.scrollTop = index * kRow;
    if ((index + 2) * kRow > element.scrollTop + element.clientHeight)
      element.scrollTop = (index + 2) * kRow - element.clientHeight;
    requestAnimationFrame(() =>
      element.querySelector<HTMLElement>(`[data-id="${CSS.escape(row.id)}"] a`)?.focus({preventScroll: true}),
    );
  };
  const chosen = [...selected.value.values()];
  const shown_projects = [...chosen, ...page].flatMap((row) => row?.project ?? []);
  const may_change = useMayChange([...new Set(shown_projects)]);
  const may_change_now = useRef(may_change);
  may_change_now.current = may_change;
  const current = () => rows.at(rows.index_of(at.value));
  const act = (what: Action) => {
    const row = selected.value.size ? undefined : current();
    const jobs = row ? new Map([[row.id, row]]) : selected.value;
    if (!jobs.size) return;
    const projects = [...jobs.values()].map((job) => job.project);
    if (projects.some((project) => may_change_now.current(project))) {
      selected.value = jobs;
      action.value = what;
    } else toast(`This action needs the role member in project ${projects[0]}`, 'error');
  };
  useShortcuts(
    [
      {keys: 'j', what: 'Go to the next job', run: () => move(1)},
      {keys: 'k', what: 'Go to the previous job', run: () => move(-1)},
      {
        keys: 'x',
        what: 'Select the job, or clear its selection',
        run: () => {
          const row = current();
          if (row) toggle(row, false);
        },
      },
      {
        keys: 'l',
        what: 'Open the logs of the job',
        run: () => {
          const row = current();
          if (row) navigate(row.object === 'job' ? to(['jobs', row.id, 'logs']) : page_of(row));
        },
      },
      {keys: 's', what: 'Stop the selected jobs', run: () => act('stop')},
      {
        keys: 'u',
        what: 'Clear the selection',
        run: () => {
          selected.value = new Map();
        },
      },
    ],
    [rows],
  );

  const in_view = page.filter((row): row is JobRow => !!row);
  const all_selected = in_view.length > 0 && in_view.every((row) => selected.value.has(row.id));
  return (
    <Page
      title="Jobs"
      actions={
        <Link to="/submit" class="button primary">
          <Icon name="submit" />
          Submit a job
        </Link>
      }
    >
      <Filters counts={rows.counts} />
      <ErrorNote error={fault.value} />
      <div class="card">
        <header>
          <span class="tnum" role="status">
            {!loaded.value
              ? 'Loading…'
              : rows.complete || rows.total !== undefined
                ? `${count_text(rows.complete ? rows.known : rows.total!)} ${length === 1 ? 'job' : 'jobs'}`
                : `the first ${count_text(rows.known)} jobs; scroll for more`}
          </span>
          {chosen.length > 0 && (
            <div class="row" role="group" aria-label="Selected jobs">
              <strong>{chosen.length} selected</strong>
              {chosen.some((row) => may_change(row.project)) &&
                kBulkActions.map(([what, verb]) => (
                  <button
                    key={what}
                    class={what === 'delete' ? 'danger' : ''}
                    onClick={() => {
                      action.value = what;
                    }}
                  >
                    {verb}
                  </button>
                ))}
              {chosen.length > 1 && chosen.length <= 50 && (
                <Link class="button" to={to(['compare'], {jobs: chosen.map((row) => row.id).join(',')})}>
                  Compare
                </Link>
              )}
              <button
                class="quiet"
                onClick={() => {
                  selected.value = new Map();
                }}
              >
                Clear
              </button>
            </div>
          )}
        </header>
        <div
          class="vt"
          ref={region}
          tabIndex={0}
          role="region"
          aria-label="Jobs"
          onScroll={(event) => {
            first.value = Math.floor(event.currentTarget.scrollTop / kRow);
          }}
        >
          <table class="grid" aria-rowcount={length + 1}>
            <caption class="hidden-text">Jobs; more rows are loaded as you scroll</caption>
            <colgroup>
              <col style={{width: '42px'}} />
              <col style={{width: size.width > 900 ? '220px' : size.width > 520 ? '30%' : 'auto'}} />
              {shown_columns.map((column) => (
                <col key={column.key} style={column.width ? {width: `${column.width}px`} : {}} />
              ))}
            </colgroup>
            <thead>
              <tr aria-rowindex={1}>
                <th scope="col">
                  <input
                    type="checkbox"
                    aria-label="Select all jobs in view"
                    checked={all_selected}
                    onChange={() => {
                      const next = new Map(selected.value);
                      for (const row of in_view)
                        if (all_selected) next.delete(row.id);
                        else next.set(row.id, row);
                      selected.value = next;
                    }}
                  />
                </th>
                <SortHeader name="Name" sort="name" />
                {shown_columns.map((column) => (
                  <SortHeader key={column.key} name={column.name} sort={column.sort} num={column.num} />
                ))}
              </tr>
            </thead>
            <tbody>
              {from > 0 && (
                <tr class="spacer" aria-hidden="true">
                  <td colSpan={shown_columns.length + 2} style={{height: `${from * kRow}px`}} />
                </tr>
              )}
              {page.map((row, i) =>
                !row ? (
                  <tr key={`empty-${from + i}`} aria-rowindex={from + i + 2}>
                    <td />
                    <td class="muted" colSpan={shown_columns.length + 1}>
                      …
                    </td>
                  </tr>
                ) : (
                  <tr
                    key={row.id}
                    data-id={row.id}
                    aria-rowindex={from + i + 2}
                    aria-selected={selected.value.has(row.id)}
                    class={at.value === row.id ? 'at' : ''}
                    onFocusCapture={() => {
                      at.value = row.id;
                    }}
                  >
                    <td>
                      <input
                        type="checkbox"
                        aria-label={`Select ${row.name}`}
                        checked={selected.value.has(row.id)}
                        onClick={(event) => toggle(row, event.shiftKey)}
                      />
                    </td>
                    <th scope="row" title={row.name}>
                      <Link to={page_of(row)}>
                        <bdi>{row.name}</bdi>
                      </Link>
                      {row.object !== 'job' && (
                        <>
                          {' '}
                          <span class="chip">{row.object}</span>
                        </>
                      )}
                    </th>
                    {shown_columns.map((column) => (
                      <td key={column.key} class={column.num ? 'num' : ''}>
                        {column.cell(row)}
                      </td>
                    ))}
                  </tr>
                ),
              )}
              {until < length && (
                <tr class="spacer" aria-hidden="true">
                  <td colSpan={shown_columns.length + 2} style={{height: `${(length - until) * kRow}px`}} />
                </tr>
              )}
            </tbody>
          </table>
          {loaded.value && length === 0 && (
            <div class="empty">
              {text ? (
                <>
                  No job matches the filters. <Link to="/jobs">Show all jobs</Link>
                </>
              ) : (
                <>
                  No jobs yet. <Link to="/submit">Submit a job</Link>
                </>
              )}
            </div>
          )}
        </div>
      </div>
      {action.value && (
        <ActionDialog
          action={action.value}
          jobs={chosen}
          onDone={(done, failed = []) => {
            action.value = null;
            if (done) selected.value = new Map([...selected.value].filter(([id]) => failed.includes(id)));
          }}
        />
      )}
    </Page>
  );
}

function same_labels({labels: a}: JobRow, {labels: b}: JobRow): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}

function SortHeader({name, sort, num}: {name: string; sort?: string | undefined; num?: boolean | undefined}) {
  if (!sort)
    return (
      <th scope="col" class={num ? 'num' : ''}>
        {name}
      </th>
    );
  const now_sorted = query_value('sort') || '-submitted';
  const direction = now_sorted === sort ? 'ascending' : now_sorted === `-${sort}` ? 'descending' : undefined;
  const next = now_sorted === sort ? `-${sort}` : sort;
  return (
    <th scope="col" class={num ? 'num' : ''} aria-sort={direction}>
      <button class="sort" onClick={() => set_query({sort: next === '-submitted' ? null : next})}>
        {name}
        {direction && <Icon name={direction === 'ascending' ? 'up' : 'down'} />}
      </button>
    </th>
  );
}
