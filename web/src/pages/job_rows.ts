// The rows of the list of jobs, which the server sends page by page. Only pages near the view are kept,
// and a row is a small part of a job, so that a long list needs little memory.
import type {Job, JobCounts, JobRow, RowPage} from '../api/types';
import {get, type Query} from '../api/client';
import {job_gpus, text_of} from '../app/format';
import {to} from '../app/router';

export type {JobRow};

export function row_of(job: Job): JobRow {
  const spec = job.spec;
  return {
    object: 'job',
    id: job.id,
    name: spec.name,
    project: spec.project ?? 'default',
    owner: job.owner,
    kind: spec.kind ?? 'single',
    phase: job.phase,
    reason: job.failure ? text_of(job.failure.cause) || job.reason : job.reason,
    labels: (spec.labels ?? {}) as Record<string, string>,
    origin: job.origin,
    gpus: job_gpus(spec),
    priority: spec.scheduling?.priority ?? 50,
    tasks: job.tasks.length,
    tasks_running: job.tasks.filter((task) => task.phase === 'Running').length,
    submitted: job.submitted,
    started: job.started,
    ended: job.ended,
    may_start: job.may_start,
    exit_code: job.exit_code,
    attempt: job.attempt,
    restarts: job.restarts,
    suspended: job.suspended,
    stop_requested: job.stop_requested,
    progress: job.progress,
  };
}

/** The first segment of the address of a row's page. */
const kPages: Record<JobRow['object'], string> = {
  job: 'jobs',
  array: 'arrays',
  sweep: 'sweeps',
  schedule: 'schedules',
};

/** The address of the page of a job, an array, a sweep or a schedule. */
export function page_of(row: JobRow): string {
  return to([kPages[row.object], row.id]);
}

interface Part {
  cursor: string;
  next: string;
  count: number;
  rows: JobRow[] | null;
  /** The list may have changed since the rows were loaded. They are loaded again when they come into view. */
  stale: boolean;
}

/** The number of rows of a request, and the number of parts whose rows are kept. */
export const kPart = 200;
const kKept = 8;

type Fetch = (
  query: Query,
  signal: AbortSignal,
) => Promise<{rows: JobRow[]; next: string; counts: JobCounts | undefined}>;

export const fetch_rows: Fetch = async (query, signal) => {
  const page = await get<RowPage>('/v1/list', query, signal);
  return {rows: page.rows, next: page.next ?? '', counts: page.counts};
};

export class JobRows {
  private parts: Part[] = [];
  total: number | undefined;
  counts: JobCounts | undefined;
  private asked: Query | undefined;

  /** `query` is called at each refresh: its spans of time, such as the last hour, end at the present. */
  constructor(
    private readonly query: () => Query,
    private readonly fetch: Fetch = fetch_rows,
  ) {}

  /** The number of rows in all parts that were loaded so far. */
  get known(): number {
    return this.parts.reduce((sum, part) => sum + part.count, 0);
  }
  /** Whether the list was loaded up to its end, and no part of it may have changed since. */
  get complete(): boolean {
    return this.reaches_end && !this.parts.some((part) => part.stale);
  }
  get length(): number {
    if (this.complete || this.total === undefined) return this.known;
    return this.reaches_end ? this.total : Math.max(this.known, this.total);
  }
  private get reaches_end(): boolean {
    return this.parts.at(-1)?.next === '';
  }

  at(index: number): JobRow | undefined {
    let begin = 0;
    for (const part of this.parts) {
      if (index < begin + part.count) return part.rows?.[index - begin];
      begin += part.count;
    }
    return undefined;
  }

  index_of(id: string): number {
    let begin = 0;
    for (const part of this.parts) {
      const at = part.rows ? part.rows.findIndex((row) => row.id === id) : -1;
      if (at >= 0) return begin + at;
      begin += part.count;
    }
    return -1;
  }

