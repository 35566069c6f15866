// One job: its state on top, and a tab each for its parts.
import {useSignal} from '@preact/signals';
import type {ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';
import {Failure, change, get, job_path} from '../../api/client';
import type {Explanation, Job} from '../../api/types';
import {amount_text, has_ended, job_gpus, run_span, span_text, text_of, millis} from '../../app/format';
import {navigate, to} from '../../app/router';
import {useShortcuts} from '../../app/shortcuts';
import {shell_word} from '../../app/spec_text';
import {visible_text} from '../../ui/ansi';
import {AnsiText, is_dark} from '../../ui/ansi_text';
import {Icon} from '../../ui/icons';
import {ActionDialog, rerun, type Action} from '../../ui/job_actions';
import {Card, ErrorNote, Link, Page, Phase, Scroll, Tabs, Time, Waiting, error_text, now, toast, useData} from '../../ui/parts';
import {row_of} from '../job_rows';
import {Files} from './files';
import {Logs} from './logs';
import {Shell} from './shell';
import {Spec} from './spec';
import {Timeline} from './timeline';

const kTabs: [string, string][] = [['summary', 'Summary'], ['logs', 'Logs'], ['metrics', 'Metrics'], ['spec', 'Specification'], ['files', 'Files'], ['shell', 'Shell']];

export function JobPage({id, tab}: {id: string; tab: string}) {
  const loaded = useData((signal) => get<Job>(job_path(id), {}, signal), [id], {match: (event) => event.job_id === id || event.job === id, interval: 250, every: 5000});
  const action = useSignal<Action | null>(null);
  const job = loaded.data;
  useShortcuts(kTabs.map(([key, name], i) => ({keys: String(i + 1), what: name, run: () => navigate(to(['jobs', id, ...(key === 'summary' ? [] : [key])]))})), [id]);
  if (loaded.error && !job) {
    const gone = loaded.error instanceof Failure && loaded.error.status === 404;
    return <Page title={gone ? 'There is no such job' : 'The job was not loaded'}><ErrorNote error={loaded.error} again={gone ? undefined : loaded.reload} />
      {gone && <p>It may have been deleted, or belong to a project that you may not see. <Link to="/jobs">Go to the jobs.</Link></p>}</Page>;
  }
  if (!job) return <Page title="Job"><Waiting /></Page>;
  const row = row_of(job);
  const ended = has_ended(job.phase);
  const again = async () => {
    try {
      const made = await rerun(job.id);
      toast(`Submitted ${made.spec.name}`);
      navigate(to(['jobs', made.id]));
    } catch (fault) { toast(error_text(fault), 'error'); }
  };
  const {origin} = job;
  return <Page title={<bdi>{job.spec.name}</bdi>} lead={<Link to="/jobs" aria-label="All jobs" class="button quiet">←</Link>} actions={<>
    {!ended && <button class="danger" disabled={job.stop_requested} onClick={() => { action.value = 'stop'; }}>Stop</button>}
    {!ended && !job.suspended && <button onClick={() => { action.value = 'suspend'; }}>Suspend</button>}
    {job.suspended && !ended && <button onClick={() => { action.value = 'resume'; }}>Resume</button>}
    <button onClick={() => { void again(); }}>Rerun</button>
    <Link class="button" to={to(['submit'], {from: job.id})}>Rerun with changes</Link>
    {job.spec.scheduling?.purpose === 'build' && <Link class="button" to={to(['submit'], {from: job.id, purpose: 'train'})}>Convert to training</Link>}
    {ended && <button class="danger" onClick={() => { action.value = 'delete'; }}>Delete</button>}
  </>}>
    <div class="row">
      <Phase job={job} />
      <span class="muted">in</span><Link to={to(['jobs'], {project: row.project})}><bdi>{row.project}</bdi></Link>
      <span class="muted">by</span><Link to={to(['jobs'], {owner: row.owner})}><bdi>{row.owner}</bdi></Link>
      {origin && <span class="chip">{origin.kind === 'rerun' ? 'rerun of ' : `${origin.kind} `}{origin.kind === 'rerun' ? <Link to={to(['jobs', origin.id ?? origin.name])}>{origin.name}</Link> : <Link to={to([`${origin.kind}s`, origin.id ?? origin.name])}>{origin.name}</Link>}</span>}
      {job.progress && <span class="nowrap"><span class="progress"><i style={{width: `${Math.min(100, job.progress.done / job.progress.total * 100)}%`}} /></span> <span class="small tnum">{job.progress.unit ? `${job.progress.unit} ${amount_text(job.progress.done)} of ${amount_text(job.progress.total)}` : `${Math.round(job.progress.done / job.progress.total * 100)} %`}{job.progress.ends && !ended ? <>, ends about <Time at={job.progress.ends} /></> : ''}</span></span>}
    </div>
    <Tabs label="Parts of the job" tabs={kTabs} current={tab} target={(key) => to(['jobs', id, ...(key === 'summary' ? [] : [key])])} />
    {tab === 'summary' && <Summary job={job} />}
    {tab === 'logs' && <Logs job={job} />}
    {tab === 'metrics' && <LazyMetrics job={job} />}
    {tab === 'spec' && <Spec job={job} />}
    {tab === 'files' && <Files job={job} />}
    {tab === 'shell' && <Shell job={job} />}
    {action.value && <ActionDialog action={action.value} jobs={[row]} onDone={(done) => {
      const what = action.value;
      action.value = null;
      if (done && what === 'delete') navigate('/jobs');
      else if (done) loaded.reload();
    }} />}
  </Page>;
}

function LazyMetrics({job}: {job: Job}) {
  const view = useSignal<{View: ComponentType<{job: Job}>} | null>(null);
  useEffect(() => { void import('./metrics').then((module) => { view.value = {View: module.Metrics}; }); }, []);
  const View = view.value?.View;
  return View ? <View job={job} /> : <Waiting />;
}

function Summary({job}: {job: Job}) {
  const ended = has_ended(job.phase);
  const duration = run_span(job, now.value);
  return <div class="cards">
    <div class="stack">
      <Reason job={job} />
      <Card title="Timeline"><Timeline job={job} /></Card>
      <Card title="Tasks" scroll><Tasks job={job} /></Card>
    </div>
    <div class="stack">
      <Card title="Facts"><dl class="facts">
        <dt>Submitted</dt><dd><Time at={job.submitted} full /></dd>
        <dt>Started</dt><dd><Time at={job.started} full /></dd>
        <dt>{ended ? 'Ended' : 'Has run'}</dt><dd>{ended ? <><Time at={job.ended} full />{!Number.isNaN(duration) && `, ran ${span_text(duration)}`}</> : Number.isNaN(duration) ? <span class="muted">not yet</span> : span_text(duration)}</dd>
        <dt>Attempts</dt><dd>{job.attempt}{job.restarts > 0 && `, ${job.restarts} of them abandoned`}{job.retries_used > 0 && `, ${job.retries_used} retries used`}</dd>
        <dt>Kind</dt><dd>{job.spec.kind ?? 'single'}{(job.spec.workers ?? 0) > 0 && `, ${job.spec.workers} workers`}</dd>
        <dt>GPUs</dt><dd>{amount_text(job_gpus(job.spec))}</dd>
        {job.spec.image && <><dt>Image</dt><dd class="mono">{job.spec.image}</dd></>}
        <dt>Command</dt><dd><div class="mono tall" tabIndex={0} role="group" aria-label="Command"><bdi>{visible_text([...job.spec.command, ...job.spec.arguments ?? []].map((word) => shell_word(text_of(word))).join(' '))}</bdi></div></dd>
        {job.launch && <><dt>Launch</dt><dd>{String((job.launch as {by?: string}).by ?? '')}{(job.launch as {mpi?: string}).mpi ? `, ${(job.launch as {mpi?: string}).mpi}` : ''}</dd></>}
        {job.exit_code !== undefined && <><dt>Exit code</dt><dd>{job.exit_code}</dd></>}
        {Object.keys(job.spec.labels ?? {}).length > 0 && <><dt>Labels</dt><dd class="row">{Object.entries(job.spec.labels ?? {}).map(([name, value]) => <Link class="chip" key={name} to={to(['jobs'], {label: value ? `${name}=${value}` : name})}><bdi>{visible_text(value ? `${name}=${value}` : name)}</bdi></Link>)}</dd></>}
        {job.avoided_nodes.length > 0 && <><dt>Avoids nodes</dt><dd>{job.avoided_nodes.join(', ')}</dd></>}
        {job.kept_until && <><dt>Kept until</dt><dd><Time at={job.kept_until} full /></dd></>}
        <dt>Id</dt><dd class="mono">{job.id}</dd>
      </dl><LabelEditor job={job} /></Card>
      <Card title="Events"><ol class="events">{[...job.events].reverse().slice(0, 300).map((event, i) => <li key={`${event.time}${i}`}><Time at={event.time} /><bdi>{visible_text(event.text)}</bdi></li>)}</ol></Card>
    </div>
  </div>;
}

function LabelEditor({job}: {job: Job}) {
  const text = useSignal('');
  const fault = useSignal<unknown>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const [name, ...rest] = text.value.trim().split('=');
    const remove = name!.startsWith('-');
    try {
      await change('PATCH', job_path(job.id), {labels: {[remove ? name!.slice(1) : name!]: remove ? null : rest.join('=')}});
      text.value = '';
      fault.value = null;
    } catch (problem) { fault.value = problem; }
  };
  return <form class="row small" onSubmit={(event) => { void submit(event); }}>
    <label>Label <input size={16} placeholder="name=value, -name" value={text.value} onInput={(e) => { text.value = e.currentTarget.value; }} /></label><button disabled={!text.value.trim()}>Set</button><ErrorNote error={fault.value} /></form>;
}

