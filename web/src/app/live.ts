// Keeps the page up to date: one stream reports each change of a job, array, sweep or schedule, with its
// row. A view shows the row, or repeats its request, at most once per interval. While the stream is
// open, views do not poll what it reports.
//
// The stream is read with fetch, because EventSource never reconnects after a 503, the answer of a server
// that restarts. The stream begins at the present: after an interruption, the views repeat their
// requests, and the changes that were missed do not matter.
import {signal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import type {JobRow, RemovedJob} from '../api/types';
import {logged_out, send} from '../api/client';
import {read_events} from '../api/events';

export type LiveState = 'connecting' | 'live' | 'lost';
export const live = signal<LiveState>('connecting');
export const lost_since = signal<number>(0);
/** The number of reconnections so far; a view with a stream of its own then opens it again. */
export const reconnections = signal(0);
/** Server time minus the time of this machine, in milliseconds. */
export const clock_offset = signal(0);

/** A changed job, array, sweep or schedule, with its present row. No row: it was removed. */
export interface Change {
  id: string;
  name: string;
  row?: JobRow;
}

/** Whether a change is that of `object`, or of a job that it made: a member, a trial or a run. */
export function concerns(change: Change, object: string): boolean {
  const origin = change.row?.origin;
  return [change.id, change.name, origin?.id, origin?.name].includes(object);
}

type Listener = (change: Change | null) => void;
const listeners = new Set<Listener>();

function announce(change: Change | null): void {
  for (const listener of [...listeners]) listener(change);
}

/** Calls `listener` with each change, and with null when anything may have changed. The result ends that. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** Makes every view repeat its request, after a change that the user made. */
export function anything_changed(): void {
  announce(null);
}

/** The change that an event reports. Null: some changes were lost. Undefined: the event is no change. */
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

/** Reads the stream until it ends, fails, is silent for too long, or has lost changes. */
async function follow(opened: () => void): Promise<void> {
  const abort = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const restart_timer = () => {
    clearTimeout(timer);
    timer = setTimeout(() => (logged_out.value ? restart_timer() : abort.abort()), kSilence);
  };
  try {
    restart_timer();
    const answer = await send('GET', '/v1/watch/jobs', {
      query: {rows: true, existing: 'false'},
      signal: abort.signal,
    });
    const date = Date.parse(answer.headers.get('date') ?? '');
    if (date) clock_offset.value = date - Date.now();
    opened();
    for await (const {event, data} of read_events(answer, restart_timer)) {
      const change = change_of(event, data);
      if (change === null) return;
      if (change) announce(change);
    }
  } finally {
    clearTimeout(timer);
    abort.abort();
  }
}

/** Follows the stream for the life of the page, and reconnects after every interruption. */
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
          announce(null);
        }
        was_live = true;
      });
    } catch {
      // Every failure is a lost connection, which is reported below.
    }
    if (!lost_since.value) lost_since.value = Date.now();
    live.value = was_live || tries > 1 ? 'lost' : 'connecting';
    await new Promise((resolve) => setTimeout(resolve, kPauses[Math.min(tries, kPauses.length - 1)]));
    tries++;
  }
}

/** How a view follows the server. */
export interface Following {
  /** Which changes make the view repeat its request. Default: all. */
  match?: (change: Change) => boolean;
  /** The shortest time between two requests, in milliseconds. */
  interval?: number;
  /** For data that the stream does not report: repeat the request after so many milliseconds. */
  every?: number;
}

/** A request that took t ms is repeated after 9 t at the earliest: a large answer takes at most a tenth of the time. */
const kShare = 9;
/** How often a view repeats its request while the stream is not open. */
const kFallback = 15_000;
/** The pause before a request is repeated that the server did not answer. */
export const kRetryPause = 3000;

/**
 * Calls `refresh` now, and after changes (coalesced), while the page is visible. `refresh` resolves to whether the
 * server answered. If not, it is called again after kRetryPause: one request may fail while the stream stays open, and
 * then no event and no reconnection would repeat it.
 */
export function useRefresh(refresh: () => Promise<boolean>, depends: unknown[], options: Following = {}): void {
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
      let answered = true;
      try {
        answered = await refresh();
      } finally {
        running = false;
        took = performance.now() - begun;
        if ((again || !answered) && !stopped) soon(answered ? 0 : kRetryPause);
      }
    };
    const soon = (pause = 0) => {
      if (timer === undefined)
        timer = setTimeout(run, Math.max(pause, options.interval ?? 400, Math.min(kFallback, kShare * took)));
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
