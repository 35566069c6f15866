import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {announce, kRetryPause} from '../../app/live';
import {kSilence} from '../../app/stream';
import {WindowSource} from './window_source';

/** A log of numbered lines on a server; `first` lines were deleted. */
let lines = 0;
let first = 0;
let attempt = 1;
let asked: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', Object.assign(new EventTarget(), {hidden: false}));
  asked = [];
  first = 0;
  attempt = 1;
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    const query = new URL(url, 'http://x').searchParams;
    const count = Number(query.get('lines'));
    const begin = Math.max(first, query.has('line') ? Number(query.get('line')) : lines - count);
    const records = [];
    for (
      let line = begin;
      line < Math.min(lines, (query.has('line') ? Number(query.get('line')) : begin) + count);
      line++
    )
      records.push({
        line,
        time: '2026-01-31T12:00:00Z',
        task: 'main',
        host: 'x',
        stream: 'output',
        text: attempt === 1 ? `line ${line}` : `line ${line} of attempt ${attempt}`,
      });
    return Promise.resolve(
      new Response(JSON.stringify({attempt, lines, first, bytes: lines * 10, complete: true, records})),
    );
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const source = (grows = () => true) => new WindowSource({id: 'j', task: 'main', attempt: ''}, grows, () => {});
/** A source whose changes make the page ask for a range, as the page does. */
function source_of_page(begin: number, end: number, grows = () => true): WindowSource {
  const mine: WindowSource = new WindowSource(
    {id: 'j', task: 'main', attempt: ''},
    grows,
    () => void Promise.resolve().then(() => mine.want(begin, end)),
  );
  return mine;
}
/** Answers each request with a status; `blocks`: only requests for a block. */
function refuse(status: number, blocks = false): void {
  const answer = fetch;
  vi.stubGlobal('fetch', (url: string) => {
    if (blocks && !url.includes('line=')) return answer(url);
    asked.push(url);
    return Promise.resolve(Response.json({detail: 'refused'}, {status}));
  });
}
const settle = async () => {
  for (let i = 0; i < 20; i++) await vi.advanceTimersByTimeAsync(0);
};
/** Requests a range until it is complete, as the page does after each answer. */
async function see(mine: WindowSource, begin: number, end: number): Promise<string[]> {
  for (let i = 0; i < 5; i++) {
    mine.want(begin, end);
    await settle();
  }
  return Array.from({length: end - begin}, (_, i) => mine.at(begin + i)?.text ?? '');
}
const expected = (begin: number, end: number, shift = 0) =>
  Array.from({length: end - begin}, (_, i) => `line ${begin + i + shift}`);

test('any part of a log of ten million lines is fetched by its numbers', async () => {
  lines = 10_000_000;
  const mine = source();
  await settle();
  expect(mine.length).toBe(lines);
  for (const begin of [0, 123_456, 5_000_000, lines - 50])
    expect(await see(mine, begin, begin + 50)).toEqual(expected(begin, begin + 50));
  expect(asked.length).toBeLessThan(12);
  mine.stop();
});

test('a log that grows shows every line once, also when it grows fast', async () => {
  lines = 10;
  const mine = source();
  await settle();
  for (const growth of [5, 90, 700, 3, 2000]) {
    lines += growth;
    await vi.advanceTimersByTimeAsync(1000);
    await settle();
    expect(mine.length).toBe(lines);
    expect(await see(mine, 0, lines)).toEqual(expected(0, lines));
  }
  mine.stop();
});

test('a log whose beginning was deleted begins with the first line that is there', async () => {
  lines = 5000;
  first = 1234;
  const mine = source();
  await settle();
  expect(mine.length).toBe(lines - first);
  expect(await see(mine, 0, 300)).toEqual(expected(0, 300, first));
  mine.stop();
});

test('a stopped source sends no requests', async () => {
  lines = 10;
  const mine = source();
  await settle();
  mine.stop();
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.length).toBe(before);
});

test('a log that the server refuses for a while is followed again', async () => {
  lines = 10;
  const mine = source();
  await settle();
  const answer = fetch;
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({detail: 'too many requests'}, {status: 429})));
  await vi.advanceTimersByTimeAsync(1000);
  expect((mine.fault as Error).message).toBe('too many requests');
  vi.stubGlobal('fetch', answer);
  lines = 20;
  await vi.advanceTimersByTimeAsync(15_000);
  await settle();
  expect(mine.fault).toBeNull();
  expect(mine.length).toBe(20);
  mine.stop();
});

