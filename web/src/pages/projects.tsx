// The tree of projects with their quota, and below /projects/NAME one project: quota, members,
// secrets, notifications, usage, audit log.
import {useSignal} from '@preact/signals';
import {change, get, project_path} from '../api/client';
import type {Members, Project, Projects as ProjectList, Secrets, Share as ShareOf} from '../api/types';
import {amount_text, bytes_text} from '../app/format';
import {anything_changed} from '../app/live';
import {navigate, to} from '../app/router';
import {is_server_admin, role_in} from '../app/session';
import {parse_size, size_word} from '../app/spec_text';
import {Card, Dialog, ErrorNote, Link, Page, Share, Tabs, Time, Waiting, error_text, toast, useData} from '../ui/parts';
import {AuditTable} from './audit';
import {Notifications} from './notifications';
import {project_rows, type ProjectRow} from './project_tree';
import {Usage} from './usage';

export function Projects({parts}: {parts: string[]}) {
  const loaded = useData((signal) => get<ProjectList>('/v1/projects', {}, signal), [], {interval: 1000});
  const making = useSignal(false);
  const rows = project_rows(loaded.data?.projects ?? []);
  if (parts[0]) {
    const row = rows.find((each) => each.project.name === parts[0]);
    if (!row) return <Page title={loaded.data ? 'There is no such project' : 'Project'}><ErrorNote error={loaded.error} />{loaded.data ? <p><Link to="/projects">All projects</Link></p> : <Waiting />}</Page>;
    return <One key={parts[0]} row={row} tab={parts[1] ?? 'quota'} has_children={rows.some((each) => each.project.parent === parts[0])} />;
  }
  const scale = Math.max(1, ...rows.map((row) => Math.max(row.project.status.allocated.gpus, row.deserved ?? 0, row.project.quota.limit.gpus ?? 0)));
  const gpu_quota = rows.some((row) => row.project.status.deserved.gpus !== null && row.project.status.deserved.gpus > 0);
  return <Page title="Projects" actions={is_server_admin() && <button class="primary" onClick={() => { making.value = true; }}>New project</button>}>
    <ErrorNote error={loaded.error} again={loaded.reload} />
    {loaded.loading && <Waiting />}
    {loaded.data && <div class="card"><div class="scroll" tabIndex={0} role="region" aria-label="Projects"><table class="grid"><caption class="hidden-text">Projects: GPUs unless another unit is named</caption>
      <thead><tr><th>Project</th><th>{gpu_quota ? 'GPUs' : 'Use'}</th><th class="num">Allocated</th><th class="num">Deserved</th><th class="num">Borrowed</th><th class="num">Limit</th><th class="num">Fair share</th><th class="num">Requested</th><th class="num">CPUs</th><th class="num">Memory</th><th class="num">Running</th><th class="num">Waiting</th><th>Your role</th></tr></thead>
      <tbody>{rows.map((row) => <Line key={row.project.name} row={row} scale={scale} />)}</tbody></table></div></div>}
    <div class="legend"><span class="key"><i class="used" />allocated within quota</span><span class="key"><i class="borrowed" />borrowed</span><span class="key"><i />of the largest project</span></div>
    {making.value && <NewProject projects={rows.map((row) => row.project.name)} close={() => { making.value = false; }} />}
  </Page>;
}

function Line({row, scale}: {row: ProjectRow; scale: number}) {
  const {project} = row;
  const status = project.status;
  return <tr><th scope="row"><span style={{paddingLeft: `${row.depth * 16}px`}}><Link to={to(['projects', project.name])}><bdi>{project.name}</bdi></Link></span></th>
    <td class="wide"><div class="bar" role="img" aria-label={`${amount_text(status.allocated.gpus - row.borrowed)} within quota, ${amount_text(row.borrowed)} borrowed`}><Share kind="used" of={(status.allocated.gpus - row.borrowed) / scale} /><Share kind="borrowed" of={row.borrowed / scale} /></div></td>
    <td class="num">{amount_text(status.allocated.gpus)}</td><td class="num">{amount_text(row.deserved)}{project.takes_the_rest && <span class="muted"> (rest)</span>}</td><td class="num">{row.borrowed ? amount_text(row.borrowed) : 0}</td>
    <td class="num">{amount_text(project.quota.limit.gpus)}</td><td class="num">{amount_text(status.fair_share.gpus)}</td><td class="num">{amount_text(status.requested.gpus)}</td>
    <td class="num">{amount_text(status.allocated.cpus)}</td><td class="num">{bytes_text(status.allocated.memory_bytes)}</td>
    <td class="num"><Link to={to(['jobs'], {project: project.name, phase: 'Starting,Running'})}>{status.running}</Link></td><td class="num"><Link to={to(['jobs'], {project: project.name, phase: 'Queued'})}>{status.waiting}</Link></td>
    <td>{role_in(project.name, row.parents)}</td></tr>;
}

