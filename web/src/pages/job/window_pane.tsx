// The log of one task, which scrolls over its whole length. Browsers limit the height of an element, so in a
// long log the scroll bar has fewer pixels than the log has lines.
import {useComputed, useSignal} from '@preact/signals';
import {useEffect, useLayoutEffect, useRef} from 'preact/hooks';
import {is_unreachable} from '../../api/client';
import type {Job} from '../../api/types';
import {clock_text, count_text, day_text, has_ended, millis, utc} from '../../app/format';
import {kRetryPause} from '../../app/live';
import {href, navigate, place, query_value, set_query, to} from '../../app/router';
import {colours} from '../../app/settings';
import {useShortcuts} from '../../app/shortcuts';
import {AnsiText, is_dark} from '../../ui/ansi_text';
import {pattern_of, type Level} from '../../ui/ansi';
import {useMark, type Mark} from '../../ui/mark';
import {ErrorNote, useSize} from '../../ui/parts';
import {fits_level, type LogLine} from './log_source';
import {WindowSource, search_log, type SearchHits} from './window_source';

const kRow = 18;
const kMostPixels = 20e6;
/** The page counts lines from 1, as editors do; the API counts from 0. */
const kFirstLine = 1;
/** After so many new hits, and with no more than them, a search waits until the user continues it. */
const kHitsAtOnce = 200;

/** The attempt whose lines are numbered: without a choice, the last one. Empty: the job has not started yet. */
export function shown_attempt(job: Job): string {
  return query_value('attempt') || (job.attempt > 0 ? String(job.attempt) : '');
}

