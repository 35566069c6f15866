// What keeps the page in step with the server: one stream of the events of jobs. An event does not
// carry the changed object; it makes the visible views ask again, at most once in a short interval.
//
// The stream is read with fetch, not EventSource: EventSource gives up for good when a server that
// restarts answers 503.
import {signal} from '@preact/signals';
import {useEffect} from 'preact/hooks';
import type {JobEvent} from '../api/types';
import {Failure, send} from '../api/client';
import {read_events} from '../api/events';

export type LiveState = 'connecting' | 'live' | 'lost';
export const live = signal<LiveState>('connecting');
export const lost_since = signal<number>(0);
/** Counts the reconnections; views that hold a stream of their own begin again. */
export const reconnections = signal(0);
/** Server time minus the time of this machine, in milliseconds. */
export const clock_offset = signal(0);

type Listener = (event: JobEvent | null) => void;
const listeners = new Set<Listener>();

function tell(event: JobEvent | null): void {
  for (const listener of [...listeners]) listener(event);
}

/** Calls `listener` for each event, and with null when anything may have changed. */
export function listen(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function anything_changed(): void {
  tell(null);
}

const kPauses = [300, 500, 1000, 2000, 3000];

export async function run_live(): Promise<never> {
  let last_id = '';
  let tries = 0;
  let was_live = false;
  for (;;) {
    try {
      const answer = await send('GET', '/v1/watch/events', {query: {last_event_id: last_id || undefined}});
      const date = Date.parse(answer.headers.get('date') ?? '');
      if (date) clock_offset.value = date - Date.now();
      tries = 0;
      live.value = 'live';
      lost_since.value = 0;
      if (was_live) {
        reconnections.value++;
        tell(null);
      }
      was_live = true;
      for await (const event of read_events(answer)) {
        if (event.id) last_id = event.id;
        if (event.event === 'event') tell(JSON.parse(event.data) as JobEvent);
        else if (event.event === 'reset') tell(null);
      }
    } catch (fault) {
      // An id from before a restart may be unknown to the new server.
      if (fault instanceof Failure && fault.status === 400) last_id = '';
    }
    if (!lost_since.value) lost_since.value = Date.now();
    live.value = was_live || tries > 1 ? 'lost' : 'connecting';
    await new Promise((resolve) => setTimeout(resolve, kPauses[Math.min(tries, kPauses.length - 1)]));
    tries++;
  }
}

/** Calls `refresh` now, after changes (coalesced), and now and then while the page is visible. */
export function useRefresh(
  refresh: () => void | Promise<void>,
  depends: unknown[],
  options: {match?: (event: JobEvent) => boolean; interval?: number; every?: number} = {},
): void {
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running = false;
    let again = false;
    let stopped = false;
    const run = async () => {
      timer = undefined;
      if (stopped) return;
      if (running || document.hidden) {
        again = true;
        return;
      }
      running = true;
      again = false;
      try {
        await refresh();
      } finally {
        running = false;
        if (again && !stopped) soon();
      }
    };
    const soon = () => {
      if (timer === undefined) timer = setTimeout(run, options.interval ?? 400);
    };
    const on_visible = () => {
      if (!document.hidden && again) void run();
    };
    const stop = listen((event) => {
      if (event === null || !options.match || options.match(event)) soon();
    });
    document.addEventListener('visibilitychange', on_visible);
    const poll = setInterval(() => {
      if (!document.hidden) soon();
    }, options.every ?? 15000);
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