function Reason({job}: {job: Job}) {
  const waits = job.phase === 'Queued';
  const why = useData((signal) => waits ? get<Explanation>(job_path(job.id, 'explain'), {}, signal) : Promise.resolve(null), [job.id, waits], {match: () => true, interval: 1000});
  const dark = is_dark();
  const failure = job.failure;
  return <Card title={waits ? 'Why it waits' : failure ? 'Why it failed' : 'State'}>
    <div class="stack tight">
      {failure ? <>
        <div class="note error"><bdi>{visible_text(text_of(failure.cause))}</bdi></div>
        {text_of(failure.advice) && <p><strong>What to do:</strong> <bdi>{visible_text(text_of(failure.advice))}</bdi></p>}
        {failure.last_lines.length > 0 && <div><h3>Last lines of {failure.task}{failure.rank !== undefined ? `, rank ${failure.rank}` : ''}</h3>
          <Scroll label="Last lines"><pre class="mono last">{failure.last_lines.map((line, i) => <div key={i}><AnsiText text={text_of(line)} dark={dark} /></div>)}</pre></Scroll>
          <Link to={to(['jobs', job.id, 'logs'], {task: failure.task})}>Open the log of {failure.task}</Link></div>}
      </> : <p class="break"><bdi>{visible_text(why.data?.reason || job.reason)}</bdi></p>}
      {job.eviction && <div class="note warn"><bdi>{visible_text(text_of(job.eviction))}</bdi></div>}
      {(why.data?.details ?? job.reason_details).length > 0 && <ul class="ticked">{(why.data?.details ?? job.reason_details).map((detail, i) => <li key={i} class="break"><bdi>{visible_text(text_of(detail))}</bdi></li>)}</ul>}
      {waits && <dl class="facts">
        {why.data && why.data.position > 0 && <><dt>Place in the queue</dt><dd><Link to="/scheduler">{why.data.position}</Link></dd></>}
        <dt>May start</dt><dd>{why.data?.may_start || job.may_start ? <><Time at={why.data?.may_start ?? job.may_start} full /> <span class="muted">(in {span_text(millis(why.data?.may_start ?? job.may_start) - now.value)}, if jobs end at their time limits)</span></> : <span class="muted">unknown: running jobs without a time limit hold what it needs</span>}</dd>
      </dl>}
    </div>
  </Card>;
}