const kTabs: [string, string][] = [['quota', 'Quota'], ['members', 'Members'], ['secrets', 'Secrets'], ['notifications', 'Notifications'], ['usage', 'Usage'], ['audit', 'Audit log']];

function One({row, tab, has_children}: {row: ProjectRow; tab: string; has_children: boolean}) {
  const {project} = row;
  const admin = role_in(project.name, row.parents) === 'admin';
  const gone = useSignal(false);
  return <Page title={<bdi>{project.name}</bdi>} lead={<Link to="/projects" class="button quiet" aria-label="All projects">←</Link>} actions={<>
    <Link class="button" to={to(['jobs'], {project: project.name})}>Jobs</Link>{!has_children && <Link class="button" to={to(['submit'], {project: project.name})}>Submit a job</Link>}
    <Link class="button" to={to(['logs'], {project: project.name})}>Search logs</Link>
    {is_server_admin() && project.name !== 'default' && <button class="danger" onClick={() => { gone.value = true; }}>Delete</button>}</>}>
    <div class="muted">{row.parents.length > 0 && <>below {row.parents.map((name, i) => <>{i > 0 && ' / '}<Link key={name} to={to(['projects', name])}>{name}</Link></>)}; </>}your role: {role_in(project.name, row.parents)}</div>
    <Tabs label="Parts of the project" tabs={kTabs} current={tab} target={(key) => to(['projects', project.name, ...(key === 'quota' ? [] : [key])])} />
    {tab === 'quota' && <Quota project={project} admin={is_server_admin() || (admin && project.parent !== '')} />}
    {tab === 'members' && <MemberCard project={project.name} admin={admin} />}
    {tab === 'secrets' && <SecretCard project={project.name} admin={admin} />}
    {tab === 'notifications' && <Notifications project={project.name} admin={admin} />}
    {tab === 'usage' && <Usage project={project.name} />}
    {tab === 'audit' && <AuditTable project={project.name} />}
    {gone.value && <Dialog title={`Delete project ${project.name}?`} onClose={() => { gone.value = false; }}>
      <p>The project and its secrets and members are removed. A project with jobs or with projects below it cannot be deleted.</p>
      <div class="actions"><button onClick={() => { gone.value = false; }}>Cancel</button><button class="danger" onClick={() => {
        change('DELETE', project_path(project.name)).then(() => { anything_changed(); navigate('/projects'); }, (fault) => { gone.value = false; toast(error_text(fault), 'error'); });
      }}>Delete</button></div></Dialog>}
  </Page>;
}

interface Amounts { gpus: string; cpus: string; memory: string }
const words = (share: ShareOf): Amounts => ({gpus: share.gpus === null ? '' : String(share.gpus), cpus: share.cpus === null ? '' : String(share.cpus), memory: share.memory_bytes === null ? '' : size_word(share.memory_bytes)});

