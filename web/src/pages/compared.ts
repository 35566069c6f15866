// What a comparison shows of a job: its parameters, and its metrics as curves. Pure.
import type {Job, MetricSeries} from '../api/types';
import {millis, text_of} from '../app/format';
import {flat, to_file, type Tree} from '../app/spec_text';
import type {Curve} from '../ui/chart';

export interface Compared {
  job: Job;
  series: MetricSeries[];
}

/** The parameters of a job: the fields of its specification, and the options of its command, such as `--lr`. */
export function parameters_of(job: Job): Record<string, string> {
  const {name: _, command: __, arguments: ___, ...rest} = to_file(job.spec as unknown as Tree);
  const out = flat(rest);
  // These variables repeat the parameters of a trial, and have its number.
  for (const key of Object.keys(out)) if (/^environment\.MUSTER_(PARAM|SWEEP_)/.test(key)) delete out[key];
  const words = [...job.spec.command, ...(job.spec.arguments ?? [])].map(text_of);
  const others: string[] = [];
  for (let i = 0; i < words.length; i++) {
    const found = /^--([A-Za-z][\w.-]*)(?:=([\s\S]*))?$/.exec(words[i]!);
    if (!found) {
      others.push(words[i]!);
      continue;
    }
    const value =
      found[2] ??
      (i + 1 < words.length && !words[i + 1]!.startsWith('--') && words[i + 1] !== '-' ? words[++i]! : 'yes');
    out[`--${found[1]}`] = value;
  }
  out['command'] = others.join(' ');
  return out;
}

/** A name for each job, by its id. Jobs of one name get their project as well, and if that is the same, their id. */
export function labels_of(all: Compared[]): Map<string, string> {
  const project_of = (job: Job) => `${job.spec.name} (${job.spec.project ?? 'default'})`;
  const count = (name: string, name_of: (job: Job) => string) =>
    all.filter((each) => name_of(each.job) === name).length;
  return new Map(
    all.map(({job}) => {
      if (count(job.spec.name, (other) => other.spec.name) === 1) return [job.id, job.spec.name];
      if (count(project_of(job), project_of) === 1) return [job.id, project_of(job)];
      return [job.id, `${job.spec.name} (${job.id})`];
    }),
  );
}

/** The curve of a metric over `axis`: a metric with points of the same times, such as step, or `time` since the start. */
export function curve_of(each: Compared, metric: string, axis: string): Curve | null {
  const series = each.series.find((one) => one.metric === metric);
  if (!series || !series.points.length) return null;
  const points = series.points as {time: string; value: number}[];
  if (axis !== 'time') {
    const steps = each.series.find(
      (one) => one.metric === axis && one.task === series.task && one.rank === series.rank,
    );
    if (!steps) return null;
    const at = new Map((steps.points as {time: string; value: number}[]).map((point) => [point.time, point.value]));
    const pairs = points
      .filter((point) => at.has(point.time))
      .map((point) => [at.get(point.time)!, point.value] as const)
      .sort((a, b) => a[0] - b[0]);
    const unique = pairs.filter((pair, i) => i === 0 || pair[0] !== pairs[i - 1]![0]);
    return unique.length
      ? {label: each.job.spec.name, x: unique.map((pair) => pair[0]), y: unique.map((pair) => pair[1])}
      : null;
  }
  const start = millis(each.job.started ?? each.job.submitted);
  return {
    label: each.job.spec.name,
    x: points.map((point) => (millis(point.time) - start) / 1000),
    y: points.map((point) => point.value),
  };
}

export function last_of(each: Compared, metric: string): number | undefined {
  return (each.series.find((one) => one.metric === metric)?.points.at(-1) as {value: number} | undefined)?.value;
}
