import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {WindowSource} from './window_source';

/** A log of numbered lines on a server; `first` lines were deleted. */
let lines = 0;
let first = 0;
let asked: string[] = [];

beforeEach(() => {
  vi.useFakeTimers();
  vi.stubGlobal('document', {hidden: false});
  asked = [];
  first = 0;
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
        text: `line ${line}`,
      });
    return Promise.resolve(new Response(JSON.stringify({lines, first, bytes: lines * 10, complete: true, records})));
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const source = () =>
  new WindowSource(
    {id: 'j', task: 'main', attempt: ''},
    () => true,
    () => {},
  );
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
