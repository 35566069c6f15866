// The metrics of a job as curves: measurements by Muster, and numbers that the program reports.
import {get, job_path} from '../../api/client';
import type {Job, Metrics as MetricsOf, MetricSeries} from '../../api/types';
import {bytes_text, has_ended, millis, number_text} from '../../app/format';
import {server_now} from '../../app/live';
import {query_value, set_query} from '../../app/router';
import {Chart, type Curve} from '../../ui/chart';
import {ErrorNote, Waiting, useData} from '../../ui/parts';

const kNames: Record<string, string> = {
  cpu_percent: 'CPU (100: one CPU)',
  memory_bytes: 'Memory',
  network_received_bytes_per_second: 'Network received',
  network_sent_bytes_per_second: 'Network sent',
  gpu_percent: 'GPU use (100: one GPU)',
  gpu_memory_bytes: 'GPU memory',
  gpu_memory_free_bytes: 'GPU memory free',
  gpu_power_watts: 'GPU power (W)',
  gpu_temperature_celsius: 'GPU temperature (°C)',
};

const kSpans: [string, string, number][] = [
  ['', 'Whole run', 0],
  ['10m', 'Last 10 minutes', 600e3],
  ['1h', 'Last hour', 3600e3],
  ['24h', 'Last day', 86400e3],
];

/** More curves in one chart cannot be told apart. */
const kMostCurves = 64;

export function format_of(metric: string): (v: number | null | undefined) => string {
  if (metric.includes('bytes_per_second')) return (v) => (v === null || v === undefined ? '–' : `${bytes_text(v)}/s`);
  if (metric.includes('bytes')) return (v) => (v === null || v === undefined ? '–' : bytes_text(v));
  return number_text;
}

export function curve_of(series: MetricSeries): Curve {
  return {
    label: series.rank !== undefined ? `${series.task} rank ${series.rank}` : series.task,
    x: series.points.map((point) => millis((point as {time: string}).time) / 1000),
    y: series.points.map((point) => (point as {value: number}).value),
  };
}

export function Metrics({job}: {job: Job}) {
  const span = query_value('span');
  const length = kSpans.find(([key]) => key === span)?.[2] ?? 0;
  const loaded = useData(
    (signal) => {
      const end = job.ended ? millis(job.ended) : server_now();
      return get<MetricsOf>(
        job_path(job.id, 'metrics'),
        {since: length ? new Date(end - length).toISOString() : undefined},
        signal,
      );
    },
    [job.id, span],
    {match: (change) => change.id === job.id, ...(has_ended(job.phase) ? {} : {every: 5000})},
  );
  const groups = new Map<string, MetricSeries[]>();
  for (const series of loaded.data?.series ?? [])
    groups.set(series.metric, [...(groups.get(series.metric) ?? []), series]);
  // The numbers of the program come before the measurements.
  const names = [...groups.keys()].sort((a, b) => Number(a in kNames) - Number(b in kNames) || a.localeCompare(b));
  return (
    <div class="stack">
      <div class="filters">
        <select aria-label="Time" value={span} onChange={(e) => set_query({span: e.currentTarget.value})}>
          {kSpans.map(([key, name]) => (
            <option key={key} value={key} selected={key === span}>
              {name}
            </option>
          ))}
        </select>
      </div>
      <ErrorNote error={loaded.error} />
      {loaded.loading && <Waiting />}
      {loaded.data && names.length === 0 && (
        <div class="card">
          <div class="empty">
            {has_ended(job.phase) ? 'No metrics were recorded.' : 'No metrics yet.'} Muster measures a task 2 seconds
            after its start and then every 10 seconds. A program reports numbers with <code>muster.report</code>.
          </div>
        </div>
      )}
      <div class="charts">
        {names.map((name) => (
          <div class="card" key={name}>
            <div class="body">
              {groups.get(name)!.length > kMostCurves && (
                <p class="muted small">
                  The first {kMostCurves} of {groups.get(name)!.length} curves are shown.
                </p>
              )}
              <Chart
                key={span}
                title={kNames[name] ?? name}
                curves={groups.get(name)!.slice(0, kMostCurves).map(curve_of)}
                time
                format={format_of(name)}
                bytes={name.includes('bytes')}
                from_zero={name in kNames}
              />
            </div>
          </div>
        ))}
      </div>
    </div>
  );
}
