// A pattern in the logs of all jobs of a project: jobs are read one after the other, newest first, and
// each hit links to its line.
import {useSignal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import {get, job_path, send} from '../api/client';
import {read_events} from '../api/events';
import type {LogRecord, Projects} from '../api/types';
import {query_value, set_query, to} from '../app/router';
import {AnsiText, is_dark} from '../ui/ansi_text';
import {Card, ErrorNote, Link, Page, Phase, Time, useData} from '../ui/parts';
import {DelayedInput} from './delayed_input';
import {fetch_rows, type JobRow} from './job_rows';
import {line_of} from './job/log_source';

interface Hits { row: JobRow; records: LogRecord[]; more: boolean }

const kOfJob = 20;
const kJobs = 200;

export function LogSearch(_: {parts: string[]}) {
  const projects = useData((signal) => get<Projects>('/v1/projects', {}, signal), [], {match: () => false, every: 60000});
  const project = query_value('project');
  const pattern = query_value('grep');
  const phase = query_value('phase');
  const hits = useSignal<Hits[]>([]);
  const state = useSignal<{done: number; of: number; end: boolean; fault: unknown}>({done: 0, of: 0, end: true, fault: null});
  useEffect(() => {
    hits.value = [];
    state.value = {done: 0, of: 0, end: !pattern, fault: null};
    if (!pattern) return;
    const abort = new AbortController();
    const run = async () => {
      const {rows} = await fetch_rows({project, phase, sort: '-submitted', limit: kJobs}, abort.signal);
      const jobs = rows.filter((row) => row.object === 'job' && row.started);
      state.value = {...state.value, of: jobs.length};
      const queue = [...jobs];
      const work = async () => {
        for (let row = queue.shift(); row && !abort.signal.aborted; row = queue.shift()) {
          try {
            const records = await search(row, pattern, abort.signal);
            if (records.length) hits.value = [...hits.value, {row, records: records.slice(-kOfJob), more: records.length > kOfJob}].sort((a, b) => b.row.submitted.localeCompare(a.row.submitted));
          } catch (fault) {
            if (!abort.signal.aborted && (fault as {status?: number}).status === 400) throw fault;
          }
          state.value = {...state.value, done: state.value.done + 1};
        }
      };
      await Promise.all([work(), work(), work()]);
      state.value = {...state.value, end: true};
    };
    run().catch((fault) => { if (!abort.signal.aborted) { abort.abort(); state.value = {...state.value, end: true, fault}; } });
    return () => abort.abort();
  }, [project, pattern, phase]);
  let mark: RegExp | null = null;
  try { mark = pattern ? new RegExp(pattern, 'g') : null; } catch { /* the server reports it */ }
  const dark = is_dark();
  return <Page title="Search logs">
    <div class="filters" role="search">
      <DelayedInput name="grep" label="Text or pattern" search />
      <select aria-label="Project" value={project} onChange={(e) => set_query({project: e.currentTarget.value})}><option value="">All projects</option>{(projects.data?.projects ?? []).map((each) => <option key={each.name} value={each.name} selected={each.name === project}>{each.name}</option>)}</select>
      <select aria-label="Phase" value={phase} onChange={(e) => set_query({phase: e.currentTarget.value})}>{[['', 'All jobs'], ['Failed', 'Failed jobs'], ['Starting,Running', 'Running jobs']].map(([value, text]) => <option key={value} value={value} selected={value === phase}>{text}</option>)}</select>
    </div>
    <ErrorNote error={state.value.fault} />
    <div class="muted" role="status">{!pattern ? 'Searches the logs of the newest 200 jobs on the server; the pattern is a regular expression.' : `${state.value.done} of ${state.value.of} jobs searched, ${hits.value.length} with hits${state.value.end ? '' : ' …'}`}</div>
    {hits.value.map(({row, records, more}) => <Card key={row.id} title={<><Link to={to(['jobs', row.id, 'logs'], {grep: pattern})}><bdi>{row.name}</bdi></Link> <span class="muted small">in {row.project}</span></>} actions={<Phase job={row} />}>
      <div class="hits" tabIndex={0} role="region" aria-label={`Hits in ${row.name}`}>{more && <div class="muted small">The last {kOfJob} hits; <Link to={to(['jobs', row.id, 'logs'], {grep: pattern})}>all hits</Link></div>}{records.map((record, i) => { const line = line_of(record, i); return <div key={i} class="hit"><Link to={to(['jobs', row.id, 'logs'], {at: record.time, task: record.task})}><Time at={record.time} /></Link><span class="muted">{record.rank !== undefined ? `rank ${record.rank}` : record.task}</span><AnsiText text={line.text} dark={dark} mark={mark} /></div>; })}</div></Card>)}
  </Page>;
}

async function search(row: JobRow, pattern: string, signal: AbortSignal): Promise<LogRecord[]> {
  const answer = await send('GET', job_path(row.id, 'logs'), {query: {grep: pattern, tail: kOfJob + 1}, signal});
  const out: LogRecord[] = [];
  for await (const event of read_events(answer)) {
    if (event.event === 'log') {
      const record = JSON.parse(event.data) as LogRecord;
      if (record.stream !== 'notice') out.push(record);
    } else if (event.event === 'end') break;
  }
  return out;
}