test.each([
  ['when the stream of changes is opened again', () => announce(null, true), kRetryPause],
  ['after a silence', () => {}, kSilence],
])('a log whose request is never answered is followed again %s', async (_, reopen, pause) => {
  lines = 5000;
  const mine = source();
  await settle();
  const answer = fetch;
  // A connection that was lost without a sign.
  vi.stubGlobal(
    'fetch',
    (_url: string, {signal}: {signal: AbortSignal}) =>
      new Promise((_resolve, reject) =>
        signal.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError'))),
      ),
  );
  mine.want(0, 50);
  await vi.advanceTimersByTimeAsync(1000);
  vi.stubGlobal('fetch', answer);
  lines = 5020;
  reopen();
  // The poll that follows the aborted one.
  await vi.advanceTimersByTimeAsync(pause + 1000);
  await settle();
  expect(mine.length).toBe(5020);
  expect(await see(mine, 0, 50)).toEqual(expected(0, 50));
  mine.stop();
});

test('the lines of another attempt, or of a log that began anew, replace those of the same numbers', async () => {
  lines = 700;
  const mine = source();
  await settle();
  expect(await see(mine, 0, 700)).toEqual(expected(0, 700));
  attempt = 2;
  lines = 900;
  await vi.advanceTimersByTimeAsync(1000);
  await settle();
  expect(await see(mine, 0, 900)).toEqual(expected(0, 900).map((text) => `${text} of attempt 2`));
  attempt = 3;
  lines = 5;
  await vi.advanceTimersByTimeAsync(1000);
  await settle();
  expect(mine.length).toBe(5);
  expect(await see(mine, 0, 5)).toEqual(expected(0, 5).map((text) => `${text} of attempt 3`));
  mine.stop();
});

test('a block that was asked for before the log began anew is not shown', async () => {
  lines = 5000;
  const mine = source();
  await settle();
  const now = globalThis.fetch;
  let answer: (() => void) | undefined;
  vi.stubGlobal('fetch', async (url: string) => {
    const response = await now(url);
    await new Promise<void>((resolve) => (answer = resolve));
    return response;
  });
  mine.want(0, 50);
  await settle();
  vi.stubGlobal('fetch', now);
  attempt = 2;
  await vi.advanceTimersByTimeAsync(1000);
  await settle();
  answer!();
  await settle();
  expect(mine.at(0)).toBeUndefined();
  expect(await see(mine, 0, 3)).toEqual(expected(0, 3).map((text) => `${text} of attempt 2`));
  mine.stop();
});

test('a block that was asked for before the log began anew is asked for again, before the late answer', async () => {
  lines = 5000;
  const now = globalThis.fetch;
  let answer: (() => void) | undefined;
  vi.stubGlobal('fetch', async (url: string) => {
    const response = await now(url);
    const is_held = attempt === 1 && url.includes('line=0&');
    if (is_held) await new Promise<void>((resolve) => (answer = resolve));
    return response;
  });
  // As the page does, which asks for what it shows after each change.
  const mine = source_of_page(0, 50);
  await settle();
  expect(answer).toBeDefined();
  attempt = 2;
  await vi.advanceTimersByTimeAsync(1000);
  await settle();
  const shown = () => Array.from({length: 50}, (_, i) => mine.at(i)?.text ?? '');
  const wanted = expected(0, 50).map((text) => `${text} of attempt 2`);
  expect(shown()).toEqual(wanted);
  answer!();
  await settle();
  expect(shown()).toEqual(wanted);
  expect(asked.filter((url) => url.includes('line=0&')).length).toBe(2);
  mine.stop();
});

test.each<[string, () => void, number]>([
  ['has no lines', () => {}, 0],
  ['does not exist', () => refuse(404), 0],
  ['cannot be read', () => refuse(500, true), 5000],
])('a log that %s is requested at most once per second', async (_, prepare, end) => {
  lines = end;
  prepare();
  const mine = source_of_page(0, Math.min(50, end));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(asked.length).toBeGreaterThan(1);
  expect(asked.length).toBeLessThanOrEqual(11);
  mine.stop();
});

