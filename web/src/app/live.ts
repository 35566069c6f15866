// Keeps the page up to date: one stream reports each change of a job, array, sweep or schedule, with its
// row. A view shows the row, or repeats its request, at most once per interval. While the stream is
// open, views do not poll what it reports.
//
// The stream is read with fetch, because EventSource never reconnects after a 503, the answer of a server
// that restarts. The stream begins at the present: after an interruption, the views repeat their
// requests, and the changes that were missed do not matter. The stream of a hidden page is closed (stream.ts).
import {signal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {JobRow, RemovedJob} from '../api/types';
import {logged_out, send} from '../api/client';
import {kSilence, keep_open} from './stream';

export type LiveState = 'connecting' | 'live' | 'lost';
export const live = signal<LiveState>('connecting');
export const lost_since = signal<number>(0);
/** Server time minus the time of this machine, in milliseconds. */
export const clock_offset = signal(0);

/** The present time of the server, in milliseconds: the clock of this machine may be wrong. */
export function server_now(): number {
  return Date.now() + clock_offset.value;
}

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

type Listener = (change: Change | null, reopened?: boolean) => void;
const listeners = new Set<Listener>();

/** Reports a change to every view. Null: anything may have changed. `reopened`: because the stream was opened again. */
export function announce(change: Change | null, reopened = false): void {
  for (const listener of [...listeners]) listener(change, reopened);
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

/** The longest time for which the page waits for the stream before it opens the first view, in milliseconds. */
export const kOpeningPause = 300;

/**
 * Follows the stream for the life of the page, while the page is visible. Resolves when the first view may be opened: when
 * the stream is open, or after kOpeningPause. Views that precede the stream repeat their requests when it opens.
 * Whenever the views repeat their requests, `reopened` is called as well. The server ends the stream when the rights of
 * the user change.
 */
export function start_live(reopened: () => void = () => {}): Promise<void> {
  let was_live = false;
  let has_views = false;
  let open_views = () => {};
  const opening = new Promise<void>((resolve) => {
    open_views = () => {
      has_views = true;
      resolve();
    };
  });
  const limit = setTimeout(open_views, kOpeningPause);
  void keep_open(
    {
      open: (signal) => send('GET', '/v1/watch/jobs', {query: {rows: true, existing: 'false'}, signal}),
      opened: (answer) => {
        const date = Date.parse(answer.headers.get('date') ?? '');
        if (date) clock_offset.value = date - Date.now();
        was_live = true;
        live.value = 'live';
        lost_since.value = 0;
        // The stream does not report what changed before. A view that listens has already sent its request, whose answer
        // may be older than the stream; a view that is opened later sends its request after this.
        if (has_views) {
          announce(null, true);
          reopened();
        }
        clearTimeout(limit);
        open_views();
      },
      take: ({event, data}) => {
        const change = change_of(event, data);
        if (change === null) return 'again';
        if (change) announce(change);
        return undefined;
      },
      interrupted: (_fault, tries) => {
        if (!lost_since.value) lost_since.value = Date.now();
        live.value = was_live || tries > 1 ? 'lost' : 'connecting';
      },
      hidden: () => {
        live.value = 'connecting';
        lost_since.value = 0;
      },
    },
    new AbortController().signal,
  );
  return opening;
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
 * Calls `give_up` if a request is not answered in kSilence, or in kRetryPause after the stream was opened again: a
 * connection may be lost without a sign, and the request would then wait for minutes. `tries` is the number of earlier
 * requests that were given up; each of them doubles both times, so that a slow answer arrives in the end.
 *
 * Returns a function to call when the request has ended.
 */
export function limit_request(tries: number, give_up: () => void): () => void {
  let timer: ReturnType<typeof setTimeout> | undefined;
  let at = Infinity;
  const end_within = (pause: number) => {
    at = Math.min(at, performance.now() + pause * 2 ** tries);
    clearTimeout(timer);
    timer = setTimeout(check, at - performance.now());
  };
  const check = () => {
    // A request that waits for a login is not lost, and a hidden page sends no request in its place.
    if (logged_out.value || document.hidden) {
      at = Infinity;
      end_within(kRetryPause);
      return;
    }
    end();
    give_up();
  };
  const stop = listen((_change, reopened) => {
    if (reopened) end_within(kRetryPause);
  });
  const end = () => {
    stop();
    clearTimeout(timer);
  };
  end_within(kSilence);
  return end;
}

/**
 * Calls `refresh` now, and after changes (coalesced), while the page is visible. `refresh` resolves to whether the
 * server answered. If not, it is called again after kRetryPause: one request may fail while the stream stays open, and
 * then no event and no reconnection would repeat it.
 *
 * A call that is not answered in time is replaced by another one: `refresh` aborts its earlier request itself.
 *
 * Returns a function that requests the missing data at once, with `refresh(true)`. This call replaces a running one.
 */
export function useRefresh(
  refresh: (only_missing: boolean) => Promise<boolean>,
  depends: unknown[],
  options: Following = {},
): () => void {
  const ask = useRef(() => {});
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let running = false;
    let again = false;
    let stopped = false;
    let took = 0;
    let turn = 0;
    let given_up = 0;
    let end_limit = () => {};
    const run = async (only_missing: boolean, replaces = only_missing) => {
      if (stopped) return;
      if (document.hidden || (running && !replaces)) {
        again = true;
        return;
      }
      const mine = ++turn;
      running = true;
      // A call for the missing data does not renew what the view shows already.
      if (!only_missing) again = false;
      end_limit();
      end_limit = limit_request(given_up, () => {
        given_up++;
        void run(false, true);
      });
      const begun = performance.now();
      let answered = true;
      try {
        answered = await refresh(only_missing);
      } finally {
        if (mine === turn) {
          running = false;
          end_limit();
          if (answered) given_up = 0;
          took = performance.now() - begun;
          if ((again || !answered) && !stopped) soon(answered ? 0 : kRetryPause);
        }
      }
    };
    const soon = (pause = 0) => {
      timer ??= setTimeout(
        () => {
          timer = undefined;
          void run(false);
        },
        Math.max(pause, options.interval ?? 400, Math.min(kFallback, kShare * took)),
      );
    };
    ask.current = () => void run(true);
    const on_visible = () => {
      if (!document.hidden && again) void run(false);
    };
    const stop = listen((change) => {
      if (change === null || !options.match || options.match(change)) soon();
    });
    document.addEventListener('visibilitychange', on_visible);
    const poll = setInterval(() => {
      if (!document.hidden && (options.every !== undefined || live.value !== 'live')) soon();
    }, options.every ?? kFallback);
    void run(false);
    return () => {
      stopped = true;
      stop();
      end_limit();
      clearInterval(poll);
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', on_visible);
    };
  }, depends);
  return () => ask.current();
}
