import {afterEach, expect, test, vi} from 'vitest';
import {Failure, change, get, get_once} from './client';

afterEach(() => vi.unstubAllGlobals());

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
  const written = await failure_of(change('POST', '/v1/jobs/x/stop'));
  expect(written.unreachable).toBe(true);
  expect(written.advice).toMatch(/check the result before you try again/);
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