export function WindowPane({
  job,
  task,
  follow,
  times,
}: {
  job: Job;
  task: string;
  follow: {value: boolean};
  times: boolean;
}) {
  const version = useSignal(0);
  const attempt = shown_attempt(job);
  const target = query_value('line');
  const grep = query_value('grep');
  const source = useRef<WindowSource | null>(null);
  const region = useRef<HTMLDivElement>(null);
  const size = useSize(region);
  const top = useSignal(0);
  const ended = useRef(false);
  ended.current = has_ended(job.phase);
  void version.value;
  void colours.value;
  useEffect(() => {
    const mine = new WindowSource(
      {id: job.id, task, attempt},
      () => !ended.current,
      () => {
        version.value++;
      },
    );
    source.current = mine;
    return () => mine.stop();
  }, [job.id, task, attempt]);
  const mine = source.current;
  const total = mine?.length ?? 0;
  const height = Math.min(total * kRow, kMostPixels);
  const scaled = total * kRow > kMostPixels;
  const view = size.height || 600;
  const fitting = view / kRow;
  // The first visible line, with a fraction. The position of the scroll bar follows from it.
  const first = Math.max(0, Math.min(top.value, total - fitting + 1));
  const begin = Math.max(0, Math.floor(first) - 10);
  const end = Math.min(total, Math.ceil(first + fitting) + 10);
  useEffect(() => {
    mine?.want(begin, end);
  }, [mine, begin, end, version.value]);
  const own_scroll = useRef(-1);
  const pixels_of = (line: number) => (scaled ? (line / Math.max(1, total - fitting)) * (height - view) : line * kRow);
  const show = (line: number) => {
    top.value = Math.max(0, Math.min(line, total - fitting + 1));
    const element = region.current;
    if (element) {
      element.scrollTop = pixels_of(top.value);
      own_scroll.current = element.scrollTop;
    }
  };
  const jumped = useRef('');
  // The server reads a long log in parts.
  const is_read = !!mine && (mine.complete || Number(target) - kFirstLine < mine.total);
  useLayoutEffect(() => {
    if (!mine || !total) return;
    if (target && jumped.current !== `${task} ${target}`) {
      if (!is_read) return;
      jumped.current = `${task} ${target}`;
      follow.value = false;
      show(Number(target) - kFirstLine - mine.first - 4);
    } else if (follow.value && !target) show(total - fitting + 1);
  }, [version.value, total, follow.value, view, target]);
  useEffect(() => {
    const element = region.current;
    if (!element || !scaled) return;
    const wheel = (event: WheelEvent) => {
      event.preventDefault();
      follow.value = false;
      show(top.value + event.deltaY / kRow);
    };
    element.addEventListener('wheel', wheel, {passive: false});
    return () => element.removeEventListener('wheel', wheel);
  }, [scaled, total, view]);
  useShortcuts(
    [
      {
        keys: 'y',
        what: 'Link to the first visible line',
        run: () => navigate(link_to_line(job, task, (source.current?.first ?? 0) + Math.ceil(top.value))),
      },
    ],
    [job.id, task],
  );
  const dark = is_dark();
  const in_utc = utc.value;
  const level = query_value('level') as Level;
  // The server searches for the lines of a level, as for a pattern. In the log, the other lines are dimmed.
  const pattern = grep || pattern_of(level);
  const offset = scaled ? pixels_of(first) - (first - begin) * kRow : begin * kRow;
  const rows = [];
  for (let i = begin; i < end; i++) rows.push({i, line: mine?.at(i)});
  const mark = useMark(grep);
  return (
    <div>
      <ErrorNote error={mine?.fault} />
      {target && mine?.started && !mine.fault && !is_read && (
        <div class="small" role="status" style={{padding: '4px 12px'}}>
          The server is still reading the log. Line {count_text(Number(target))} is shown as soon as the server has read
          it.
        </div>
      )}
      {pattern && (
        <Hits job={job} task={task} attempt={attempt} pattern={pattern} mark={mark} times={times} dark={dark} />
      )}
      <div
        class="log"
        ref={region}
        tabIndex={0}
        role="region"
        aria-label={`Log of ${task}`}
        onScroll={(event) => {
          const element = event.currentTarget;
          if (Math.abs(element.scrollTop - own_scroll.current) < 1) return;
          const up = element.scrollTop < own_scroll.current;
          own_scroll.current = element.scrollTop;
          top.value = scaled
            ? (element.scrollTop / Math.max(1, height - view)) * (total - fitting)
            : element.scrollTop / kRow;
          if (up) follow.value = false;
          else if (element.scrollTop + element.clientHeight >= element.scrollHeight - 2 && !target) follow.value = true;
        }}
      >
        <div class="lines" style={{height: `${height}px`}}>
          {rows.map(({i, line}, k) => (
            <Row
              key={(mine?.first ?? 0) + i}
              line={line}
              top={offset + k * kRow}
              number={(mine?.first ?? 0) + i}
              job={job}
              task={task}
              times={times}
              dark={dark}
              in_utc={in_utc}
              mark={mark}
              target={target === String(kFirstLine + (mine?.first ?? 0) + i)}
              dim={!!line && !fits_level(line, level)}
            />
          ))}
        </div>
        {mine?.started && total === 0 && !mine.fault && (
          <div class="empty">
            {!ended.current
              ? 'Nothing has been printed yet.'
              : mine.missing
                ? 'The log of this task no longer exists. The summary of the job has its exit code and its last lines.'
                : 'The task printed nothing.'}
          </div>
        )}
      </div>
      <div class="row small muted log-foot">
        <span>
          {count_text(total)} {total === 1 ? 'line' : 'lines'}
          {mine && mine.first > 0
            ? `; the first ${count_text(mine.first)} were deleted because the log grew past its quota`
            : ''}
          {mine && !mine.complete && mine.started ? '; the server is still reading the log' : ''}
        </span>
        <label>
          Go to line{' '}
          <input
            size={8}
            inputMode="numeric"
            onChange={(event) => {
              const n = event.currentTarget.value.trim();
              if (/^\d+$/.test(n)) set_query({line: n});
            }}
          />
        </label>
        {target && (
          <button
            class="link"
            onClick={() => {
              set_query({line: null});
              follow.value = true;
            }}
          >
            Show the end of the log
          </button>
        )}
      </div>
    </div>
  );
}

function link_to_line(job: Job, task: string, number: number): string {
  const query = Object.fromEntries(place.value.query);
  delete query['at'];
  return to(['jobs', job.id, 'logs'], {...query, task, line: number + kFirstLine});
}

function Row({
  line,
  top,
  number,
  job,
  task,
  times,
  dark,
  in_utc,
  mark,
  target,
  dim,
}: {
  line: LogLine | undefined;
  top: number;
  number: number;
  job: Job;
  task: string;
  times: boolean;
  dark: boolean;
  in_utc: boolean;
  mark: Mark | null;
  target: boolean;
  dim: boolean;
}) {
  return (
    <div
      class={`line ${line?.stream === 'notice' ? 'notice' : line?.stream === 'error' ? 'err' : ''} ${target ? 'target' : ''} ${dim ? 'dim' : ''}`}
      style={{top: `${top}px`}}
    >
      <a
        class="at tnum"
        href={href(link_to_line(job, task, number))}
        tabIndex={-1}
        title={line ? `${day_text(millis(line.time), in_utc)} ${line.time}: link to line ${number + kFirstLine}` : ''}
      >
        {String(number + kFirstLine).padStart(6)}
        {times && line ? ` ${clock_text(millis(line.time), in_utc)}` : ''}
      </a>
      {line ? (
        <>
          {line.rank !== undefined && <span class={`who w${line.rank % 6}`}>rank {line.rank}</span>}
          <AnsiText text={line.text} dark={dark} mark={mark} />
        </>
      ) : (
        <span class="muted">…</span>
      )}
    </div>
  );
}

