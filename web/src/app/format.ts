// Values as text: times, lengths of time, sizes, GPUs. Pure, except for the choice of UTC or local.
import {signal} from '@preact/signals';
import type {Job, JobSpec, Resources} from '../api/types';

export const utc = signal(load('muster.utc') === 'yes');

function load(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

const two = (n: number) => String(n).padStart(2, '0');

/** Milliseconds since 1970. The server writes nanoseconds, which Date.parse() reads and drops. */
export function millis(time: string | undefined): number {
  return time ? Date.parse(time) : NaN;
}

export function clock_text(time: number, in_utc: boolean, seconds = true): string {
  if (Number.isNaN(time)) return '';
  const d = new Date(time);
  const [h, m, s] = in_utc
    ? [d.getUTCHours(), d.getUTCMinutes(), d.getUTCSeconds()]
    : [d.getHours(), d.getMinutes(), d.getSeconds()];
  return `${two(h)}:${two(m)}${seconds ? ':' + two(s) : ''}`;
}

export function day_text(time: number, in_utc: boolean): string {
  const d = new Date(time);
  return in_utc
    ? `${d.getUTCFullYear()}-${two(d.getUTCMonth() + 1)}-${two(d.getUTCDate())}`
    : `${d.getFullYear()}-${two(d.getMonth() + 1)}-${two(d.getDate())}`;
}

/** 2026-01-31 12:00:00, with Z in UTC. */
export function time_text(time: number, in_utc: boolean): string {
  if (Number.isNaN(time)) return '';
  return `${day_text(time, in_utc)} ${clock_text(time, in_utc)}${in_utc ? 'Z' : ''}`;
}

/** The labels of a time axis: the time of day, and the day as well if the times are of several days. */
export function tick_texts(times: number[], in_utc: boolean): string[] {
  const [first, second, last] = [times[0], times[1], times.at(-1)];
  if (first === undefined || last === undefined) return [];
  const step = second === undefined ? 0 : second - first;
  if (day_text(first, in_utc) === day_text(last, in_utc))
    return times.map((time) => clock_text(time, in_utc, step > 0 && step < 60_000));
  const day = (time: number) => day_text(time, in_utc).slice(5);
  // Where clocks change, the days of an axis have 23 or 25 hours.
  const by_day = step > 20 * 3600e3;
  return times.map((time) => (by_day ? day(time) : `${day(time)} ${clock_text(time, in_utc, false)}`));
}

/** 4s, 3m 12s, 5h 02m, 3d 4h. */
export function span_text(ms: number): string {
  if (!Number.isFinite(ms)) return '';
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 60) return `${s}s`;
  if (s < 3600) return `${Math.floor(s / 60)}m ${two(s % 60)}s`;
  if (s < 86400) return `${Math.floor(s / 3600)}h ${two(Math.floor(s / 60) % 60)}m`;
  return `${Math.floor(s / 86400)}d ${Math.floor(s / 3600) % 24}h`;
}

export function bytes_text(bytes: number | null | undefined): string {
  if (bytes === null || bytes === undefined) return '';
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  let value = bytes;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    unit++;
  }
  return `${unit === 0 || value >= 100 ? Math.round(value) : Number(value.toFixed(1))} ${units[unit]}`;
}

/** At most three decimals: the server counts in thousandths. */
export function amount_text(value: number | null | undefined): string {
  if (value === null || value === undefined) return '∞';
  return String(Math.round(value * 1000) / 1000);
}

/** At most six digits, but all digits of a whole number below ten million. */
export function number_text(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const size = Math.abs(value);
  if (size !== 0 && (size < 0.001 || size >= 1e7)) return value.toExponential(3);
  // Six digits would replace the last digits before the decimal point by zeros.
  if (size >= 1e6) return String(Math.round(value));
  return String(Number(value.toPrecision(6)));
}

export function count_text(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, '\u202f');
}

export function gpus_of(resources: Resources | null | undefined): number {
  return (resources?.gpus ?? 0) || (resources?.gpu_share ?? 0) || 0;
}

/** The GPUs that all tasks of a job claim together. */
export function job_gpus(spec: JobSpec): number {
  const each = gpus_of(spec.resources);
  const workers = spec.workers ?? 0;
  const kind = spec.kind ?? 'single';
  let total = kind === 'single' ? each : workers * each;
  if (kind === 'torch' || kind === 'grpc') total += spec.leader?.resources ? gpus_of(spec.leader.resources) : each;
  else total += gpus_of(spec.leader?.resources);
  total += (spec.parameter_servers ?? 0) * gpus_of(spec.parameter_server?.resources);
  total += (spec.evaluators ?? 0) * gpus_of(spec.evaluator?.resources);
  return Math.round(total * 1000) / 1000;
}

export function has_ended(phase: string): boolean {
  return phase === 'Succeeded' || phase === 'Failed' || phase === 'Stopped';
}

export function run_span(job: Pick<Job, 'started' | 'ended'>, now: number): number {
  const start = millis(job.started);
  return Number.isNaN(start) ? NaN : (job.ended ? millis(job.ended) : now) - start;
}

/** A text from the server, which sends {"base64": ...} if the text is not valid UTF-8. */
export function text_of(value: unknown): string {
  if (typeof value === 'string') return value;
  if (value && typeof value === 'object' && 'base64' in value) {
    try {
      const raw = atob(String((value as {base64: string}).base64));
      return new TextDecoder().decode(Uint8Array.from(raw, (c) => c.charCodeAt(0)));
    } catch {
      return '\ufffd';
    }
  }
  return value === null || value === undefined ? '' : String(value);
}
