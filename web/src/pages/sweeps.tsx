// The page of a sweep: its trials, best first, and their comparison.
import {get} from '../api/client';
import type {Sweep} from '../api/types';
import {number_text} from '../app/format';
import {concerns} from '../app/live';
import {to} from '../app/router';
import {flat} from '../app/spec_text';
import {visible_text} from '../ui/ansi';
import {Card, Link, Page, Phase, Waiting, useData, useFirst} from '../ui/parts';
import {Comparison} from './comparison';
import {useMayChange} from './rights';
import {AllObjects, ConfirmButton, LoadFault, useAct} from './groups';

export function Sweeps({parts}: {parts: string[]}) {
  if (parts[0]) return <SweepPage key={parts[0]} id={parts[0]} />;
  return <AllObjects />;
}

function SweepPage({id}: {id: string}) {
  const loaded = useData((signal) => get<Sweep>(`/v1/sweeps/${encodeURIComponent(id)}`, {}, signal), [id], {
    match: (change) => concerns(change, id),
    interval: 1500,
  });
  const {act, busy} = useAct('sweeps', id, loaded.reload);
  const sweep = loaded.data;
  const project = sweep?.project ?? '';
  const may_change = useMayChange(sweep ? [project] : [])(project);
  const trials = sweep?.trials ?? [];
  const listed = useFirst(trials, 300);
  if (!sweep)
    return loaded.error ? (
      <LoadFault what="sweep" error={loaded.error} again={loaded.reload} />
    ) : (
      <Page title="Sweep">
        <Waiting />
      </Page>
    );
  const ids = trials.map((trial) => trial.job).filter((each): each is string => !!each);
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.values)))];
  const running = sweep.phase === 'Running';
  return (
    <Page
      title={<bdi>{sweep.name}</bdi>}
      lead={
        <Link to="/sweeps" class="button quiet" aria-label="All sweeps">
          ←
        </Link>
      }
      actions={
        may_change && (
          <>
            {running && (
              <button
                disabled={busy}
                onClick={() => {
                  void act('POST', 'pause', `Paused ${sweep.name}`);
                }}
              >
                Pause
              </button>
            )}
            {!sweep.ended && (
              <ConfirmButton
                verb="Stop"
                name={sweep.name}
                effect="No further trials start. Running trials get SIGTERM, then SIGKILL after the grace period."
                act={() => act('POST', 'stop', `Stopping ${sweep.name}`)}
              />
            )}
            {sweep.ended && (
              <ConfirmButton
                verb="Delete"
                name={sweep.name}
                effect="The sweep and the jobs of its trials, with their logs, metrics and artifacts, are deleted permanently."
                act={() => act('DELETE', '', `Deleted ${sweep.name}`)}
              />
            )}
            {sweep.phase === 'Paused' && (
              <button
                disabled={busy}
                onClick={() => {
                  void act('POST', 'resume', `Resumed ${sweep.name}`);
                }}
              >
                Resume
              </button>
            )}
          </>
        )
      }
    >
      <div class="row">
        <Phase job={{phase: sweep.phase}} />
        <span class="chip">sweep, {sweep.method}</span>
        <span class="muted">in</span>
        <Link to={to(['projects', sweep.project])}>{sweep.project}</Link>
        <span class="muted">by {sweep.owner}</span>
      </div>
      <div class="tiles">
        <div class="tile">
          <strong class="tnum">{number_text(sweep.best)}</strong>
          <span>
            best {sweep.metric} ({sweep.goal}){sweep.best_trial ? `, trial ${sweep.best_trial}` : ''}
          </span>
        </div>
        {(['active', 'paused', 'completed', 'failed', 'stopped'] as const).map((key) => (
          <div class="tile" key={key}>
            <strong class="tnum">{sweep[`trials_${key}`]}</strong>
            <span>{key}</span>
          </div>
        ))}
      </div>
      <Card title="Trials, best first" scroll>
        <table class="grid">
          <caption class="hidden-text">Trials</caption>
          <thead>
            <tr>
              <th class="num">Trial</th>
              <th>State</th>
              {names.map((name) => (
                <th key={name} class="num mono">
                  {visible_text(name)}
                </th>
              ))}
              <th class="num">Best {sweep.metric}</th>
              <th class="num">Last</th>
              <th class="num">Steps</th>
            </tr>
          </thead>
          <tbody>
            {listed.shown.map((trial) => {
              const values = flat(trial.values);
              return (
                <tr key={trial.number}>
                  <th scope="row" class="num">
                    {trial.job ? <Link to={to(['jobs', trial.job])}>{trial.number}</Link> : trial.number}
                  </th>
                  <td>{trial.phase}</td>
                  {names.map((name) => (
                    <td key={name} class="num">
                      {visible_text(values[name] ?? '')}
                    </td>
                  ))}
                  <td class="num">{number_text(trial.best)}</td>
                  <td class="num">{number_text(trial.last)}</td>
                  <td class="num">{trial.steps}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
        {listed.more}
      </Card>
      {ids.length > 0 && (
        <Comparison ids={ids} default_metric={sweep.metric} default_best={/max/i.test(sweep.goal) ? 'max' : 'min'} />
      )}
    </Page>
  );
}
