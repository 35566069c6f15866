// Requests to the server. Reads carry only the session's cookie; requests that change something also
// carry a header that a foreign page cannot send.
//
// An error is a Failure with the sentences of the server's problem details. A request whose session has
// ended waits for a new login and is then sent again, so that a form keeps its input. A request that the
// server refused because of its rate limit is sent again after the time that the server asked for.
import {signal} from '@preact/signals';
import type {Fault, Problem} from './types';

export class Failure extends Error {
  constructor(
    readonly status: number,
    message: string,
    readonly advice: string = '',
    readonly faults: Fault[] = [],
    readonly code: string = '',
  ) {
    super(message);
  }
  /** The server could not be reached, or cannot answer now. The request itself may be valid. */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** Did the server not answer? Then the same request may succeed later. */
export function is_unreachable(fault: unknown): boolean {
  return fault instanceof Failure && fault.unreachable;
}

/** True while requests wait for a login; the page then shows the login dialog. */
export const logged_out = signal(false);
let waiters: (() => void)[] = [];

/** Sends the waiting requests again, after a login. */
export function logged_in(): void {
  logged_out.value = false;
  const all = waiters;
  waiters = [];
  for (const wake of all) wake();
}

/** Resolves after a time, or rejects when the request is aborted. */
function pause(ms: number, abort?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => {
      clearTimeout(timer);
      reject(new DOMException('aborted', 'AbortError'));
    };
    const timer = setTimeout(() => {
      abort?.removeEventListener('abort', stop);
      resolve();
    }, ms);
    abort?.addEventListener('abort', stop);
  });
}

function wait_for_login(abort?: AbortSignal): Promise<void> {
  logged_out.value = true;
  return new Promise((resolve, reject) => {
    waiters.push(resolve);
    abort?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
  });
}

export type Query = Record<string, string | number | boolean | string[] | undefined | null>;

export function with_query(path: string, query: Query = {}): string {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value === undefined || value === null || value === '' || value === false) continue;
    if (Array.isArray(value)) for (const each of value) search.append(name, each);
    else search.append(name, String(value));
  }
  const text = search.toString();
  return text ? `${path}?${text}` : path;
}

/** Who repeats a request that was not answered: its caller by itself, or the user. */
type Retries = 'caller' | 'user';

export interface Options {
  query?: Query;
  body?: unknown;
  raw?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** What to do without a session: wait for a login, which is the default, or fail at once. */
  login?: 'wait' | 'fail';
  /**
   * Who repeats the request if it is not answered; only for requests that may be carried out twice. Default: `caller` for
   * GET. For other methods, the user first has to check the result.
   */
  retries?: Retries;
}

/** If the server asks for a longer pause, the request fails; in seconds. */
const kLongestPause = 60;

async function failure_of(answer: Response): Promise<Failure> {
  try {
    const problem = (await answer.json()) as Problem;
    return new Failure(
      answer.status,
      problem.detail || problem.title,
      problem.advice ?? '',
      problem.faults ?? [],
      problem.code ?? '',
    );
  } catch {
    return new Failure(answer.status, `the server answered with HTTP status ${answer.status}`);
  }
}

/** No answer, or half of one. Whether the server has carried out a change is then unknown. */
export function unreachable(method: string, retries?: Retries): Failure {
  const who = retries ?? (method === 'GET' ? 'caller' : undefined);
  const advice =
    who === 'caller'
      ? 'the page tries again by itself'
      : who === 'user'
        ? 'try again'
        : 'the server may have carried out the request: check the result before you try again';
  return new Failure(0, 'the server does not answer', advice);
}

/** After which time the server asks for the request again, in milliseconds. Undefined: it does not ask for it. */
function retry_pause(answer: Response): number | undefined {
  const seconds = Number(answer.headers.get('retry-after') ?? '');
  return answer.status === 429 && seconds > 0 && seconds <= kLongestPause ? 1000 * seconds : undefined;
}

export async function send(method: string, path: string, options: Options = {}): Promise<Response> {
  for (;;) {
    const headers: Record<string, string> = {...options.headers};
    if (options.body !== undefined) headers['content-type'] = 'application/json';
    if (method !== 'GET') headers['x-muster-request'] = 'ui';
    let answer: Response;
    try {
      answer = await fetch(with_query(path, options.query), {
        method,
        headers,
        credentials: 'same-origin',
        cache: 'no-store',
        body: options.raw ?? (options.body === undefined ? undefined : JSON.stringify(options.body)),
        signal: options.signal,
      });
    } catch (fault) {
      if ((fault as Error).name === 'AbortError') throw fault;
      throw unreachable(method, options.retries);
    }
    if (answer.ok) return answer;
    if (options.login !== 'fail' && path !== '/v1/ui/session') {
      if (answer.status === 401) {
        await wait_for_login(options.signal);
        continue;
      }
      // The server refuses such a request before it carries it out, so a change may be sent again, too.
      const wait = retry_pause(answer);
      if (wait !== undefined) {
        await pause(wait, options.signal);
        continue;
      }
    }
    throw await failure_of(answer);
  }
}

/** The text of an answer; the connection may break while it arrives. */
async function text_of(method: string, answer: Response, retries?: Retries): Promise<string> {
  try {
    return await answer.text();
  } catch (fault) {
    if ((fault as Error).name === 'AbortError') throw fault;
    throw unreachable(method, retries);
  }
}

function parsed(text: string, answer: Response): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new Failure(answer.status, 'the answer is not JSON', 'a proxy in front of the server may have sent it');
  }
}

async function read(method: string, path: string, options: Options): Promise<unknown> {
  const answer = await send(method, path, options);
  return parsed(await text_of(method, answer, options.retries), answer);
}

/** For a caller that repeats the request until it is answered. */
export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await read('GET', path, {query, signal, retries: 'caller'})) as T;
}

/** For a caller that leaves it to the user to repeat the request. */
export async function get_once<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await read('GET', path, {query, signal, retries: 'user'})) as T;
}

/** A POST that changes nothing on the server, for a caller that repeats the request until it is answered. */
export async function ask<T>(path: string, body: unknown, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await read('POST', path, {body, query, signal, retries: 'caller'})) as T;
}

export async function change<T = void>(
  method: string,
  path: string,
  body?: unknown,
  query: Query = {},
  headers: Record<string, string> = {},
  signal?: AbortSignal,
): Promise<T> {
  const answer = await send(method, path, {body, query, headers, signal});
  const text = await text_of(method, answer);
  return (text ? parsed(text, answer) : undefined) as T;
}

/** /v1/jobs/ID/ACTION. The id is unique among all projects; a name is not. */
export function job_path(id: string, action = ''): string {
  return `/v1/jobs/${encodeURIComponent(id)}${action ? '/' + action : ''}`;
}
export function project_path(name: string, below = ''): string {
  return `/v1/projects/${encodeURIComponent(name)}${below}`;
}