function Tasks({job}: {job: Job}) {
  if (!job.tasks.length) return <div class="empty">The tasks appear when the job starts.</div>;
  return <table class="grid"><caption class="hidden-text">Tasks</caption><thead><tr><th>Task</th><th>State</th><th>Node</th><th>GPUs</th><th class="num">Ran</th><th>End</th><th><span class="hidden-text">Links</span></th></tr></thead>
    <tbody>{job.tasks.map((task) => <tr key={task.name}><th scope="row">{task.name}</th><td>{task.left ? 'Left' : task.phase}</td>
      <td>{task.node && <Link to={to(['nodes', task.node])}>{task.node}</Link>}</td>
      <td class="tnum">{task.devices.length ? task.devices.join(', ') + (task.gpu_share < 1 ? ` (${amount_text(task.gpu_share)})` : '') : ''}</td>
      <td class="num">{task.started ? span_text((task.ended ? millis(task.ended) : now.value) - millis(task.started)) : ''}</td>
      <td class="break">{task.exit?.explanation ?? ''}</td>
      <td class="nowrap"><Link to={to(['jobs', job.id, 'logs'], {task: task.name})} aria-label={`Log of ${task.name}`}>Log</Link>{task.phase === 'Running' && <>{' '}<Link to={to(['jobs', job.id, 'shell'], {task: task.name})} aria-label={`Shell in ${task.name}`}><Icon name="shell" /></Link></>}</td></tr>)}</tbody></table>;
}
