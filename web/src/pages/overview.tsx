// The state of the cluster at a glance: GPUs by node and project, the jobs that wait and why, and the jobs
// that failed or were evicted in the last day. Each number links to the list behind it.
import {get, is_unreachable, send} from '../api/client';
import type {JobEvent, Nodes, Projects} from '../api/types';
import {amount_text, millis, text_of} from '../app/format';
import {clock_offset, server_now} from '../app/live';
import {to} from '../app/router';
import {keep_open} from '../app/stream';
import {Age, Card, ErrorNote, Link, Page, Phase, Share, Time, Waiting, now, useData, useFirst} from '../ui/parts';
import {visible_text} from '../ui/ansi';
import {fetch_rows, page_of, type JobRow} from './job_rows';
import {GpuMap} from '../ui/gpu_map';
import {project_rows} from './project_tree';
import {useComputed, useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';

interface State {
  nodes: Nodes;
  projects: Projects;
  waiting: JobRow[];
  failed: JobRow[];
  running: number;
  queued: number;
  failures: number;
  succeeded: number;
}

async function load(signal: AbortSignal): Promise<State> {
  const day_ago = new Date(Math.floor(server_now() / 60000 - 1440) * 60000).toISOString();
  const [nodes, projects, waiting, ended] = await Promise.all([
    get<Nodes>('/v1/nodes', {}, signal),
    get<Projects>('/v1/projects', {}, signal),
    fetch_rows({phase: 'Queued', top: true, sort: 'submitted', limit: 8, count: true}, signal),
    fetch_rows({phase: 'Failed', top: true, ended_after: day_ago, sort: '-ended', limit: 8, count: true}, signal),
  ]);
  return {
    nodes,
    projects,
    waiting: waiting.rows,
    failed: ended.rows,
    running: (waiting.counts?.running ?? 0) + (waiting.counts?.starting ?? 0),
    queued: waiting.counts?.queued ?? waiting.rows.length,
    failures: ended.counts?.failed ?? ended.rows.length,
    succeeded: ended.counts?.succeeded ?? 0,
  };
}

export function Overview(_: {parts: string[]}) {
  // The stream does not report changed nodes and quotas.
  const loaded = useData(load, [], {interval: 1000, every: 60_000});
  const state = loaded.data;
  const rows = project_rows(state?.projects.projects ?? []);
  const listed = useFirst(rows, 20);
  if (!state)
    return (
      <Page title="Overview">
        {loaded.error ? <ErrorNote error={loaded.error} again={loaded.reload} /> : <Waiting />}
      </Page>
    );
  const devices = state.nodes.nodes.flatMap((node) => (node.state === 'gone' ? [] : node.devices));
  const used = devices.reduce((sum, device) => sum + 1 - Math.max(0, device.free), 0);
  const leaves = rows.filter((row) => !row.has_children);
  const borrowed = leaves.reduce((sum, row) => sum + row.borrowed, 0);
  const off = state.nodes.nodes
    .filter((node) => node.state !== 'ready')
    .reduce((sum, node) => sum + node.devices.reduce((free, device) => free + Math.max(0, device.free), 0), 0);
  const free = Math.max(0, devices.length - used - off);
  const total = Math.max(1, devices.length);
  return (
    <Page title="Overview">
      <ErrorNote error={loaded.error} />
      <div class="tiles">
        <Tile to="/nodes" value={`${amount_text(used)} / ${devices.length}`} label="GPUs used" />
        <Tile to="/nodes" value={amount_text(free)} label="GPUs free" />
        <Tile to="/projects" value={amount_text(borrowed)} label="GPUs borrowed" />
        <Tile to="/jobs?phase=Starting%2CRunning" value={String(state.running)} label="jobs running" />
        <Tile
          to="/jobs?phase=Queued&sort=submitted"
          value={String(state.queued)}
          label="jobs waiting"
          warn={state.queued > 0}
        />
        <Tile
          to="/jobs?phase=Failed&ended=24h&sort=-ended"
          value={String(state.failures)}
          label="failed in 24 h"
          bad={state.failures > 0}
        />
        <Tile
          to="/jobs?phase=Succeeded&ended=24h&sort=-ended"
          value={String(state.succeeded)}
          label="succeeded in 24 h"
        />
      </div>
      <Card title="GPUs by node" actions={<Link to="/nodes">All nodes</Link>}>
        {devices.length === 0 ? (
          <div class="empty">
            No node has a GPU. {state.nodes.nodes.length} {state.nodes.nodes.length === 1 ? 'node runs' : 'nodes run'}{' '}
            jobs on CPUs.
          </div>
        ) : (
          <div class="stack tight">
            <div
              class="bar big"
              role="img"
              aria-label={`${amount_text(used - borrowed)} GPUs used within quota, ${amount_text(borrowed)} borrowed, ${amount_text(free)} free, ${amount_text(off)} unavailable`}
            >
              <Share kind="used" of={(used - borrowed) / total} />
              <Share kind="borrowed" of={borrowed / total} />
              <Share kind="free" of={free / total} />
              <Share kind="off" of={off / total} />
            </div>
            <GpuMap nodes={state.nodes.nodes} />
            <div class="legend">
              <span class="key">
                <i class="used" />
                used
              </span>
              <span class="key">
                <i class="borrowed" />
                borrowed beyond quota (in the bars)
              </span>
              <span class="key">
                <i />
                free
              </span>
              <span class="key">
                <i class="off" />
                cordoned or draining
              </span>
            </div>
          </div>
        )}
      </Card>
      <div class="cards">
        <Card title="Projects" scroll actions={<Link to="/projects">Quota</Link>}>
          <table class="grid">
            <caption class="hidden-text">GPUs by project</caption>
            <thead>
              <tr>
                <th>Project</th>
                <th>GPUs</th>
                <th class="num">Used</th>
                <th class="num">Quota</th>
                <th class="num">Waiting</th>
              </tr>
            </thead>
            <tbody>
              {listed.shown.map((row) => {
                const allocated = row.project.status.allocated.gpus;
                const scale = Math.max(1, devices.length);
                return (
                  <tr key={row.project.name}>
                    <th scope="row">
                      <span style={{paddingLeft: `${row.depth * 14}px`}}>
                        <Link to={to(['projects', row.project.name])}>
                          <bdi>{row.project.name}</bdi>
                        </Link>
                      </span>
                    </th>
                    <td class="wide">
                      <div
                        class="bar"
                        role="img"
                        aria-label={`${amount_text(allocated - row.borrowed)} within quota, ${amount_text(row.borrowed)} borrowed`}
                      >
                        <Share kind="used" of={(allocated - row.borrowed) / scale} />
                        <Share kind="borrowed" of={row.borrowed / scale} />
                      </div>
                    </td>
                    <td class="num">
                      <Link to={to(['jobs'], {project: row.project.name, phase: 'Starting,Running'})}>
                        {amount_text(allocated)}
                      </Link>
                    </td>
                    <td class="num">{amount_text(row.deserved)}</td>
                    <td class="num">
                      {row.project.status.waiting ? (
                        <Link to={to(['jobs'], {project: row.project.name, phase: 'Queued'})}>
                          {row.project.status.waiting}
                        </Link>
                      ) : (
                        0
                      )}
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
          {listed.more}
        </Card>
        <Card title="Waiting" scroll actions={<Link to="/scheduler">The queue</Link>}>
          {state.waiting.length === 0 ? (
            <div class="empty">No job waits.</div>
          ) : (
            <JobTable rows={state.waiting} time="submitted" caption="Waiting jobs" />
          )}
        </Card>
        <Card
          title="Failed in the last 24 hours"
          scroll
          actions={<Link to="/jobs?phase=Failed&ended=24h&sort=-ended">All</Link>}
        >
          {state.failed.length === 0 ? (
            <div class="empty">No job failed.</div>
          ) : (
            <JobTable rows={state.failed} time="ended" caption="Failed jobs" />
          )}
        </Card>
        <Evictions />
      </div>
    </Page>
  );
}

function Tile({
  to: target,
  value,
  label,
  warn,
  bad,
}: {
  to: string;
  value: string;
  label: string;
  warn?: boolean;
  bad?: boolean;
}) {
  return (
    <Link to={target} class={`tile ${bad ? 'bad' : warn ? 'warn' : ''}`}>
      <strong class="tnum">{value}</strong>
      <span>{label}</span>
    </Link>
  );
}

function JobTable({rows, time, caption}: {rows: JobRow[]; time: 'submitted' | 'ended'; caption: string}) {
  return (
    <table class="grid fixed">
      <caption class="hidden-text">{caption}</caption>
      <thead>
        <tr>
          <th class="c-name">Job</th>
          <th>Reason</th>
          <th class="num c-age">{time === 'ended' ? 'Ended' : 'Age'}</th>
        </tr>
      </thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.id}>
            <th scope="row" class="cut">
              <Link to={page_of(row)}>
                <bdi>{row.name}</bdi>
              </Link>
            </th>
            <td title={visible_text(text_of(row.reason))}>
              <div class="two-lines">
                {time === 'submitted' && row.suspended && (
                  <>
                    <Phase job={row} />{' '}
                  </>
                )}
                <bdi>{visible_text(text_of(row.reason))}</bdi>
              </div>
            </td>
            <td class="num">{time === 'ended' ? <Time at={row.ended} /> : <Age at={row.submitted} />}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

const kDay = 86400e3;
const kMostEvictions = 30;

/** Identifies an event: a plan of the scheduler may evict several jobs at the same time. */
const key_of = ({time, job_id, text}: JobEvent): string => `${time} ${job_id} ${text}`;

/** The evictions of the last day, and new ones as they happen. */
function Evictions() {
  const list = useSignal<JobEvent[]>([]);
  const answered = useSignal(false);
  const fault = useSignal<unknown>(null);
  useEffect(() => {
    const stop = new AbortController();
    void keep_open(
      {
        open: (signal) => {
          const since = new Date(server_now() - kDay).toISOString();
          return send('GET', '/v1/watch/events', {query: {since, kind: 'evicted'}, signal});
        },
        opened: () => {
          fault.value = null;
        },
        take: ({event, data}) => {
          // The server examines all jobs before the first event. "ready" follows the events of the past.
          answered.value = true;
          if (event !== 'event') return;
          const found = JSON.parse(data) as JobEvent;
          list.value = [found, ...list.value.filter((each) => key_of(each) !== key_of(found))].slice(0, kMostEvictions);
        },
        // While the server restarts, a banner reports it, and the former list stays visible.
        interrupted: (problem) => {
          if (problem && !(answered.value && is_unreachable(problem))) fault.value = problem;
        },
      },
      stop.signal,
    );
    return () => stop.abort();
  }, []);
  const minute = useComputed(() => Math.floor((now.value + clock_offset.value) / 60_000));
  const begin = minute.value * 60_000 - kDay;
  const recent = list.value.filter((event) => millis(event.time) >= begin);
  return (
    <Card title="Evictions in the last 24 hours">
      <ErrorNote error={fault.value} />
      {recent.length > 0 ? (
        <ol class="events">
          {recent.map((event) => (
            <li key={key_of(event)}>
              <Time at={event.time} />
              <span>
                <Link to={to(['jobs', event.job_id])}>
                  <bdi>{event.job}</bdi>
                </Link>{' '}
                <bdi>{visible_text(event.text)}</bdi>
              </span>
            </li>
          ))}
        </ol>
      ) : (
        !fault.value && (answered.value ? <div class="empty">No job was evicted.</div> : <Waiting />)
      )}
    </Card>
  );
}