  /** The rows from one job to another, in the order of the list. Undefined if some of them are not loaded or stale. */
  between(one: string, other: string): JobRow[] | undefined {
    const ends = [this.index_of(one), this.index_of(other)];
    const begin = Math.min(...ends);
    if (begin < 0) return undefined;
    // A stale part has rows of an older state of the list: between it and its neighbours, rows may be missing or doubled.
    let at = 0;
    for (const part of this.parts) {
      if (part.stale && at <= Math.max(...ends) && at + part.count > begin) return undefined;
      at += part.count;
    }
    const all = Array.from({length: Math.max(...ends) - begin + 1}, (_, i) => this.at(begin + i));
    return all.every((row) => row !== undefined) ? all : undefined;
  }

  /** Replaces a loaded row without moving it. Returns the former row; undefined if the row is not loaded. */
  put(row: JobRow): JobRow | undefined {
    for (const part of this.parts) {
      const at = part.rows?.findIndex((each) => each.id === row.id) ?? -1;
      if (at >= 0) return part.rows!.splice(at, 1, row)[0];
    }
    return undefined;
  }

  /** All loaded rows. */
  *kept(): Generator<JobRow> {
    for (const part of this.parts) if (part.rows) yield* part.rows;
  }

  /** Whether some rows of the range are not loaded, or may have changed since. */
  lacks(first: number, last: number): boolean {
    let begin = 0;
    for (const part of this.parts) {
      if ((!part.rows || part.stale) && touches(part, begin, first, last)) return true;
      begin += part.count;
    }
    return !this.reaches_end && last >= begin;
  }

  /**
   * Loads what the range lacks, and forgets parts far from the range. With `refresh`, it also loads the rows of the range
   * that are loaded already, and the counts; the rows of the other parts are stale from then on.
   */
  async load(first: number, last: number, signal: AbortSignal, refresh: boolean): Promise<void> {
    if (refresh || !this.asked) this.asked = this.query();
    // The rows are as before until the first answer arrives.
    let renews = refresh;
    let needs_counts = refresh || !this.counts;
    let begin = 0;
    let cursor = '';
    let at = 0;
    while (begin <= last || at === 0) {
      let part = this.parts[at];
      const count = part?.count ?? 0;
      // On the way to rows far below, larger parts need fewer requests.
      const limit = part ? Math.max(kPart, Math.min(count, 1000)) : last - begin > 4 * kPart ? 1000 : kPart;
      if (!part || ((renews || !part.rows || part.stale) && touches(part, begin, first, last))) {
        const answer = await this.fetch({...this.asked, limit, cursor, count: needs_counts}, signal);
        if (signal.aborted) return;
        if (renews) for (const each of this.parts) each.stale = true;
        renews = false;
        if (!part) {
          part = {cursor, next: '', count: 0, rows: null, stale: false};
          this.parts.push(part);
        }
        part.rows = answer.rows;
        part.count = answer.rows.length;
        part.next = answer.next;
        part.stale = false;
        const follower = this.parts[at + 1];
        if (follower && follower.cursor !== part.next) {
          follower.cursor = part.next;
          follower.stale = true;
        }
        if (answer.counts) {
          this.counts = answer.counts;
          this.total = answer.counts.all;
        }
        needs_counts = false;
      }
      begin += part.count;
      cursor = part.next;
      at++;
      if (!part.next) {
        this.parts.length = at;
        break;
      }
    }
    this.forget(first, last);
  }

  private forget(first: number, last: number): void {
    const kept = this.parts.filter((part) => part.rows).length;
    if (kept <= kKept) return;
    let begin = 0;
    for (const part of this.parts) {
      const end = begin + part.count;
      if (end < first - 2 * kPart || begin > last + 2 * kPart) part.rows = null;
      begin = end;
    }
  }
}

/**
 * Whether rows of a range are in a part. A part without rows counts as one row, so that an emptied part is asked for again.
 * The last part also covers rows appended since.
 */
function touches(part: Part, begin: number, first: number, last: number): boolean {
  return begin < last && (begin + Math.max(part.count, 1) > first || part.next === '');
}