test('a block that failed is requested again after the next poll', async () => {
  lines = 5000;
  const answer = fetch;
  refuse(500, true);
  const mine = source_of_page(0, 50, () => false);
  await settle();
  expect(mine.fault).not.toBeNull();
  vi.stubGlobal('fetch', answer);
  await vi.advanceTimersByTimeAsync(15_000);
  await settle();
  expect(mine.at(0)?.text).toBe('line 0');
  expect(mine.fault).toBeNull();
  mine.stop();
});

test('a block that was answered without lines is requested again when the log has changed', async () => {
  lines = 5000;
  const answer = fetch;
  vi.stubGlobal('fetch', async (url: string) => {
    const sent = (await (await answer(url)).json()) as object;
    return Response.json(url.includes('line=') ? {...sent, records: []} : sent);
  });
  const mine = source_of_page(0, 50);
  await vi.advanceTimersByTimeAsync(10_000);
  const blocks = () => asked.filter((url) => url.includes('line=0&')).length;
  expect(blocks()).toBe(1);
  vi.stubGlobal('fetch', answer);
  lines++;
  await vi.advanceTimersByTimeAsync(1000);
  await settle();
  expect(blocks()).toBe(2);
  expect(mine.at(0)?.text).toBe('line 0');
  mine.stop();
});

test('while the server is unreachable, a log that was not read yet is requested every 3 seconds', async () => {
  let requests = 0;
  const answer = fetch;
  vi.stubGlobal('fetch', () => {
    requests++;
    return Promise.reject(new TypeError('failed to fetch'));
  });
  const mine = source();
  await vi.advanceTimersByTimeAsync(30_000);
  expect(requests).toBeGreaterThan(1);
  expect(requests).toBeLessThanOrEqual(11);
  vi.stubGlobal('fetch', answer);
  lines = 10;
  await vi.advanceTimersByTimeAsync(kRetryPause);
  expect(mine.length).toBe(10);
  mine.stop();
});

test('the log of a job that has ended is requested twice, and again when the page is visible again', async () => {
  lines = 100;
  const mine = source(() => false);
  await settle();
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.length).toBe(before + 1);
  lines = 120;
  document.dispatchEvent(new Event('visibilitychange'));
  await settle();
  expect(mine.length).toBe(120);
  mine.stop();
});

test('the log of a job that has ended is read again if the server has lost its index', async () => {
  lines = 10_000;
  const mine = source(() => false);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(mine.complete).toBe(true);
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.length).toBe(before);
  // The server reads 4,000 lines between two requests.
  const answer = fetch;
  lines = -2000;
  vi.stubGlobal('fetch', async (url: string) => {
    lines = Math.min(10_000, lines + 4000);
    const sent = (await (await answer(url)).json()) as object;
    return Response.json({...sent, complete: lines === 10_000});
  });
  mine.want(0, 50);
  await settle();
  expect([mine.total, mine.complete]).toEqual([2000, false]);
  await vi.advanceTimersByTimeAsync(1000);
  expect([mine.total, mine.complete]).toEqual([10_000, true]);
  for (const begin of [0, 5000, 9950]) expect(await see(mine, begin, begin + 50)).toEqual(expected(begin, begin + 50));
  await vi.advanceTimersByTimeAsync(20_000);
  const after = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.length).toBe(after);
  mine.stop();
});

test('the last lines of a job are shown also if the page was opened just after the end of the job', async () => {
  lines = 100;
  const mine = source(() => false);
  await settle();
  lines = 120;
  await vi.advanceTimersByTimeAsync(5000);
  expect(mine.length).toBe(120);
  mine.stop();
});

test('the lines that arrive at the end of a job are shown, and then the log is not requested any more', async () => {
  lines = 100;
  let grows = true;
  const mine = source(() => grows);
  await settle();
  grows = false;
  await vi.advanceTimersByTimeAsync(1000);
  lines = 120;
  await vi.advanceTimersByTimeAsync(20_000);
  expect(mine.length).toBe(120);
  const before = asked.length;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked.length).toBe(before);
  mine.stop();
});
