// The tree of projects with their quotas; /projects/NAME is the page of a project.
import {Fragment} from 'preact';
import {useSignal} from '@preact/signals';
import {change, get, project_path} from '../api/client';
import type {Projects as ProjectList} from '../api/types';
import {amount_text, bytes_text} from '../app/format';
import {anything_changed} from '../app/live';
import {navigate, query_value, to} from '../app/router';
import {is_server_admin, role_in} from '../app/session';
import {ChoiceField, ConfirmDialog, FormDialog, TextField} from '../ui/dialogs';
import {ErrorNote, Link, Page, Share, Tabs, Waiting, error_text, toast, useData, useFirst} from '../ui/parts';
import {DelayedInput} from './delayed_input';
import {AuditTable} from './audit';
import {Notifications} from './notifications';
import {project_rows, type ProjectRow} from './project_tree';
import {Usage} from './usage';
import {Quota} from './project_quota';
import {MemberCard, SecretCard} from './project_members';

export function Projects({parts}: {parts: string[]}) {
  const loaded = useData((signal) => get<ProjectList>('/v1/projects', {}, signal), [], {interval: 1000, every: 15_000});
  const making = useSignal(false);
  const rows = project_rows(loaded.data?.projects ?? []);
  const text = query_value('text').toLowerCase();
  const listed = useFirst(text ? rows.filter((row) => row.project.name.includes(text)) : rows);
  if (parts[0]) {
    const row = rows.find((each) => each.project.name === parts[0]);
    if (!row)
      return (
        <Page title={loaded.data ? 'There is no such project' : 'Project'}>
          <ErrorNote error={loaded.error} again={loaded.reload} />
          {loaded.data && (
            <p>
              <Link to="/projects">All projects</Link>
            </p>
          )}
          {loaded.loading && <Waiting />}
        </Page>
      );
    return <ProjectPage key={parts[0]} row={row} tab={parts[1] ?? 'quota'} has_children={row.has_children} />;
  }
  const scale = Math.max(
    1,
    ...rows.map((row) =>
      Math.max(row.project.status.allocated.gpus, row.deserved ?? 0, row.project.quota.limit.gpus ?? 0),
    ),
  );
  const gpu_quota = rows.some(
    (row) => row.project.status.deserved.gpus !== null && row.project.status.deserved.gpus > 0,
  );
  return (
    <Page
      title="Projects"
      actions={
        is_server_admin() && (
          <button
            class="primary"
            onClick={() => {
              making.value = true;
            }}
          >
            New project
          </button>
        )
      }
    >
      <ErrorNote error={loaded.error} again={loaded.reload} />
      {loaded.loading && <Waiting />}
      {(rows.length > 20 || text) && (
        <div class="filters" role="search">
          <DelayedInput name="text" label="Find a project" search />
        </div>
      )}
      {loaded.data && (
        <div class="card">
          <div class="scroll" tabIndex={0} role="region" aria-label="Projects">
            <table class="grid">
              <caption class="hidden-text">Projects: GPUs unless another unit is named</caption>
              <thead>
                <tr>
                  <th>Project</th>
                  <th>{gpu_quota ? 'GPUs' : 'Use'}</th>
                  <th class="num">Used</th>
                  <th class="num">Quota</th>
                  <th class="num">Borrowed</th>
                  <th class="num">Limit</th>
                  <th class="num">Fair share</th>
                  <th class="num">Requested</th>
                  <th class="num">CPUs</th>
                  <th class="num">Memory</th>
                  <th class="num">Running</th>
                  <th class="num">Waiting</th>
                  <th>Your role</th>
                </tr>
              </thead>
              <tbody>
                {listed.shown.map((row) => (
                  <ProjectLine key={row.project.name} row={row} scale={scale} />
                ))}
              </tbody>
            </table>
          </div>
          {listed.more}
        </div>
      )}
      <div class="legend">
        <span class="key">
          <i class="used" />
          used within quota
        </span>
        <span class="key">
          <i class="borrowed" />
          borrowed
        </span>
        <span class="key">
          <i />
          not used; a full bar is the largest use, quota or limit of a project
        </span>
      </div>
      {making.value && (
        <NewProject
          projects={rows.map((row) => row.project.name)}
          close={() => {
            making.value = false;
          }}
        />
      )}
    </Page>
  );
}