function Quota({project, admin}: {project: Project; admin: boolean}) {
  const shown = {deserved: words(project.quota.deserved), limit: words(project.quota.limit), weight: String(project.quota.weight), priority: String(project.priority)};
  const draft = useSignal<typeof shown | null>(null);
  const based_on = useSignal('');
  const fault = useSignal<unknown>(null);
  const value = draft.value ?? shown;
  const others = draft.value !== null && based_on.value !== JSON.stringify(shown);
  const edit = (next: typeof shown) => { if (draft.value === null) based_on.value = JSON.stringify(shown); draft.value = next; };
  const save = async (event: Event) => {
    event.preventDefault();
    const now = draft.value;
    if (!now) return;
    const before = JSON.parse(based_on.value) as typeof shown;
    const part = (a: Amounts, b: Amounts) => {
      const out: Record<string, number | null> = {};
      if (a.gpus !== b.gpus) out['gpus'] = a.gpus.trim() === '' ? null : Number(a.gpus);
      if (a.cpus !== b.cpus) out['cpus'] = a.cpus.trim() === '' ? null : Number(a.cpus);
      if (a.memory !== b.memory) {
        const size = a.memory.trim() === '' ? null : parse_size(a.memory);
        if (size === undefined) throw new Error(`'${a.memory}' is not a size such as 64Gi`);
        out['memory_bytes'] = size;
      }
      return out;
    };
    try {
      const body: Record<string, unknown> = {};
      const quota: Record<string, unknown> = {};
      const deserved = part(now.deserved, before.deserved);
      const limit = part(now.limit, before.limit);
      if (Object.keys(deserved).length) quota['deserved'] = deserved;
      if (Object.keys(limit).length) quota['limit'] = limit;
      if (now.weight !== before.weight) quota['weight'] = Number(now.weight);
      if (Object.keys(quota).length) body['quota'] = quota;
      if (now.priority !== before.priority) body['priority'] = Number(now.priority);
      await change('PATCH', project_path(project.name), body);
      draft.value = null;
      fault.value = null;
      toast('Changed the quota');
      anything_changed();
    } catch (problem) { fault.value = problem; }
  };
  const cell = (which: 'deserved' | 'limit', key: keyof Amounts) => <td>{admin ? <input aria-label={`${which} ${key}`} size={8} value={value[which][key]} placeholder={which === 'limit' ? 'no limit' : 'all'} onInput={(e) => edit({...value, [which]: {...value[which], [key]: e.currentTarget.value}})} /> : value[which][key] || (which === 'limit' ? 'no limit' : 'all')}</td>;
  const status = project.status;
  return <Card title="Quota"><form class="stack" onSubmit={(event) => { void save(event); }}>
    <div class="scroll"><table class="grid"><caption class="hidden-text">Quota and use</caption><thead><tr><th>Resource</th><th class="num">Allocated</th><th class="num">Requested</th><th class="num">Fair share</th><th class="num">Deserved in force</th><th>Deserved</th><th>Limit</th></tr></thead><tbody>
      <tr><th scope="row">GPUs</th><td class="num">{amount_text(status.allocated.gpus)}</td><td class="num">{amount_text(status.requested.gpus)}</td><td class="num">{amount_text(status.fair_share.gpus)}</td><td class="num">{amount_text(status.deserved.gpus)}</td>{cell('deserved', 'gpus')}{cell('limit', 'gpus')}</tr>
      <tr><th scope="row">CPUs</th><td class="num">{amount_text(status.allocated.cpus)}</td><td class="num">{amount_text(status.requested.cpus)}</td><td class="num">{amount_text(status.fair_share.cpus)}</td><td class="num">{amount_text(status.deserved.cpus)}</td>{cell('deserved', 'cpus')}{cell('limit', 'cpus')}</tr>
      <tr><th scope="row">Memory</th><td class="num">{bytes_text(status.allocated.memory_bytes)}</td><td class="num">{bytes_text(status.requested.memory_bytes)}</td><td class="num">{bytes_text(status.fair_share.memory_bytes) || '∞'}</td><td class="num">{bytes_text(status.deserved.memory_bytes) || '∞'}</td>{cell('deserved', 'memory')}{cell('limit', 'memory')}</tr></tbody></table></div>
    <div class="row"><label>Weight <input type="number" step="any" min="0" disabled={!admin} size={6} value={value.weight} onInput={(e) => edit({...value, weight: e.currentTarget.value})} /></label>
      <label>Priority <input type="number" min="0" max="1000" disabled={!admin} size={6} value={value.priority} onInput={(e) => edit({...value, priority: e.currentTarget.value})} /></label></div>
    <p class="muted small">Deserved: what the project can always claim. Limit: what it never exceeds. The weight shares what others leave unused. An empty field means all resources, or no limit.</p>
    {others && <div class="note warn" role="status">Somebody else has changed this quota since you began. Saving changes only the fields that you changed. <button type="button" class="link" onClick={() => { draft.value = null; }}>Show the present values</button></div>}
    <ErrorNote error={fault.value} />
    {admin && <div class="row"><button class="primary" disabled={!draft.value}>Save</button>{draft.value && <button type="button" onClick={() => { draft.value = null; fault.value = null; }}>Discard</button>}</div>}
  </form></Card>;
}

function MemberCard({project, admin}: {project: string; admin: boolean}) {
  const loaded = useData((signal) => get<Members>(project_path(project, '/members'), {}, signal), [project], {every: 30000, match: () => false});
  const name = useSignal('');
  const role = useSignal('member');
  const act = async (method: string, user: string, body: unknown, done: string) => {
    try {
      await change(method, project_path(project, `/members/${encodeURIComponent(user)}`), body);
      toast(done);
      name.value = '';
      loaded.reload();
    } catch (fault) { toast(error_text(fault), 'error'); }
  };
  const kRoles = ['viewer', 'member', 'admin'];
  return <Card title="Members" scroll>
    <ErrorNote error={loaded.error} />{loaded.loading && <Waiting />}
    {loaded.data && (loaded.data.members.length === 0 ? <div class="empty">No member: only admins of the server and of the projects above use this project.</div> : <table class="grid"><caption class="hidden-text">Members</caption><thead><tr><th>User</th><th>Role</th><th><span class="hidden-text">Remove</span></th></tr></thead>
      <tbody>{loaded.data.members.map((member) => <tr key={member.user}><th scope="row"><bdi>{member.user}</bdi></th>
        <td>{admin ? <select aria-label={`Role of ${member.user}`} value={member.role} onChange={(e) => { void act('PUT', member.user, {role: e.currentTarget.value}, `Changed the role of ${member.user}`); }}>{kRoles.map((each) => <option key={each} selected={each === member.role}>{each}</option>)}</select> : member.role}</td>
        <td>{admin && <button class="danger" aria-label={`Remove ${member.user}`} onClick={() => { void act('DELETE', member.user, undefined, `Removed ${member.user}`); }}>Remove</button>}</td></tr>)}</tbody></table>)}
    {admin && <form class="row body" onSubmit={(event) => { event.preventDefault(); void act('PUT', name.value.trim(), {role: role.value}, `Added ${name.value.trim()}`); }}>
      <label>User <input value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} /></label>
      <label>Role <select value={role.value} onChange={(e) => { role.value = e.currentTarget.value; }}>{kRoles.map((each) => <option key={each} selected={each === role.value}>{each}</option>)}</select></label>
      <button disabled={!name.value.trim()}>Add</button></form>}
  </Card>;
}

