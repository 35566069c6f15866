// What the jobs of a project used, user by user, from the list of its jobs: GPU hours of the runs that
// overlap the chosen time, clipped to it. The same as a CSV file.
import {get} from '../api/client';
import {amount_text, millis} from '../app/format';
import {query_value, set_query} from '../app/router';
import {Card, ErrorNote, Waiting, useData} from '../ui/parts';
import type {JobRow} from './job_rows';

export interface UsageRow {
  user: string;
  jobs: number;
  gpu_hours: number;
  failed: number;
}

/** Pure: hours of [begin, end) that each job ran, times its GPUs. */
export function usage_of(rows: JobRow[], begin: number, end: number): UsageRow[] {
  const users = new Map<string, UsageRow>();
  for (const row of rows) {
    if (!row.started) continue;
    const from = Math.max(begin, millis(row.started));
    const until = Math.min(end, row.ended ? millis(row.ended) : end);
    if (until <= from) continue;
    const user = users.get(row.owner) ?? {user: row.owner, jobs: 0, gpu_hours: 0, failed: 0};
    user.jobs++;
    user.gpu_hours += ((row.gpus ?? 0) * (until - from)) / 3600e3;
    if (row.phase === 'Failed') user.failed++;
    users.set(row.owner, user);
  }
  return [...users.values()].sort((a, b) => b.gpu_hours - a.gpu_hours || a.user.localeCompare(b.user));
}

/** A cell that begins like a formula is kept from being one in a spreadsheet. */
export function csv_cell(text: string): string {
  const safe = /^[=+\-@\t\r]/.test(text) ? `'${text}` : text;
  return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

const kSpans: [string, string, number][] = [
  ['7d', 'Last 7 days', 7],
  ['30d', 'Last 30 days', 30],
  ['90d', 'Last 90 days', 90],
];

export function Usage({project}: {project: string}) {
  const span = query_value('span') || '30d';
  const days = kSpans.find(([key]) => key === span)?.[2] ?? 30;
  const loaded = useData(
    async (signal) => {
      const end = Date.now();
      const begin = end - days * 86400e3;
      const rows: JobRow[] = [];
      let cursor = '';
      for (let page = 0; page < 100; page++) {
        const answer = await get<{rows: JobRow[]; next?: string}>(
          '/v1/list',
          {project, limit: 1000, cursor, sort: '-submitted'},
          signal,
        );
        rows.push(...answer.rows.filter((row) => row.object === 'job'));
        cursor = answer.next ?? '';
        if (!cursor) break;
      }
      return {rows: usage_of(rows, begin, end), begin, end};
    },
    [project, span],
    {every: 60000, interval: 10000},
  );
  const rows = loaded.data?.rows ?? [];
  const csv = () =>
    [
      'user,jobs,failed,gpu_hours',
      ...rows.map((row) => [csv_cell(row.user), row.jobs, row.failed, row.gpu_hours.toFixed(3)].join(',')),
    ].join('\n') + '\n';
  const download = () => {
    const url = URL.createObjectURL(new Blob([csv()], {type: 'text/csv'}));
    const link = document.createElement('a');
    link.href = url;
    link.download = `usage-${project}-${span}.csv`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  };
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
          <button disabled={!rows.length} onClick={download}>
            CSV
          </button>
        </>
      }
    >
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data &&
        (rows.length === 0 ? (
          <div class="empty">No job of this project ran in this time.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Usage by user</caption>
            <thead>
              <tr>
                <th>User</th>
                <th class="num">Jobs</th>
                <th class="num">Failed</th>
                <th class="num">GPU hours</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.user}>
                  <th scope="row">
                    <bdi>{row.user}</bdi>
                  </th>
                  <td class="num">{row.jobs}</td>
                  <td class="num">{row.failed}</td>
                  <td class="num">{amount_text(row.gpu_hours)}</td>
                </tr>
              ))}
            </tbody>
            <tfoot>
              <tr>
                <th scope="row">All</th>
                <td class="num">{rows.reduce((s, r) => s + r.jobs, 0)}</td>
                <td class="num">{rows.reduce((s, r) => s + r.failed, 0)}</td>
                <td class="num">{amount_text(rows.reduce((s, r) => s + r.gpu_hours, 0))}</td>
              </tr>
            </tfoot>
          </table>
        ))}
      <p class="muted small body">
        Allocated GPUs times the time from the last start to the end of each job that the server still keeps, clipped to
        the chosen time.
      </p>
    </Card>
  );
}
