// The page of a schedule: its times, its next and its past runs.
import {get} from '../api/client';
import type {Schedule} from '../api/types';
import {utc} from '../app/format';
import {concerns} from '../app/live';
import {to} from '../app/router';
import {Card, Link, Page, Time, Waiting, useData} from '../ui/parts';
import {useMayChange} from './rights';
import {AllObjects, ConfirmButton, LoadFault, useAct} from './groups';

export function Schedules({parts}: {parts: string[]}) {
  return parts[0] ? <SchedulePage key={parts[0]} id={parts[0]} /> : <AllObjects />;
}

function SchedulePage({id}: {id: string}) {
  const loaded = useData((signal) => get<Schedule>(`/v1/schedules/${encodeURIComponent(id)}`, {}, signal), [id], {
    match: (change) => concerns(change, id),
    interval: 1500,
  });
  const {act, busy} = useAct('schedules', id, loaded.reload);
  const schedule = loaded.data;
  const project = schedule?.spec.project ?? 'default';
  const may_change = useMayChange(schedule ? [project] : [])(project);
  if (!schedule)
    return loaded.error ? (
      <LoadFault what="schedule" error={loaded.error} again={loaded.reload} />
    ) : (
      <Page title="Schedule">
        <Waiting />
      </Page>
    );
  return (
    <Page
      title={<bdi>{schedule.spec.name}</bdi>}
      lead={
        <Link to="/sweeps" class="button quiet" aria-label="All schedules">
          ←
        </Link>
      }
      actions={
        may_change && (
          <>
            <button
              disabled={busy}
              onClick={() => {
                void act('POST', 'run', `Started a run of ${schedule.spec.name}`);
              }}
            >
              Run now
            </button>
            {schedule.paused ? (
              <button
                disabled={busy}
                onClick={() => {
                  void act('POST', 'resume', `Resumed ${schedule.spec.name}`);
                }}
              >
                Resume
              </button>
            ) : (
              <button
                disabled={busy}
                onClick={() => {
                  void act('POST', 'pause', `Paused ${schedule.spec.name}`);
                }}
              >
                Pause
              </button>
            )}
            <ConfirmButton
              verb="Delete"
              name={schedule.spec.name}
              effect="No further runs start. The jobs of past runs stay."
              act={() => act('DELETE', '', `Deleted ${schedule.spec.name}`)}
            />
          </>
        )
      }
    >
      {schedule.problem && <div class="note error">{schedule.problem}</div>}
      <div class="cards">
        <Card title="Details">
          <dl class="facts">
            <dt>Cron</dt>
            <dd class="mono">{schedule.spec.cron}</dd>
            <dt>Time zone</dt>
            <dd>{schedule.spec.timezone}</dd>
            <dt>Overlap</dt>
            <dd>{schedule.spec.overlap}</dd>
            <dt>Project</dt>
            <dd>{schedule.spec.project}</dd>
            <dt>User</dt>
            <dd>{schedule.owner}</dd>
            <dt>State</dt>
            <dd>{schedule.paused ? 'paused' : 'active'}</dd>
          </dl>
        </Card>
        <Card title={utc.value ? 'Next runs (UTC)' : 'Next runs (your local time)'}>
          {(schedule.upcoming ?? []).length === 0 ? (
            <div class="empty">No runs are planned.</div>
          ) : (
            <ul>
              {schedule.upcoming!.map((at) => (
                <li key={at}>
                  <Time at={at} full />
                </li>
              ))}
            </ul>
          )}
        </Card>
      </div>
      <Card title="Runs" scroll>
        {(schedule.history ?? []).length === 0 ? (
          <div class="empty">The schedule has not run yet.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Runs</caption>
            <thead>
              <tr>
                <th>Time</th>
                <th>Outcome</th>
                <th>Job</th>
                <th>Phase</th>
                <th>Error</th>
              </tr>
            </thead>
            <tbody>
              {schedule.history!.map((run) => (
                <tr key={run.time}>
                  <td>
                    <Time at={run.time} />
                  </td>
                  <td>{run.outcome}</td>
                  <td>{run.job_id ? <Link to={to(['jobs', run.job_id])}>{run.job}</Link> : ''}</td>
                  <td>{run.phase ?? ''}</td>
                  <td class="break">{run.error ?? ''}</td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
    </Page>
  );
}
