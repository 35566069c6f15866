// Draws when a job waited, started and ran, attempt by attempt, and the tasks of the last attempt. A table
// below the picture has the same data.
import {useRef} from 'preact/hooks';
import type {Job} from '../../api/types';
import {clock_text, day_text, millis, span_text, time_text, utc} from '../../app/format';
import {now, useSize} from '../../ui/parts';

export interface Bar {
  label: string;
  kind: 'waits' | 'starts' | 'runs' | 'failed' | 'evicted' | 'task';
  begin: number;
  end: number;
  /** Whether the interval has not ended yet. */
  open: boolean;
  note: string;
}

/** The intervals between the events of a job, and those of its tasks. `at`: the end of open intervals. Pure. */
export function bars_of(job: Job, at: number): Bar[] {
  const bars: Bar[] = [];
  let attempt = 0;
  let current: Bar = {label: 'Waits', kind: 'waits', begin: millis(job.submitted), end: at, open: true, note: ''};
  const close = (time: number, next: Bar | null) => {
    current.end = time;
    current.open = false;
    if (time > current.begin || current.kind !== 'waits') bars.push(current);
    if (next) current = next;
  };
  let done = false;
  for (const event of job.events) {
    const time = millis(event.time);
    const fact = event.fact as {kind?: string; what?: string; attempt?: number} | undefined;
    if (fact?.kind === 'placed') {
      attempt = fact.attempt ?? attempt + 1;
      close(time, {label: `Attempt ${attempt}`, kind: 'starts', begin: time, end: at, open: true, note: event.text});
    } else if (fact?.kind === 'notice' && fact.what === 'running') {
      if (current.kind === 'starts')
        close(time, {label: `Attempt ${attempt}`, kind: 'runs', begin: time, end: at, open: true, note: 'runs'});
    } else if (fact?.kind === 'failed' && current.kind !== 'waits') {
      current.kind = 'failed';
      current.note = event.text;
    } else if (fact?.kind === 'evicted' && current.kind !== 'waits') {
      current.kind = 'evicted';
      current.note = event.text;
    } else if (fact?.kind === 'starts_again' || (fact?.kind === 'notice' && fact.what === 'evicted_and_gone')) {
      if (current.kind !== 'waits')
        close(time, {label: 'Waits', kind: 'waits', begin: time, end: at, open: true, note: event.text});
    } else if (fact?.kind === 'phase') {
      close(time, null);
      done = true;
    }
  }
  if (!done) {
    if (job.ended) close(millis(job.ended), null);
    else bars.push(current);
  }
  for (const task of job.tasks) {
    if (!task.started) continue;
    bars.push({
      label: task.name,
      kind: task.exit && (task.exit.code !== 0 || task.exit.signal !== 0) && !task.exit.stopped ? 'failed' : 'task',
      begin: millis(task.started),
      end: task.ended ? millis(task.ended) : at,
      open: !task.ended,
      note: task.exit?.explanation ?? `on ${task.node}`,
    });
  }
  return bars;
}

const kWords: Record<Bar['kind'], string> = {
  waits: 'waits',
  starts: 'starts',
  runs: 'runs',
  failed: 'failed',
  evicted: 'was evicted',
  task: 'task',
};

export function Timeline({job}: {job: Job}) {
  const ref = useRef<HTMLDivElement>(null);
  const {width} = useSize(ref);
  const at = job.ended ? millis(job.ended) : now.value;
  const bars = bars_of(job, at);
  // Bars with one label share a row; all waits are in the row "Queue".
  const rows: {label: string; bars: Bar[]}[] = [];
  for (const bar of bars) {
    const label = bar.kind === 'waits' ? 'Queue' : bar.label;
    const row = rows.find((each) => each.label === label);
    if (row) row.bars.push(bar);
    else rows.push({label, bars: [bar]});
  }
  const shown = rows.slice(0, 24);
  const begin = Math.min(...bars.map((bar) => bar.begin), millis(job.submitted));
  const end = Math.max(...bars.map((bar) => bar.end), begin + 1000);
  const left = Math.min(110, width * 0.3);
  const inner = Math.max(40, width - left - 8);
  const x = (time: number) => left + ((time - begin) / (end - begin)) * inner;
  const row_height = 22;
  const height = shown.length * row_height + 24;
  const in_utc = utc.value;
  const count = Math.max(2, Math.min(6, Math.floor(inner / 120)));
  const ticks = Array.from({length: count}, (_, i) => begin + ((end - begin) * i) / (count - 1));
  const one_day = day_text(begin, in_utc) === day_text(end, in_utc);
  return (
    <div ref={ref} class="timeline">
      {width > 0 && (
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`Timeline: ${bars.length} intervals; the table below has the same data`}
        >
          {ticks.map((tick, i) => (
            <g key={i}>
              <line class="tick" x1={x(tick)} x2={x(tick)} y1="0" y2={height - 18} />
              <text
                x={x(tick)}
                y={height - 4}
                text-anchor={i === 0 ? 'start' : i === ticks.length - 1 ? 'end' : 'middle'}
              >
                {one_day
                  ? clock_text(tick, in_utc)
                  : `${day_text(tick, in_utc).slice(5)} ${clock_text(tick, in_utc, false)}`}
              </text>
            </g>
          ))}
          {shown.map((row, i) => (
            <g key={row.label} transform={`translate(0 ${i * row_height})`}>
              <text class="name" x="0" y="15">
                {row.label.length > 15 ? row.label.slice(0, 14) + '…' : row.label}
              </text>
              {row.bars.map((bar, j) => (
                <rect
                  key={j}
                  class={`tl-${bar.kind}`}
                  x={x(bar.begin)}
                  y="4"
                  height="14"
                  rx="2"
                  width={Math.max(2, x(bar.end) - x(bar.begin))}
                >
                  <title>{`${bar.label}: ${kWords[bar.kind]} ${span_text(bar.end - bar.begin)}. ${bar.note}`}</title>
                </rect>
              ))}
            </g>
          ))}
        </svg>
      )}
      {rows.length > shown.length && (
        <p class="muted small">{rows.length - shown.length} more rows are in the table.</p>
      )}
      <div class="legend">
        <span class="key">
          <i class="tl-waits" />
          waits
        </span>
        <span class="key">
          <i class="tl-starts" />
          starts
        </span>
        <span class="key">
          <i class="tl-runs" />
          runs
        </span>
        <span class="key">
          <i class="tl-evicted" />
          evicted
        </span>
        <span class="key">
          <i class="tl-failed" />
          failed
        </span>
      </div>
      <details>
        <summary>As a table</summary>
        <table class="grid">
          <caption class="hidden-text">Timeline</caption>
          <thead>
            <tr>
              <th>What</th>
              <th>State</th>
              <th>From</th>
              <th class="num">Length</th>
            </tr>
          </thead>
          <tbody>
            {bars.map((bar, i) => (
              <tr key={i}>
                <td>{bar.label}</td>
                <td>{kWords[bar.kind]}</td>
                <td class="tnum">{time_text(bar.begin, in_utc)}</td>
                <td class="num">
                  {span_text(bar.end - bar.begin)}
                  {bar.open ? ' …' : ''}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </details>
    </div>
  );
}
