// The log of a job: all tasks merged, one task or one rank, or two of them side by side. The server
// filters the lines. The address holds the whole selection, down to one line.
import {useSignal} from '@preact/signals';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {job_path, with_query} from '../../api/client';
import type {Job} from '../../api/types';
import {clock_text, count_text, day_text, millis, utc} from '../../app/format';
import {href, navigate, query_value, set_query, to, place} from '../../app/router';
import {colours} from '../../app/settings';
import {useShortcuts} from '../../app/shortcuts';
import {AnsiText, is_dark} from '../../ui/ansi_text';
import type {Level} from '../../ui/ansi';
import {useMark} from '../../ui/mark';
import {Icon} from '../../ui/icons';
import {ErrorNote, useSize} from '../../ui/parts';
import {DelayedInput} from '../delayed_input';
import {LogSource, kMost, searched_pattern, type LogLine} from './log_source';
import {WindowPane, shown_attempt} from './window_pane';

const kRow = 18;

export function Logs({job}: {job: Job}) {
  const beside = query_value('beside');
  const times = query_value('times') !== 'no';
  const follow = useSignal(!query_value('at') && !query_value('line'));
  const tasks = job.tasks.map((task) => task.name);
  const task = query_value('task');
  const slots = job.spec.slots_per_worker ?? 1;
  const ranks =
    job.spec.kind === 'mpi'
      ? Array.from({length: Math.min(1000, (job.spec.workers ?? 0) * slots + (job.spec.leader_slots ?? 0))}, (_, i) =>
          String(i),
        )
      : [];
  useShortcuts([
    {
      keys: 'f',
      what: 'Follow the log, or stop following',
      run: () => {
        follow.value = !follow.value;
      },
    },
    {
      keys: 't',
      what: 'Show or hide time stamps',
      run: () => set_query({times: query_value('times') === 'no' ? null : 'no'}),
    },
  ]);
  const choose = (name: string, other: string) => (
    <select
      aria-label={name === 'beside' ? 'Second task or rank' : 'Task or rank'}
      value={query_value(name)}
      onChange={(e) => set_query({[name]: e.currentTarget.value})}
    >
      <option value="">{other}</option>
      {tasks.length > 1 &&
        tasks.map((each) => (
          <option key={each} value={each} selected={each === query_value(name)}>
            {each}
          </option>
        ))}
      {ranks.map((rank) => (
        <option key={`r${rank}`} value={`rank:${rank}`} selected={`rank:${rank}` === query_value(name)}>
          rank {rank}
        </option>
      ))}
    </select>
  );
  const attempts = Array.from({length: job.attempt}, (_, i) => String(i + 1));
  const one_task = tasks.length === 1 || (task !== '' && !task.startsWith('rank:'));
  return (
    <div class="card">
      <header>
        <div class="filters grow">
          {(tasks.length > 1 || ranks.length > 0) && choose('task', 'All tasks merged')}
          {(tasks.length > 1 || ranks.length > 0) && choose('beside', 'No second log')}
          {attempts.length > 1 && (
            <select
              aria-label="Attempt"
              value={query_value('attempt')}
              onChange={(e) => set_query({attempt: e.currentTarget.value})}
            >
              <option value="">{one_task && !beside ? 'The last attempt' : 'All attempts'}</option>
              {attempts.map((n) => (
                <option key={n} value={n} selected={n === query_value('attempt')}>
                  Attempt {n}
                </option>
              ))}
            </select>
          )}
          <DelayedInput name="grep" label="Search the whole log" search />
          <select
            aria-label="Level"
            value={query_value('level')}
            onChange={(e) => set_query({level: e.currentTarget.value})}
          >
            {[
              ['', 'All levels'],
              ['error', 'Errors'],
              ['warning', 'Warnings and errors'],
              ['info', 'No debug lines'],
            ].map(([value, text]) => (
              <option key={value} value={value} selected={value === query_value('level')}>
                {text}
              </option>
            ))}
          </select>
          <button
            aria-pressed={follow.value}
            onClick={() => {
              follow.value = !follow.value;
            }}
          >
            Follow
          </button>
          <button aria-pressed={times} onClick={() => set_query({times: times ? 'no' : null})}>
            Times
          </button>
          <a
            class="button"
            download
            href={with_query(job_path(job.id, 'log-file'), {task: task.startsWith('rank:') ? '' : task})}
          >
            <Icon name="download" />
            Download
          </a>
        </div>
      </header>
      {beside ? (
        <div class="panes">
          <Pane job={job} which={task} follow={follow} times={times} label={task || 'all tasks'} />
          <Pane job={job} which={beside} follow={follow} times={times} label={beside} />
        </div>
      ) : (
        <Pane job={job} which={task} follow={follow} times={times} label={task || 'all tasks'} />
      )}
    </div>
  );
}

