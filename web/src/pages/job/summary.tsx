// The first tab of a job: the reason for its phase, its timeline, tasks, details and events.
import {useSignal} from '@preact/signals';
import {change, get, job_path} from '../../api/client';
import type {Explanation, Job} from '../../api/types';
import {amount_text, has_ended, job_gpus, run_span, span_text, text_of, millis} from '../../app/format';
import {to} from '../../app/router';
import {shell_word} from '../../app/spec_text';
import {visible_text} from '../../ui/ansi';
import {AnsiText, is_dark} from '../../ui/ansi_text';
import {Icon} from '../../ui/icons';
import {Card, ErrorNote, Link, Scroll, Time, now, useData} from '../../ui/parts';
import {Timeline} from './timeline';

export function Summary({job, may_change}: {job: Job; may_change: boolean}) {
  const ended = has_ended(job.phase);
  const duration = run_span(job, now.value);
  return (
    <div class="cards">
      <div class="stack">
        <Reason job={job} />
        <Card title="Timeline">
          <Timeline job={job} />
        </Card>
        <Card title="Tasks" scroll>
          <Tasks job={job} may_change={may_change} />
        </Card>
      </div>
      <div class="stack">
        <Card title="Details">
          <dl class="facts">
            <dt>Submitted</dt>
            <dd>
              <Time at={job.submitted} full />
            </dd>
            <dt>Started</dt>
            <dd>
              <Time at={job.started} full />
            </dd>
            <dt>{ended ? 'Ended' : 'Run time'}</dt>
            <dd>
              {ended ? (
                <>
                  <Time at={job.ended} full />
                  {!Number.isNaN(duration) && `, ran ${span_text(duration)}`}
                </>
              ) : Number.isNaN(duration) ? (
                <span class="muted">not started yet</span>
              ) : (
                span_text(duration)
              )}
            </dd>
            <dt>Attempts</dt>
            <dd>
              {job.attempt}
              {job.restarts > 0 && `, ${job.restarts} abandoned`}
              {job.retries_used > 0 && `, ${job.retries_used} ${job.retries_used === 1 ? 'retry' : 'retries'} used`}
            </dd>
            <dt>Kind</dt>
            <dd>
              {job.spec.kind ?? 'single'}
              {(job.spec.workers ?? 0) > 0 && `, ${job.spec.workers} ${job.spec.workers === 1 ? 'worker' : 'workers'}`}
            </dd>
            <dt>GPUs</dt>
            <dd>{amount_text(job_gpus(job.spec))}</dd>
            {job.spec.image && (
              <>
                <dt>Image</dt>
                <dd class="mono">{job.spec.image}</dd>
              </>
            )}
            <dt>Command</dt>
            <dd>
              <div class="mono tall" tabIndex={0} role="group" aria-label="Command">
                <bdi>
                  {visible_text(
                    [...job.spec.command, ...(job.spec.arguments ?? [])]
                      .map((word) => shell_word(text_of(word)))
                      .join(' '),
                  )}
                </bdi>
              </div>
            </dd>
            {job.launch && (
              <>
                <dt>Launch</dt>
                <dd>
                  {String((job.launch as {by?: string}).by ?? '')}
                  {(job.launch as {mpi?: string}).mpi ? `, ${(job.launch as {mpi?: string}).mpi}` : ''}
                </dd>
              </>
            )}
            {job.exit_code !== undefined && (
              <>
                <dt>Exit code</dt>
                <dd>{job.exit_code}</dd>
              </>
            )}
            {Object.keys(job.spec.labels ?? {}).length > 0 && (
              <>
                <dt>Labels</dt>
                <dd class="row">
                  {Object.entries(job.spec.labels ?? {}).map(([name, value]) => (
                    <Link class="chip" key={name} to={to(['jobs'], {label: value ? `${name}=${value}` : name})}>
                      <bdi>{visible_text(value ? `${name}=${value}` : name)}</bdi>
                    </Link>
                  ))}
                </dd>
              </>
            )}
            {job.avoided_nodes.length > 0 && (
              <>
                <dt>Avoided nodes</dt>
                <dd>{job.avoided_nodes.join(', ')}</dd>
              </>
            )}
            {job.kept_until && (
              <>
                <dt>Kept until</dt>
                <dd>
                  <Time at={job.kept_until} full />
                </dd>
              </>
            )}
            <dt>ID</dt>
            <dd class="mono">{job.id}</dd>
          </dl>
          {may_change && <LabelEditor job={job} />}
        </Card>
        <Card title="Events">
          <ol class="events">
            {[...job.events]
              .reverse()
              .slice(0, 300)
              .map((event, i) => (
                <li key={`${event.time}${i}`}>
                  <Time at={event.time} />
                  <bdi>{visible_text(event.text)}</bdi>
                </li>
              ))}
          </ol>
        </Card>
      </div>
    </div>
  );
}

