// The usage of a project and its subprojects by user, in a chosen period; also as a CSV file.
import {get, project_path, with_query} from '../api/client';
import type {ProjectUsage} from '../api/types';
import {amount_text} from '../app/format';
import {server_now} from '../app/live';
import {query_value, set_query} from '../app/router';
import {Icon} from '../ui/icons';
import {Card, ErrorNote, Waiting, useData} from '../ui/parts';

const kSpans: [string, string, number][] = [
  ['7d', 'Last 7 days', 7],
  ['30d', 'Last 30 days', 30],
  ['90d', 'Last 90 days', 90],
];

/** A number of hours with one decimal. */
const hours = (value: number) => amount_text(Math.round(value * 10) / 10);

export function Usage({project}: {project: string}) {
  const span = query_value('span') || '30d';
  const days = kSpans.find(([key]) => key === span)?.[2] ?? 30;
  const path = project_path(project, '/usage');
  const since = () => new Date(server_now() - days * 86400e3).toISOString();
  const loaded = useData((signal) => get<ProjectUsage>(path, {since: since()}, signal), [project, span], {
    // The usage of running jobs grows.
    every: 60_000,
    interval: 10_000,
  });
  const rows = loaded.data?.users ?? [];
  const with_projects = rows.some((row) => row.project !== project);
  const sum = (key: 'jobs' | 'failed' | 'job_hours' | 'gpu_hours') => rows.reduce((all, row) => all + row[key], 0);
  return (
    <Card
      title="Usage"
      scroll
      actions={
        <>
          <select aria-label="Time" value={span} onChange={(e) => set_query({span: e.currentTarget.value})}>
            {kSpans.map(([key, name]) => (
              <option key={key} value={key} selected={key === span}>
                {name}
              </option>
            ))}
          </select>
          {rows.length > 0 && (
            <a class="button" href={with_query(path, {since: since(), format: 'csv'})} download>
              <Icon name="download" />
              CSV
            </a>
          )}
        </>
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (rows.length === 0 ? (
          <div class="empty">No job of this project ran in this period.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Usage by user</caption>
            <thead>
              <tr>
                <th>User</th>
                {with_projects && <th>Project</th>}
                <th class="num">Jobs</th>
                <th class="num">Failed</th>
                <th class="num">Job hours</th>
                <th class="num">GPU hours</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={`${row.project} ${row.user}`}>
                  <th scope="row">
                    <bdi>{row.user}</bdi>
                  </th>
                  {with_projects && (
                    <td>
                      <bdi>{row.project}</bdi>
                    </td>
                  )}
                  <td class="num">{row.jobs}</td>
                  <td class="num">{row.failed}</td>
                  <td class="num">{hours(row.job_hours)}</td>
                  <td class="num">{hours(row.gpu_hours)}</td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr>
                <th scope="row">All</th>
                {with_projects && <td />}
                <td class="num">{sum('jobs')}</td>
                <td class="num">{sum('failed')}</td>
                <td class="num">{hours(sum('job_hours'))}</td>
                <td class="num">{hours(sum('gpu_hours'))}</td>
              </tr>
            </tfoot>
          </table>
        ))}
      <p class="muted small body">
        The GPU hours of an attempt count from its placement to its end, whether the GPUs are busy or idle. Deleted jobs
        are not counted.
      </p>
    </Card>
  );
}
