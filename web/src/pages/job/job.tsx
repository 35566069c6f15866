// The page of a job: its state, and tabs for its parts.
import {useSignal} from '@preact/signals';
import type {ComponentType} from 'preact';
import {useEffect} from 'preact/hooks';
import {Failure, get, job_path} from '../../api/client';
import type {Job} from '../../api/types';
import {amount_text, has_ended} from '../../app/format';
import {navigate, to} from '../../app/router';
import {useShortcuts} from '../../app/shortcuts';
import {ActionDialog, rerun, type Action} from '../../ui/job_actions';
import {ErrorNote, Link, Page, Phase, Tabs, Time, Waiting, error_text, toast, useBusy, useData} from '../../ui/parts';
import {row_of} from '../job_rows';
import {may_submit, useMayChange} from '../rights';
import {Files} from './files';
import {Logs} from './logs';
import {Shell} from './shell';
import {Spec} from './spec';
import {Summary} from './summary';

const kTabs: [string, string][] = [
  ['summary', 'Summary'],
  ['logs', 'Logs'],
  ['metrics', 'Metrics'],
  ['spec', 'Specification'],
  ['files', 'Files'],
  ['shell', 'Shell'],
];

export function JobPage({id, tab}: {id: string; tab: string}) {
  const is_over = useSignal(false);
  const loaded = useData((signal) => get<Job>(job_path(id), {}, signal), [id], {
    match: (change) => change.id === id || change.name === id,
    interval: 250,
    // The stream does not report the progress of programs.
    ...(is_over.value ? {} : {every: 5000}),
  });
  const action = useSignal<Action | null>(null);
  const {busy, run} = useBusy();
  const job = loaded.data;
  const project = job?.spec.project ?? 'default';
  const may_change = useMayChange(job ? [project] : [])(project);
  useEffect(() => {
    is_over.value = !!job && has_ended(job.phase);
  }, [job]);
  useShortcuts(
    kTabs.map(([key, name], i) => ({
      keys: String(i + 1),
      what: name,
      run: () => navigate(to(['jobs', id, ...(key === 'summary' ? [] : [key])])),
    })),
    [id],
  );
  if (loaded.error && !job) {
    const gone = loaded.error instanceof Failure && loaded.error.status === 404;
    return (
      <Page title={gone ? 'There is no such job' : 'The job could not be loaded'}>
        <ErrorNote error={loaded.error} again={gone ? undefined : loaded.reload} />
        {gone && (
          <p>
            It may have been deleted, or belong to a project that you may not see.{' '}
            <Link to="/jobs">Go to the list of jobs.</Link>
          </p>
        )}
      </Page>
    );
  }
  if (!job)
    return (
      <Page title="Job">
        <Waiting />
      </Page>
    );
  const row = row_of(job);
  const ended = has_ended(job.phase);
  const again = () =>
    run(async () => {
      try {
        const made = await rerun(job.id);
        toast(`Submitted ${made.spec.name}`);
        navigate(to(['jobs', made.id]));
      } catch (fault) {
        toast(error_text(fault), 'error');
      }
    });
  const {origin} = job;
  return (
    <Page
      title={<bdi>{job.spec.name}</bdi>}
      lead={
        <Link to="/jobs" aria-label="All jobs" class="button quiet">
          ←
        </Link>
      }
      actions={
        <>
          {may_change && !ended && (
            <button
              class="danger"
              onClick={() => {
                action.value = 'stop';
              }}
            >
              {job.stop_requested ? 'Kill' : 'Stop'}
            </button>
          )}
          {may_change && !ended && !job.suspended && (
            <button
              onClick={() => {
                action.value = 'suspend';
              }}
            >
              Suspend
            </button>
          )}
          {may_change && job.suspended && !ended && (
            <button
              onClick={() => {
                action.value = 'resume';
              }}
            >
              Resume
            </button>
          )}
          {may_change && (
            <button
              disabled={busy}
              onClick={() => {
                void again();
              }}
            >
              Rerun
            </button>
          )}
          {may_submit() && (
            <Link class="button" to={to(['submit'], {from: job.id})}>
              Rerun with changes
            </Link>
          )}
          {may_submit() && job.spec.scheduling?.purpose === 'build' && (
            <Link class="button" to={to(['submit'], {from: job.id, purpose: 'train'})}>
              Convert to training
            </Link>
          )}
          {may_change && ended && (
            <button
              class="danger"
              onClick={() => {
                action.value = 'delete';
              }}
            >
              Delete
            </button>
          )}
        </>
      }
    >
      <div class="row">
        <Phase job={job} />
        <span class="muted">in</span>
        <Link to={to(['jobs'], {project: row.project})}>
          <bdi>{row.project}</bdi>
        </Link>
        <span class="muted">by</span>
        <Link to={to(['jobs'], {owner: row.owner})}>
          <bdi>{row.owner}</bdi>
        </Link>
        {origin && (
          <span class="chip">
            {origin.kind === 'rerun' ? 'rerun of ' : `${origin.kind} `}
            {origin.kind === 'rerun' ? (
              <Link to={to(['jobs', origin.id ?? origin.name])}>{origin.name}</Link>
            ) : (
              <Link to={to([`${origin.kind}s`, origin.id ?? origin.name])}>{origin.name}</Link>
            )}
          </span>
        )}
        {job.progress && (
          <span class="nowrap">
            <span class="progress">
              <i style={{width: `${Math.min(100, (job.progress.done / job.progress.total) * 100)}%`}} />
            </span>{' '}
            <span class="small tnum">
              {job.progress.unit
                ? `${job.progress.unit} ${amount_text(job.progress.done)} of ${amount_text(job.progress.total)}`
                : `${Math.round((job.progress.done / job.progress.total) * 100)} %`}
              {job.progress.ends && !ended ? (
                <>
                  , ends about <Time at={job.progress.ends} />
                </>
              ) : (
                ''
              )}
            </span>
          </span>
        )}
      </div>
      <Tabs
        label="Parts of the job"
        tabs={kTabs}
        current={tab}
        target={(key) => to(['jobs', id, ...(key === 'summary' ? [] : [key])])}
      />
      {tab === 'summary' && <Summary job={job} may_change={may_change} />}
      {tab === 'logs' && <Logs job={job} />}
      {tab === 'metrics' && <LazyMetrics job={job} />}
      {tab === 'spec' && <Spec job={job} />}
      {tab === 'files' && <Files job={job} />}
      {tab === 'shell' && <Shell job={job} may_open={may_change} />}
      {action.value && (
        <ActionDialog
          action={action.value}
          jobs={[row]}
          onDone={(done, failed = []) => {
            const what = action.value;
            action.value = null;
            if (done && what === 'delete' && !failed.length) navigate('/jobs');
            else if (done) loaded.reload();
          }}
        />
      )}
    </Page>
  );
}

/** Loads the code of the charts when the tab is opened. */
function LazyMetrics({job}: {job: Job}) {
  const view = useSignal<{View: ComponentType<{job: Job}>} | null>(null);
  const fault = useSignal<unknown>(null);
  useEffect(() => {
    import('./metrics').then(
      (module) => {
        view.value = {View: module.Metrics};
      },
      (problem) => {
        fault.value = problem;
      },
    );
  }, []);
  if (fault.value) return <ErrorNote error={fault.value} again={() => location.reload()} />;
  const View = view.value?.View;
  return View ? <View job={job} /> : <Waiting />;
}