/**
 * The hits of a pattern in the whole log, with the lines around them. The server examines a part of a long log per
 * request, so the page sends requests until the log ends or has enough hits.
 */
function Hits({
  job,
  task,
  attempt,
  pattern,
  mark,
  times,
  dark,
}: {
  job: Job;
  task: string;
  attempt: string;
  pattern: string;
  mark: Mark | null;
  times: boolean;
  dark: boolean;
}) {
  const found = useSignal<SearchHits | null>(null);
  const fault = useSignal<unknown>(null);
  const busy = useSignal(false);
  const abort = useRef<AbortController | null>(null);
  const retry = useRef<ReturnType<typeof setTimeout>>(undefined);
  const stop = () => {
    abort.current?.abort();
    clearTimeout(retry.current);
  };
  /** `earlier`: the hits that were added before the server did not answer; the search continues by itself then. */
  const load = async (from: number, earlier?: number) => {
    stop();
    const mine = new AbortController();
    abort.current = mine;
    busy.value = true;
    if (earlier === undefined) fault.value = null;
    let lines = from ? (found.value?.lines ?? []) : [];
    let added = earlier ?? 0;
    let begin: number | undefined = from;
    try {
      while (begin !== undefined && added < kHitsAtOnce) {
        const most = kHitsAtOnce - added;
        const answer: SearchHits = await search_log(job.id, task, attempt, pattern, begin, most, mine.signal);
        if (mine.signal.aborted) return;
        fault.value = null;
        const numbers = new Set(lines.map((line) => line.number));
        const fresh = answer.lines.filter((line) => !numbers.has(line.number));
        lines = [...lines, ...fresh];
        added += fresh.filter((line) => line.hit).length;
        found.value = {...answer, lines};
        // A request that made no progress, such as at a line of many megabytes, is not repeated without the user.
        begin = answer.next !== undefined && answer.next > begin ? answer.next : undefined;
      }
    } catch (problem) {
      if (mine.signal.aborted) return;
      fault.value = problem;
      const place = begin ?? from;
      if (is_unreachable(problem)) retry.current = setTimeout(() => void load(place, added), kRetryPause);
    } finally {
      if (abort.current === mine) busy.value = false;
    }
  };
  useEffect(() => {
    found.value = null;
    void load(0);
    return stop;
  }, [job.id, task, attempt, pattern]);
  const hits = useComputed(() => found.value?.lines.filter((line) => line.hit).length ?? 0);
  const in_utc = utc.value;
  return (
    <div class="search-hits">
      <ErrorNote error={fault.value} />
      <div class="row small muted log-foot" role="status">
        {!found.value
          ? !fault.value && 'Searching the whole log…'
          : `${count_text(hits.value)} ${hits.value === 1 ? 'line matches' : 'lines match'}${found.value.next !== undefined ? ' so far' : ' in the whole log'}. Click a line number to open the log there.`}
        {found.value?.next !== undefined &&
          (busy.value ? (
            <span>Searching from line {count_text(found.value.next + kFirstLine)}…</span>
          ) : (
            <button
              class="link"
              onClick={() => {
                void load(found.value!.next!);
              }}
            >
              Continue the search from line {count_text(found.value.next + kFirstLine)}
            </button>
          ))}
      </div>
      {found.value && found.value.lines.length > 0 && (
        <div class="hits body" tabIndex={0} role="region" aria-label="Hits">
          {found.value.lines.map((line, i, all) => (
            <div
              key={line.number}
              class={`hit ${line.hit ? '' : 'context'} ${i > 0 && all[i - 1]!.number + 1 !== line.number ? 'gap' : ''}`}
            >
              <a class="tnum" href={href(link_to_line(job, task, line.number))}>
                {String(line.number + kFirstLine).padStart(6)}
              </a>
              {times && <span class="muted tnum">{clock_text(millis(line.time), in_utc)}</span>}
              <AnsiText text={line.text} dark={dark} mark={line.hit ? mark : null} />
            </div>
          ))}
        </div>
      )}
    </div>
  );
}
