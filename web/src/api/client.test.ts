import {afterEach, expect, test, vi} from 'vitest';
import {Failure, ask, change, get, get_once} from './client';

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

function answer_with(make: () => Promise<Response>): void {
  vi.stubGlobal('fetch', make);
}

async function failure_of(request: Promise<unknown>): Promise<Failure> {
  const fault = await request.catch((problem: unknown) => problem);
  expect(fault).toBeInstanceOf(Failure);
  return fault as Failure;
}

/** An answer whose connection breaks after its first bytes. */
const broken = () =>
  Promise.resolve(
    new Response(
      new ReadableStream({
        start(stream) {
          stream.enqueue(new TextEncoder().encode('{"id'));
          stream.error(new TypeError('network error'));
        },
      }),
    ),
  );

test.each([
  ['without an answer', () => Promise.reject(new TypeError('Failed to fetch'))],
  ['with half of an answer', broken],
])('a request %s: a read is repeated, the result of a change has to be checked', async (_, make) => {
  answer_with(make);
  const read = await failure_of(get('/v1/jobs/x'));
  expect([read.unreachable, read.advice]).toEqual([true, 'the page tries again by itself']);
  expect((await failure_of(get_once('/v1/jobs/x'))).advice).toBe('try again');
  expect((await failure_of(ask('/v1/job-file', {}))).advice).toBe('the page tries again by itself');
  const written = await failure_of(change('POST', '/v1/jobs/x/stop'));
  expect(written.unreachable).toBe(true);
  expect(written.advice).toMatch(/check the result before you try again/);
});

/** Answers with each of these in turn, and then again with the last one. Returns the number of requests so far. */
function answer_in_turn(...answers: (() => Response)[]): () => number {
  let sent = 0;
  answer_with(() => Promise.resolve(answers[Math.min(sent++, answers.length - 1)]!()));
  return () => sent;
}
const refused = (headers: Record<string, string>) =>
  Response.json({detail: 'too many requests at once'}, {status: 429, headers});
const busy = () => refused({'retry-after': '2'});
const good = () => Response.json({id: 'x'});

test.each([
  ['read', () => get('/v1/jobs/x')],
  ['change', () => change('POST', '/v1/jobs/x/stop')],
])('a %s that the rate limit refuses is sent again after the time that the server asks for', async (_, start) => {
  vi.useFakeTimers();
  const sent = answer_in_turn(busy, busy, good);
  const result = start();
  await vi.advanceTimersByTimeAsync(1999);
  expect(sent()).toBe(1);
  await vi.advanceTimersByTimeAsync(1);
  expect(sent()).toBe(2);
  await vi.advanceTimersByTimeAsync(2000);
  expect(await result).toEqual({id: 'x'});
  expect(sent()).toBe(3);
});

test('a request that was refused for a while is not sent again after it was aborted', async () => {
  vi.useFakeTimers();
  const sent = answer_in_turn(busy, good);
  const abort = new AbortController();
  const result = get('/v1/jobs/x', {}, abort.signal).catch((fault: Error) => fault.name);
  await vi.advanceTimersByTimeAsync(0);
  abort.abort();
  expect(await result).toBe('AbortError');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(sent()).toBe(1);
});

test('a refusal without a time, with a long one, and of a login is an error at once', async () => {
  for (const [path, refusal] of [
    ['/v1/jobs/x', () => refused({})],
    ['/v1/jobs/x', () => refused({'retry-after': '3600'})],
    ['/v1/ui/session', busy],
  ] as const) {
    const sent = answer_in_turn(refusal, good);
    expect((await failure_of(change('POST', path))).status).toBe(429);
    expect(sent()).toBe(1);
  }
});

test('an answer that is not JSON names a proxy as a possible cause', async () => {
  answer_with(() => Promise.resolve(new Response('<html>')));
  const failure = await failure_of(get('/v1/jobs'));
  expect([failure.message, failure.advice]).toEqual([
    'the answer is not JSON',
    'a proxy in front of the server may have sent it',
  ]);
});

test('an error of the server has its sentences, and else the HTTP status', async () => {
  answer_with(() =>
    Promise.resolve(Response.json({title: 'Conflict', detail: 'the job has ended', advice: 'rerun it'}, {status: 409})),
  );
  const failure = await failure_of(change('POST', '/v1/jobs/x/stop'));
  expect([failure.status, failure.message, failure.advice]).toEqual([409, 'the job has ended', 'rerun it']);
  answer_with(() => Promise.resolve(new Response('Bad Gateway', {status: 502})));
  expect((await failure_of(get('/v1/jobs'))).message).toBe('the server answered with HTTP status 502');
});
