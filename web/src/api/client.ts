// Requests to the server. Reads carry only the session's cookie; requests that change something also
// carry a header that a foreign page cannot send.
//
// An error is a Failure with the sentences of the server's problem details. A request that finds no
// session waits for a new login and is then sent again, so that a form loses nothing.
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
  /** Is the server unreachable, rather than the request wrong? */
  get unreachable(): boolean {
    return this.status === 0 || this.status === 502 || this.status === 503 || this.status === 504;
  }
}

/** The requests that wait for a login; true shows the sheet. */
export const logged_out = signal(false);
let waiters: (() => void)[] = [];

export function logged_in(): void {
  logged_out.value = false;
  const all = waiters;
  waiters = [];
  for (const wake of all) wake();
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

export interface Options {
  query?: Query;
  body?: unknown;
  raw?: BodyInit;
  headers?: Record<string, string>;
  signal?: AbortSignal;
  /** Report 401 as a Failure instead of waiting for a login. */
  no_wait?: boolean;
}

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
    return new Failure(answer.status, `the server answered ${answer.status}`);
  }
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
      throw new Failure(0, 'the server does not answer', 'the page tries again by itself');
    }
    if (answer.ok) return answer;
    if (answer.status === 401 && !options.no_wait && path !== '/v1/ui/session') {
      await wait_for_login(options.signal);
      continue;
    }
    throw await failure_of(answer);
  }
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  return (await (await send('GET', path, {query, signal})).json()) as T;
}

export async function change<T = void>(
  method: string,
  path: string,
  body?: unknown,
  query: Query = {},
  headers: Record<string, string> = {},
): Promise<T> {
  const answer = await send(method, path, {body, query, headers});
  const text = await answer.text();
  return (text ? JSON.parse(text) : undefined) as T;
}

/** /v1/jobs/NAME/ACTION: a job is named by its id, which is unique among all projects. */
export function job_path(id: string, action = ''): string {
  return `/v1/jobs/${encodeURIComponent(id)}${action ? '/' + action : ''}`;
}
export function project_path(name: string, below = ''): string {
  return `/v1/projects/${encodeURIComponent(name)}${below}`;
}
