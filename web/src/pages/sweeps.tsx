// Objects that make jobs: arrays, sweeps and schedules. Each is one row here and in the list of jobs;
// its page shows its members, and for a sweep the comparison of its trials.
import {useSignal} from '@preact/signals';
import type {ComponentChildren} from 'preact';
import {Failure, change, get} from '../api/client';
import type {Array as ArrayOf, ArrayCounts, Schedule, Sweep, SweepSummary} from '../api/types';
import {anything_changed} from '../app/live';
import {text_of} from '../app/format';
import {navigate, to} from '../app/router';
import {flat} from '../app/spec_text';
import {visible_text} from '../ui/ansi';
import {number_text} from '../ui/chart';
import {ActionDialog, type Action} from '../ui/job_actions';
import {Card, ErrorNote, Link, Page, Phase, Share, Time, Waiting, error_text, toast, useData} from '../ui/parts';
import {Comparison} from './comparison';
import {fetch_rows, type JobRow} from './job_rows';

/** Nothing from a server that does not have this kind of object. */
async function list<T>(kind: string, signal: AbortSignal): Promise<T[]> {
  try {
    return (await get<Record<string, T[]>>(`/v1/${kind}`, {}, signal))[kind] ?? [];
  } catch (fault) {
    if (fault instanceof Failure && fault.status === 404) return [];
    throw fault;
  }
}

export function Sweeps({parts}: {parts: string[]}) {
  if (parts[0]) return <SweepPage key={parts[0]} id={parts[0]} />;
  return <AllObjects />;
}
export function Arrays({parts}: {parts: string[]}) { return parts[0] ? <ArrayPage key={parts[0]} id={parts[0]} /> : <AllObjects />; }
export function Schedules({parts}: {parts: string[]}) { return parts[0] ? <SchedulePage key={parts[0]} id={parts[0]} /> : <AllObjects />; }

function AllObjects() {
  const loaded = useData(async (signal) => {
    const [arrays, sweeps, schedules] = await Promise.all([list<ArrayOf>('arrays', signal), list<SweepSummary>('sweeps', signal), list<Schedule>('schedules', signal)]);
    return {arrays, sweeps, schedules};
  }, [], {interval: 1500});
  const all = loaded.data;
  return <Page title="Arrays, sweeps and schedules">
    <ErrorNote error={loaded.error} again={loaded.reload} />{loaded.loading && <Waiting />}
    {all && <>
      <Card title="Sweeps" scroll>{all.sweeps.length === 0 ? <div class="empty">No sweep. <code>muster sweep create</code> starts one.</div> : <table class="grid"><caption class="hidden-text">Sweeps</caption><thead><tr><th>Sweep</th><th>Project</th><th>User</th><th>State</th><th>Method</th><th>Metric</th><th class="num">Best</th><th class="num">Trials</th><th>Created</th></tr></thead>
        <tbody>{all.sweeps.map((each) => <tr key={each.id}><th scope="row"><Link to={to(['sweeps', each.id])}><bdi>{each.name}</bdi></Link></th><td><bdi>{each.project}</bdi></td><td><bdi>{each.owner}</bdi></td><td>{each.phase}</td><td>{each.method}</td><td class="mono">{each.metric}</td><td class="num">{number_text(each.best)}</td><td class="num">{each.trials_completed + each.trials_failed + each.trials_stopped}/{each.trials_total}</td><td><Time at={each.created} /></td></tr>)}</tbody></table>}</Card>
      <Card title="Arrays" scroll>{all.arrays.length === 0 ? <div class="empty">No array. <code>muster submit --array 0-99</code> makes one.</div> : <table class="grid"><caption class="hidden-text">Arrays</caption><thead><tr><th>Array</th><th>Project</th><th>User</th><th>Phase</th><th>Members</th><th class="num">Done</th><th>Submitted</th></tr></thead>
        <tbody>{all.arrays.map((each) => <tr key={each.id}><th scope="row"><Link to={to(['arrays', each.id])}><bdi>{each.spec.name}</bdi></Link></th><td><bdi>{each.spec.project ?? 'default'}</bdi></td><td><bdi>{each.owner}</bdi></td><td><Phase job={each} /></td><td class="wide"><CountBar counts={each.counts} /></td><td class="num">{each.percent} %</td><td><Time at={each.submitted} /></td></tr>)}</tbody></table>}</Card>
      <Card title="Schedules" scroll>{all.schedules.length === 0 ? <div class="empty">No schedule. <code>muster schedule create</code> makes one.</div> : <table class="grid"><caption class="hidden-text">Schedules</caption><thead><tr><th>Schedule</th><th>Project</th><th>User</th><th>Times</th><th>Zone</th><th>State</th><th>Next run</th></tr></thead>
        <tbody>{all.schedules.map((each) => <tr key={each.id}><th scope="row"><Link to={to(['schedules', each.id])}><bdi>{each.spec.name}</bdi></Link></th><td><bdi>{each.spec.project}</bdi></td><td><bdi>{each.owner}</bdi></td><td class="mono">{each.spec.cron}</td><td>{each.spec.timezone}</td><td>{each.paused ? 'paused' : each.problem ? <span class="fault">{each.problem}</span> : 'active'}</td><td><Time at={each.paused ? undefined : each.upcoming?.[0]} /></td></tr>)}</tbody></table>}</Card>
    </>}
  </Page>;
}

