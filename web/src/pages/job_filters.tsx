// The filters of the list of jobs. The address holds them; server_query() makes the server's query of them.
import {get, type Query} from '../api/client';
import type {JobCounts, Projects} from '../api/types';
import {count_text} from '../app/format';
import {query_value, set_query, navigate, place} from '../app/router';
import {useData} from '../ui/parts';
import {DelayedInput} from './delayed_input';

const kPhases = ['Queued', 'Starting', 'Running', 'Succeeded', 'Failed', 'Stopped'];

const kKinds = ['single', 'mpi', 'torch', 'grpc'];

const kSpans: [string, string, number][] = [
  ['1h', 'Last hour', 3600e3],
  ['24h', 'Last day', 86400e3],
  ['7d', 'Last week', 7 * 86400e3],
  ['30d', 'Last 30 days', 30 * 86400e3],
];

/** The query of GET /v1/list. `at`: the time from which spans such as "last hour" count back. */
export function server_query(query: URLSearchParams, user: string, at: number): Query {
  const span = kSpans.find(([key]) => key === query.get('within'))?.[2];
  const ended = kSpans.find(([key]) => key === query.get('ended'))?.[2];
  const since = (ms: number | undefined) =>
    ms ? new Date(Math.floor((at - ms) / 60000) * 60000).toISOString() : undefined;
  const origin = query.get('origin');
  return {
    project: query.get('project'),
    phase: query.get('phase'),
    label: query.getAll('label'),
    owner: query.get('mine') ? user : query.get('owner'),
    kind: query.get('kind'),
    text: query.get('text'),
    origin,
    top: !origin && !query.get('members'),
    submitted_after: since(span),
    ended_after: since(ended),
    sort: query.get('sort') ?? '-submitted',
  };
}

export function Filters({counts}: {counts: JobCounts | undefined}) {
  const projects = useData((signal) => get<Projects>('/v1/projects', {}, signal), [], {
    every: 60000,
    match: () => false,
  });
  const phases = new Set((query_value('phase') || '').split(',').filter(Boolean));
  const names = (projects.data?.projects ?? []).map((project) => project.name);
  const project = query_value('project');
  const any = [...place.value.query.keys()].some((name) => name !== 'sort');
  return (
    <div class="filters" role="search" aria-label="Filters">
      <DelayedInput name="text" label="Search name, label, command" search />
      <div class="group" role="group" aria-label="Phase">
        {kPhases.map((phase) => (
          <button
            key={phase}
            aria-pressed={phases.has(phase)}
            onClick={() => {
              const next = new Set(phases);
              if (!next.delete(phase)) next.add(phase);
              set_query({phase: kPhases.filter((each) => next.has(each)).join(',')});
            }}
          >
            {phase}
            {counts && (
              <span class="muted small tnum">{count_text(counts[phase.toLowerCase() as keyof JobCounts] ?? 0)}</span>
            )}
          </button>
        ))}
      </div>
      <button
        aria-pressed={!!query_value('mine')}
        onClick={() => set_query({mine: query_value('mine') ? null : 'yes', owner: null})}
      >
        Mine
      </button>
      <Choice
        label="Project"
        name="project"
        values={project && !names.includes(project) ? [project, ...names] : names}
      />
      <Choice label="Kind" name="kind" values={kKinds} />
      <Choice
        label="Time"
        name="within"
        values={kSpans.map(([key]) => key)}
        names={kSpans.map(([, name]) => name)}
        all="Any time"
      />
      <DelayedInput name="owner" label="User" />
      <DelayedInput name="label" label="Label" />
      {any && (
        <button class="quiet" onClick={() => navigate('/jobs', {replace: true})}>
          Clear filters
        </button>
      )}
    </div>
  );
}

function Choice({
  label,
  name,
  values,
  names,
  all,
}: {
  label: string;
  name: string;
  values: string[];
  names?: string[];
  all?: string;
}) {
  return (
    <select
      aria-label={label}
      value={query_value(name)}
      onChange={(event) => set_query({[name]: event.currentTarget.value})}
    >
      <option value="">{all ?? `Any ${label.toLowerCase()}`}</option>
      {values.map((value, i) => (
        <option key={value} value={value} selected={value === query_value(name)}>
          {names?.[i] ?? value}
        </option>
      ))}
    </select>
  );
}
