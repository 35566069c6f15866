// The nodes of the cluster: their GPUs, the jobs that use them, cordon and drain.
import {useSignal} from '@preact/signals';
import {Fragment} from 'preact';
import {change, get} from '../api/client';
import type {Node, Nodes as NodeList} from '../api/types';
import {amount_text, bytes_text} from '../app/format';
import {anything_changed} from '../app/live';
import {query_value, to} from '../app/router';
import {is_server_admin} from '../app/session';
import {ConfirmDialog} from '../ui/dialogs';
import {Card, ErrorNote, Link, Page, Share, Waiting, error_text, toast, useData, useFirst} from '../ui/parts';
import {DelayedInput} from './delayed_input';

export function Nodes({parts}: {parts: string[]}) {
  const loaded = useData((signal) => get<NodeList>('/v1/nodes', {}, signal), [], {interval: 1000, every: 15_000});
  const text = query_value('text').toLowerCase();
  const nodes = loaded.data?.nodes ?? [];
  const listed = useFirst(
    text ? nodes.filter((node) => `${node.name} ${node.pool} ${node.state}`.toLowerCase().includes(text)) : nodes,
  );
  if (parts[0]) {
    const node = loaded.data?.nodes.find((each) => each.name === parts[0]);
    if (loaded.data && !node)
      return (
        <Page title="There is no such node">
          <p>
            <Link to="/nodes">All nodes</Link>
          </p>
        </Page>
      );
    return node ? (
      <NodePage node={node} />
    ) : (
      <Page title="Node">{loaded.error ? <ErrorNote error={loaded.error} again={loaded.reload} /> : <Waiting />}</Page>
    );
  }
  return (
    <Page title="Nodes">
      <ErrorNote error={loaded.error} again={loaded.reload} />
      {loaded.loading && <Waiting />}
      {(nodes.length > 20 || text) && (
        <div class="filters" role="search">
          <DelayedInput name="text" label="Find a node" search />
        </div>
      )}
      {loaded.data && (
        <div class="card">
          <div class="scroll" tabIndex={0} role="region" aria-label="Nodes">
            <table class="grid">
              <caption class="hidden-text">Nodes</caption>
              <thead>
                <tr>
                  <th>Node</th>
                  <th>State</th>
                  <th>Pool</th>
                  <th>GPUs</th>
                  <th class="num">Free GPUs</th>
                  <th class="num">Free CPUs</th>
                  <th class="num">Free memory</th>
                  <th class="num">Jobs</th>
                  <th>Actions</th>
                </tr>
              </thead>
              <tbody>
                {listed.shown.map((node) => {
                  const used = node.devices.reduce((sum, device) => sum + 1 - Math.max(0, device.free), 0);
                  return (
                    <tr key={node.name}>
                      <th scope="row">
                        <Link to={to(['nodes', node.name])}>{node.name}</Link>
                      </th>
                      <td>
                        <State node={node} />
                      </td>
                      <td>{node.pool}</td>
                      <td class="wide">
                        {node.devices.length ? (
                          <div class="row nowrap">
                            <div
                              class="bar grow"
                              role="img"
                              aria-label={`${amount_text(used)} of ${node.devices.length} GPUs used`}
                            >
                              <Share kind="used" of={used / node.devices.length} />
                            </div>
                            <span class="muted small">
                              {node.devices.length} × {node.devices[0]!.model}
                            </span>
                          </div>
                        ) : (
                          <span class="muted">none</span>
                        )}
                      </td>
                      <td class="num">{amount_text(node.devices.length - used)}</td>
                      <td class="num">
                        {amount_text(node.cpus_free)} / {amount_text(node.cpus)}
                      </td>
                      <td class="num">{bytes_text(node.memory_bytes_free)}</td>
                      <td class="num">{node.jobs.length}</td>
                      <td>
                        <Actions node={node} />
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          </div>
          {listed.more}
        </div>
      )}
    </Page>
  );
}

function State({node}: {node: Node}) {
  const kind = {ready: 'succeeded', cordoned: 'queued', draining: 'queued', gone: 'failed'}[node.state] ?? '';
  return <span class={`badge ${kind}`}>{node.state}</span>;
}

function Actions({node}: {node: Node}) {
  const ask = useSignal<'drain' | null>(null);
  if (!is_server_admin() || node.state === 'gone')
    return <span class="muted small">{is_server_admin() ? '' : 'server admins only'}</span>;
  const act = async (what: 'cordon' | 'uncordon' | 'drain') => {
    try {
      await change('POST', `/v1/nodes/${encodeURIComponent(node.name)}/${what}`);
      toast(`${{cordon: 'Cordoned', uncordon: 'Uncordoned', drain: 'Draining'}[what]} ${node.name}`);
      anything_changed();
    } catch (fault) {
      toast(error_text(fault), 'error');
    }
    ask.value = null;
  };
  return (
    <span class="row nowrap">
      {node.state === 'ready' ? (
        <button
          onClick={() => {
            void act('cordon');
          }}
          title="Keep new tasks off the node; running tasks continue"
        >
          Cordon
        </button>
      ) : (
        <button
          onClick={() => {
            void act('uncordon');
          }}
        >
          Uncordon
        </button>
      )}
      {(node.state === 'ready' || node.jobs.length > 0) && (
        <button
          class="danger"
          onClick={() => {
            ask.value = 'drain';
          }}
        >
          Drain
        </button>
      )}
      {ask.value && (
        <ConfirmDialog
          title={`Drain ${node.name}?`}
          verb="Drain"
          close={() => {
            ask.value = null;
          }}
          act={() => act('drain')}
        >
          <p>
            No new tasks start on the node. Its running tasks are stopped, and their jobs wait to start again on other
            nodes. Elastic jobs continue with fewer workers.
          </p>
          <p>
            {node.jobs.length ? (
              <>
                Jobs on the node:{' '}
                {node.jobs.map((name, i) => (
                  <Fragment key={name}>
                    {i > 0 && ', '}
                    <bdi>{name}</bdi>
                  </Fragment>
                ))}
              </>
            ) : (
              'No job that you may see runs on the node.'
            )}
          </p>
        </ConfirmDialog>
      )}
    </span>
  );
}

function NodePage({node}: {node: Node}) {
  return (
    <Page
      title={node.name}
      lead={
        <Link to="/nodes" class="button quiet" aria-label="All nodes">
          ←
        </Link>
      }
      actions={<Actions node={node} />}
    >
      <div class="cards">
        <Card title="Details">
          <dl class="facts">
            <dt>State</dt>
            <dd>
              <State node={node} />
            </dd>
            <dt>Pool</dt>
            <dd>{node.pool}</dd>
            <dt>CPUs</dt>
            <dd>
              {amount_text(node.cpus_free)} of {amount_text(node.cpus)} free
            </dd>
            <dt>Memory</dt>
            <dd>
              {bytes_text(node.memory_bytes_free)} of {bytes_text(node.memory_bytes)} free
            </dd>
            {Object.entries(node.topology).map(([level, domain]) => (
              <Fragment key={level}>
                <dt>{level}</dt>
                <dd>{domain}</dd>
              </Fragment>
            ))}
            {Object.entries(node.labels).map(([name, value]) => (
              <Fragment key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </Fragment>
            ))}
          </dl>
        </Card>
        <Card title="GPUs" scroll>
          {node.devices.length === 0 ? (
            <div class="empty">This node has no GPU.</div>
          ) : (
            <table class="grid">
              <caption class="hidden-text">GPUs of {node.name}</caption>
              <thead>
                <tr>
                  <th class="num">Index</th>
                  <th>Model</th>
                  <th class="num">Memory</th>
                  <th>Used</th>
                  <th>Used by</th>
                </tr>
              </thead>
              <tbody>
                {node.devices.map((device) => {
                  const used = 1 - Math.max(0, device.free);
                  return (
                    <tr key={device.index}>
                      <td class="num">{device.index}</td>
                      <td>{device.model}</td>
                      <td class="num">{device.memory_bytes ? bytes_text(device.memory_bytes) : 'unknown'}</td>
                      <td class="wide">
                        <div class="bar" role="img" aria-label={`${amount_text(used)} used`}>
                          <Share kind="used" of={used} />
                        </div>
                      </td>
                      <td class="break">
                        {device.jobs.length ? (
                          device.jobs.map((name) => <JobLink key={name} name={name} />)
                        ) : used ? (
                          <span class="muted">a job that you may not see</span>
                        ) : (
                          <span class="muted">free</span>
                        )}
                      </td>
                    </tr>
                  );
                })}
              </tbody>
            </table>
          )}
        </Card>
        <Card title="Jobs">
          {node.jobs.length ? (
            <ul class="links">
              {node.jobs.map((name) => (
                <li key={name}>
                  <JobLink name={name} />
                </li>
              ))}
            </ul>
          ) : (
            <div class="empty">No job that you may see runs on this node.</div>
          )}
        </Card>
      </div>
    </Page>
  );
}

/** A node lists names of jobs, and projects may share a name. So the link searches the list of jobs. */
function JobLink({name}: {name: string}) {
  return (
    <Link to={to(['jobs'], {text: name, phase: 'Starting,Running'})}>
      <bdi>{name}</bdi>
    </Link>
  );
}