function CountBar({counts}: {counts: ArrayCounts}) {
  const all = Math.max(1, counts.queued + counts.starting + counts.running + counts.succeeded + counts.failed + counts.stopped);
  const text = `${counts.succeeded} succeeded, ${counts.failed} failed, ${counts.stopped} stopped, ${counts.running + counts.starting} running, ${counts.queued} waiting`;
  return <div class="bar members" role="img" aria-label={text} title={text}><Share kind="good" of={counts.succeeded / all} /><Share kind="bad" of={counts.failed / all} /><Share kind="off" of={counts.stopped / all} /><Share kind="used" of={(counts.running + counts.starting) / all} /></div>;
}

function Gone({what, error, again}: {what: string; error: unknown; again: () => void}) {
  return <Page title={error instanceof Failure && error.status === 404 ? `There is no such ${what}` : 'Not loaded'}><ErrorNote error={error} again={again} /><p><Link to="/sweeps">All arrays, sweeps and schedules</Link></p></Page>;
}

function useAct(kind: string, id: string, reload: () => void) {
  return async (method: string, action: string, done: string, body?: unknown) => {
    try {
      await change(method, `/v1/${kind}/${encodeURIComponent(id)}${action ? '/' + action : ''}`, body);
      toast(done);
      anything_changed();
      if (method === 'DELETE') navigate('/sweeps');
      else reload();
    } catch (fault) { toast(error_text(fault), 'error'); }
  };
}

function Members({origin, children}: {origin: string; children?: ComponentChildren}) {
  const loaded = useData((signal) => fetch_rows({origin, sort: 'submitted', limit: 200}, signal), [origin], {interval: 1500});
  return <Card title="Jobs" scroll actions={<>{children}<Link to={to(['jobs'], {origin})}>In the list of jobs</Link></>}>
    <ErrorNote error={loaded.error} />{loaded.loading && <Waiting />}
    {loaded.data && (loaded.data.rows.length === 0 ? <div class="empty">No job yet.</div> : <table class="grid"><caption class="hidden-text">Jobs</caption><thead><tr><th>Job</th><th>Phase</th><th>Reason</th><th>Submitted</th></tr></thead>
      <tbody>{loaded.data.rows.map((row) => <tr key={row.id}><th scope="row"><Link to={to(['jobs', row.id])}><bdi>{row.name}</bdi></Link></th><td><Phase job={row} /></td><td class="break">{visible_text(text_of(row.reason))}</td><td><Time at={row.submitted} /></td></tr>)}</tbody></table>)}</Card>;
}