function ProjectLine({row, scale}: {row: ProjectRow; scale: number}) {
  const {project} = row;
  const status = project.status;
  return (
    <tr>
      <th scope="row">
        <span style={{paddingLeft: `${row.depth * 16}px`}}>
          <Link to={to(['projects', project.name])}>
            <bdi>{project.name}</bdi>
          </Link>
        </span>
      </th>
      <td class="wide">
        <div
          class="bar"
          role="img"
          aria-label={`${amount_text(status.allocated.gpus - row.borrowed)} within quota, ${amount_text(row.borrowed)} borrowed`}
        >
          <Share kind="used" of={(status.allocated.gpus - row.borrowed) / scale} />
          <Share kind="borrowed" of={row.borrowed / scale} />
        </div>
      </td>
      <td class="num">{amount_text(status.allocated.gpus)}</td>
      <td class="num">
        {amount_text(row.deserved)}
        {project.takes_the_rest && <span class="muted"> (rest)</span>}
      </td>
      <td class="num">{row.borrowed ? amount_text(row.borrowed) : 0}</td>
      <td class="num">{amount_text(project.quota.limit.gpus)}</td>
      <td class="num">{amount_text(status.fair_share.gpus)}</td>
      <td class="num">{amount_text(status.requested.gpus)}</td>
      <td class="num">{amount_text(status.allocated.cpus)}</td>
      <td class="num">{bytes_text(status.allocated.memory_bytes)}</td>
      <td class="num">
        <Link to={to(['jobs'], {project: project.name, phase: 'Starting,Running'})}>{status.running}</Link>
      </td>
      <td class="num">
        <Link to={to(['jobs'], {project: project.name, phase: 'Queued'})}>{status.waiting}</Link>
      </td>
      <td>{role_in(project.name, row.parents)}</td>
    </tr>
  );
}

const kTabs: [string, string][] = [
  ['quota', 'Quota'],
  ['members', 'Members'],
  ['secrets', 'Secrets'],
  ['notifications', 'Notifications'],
  ['usage', 'Usage'],
  ['audit', 'Audit log'],
];

function ProjectPage({row, tab, has_children}: {row: ProjectRow; tab: string; has_children: boolean}) {
  const {project} = row;
  const admin = role_in(project.name, row.parents) === 'admin';
  const asks = useSignal(false);
  return (
    <Page
      title={<bdi>{project.name}</bdi>}
      lead={
        <Link to="/projects" class="button quiet" aria-label="All projects">
          ←
        </Link>
      }
      actions={
        <>
          <Link class="button" to={to(['jobs'], {project: project.name})}>
            Jobs
          </Link>
          {!has_children && (
            <Link class="button" to={to(['submit'], {project: project.name})}>
              Submit a job
            </Link>
          )}
          <Link class="button" to={to(['logs'], {project: project.name})}>
            Search logs
          </Link>
          {is_server_admin() && project.name !== 'default' && (
            <button
              class="danger"
              onClick={() => {
                asks.value = true;
              }}
            >
              Delete
            </button>
          )}
        </>
      }
    >
      <div class="muted">
        {row.parents.length > 0 && (
          <>
            Subproject of{' '}
            {row.parents.map((name, i) => (
              <Fragment key={name}>
                {i > 0 && ' / '}
                <Link to={to(['projects', name])}>{name}</Link>
              </Fragment>
            ))}
            .{' '}
          </>
        )}
        Your role: {role_in(project.name, row.parents)}
      </div>
      <Tabs
        label="Parts of the project"
        tabs={kTabs}
        current={tab}
        target={(key) => to(['projects', project.name, ...(key === 'quota' ? [] : [key])])}
      />
      {tab === 'quota' && <Quota project={project} admin={is_server_admin() || (admin && project.parent !== '')} />}
      {tab === 'members' && <MemberCard project={project.name} admin={admin} />}
      {tab === 'secrets' && <SecretCard project={project.name} admin={admin} />}
      {tab === 'notifications' && <Notifications project={project.name} admin={admin} />}
      {tab === 'usage' && <Usage project={project.name} />}
      {tab === 'audit' && <AuditTable project={project.name} />}
      {asks.value && (
        <ConfirmDialog
          title={`Delete project ${project.name}?`}
          verb="Delete"
          close={() => {
            asks.value = false;
          }}
          act={async () => {
            try {
              await change('DELETE', project_path(project.name));
              anything_changed();
              navigate('/projects');
            } catch (fault) {
              asks.value = false;
              toast(error_text(fault), 'error');
            }
          }}
        >
          <p>
            The project is deleted with its secrets and its list of members. A project that has jobs or subprojects
            cannot be deleted.
          </p>
        </ConfirmDialog>
      )}
    </Page>
  );
}

function NewProject({projects, close}: {projects: string[]; close: () => void}) {
  const name = useSignal('');
  const parent = useSignal('');
  const gpus = useSignal('0');
  const send = async () => {
    await change('POST', '/v1/projects', {
      name: name.value.trim(),
      parent: parent.value,
      quota: {deserved: {gpus: gpus.value.trim() === '' ? null : Number(gpus.value)}},
    });
    anything_changed();
    close();
    navigate(to(['projects', name.value.trim()]));
  };
  return (
    <FormDialog title="New project" close={close} send={send} ready={name.value.trim() !== ''}>
      <TextField label="Name" value={name} required />
      <ChoiceField
        label="Parent"
        value={parent}
        choices={[['', 'none'], ...projects.map((each): [string, string] => [each, each])]}
      />
      <TextField label="GPU quota" value={gpus} type="number" min="0" step="any" placeholder="unlimited" />
      <p class="muted small">
        Quota: the amount that the project can always claim. An empty amount means unlimited. The CPUs and the memory of
        a new project are unlimited.
      </p>
    </FormDialog>
  );
}
