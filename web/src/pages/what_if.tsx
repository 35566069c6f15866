// Shows when each waiting job would start if the cluster had more nodes. The server simulates that with
// its scheduler.
import {useSignal} from '@preact/signals';
import {change, get} from '../api/client';
import type {Nodes, WhatIf as Answer, WhatIfRequest} from '../api/types';
import {to} from '../app/router';
import {Card, ErrorNote, Link, Time, useData} from '../ui/parts';

const kHour = 3_600_000;

export function WhatIf() {
  const nodes = useData((signal) => get<Nodes>('/v1/nodes', {}, signal), [], {interval: 30_000, every: 60_000});
  const add = useSignal(2);
  const like = useSignal('');
  const hours = useSignal(1);
  const busy = useSignal(false);
  const answer = useSignal<Answer | null>(null);
  const error = useSignal<unknown>(null);
  const names = nodes.data?.nodes.map((node) => node.name) ?? [];
  const chosen = like.value || names[0] || '';

  const simulate = async (event: Event) => {
    event.preventDefault();
    busy.value = true;
    error.value = null;
    const request: WhatIfRequest = {add_nodes: add.value, like: chosen, run_time_ms: hours.value * kHour};
    try {
      answer.value = await change<Answer>('POST', '/v1/what-if', request);
    } catch (fault) {
      error.value = fault;
      answer.value = null;
    }
    busy.value = false;
  };

  return (
    <Card title="What if there were more nodes?" scroll>
      <form
        class="row body"
        onSubmit={(event) => {
          void simulate(event);
        }}
      >
        <label>
          Add{' '}
          <input
            type="number"
            min="0"
            max="1000"
            value={add.value}
            onInput={(event) => {
              add.value = Number(event.currentTarget.value);
            }}
          />
        </label>
        <label>
          nodes like{' '}
          <select
            value={chosen}
            onChange={(event) => {
              like.value = event.currentTarget.value;
            }}
          >
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
        <label>
          and jobs without a time limit run for{' '}
          <input
            type="number"
            min="1"
            max="8760"
            value={hours.value}
            onInput={(event) => {
              hours.value = Number(event.currentTarget.value);
            }}
          />{' '}
          hours
        </label>
        <button disabled={busy.value || !chosen}>{busy.value ? 'Simulating…' : 'Simulate'}</button>
      </form>
      <ErrorNote error={error.value} />
      {answer.value && <Starts answer={answer.value} />}
    </Card>
  );
}

function Starts({answer}: {answer: Answer}) {
  if (answer.jobs.length === 0)
    return (
      <div class="empty" role="status">
        No job waits.
      </div>
    );
  return (
    <>
      <table class="grid">
        <caption class="hidden-text">When each waiting job would start, now and with the added nodes</caption>
        <thead>
          <tr>
            <th>Job</th>
            <th>Project</th>
            <th>Start with the present nodes</th>
            <th>Start with the added nodes</th>
          </tr>
        </thead>
        <tbody>
          {answer.jobs.map((job) => (
            <tr key={job.id}>
              <th scope="row">
                <Link to={to(['jobs', job.id])}>
                  <bdi>{job.name}</bdi>
                </Link>
              </th>
              <td>
                <bdi>{job.project}</bdi>
              </td>
              <td>{job.before ? <Time at={job.before} /> : <Unknown />}</td>
              <td>{job.after ? <Time at={job.after} /> : <Unknown />}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="muted small body" role="status">
        This is a forecast: it does not include jobs that are submitted later, and programs may end before their time
        limits.{' '}
        {answer.evictions > 0 &&
          `In the simulation, running jobs are evicted ${answer.evictions === 1 ? 'once' : `${answer.evictions} times`}. `}
        {!answer.complete && 'The server stopped the simulation early.'}
      </p>
    </>
  );
}

function Unknown() {
  return <span class="muted">not within a week</span>;
}
