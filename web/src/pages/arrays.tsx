// The page of an array: the number of members in each phase, the members that failed, and its jobs.
import {useSignal} from '@preact/signals';
import {get} from '../api/client';
import type {Array as ArrayOf} from '../api/types';
import {has_ended} from '../app/format';
import {concerns} from '../app/live';
import {navigate, to} from '../app/router';
import {visible_text} from '../ui/ansi';
import {ActionDialog, type Action} from '../ui/job_actions';
import {Card, Link, Page, Phase, Waiting, useData} from '../ui/parts';
import {type JobRow} from './job_rows';
import {useMayChange} from './rights';
import {AllObjects, CountBar, LoadFault, Members, useAct} from './groups';

export function Arrays({parts}: {parts: string[]}) {
  return parts[0] ? <ArrayPage key={parts[0]} id={parts[0]} /> : <AllObjects />;
}

function ArrayPage({id}: {id: string}) {
  const loaded = useData((signal) => get<ArrayOf>(`/v1/arrays/${encodeURIComponent(id)}`, {}, signal), [id], {
    match: (change) => concerns(change, id),
    interval: 1000,
  });
  const action = useSignal<Action | null>(null);
  const {act, busy} = useAct('arrays', id, loaded.reload);
  const array = loaded.data;
  const project = array?.spec.project ?? 'default';
  const may_change = useMayChange(array ? [project] : [])(project);
  if (!array)
    return loaded.error ? (
      <LoadFault what="array" error={loaded.error} again={loaded.reload} />
    ) : (
      <Page title="Array">
        <Waiting />
      </Page>
    );
  const ended = has_ended(array.phase);
  const row = {
    object: 'array',
    id: array.id,
    name: array.spec.name,
    project,
    phase: array.phase,
    suspended: array.suspended,
    stop_requested: array.stop_requested,
  } as JobRow;
  const c = array.counts;
  const failed = array.failed ?? [];
  return (
    <Page
      title={<bdi>{array.spec.name}</bdi>}
      lead={
        <Link to="/sweeps" class="button quiet" aria-label="All arrays">
          ←
        </Link>
      }
      actions={
        <>
          {may_change && !ended && (
            <button
              class="danger"
              onClick={() => {
                action.value = 'stop';
              }}
            >
              {array.stop_requested ? 'Kill' : 'Stop'}
            </button>
          )}
          {may_change && !ended && !array.suspended && (
            <button
              onClick={() => {
                action.value = 'suspend';
              }}
            >
              Suspend
            </button>
          )}
          {may_change && array.suspended && (
            <button
              onClick={() => {
                action.value = 'resume';
              }}
            >
              Resume
            </button>
          )}
          {may_change && c.failed + c.stopped > 0 && (
            <button
              disabled={busy}
              onClick={() => {
                void act('POST', 'rerun', `The failed members of ${array.spec.name} run again`, {});
              }}
            >
              Rerun failed
            </button>
          )}
          {may_change && ended && (
            <button
              class="danger"
              onClick={() => {
                action.value = 'delete';
              }}
            >
              Delete
            </button>
          )}
        </>
      }
    >
      <div class="row">
        <Phase job={array} />
        <span class="chip">array</span>
        <span class="muted">in</span>
        <Link to={to(['projects', row.project])}>{row.project}</Link>
        <span class="muted">by {array.owner}</span>
      </div>
      <Card title={`${array.percent} % done`}>
        <div class="stack tight">
          <CountBar counts={c} />
          <div class="row">
            {(['queued', 'starting', 'running', 'succeeded', 'failed', 'stopped'] as const).map((key) => (
              <Link
                key={key}
                class="chip"
                to={to(['jobs'], {origin: `array/${array.id}`, phase: key[0]!.toUpperCase() + key.slice(1)})}
              >
                {key}: <strong class="tnum">{c[key]}</strong>
              </Link>
            ))}
          </div>
          {array.too_many_failures && (
            <div class="note warn">The array was stopped because more members failed than it allows.</div>
          )}
        </div>
      </Card>
      {failed.length > 0 && (
        <Card title="First members that failed" scroll>
          <table class="grid">
            <caption class="hidden-text">Failed members</caption>
            <thead>
              <tr>
                <th>Member</th>
                <th class="num">Exit code</th>
                <th>Reason</th>
              </tr>
            </thead>
            <tbody>
              {failed.map((each) => (
                <tr key={each.index}>
                  <th scope="row">
                    {each.job ? (
                      <Link to={to(['jobs', each.job])}>
                        {array.spec.name}[{each.index}]
                      </Link>
                    ) : (
                      `${array.spec.name}[${each.index}]`
                    )}
                  </th>
                  <td class="num">{each.exit_code ?? ''}</td>
                  <td class="break">{visible_text(each.reason ?? '')}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </Card>
      )}
      <Members origin={`array/${array.id}`} />
      {action.value && (
        <ActionDialog
          action={action.value}
          jobs={[row]}
          onDone={(done, failed = []) => {
            const what = action.value;
            action.value = null;
            if (done) {
              if (what === 'delete' && !failed.length) navigate('/sweeps');
              else loaded.reload();
            }
          }}
        />
      )}
    </Page>
  );
}
