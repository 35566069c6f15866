// Compares jobs: curves over time or step, the parameters in which the jobs differ, parallel coordinates,
// and a table, best first. The page of a sweep compares its trials.
import {useSignal} from '@preact/signals';
import {useEffect, useMemo, useRef} from 'preact/hooks';
import {Failure, get, job_path} from '../api/client';
import type {Job, Metrics} from '../api/types';
import {has_ended, number_text, run_span, span_text} from '../app/format';
import {query_value, set_query, to} from '../app/router';
import {visible_text} from '../ui/ansi';
import {Chart, curve_colour, type Curve} from '../ui/chart';
import {Card, ErrorNote, Link, Phase, Waiting, now, useData, useSize} from '../ui/parts';
import {curve_of, labels_of, last_of, parameters_of, type Compared} from './compared';
import {format_of} from './job/metrics';

const kMost = 50;

/** Loads the jobs and their metrics, six at a time, without the jobs that the user may not see. */
async function load(ids: string[], abort: AbortSignal, kept: Map<string, Compared>): Promise<Compared[]> {
  const out: (Compared | null)[] = new Array(ids.length).fill(null);
  let next = 0;
  const work = async () => {
    while (next < ids.length) {
      const at = next++;
      const id = ids[at]!;
      const before = kept.get(id);
      // A job that has ended does not change.
      if (before && has_ended(before.job.phase)) {
        out[at] = before;
        continue;
      }
      try {
        const [job, metrics] = await Promise.all([
          get<Job>(job_path(id), {}, abort),
          get<Metrics>(job_path(id, 'metrics'), {}, abort),
        ]);
        const loaded = {job, series: metrics.series};
        kept.set(id, loaded);
        out[at] = loaded;
      } catch (fault) {
        if (!(fault instanceof Failure && [403, 404].includes(fault.status))) throw fault;
      }
    }
  };
  await Promise.all(Array.from({length: 6}, work));
  return out.filter((each): each is Compared => each !== null);
}

