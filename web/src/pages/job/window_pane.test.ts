// @vitest-environment jsdom
// Tests the search in the log of one task: which requests it sends, and what it shows after each answer.
import {h, render} from 'preact';
import {act} from 'preact/test-utils';
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {kRetryPause} from '../../app/live';
import {navigate} from '../../app/router';
import {WindowPane} from './window_pane';

/** The answer to one request of a search. */
interface Part {
  hits: number[];
  next?: number;
}
/** By the line at which a request begins. Other requests have no answer. */
let answers: Record<number, Part>;
/** The pattern and the first line of each request of a search. */
let asked: string[];
/** A request that begins at this line is answered by release(). */
let held: number | undefined;
let release: () => void;
let root: HTMLElement;

let extent = {attempt: 1, lines: 1000, first: 0, bytes: 9000, complete: true};
const record = (line: number) => ({
  line,
  time: '2026-01-31T12:00:00Z',
  task: 'main',
  stream: 'output',
  text: `loss at ${line}`,
  hit: true,
});
const hits = (begin: number, count: number) => Array.from({length: count}, (_, i) => begin + i);

beforeEach(() => {
  vi.useFakeTimers();
  extent = {...extent, lines: 1000, complete: true};
  answers = {};
  asked = [];
  held = undefined;
  vi.stubGlobal('fetch', (url: string, init: RequestInit) => {
    const {pathname, searchParams} = new URL(url, 'https://server');
    if (!pathname.endsWith('/log-search'))
      return Promise.resolve(new Response(JSON.stringify({...extent, records: []})));
    const begin = Number(searchParams.get('line') ?? 0);
    asked.push(`${searchParams.get('q')} from ${begin}`);
    const part = answers[begin];
    if (!part) return Promise.reject(new TypeError('failed to fetch'));
    const most = Number(searchParams.get('hits'));
    const records = part.hits.slice(0, most).map(record);
    const next = part.hits[most] ?? part.next;
    const answer = new Response(JSON.stringify({...extent, records, next}));
    if (begin !== held) return Promise.resolve(answer);
    return new Promise((resolve, reject) => {
      release = () => resolve(answer);
      init.signal!.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
    });
  });
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  vi.stubGlobal('matchMedia', () => ({matches: false}));
  vi.stubGlobal('scrollTo', () => {});
  root = document.body.appendChild(document.createElement('div'));
});
afterEach(async () => {
  await act(() => render(null, root));
  root.remove();
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const settle = () =>
  act(async () => {
    for (let i = 0; i < 20; i++) await vi.advanceTimersByTimeAsync(0);
  });
const wait = (ms: number) =>
  act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
async function search(pattern: string): Promise<void> {
  navigate(`/jobs/j/logs?task=main&grep=${pattern}`, {replace: true});
  const job = {id: 'j', attempt: 1, phase: 'Succeeded', spec: {kind: 'single'}, tasks: [{name: 'main'}]} as never;
  await act(() => render(h(WindowPane, {job, task: 'main', follow: {value: false}, times: false}), root));
  await settle();
}
const status = () => root.querySelector('.search-hits [role=status]')!.textContent!;
const shown = () => [...root.querySelectorAll('.hit a')].map((link) => Number(link.textContent) - 1);
const button = () => root.querySelector<HTMLButtonElement>('.search-hits button');

test('a search that the server ends early is continued up to the end of the log', async () => {
  answers = {0: {hits: [3], next: 400}, 400: {hits: [], next: 800}, 800: {hits: [801, 999]}};
  held = 800;
  await search('loss');
  expect(asked).toEqual(['loss from 0', 'loss from 400', 'loss from 800']);
  expect(status()).toContain('1 line matches so far');
  expect(status()).toContain('Searching from line 801…');
  expect(button()).toBeNull();
  release();
  await settle();
  expect(status()).toContain('3 lines match in the whole log');
  expect(shown()).toEqual([3, 801, 999]);
  expect(button()).toBeNull();
});

test('a search with many hits waits for the user after 200 hits', async () => {
  answers = {
    0: {hits: hits(0, 150), next: 150},
    150: {hits: hits(150, 50), next: 200},
    200: {hits: hits(200, 200), next: 400},
    400: {hits: [999]},
  };
  await search('loss');
  expect(asked.length).toBe(2);
  expect(status()).toContain('200 lines match so far');
  await act(() => button()!.click());
  await settle();
  expect(asked.length).toBe(3);
  expect(status()).toContain('400 lines match so far');
  expect(button()!.textContent).toBe('Continue the search from line 401');
  await act(() => button()!.click());
  await settle();
  expect(shown()).toEqual([...hits(0, 400), 999]);
  expect(status()).toContain('401 lines match in the whole log');
});

test('a part of a search shows no more than 200 hits', async () => {
  answers = {0: {hits: hits(0, 199), next: 300}, 300: {hits: hits(300, 200), next: 600}};
  await search('loss');
  expect(status()).toContain('200 lines match so far');
  expect(shown()).toEqual([...hits(0, 199), 300]);
  expect(button()!.textContent).toBe('Continue the search from line 302');
});

test('a search that the server does not answer is continued by itself where it failed', async () => {
  answers = {0: {hits: hits(0, 150), next: 400}};
  await search('loss');
  const note = () => root.querySelector('.search-hits [role=alert]');
  expect(note()!.textContent).toContain('the page tries again by itself');
  expect(asked).toEqual(['loss from 0', 'loss from 400']);
  await wait(kRetryPause);
  expect(asked).toEqual(['loss from 0', 'loss from 400', 'loss from 400']);
  expect(note()).not.toBeNull();
  // The hits from before the failure count.
  answers = {400: {hits: hits(400, 100)}};
  await wait(kRetryPause);
  await settle();
  expect(note()).toBeNull();
  expect(shown()).toEqual([...hits(0, 150), ...hits(400, 50)]);
});

test('a search that has failed ends with its view', async () => {
  await search('loss');
  await act(() => render(null, root));
  await wait(3 * kRetryPause);
  expect(asked).toEqual(['loss from 0']);
});

test('a new pattern ends the search for the former one', async () => {
  answers = {0: {hits: [3], next: 400}, 400: {hits: [401], next: 800}, 800: {hits: []}};
  held = 400;
  await search('loss');
  held = undefined;
  answers = {0: {hits: [7]}};
  await search('epoch');
  expect(asked).toEqual(['loss from 0', 'loss from 400', 'epoch from 0']);
  expect(shown()).toEqual([7]);
  expect(status()).toContain('1 line matches in the whole log');
});

test('a search that fails keeps its hits, and is continued where it failed', async () => {
  answers = {0: {hits: [3], next: 400}};
  await search('loss');
  expect(root.querySelector('.search-hits [role=alert]')!.textContent).toContain('the server does not answer');
  expect(shown()).toEqual([3]);
  expect(button()!.textContent).toBe('Continue the search from line 401');
  answers = {400: {hits: [401]}};
  await act(() => button()!.click());
  await settle();
  expect(root.querySelector('.search-hits [role=alert]')).toBeNull();
  expect(shown()).toEqual([3, 401]);
});

test('a search without an answer does not show that no line matches', async () => {
  await search('loss');
  expect(root.querySelector('.search-hits [role=alert]')!.textContent).toContain('the server does not answer');
  expect(status()).not.toContain('match');
});

test('a search that makes no progress is not repeated by itself', async () => {
  answers = {0: {hits: [3], next: 400}, 400: {hits: [], next: 400}};
  await search('loss');
  expect(asked).toEqual(['loss from 0', 'loss from 400']);
  expect(button()!.textContent).toBe('Continue the search from line 401');
});

// --- the log itself

const view_line = async (number: string) => {
  navigate(`/jobs/j/logs?task=main&line=${number}`, {replace: true});
  const job = {id: 'j', attempt: 1, phase: 'Succeeded', spec: {kind: 'single'}, tasks: [{name: 'main'}]} as never;
  await act(() => render(h(WindowPane, {job, task: 'main', follow: {value: false}, times: false}), root));
  await settle();
};
/** The position of a line at the top of the view, four lines above it. */
const place_of = (number: number) => (number - 1 - 4) * 18;

test('a linked line is shown when the server has read the log up to it', async () => {
  extent = {...extent, lines: 100, complete: false};
  await view_line('900');
  const log = root.querySelector('.log')!;
  expect(log.scrollTop).toBe(0);
  expect(root.textContent).toContain('The server is still reading the log. Line 900 is shown as soon as');
  extent = {...extent, lines: 1000, complete: true};
  await wait(1000);
  await settle();
  expect(log.scrollTop).toBe(place_of(900));
  expect(root.textContent).not.toContain('still reading');
});

test('a log whose reading has failed is not shown as one that the server is still reading', async () => {
  const answer = fetch;
  vi.stubGlobal('fetch', () => Promise.resolve(Response.json({detail: 'the disk has failed'}, {status: 500})));
  await view_line('900');
  expect(root.textContent).toContain('the disk has failed');
  expect(root.querySelector('[role=status]')).toBeNull();
  vi.stubGlobal('fetch', answer);
});

test('a line of the log of a job that has ended is shown at once', async () => {
  await view_line('300');
  expect(root.querySelector('.log')!.scrollTop).toBe(place_of(300));
  await view_line('500');
  expect(root.querySelector('.log')!.scrollTop).toBe(place_of(500));
});