function SecretCard({project, admin}: {project: string; admin: boolean}) {
  const loaded = useData((signal) => get<Secrets>(project_path(project, '/secrets'), {}, signal), [project], {every: 30000, match: () => false});
  const name = useSignal('');
  const value = useSignal('');
  const act = async (method: string, secret: string, body: unknown, done: string) => {
    try {
      await change(method, project_path(project, `/secrets/${encodeURIComponent(secret)}`), body);
      toast(done);
      name.value = '';
      value.value = '';
      loaded.reload();
    } catch (fault) { toast(error_text(fault), 'error'); }
  };
  return <Card title="Secrets" scroll>
    <ErrorNote error={loaded.error} />{loaded.loading && <Waiting />}
    {loaded.data && (loaded.data.secrets.length === 0 ? <div class="empty">No secret. Jobs of the project get secrets as variables or files.</div> : <table class="grid"><caption class="hidden-text">Secrets, without their values</caption><thead><tr><th>Name</th><th>Created</th><th>Changed</th><th>By</th><th><span class="hidden-text">Delete</span></th></tr></thead>
      <tbody>{loaded.data.secrets.map((secret) => <tr key={secret.name}><th scope="row" class="mono"><bdi>{secret.name}</bdi></th><td><Time at={secret.created} /></td><td><Time at={secret.changed} /></td><td><bdi>{secret.changed_by}</bdi></td>
        <td>{admin && <button class="danger" aria-label={`Delete ${secret.name}`} onClick={() => { void act('DELETE', secret.name, undefined, `Deleted ${secret.name}`); }}>Delete</button>}</td></tr>)}</tbody></table>)}
    <p class="muted small body">A value can be written and used, and never read.</p>
    {admin && <form class="row body" onSubmit={(event) => { event.preventDefault(); void act('PUT', name.value.trim(), {value: value.value}, `Stored ${name.value.trim()}`); }}>
      <label>Name <input class="mono" value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} /></label>
      <label>Value <input type="password" autocomplete="off" value={value.value} onInput={(e) => { value.value = e.currentTarget.value; }} /></label>
      <button disabled={!name.value.trim() || !value.value}>Store</button></form>}
  </Card>;
}

function NewProject({projects, close}: {projects: string[]; close: () => void}) {
  const name = useSignal('');
  const parent = useSignal('');
  const gpus = useSignal('0');
  const fault = useSignal<unknown>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    try {
      await change('POST', '/v1/projects', {name: name.value.trim(), parent: parent.value, quota: {deserved: {gpus: Number(gpus.value)}}});
      anything_changed();
      close();
      navigate(to(['projects', name.value.trim()]));
    } catch (problem) { fault.value = problem; }
  };
  return <Dialog title="New project" onClose={close}><form class="stack tight" onSubmit={(event) => { void submit(event); }}>
    <div class="field"><label for="np-n">Name</label><input id="np-n" required value={name.value} onInput={(e) => { name.value = e.currentTarget.value; }} /></div>
    <div class="field"><label for="np-p">Parent</label><select id="np-p" value={parent.value} onChange={(e) => { parent.value = e.currentTarget.value; }}><option value="">none</option>{projects.map((each) => <option key={each} value={each}>{each}</option>)}</select></div>
    <div class="field"><label for="np-g">Deserved GPUs</label><input id="np-g" type="number" min="0" step="any" value={gpus.value} onInput={(e) => { gpus.value = e.currentTarget.value; }} /></div>
    <ErrorNote error={fault.value} /><div class="actions"><button type="button" onClick={close}>Cancel</button><button class="primary" disabled={!name.value.trim()}>Create</button></div></form></Dialog>;
}