export function Comparison({
  ids,
  default_metric,
  default_best,
}: {
  ids: string[];
  default_metric?: string;
  default_best?: string;
}) {
  const kept = useRef(new Map<string, Compared>());
  const shown_ids = ids.slice(0, kMost);
  // Another order of the same jobs needs no request: the jobs are sorted below.
  const loaded = useData(
    async (abort) => ({asked: shown_ids.length, jobs: await load(shown_ids, abort, kept.current)}),
    [[...shown_ids].sort()],
    {match: (change) => shown_ids.includes(change.id), every: 5000, interval: 1500, keep: true},
  );
  const only = query_value('all') !== 'yes';
  const asked = loaded.data?.asked ?? 0;
  const all = loaded.data?.jobs ?? [];
  const metrics = [...new Set(all.flatMap((each) => each.series.map((one) => one.metric)))].sort(
    (a, b) =>
      Number(a.includes('_bytes') || a.includes('percent')) - Number(b.includes('_bytes') || b.includes('percent')) ||
      a.localeCompare(b),
  );
  const metric =
    query_value('metric') ||
    default_metric ||
    metrics.find((each) => /loss|accuracy|reward|score/.test(each)) ||
    metrics[0] ||
    '';
  const best = query_value('best') || default_best || (/acc|reward|score|per_second/.test(metric) ? 'max' : 'min');
  const axes = ['step', 'epoch'].filter((name) => metrics.includes(name) && name !== metric);
  const axis = query_value('axis') || axes[0] || 'time';
  const ranked = useMemo(
    () =>
      [...all].sort((a, b) => {
        const x = last_of(a, metric);
        const y = last_of(b, metric);
        return x === undefined ? (y === undefined ? 0 : 1) : y === undefined ? -1 : best === 'min' ? x - y : y - x;
      }),
    [all, metric, best],
  );
  const labels = useMemo(() => labels_of(ranked), [ranked]);
  const curves = useMemo(
    () =>
      ranked.flatMap((each): Curve[] => {
        const curve = curve_of(each, metric, axis);
        return curve ? [{...curve, label: labels.get(each.job.id)!}] : [];
      }),
    [ranked, labels, metric, axis],
  );
  const colour_at = (job: Job, i: number) => {
    const at = curves.findIndex((curve) => curve.label === labels.get(job.id));
    return curve_colour(at < 0 ? i : at);
  };
  const parameters = useMemo(() => ranked.map((each) => parameters_of(each.job)), [ranked]);
  const keys = [...new Set(parameters.flatMap((each) => Object.keys(each)))];
  const differing = keys.filter((key) => new Set(parameters.map((each) => each[key] ?? '')).size > 1);
  const rows = only ? differing : keys;
  if (!loaded.data) return loaded.error ? <ErrorNote error={loaded.error} /> : <Waiting />;
  return (
    <div class="stack">
      <ErrorNote error={loaded.error} />
      {ids.length > kMost && (
        <div class="note warn">
          The first {kMost} of {ids.length} jobs are compared.
        </div>
      )}
      {all.length < asked && (
        <div class="note warn">
          {asked - all.length} of {asked} jobs could not be loaded: they were deleted, or you may not see them.
        </div>
      )}
      <div class="filters">
        <label>
          Metric{' '}
          <select value={metric} onChange={(e) => set_query({metric: e.currentTarget.value})}>
            {metrics.map((each) => (
              <option key={each} value={each} selected={each === metric}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <label>
          Over{' '}
          <select value={axis} onChange={(e) => set_query({axis: e.currentTarget.value})}>
            {[...axes, 'time'].map((each) => (
              <option key={each} value={each} selected={each === axis}>
                {each === 'time' ? 'time since the start' : each}
              </option>
            ))}
          </select>
        </label>
        <label>
          Best is{' '}
          <select value={best} onChange={(e) => set_query({best: e.currentTarget.value})}>
            <option value="min" selected={best === 'min'}>
              lowest
            </option>
            <option value="max" selected={best === 'max'}>
              highest
            </option>
          </select>
        </label>
      </div>
      <Card title="Curves">
        {curves.length ? (
          <Chart
            key={`${metric} ${axis}`}
            title={`${metric} over ${axis === 'time' ? 'seconds since the start' : axis}`}
            curves={curves}
            time={false}
            height={320}
            format={format_of(metric)}
            x_label={axis === 'time' ? 's' : axis}
          />
        ) : (
          <div class="empty">None of these jobs has reported {metric || 'a metric'} yet.</div>
        )}
      </Card>
      {differing.length > 0 && all.length > 1 && (
        <Card title="Parallel coordinates">
          <Parallel jobs={ranked} parameters={parameters} keys={differing} metric={metric} best={best} />
        </Card>
      )}
      <Card title="Jobs, best first" scroll>
        <table class="grid">
          <caption class="hidden-text">Compared jobs</caption>
          <thead>
            <tr>
              <th class="num">#</th>
              <th>Job</th>
              <th>Phase</th>
              <th class="num">{metric || 'Metric'}</th>
              <th class="num">Ran</th>
              {differing.slice(0, 6).map((key) => (
                <th key={key}>{visible_text(short(key))}</th>
              ))}
            </tr>
          </thead>
          <tbody>
            {ranked.map((each, i) => (
              <tr key={each.job.id}>
                <td class="num">{i + 1}</td>
                <th scope="row" class="nowrap">
                  <i class="swatch" style={{background: colour_at(each.job, i)}} />{' '}
                  <Link to={to(['jobs', each.job.id])}>
                    <bdi>{labels.get(each.job.id)}</bdi>
                  </Link>
                </th>
                <td>
                  <Phase job={each.job} />
                </td>
                <td class="num">{format_of(metric)(last_of(each, metric))}</td>
                <td class="num">
                  {Number.isNaN(run_span(each.job, now.value)) ? '–' : span_text(run_span(each.job, now.value))}
                </td>
                {differing.slice(0, 6).map((key) => (
                  <td key={key} class="mono break">
                    {visible_text(parameters[i]?.[key] ?? '')}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </Card>
      <Card
        title="Parameters"
        scroll
        actions={
          <label>
            <input
              type="checkbox"
              checked={only}
              onChange={(e) => set_query({all: e.currentTarget.checked ? null : 'yes'})}
            />{' '}
            Only differences
          </label>
        }
      >
        {rows.length === 0 ? (
          <div class="empty">The jobs have the same parameters.</div>
        ) : (
          <table class="grid">
            <caption class="hidden-text">Parameters of the compared jobs</caption>
            <thead>
              <tr>
                <th>Parameter</th>
                {ranked.map((each) => (
                  <th key={each.job.id}>
                    <bdi>{labels.get(each.job.id)}</bdi>
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((key) => (
                <tr key={key}>
                  <th scope="row" class="mono">
                    <bdi>{visible_text(key)}</bdi>
                  </th>
                  {parameters.map((each, i) => (
                    <td key={i} class="mono break cell">
                      {visible_text(each[key] ?? '')}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Card>
    </div>
  );
}

function short(key: string): string {
  return key.replace(/^environment\./, '').replace(/^MUSTER_ITEM_/, '');
}

function Parallel({
  jobs,
  parameters,
  keys,
  metric,
  best,
}: {
  jobs: Compared[];
  parameters: Record<string, string>[];
  keys: string[];
  metric: string;
  best: string;
}) {
  const ref = useRef<HTMLDivElement>(null);
  const {width} = useSize(ref);
  const at = useSignal(-1);
  useEffect(() => {
    at.value = -1;
  }, [jobs.length]);
  // Numbers get a scale, and each word a place. A parameter with more than 12 different words gets no axis.
  const axes = [
    ...keys
      .filter((key) => {
        const values = new Set(parameters.map((each) => each[key] ?? ''));
        return [...values].every((v) => v !== '' && !Number.isNaN(Number(v))) || values.size <= 12;
      })
      .slice(0, Math.max(1, Math.floor(width / 110) - 1)),
    metric,
  ].map((key, index, all) => {
    const texts = jobs.map((each, i) =>
      index === all.length - 1
        ? last_of(each, metric) === undefined
          ? ''
          : String(last_of(each, metric))
        : (parameters[i]?.[key] ?? ''),
    );
    const numbers = texts.map(Number);
    const numeric = texts.some((v) => v !== '') && texts.every((v, i) => v === '' || !Number.isNaN(numbers[i]!));
    if (numeric) {
      const known = numbers.filter((_, i) => texts[i] !== '');
      const low = Math.min(...known);
      const high = Math.max(...known);
      const log = low > 0 && high / low >= 100;
      const scale = (v: number) =>
        high === low ? 0.5 : log ? Math.log(v / low) / Math.log(high / low) : (v - low) / (high - low);
      return {
        key,
        low: number_text(low),
        high: number_text(high) + (log ? ' (log)' : ''),
        of: (i: number) => (texts[i] === '' ? null : scale(numbers[i]!)),
      };
    }
    const words = [...new Set(texts)].sort();
    return {
      key,
      low: words[0] ?? '',
      high: words.at(-1) ?? '',
      of: (i: number) => (words.length === 1 ? 0.5 : words.indexOf(texts[i]!) / (words.length - 1)),
    };
  });
  const height = 260;
  const top = 34;
  const bottom = height - 22;
  const x = (index: number) => 50 + index * Math.max(60, (width - 100) / Math.max(1, axes.length - 1));
  const y = (part: number) => bottom - part * (bottom - top);
  return (
    <div ref={ref} class="parallel">
      {width > 0 && (
        <svg
          width={width}
          height={height}
          role="img"
          aria-label={`Parallel coordinates of ${jobs.length} jobs over ${axes.length} axes; the tables below have the same values`}
        >
          {jobs.map((each, i) => {
            const line = axes
              .map((axis, j) => {
                const part = axis.of(i);
                return part === null ? null : `${x(j)},${y(part)}`;
              })
              .filter(Boolean)
              .join(' ');
            return (
              <polyline
                key={each.job.id}
                points={line}
                class={at.value === i ? 'on' : at.value >= 0 ? 'off' : i === 0 ? 'first' : ''}
                style={{stroke: curve_colour(i)}}
                onPointerEnter={() => {
                  at.value = i;
                }}
                onPointerLeave={() => {
                  at.value = -1;
                }}
              >
                <title>{each.job.spec.name}</title>
              </polyline>
            );
          })}
          {axes.map((axis, j) => {
            const anchor = j === 0 ? 'start' : j === axes.length - 1 ? 'end' : 'middle';
            const tx = j === 0 ? 4 : j === axes.length - 1 ? width - 4 : x(j);
            return (
              <g key={axis.key}>
                <line x1={x(j)} x2={x(j)} y1={top} y2={bottom} />
                <text x={tx} y="12" text-anchor={anchor} class="name">
                  {cut(visible_text(short(axis.key)))}
                </text>
                <text x={tx} y="27" text-anchor={anchor}>
                  {cut(visible_text(axis.high))}
                </text>
                <text x={tx} y={height - 6} text-anchor={anchor}>
                  {cut(visible_text(axis.low))}
                </text>
              </g>
            );
          })}
        </svg>
      )}
      <p class="muted small">
        {at.value >= 0 ? (
          <bdi>{jobs[at.value]?.job.spec.name}</bdi>
        ) : (
          `Each line is a job; the thick one has the ${best === 'min' ? 'lowest' : 'highest'} ${metric}.`
        )}
      </p>
    </div>
  );
}

function cut(text: string): string {
  return text.length > 16 ? text.slice(0, 15) + '…' : text;
}
