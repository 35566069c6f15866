// Searches the logs of many jobs for a pattern. The server reads the logs, newest jobs first, and sends
// hits as it finds them; each hit links to its line.
import {useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {Failure, get, send} from '../api/client';
import {read_events} from '../api/events';
import type {LogHits, LogSearchProgress, Projects} from '../api/types';
import {count_text} from '../app/format';
import {query_value, set_query, to} from '../app/router';
import {AnsiText, is_dark} from '../ui/ansi_text';
import {useMark} from '../ui/mark';
import {Card, ErrorNote, Link, Page, Phase, Time, useData} from '../ui/parts';
import {DelayedInput} from './delayed_input';
import type {JobRow} from './job_rows';
import {line_of} from './job/log_source';

interface Found {
  row: JobRow;
  records: LogHits['records'];
  more: boolean;
}
interface State {
  progress: LogSearchProgress | null;
  end: boolean;
  fault: unknown;
}

const kHitsOfJob = 20;
/** A longer list of jobs is of no use: the filters can narrow the search. */
const kMostShown = 200;

export function LogSearch(_: {parts: string[]}) {
  const pattern = query_value('grep');
  const {found, state, again} = useSearch(pattern, query_value('project'), query_value('phase'));
  return (
    <Page title="Search logs">
      <SearchFilters />
      <ErrorNote error={state.fault} again={again} />
      <div class="muted" role="status">
        {pattern
          ? progress_text(state, found.length)
          : 'The server searches the logs of jobs, newest jobs first. The pattern is a regular expression.'}
      </div>
      {found.map((each) => (
        <JobHits key={each.row.id} found={each} pattern={pattern} />
      ))}
    </Page>
  );
}

function SearchFilters() {
  const projects = useData((signal) => get<Projects>('/v1/projects', {}, signal), [], {
    match: () => false,
    every: 60000,
  });
  const project = query_value('project');
  const phase = query_value('phase');
  return (
    <div class="filters" role="search">
      <DelayedInput name="grep" label="Text or pattern" search />
      <select aria-label="Project" value={project} onChange={(e) => set_query({project: e.currentTarget.value})}>
        <option value="">All projects</option>
        {(projects.data?.projects ?? []).map((each) => (
          <option key={each.name} value={each.name} selected={each.name === project}>
            {each.name}
          </option>
        ))}
      </select>
      <select aria-label="Phase" value={phase} onChange={(e) => set_query({phase: e.currentTarget.value})}>
        {[
          ['', 'All jobs'],
          ['Failed', 'Failed jobs'],
          ['Starting,Running', 'Running jobs'],
        ].map(([value, text]) => (
          <option key={value} value={value} selected={value === phase}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

function useSearch(pattern: string, project: string, phase: string) {
  const found = useSignal<Found[]>([]);
  const state = useSignal<State>({progress: null, end: true, fault: null});
  const tries = useSignal(0);
  useEffect(() => {
    found.value = [];
    state.value = {progress: null, end: !pattern, fault: null};
    if (!pattern) return;
    const abort = new AbortController();
    const run = async () => {
      const answer = await send('GET', '/v1/log-search', {
        query: {grep: pattern, project, phase, hits: kHitsOfJob},
        signal: abort.signal,
        retries: 'user',
      });
      for await (const event of read_events(answer)) {
        if (event.event === 'hits') found.value = [...found.value, JSON.parse(event.data) as Found];
        else if (event.event === 'progress' || event.event === 'end')
          state.value = {...state.value, progress: JSON.parse(event.data) as LogSearchProgress};
        if (event.event === 'end' || found.value.length >= kMostShown) {
          state.value = {...state.value, end: true};
          return;
        }
      }
      // A server that restarts ends the stream early.
      throw new Failure(0, 'the search was interrupted: the connection to the server was lost', 'search again');
    };
    run().catch((fault) => {
      if (!abort.signal.aborted) state.value = {...state.value, end: true, fault};
    });
    return () => abort.abort();
  }, [project, pattern, phase, tries.value]);
  const again = () => {
    tries.value++;
  };
  return {found: found.value, state: state.value, again};
}

function progress_text({progress, end, fault}: State, jobs: number): string {
  if (!progress) return end ? '' : `Searching…${jobs ? ` ${count_text(jobs)} with hits` : ''}`;
  const searched = `${count_text(progress.searched)} of ${count_text(progress.jobs)} jobs searched, ${count_text(jobs)} with hits`;
  if (!end) return `${searched}…`;
  if (fault) return `${searched}.`;
  if (progress.searched < progress.jobs)
    return `${searched}. The search stopped at ${kMostShown} jobs with hits: choose a project or a phase to narrow it.`;
  return progress.older
    ? `${searched}. Older jobs were not searched: choose a project or a phase to search more of them.`
    : `${searched}.`;
}

function JobHits({found: {row, records, more}, pattern}: {found: Found; pattern: string}) {
  const log = to(['jobs', row.id, 'logs'], {grep: pattern});
  const mark = useMark(pattern);
  const dark = is_dark();
  const title = (
    <>
      <Link to={log}>
        <bdi>{row.name}</bdi>
      </Link>{' '}
      <span class="muted small">in {row.project}</span>
    </>
  );
  return (
    <Card title={title} actions={<Phase job={row} />}>
      <div class="hits" tabIndex={0} role="region" aria-label={`Hits in ${row.name}`}>
        {more && (
          <div class="muted small">
            The last {kHitsOfJob} hits; <Link to={log}>all hits</Link>
          </div>
        )}
        {records.map((record, i) => (
          <div key={i} class="hit">
            <Link to={to(['jobs', row.id, 'logs'], {at: record.time, task: record.task})}>
              <Time at={record.time} />
            </Link>
            <span class="muted">{record.rank !== undefined ? `rank ${record.rank}` : record.task}</span>
            <AnsiText text={line_of(record, i).text} dark={dark} mark={mark} />
          </div>
        ))}
      </div>
    </Card>
  );
}
