// The columns of the list of jobs.
import type {ComponentChildren} from 'preact';
import {amount_text, run_span, span_text, text_of} from '../app/format';
import {visible_text} from '../ui/ansi';
import {Age, Phase, Time, now} from '../ui/parts';
import {type JobRow} from './job_rows';

interface Column {
  key: string;
  name: string;
  width: number;
  num?: boolean;
  /** The sort key of the server; absent: the list cannot be sorted by this column. */
  sort?: string;
  /** The width of the table, in pixels, below which the column is hidden. */
  min?: number;
  cell: (job: JobRow) => ComponentChildren;
}

export const kColumns: Column[] = [
  {
    key: 'phase',
    name: 'Phase',
    width: 136,
    sort: 'phase',
    cell: (job) => (job.object === 'schedule' ? <ScheduleState paused={job.suspended} /> : <Phase job={job} />),
  },
  {
    key: 'reason',
    name: 'Reason',
    width: 0,
    min: 520,
    cell: (job) => {
      const text = visible_text(text_of(job.reason));
      return (
        <span title={text}>
          <bdi>{text}</bdi>
        </span>
      );
    },
  },
  {
    key: 'project',
    name: 'Project',
    width: 120,
    min: 760,
    sort: 'project',
    cell: (job) => (
      <span title={job.project}>
        <bdi>{job.project}</bdi>
      </span>
    ),
  },
  {
    key: 'owner',
    name: 'User',
    width: 90,
    min: 980,
    sort: 'owner',
    cell: (job) => (
      <span title={job.owner}>
        <bdi>{job.owner}</bdi>
      </span>
    ),
  },
  {key: 'kind', name: 'Kind', width: 64, min: 1100, sort: 'kind', cell: (job) => job.kind},
  {
    key: 'gpus',
    name: 'GPUs',
    width: 66,
    num: true,
    min: 600,
    sort: 'gpus',
    cell: (job) => (job.gpus ? amount_text(job.gpus) : <span class="muted">0</span>),
  },
  {key: 'progress', name: 'Progress', width: 110, min: 1200, cell: (job) => <Done job={job} />},
  {
    key: 'submitted',
    name: 'Age',
    width: 96,
    min: 430,
    num: true,
    sort: 'submitted',
    cell: (job) => <Age at={job.submitted} />,
  },
  {
    key: 'duration',
    name: 'Ran',
    width: 84,
    num: true,
    min: 700,
    sort: 'duration',
    cell: (job) => {
      const ms = run_span(job, now.value);
      return Number.isNaN(ms) ? <span class="muted">–</span> : span_text(ms);
    },
  },
  {
    key: 'ended',
    name: 'Ended',
    width: 130,
    num: true,
    min: 1400,
    sort: 'ended',
    cell: (job) => <Time at={job.ended} />,
  },
];

function ScheduleState({paused}: {paused: boolean}) {
  return <span class="badge">{paused ? 'Paused' : 'Scheduled'}</span>;
}

/** Of an array or a sweep the members that have ended; of a job the progress that its program reports. */
function Done({job}: {job: JobRow}) {
  const m = job.members;
  const part = m
    ? m.all && (m.succeeded + m.failed + m.stopped) / m.all
    : job.progress
      ? Math.min(1, job.progress.done / job.progress.total)
      : undefined;
  if (part === undefined) return null;
  const text = m ? `${m.succeeded + m.failed + m.stopped}/${m.all}` : `${Math.round(part * 100)} %`;
  return (
    <span
      title={
        m
          ? `${m.succeeded} succeeded, ${m.failed} failed, ${m.stopped} stopped, ${m.running} running, ${m.waiting} waiting`
          : text
      }
    >
      <span class="progress">
        <i style={{width: `${part * 100}%`}} />
      </span>{' '}
      <span class="small tnum">{text}</span>
    </span>
  );
}
