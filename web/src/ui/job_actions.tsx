// Actions on one or more jobs: stop, suspend, resume, rerun, delete. A dialog explains the effect first.
import {useSignal} from '@preact/signals';
import {Fragment} from 'preact';
import {useEffect, useRef} from 'preact/hooks';
import {change, get_once, job_path} from '../api/client';
import {has_ended} from '../app/format';
import {anything_changed} from '../app/live';
import type {JobRow} from '../pages/job_rows';
import {Dialog, error_text, toast} from './parts';

export type Action = 'stop' | 'suspend' | 'resume' | 'rerun' | 'delete';
export type Target = Pick<JobRow, 'id' | 'name' | 'project' | 'phase' | 'suspended' | 'object'> &
  Partial<Pick<JobRow, 'stop_requested'>>;

interface Kind {
  verb: string;
  danger: boolean;
  /** Whether the action changes this job. */
  applies: (job: Target) => boolean;
  /** What happens to the jobs that the action changes. */
  effect: (jobs: Target[]) => string;
  /** The message after it: "Stopping", before "2 jobs". */
  done: string;
  /** Why the action skips the other jobs, after "1 selected job" and after "2 selected jobs". */
  others: [string, string];
  run: (job: Target, now: boolean) => Promise<unknown>;
}

const kPaths: Record<Target['object'], string> = {job: 'jobs', array: 'arrays', sweep: 'sweeps', schedule: 'schedules'};

function target_path(target: Target, action = ''): string {
  return `/v1/${kPaths[target.object]}/${encodeURIComponent(target.id)}${action ? '/' + action : ''}`;
}

/** Sweeps and schedules are paused instead: their running jobs continue. */
const can_suspend = (target: Target) => target.object === 'job' || target.object === 'array';

const kPaused = 'Sweeps and schedules are paused: they start no new jobs, and their running jobs continue.';

const kSuspended =
  'Running tasks get SIGTERM, then SIGKILL after the grace period of the job, and their resources are released. The jobs keep their place in the queue until they are resumed. A program that writes checkpoints continues from the last one.';

const plural = (n: number, what: string) => `${n} ${what}${n === 1 ? '' : 's'}`;

export const kActions: Record<Action, Kind> = {
  stop: {
    verb: 'Stop',
    danger: true,
    applies: (job) => !has_ended(job.phase) && job.object !== 'schedule',
    effect: (jobs) => {
      const running = jobs.filter((job) => job.phase !== 'Queued').length;
      const parts = [];
      if (running)
        parts.push(
          `The tasks of ${plural(running, 'job')} get SIGTERM, then SIGKILL after the grace period of the job.`,
        );
      if (jobs.length - running) parts.push(`${plural(jobs.length - running, 'waiting job')} will not start.`);
      return parts.join(' ');
    },
    done: 'Stopping',
    others: ['has already ended', 'have already ended'],
    run: (job, now) => change('POST', target_path(job, 'stop'), undefined, now ? {now: true} : {}),
  },
  suspend: {
    verb: 'Suspend',
    danger: false,
    applies: (job) => !has_ended(job.phase) && !job.suspended,
    effect: (jobs) =>
      [jobs.some(can_suspend) && kSuspended, !jobs.every(can_suspend) && kPaused].filter(Boolean).join(' '),
    done: 'Suspending',
    others: ['has ended or is suspended already', 'have ended or are suspended already'],
    run: (job) => change('POST', target_path(job, can_suspend(job) ? 'suspend' : 'pause')),
  },
  resume: {
    verb: 'Resume',
    danger: false,
    applies: (job) => job.suspended && !has_ended(job.phase),
    effect: () => 'The jobs wait for resources again and start when enough resources are free.',
    done: 'Resumed',
    others: ['is not suspended', 'are not suspended'],
    run: (job) => change('POST', target_path(job, 'resume')),
  },
  rerun: {
    verb: 'Rerun',
    danger: false,
    applies: (job) => job.object === 'job',
    effect: (jobs) =>
      `${plural(jobs.length, 'new job')} with the same specification ${jobs.length === 1 ? 'is' : 'are'} submitted. The new name ends in a number; the old job stays.`,
    done: 'Submitted again:',
    others: ['is an array, a sweep or a schedule', 'are arrays, sweeps or schedules'],
    run: (job) => rerun(job.id),
  },
  delete: {
    verb: 'Delete',
    danger: true,
    applies: (job) => has_ended(job.phase) || job.object === 'schedule',
    effect: (jobs) =>
      [
        jobs.some((job) => job.object !== 'schedule') &&
          'The jobs and their logs, metrics and artifacts are deleted permanently.',
        jobs.some((job) => job.object === 'schedule') &&
          'Schedules are deleted and start no more runs. The jobs of their past runs stay.',
      ]
        .filter(Boolean)
        .join(' '),
    done: 'Deleted',
    others: ['has not ended (stop it first)', 'have not ended (stop them first)'],
    run: (job) => change('DELETE', target_path(job)),
  },
};

