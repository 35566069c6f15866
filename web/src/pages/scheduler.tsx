// The waiting jobs in the order in which the scheduler serves them, and why each job waits.
import {Fragment} from 'preact';
import {get} from '../api/client';
import type {Explanation, Jobs, Job} from '../api/types';
import {amount_text, job_gpus, millis, span_text, text_of} from '../app/format';
import {to} from '../app/router';
import {me} from '../app/session';
import {visible_text} from '../ui/ansi';
import {Age, Card, ErrorNote, Link, Page, Time, Waiting, now, useData} from '../ui/parts';
import {useSignal} from '@preact/signals';
import {WhatIf} from './what_if';

export function Scheduler(_: {parts: string[]}) {
  const loaded = useData((signal) => get<Jobs>('/v1/queue', {}, signal), [], {interval: 1000, every: 60_000});
  const open = useSignal('');
  const jobs = loaded.data?.jobs ?? [];
  const more = loaded.data?.next !== undefined;
  const by_reason = new Map<string, number>();
  for (const job of jobs) {
    const kind = String(job.reason_facts?.['kind'] ?? 'other').replaceAll('_', ' ');
    by_reason.set(kind, (by_reason.get(kind) ?? 0) + 1);
  }
  return (
    <Page title="Scheduler">
      <ErrorNote error={loaded.error} again={loaded.reload} />
      {loaded.loading && <Waiting />}
      {loaded.data && (
        <div class="row">
          {[...by_reason]
            .sort((a, b) => b[1] - a[1])
            .map(([kind, count]) => (
              <span key={kind} class="chip">
                {kind}: <strong class="tnum">{count}</strong>
              </span>
            ))}
          {more && <span class="muted small">of the first {jobs.length} jobs</span>}
        </div>
      )}
      {loaded.data && (
        <Card title={`Queue: ${more ? 'more than ' : ''}${jobs.length} ${jobs.length === 1 ? 'job' : 'jobs'}`} scroll>
          {jobs.length === 0 ? (
            <div class="empty">No job waits.</div>
          ) : (
            <table class="grid">
              <caption class="hidden-text">The waiting jobs, in the order in which the scheduler serves them</caption>
              <thead>
                <tr>
                  <th class="num">#</th>
                  <th>Job</th>
                  <th>Project</th>
                  <th class="num">Priority</th>
                  <th class="num">GPUs</th>
                  <th class="num">Age</th>
                  <th>May start</th>
                  <th>Why it waits</th>
                </tr>
              </thead>
              <tbody>
                {jobs.slice(0, 500).map((job, i) => (
                  <Fragment key={job.id}>
                    <tr>
                      <td class="num">{i + 1}</td>
                      <th scope="row">
                        <Link to={to(['jobs', job.id])}>
                          <bdi>{job.spec.name}</bdi>
                        </Link>
                      </th>
                      <td>
                        <bdi>{job.spec.project}</bdi>
                      </td>
                      <td class="num">
                        {job.spec.scheduling?.priority ??
                          {train: 50, build: 100, inference: 125}[job.spec.scheduling?.purpose ?? 'train']}
                      </td>
                      <td class="num">{amount_text(job_gpus(job.spec))}</td>
                      <td class="num">
                        <Age at={job.submitted} />
                      </td>
                      <td>
                        {job.may_start ? (
                          <>
                            <Time at={job.may_start} />{' '}
                            <span class="muted small">in {span_text(millis(job.may_start) - now.value)}</span>
                          </>
                        ) : (
                          <span class="muted">no forecast</span>
                        )}
                      </td>
                      <td class="reason">
                        <button
                          class="link"
                          aria-expanded={open.value === job.id}
                          onClick={() => {
                            open.value = open.value === job.id ? '' : job.id;
                          }}
                        >
                          {open.value === job.id ? 'Hide details' : 'Details'}
                        </button>{' '}
                        <bdi>{visible_text(job.reason)}</bdi>
                      </td>
                    </tr>
                    {open.value === job.id && (
                      <tr>
                        <td colSpan={8}>
                          <Why job={job} />
                        </td>
                      </tr>
                    )}
                  </Fragment>
                ))}
              </tbody>
            </table>
          )}
          {(more || jobs.length > 500) && (
            <div class="empty">
              {more ? 'There are more:' : `${jobs.length - 500} more:`}{' '}
              <Link to="/jobs?phase=Queued&sort=submitted">all waiting jobs</Link>
            </div>
          )}
        </Card>
      )}
      {me.value && me.value.server_role !== 'none' && <WhatIf />}
    </Page>
  );
}

function Why({job}: {job: Job}) {
  const loaded = useData(
    (signal) => get<Explanation>(`/v1/jobs/${encodeURIComponent(job.id)}/explain`, {}, signal),
    [job.id],
    {interval: 2000},
  );
  if (!loaded.data) return <ErrorNote error={loaded.error} />;
  const details = loaded.data.details.map(text_of);
  return (
    <ul class="ticked">
      {details.length ? (
        details.map((text, i) => (
          <li key={i} class="break">
            <bdi>{visible_text(text)}</bdi>
          </li>
        ))
      ) : (
        <li class="muted">There are no further details.</li>
      )}
    </ul>
  );
}
