// The list of the objects that create jobs, which are arrays, sweeps and schedules, and the parts that
// their pages share.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {Failure, change, get} from '../api/client';
import type {Array as ArrayOf, ArrayCounts, Schedule, SweepSummary} from '../api/types';
import {anything_changed, concerns} from '../app/live';
import {number_text, text_of} from '../app/format';
import {navigate, to} from '../app/router';
import {visible_text} from '../ui/ansi';
import {ConfirmDialog} from '../ui/dialogs';
import {Card, ErrorNote, Link, Page, Phase, Share, Time, Waiting, error_text, toast, useData} from '../ui/parts';
import {fetch_rows, page_of} from './job_rows';

/** The objects of a kind. Empty if the server does not have this kind. */
async function list<T>(kind: string, signal: AbortSignal): Promise<T[]> {
  try {
    return (await get<Record<string, T[]>>(`/v1/${kind}`, {}, signal))[kind] ?? [];
  } catch (fault) {
    if (fault instanceof Failure && fault.status === 404) return [];
    throw fault;
  }
}

export function AllObjects() {
  const loaded = useData(
    async (signal) => {
      const [arrays, sweeps, schedules] = await Promise.all([
        list<ArrayOf>('arrays', signal),
        list<SweepSummary>('sweeps', signal),
        list<Schedule>('schedules', signal),
      ]);
      return {arrays, sweeps, schedules};
    },
    [],
    // Members and trials change often. The stream reports their array or sweep as well.
    {match: (each) => each.row?.object !== 'job', interval: 1000},
  );
  const all = loaded.data;
  return (
    <Page title="Arrays, sweeps and schedules">
      <ErrorNote error={loaded.error} again={loaded.reload} />
      {loaded.loading && <Waiting />}
      {all && (
        <>
          <Card title="Sweeps" scroll>
            {all.sweeps.length === 0 ? (
              <div class="empty">
                No sweeps yet. <code>muster sweep create</code> creates a sweep.
              </div>
            ) : (
              <table class="grid">
                <caption class="hidden-text">Sweeps</caption>
                <thead>
                  <tr>
                    <th>Sweep</th>
                    <th>Project</th>
                    <th>User</th>
                    <th>State</th>
                    <th>Method</th>
                    <th>Metric</th>
                    <th class="num">Best</th>
                    <th class="num">Trials</th>
                    <th>Created</th>
                  </tr>
                </thead>
                <tbody>
                  {all.sweeps.map((each) => (
                    <tr key={each.id}>
                      <th scope="row">
                        <Link to={to(['sweeps', each.id])}>
                          <bdi>{each.name}</bdi>
                        </Link>
                      </th>
                      <td>
                        <bdi>{each.project}</bdi>
                      </td>
                      <td>
                        <bdi>{each.owner}</bdi>
                      </td>
                      <td>{each.phase}</td>
                      <td>{each.method}</td>
                      <td class="mono">{each.metric}</td>
                      <td class="num">{number_text(each.best)}</td>
                      <td class="num">
                        {each.trials_completed + each.trials_failed + each.trials_stopped}/{each.trials_total}
                      </td>
                      <td>
                        <Time at={each.created} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Card>
          <Card title="Arrays" scroll>
            {all.arrays.length === 0 ? (
              <div class="empty">
                No arrays yet. <code>muster submit --array 0-99</code> submits an array of 100 jobs.
              </div>
            ) : (
              <table class="grid">
                <caption class="hidden-text">Arrays</caption>
                <thead>
                  <tr>
                    <th>Array</th>
                    <th>Project</th>
                    <th>User</th>
                    <th>Phase</th>
                    <th>Members</th>
                    <th class="num">Done</th>
                    <th>Submitted</th>
                  </tr>
                </thead>
                <tbody>
                  {all.arrays.map((each) => (
                    <tr key={each.id}>
                      <th scope="row">
                        <Link to={to(['arrays', each.id])}>
                          <bdi>{each.spec.name}</bdi>
                        </Link>
                      </th>
                      <td>
                        <bdi>{each.spec.project ?? 'default'}</bdi>
                      </td>
                      <td>
                        <bdi>{each.owner}</bdi>
                      </td>
                      <td>
                        <Phase job={each} />
                      </td>
                      <td class="wide">
                        <CountBar counts={each.counts} />
                      </td>
                      <td class="num">{each.percent} %</td>
                      <td>
                        <Time at={each.submitted} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Card>
          <Card title="Schedules" scroll>
            {all.schedules.length === 0 ? (
              <div class="empty">
                No schedules yet. <code>muster schedule create</code> creates a schedule.
              </div>
            ) : (
              <table class="grid">
                <caption class="hidden-text">Schedules</caption>
                <thead>
                  <tr>
                    <th>Schedule</th>
                    <th>Project</th>
                    <th>User</th>
                    <th>Cron</th>
                    <th>Time zone</th>
                    <th>State</th>
                    <th>Next run</th>
                  </tr>
                </thead>
                <tbody>
                  {all.schedules.map((each) => (
                    <tr key={each.id}>
                      <th scope="row">
                        <Link to={to(['schedules', each.id])}>
                          <bdi>{each.spec.name}</bdi>
                        </Link>
                      </th>
                      <td>
                        <bdi>{each.spec.project}</bdi>
                      </td>
                      <td>
                        <bdi>{each.owner}</bdi>
                      </td>
                      <td class="mono">{each.spec.cron}</td>
                      <td>{each.spec.timezone}</td>
                      <td>
                        {each.paused ? 'paused' : each.problem ? <span class="fault">{each.problem}</span> : 'active'}
                      </td>
                      <td>
                        <Time at={each.paused ? undefined : each.upcoming?.[0]} />
                      </td>
                    </tr>
                  ))}
                </tbody>
              </table>
            )}
          </Card>
        </>
      )}
    </Page>
  );
}

/** The phases of the members of an array as a bar. */
export function CountBar({counts}: {counts: ArrayCounts}) {
  const all = Math.max(
    1,
    counts.queued + counts.starting + counts.running + counts.succeeded + counts.failed + counts.stopped,
  );
  const text = `${counts.succeeded} succeeded, ${counts.failed} failed, ${counts.stopped} stopped, ${counts.running + counts.starting} running, ${counts.queued} waiting`;
  return (
    <div class="bar members" role="img" aria-label={text} title={text}>
      <Share kind="good" of={counts.succeeded / all} />
      <Share kind="bad" of={counts.failed / all} />
      <Share kind="off" of={counts.stopped / all} />
      <Share kind="used" of={(counts.running + counts.starting) / all} />
    </div>
  );
}

/** In place of the page of an object that does not exist or could not be loaded. */
export function LoadFault({what, error, again}: {what: string; error: unknown; again: () => void}) {
  return (
    <Page
      title={
        error instanceof Failure && error.status === 404
          ? `There is no such ${what}`
          : `The ${what} could not be loaded`
      }
    >
      <ErrorNote error={error} again={again} />
      <p>
        <Link to="/sweeps">All arrays, sweeps and schedules</Link>
      </p>
    </Page>
  );
}

/** A function that changes the object of a page, with a message about the result, and whether a change is under way. */
export function useAct(kind: string, id: string, reload: () => void) {
  const pending = useSignal(0);
  const act = async (method: string, action: string, done: string, body?: unknown) => {
    pending.value++;
    try {
      await change(method, `/v1/${kind}/${encodeURIComponent(id)}${action ? '/' + action : ''}`, body);
      toast(done);
      anything_changed();
      if (method === 'DELETE') navigate('/sweeps');
      else reload();
    } catch (fault) {
      toast(error_text(fault), 'error');
    } finally {
      pending.value--;
    }
  };
  return {act, busy: pending.value > 0};
}

/** Acts on the object of a page after a question. `effect`: what the action does. */
export function ConfirmButton({
  verb,
  name,
  effect,
  act,
}: {
  verb: string;
  name: string;
  effect: string;
  act: () => Promise<void>;
}) {
  const asks = useSignal(false);
  const close = () => {
    asks.value = false;
  };
  return (
    <>
      <button
        class="danger"
        onClick={() => {
          asks.value = true;
        }}
      >
        {verb}
      </button>
      {asks.value && (
        <ConfirmDialog title={`${verb} ${name}?`} verb={verb} act={() => act().then(close)} close={close}>
          <p>{effect}</p>
        </ConfirmDialog>
      )}
    </>
  );
}

/** The jobs that an object has created. `origin`: `array/ID` or `sweep/ID`. */
export function Members({origin, children}: {origin: string; children?: ComponentChildren}) {
  const id = origin.slice(origin.indexOf('/') + 1);
  const loaded = useData((signal) => fetch_rows({origin, sort: 'submitted', limit: 200}, signal), [origin], {
    match: (each) => !each.row || concerns(each, id),
    interval: 1500,
  });
  return (
    <Card
      title="Jobs"
      scroll
      actions={
        <>
          {children}
          <Link to={to(['jobs'], {origin})}>Show in the list of jobs</Link>
        </>
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (loaded.data.rows.length === 0 ? (
          <div class="empty">No jobs yet.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Jobs</caption>
            <thead>
              <tr>
                <th>Job</th>
                <th>Phase</th>
                <th>Reason</th>
                <th>Submitted</th>
              </tr>
            </thead>
            <tbody>
              {loaded.data.rows.map((row) => (
                <tr key={row.id}>
                  <th scope="row">
                    <Link to={page_of(row)}>
                      <bdi>{row.name}</bdi>
                    </Link>
                  </th>
                  <td>
                    <Phase job={row} />
                  </td>
                  <td class="break">{visible_text(text_of(row.reason))}</td>
                  <td>
                    <Time at={row.submitted} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        ))}
      {loaded.data?.next && (
        <div class="empty">
          These are the first {loaded.data.rows.length} jobs: <Link to={to(['jobs'], {origin})}>all jobs</Link>
        </div>
      )}
    </Card>
  );
}
