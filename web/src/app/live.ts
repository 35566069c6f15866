// What keeps the page in step with the server: one stream of the changes of jobs, arrays, sweeps and
// schedules, each with its row. A view takes a row as it is, or asks again, at most once in a short
// interval. While the stream is open, nothing that it reports is polled.
//
// The stream is read with fetch, not EventSource: EventSource gives up for good when a server that
// restarts answers 503. It begins at the present: after a break, the views ask for everything that they
// show, and do not need what was missed in between.
import {signal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import type {JobRow, RemovedJob} from '../api/types';
import {logged_out, send} from '../api/client';
import {read_events} from '../api/events';

export type LiveState = 'connecting' | 'live' | 'lost';
export const live = signal<LiveState>('connecting');
export const lost_since = signal<number>(0);
/** Counts the reconnections; views that hold a stream of their own begin again. */
export const reconnections = signal(0);
/** Server time minus the time of this machine, in milliseconds. */
export const clock_offset = signal(0);

/** A job, an array, a sweep or a schedule, as it is now. Without a row: it was removed. */
export interface Change {
  id: string;
  name: string;
  row?: JobRow;
}

/** Is it the object itself, or made by it (a member of an array, a trial, a run)? */
export function concerns(change: Change, object: string): boolean {
  const origin = change.row?.origin;
  return [change.id, change.name, origin?.id, origin?.name].includes(object);
}

type Listener = (change: Change | null) => void;
const listeners = new Set<Listener>();

function tell(change: Change | null): void {
  for (const listener of [...listeners]) listener(change);
}

/** Calls `listener` for each change, and with null when anything may have changed. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function anything_changed(): void {
  tell(null);
}

/** The change that an event of the stream reports; null: the server has forgotten some changes. */
export function change_of(event: string, data: string): Change | null | undefined {
  if (event === 'row') {
    const row = JSON.parse(data) as JobRow;
    return {id: row.id, name: row.name, row};
  }
  if (event === 'removed') {
    const {id, name} = JSON.parse(data) as RemovedJob;
    return {id, name};
  }
  return event === 'reset' ? null : undefined;
}

const kPauses = [300, 500, 1000, 2000, 3000];
/** The server sends something at least every 15 seconds. */
const kSilence = 40_000;

/** Reads the stream until it ends, breaks, falls silent, or has lost changes. */
async function follow(opened: () => void): Promise<void> {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const heard = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (logged_out.value ? heard() : abort.abort()), kSilence);
  };
  try {
    heard();
    const answer = await send('GET', '/v1/watch/jobs', {
      query: {rows: true, existing: 'false'},
      signal: abort.signal,
    });
    const date = Date.parse(answer.headers.get('date') ?? '');
    if (date) clock_offset.value = date - Date.now();
    opened();
    for await (const {event, data} of read_events(answer, heard)) {
      const change = change_of(event, data);
      if (change === null) return;
      if (change) tell(change);
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

export async function run_live(): Promise<never> {
  let tries = 0;
  let was_live = false;
  for (;;) {
    try {
      await follow(() => {
        tries = 0;
        live.value = 'live';
        lost_since.value = 0;
        if (was_live) {
          reconnections.value++;
          tell(null);
        }
        was_live = true;
      });
    } catch {
      // Reported below: the connection is lost, for whatever reason.
    }
    if (!lost_since.value) lost_since.value = Date.now();
    live.value = was_live || tries > 1 ? 'lost' : 'connecting';
    await new Promise((resolve) => setTimeout(resolve, kPauses[Math.min(tries, kPauses.length - 1)]));
    tries++;
  }
}

/** How a view follows the server. */
export interface Following {
  /** Which changes make it ask again; without: all. */
  match?: (change: Change) => boolean;
  /** The shortest time between two requests, in milliseconds. */
  interval?: number;
  /** It shows something that the stream does not report: asks again after so many milliseconds. */
  every?: number;
}

/** A view asks for at most a tenth of the time, so that a large answer costs little. */
const kShare = 9;
/** How often a view asks again while the stream is not open. */
const kFallback = 15_000;

/** Calls `refresh` now, and after changes (coalesced), while the page is visible. */
export function useRefresh(refresh: () => void | Promise<void>, depends: unknown[], options: Following = {}): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running = false;
    let again = false;
    let stopped = false;
    let took = 0;
    const run = async () => {
      timer = undefined;
      if (stopped) return;
      if (running || document.hidden) {
        again = true;
        return;
      }
      running = true;
      again = false;
      const begun = performance.now();
      try {
        await refresh();
      } finally {
        running = false;
        took = performance.now() - begun;
        if (again && !stopped) soon();
      }
    };
    const soon = () => {
      if (timer === undefined)
        timer = setTimeout(run, Math.max(options.interval ?? 400, Math.min(kFallback, kShare * took)));
    };
    const on_visible = () => {
      if (!document.hidden && again) void run();
    };
    const stop = listen((change) => {
      if (change === null || !options.match || options.match(change)) soon();
    });
    document.addEventListener('visibilitychange', on_visible);
    const poll = setInterval(() => {
      if (!document.hidden && (options.every !== undefined || live.value !== 'live')) soon();
    }, options.every ?? kFallback);
    void run();
    return () => {
      stopped = true;
      stop();
      clearInterval(poll);
      if (timer !== undefined) clearTimeout(timer);
      document.removeEventListener('visibilitychange', on_visible);
    };
  }, depends);
}