/** Submits the same spec again, under a free name that the server chooses. Returns the new job. */
export async function rerun(
  id: string,
  changes: (spec: Record<string, unknown>) => void = () => {},
): Promise<{id: string; spec: {name: string}}> {
  const job = await get_once<{id: string; spec: Record<string, unknown>}>(job_path(id));
  const spec = structuredClone(job.spec);
  changes(spec);
  return await change(
    'POST',
    '/v1/jobs',
    spec,
    {name_suffix: true, rerun_of: job.id},
    {'idempotency-key': crypto_id()},
  );
}

export function crypto_id(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((b) => b.toString(16).padStart(2, '0')).join('');
}

export function ActionDialog({
  action,
  jobs,
  onDone,
}: {
  action: Action;
  jobs: Target[];
  /** `done`: the action was carried out, except for the jobs with the ids `failed`. */
  onDone: (done: boolean, failed?: string[]) => void;
}) {
  const kind = kActions[action];
  const busy = useSignal(false);
  const failures = useSignal<{id: string; text: string}[]>([]);
  /** The jobs to which the action applied when the dialog opened. A job to which it applies only later is skipped. */
  const first = useRef(new Set(jobs.filter(kind.applies).map((job) => job.id)));
  const fitting = jobs.filter(kind.applies);
  const affected = fitting.filter((job) => first.current.has(job.id));
  // Jobs that were being stopped when the dialog opened can only be killed.
  const kills = useRef(action === 'stop' && affected.length > 0 && affected.every((job) => job.stop_requested)).current;
  const now = useSignal(kills);
  const verb = kills ? 'Kill' : kind.verb;
  const late = fitting.length - affected.length;
  const others = jobs.length - fitting.length;
  const closed = useRef(false);
  useEffect(
    () => () => {
      closed.current = true;
    },
    [],
  );
  const run = async () => {
    busy.value = true;
    const faults: {id: string; text: string}[] = [];
    let good = 0;
    const queue = [...affected];
    const work = async () => {
      for (let job = queue.shift(); job; job = queue.shift()) {
        try {
          await kind.run(job, now.value);
          good++;
        } catch (fault) {
          faults.push({id: job.id, text: `${job.name}: ${error_text(fault)}`});
        }
      }
    };
    await Promise.all([work(), work(), work(), work()]);
    anything_changed();
    busy.value = false;
    if (good) toast(`${kind.done} ${plural(good, 'job')}`);
    // The user has closed the dialog meanwhile, and may have opened another one.
    if (closed.current) {
      if (faults.length)
        toast(faults[0]!.text + (faults.length > 1 ? ` (and ${faults.length - 1} more errors)` : ''), 'error');
      return;
    }
    if (faults.length) failures.value = faults;
    else onDone(true);
  };
  const close = () =>
    onDone(
      failures.value.length > 0,
      failures.value.map((each) => each.id),
    );
  const shown = affected.slice(0, 12);
  return (
    <Dialog
      title={`${verb} ${affected.length === 1 ? `${affected[0]!.object} ${affected[0]!.name}` : plural(affected.length, 'job')}?`}
      onClose={close}
    >
      {kills && (
        <p>{affected.length === 1 ? `This ${affected[0]!.object} is` : 'These jobs are'} already being stopped.</p>
      )}
      {affected.length > 0 ? (
        !kills && <p>{kind.effect(affected)}</p>
      ) : (
        <p>This action applies to none of the selected jobs.</p>
      )}
      {affected.length > 1 && (
        <p class="break">
          {shown.map((job, i) => (
            <Fragment key={job.id}>
              {i > 0 && ', '}
              <bdi class="mono">{job.name}</bdi>
            </Fragment>
          ))}
          {affected.length > shown.length && ` and ${affected.length - shown.length} more`}
        </p>
      )}
      {others > 0 && (
        <p class="muted">
          {plural(others, 'selected job')} {kind.others[others === 1 ? 0 : 1]} and will not change.
        </p>
      )}
      {late > 0 && (
        <p class="muted">
          {plural(late, 'selected job')} {late === 1 ? 'has' : 'have'} changed since this dialog was opened, and{' '}
          {late === 1 ? 'is' : 'are'} skipped.
        </p>
      )}
      {action === 'stop' && affected.some((job) => job.phase !== 'Queued') && (
        <label>
          <input
            type="checkbox"
            checked={now.value}
            onChange={(e) => {
              now.value = e.currentTarget.checked;
            }}
          />{' '}
          Kill at once (SIGKILL: programs have no time to write a checkpoint)
        </label>
      )}
      {failures.value.length > 0 && (
        <div class="note error" role="alert">
          {failures.value.map(({id, text}) => (
            <div key={id}>{text}</div>
          ))}
        </div>
      )}
      <div class="actions">
        <button onClick={close}>{failures.value.length ? 'Close' : 'Cancel'}</button>
        {!failures.value.length && (
          <button
            class={kind.danger ? 'danger' : 'primary'}
            disabled={busy.value || affected.length === 0 || (kills && !now.value)}
            onClick={() => {
              void run();
            }}
          >
            {busy.value ? 'Working…' : verb}
          </button>
        )}
      </div>
    </Dialog>
  );
}
