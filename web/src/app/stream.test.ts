// @vitest-environment jsdom
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {kOpeningPause, listen, live, start_live} from './live';
import {kHidden, kSilence, keep_open} from './stream';

/** The streams that the page has opened, each with its signal and a function that sends a piece. */
interface Opened {
  signal: AbortSignal;
  send: (text: string) => void;
  end: () => void;
}
let opened: Opened[] = [];
let stop: AbortController;

/** An answer whose body is sent by the test, and which breaks when the page aborts the request. */
function stream_answer(signal: AbortSignal): Response {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      opened.push({
        signal,
        send: (text) => controller.enqueue(encoder.encode(text)),
        end: () => controller.close(),
      });
      signal.addEventListener('abort', () => {
        try {
          controller.error(new DOMException('aborted', 'AbortError'));
        } catch {
          // It has ended.
        }
      });
    },
  });
  return new Response(body);
}

function show(visible: boolean): void {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => !visible});
  document.dispatchEvent(new Event('visibilitychange'));
}

const settle = () => vi.advanceTimersByTimeAsync(0);

beforeEach(() => {
  vi.useFakeTimers();
  opened = [];
  stop = new AbortController();
  show(true);
});
afterEach(async () => {
  stop.abort();
  await settle();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a page that has been hidden for a while closes its stream, and opens it again when it is visible', async () => {
  const events: string[] = [];
  let interruptions = 0;
  void keep_open(
    {
      open: (signal) => Promise.resolve(stream_answer(signal)),
      take: ({data}) => void events.push(data),
      interrupted: () => void interruptions++,
    },
    stop.signal,
  );
  await settle();
  opened[0]!.send('data: one\n\n');
  show(false);
  await vi.advanceTimersByTimeAsync(kHidden - 1);
  expect(opened[0]!.signal.aborted).toBe(false);
  show(true);
  await vi.advanceTimersByTimeAsync(2 * kHidden);
  expect(opened[0]!.signal.aborted).toBe(false);

  show(false);
  await vi.advanceTimersByTimeAsync(kHidden);
  expect(opened[0]!.signal.aborted).toBe(true);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(opened.length).toBe(1);
  show(true);
  await settle();
  expect(opened.length).toBe(2);
  opened[1]!.send('data: two\n\n');
  await settle();
  expect(events).toEqual(['one', 'two']);
  expect(interruptions).toBe(0);
});

test('a page that is opened in the background opens no stream', async () => {
  show(false);
  const open = vi.fn((signal: AbortSignal) => Promise.resolve(stream_answer(signal)));
  void keep_open({open, take: () => undefined}, stop.signal);
  await vi.advanceTimersByTimeAsync(600_000);
  expect(open).not.toHaveBeenCalled();
  show(true);
  await settle();
  expect(open).toHaveBeenCalledOnce();
});

test('a stream is opened again after an end, a failure and a silence, and not after its own end', async () => {
  const tries: number[] = [];
  const faults: unknown[] = [];
  const failure = new Error('refused');
  let refuses = false;
  const ended = keep_open(
    {
      open: (signal) => (refuses ? Promise.reject(failure) : Promise.resolve(stream_answer(signal))),
      take: ({event}) => (event === 'end' ? 'end' : event === 'reset' ? 'again' : undefined),
      interrupted: (fault, count) => {
        faults.push(fault);
        tries.push(count);
      },
    },
    stop.signal,
  );
  await settle();
  refuses = true;
  opened[0]!.end();
  await vi.advanceTimersByTimeAsync(300 + 500);
  refuses = false;
  await vi.advanceTimersByTimeAsync(1000);
  expect(opened.length).toBe(2);
  expect(tries).toEqual([0, 1, 2]);
  expect(faults).toEqual([undefined, failure, failure]);

  // Comments are signs of life.
  opened[1]!.send(':\n\n');
  await vi.advanceTimersByTimeAsync(kSilence - 1);
  opened[1]!.send(':\n\n');
  await vi.advanceTimersByTimeAsync(kSilence - 1);
  expect(opened[1]!.signal.aborted).toBe(false);
  await vi.advanceTimersByTimeAsync(1 + 300);
  expect(opened.length).toBe(3);
  expect(tries.at(-1)).toBe(0);

  opened[2]!.send('event: reset\ndata: {}\n\n');
  await vi.advanceTimersByTimeAsync(500);
  expect(opened.length).toBe(4);
  opened[3]!.send('event: end\ndata: {}\n\n');
  await ended;
  expect(opened.length).toBe(4);
});

test('the views wait for the stream of changes; each later opening makes them repeat their requests', async () => {
  vi.stubGlobal('fetch', (_url: string, {signal}: {signal: AbortSignal}) => Promise.resolve(stream_answer(signal)));
  const changes: unknown[] = [];
  const openings: unknown[] = [];
  const stop_listening = listen((change, reopened) => {
    changes.push(change && change.id);
    openings.push(reopened);
  });
  const open_views = vi.fn();
  const reopened = vi.fn();
  void start_live(reopened).then(open_views);
  expect(open_views).not.toHaveBeenCalled();
  await settle();
  expect(open_views).toHaveBeenCalledOnce();
  await vi.advanceTimersByTimeAsync(2 * kOpeningPause);
  expect(changes).toEqual([]);
  opened[0]!.send('event: row\ndata: {"id":"j1","name":"a"}\n\n');
  await settle();
  expect(changes).toEqual(['j1']);
  expect(reopened).not.toHaveBeenCalled();
  show(false);
  await vi.advanceTimersByTimeAsync(kHidden);
  expect(live.value).toBe('connecting');
  show(true);
  await settle();
  expect(live.value).toBe('live');
  expect(changes).toEqual(['j1', null]);
  expect(openings).toEqual([false, true]);
  expect(reopened).toHaveBeenCalledOnce();
  stop_listening();
});

test('a stream of changes that opens late makes the views repeat their requests', async () => {
  let answer: () => void = () => {};
  vi.stubGlobal(
    'fetch',
    (_url: string, {signal}: {signal: AbortSignal}) =>
      new Promise<Response>((resolve) => (answer = () => resolve(stream_answer(signal)))),
  );
  const changes: unknown[] = [];
  const stop_listening = listen((change) => changes.push(change));
  const open_views = vi.fn();
  void start_live().then(open_views);
  await vi.advanceTimersByTimeAsync(kOpeningPause - 1);
  expect(open_views).not.toHaveBeenCalled();
  await vi.advanceTimersByTimeAsync(1);
  expect(open_views).toHaveBeenCalledOnce();
  expect(changes).toEqual([]);
  answer();
  await settle();
  expect(changes).toEqual([null]);
  stop_listening();
});
