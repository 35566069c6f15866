// @vitest-environment jsdom
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {kHidden} from '../../app/stream';
import {pattern_of} from '../../ui/ansi';
import {LogSource} from './log_source';

/** What the page has asked for, and a function that sends a piece of the answer. */
let asked: {place: string | null; tail: string | null}[];
let send: (text: string) => void;
let cut: () => void;
/** The server's date, in each answer. */
let date: string | undefined;

beforeEach(() => {
  vi.useFakeTimers();
  asked = [];
  date = undefined;
  vi.stubGlobal('fetch', (url: string, {signal, headers}: {signal: AbortSignal; headers: Record<string, string>}) => {
    const query = new URL(url, 'https://server').searchParams;
    asked.push({place: headers['last-event-id'] ?? null, tail: query.get('tail')});
    const body = new ReadableStream({
      start: (controller) => {
        send = (text) => controller.enqueue(new TextEncoder().encode(text));
        cut = () => controller.error(new TypeError('network'));
        signal.addEventListener('abort', () => controller.error(new DOMException('aborted', 'AbortError')));
      },
    });
    return Promise.resolve(new Response(body, {headers: date ? {date} : {}}));
  });
});
afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = (ms = 0) => vi.advanceTimersByTimeAsync(ms);
const log = (...texts: unknown[]) =>
  texts
    .map(
      (text) => `event: log\ndata: ${JSON.stringify({time: '', task: 'a', stream: 'output', text: String(text)})}\n\n`,
    )
    .join('');
const place = (id: string) => `id: ${id}\n\n`;
const texts = (source: LogSource) => source.lines.map((line) => line.text).join(' ');

async function start(more = {}): Promise<LogSource> {
  const query = {id: 'j', task: '', rank: '', grep: '', level: '' as const, since: '', attempt: '', tail: 100, ...more};
  const source = new LogSource(query, () => {});
  await settle();
  return source;
}

function show_tab(visible: boolean): void {
  Object.defineProperty(document, 'hidden', {configurable: true, get: () => !visible});
  document.dispatchEvent(new Event('visibilitychange'));
}

test('after an interruption, no line is lost or repeated', async () => {
  const source = await start();
  send(place('p0') + log(1, 2) + place('p2') + log(3, 4, 5));
  await settle();
  cut();
  await settle(1000);
  expect(asked).toEqual([
    {place: null, tail: '100'},
    {place: 'p2', tail: null},
  ]);
  // The lines after the last place come again, in other pieces: one is new.
  send(log(3, 4) + place('p4'));
  await settle();
  cut();
  await settle(1000);
  expect(asked.at(-1)!.place).toBe('p4');
  send(log(5, 6) + place('p6') + log(7));
  await settle();
  expect(texts(source)).toBe('1 2 3 4 5 6 7');
  source.stop();
});

const record = (more: object) => `event: log\ndata: ${JSON.stringify({time: '', stream: 'output', ...more})}\n\n`;

test('after an interruption, the server may divide the lines differently', async () => {
  const source = await start();
  const latin1 = {task: 'b', base64: btoa('caf\xe9')};
  send(place('p0') + record({task: 'a', text: 'é abc', continues: true}) + record({...latin1, continues: true}));
  await settle();
  cut();
  await settle(1000);
  send(record({task: 'a', text: 'é abcdef'}) + record({task: 'b', base64: btoa('caf\xe9 noir')}));
  await settle();
  expect(source.lines.map((line) => line.text)).toEqual(['é abc', 'caf\ufffd', 'def', ' noir']);
  cut();
  await settle(1000);
  // The newlines of the lines count: nothing else is new.
  send(record({task: 'a', text: 'é ', continues: true}) + record({task: 'a', text: 'abcdef'}) + record(latin1));
  await settle();
  expect(source.lines.length).toBe(4);
  source.stop();
});