/** The log of one task has line numbers and is shown over its whole length; several logs are merged by time. */
function Pane({
  job,
  which,
  follow,
  times,
  label,
}: {
  job: Job;
  which: string;
  follow: {value: boolean};
  times: boolean;
  label: string;
}) {
  const only = job.tasks.length === 1 ? job.tasks[0]!.name : '';
  const task = which && !which.startsWith('rank:') ? which : which ? '' : only;
  if (task && !query_value('at'))
    return (
      <WindowPane key={`${job.id} ${task} ${shown_attempt(job)}`} job={job} task={task} follow={follow} times={times} />
    );
  return <LogPane job={job} which={which} follow={follow} times={times} label={label} />;
}

function LogPane({
  job,
  which,
  follow,
  times,
  label,
}: {
  job: Job;
  which: string;
  follow: {value: boolean};
  times: boolean;
  label: string;
}) {
  const version = useSignal(0);
  const at = query_value('at');
  const grep = query_value('grep');
  const level = query_value('level') as Level;
  const attempt = query_value('attempt');
  const tail = useSignal(5000);
  const source = useRef<LogSource | null>(null);
  /** The selection that `source` follows. */
  const source_key = useRef('');
  const region = useRef<HTMLDivElement>(null);
  const size = useSize(region);
  const top = useSignal(0);
  /** The dropped lines of the source, up to which the view has been moved. */
  const dropped_before = useRef(0);
  void version.value;
  void colours.value;
  const [task, rank] = which.startsWith('rank:') ? ['', which.slice(5)] : [which, ''];
  const key = [job.id, task, rank, grep, level, attempt, at, tail.value].join('\n');
  useEffect(() => {
    // A linked line is shown with the lines of the three seconds before it.
    const since = at ? new Date(millis(at) - 3000).toISOString() : '';
    const mine = new LogSource({id: job.id, task, rank, grep, level, attempt, since, tail: tail.value}, () => {
      version.value++;
    });
    source.current = mine;
    source_key.current = key;
    dropped_before.current = 0;
    version.value++;
    return () => mine.stop();
  }, [key]);

  const mine = source.current;
  const lines = mine?.lines ?? [];
  const visible = Math.ceil((size.height || 600) / kRow) + 2;
  const first = Math.max(0, Math.floor(top.value / kRow) - 10);
  const shown = lines.slice(first, first + visible + 20);
  /** The selection in which the view has moved to the linked line, and the time of that line. */
  const jumped = useRef({key: '', at: ''});
  useLayoutEffect(() => {
    const element = region.current;
    if (!element || !mine) return;
    if (mine.dropped !== dropped_before.current) {
      element.scrollTop -= (mine.dropped - dropped_before.current) * kRow;
      dropped_before.current = mine.dropped;
    }
    // A user who follows the log again has left the linked line.
    const has_left = follow.value && jumped.current.at === at;
    if (at && jumped.current.key !== key && !has_left) {
      // After a change of the selection, the lines are at first those of the former source.
      const index = source_key.current === key ? lines.findIndex((line) => line.time === at) : -1;
      if (index >= 0) {
        jumped.current = {key, at};
        follow.value = false;
        element.scrollTop = Math.max(0, (index - 4) * kRow);
      }
    } else if (follow.value) element.scrollTop = element.scrollHeight;
  }, [version.value, follow.value, lines.length]);

  const mark = useMark(grep);
  const dark = is_dark();
  const several = job.tasks.length > 1 && !which;
  const in_utc = utc.value;
  const last_scroll = useRef(0);
  // Without the filters: the link shows the lines around this one.
  const link_of = (line: LogLine) => {
    const query = Object.fromEntries(place.value.query);
    for (const name of ['at', 'grep', 'level']) delete query[name];
    return to(['jobs', job.id, 'logs'], {...query, at: line.time});
  };
  useShortcuts(
    [
      {
        keys: 'y',
        what: 'Link to the first visible line',
        run: () => {
          const line = source.current?.lines[Math.ceil(top.value / kRow)];
          if (!line) return;
          follow.value = false;
          navigate(link_of(line));
        },
      },
    ],
    [key],
  );
  const pattern = searched_pattern({grep, level});
  const is_filtered = grep !== '' || level !== '';
  const found = mine?.matches ?? 0;
  return (
    <div>
      <ErrorNote error={mine?.fault} />
      {pattern && mine?.started && (
        <div class="row small muted" role="status" style={{padding: '4px 12px'}}>
          {count_text(found)} {found === 1 ? 'line matches' : 'lines match'} in the{' '}
          {at || mine.is_cut ? 'loaded part of the' : 'whole'} log
          {mine.ended ? '' : ' so far'}. Click the time of a line to see the lines around it.
        </div>
      )}
      {mine?.is_cut && (
        <div class="small" style={{padding: '4px 12px'}}>
          Only the last {count_text(tail.value)} lines{pattern && ' that match'} are loaded.{' '}
          {tail.value < kMost && (
            <button
              class="link"
              onClick={() => {
                follow.value = false;
                tail.value = Math.min(tail.value * 8, kMost);
              }}
            >
              Load earlier lines
            </button>
          )}
        </div>
      )}
      {at && (
        <div class="small" style={{padding: '4px 12px'}}>
          The log is shown from the linked time on.{' '}
          <button
            class="link"
            onClick={() => {
              set_query({at: null});
              follow.value = true;
            }}
          >
            Show the end of the log
          </button>
        </div>
      )}
      <div
        class="log"
        ref={region}
        tabIndex={0}
        role="region"
        aria-label={`Log of ${label}`}
        onScroll={(event) => {
          const element = event.currentTarget;
          top.value = element.scrollTop;
          // Scrolling up stops following; reaching the end resumes it.
          const at_end = element.scrollTop + element.clientHeight >= element.scrollHeight - 4;
          if (element.scrollTop < last_scroll.current - 2 && !at_end) follow.value = false;
          last_scroll.current = element.scrollTop;
        }}
      >
        <div class="lines" style={{height: `${lines.length * kRow}px`}}>
          {shown.map((line, i) => (
            <div
              key={line.number}
              class={`line ${line.stream === 'notice' ? 'notice' : line.stream === 'error' ? 'err' : ''} ${at && line.time === at ? 'target' : ''}`}
              style={{top: `${(first + i) * kRow}px`}}
            >
              {times && (
                <a
                  class="at tnum"
                  href={href(link_of(line))}
                  onClick={() => {
                    follow.value = false;
                  }}
                  tabIndex={-1}
                  title={`${day_text(millis(line.time), in_utc)} ${line.time}: link to this line`}
                >
                  {clock_text(millis(line.time), in_utc)}.{line.time.slice(20, 23)}
                </a>
              )}
              {several && (
                <span class={`who w${colour_of(line)}`}>
                  {line.rank !== undefined ? `rank ${line.rank}` : line.task}
                </span>
              )}
              <AnsiText text={line.text} dark={dark} mark={mark} />
            </div>
          ))}
        </div>
        {pattern && mine && !mine.started && !mine.fault && <div class="empty">Searching the whole log…</div>}
        {mine?.started && (is_filtered ? found : lines.length) === 0 && (
          <div class="empty">
            {is_filtered
              ? 'No line matches.'
              : mine.ended
                ? 'The job printed nothing, or its log no longer exists.'
                : 'Nothing has been printed yet.'}
          </div>
        )}
      </div>
      <div class="row small muted" style={{padding: '4px 12px'}}>
        <span>
          {count_text(lines.length)} {lines.length === 1 ? 'line' : 'lines'}
          {mine?.dropped ? `; ${count_text(mine.dropped)} older lines are no longer shown` : ''}
          {mine?.ended ? '; end of the log' : ''}
        </span>
      </div>
    </div>
  );
}

function colour_of(line: LogLine): number {
  if (line.rank !== undefined) return line.rank % 6;
  let hash = 0;
  for (const c of line.task) hash = (hash * 31 + c.charCodeAt(0)) >>> 0;
  return hash % 6;
}