function ArrayPage({id}: {id: string}) {
  const loaded = useData((signal) => get<ArrayOf>(`/v1/arrays/${encodeURIComponent(id)}`, {}, signal), [id], {interval: 1000});
  const action = useSignal<Action | null>(null);
  const act = useAct('arrays', id, loaded.reload);
  const array = loaded.data;
  if (!array) return loaded.error ? <Gone what="array" error={loaded.error} again={loaded.reload} /> : <Page title="Array"><Waiting /></Page>;
  const ended = ['Succeeded', 'Failed', 'Stopped'].includes(array.phase);
  const row = {object: 'array', id: array.id, name: array.spec.name, project: array.spec.project ?? 'default', phase: array.phase, suspended: array.suspended} as JobRow;
  const c = array.counts;
  const failed = array.failed ?? [];
  return <Page title={<bdi>{array.spec.name}</bdi>} lead={<Link to="/sweeps" class="button quiet" aria-label="All arrays">←</Link>} actions={<>
    {!ended && <button class="danger" onClick={() => { action.value = 'stop'; }}>Stop</button>}{!ended && !array.suspended && <button onClick={() => { action.value = 'suspend'; }}>Suspend</button>}{array.suspended && <button onClick={() => { action.value = 'resume'; }}>Resume</button>}
    {c.failed + c.stopped > 0 && <button onClick={() => { void act('POST', 'rerun', `The failed members of ${array.spec.name} run again`, {}); }}>Rerun failed</button>}{ended && <button class="danger" onClick={() => { action.value = 'delete'; }}>Delete</button>}</>}>
    <div class="row"><Phase job={array} /><span class="chip">array</span><span class="muted">in</span><Link to={to(['projects', row.project])}>{row.project}</Link><span class="muted">by {array.owner}</span></div>
    <Card title={`${array.percent} % done`}><div class="stack tight"><CountBar counts={c} /><div class="row">{(['queued', 'starting', 'running', 'succeeded', 'failed', 'stopped'] as const).map((key) => <Link key={key} class="chip" to={to(['jobs'], {origin: `array/${array.id}`, phase: key[0]!.toUpperCase() + key.slice(1)})}>{key}: <strong class="tnum">{c[key]}</strong></Link>)}</div>
      {array.too_many_failures && <div class="note warn">It was stopped because more members failed than it allows.</div>}</div></Card>
    {failed.length > 0 && <Card title="Members that failed first" scroll><table class="grid"><caption class="hidden-text">Failed members</caption><thead><tr><th>Member</th><th class="num">Exit code</th><th>Reason</th></tr></thead><tbody>{failed.map((each) => <tr key={each.index}><th scope="row">{each.job ? <Link to={to(['jobs', each.job])}>{array.spec.name}[{each.index}]</Link> : `${array.spec.name}[${each.index}]`}</th><td class="num">{each.exit_code ?? ''}</td><td class="break">{visible_text(each.reason ?? '')}</td></tr>)}</tbody></table></Card>}
    <Members origin={`array/${array.id}`} />
    {action.value && <ActionDialog action={action.value} jobs={[row]} onDone={(done) => { const what = action.value; action.value = null; if (done) { if (what === 'delete') navigate('/sweeps'); else loaded.reload(); } }} />}
  </Page>;
}

function SweepPage({id}: {id: string}) {
  const loaded = useData(async (signal) => {
    const sweep = await get<Sweep>(`/v1/sweeps/${encodeURIComponent(id)}`, {}, signal);
    const {rows} = await fetch_rows({origin: `sweep/${sweep.id}`, limit: 1000, sort: 'submitted'}, signal);
    return {sweep, rows};
  }, [id], {interval: 1500});
  const act = useAct('sweeps', id, loaded.reload);
  if (!loaded.data) return loaded.error ? <Gone what="sweep" error={loaded.error} again={loaded.reload} /> : <Page title="Sweep"><Waiting /></Page>;
  const {sweep, rows} = loaded.data;
  const by_number = new Map(rows.map((row) => [Number(row.name.slice(row.name.lastIndexOf('-') + 1)), row]));
  const trials = sweep.trials ?? [];
  const ids = trials.map((trial) => by_number.get(trial.number)?.id).filter((each): each is string => !!each);
  const names = [...new Set(trials.flatMap((trial) => Object.keys(trial.values)))];
  const running = sweep.phase === 'Running';
  return <Page title={<bdi>{sweep.name}</bdi>} lead={<Link to="/sweeps" class="button quiet" aria-label="All sweeps">←</Link>} actions={<>
    {running && <><button onClick={() => { void act('POST', 'pause', `Paused ${sweep.name}`); }}>Pause</button><button class="danger" onClick={() => { void act('POST', 'stop', `Stopped ${sweep.name}`); }}>Stop</button></>}
    {sweep.phase === 'Paused' && <button onClick={() => { void act('POST', 'resume', `Resumed ${sweep.name}`); }}>Resume</button>}</>}>
    <div class="row"><Phase job={{phase: sweep.phase}} /><span class="chip">sweep, {sweep.method}</span><span class="muted">in</span><Link to={to(['projects', sweep.project])}>{sweep.project}</Link><span class="muted">by {sweep.owner}</span></div>
    <div class="tiles"><div class="tile"><strong class="tnum">{number_text(sweep.best)}</strong><span>best {sweep.metric} ({sweep.goal}){sweep.best_trial ? `, trial ${sweep.best_trial}` : ''}</span></div>
      {(['active', 'paused', 'completed', 'failed', 'stopped'] as const).map((key) => <div class="tile" key={key}><strong class="tnum">{sweep[`trials_${key}`]}</strong><span>{key}</span></div>)}</div>
    <Card title="Trials, best first" scroll><table class="grid"><caption class="hidden-text">Trials</caption><thead><tr><th class="num">Trial</th><th>State</th>{names.map((name) => <th key={name} class="num mono">{visible_text(name)}</th>)}<th class="num">Best {sweep.metric}</th><th class="num">Last</th><th class="num">Steps</th></tr></thead>
      <tbody>{trials.slice(0, 300).map((trial) => { const row = by_number.get(trial.number); const values = flat(trial.values); return <tr key={trial.number}><th scope="row" class="num">{row ? <Link to={to(['jobs', row.id])}>{trial.number}</Link> : trial.number}</th><td>{trial.phase}</td>{names.map((name) => <td key={name} class="num">{visible_text(values[name] ?? '')}</td>)}<td class="num">{number_text(trial.best)}</td><td class="num">{number_text(trial.last)}</td><td class="num">{trial.steps}</td></tr>; })}</tbody></table></Card>
    {ids.length > 0 && <Comparison ids={ids} default_metric={sweep.metric} default_best={/max/i.test(sweep.goal) ? 'max' : 'min'} />}
  </Page>;
}