function LabelEditor({job}: {job: Job}) {
  const text = useSignal('');
  const fault = useSignal<unknown>(null);
  const submit = async (event: Event) => {
    event.preventDefault();
    const [name, ...rest] = text.value.trim().split('=');
    const remove = name!.startsWith('-');
    try {
      await change('PATCH', job_path(job.id), {
        labels: {[remove ? name!.slice(1) : name!]: remove ? null : rest.join('=')},
      });
      text.value = '';
      fault.value = null;
    } catch (problem) {
      fault.value = problem;
    }
  };
  return (
    <form
      class="row small"
      onSubmit={(event) => {
        void submit(event);
      }}
    >
      <label>
        Label{' '}
        <input
          size={22}
          placeholder="name=value or -name"
          title="-name removes the label"
          value={text.value}
          onInput={(e) => {
            text.value = e.currentTarget.value;
          }}
        />
      </label>
      <button disabled={!text.value.trim()}>Set</button>
      <ErrorNote error={fault.value} />
    </form>
  );
}

function Reason({job}: {job: Job}) {
  const waits = job.phase === 'Queued';
  const why = useData(
    (signal) => (waits ? get<Explanation>(job_path(job.id, 'explain'), {}, signal) : Promise.resolve(null)),
    [job.id, waits],
    {match: () => true, interval: 1000},
  );
  const dark = is_dark();
  const failure = job.failure;
  return (
    <Card title={waits ? 'Why it waits' : failure ? 'Why it failed' : 'State'}>
      <div class="stack tight">
        {failure ? (
          <>
            <div class="note error">
              <bdi>{visible_text(text_of(failure.cause))}</bdi>
            </div>
            {text_of(failure.advice) && (
              <p>
                <strong>What to do:</strong> <bdi>{visible_text(text_of(failure.advice))}</bdi>
              </p>
            )}
            {failure.last_lines.length > 0 && (
              <div>
                <h3>
                  Last lines of {failure.task}
                  {failure.rank !== undefined ? `, rank ${failure.rank}` : ''}
                </h3>
                <Scroll label="Last lines">
                  <pre class="mono last">
                    {failure.last_lines.map((line, i) => (
                      <div key={i}>
                        <AnsiText text={text_of(line)} dark={dark} />
                      </div>
                    ))}
                  </pre>
                </Scroll>
                <Link to={to(['jobs', job.id, 'logs'], {task: failure.task})}>Open the log of {failure.task}</Link>
              </div>
            )}
          </>
        ) : (
          <p class="break">
            <bdi>{visible_text(why.data?.reason || job.reason)}</bdi>
          </p>
        )}
        {job.eviction && (
          <div class="note warn">
            <bdi>{visible_text(text_of(job.eviction))}</bdi>
          </div>
        )}
        {(why.data?.details ?? job.reason_details).length > 0 && (
          <ul class="ticked">
            {(why.data?.details ?? job.reason_details).map((detail, i) => (
              <li key={i} class="break">
                <bdi>{visible_text(text_of(detail))}</bdi>
              </li>
            ))}
          </ul>
        )}
        {waits && (
          <dl class="facts">
            {why.data && why.data.position > 0 && (
              <>
                <dt>Place in the queue</dt>
                <dd>
                  <Link to="/scheduler">{why.data.position}</Link>
                </dd>
              </>
            )}
            <dt>May start</dt>
            <dd>
              {why.data?.may_start || job.may_start ? (
                <>
                  <Time at={why.data?.may_start ?? job.may_start} full />{' '}
                  <span class="muted">
                    (in {span_text(millis(why.data?.may_start ?? job.may_start) - now.value)}, if jobs end at their time
                    limits)
                  </span>
                </>
              ) : (
                <span class="muted">no forecast</span>
              )}
            </dd>
          </dl>
        )}
      </div>
    </Card>
  );
}

function Tasks({job, may_change}: {job: Job; may_change: boolean}) {
  if (!job.tasks.length) return <div class="empty">The tasks appear when the job starts.</div>;
  return (
    <table class="grid">
      <caption class="hidden-text">Tasks</caption>
      <thead>
        <tr>
          <th>Task</th>
          <th>State</th>
          <th>Node</th>
          <th>GPUs</th>
          <th class="num">Ran</th>
          <th>End</th>
          <th>
            <span class="hidden-text">Links</span>
          </th>
        </tr>
      </thead>
      <tbody>
        {job.tasks.map((task) => (
          <tr key={task.name}>
            <th scope="row">{task.name}</th>
            <td>{task.left ? 'Left' : task.phase}</td>
            <td>{task.node && <Link to={to(['nodes', task.node])}>{task.node}</Link>}</td>
            <td class="tnum">
              {task.devices.length
                ? task.devices.join(', ') + (task.gpu_share < 1 ? ` (${amount_text(task.gpu_share)})` : '')
                : ''}
            </td>
            <td class="num">
              {task.started ? span_text((task.ended ? millis(task.ended) : now.value) - millis(task.started)) : ''}
            </td>
            <td class="break">{task.exit?.explanation ?? ''}</td>
            <td class="nowrap">
              <Link to={to(['jobs', job.id, 'logs'], {task: task.name})} aria-label={`Log of ${task.name}`}>
                Log
              </Link>
              {may_change && task.phase === 'Running' && (
                <>
                  {' '}
                  <Link to={to(['jobs', job.id, 'shell'], {task: task.name})} aria-label={`Shell in ${task.name}`}>
                    <Icon name="shell" />
                  </Link>
                </>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