test('after an interruption, the lines of several tasks may come in another order', async () => {
  const source = await start();
  const line = (task: string, text: string) => record({task, text});
  send(place('p0') + line('a', 'a1') + line('a', 'a2') + line('b', 'b1'));
  await settle();
  cut();
  await settle(1000);
  send(line('b', 'b1') + line('b', 'b2') + line('a', 'a1') + line('b', 'b3') + line('a', 'a2') + line('a', 'a3'));
  await settle();
  expect(texts(source)).toBe('a1 a2 b1 b2 b3 a3');
  source.stop();
});

test('each attempt, rank and stream of a task is counted by itself', async () => {
  const source = await start();
  const sources = [{}, {attempt: 1}, {attempt: 2}, {rank: 1}, {rank: 2}, {stream: 'error'}];
  for (const more of sources) {
    send(record({task: 'a', text: 'x', ...more}));
    await settle();
    cut();
    await settle(1000);
  }
  send(sources.map((more) => record({task: 'a', text: 'x', ...more})).join(''));
  await settle();
  expect(source.lines.length).toBe(sources.length);
  source.stop();
});

test('the log of a hidden page is closed, and continues where it was', async () => {
  show_tab(true);
  const source = await start();
  send(place('p0') + log(1) + place('p1'));
  await settle();
  show_tab(false);
  await settle(kHidden + 60_000);
  expect(asked.length).toBe(1);
  show_tab(true);
  await settle();
  expect(asked.at(-1)!.place).toBe('p1');
  send(log(2) + place('p2') + 'event: end\ndata: {}\n\n');
  await settle();
  expect([texts(source), source.ended]).toEqual(['1 2', true]);
});

test('a log from a time on continues after a cut before its first place', async () => {
  const source = await start({since: '2026-11-30T12:00:00Z'});
  send(log(1, 2));
  await settle();
  cut();
  await settle(1000);
  send(log(1, 2, 3) + place('p3'));
  await settle();
  expect(texts(source)).toBe('1 2 3');
  source.stop();
});

const timed = (n: number, time: string, stream = 'output') =>
  `event: log\ndata: ${JSON.stringify({time, task: 'a', stream, text: 'x'})}\n\n`.repeat(n);

test('lines that are printed after the first answer do not make the log a cut one', async () => {
  // The clock of this machine differs from that of the server.
  vi.setSystemTime(new Date('2026-11-30T09:00:00Z'));
  date = 'Mon, 30 Nov 2026 12:00:00 GMT';
  const source = await start();
  send(place('p0') + timed(10, '2026-11-30T11:59:00Z') + place('p1'));
  await settle(5000);
  send(timed(500, '2026-11-30T12:00:05.123456789Z') + place('p2'));
  await settle();
  expect([source.lines.length, source.is_cut]).toEqual([510, false]);
  source.stop();
});

test('a log is cut if its first answer has all lines that were asked for, also after a long search', async () => {
  date = 'Mon, 30 Nov 2026 12:00:00 GMT';
  const source = await start();
  // Some lines were printed during the search.
  await settle(20_000);
  send(place('p0') + timed(60, '2026-11-30T11:00:00Z') + timed(40, '2026-11-30T12:00:18Z') + place('p1'));
  await settle();
  expect(source.is_cut).toBe(true);
  source.stop();
});

test('the lines of a node whose clock is fast count as former ones if they come at once', async () => {
  date = 'Mon, 30 Nov 2026 12:00:00 GMT';
  const source = await start();
  send(place('p0') + timed(100, '2026-11-30T13:00:00Z') + place('p1'));
  await settle();
  expect(source.is_cut).toBe(true);
  source.stop();
});

test('notices are shown, but do not match', async () => {
  const source = await start({grep: 'x'});
  send(place('p0') + timed(2, '2026-11-30T12:00:00Z') + timed(1, '2026-11-30T12:00:00Z', 'notice') + place('p1'));
  await settle();
  expect([source.lines.length, source.matches]).toEqual([3, 2]);
  source.stop();
});

test('the server takes the patterns of the levels: they have at most 200 bytes and no lookahead', () => {
  for (const level of ['error', 'warning'] as const) {
    expect(pattern_of(level).length).toBeLessThanOrEqual(200);
    expect(pattern_of(level)).not.toMatch(/\(\?[=!<]|\\\d/);
  }
});