function SchedulePage({id}: {id: string}) {
  const loaded = useData((signal) => get<Schedule>(`/v1/schedules/${encodeURIComponent(id)}`, {}, signal), [id], {interval: 1500});
  const act = useAct('schedules', id, loaded.reload);
  const schedule = loaded.data;
  if (!schedule) return loaded.error ? <Gone what="schedule" error={loaded.error} again={loaded.reload} /> : <Page title="Schedule"><Waiting /></Page>;
  return <Page title={<bdi>{schedule.spec.name}</bdi>} lead={<Link to="/sweeps" class="button quiet" aria-label="All schedules">←</Link>} actions={<>
    <button onClick={() => { void act('POST', 'run', `Started a run of ${schedule.spec.name}`); }}>Run now</button>{schedule.paused ? <button onClick={() => { void act('POST', 'resume', `Resumed ${schedule.spec.name}`); }}>Resume</button> : <button onClick={() => { void act('POST', 'pause', `Paused ${schedule.spec.name}`); }}>Pause</button>}</>}>
    {schedule.problem && <div class="note error">{schedule.problem}</div>}
    <div class="cards"><Card title="Facts"><dl class="facts"><dt>Times</dt><dd class="mono">{schedule.spec.cron}</dd><dt>Zone</dt><dd>{schedule.spec.timezone}</dd><dt>Overlap</dt><dd>{schedule.spec.overlap}</dd><dt>Project</dt><dd>{schedule.spec.project}</dd><dt>User</dt><dd>{schedule.owner}</dd><dt>State</dt><dd>{schedule.paused ? 'paused' : 'active'}</dd></dl></Card>
      <Card title="Next runs">{(schedule.upcoming ?? []).length === 0 ? <div class="empty">None.</div> : <ul>{schedule.upcoming!.map((at) => <li key={at}><Time at={at} full /></li>)}</ul>}</Card></div>
    <Card title="Runs" scroll>{(schedule.history ?? []).length === 0 ? <div class="empty">It has not run yet.</div> : <table class="grid"><caption class="hidden-text">Runs</caption><thead><tr><th>Time</th><th>Outcome</th><th>Job</th><th>Phase</th><th>Error</th></tr></thead><tbody>{schedule.history!.map((run) => <tr key={run.time}><td><Time at={run.time} /></td><td>{run.outcome}</td><td>{run.job_id ? <Link to={to(['jobs', run.job_id])}>{run.job}</Link> : ''}</td><td>{run.phase ?? ''}</td><td class="break">{run.error ?? ''}</td></tr>)}</tbody></table>}</Card>
  </Page>;
}
