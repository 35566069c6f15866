// @vitest-environment jsdom
// Tests views in a document without layout: which requests they send, and what they show after an answer or a failure.
import {h, render, type ComponentType} from 'preact';
import {act} from 'preact/test-utils';
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {logged_out} from '../api/client';
import {announce, anything_changed, clock_offset, kRetryPause, live} from '../app/live';
import {navigate, path as shown_path} from '../app/router';
import {
  CodeQuestion,
  LoginDialog,
  is_leaving,
  is_server_admin,
  load_session,
  log_out,
  me,
  start_session,
  use_code_of_address,
} from '../app/session';
import {start_shortcuts} from '../app/shortcuts';
import {parse_yaml} from '../app/spec_text';
import {kSilence} from '../app/stream';
import {ConfirmDialog} from '../ui/dialogs';
import {ErrorBoundary} from '../ui/error_boundary';
import {ActionDialog} from '../ui/job_actions';
import {Toasts, now} from '../ui/parts';
import {Arrays} from './arrays';
import {Members} from './groups';
import {Files} from './job/files';
import {JobPage} from './job/job';
import {kMost} from './job/log_source';
import {Logs} from './job/logs';
import {Jobs} from './jobs';
import {LogSearch} from './log_search';
import {Notifications} from './notifications';
import {Overview} from './overview';
import {MemberCard, SecretCard} from './project_members';
import {Quota} from './project_quota';
import {Projects} from './projects';
import {useMayChange} from './rights';
import {Schedules} from './schedules';
import {Submit} from './submit';
import {dropped} from './submit_files';
import {Tokens} from './tokens';
import {Usage} from './usage';

/** Ends the uploads that the page has begun. */
const uploads: ((sent: {id: string}) => void)[] = [];
/** Report the progress of these uploads. */
const progresses: ((part: number, what: string) => void)[] = [];
vi.mock('../app/upload', async (original) => ({
  ...(await original<object>()),
  send_tree: (_project: string, _files: unknown[], progress: (part: number, what: string) => void) => {
    progress(0.5, 'Sending files');
    progresses.push(progress);
    return new Promise((resolve) => uploads.push(resolve));
  },
}));

/** A request of the page, and its answer. */
interface Asked {
  method: string;
  path: string;
  query: URLSearchParams;
  headers: Record<string, string>;
  body: unknown;
  signal: AbortSignal | undefined;
}
type Answer = Response | Promise<Response>;

let asked: Asked[];
let answer: (request: Asked) => Answer;
let root: HTMLElement;

const json = (value: unknown, status = 200) => new Response(JSON.stringify(value), {status});
const no_answer = () => Promise.reject(new TypeError('failed to fetch'));

const event_text = ([event, data]: [string, unknown]) => `event: ${event}\ndata: ${JSON.stringify(data)}\n\n`;
/** A stream that stays open. It has the given events. */
const stream = (...events: [string, unknown][]): Response => stream_of(events.map(event_text).join(''));
function stream_of(text: string): Response {
  return new Response(
    new ReadableStream({
      start: (controller) => controller.enqueue(new TextEncoder().encode(text || ':\n\n')),
    }),
  );
}

const wait = (ms = 0) =>
  act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
const text = () => root.textContent ?? '';
const paths = () => asked.map(({method, path}) => `${method} ${path}`);

async function show(view: ComponentType<{parts: string[]}>, address: string): Promise<void> {
  navigate(address, {replace: true});
  await act(() => render(h(view, {parts: []}), root));
  // The data of the view, and then those of its parts.
  await wait(50);
  await wait(50);
}

beforeEach(() => {
  vi.useFakeTimers();
  vi.setSystemTime(new Date('2026-11-30T12:00:00Z'));
  now.value = Date.now();
  asked = [];
  answer = () => json({});
  vi.stubGlobal('fetch', (url: string, init: RequestInit & {signal?: AbortSignal} = {}) => {
    const {pathname, searchParams} = new URL(url, 'https://server');
    const request = {
      method: init.method ?? 'GET',
      path: pathname,
      query: searchParams,
      headers: (init.headers ?? {}) as Record<string, string>,
      body: init.body ? (JSON.parse(String(init.body)) as unknown) : undefined,
      signal: init.signal ?? undefined,
    };
    asked.push(request);
    return new Promise((resolve, reject) => {
      init.signal?.addEventListener('abort', () => reject(new DOMException('aborted', 'AbortError')));
      Promise.resolve(answer(request)).then(resolve, reject);
    });
  });
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  vi.stubGlobal('matchMedia', () => ({matches: false, addEventListener: () => {}, removeEventListener: () => {}}));
  vi.stubGlobal('scrollTo', () => {});
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
  HTMLDialogElement.prototype.close = function () {
    this.open = false;
  };
  root = document.body.appendChild(document.createElement('div'));
});
afterEach(async () => {
  await act(() => render(null, root));
  root.remove();
  me.value = null;
  logged_out.value = false;
  clock_offset.value = 0;
  live.value = 'connecting';
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

const row = (id: string, object = 'job') => ({
  object,
  id,
  name: `name-${id}`,
  project: 'p',
  owner: 'ada',
  kind: 'single',
  phase: 'Queued',
  reason: '',
  labels: {},
  gpus: 0,
  priority: 50,
  tasks: 1,
  tasks_running: 0,
  submitted: '2026-11-30T11:00:00Z',
  attempt: 0,
  restarts: 0,
  suspended: false,
  stop_requested: false,
});
const counts = {all: 1, queued: 1, starting: 0, running: 0, succeeded: 0, failed: 0, stopped: 0};
const list = (...rows: unknown[]) => json({rows, next: '', counts: {...counts, all: rows.length}});

// --- the list of jobs

/** The layout of the list of jobs: its height is known only after the first rendering. */
function lay_out(height: number): void {
  for (const [name, value] of [
    ['clientHeight', height],
    ['clientWidth', 1200],
  ] as const)
    vi.spyOn(HTMLElement.prototype, name, 'get').mockReturnValue(value);
}

test('the list of jobs sends one first request, also when its height is known only later', async () => {
  lay_out(1400);
  answer = ({path}) => (path === '/v1/list' ? list(row('a')) : json({}));
  await show(Jobs, '/jobs');
  await wait(1000);
  expect(paths().filter((each) => each === 'GET /v1/list').length).toBe(1);
  expect(text()).toContain('name-a');
});

test('the list of jobs repeats its last request if all first ones have failed', async () => {
  lay_out(1400);
  let works = false;
  answer = ({path}) => (path !== '/v1/list' ? json({}) : works ? list(row('a')) : no_answer());
  await show(Jobs, '/jobs');
  expect(text()).toContain('the server does not answer');
  works = true;
  await wait(kRetryPause);
  expect(text()).toContain('name-a');
  expect(text()).not.toContain('the server does not answer');
});

test('rows that come into view are asked for again after a failure', async () => {
  lay_out(640);
  const all = Array.from({length: 700}, (_, i) => row(String(i)));
  let works = true;
  answer = ({path, query}) => {
    if (path !== '/v1/list') return json({});
    if (!works) return no_answer();
    const begin = Number(query.get('cursor') ?? 0);
    const end = begin + Number(query.get('limit'));
    return json({
      rows: all.slice(begin, end),
      next: end < all.length ? String(end) : '',
      ...(query.has('count') && {counts: {...counts, all: all.length}}),
    });
  };
  await show(Jobs, '/jobs');
  expect(text()).toContain('name-0');
  works = false;
  const region = root.querySelector<HTMLElement>('.vt')!;
  await act(() => {
    region.scrollTop = 400 * 32;
    region.dispatchEvent(new Event('scroll'));
  });
  await wait(50);
  expect(text()).not.toContain('name-400');
  works = true;
  await wait(kRetryPause);
  expect(text()).toContain('name-400');
});

/** Clicks on the checkbox of a row. */
const tick = (id: string, shiftKey = false) =>
  act(() => {
    const box = root.querySelector(`[data-id="${id}"] input`)!;
    box.dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true, shiftKey}));
  });
const ticked = () => [...root.querySelectorAll('tr[aria-selected=true]')].map((each) => each.getAttribute('data-id'));

test('a range of selected jobs begins at the job that was clicked before, wherever its row is now', async () => {
  lay_out(1400);
  let rows = ['c', 'b', 'a'].map((id) => row(id));
  answer = ({path}) => (path === '/v1/list' ? list(...rows) : json({}));
  await show(Jobs, '/jobs');
  await tick('c');
  expect(ticked()).toEqual(['c']);
  rows = [row('e'), row('d'), ...rows];
  await row_event(row('e'));
  await wait(2000);
  expect(text()).toContain('name-e');
  await tick('a', true);
  expect(ticked()).toEqual(['c', 'b', 'a']);

  // The job at which the range would begin has left the list.
  rows = rows.filter(({id}) => id !== 'a');
  await act(() => anything_changed());
  await wait(2000);
  await tick('e', true);
  expect(ticked()).toEqual(['e', 'c', 'b']);
  await act(() => render(h(Toasts, {}), root));
  expect(root.querySelector('.toast')!.textContent).toContain('only name-e was selected');
  await wait(20_000);
});

test('after a change of the filter, a range begins at the next click, without an error', async () => {
  lay_out(1400);
  answer = ({path, query}) =>
    path !== '/v1/list' ? json({}) : query.get('phase') ? list(row('d'), row('c')) : list(row('b'), row('a'));
  await show(Jobs, '/jobs');
  await tick('b');
  await act(() => navigate('/jobs?phase=Failed'));
  await wait(1000);
  await tick('d', true);
  expect(ticked()).toEqual(['d']);
  await tick('c', true);
  expect(ticked()).toEqual(['d', 'c']);
  await act(() => render(h(Toasts, {}), root));
  expect(root.querySelector('.toast')).toBeNull();
});

test('after an action that has failed for some jobs, these jobs stay selected', async () => {
  lay_out(1400);
  answer = ({path}) => {
    if (path === '/v1/list') return list(row('b'), row('a'));
    return path === '/v1/jobs/b/stop' ? json({detail: 'not your job'}, 403) : json({});
  };
  await show(Jobs, '/jobs');
  await tick('a');
  await tick('b');
  await act(() => button('Stop').click());
  await act(() => root.querySelector<HTMLButtonElement>('dialog .danger')!.click());
  await wait(50);
  expect(root.querySelector('dialog')!.textContent).toContain('name-b: not your job');
  await act(() => button('Close').click());
  expect(ticked()).toEqual(['b']);
  await wait(20_000);
});

test.each([
  ['when the stream is opened again', () => announce(null, true), kRetryPause],
  ['after a silence', () => {}, kSilence],
])('a view whose request is never answered sends it again %s', async (_, reopen, pause) => {
  lay_out(1400);
  let is_lost = true;
  answer = ({path}) => (path !== '/v1/list' ? json({}) : is_lost ? new Promise<Response>(() => {}) : list(row('a')));
  await show(Jobs, '/jobs');
  const first = list_requests().at(-1)!;
  is_lost = false;
  await act(reopen);
  await wait(pause);
  expect(first.signal!.aborted).toBe(true);
  expect(text()).toContain('name-a');
});

test('an action of the user does not end requests in flight: the stream is as it was', async () => {
  lay_out(1400);
  answer = ({path}) => (path === '/v1/list' ? new Promise<Response>(() => {}) : json({}));
  await show(Jobs, '/jobs');
  await act(() => anything_changed());
  await wait(2 * kRetryPause);
  expect(list_requests().map(({signal}) => signal!.aborted)).toEqual([false]);
});

test('an answer that is slower than the limit of a request arrives in the end', async () => {
  lay_out(1400);
  answer = ({path}) =>
    path !== '/v1/list'
      ? json({})
      : new Promise((resolve) => setTimeout(() => resolve(list(row('a'))), kSilence + 10_000));
  await show(Jobs, '/jobs');
  // The stream is opened again and again, which alone does not end a request.
  for (let i = 0; i < 30; i++) {
    await act(() => announce(null, true));
    await wait(10_000);
  }
  expect(text()).toContain('name-a');
});

const list_requests = () => asked.filter(({path}) => path === '/v1/list');
const row_event = (changed: object) =>
  act(() => {
    const {id, name} = changed as {id: string; name: string};
    announce({id, name, row: changed as never});
  });

test('a row that has lost the label of the filter leaves the list', async () => {
  lay_out(1400);
  const kept = {...row('a'), labels: {set: 'x'}};
  const changed = {...row('b'), labels: {set: 'x'}};
  let rows = [kept, changed];
  answer = ({path}) => (path === '/v1/list' ? list(...rows) : json({}));
  await show(Jobs, '/jobs?label=set%3Dx');
  expect(text()).toContain('2 jobs');

  // A change of what the filter does not concern is shown without a request.
  await row_event({...changed, attempt: 1});
  await wait(2000);
  expect(list_requests().length).toBe(1);

  rows = [kept];
  await row_event({...changed, labels: {}});
  await wait(2000);
  expect(text()).toContain('1 job');
  expect(text()).not.toContain('name-b');
});

test('a change that arrives while the list is being loaded is not lost to the older answer', async () => {
  lay_out(1400);
  let present = row('a');
  let reply: (() => void) | undefined;
  answer = ({path}) => {
    if (path !== '/v1/list') return json({});
    const older = list(present);
    return list_requests().length === 2 ? new Promise((resolve) => (reply = () => resolve(older))) : older;
  };
  await show(Jobs, '/jobs');
  await act(() => anything_changed());
  await wait(1000);
  present = {...row('a'), suspended: true};
  await row_event(present);
  reply!();
  await wait(3000);
  expect(root.querySelector('tbody .badge')!.textContent).toBe('Suspended');
});

test('the spans of time of the list end at the present time of the server', async () => {
  lay_out(1400);
  answer = ({path}) => (path === '/v1/list' ? list(row('a')) : json({}));
  clock_offset.value = 2 * 3600e3;
  live.value = 'live';
  await show(Jobs, '/jobs?within=1h');
  expect(list_requests().at(-1)!.query.get('submitted_after')).toBe('2026-11-30T13:00:00.000Z');
  // Nothing changes, but time passes.
  await wait(3600e3 + 60e3);
  expect(list_requests().at(-1)!.query.get('submitted_after')).toMatch(/^2026-11-30T14:0[01]:00.000Z$/);
});

test('the spans of time of the overview and of the usage end at the present time of the server', async () => {
  clock_offset.value = -3600e3;
  answer = (request) => (request.path === '/v1/watch/events' ? stream() : cluster(request));
  await show(Overview, '/overview');
  const since = (path: string) => asked.find((each) => each.path === path)!.query.get('since');
  const ended_after = list_requests().map(({query}) => query.get('ended_after'));
  expect(ended_after).toContain('2026-11-29T11:00:00.000Z');
  expect(since('/v1/watch/events')).toMatch(/^2026-11-29T11:00:00/);
  answer = () => json({users: []});
  await show(() => h(Usage, {project: 'p'}), '/projects/p/usage');
  expect(since('/v1/projects/p/usage')).toMatch(/^2026-10-31T11:00:00/);
});

// --- the page of a sweep

test('the best trials of a sweep lead to their jobs and are compared, however many trials there are', async () => {
  // uPlot, which this imports, reads matchMedia() at once.
  const {Sweeps} = await import('./sweeps');
  const trial = (number: number) => ({
    number,
    values: {lr: '0.1'},
    phase: 'Completed',
    rung: 0,
    rungs: [],
    best: number,
    steps: 1,
    job: `id-${number}`,
  });
  const sweep = {
    id: 's',
    name: 'lr',
    project: 'p',
    owner: 'ada',
    phase: 'Succeeded',
    metric: 'accuracy',
    goal: 'maximize',
    method: 'random',
    best: 4711,
    best_trial: 4711,
    trials: Array.from({length: 4711}, (_, i) => trial(4711 - i)),
  };
  answer = ({path}) => {
    if (path === '/v1/sweeps/s') return json(sweep);
    const [, id, metrics] = /^\/v1\/jobs\/([^/]*)(\/metrics)?$/.exec(path) ?? [];
    if (metrics) return json({series: []});
    return json({id, phase: 'Succeeded', spec: {name: `lr-${id}`, command: ['true']}, tasks: []});
  };
  await show(() => h(Sweeps, {parts: ['s']}), '/sweeps/s');
  const best = root.querySelector('tbody tr a')!;
  expect([best.textContent, best.getAttribute('href')]).toEqual(['4711', '/ui/jobs/id-4711']);
  const compared = asked.filter(({path}) => path.endsWith('/metrics')).map(({path}) => path.split('/')[3]);
  expect(compared).toEqual(Array.from({length: 50}, (_, i) => `id-${4711 - i}`));
  expect(list_requests()).toEqual([]);
});

test('the comparison of a running sweep stays while the order of its trials changes and while trials are added', async () => {
  const {Sweeps} = await import('./sweeps');
  const trial = (number: number) => ({number, values: {}, phase: 'Running', steps: 1, job: `id-${number}`});
  let trials = [trial(1), trial(2)];
  let held: (() => Answer) | undefined;
  answer = ({path}) => {
    if (path === '/v1/sweeps/s')
      return json({id: 's', name: 'lr', project: 'p', phase: 'Running', metric: 'loss', goal: 'minimize', trials});
    if (held) return held();
    const [, id, metrics] = /^\/v1\/jobs\/([^/]*)(\/metrics)?$/.exec(path) ?? [];
    if (metrics) return json({series: []});
    return json({id, phase: 'Running', spec: {name: `lr-${id}`, command: ['true']}, tasks: []});
  };
  await show(() => h(Sweeps, {parts: ['s']}), '/sweeps/s');
  const choice = root.querySelector('.filters select');
  expect(choice).not.toBeNull();
  const order = () => [...root.querySelectorAll('tbody')][0]!.textContent!.replaceAll('Running', ' ').trim();
  const before = order();
  held = () => new Promise(() => {});
  for (const next of [
    [trial(2), trial(1)],
    [trial(2), trial(1), trial(3)],
  ]) {
    trials = next;
    await row_event(row('s', 'sweep'));
    await wait(2000);
    expect(order()).not.toBe(before);
    expect(root.querySelector('.filters select')).toBe(choice);
    expect(text()).toContain('None of these jobs has reported');
    expect(text()).not.toContain('could not be loaded');
    expect(text()).not.toContain('Loading…');
  }
  held = () => json({detail: 'the database is not available'}, 500);
  trials = [trial(1), trial(2), trial(3), trial(4)];
  await row_event(row('s', 'sweep'));
  await wait(2000);
  await wait(50);
  expect(root.querySelector('.filters select')).toBe(choice);
  expect(root.querySelector('[role=alert]')!.textContent).toContain('the database is not available');
});

// --- what the roles of the user allow

const job_of_p = {
  id: 'o',
  spec: {name: 'x', command: ['true'], folder: '/', cron: '@daily', project: 'p'},
  tasks: [{name: 'main', phase: 'Running', devices: []}],
  phase: 'Running',
  owner: 'ada',
  submitted: '',
  labels: {},
  events: [],
  avoided_nodes: [],
  reason: '',
  reason_details: [],
};
/** `p` is below `above`. */
const projects = [
  {name: 'above', parent: '', sequence: 1, status: {deserved: {gpus: 0}, allocated: {gpus: 0}}},
  {name: 'p', parent: 'above', sequence: 2, status: {deserved: {gpus: 0}, allocated: {gpus: 0}}},
];

test('a viewer of a project sees no buttons that need the role member, and a role in a project above counts', async () => {
  const {Sweeps} = await import('./sweeps');
  const {spec} = job_of_p;
  const counts = {queued: 0, starting: 0, running: 1, succeeded: 0, failed: 1, stopped: 0};
  const views: [ComponentType, object, string[]][] = [
    [() => h(JobPage, {id: 'o', tab: 'summary'}), job_of_p, ['Stop', 'Suspend', 'Rerun', 'Set']],
    [() => h(JobPage, {id: 'o', tab: 'shell'}), job_of_p, ['Stop', 'Open a shell']],
    [() => h(Arrays, {parts: ['o']}), {spec, phase: 'Running', counts}, ['Stop', 'Suspend', 'Rerun failed']],
    [
      () => h(Sweeps, {parts: ['o']}),
      {name: 'x', project: 'p', phase: 'Running', goal: '', trials: []},
      ['Pause', 'Stop'],
    ],
    [() => h(Schedules, {parts: ['o']}), {spec, owner: 'ada'}, ['Run now', 'Pause', 'Delete']],
  ];
  for (const [server_role, roles, allowed] of [
    ['none', {p: 'viewer'}, false],
    ['viewer', {}, false],
    ['none', {p: 'member'}, true],
    ['none', {above: 'member', p: 'viewer'}, true],
    ['member', {}, true],
  ] as const) {
    me.value = {...user('ben'), server_role, projects: roles} as never;
    for (const [view, object, labels] of views) {
      answer = ({path}) =>
        path === '/v1/projects' ? json({projects}) : path === '/v1/list' ? list() : json({id: 'o', ...object});
      await show(view as never, '/jobs/o');
      for (const label of labels) expect([label, !!button(label)]).toEqual([label, allowed]);
      await act(() => render(null, root));
    }
  }
});

test('a role in a project above that cannot be determined hides no buttons', async () => {
  let list_projects: (answer: Response) => void = () => {};
  const pending = () => new Promise<Response>((resolve) => (list_projects = resolve));
  for (const sent of [pending, () => json({detail: 'the database is not available'}, 500)]) {
    me.value = {...user('ben'), projects: {above: 'member', p: 'viewer'}} as never;
    answer = ({path}) => (path === '/v1/projects' ? sent() : path === '/v1/list' ? list() : json(job_of_p));
    await show(() => h(JobPage, {id: 'o', tab: 'shell'}), '/jobs/o/shell');
    expect(paths()).toContain('GET /v1/projects');
    for (const label of ['Stop', 'Open a shell']) expect(button(label)).toBeDefined();
    expect(text()).not.toContain('needs the role member');
    await act(() => render(null, root));
  }
  // The buttons of a viewer disappear when the projects are loaded.
  me.value = {...user('ben'), projects: {p: 'viewer'}} as never;
  answer = ({path}) => (path === '/v1/projects' ? pending() : path === '/v1/list' ? list() : json(job_of_p));
  await show(() => h(JobPage, {id: 'o', tab: 'shell'}), '/jobs/o/shell');
  expect(button('Stop')).toBeDefined();
  list_projects(json({projects}));
  await wait(50);
  expect(button('Stop')).toBeUndefined();
  expect(text()).toContain('needs the role member');
});

test('the projects that determine a role are loaded once while the page shows other projects', async () => {
  me.value = {...user('ben'), projects: {own: 'member', above: 'member', p: 'viewer'}} as never;
  let may_change: (project: string) => boolean = () => false;
  const view = ({shown}: {shown: string[]}) => {
    may_change = useMayChange(shown);
    return null;
  };
  answer = () => json({projects});
  for (const [shown, requests] of [
    [['own'], 0],
    [['own', 'p'], 1],
    [['own'], 1],
    [['p'], 1],
  ] as [string[], number][]) {
    await act(() => render(h(view, {shown}), root));
    await wait(50);
    expect(asked.length).toBe(requests);
    for (const project of shown) expect(may_change(project)).toBe(true);
  }
  expect(may_change('above')).toBe(true);
  expect(may_change('other')).toBe(false);
});

test('the actions on selected jobs need the role member in the project of one of them', async () => {
  lay_out(1400);
  answer = ({path}) => (path === '/v1/list' ? list({...row('a'), project: 'own'}, row('b')) : json({projects: []}));
  me.value = {...user('ben'), projects: {own: 'member', p: 'viewer'}} as never;
  await show(Jobs, '/jobs');
  await tick('b');
  for (const label of ['Stop', 'Suspend', 'Resume', 'Rerun', 'Delete']) expect(button(label)).toBeUndefined();
  await tick('a');
  for (const label of ['Stop', 'Suspend', 'Resume', 'Rerun', 'Delete']) expect(button(label)).toBeDefined();
});

test('a shortcut that needs the role member selects no job of a viewer', async () => {
  lay_out(1400);
  start_shortcuts();
  answer = ({path}) => (path === '/v1/list' ? list({...row('a'), project: 'own'}, row('b')) : json({projects: []}));
  me.value = {...user('ben'), projects: {own: 'member', p: 'viewer'}} as never;
  await show(Jobs, '/jobs');
  const stop = async (id: string) => {
    await act(() => {
      root.querySelector<HTMLElement>(`[data-id="${id}"] a`)!.focus();
      document.dispatchEvent(new KeyboardEvent('keydown', {key: 's'}));
    });
  };
  await stop('b');
  expect(ticked()).toEqual([]);
  expect(dialog()).toBeNull();
  await stop('a');
  expect(ticked()).toEqual(['a']);
  expect(dialog()!.textContent).toContain('Stop job name-a?');
  await until_toasts_end();
});

test('a job or an array that is being stopped can be killed', async () => {
  const spec = {name: 'x', command: ['true'], folder: '/', project: 'p'};
  const counts = {queued: 0, starting: 0, running: 1, succeeded: 0, failed: 0, stopped: 0};
  const common = {id: 'o', spec, phase: 'Running', stop_requested: true};
  for (const [object_name, view, object] of [
    ['job', () => h(JobPage, {id: 'o', tab: ''}), {...common, tasks: [], labels: {}, submitted: ''}],
    ['array', () => h(Arrays, {parts: ['o']}), {...common, counts}],
  ] as const) {
    answer = ({method, path}) => (method === 'POST' ? json({}) : path === '/v1/list' ? list() : json(object));
    await show(view, '/jobs/o');
    expect(button('Stop')).toBeUndefined();
    await act(() => button('Kill').click());
    expect(dialog()!.textContent).toContain(`This ${object_name} is already being stopped.`);
    expect(dialog()!.querySelector('input')!.checked).toBe(true);
    await act(() => dialog()!.querySelector<HTMLButtonElement>('.danger')!.click());
    await wait(50);
    const sent = asked.filter(({method}) => method === 'POST').at(-1)!;
    expect([sent.path, sent.query.get('now')]).toEqual([`/v1/${object_name}s/o/stop`, 'true']);
    await act(() => render(null, root));
  }
  await until_toasts_end();
});

test('a paused sweep can be resumed or stopped, and an ended one deleted', async () => {
  const {Sweeps} = await import('./sweeps');
  for (const [phase, ended, labels] of [
    ['Running', undefined, ['Pause', 'Stop']],
    ['Paused', undefined, ['Stop', 'Resume']],
    ['Stopped', '2026-11-30T11:00:00Z', ['Delete']],
  ] as const) {
    answer = () => json({id: 's', name: 'lr', project: 'p', phase, ended, goal: 'minimize', trials: []});
    await show(() => h(Sweeps, {parts: ['s']}), '/sweeps/s');
    expect([...root.querySelectorAll('.page-head button')].map((each) => each.textContent)).toEqual([...labels]);
    await act(() => render(null, root));
  }
});

// --- the overview

function cluster(request: Asked): Answer {
  if (request.path === '/v1/nodes') return json({nodes: []});
  if (request.path === '/v1/projects') return json({projects: []});
  if (request.path === '/v1/list')
    return list(row('w', request.query.get('phase') === 'Queued' ? 'array' : 'schedule'));
  return json({});
}
const evicted = (time: string) =>
  ['event', {time, job: 'gone', job_id: 'j', project: 'p', text: 'evicted'}] as [string, unknown];

test('the evictions: no statement before the server has examined all jobs', async () => {
  let send: (event: string, data: unknown) => void = () => {};
  answer = (request) => {
    if (request.path !== '/v1/watch/events') return cluster(request);
    return new Response(
      new ReadableStream({
        start: (controller) => {
          send = (event, data) =>
            controller.enqueue(new TextEncoder().encode(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`));
        },
      }),
    );
  };
  const shown = () => [...root.querySelectorAll('section')].at(-1)!.textContent!;
  await show(Overview, '/overview');
  await wait(1000);
  expect(shown()).toContain('Loading…');
  expect(shown()).not.toContain('No job was evicted');
  send('ready', {});
  await wait();
  expect(shown()).toContain('No job was evicted');
  expect(shown()).not.toContain('Loading…');
  send(...evicted('2026-11-30T12:00:00Z'));
  await wait();
  expect(shown()).toContain('gone');
  expect(shown()).not.toContain('No job was evicted');
});

test('the evictions: no statement before the answer and after a failure, and old ones disappear', async () => {
  let state: 'late' | 'down' | 'refused' | 'up' = 'late';
  answer = (request) => {
    if (request.path !== '/v1/watch/events') return cluster(request);
    if (state === 'late') return new Promise(() => {});
    if (state === 'down') return no_answer();
    if (state === 'refused') return json({detail: 'no events for you'}, 403);
    return stream(evicted('2026-11-29T13:00:00Z'));
  };
  const shown = () => [...root.querySelectorAll('section')].at(-1)!.textContent!;
  await show(Overview, '/overview');
  expect(shown()).toContain('Loading…');
  await act(() => render(null, root));

  for (const [next, said] of [
    ['down', 'the server does not answer'],
    ['refused', 'no events for you'],
  ] as const) {
    state = next;
    await show(Overview, '/overview');
    expect(shown()).toContain(said);
    expect(shown()).not.toContain('No job was evicted');
    state = 'up';
    await wait(3000);
    expect(shown()).toContain('gone');
    expect(shown()).not.toContain(said);
    await act(() => render(null, root));
  }
  await show(Overview, '/overview');
  expect(shown()).toContain('gone');
  await act(() => {
    now.value += 3600e3 + 60_000;
  });
  expect(shown()).toContain('No job was evicted');
});

test('the evictions: several jobs that are evicted at the same time are all shown', async () => {
  const of = (id: string) => {
    const [name, data] = evicted('2026-11-30T11:00:00Z');
    return [name, {...(data as object), job: `name-${id}`, job_id: id}] as [string, unknown];
  };
  answer = (request) => (request.path === '/v1/watch/events' ? stream(of('a'), of('b'), of('a')) : cluster(request));
  await show(Overview, '/overview');
  const shown = [...root.querySelectorAll('.events li a')].map((link) => link.textContent);
  expect(shown).toEqual(['name-a', 'name-b']);
});

test('the stream of the evictions ends with the view, also while it is interrupted', async () => {
  const streams = () => asked.filter(({path}) => path === '/v1/watch/events');
  for (const is_open of [true, false]) {
    asked = [];
    answer = (request) =>
      request.path !== '/v1/watch/events' ? cluster(request) : is_open ? stream(['ready', {}]) : no_answer();
    await show(Overview, '/overview');
    expect(streams().at(-1)!.signal!.aborted).toBe(!is_open);
    await act(() => render(null, root));
    expect(streams().every(({signal}) => signal!.aborted)).toBe(true);
    const before = asked.length;
    await wait(60_000);
    expect(asked.length).toBe(before);
  }
});

test('the overview leads to arrays and schedules by their own pages', async () => {
  answer = (request) => (request.path === '/v1/watch/events' ? stream() : cluster(request));
  await show(Overview, '/overview');
  const links = [...root.querySelectorAll('a')].map((link) => link.getAttribute('href'));
  expect(links).toContain('/ui/arrays/w');
  expect(links).toContain('/ui/schedules/w');
  expect(links).not.toContain('/ui/jobs/w');
});

// --- the log of several tasks

const two_tasks = {
  id: 'j',
  attempt: 1,
  phase: 'Running',
  spec: {kind: 'torch'},
  tasks: [{name: 'master'}, {name: 'worker-0'}],
} as never;
const line = (number: number) =>
  ['log', {time: '2026-11-30T11:00:00Z', task: 'master', stream: 'output', text: `ERROR ${number}`}] as [
    string,
    unknown,
  ];
const notice = ['log', {time: '2026-11-30T11:00:00Z', task: 'master', stream: 'notice', text: 'the log was cut'}] as [
  string,
  unknown,
];
const lines = (n: number) => Array.from({length: n}, (_, i) => line(i));

async function show_logs(query: string, sent: (request: Asked) => Answer): Promise<void> {
  answer = sent;
  await show(() => h(Logs, {job: two_tasks}), `/jobs/j/logs${query}`);
  await wait(200);
}

test('the level of a merged log is searched on the server, in the whole log', async () => {
  await show_logs('?level=error', () => stream(...lines(3)));
  expect(asked.at(-1)!.query.get('grep')).toContain('ERROR');
  expect(text()).toContain('3 lines match in the whole log');
  expect(text()).not.toContain('Load earlier lines');
  await show_logs('?level=error&grep=loss', () => stream());
  expect(asked.at(-1)!.query.get('grep')).toBe('loss');
});

test('notices of Muster are shown with every pattern, and do not count as lines that match', async () => {
  await show_logs('?grep=ERROR', () => stream(...lines(2), notice));
  expect(text()).toContain('2 lines match in the whole log');
  expect(text()).toContain('the log was cut');
  expect(text()).not.toContain('No line matches');
  await act(() => render(null, root));
  for (const query of ['?grep=needle', '?level=error', '?level=info']) {
    await show_logs(query, () => stream(notice));
    expect(text()).toContain('the log was cut');
    expect(text()).toContain('No line matches');
    await act(() => render(null, root));
  }
  await show_logs('', () => stream(notice));
  expect(text()).not.toContain('No line matches');
});

test('a merged log has a way to earlier lines if it is cut, also with a pattern, and while lines are left out', async () => {
  for (const [query, said] of [
    ['', 'Only the last 5\u202f000 lines are loaded'],
    ['?grep=ERROR', 'Only the last 5\u202f000 lines that match are loaded'],
    ['?level=warning', 'Only the last 5\u202f000 lines that match are loaded'],
    ['?level=info&grep=ERROR', 'Only the last 5\u202f000 lines that match are loaded'],
  ] as const) {
    await show_logs(query, ({query: sent}) => stream(...lines(Math.min(8000, Number(sent.get('tail'))))));
    expect(text()).toContain(said);
    expect(text()).not.toContain('in the whole log');
    const more = [...root.querySelectorAll('button')].find((each) => each.textContent === 'Load earlier lines')!;
    await act(() => more.click());
    await wait(200);
    expect(asked.at(-1)!.query.get('tail')).toBe('40000');
    expect(text()).not.toContain('Load earlier lines');
    await act(() => render(null, root));
  }
});

test('the view of a log is not moved by the lines that were dropped before a new search', async () => {
  const sent = (count: number) => () => stream_of(event_text(line(0)).repeat(count));
  const view = () => h(Logs, {job: two_tasks});
  answer = sent(kMost + 1);
  await show(view, '/jobs/j/logs?at=2026-11-30T12:00:00Z');
  for (let i = 0; i < 100 && !text().includes('older lines'); i++) await wait(100);
  expect(text()).toContain('older lines are no longer shown');
  const log = root.querySelector('.log')!;
  log.scrollTop = 100;
  answer = sent(2);
  await show(view, '/jobs/j/logs?at=2026-11-30T12:00:00Z&grep=ERROR');
  await wait(200);
  expect(text()).toContain('2 lines match');
  expect(log.scrollTop).toBe(100);
});

/** A stream whose events the test sends. */
function sending(): {answer: Response; send: (...events: [string, unknown][]) => Promise<void>} {
  let send: (text: string) => void = () => {};
  const body = new ReadableStream({
    start: (controller) => {
      send = (text) => controller.enqueue(new TextEncoder().encode(text));
    },
  });
  return {
    answer: new Response(body),
    send: async (...events) => {
      send(events.map(event_text).join(''));
      await wait(200);
    },
  };
}

const time_of = (second: number) => `2026-11-30T11:00:${String(second).padStart(2, '0')}.000000001Z`;
/** A line that was printed at this second. */
const timed = (second: number): [string, unknown] => {
  const [event, data] = line(second);
  return [event, {...(data as object), time: time_of(second)}];
};

test('the time of a line that matches leads to the lines around it, where the view stays', async () => {
  await show_logs('?grep=ERROR&level=info', () => stream(timed(30)));
  const link = root.querySelector('.line a.at')!.getAttribute('href')!;
  const around = sending();
  answer = () => around.answer;
  await act(() => navigate(link.slice('/ui'.length)));
  await wait(200);
  const sent = asked.at(-1)!.query;
  expect(sent.get('since')).toBe('2026-11-30T11:00:27.000Z');
  expect(sent.get('grep')).toBeNull();

  await around.send(...Array.from({length: 20}, (_, i) => timed(20 + i)));
  const log = root.querySelector('.log')!;
  const place = (10 - 4) * 18;
  expect(log.scrollTop).toBe(place);
  await around.send(timed(50));
  await around.send(timed(51));
  expect(log.scrollTop).toBe(place);
  expect(button('Follow').getAttribute('aria-pressed')).toBe('false');
});

test('the time of a line leads from a search to the lines around it also if that line was linked before', async () => {
  const around = () => stream(...Array.from({length: 20}, (_, i) => timed(20 + i)));
  const place = (10 - 4) * 18;
  await show_logs(`?at=${time_of(30)}`, around);
  const log = root.querySelector('.log')!;
  expect(log.scrollTop).toBe(place);

  answer = () => stream(timed(30));
  await act(() => navigate(`/jobs/j/logs?at=${time_of(30)}&grep=ERROR`));
  await wait(200);
  expect(text()).toContain('1 line matches');
  // The only line of the search is at the top.
  log.scrollTop = 0;
  answer = around;
  const link = root.querySelector('.line a.at')!.getAttribute('href')!;
  await act(() => navigate(link.slice('/ui'.length)));
  await wait(200);
  expect(asked.at(-1)!.query.get('grep')).toBeNull();
  expect(log.scrollTop).toBe(place);
});

test('a log that is followed again after a linked line was shown is followed after a change of the search, too', async () => {
  await show_logs(`?at=${time_of(30)}`, () => stream(...Array.from({length: 20}, (_, i) => timed(20 + i))));
  const log = root.querySelector('.log')!;
  Object.defineProperty(log, 'scrollHeight', {value: 7000});
  await act(() => button('Follow').click());
  expect(log.scrollTop).toBe(7000);

  log.scrollTop = 0;
  answer = () => stream(timed(30), timed(31));
  await act(() => navigate(`/jobs/j/logs?at=${time_of(30)}&grep=ERROR`));
  await wait(200);
  expect(text()).toContain('2 lines match');
  expect(log.scrollTop).toBe(7000);
  expect(button('Follow').getAttribute('aria-pressed')).toBe('true');
});

test('a search of a long log shows that it is searching, not that no line matches', async () => {
  let found: (() => void) | undefined;
  await show_logs('?grep=needle', () => {
    const body = new ReadableStream({
      start: (controller) => {
        found = () => controller.enqueue(new TextEncoder().encode('id: 1\n\n'));
      },
    });
    return new Response(body);
  });
  expect(text()).toContain('Searching the whole log…');
  expect(text()).not.toContain('No line matches');
  found!();
  await wait(200);
  expect(text()).toContain('No line matches');
});

test('the log of one task is that of the last attempt, and a new attempt replaces its lines', async () => {
  let attempt = 1;
  answer = ({query}) =>
    json({
      attempt: Number(query.get('attempt')),
      lines: 1,
      first: 0,
      bytes: 10,
      complete: true,
      records: [
        {line: 0, time: '2026-11-30T11:00:00Z', task: 'main', stream: 'output', text: `of ${query.get('attempt')}`},
      ],
    });
  const view = () => h(Logs, {job: {...(two_tasks as object), attempt, tasks: [{name: 'main'}]} as never});
  await show(view, '/jobs/j/logs');
  expect(text()).toContain('of 1');
  attempt = 2;
  await show(view, '/jobs/j/logs');
  expect(text()).toContain('of 2');
  expect(text()).not.toContain('of 1');
  expect(text()).toContain('The last attempt');
  await show(view, '/jobs/j/logs?attempt=1');
  expect(text()).toContain('of 1');
});

// --- a new job

const schemas = {
  JobSpec: {
    properties: {
      name: {type: 'string'},
      command: {type: 'array', items: {type: 'string'}},
      folder: {type: 'string'},
      environment: {type: 'object'},
      labels: {type: 'object'},
      stop_grace_ms: {type: 'integer'},
      resources: {
        type: 'object',
        properties: {memory_bytes: {type: 'integer'}, gpus: {type: 'integer'}},
      },
      scheduling: {
        type: 'object',
        properties: {purpose: {type: 'string', enum: ['train', 'build']}, time_limit_ms: {type: 'integer'}},
      },
    },
  },
};
const spec = (name: string, purpose = 'build') => ({
  spec: {name, command: ['true'], folder: '/tmp', scheduling: {purpose}},
});
/** Answers of jobs by id; other requests have an empty answer. */
function form(jobs: Record<string, Answer> = {}): (request: Asked) => Answer {
  return ({path, method}) => {
    if (path === '/openapi.json') return json({components: {schemas}});
    if (path === '/v1/projects') return json({projects: []});
    if (path === '/v1/jobs' && method === 'POST') return json({title: 'no forecast here'}, 409);
    return jobs[path.slice('/v1/jobs/'.length)] ?? json({title: 'none'}, 404);
  };
}
const button = (label: string) =>
  [...root.querySelectorAll('button')].find((each) => each.textContent === label) as HTMLButtonElement;
const field = (label: string) => {
  const found = [...root.querySelectorAll('label')].find((each) => each.textContent === label)!;
  return root.querySelector<HTMLInputElement>(`[id="${found.htmlFor}"]`)!;
};
const type = (input: HTMLInputElement, typed: string) =>
  act(() => {
    input.value = typed;
    input.dispatchEvent(new Event('input', {bubbles: true}));
  });
const file = () => root.querySelector<HTMLTextAreaElement>('#yaml')!.value;

test('a form with an invalid field is not submitted with the former value of the field', async () => {
  answer = form();
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  await type(field('Name'), 'a');
  await type(field('Memory'), '1Gi');
  await wait(1000);
  expect(button('Submit').disabled).toBe(false);

  await type(field('Memory'), '2Gigs');
  await wait(1000);
  expect(button('Submit').disabled).toBe(true);
  expect(text()).toContain("'2Gigs' is not valid: give a size");
  expect(text()).toContain('1 field is not valid: resources.memory_bytes');
  // Neither a change of another field nor a visit of another page makes it valid.
  await type(field('Name'), 'ab');
  await act(() => render(null, root));
  await show(Submit, '/submit');
  await wait(1000);
  expect(field('Memory').value).toBe('2Gigs');
  expect(button('Submit').disabled).toBe(true);

  await type(field('Memory'), '2Gi');
  await wait(1000);
  expect(button('Submit').disabled).toBe(false);
  expect(file()).toContain('2Gi');

  await type(field('Memory'), 'x');
  await act(() => button('Start over').click());
  expect(field('Memory').value).toBe('');
  expect(text()).not.toContain('not valid');
  await type(field('Name'), 'c');
  await wait(1000);
  expect(button('Submit').disabled).toBe(false);
});

test('a number field with a text that is no number is not submitted without the number', async () => {
  answer = form();
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  await type(field('Name'), 'a');
  const gpus = field('GPUs');
  const validity = vi.spyOn(gpus, 'validity', 'get').mockReturnValue({badInput: true} as ValidityState);
  await type(gpus, '');
  await wait(1000);
  expect(button('Submit').disabled).toBe(true);
  expect(text()).toContain('this is not a number');
  validity.mockRestore();
  await type(gpus, '2.0');
  await wait(1000);
  expect(button('Submit').disabled).toBe(false);
  expect(gpus.value).toBe('2.0');
  expect(file()).toContain('gpus: 2');
});

test('a job is converted to training also after its draft with the former purpose', async () => {
  answer = form({j: json(spec('notebook'))});
  await show(Submit, '/submit?from=j');
  expect(file()).toContain('purpose: build');
  answer = form({j: json(spec('notebook'))});
  await act(() => navigate('/submit?from=j&purpose=train'));
  await wait(50);
  expect(file()).toContain('name: notebook');
  expect(file()).not.toContain('purpose: build');
});

test('a late answer for an earlier job does not replace the draft of a later one', async () => {
  let late: (response: Response) => void = () => {};
  answer = form({slow: new Promise<Response>((resolve) => (late = resolve)), quick: json(spec('second'))});
  await show(Submit, '/submit?from=slow');
  expect(text()).toContain('Loading…');
  await act(() => navigate('/submit?from=quick'));
  await wait(50);
  expect(file()).toContain('name: second');
  late(json(spec('first')));
  await wait(50);
  expect(file()).toContain('name: second');
});

test('without the job to rerun, the form of the former draft is not shown', async () => {
  answer = form({j: json(spec('former'))});
  await show(Submit, '/submit?from=j');
  expect(file()).toContain('name: former');
  let works = false;
  const jobs = form();
  answer = (request) =>
    request.path === '/v1/jobs/k' ? (works ? json(spec('second')) : json({detail: 'no such job'}, 404)) : jobs(request);
  await act(() => navigate('/submit?from=k'));
  await wait(50);
  expect(text()).toContain('no such job');
  expect(root.querySelector('form')).toBeNull();
  expect(button('Submit')).toBeUndefined();
  expect(text()).not.toContain('Loading…');
  works = true;
  await act(() => button('Try again').click());
  await wait(50);
  expect(file()).toContain('name: second');
  expect(text()).not.toContain('no such job');

  // The former draft is there again without a request.
  works = false;
  await act(() => navigate('/submit?from=k&purpose=train'));
  await wait(50);
  expect(root.querySelector('form')).toBeNull();
  await act(() => navigate('/submit?from=k'));
  await wait(50);
  expect(file()).toContain('name: second');
  expect(text()).not.toContain('no such job');
});

test('the parts of the form that have an invalid field are open after a visit of another page', async () => {
  answer = form();
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  const fold = (title: string) =>
    [...root.querySelectorAll('details')].find((each) => each.querySelector('summary')!.textContent === title)!;
  await wait();
  expect([fold('Scheduling').open, fold('More fields').open]).toEqual([false, false]);
  await type(field('Time limit'), 'soon');
  await type(field('Stop grace'), 'never');
  await act(() => render(null, root));
  await show(Submit, '/submit');
  expect(field('Time limit').value).toBe('soon');
  expect(field('Stop grace').value).toBe('never');
  expect([fold('Scheduling').open, fold('More fields').open]).toEqual([true, true]);
  // The field that the user corrects stays in view.
  await type(field('Time limit'), '');
  await type(field('Stop grace'), '');
  expect(text()).not.toContain('not valid');
  expect([fold('Scheduling').open, fold('More fields').open]).toEqual([true, true]);
});

/** The requests that submit the draft, without the dry runs. */
const submissions = () =>
  asked.filter(({method, path, query}) => method === 'POST' && path === '/v1/jobs' && !query.has('dry_run'));

test('a submission whose answer was lost is repeated with the same key, also after a visit of another page', async () => {
  const others = form({j: json(spec('again'))});
  let works = false;
  answer = (request) =>
    request !== submissions().at(-1) ? others(request) : works ? json({id: 'k', spec: {name: 'again-2'}}) : no_answer();
  await show(Submit, '/submit?from=j');
  await wait(1000);
  await act(() => button('Submit').click());
  await wait();
  expect(text()).toContain('check the result before you try again');
  // A dry run does not hide this.
  await act(() => anything_changed());
  await wait(10_000);
  expect(text()).toContain('check the result before you try again');

  await show(Jobs, '/jobs');
  await show(Submit, '/submit');
  await wait(1000);
  expect(text()).toContain('check the result before you try again');
  works = true;
  await act(() => button('Submit').click());
  await wait();
  const keys = submissions().map(({headers}) => headers['idempotency-key']);
  expect(keys.length).toBe(2);
  expect(keys[0]).toBe(keys[1]);
  expect(shown_path.value).toBe('/jobs/k');

  // The same job once more, on purpose.
  const more = form({j: json(spec('again'))});
  answer = (request) => (request === submissions().at(-1) ? json({id: 'l', spec: {name: 'again-3'}}) : more(request));
  await show(Submit, '/submit?from=j');
  await wait(1000);
  await act(() => button('Submit').click());
  await wait();
  expect(submissions().at(-1)!.headers['idempotency-key']).not.toBe(keys[0]);
  await wait(20_000);
});

test('an upload goes on while the user visits other pages, and its end changes neither the page nor a new draft', async () => {
  const others = form();
  answer = (request) => (request === submissions().at(-1) ? json({id: 'k', spec: {name: 'sent'}}) : others(request));
  const warns = () => {
    const leave = new Event('beforeunload', {cancelable: true});
    window.dispatchEvent(leave);
    return leave.defaultPrevented;
  };
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  expect(warns()).toBe(false);
  await type(field('Name'), 'sent');
  await act(() => {
    dropped.value = {files: [], left_out: 0, target: '/data'};
  });
  await wait(1000);
  await act(() => button('Submit').click());
  expect(button('Sending files 50 %').disabled).toBe(true);
  expect(warns()).toBe(true);
  await act(() => button('Remove the files').click());

  await show(Jobs, '/jobs');
  expect(warns()).toBe(true);
  await show(Submit, '/submit');
  expect(button('Sending files 50 %').disabled).toBe(true);
  await type(field('Name'), 'next');
  await show(Jobs, '/jobs');
  uploads.at(-1)!({id: 'tree'});
  await wait();
  expect(submissions().map(({body}) => body)).toMatchObject([
    {name: 'sent', folder: '/data', volumes: [{kind: 'tree', source: 'tree', target: '/data'}]},
  ]);
  expect(shown_path.value).toBe('/jobs');
  expect(warns()).toBe(false);
  await show(Submit, '/submit');
  expect(field('Name').value).toBe('next');
  await act(() => button('Start over').click());
  await wait(20_000);
});

/** Chooses a folder with one file, whose text is read when the test allows it. */
async function choose_folder(name: string, text: () => Promise<string>): Promise<HTMLInputElement> {
  const input = root.querySelector<HTMLInputElement>('input[type=file]')!;
  const chosen = [{name, webkitRelativePath: `${name}/.gitignore`, size: 1, text}];
  vi.spyOn(input, 'files', 'get').mockReturnValue(chosen as never);
  await act(() => {
    input.dispatchEvent(new Event('change', {bubbles: true}));
  });
  return input;
}

test('of two folders that are being read, the last one that was chosen is sent', async () => {
  answer = form();
  await draft_job('a');
  let read_first: (text: string) => void = () => {};
  await choose_folder('first', () => new Promise((resolve) => (read_first = resolve)));
  await choose_folder('second', () => Promise.resolve(''));
  await wait();
  const sent = () => dropped.value?.files.map(({file}) => file.name);
  expect(sent()).toEqual(['second']);
  await act(() => read_first(''));
  await wait();
  expect(sent()).toEqual(['second']);
  await act(() => button('Start over').click());
});

test('a folder that could not be read can be chosen again', async () => {
  answer = form();
  await draft_job('a');
  await act(() => {
    dropped.value = null;
  });
  const input = root.querySelector<HTMLInputElement>('input[type=file]')!;
  const reset = vi.spyOn(input, 'value', 'set');
  await choose_folder('first', () => Promise.reject(new Error('the disk has failed')));
  await wait();
  expect(text()).toContain('the disk has failed');
  expect(reset).toHaveBeenCalledWith('');
  await act(() => button('Start over').click());
});

/** Shows an empty form, and types the name of a job. */
async function draft_job(name: string): Promise<void> {
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  await type(field('Name'), name);
  await wait(1000);
}
const drop_files = () =>
  act(() => {
    dropped.value = {files: [], left_out: 0, target: '/data'};
  });
const warns_of_loss = () => !window.dispatchEvent(new Event('beforeunload', {cancelable: true}));

test('a submission that is never answered is reported, and is repeated with the same key', async () => {
  const others = form();
  answer = (request) => (submissions().includes(request) ? new Promise<Response>(() => {}) : others(request));
  await draft_job('a');
  await act(() => button('Submit').click());
  expect(button('Submitting…').disabled).toBe(true);
  await wait(2 * kSilence);
  expect(submissions()[0]!.signal!.aborted).toBe(true);
  expect(text()).toContain('the server does not answer');
  expect(button('Submit').disabled).toBe(false);
  await act(() => button('Submit').click());
  await wait();
  const [first, second] = submissions().map(({headers}) => headers['idempotency-key']);
  expect(second).toBe(first);

  // The stream is opened again: an unanswered request is lost then.
  await act(() => announce(null, true));
  await wait(2 * kRetryPause);
  expect(button('Submit').disabled).toBe(false);
  await act(() => button('Start over').click());
  await until_toasts_end();
});

test('"Start over" frees the form from a submission, whose answer then does not change the form', async () => {
  const others = form();
  const replies = [later(), later(), later()];
  answer = (request) => replies[submissions().indexOf(request)]?.answer ?? others(request);
  await draft_job('a');
  await act(() => button('Submit').click());
  await draft_job('a');
  await act(() => button('Submit').click());
  await replies[0]!.give(json({id: 'k', spec: {name: 'a'}}));
  expect(button('Submitting…').disabled).toBe(true);
  expect(field('Name').value).toBe('a');
  expect(shown_path.value).toBe('/submit');
  // The second submission keeps its key.
  await replies[1]!.give(json({detail: 'the answer was lost'}, 504));
  await act(() => button('Submit').click());
  const [first, second, third] = submissions().map(({headers}) => headers['idempotency-key']);
  expect(second).not.toBe(first);
  expect(third).toBe(second);

  // An error of a discarded submission is not that of the new draft.
  await draft_job('a');
  await replies[2]!.give(json({detail: 'the store is full'}, 409));
  expect(button('Submit').disabled).toBe(false);
  expect(text()).not.toContain('the store is full');
  await act(() => button('Start over').click());
  await until_toasts_end();
});

test('"Start over" discards an upload: no job is made of it, and the next upload is not disturbed', async () => {
  const others = form();
  answer = (request) => (submissions().includes(request) ? json({id: 'k', spec: {name: 'next'}}) : others(request));
  await draft_job('discarded');
  await drop_files();
  await act(() => button('Submit').click());
  expect(button('Sending files 50 %').disabled).toBe(true);
  const [discarded, progress] = [uploads.at(-1)!, progresses.at(-1)!];
  await act(() => button('Start over').click());
  expect(button('Submit')).toBeDefined();
  expect(warns_of_loss()).toBe(false);

  await draft_job('next');
  await drop_files();
  await act(() => button('Submit').click());
  expect(() => progress(0.7, 'Sending files')).toThrow('discarded');
  discarded({id: 'old-tree'});
  await wait();
  expect(submissions()).toEqual([]);
  expect(button('Sending files 50 %').disabled).toBe(true);
  expect(warns_of_loss()).toBe(true);
  uploads.at(-1)!({id: 'tree'});
  await wait();
  expect(submissions().map(({body}) => body)).toMatchObject([{name: 'next', volumes: [{source: 'tree'}]}]);
  expect(warns_of_loss()).toBe(false);
  expect(shown_path.value).toBe('/jobs/k');
  await until_toasts_end();
});

test('the end of a submission keeps what the user has typed since, also if it is not valid', async () => {
  const others = form();
  for (const edit of [
    () => type(field('Memory'), '2Gigs'),
    () => type(root.querySelector('#yaml')!, 'name: [unfinished'),
  ]) {
    const reply = later();
    asked = [];
    answer = (request) => (submissions().includes(request) ? reply.answer : others(request));
    await draft_job('a');
    await act(() => button('Submit').click());
    await edit();
    const typed = [field('Memory').value, file()];
    await reply.give(json({id: 'k', spec: {name: 'a'}}));
    expect(shown_path.value).toBe('/submit');
    expect([field('Memory').value, file()]).toEqual(typed);
    await act(() => button('Start over').click());
  }
  await until_toasts_end();
});

test('a dry run is repeated by itself: after a failure, after an interruption, and each minute', async () => {
  const others = form();
  let works = false;
  answer = (request) => (request.query.has('dry_run') && !works ? no_answer() : others(request));
  const dry_runs = () => asked.filter(({query}) => query.has('dry_run')).length;
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  await type(field('Name'), 'a');
  await wait(1000);
  expect(text()).toContain('the page tries again by itself');
  expect(text()).not.toContain('may have carried out');
  works = true;
  await wait(10_000);
  expect(text()).toContain('no forecast here');
  expect(text()).not.toContain('the server does not answer');

  const before = dry_runs();
  await act(() => announce(null, true));
  await wait(10_000);
  expect(dry_runs()).toBe(before + 1);
  await wait(60_000);
  expect(dry_runs()).toBe(before + 2);
});

test('a job file that was not answered is read again by itself, also after a visit of another page', async () => {
  // Loads the parser, which takes real time.
  await parse_yaml('name: x');
  const others = form();
  let works = false;
  answer = (request) =>
    request.path !== '/v1/job-file'
      ? others(request)
      : works
        ? json({name: 'typed', command: ['true'], folder: '/tmp'})
        : no_answer();
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  await act(() => {
    const area = root.querySelector<HTMLTextAreaElement>('#yaml')!;
    area.value = 'name: typed\n';
    area.dispatchEvent(new Event('input', {bubbles: true}));
  });
  await show(Jobs, '/jobs');
  await show(Submit, '/submit');
  for (let i = 0; i < 100 && !text().includes('the page tries again by itself'); i++) await wait(100);
  expect(text()).toContain('the page tries again by itself');
  expect(button('Submit').disabled).toBe(true);
  works = true;
  await wait(kRetryPause + 1000);
  expect(field('Name').value).toBe('typed');
  expect(file()).toBe('name: typed\n');
  await act(() => button('Start over').click());
});

test('a job file whose reading fails after the user has left the form is not read again there', async () => {
  await parse_yaml('name: x');
  const others = form();
  const reading = later();
  answer = (request) => (request.path === '/v1/job-file' ? reading.answer : others(request));
  const readings = () => asked.filter(({path}) => path === '/v1/job-file').length;
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
  await type(root.querySelector('#yaml')!, 'name: typed');
  for (let i = 0; i < 100 && !readings(); i++) await wait(100);
  expect(readings()).toBe(1);
  await show(Jobs, '/jobs');
  await reading.give(json({detail: 'restarting'}, 503));
  await wait(10 * kRetryPause);
  expect(readings()).toBe(1);
  await show(Submit, '/submit');
  await act(() => button('Start over').click());
});

// --- the search in the logs of many jobs

test('a search of many logs that ends early is reported, and searched again at a click', async () => {
  const hits: [string, unknown] = ['hits', {row: row('a'), records: [], more: false}];
  const progress = {searched: 1, jobs: 7, older: false};
  const cut = () => new Response(event_text(hits) + event_text(['progress', progress]));
  const faults = () => root.querySelector('[role=alert]')?.textContent ?? '';
  const searches = () => asked.filter(({path}) => path === '/v1/log-search').length;
  answer = ({path}) => (path === '/v1/log-search' ? cut() : json({projects: []}));
  await show(LogSearch, '/logs?grep=loss');
  expect(faults()).toContain('the search was interrupted');
  expect(text()).toContain('1 of 7 jobs searched, 1 with hits.');
  expect(text()).not.toContain('stopped at');

  answer = ({path}) => (path === '/v1/log-search' ? no_answer() : json({projects: []}));
  await act(() => button('Try again').click());
  await wait();
  expect(faults()).toContain('the server does not answer');
  expect(faults()).not.toContain('by itself');
  await wait(60_000);
  expect(searches()).toBe(2);

  answer = ({path}) =>
    path === '/v1/log-search' ? stream(hits, ['end', {...progress, searched: 7}]) : json({projects: []});
  await act(() => button('Try again').click());
  await wait();
  expect(faults()).toBe('');
  expect(text()).toContain('7 of 7 jobs searched, 1 with hits.');
});

// --- long lists, and a view that throws

test('a list of artifacts or of members that is not whole is shown as such', async () => {
  const job = {id: 'j', phase: 'Succeeded'} as never;
  const artifact = (n: number) => ({path: `f${n}`, kind: 'file', bytes: 1, modified: '2026-11-30T11:00:00Z'});
  answer = () => json({artifacts: Array.from({length: 600}, (_, n) => artifact(n)), truncated: true});
  await show(() => h(Files, {job}), '/jobs/j/files');
  expect(text()).toContain('the first 600 entries');
  expect(text()).toContain('The job has more artifacts');
  expect(root.querySelectorAll('tbody tr').length).toBe(500);
  await act(() => button('Show more').click());
  expect(root.querySelectorAll('tbody tr').length).toBe(600);

  answer = () => json({rows: [row('a'), row('b')], next: 'cursor'});
  await show(() => h(Members, {origin: 'array/w'}), '/arrays/w');
  expect(text()).toContain('These are the first 2 jobs');
});

test('errors of an action are reported after its dialog was closed, and another dialog stays open', async () => {
  let refuse = () => {};
  answer = () =>
    new Promise((resolve) => {
      refuse = () => resolve(json({detail: 'not your job'}, 403));
    });
  const done: boolean[] = [];
  const dialog = h(ActionDialog, {action: 'stop', jobs: [row('a') as never], onDone: (all) => done.push(all)});
  await act(() => render([h('div', {key: 1}, dialog), h(Toasts, {key: 2})], root));
  await act(() => button('Stop').click());
  await act(() => button('Cancel').click());
  expect(done).toEqual([false]);
  await act(() => render([h('div', {key: 1}), h(Toasts, {key: 2})], root));
  refuse();
  await wait();
  expect(root.querySelector('.toast')!.textContent).toContain('name-a: not your job');
  expect(done).toEqual([false]);
  // The message of one test would be found in the next one.
  await wait(20_000);
});

test('an action skips a job to which it applies only after its dialog was opened', async () => {
  const ended = {...row('a'), phase: 'Succeeded'};
  const running = {...row('b'), phase: 'Running'};
  const show_dialog = (...jobs: unknown[]) =>
    act(() => render(h(ActionDialog, {action: 'delete', jobs: jobs as never, onDone: () => {}}), root));
  await show_dialog(ended, running);
  expect(text()).toContain('1 selected job has not ended');
  await show_dialog(ended, {...running, phase: 'Succeeded'});
  expect(text()).toContain('1 selected job has changed since this dialog was opened, and is skipped.');
  answer = () => new Response(null, {status: 204});
  await act(() => root.querySelector<HTMLButtonElement>('dialog .danger')!.click());
  await wait();
  expect(paths()).toEqual(['DELETE /v1/jobs/a']);
  await wait(20_000);
});

test('the page of a job or an array stays open if its deletion has failed', async () => {
  const spec = {name: 'x', command: ['true'], folder: '/', project: 'p'};
  const counts = {queued: 0, starting: 0, running: 0, succeeded: 1, failed: 0, stopped: 0};
  for (const [view, object, at, next] of [
    [() => h(JobPage, {id: 'o', tab: ''}), {spec, tasks: [], phase: 'Failed', labels: {}}, '/jobs/o', '/jobs'],
    [() => h(Arrays, {parts: ['o']}), {spec, phase: 'Failed', counts, percent: 100}, '/arrays/o', '/sweeps'],
  ] as const) {
    for (const works of [false, true]) {
      answer = ({method, path}) => {
        if (method !== 'DELETE') return path === '/v1/list' ? list() : json({id: 'o', ...object});
        return works ? no_content() : json({detail: 'not your job'}, 403);
      };
      await show(view, at);
      await act(() => button('Delete').click());
      await act(() => dialog()!.querySelector<HTMLButtonElement>('.danger')!.click());
      await wait(50);
      if (!works) {
        expect(dialog()!.textContent).toContain('not your job');
        await act(() => button('Close').click());
      }
      expect(dialog()).toBeNull();
      expect(shown_path.value).toBe(works ? next : at);
    }
    await act(() => render(null, root));
  }
  await until_toasts_end();
});

// --- forms and dialogs

/** An answer that the test gives later. */
function later(): {answer: Promise<Response>; give: (response: Response) => Promise<void>} {
  let give: (response: Response) => void = () => {};
  const promise = new Promise<Response>((resolve) => (give = resolve));
  return {
    answer: promise,
    give: async (response) => {
      give(response);
      await wait(50);
    },
  };
}
const no_content = () => new Response(null, {status: 204});
/** The messages of one test would be found in the next one. */
const until_toasts_end = () => wait(20_000);
const dialog = () => root.querySelector('dialog');

test('the form of a new member or secret is cleared only when its own request succeeds, and keeps what the user has typed since', async () => {
  const when = '2026-11-30T11:00:00Z';
  const cases = [
    {
      view: () => h(MemberCard, {project: 'p', admin: true}),
      present: {members: [{user: 'ben', role: 'member'}]},
      remove: () => act(() => button('Remove').click()),
      send: 'Add',
      typed: ['eve'],
    },
    {
      view: () => h(SecretCard, {project: 'p', admin: true}),
      present: {secrets: [{name: 'OLD', created: when, changed: when, changed_by: 'ada'}]},
      remove: async () => {
        await act(() => button('Delete').click());
        await act(() => dialog()!.querySelector<HTMLButtonElement>('.danger')!.click());
      },
      send: 'Store',
      typed: ['NEW', 'hidden'],
    },
  ];
  for (const {view, present, remove, send, typed} of cases) {
    answer = ({method}) => (method === 'GET' ? json(present) : no_content());
    await show(view, '/projects/p');
    const inputs = () => [...root.querySelectorAll<HTMLInputElement>('form input')];
    const values = () => inputs().map((input) => input.value);
    for (const [i, input] of inputs().entries()) await type(input, typed[i]!);
    await remove();
    await wait(50);
    expect(asked.at(-2)!.method).toBe('DELETE');
    expect(values()).toEqual(typed);

    const put = later();
    answer = ({method}) => (method === 'GET' ? json(present) : put.answer);
    await act(() => button(send).click());
    await type(inputs()[0]!, 'next');
    await put.give(no_content());
    expect(values()).toEqual(['next', ...typed.slice(1).map(() => '')]);

    answer = ({method}) => (method === 'GET' ? json(present) : no_content());
    for (const [i, input] of inputs().entries()) await type(input, typed[i]!);
    await act(() => button(send).click());
    await wait(50);
    expect(values()).toEqual(typed.map(() => ''));
    await act(() => render(null, root));
  }
  await until_toasts_end();
});

const quota_of = (gpus: number | null, cpus: number | null = null) => {
  const none = {gpus: 0, cpus: 0, memory_bytes: 0};
  return {
    name: 'p',
    parent: '',
    sequence: 1,
    priority: 0,
    quota: {
      deserved: {gpus, cpus, memory_bytes: null},
      limit: {gpus: null, cpus: null, memory_bytes: null},
      weight: 1,
    },
    status: {allocated: none, requested: none, fair_share: none, deserved: none, running: 0, waiting: 0},
  };
};
const quota_field = (label: string) => root.querySelector<HTMLInputElement>(`input[aria-label="${label}"]`)!;
let quota_project: object;
const QuotaView = () => h(Quota, {project: quota_project as never, admin: true});
const show_quota = (project: object) => {
  quota_project = project;
  return show(QuotaView, '/projects/p');
};

test('the form of a quota shows the saved values before the list has them, and is no change of another user', async () => {
  answer = () => json(quota_of(4));
  await show_quota(quota_of(2));
  await type(quota_field('GPU quota'), '4');
  await act(() => button('Save').click());
  await wait(50);
  expect(asked.at(-1)!.body).toEqual({quota: {deserved: {gpus: 4}}});
  expect(quota_field('GPU quota').value).toBe('4');
  await type(quota_field('CPU quota'), '8');
  // The list that was requested before, and the list after the change.
  for (const listed of [2, 4]) {
    await show_quota(quota_of(listed));
    expect(quota_field('GPU quota').value).toBe('4');
    expect(text()).not.toContain('Another user has changed');
  }
  // A change of another user back to the former value.
  await show_quota(quota_of(2));
  expect(text()).toContain('Another user has changed');
  await act(() => button('Discard').click());
  expect(quota_field('GPU quota').value).toBe('2');
  await until_toasts_end();
});

test('what the user types while a quota is being saved is kept, and a double click saves it once', async () => {
  const patch = later();
  answer = () => patch.answer;
  await show_quota(quota_of(2));
  await type(quota_field('GPU quota'), '4');
  await act(() => button('Save').click());
  await act(() => button('Save').click());
  await type(quota_field('CPU quota'), '8');
  await patch.give(json(quota_of(4)));
  expect(asked.length).toBe(1);
  expect([quota_field('GPU quota').value, quota_field('CPU quota').value]).toEqual(['4', '8']);
  answer = () => json(quota_of(4, 8));
  await act(() => button('Save').click());
  await wait(50);
  expect(asked.at(-1)!.body).toEqual({quota: {deserved: {cpus: 8}}});
  await until_toasts_end();
});

test('each field of a quota that is not valid shows its fault', async () => {
  await show_quota(quota_of(2));
  await type(quota_field('GPU quota'), 'many');
  await type(quota_field('memory limit'), '-1');
  const weight = root.querySelector<HTMLInputElement>('input[type=number]')!;
  await type(weight, '');
  await act(() => button('Save').click());
  expect(asked).toEqual([]);
  const fault = (input: HTMLInputElement) =>
    input.getAttribute('aria-invalid') && document.getElementById(input.getAttribute('aria-describedby')!)!.textContent;
  expect(fault(quota_field('GPU quota'))).toBe("'many' is not an amount of GPUs, such as 4 or 0.5");
  expect(fault(quota_field('memory limit'))).toBe("'-1' is not an amount of memory, such as 64Gi");
  expect(fault(weight)).toBe('the weight is missing: give a number');
  expect(fault(quota_field('CPU quota'))).toBeNull();
  await type(quota_field('GPU quota'), '4');
  expect(fault(quota_field('GPU quota'))).toBeNull();
  expect(fault(weight)).not.toBeNull();
});

test('an empty GPU quota of a new project means unlimited, as in the form of its quota', async () => {
  answer = ({method}) => json(method === 'GET' ? {projects: []} : {});
  me.value = {...user('ada'), server_role: 'admin'} as never;
  await show(() => h(Projects, {parts: []}), '/projects');
  for (const [typed, gpus] of [
    ['', null],
    ['2', 2],
  ] as const) {
    await act(() => button('New project').click());
    expect(dialog()!.textContent).toContain('An empty amount means unlimited');
    await type(field('Name'), 'q');
    await type(field('GPU quota'), typed);
    await act(() => button('Create').click());
    await wait(50);
    const sent = asked.filter(({method}) => method === 'POST').at(-1)!;
    expect(sent.body).toEqual({name: 'q', parent: '', quota: {deserved: {gpus}}});
  }
});

test('a double click submits one job', async () => {
  const spec = {name: 'x', command: ['true'], folder: '/', cron: '@daily', project: 'p'};
  const counts = {queued: 0, starting: 0, running: 0, succeeded: 0, failed: 1, stopped: 0};
  for (const [label, view, object] of [
    ['Rerun', () => h(JobPage, {id: 'o', tab: ''}), {spec, tasks: [], phase: 'Failed', submitted: '', labels: {}}],
    ['Run now', () => h(Schedules, {parts: ['o']}), {spec, owner: 'ada'}],
    ['Rerun failed', () => h(Arrays, {parts: ['o']}), {spec, phase: 'Failed', counts, percent: 100}],
  ] as const) {
    const post = later();
    asked = [];
    answer = ({method, path}) =>
      method === 'POST' ? post.answer : path === '/v1/list' ? list() : json({id: 'o', ...object});
    await show(view, '/jobs/o');
    await act(() => button(label).click());
    await act(() => button(label).click());
    await wait(50);
    expect(asked.filter(({method}) => method === 'POST').length).toBe(1);
    // After an error, the user may try again.
    await post.give(json({detail: 'not now'}, 409));
    expect(button(label).disabled).toBe(false);
    await act(() => render(null, root));
  }
  await until_toasts_end();
});

test('a double click sends one request: an address, an invitation, a second delivery', async () => {
  const ben = {name: 'ben', server_role: 'none', projects: {}, disabled: false, created: '2026-11-30T11:00:00Z'};
  const dead = {id: 'd', job: 'x', event: 'failed', attempts: 9, created: '2026-11-30T11:00:00Z', fault: 'refused'};
  const lists: Record<string, unknown> = {
    '/v1/tokens': {tokens: []},
    '/v1/users': {users: [ben]},
    '/v1/projects/p/notifications': {subscriptions: []},
    '/v1/projects/p/dead-letters': {deliveries: [dead]},
  };
  const notifications = () => h(Notifications, {project: 'p', admin: true});
  const users = () => h(Tokens, {parts: []});
  me.value = {...user('ada'), server_role: 'admin'} as never;
  for (const [label, view, typed] of [
    ['Add', notifications, 'https://hooks'],
    ['Send all again', notifications, ''],
    ['Send again', notifications, ''],
    ['Invite', users, 'eve'],
    ['New invitation', users, ''],
    ['Disable', users, ''],
  ] as const) {
    const change = later();
    asked = [];
    answer = ({method, path}) => (method === 'GET' ? json(lists[path]) : change.answer);
    await show(view, '/tokens');
    if (typed) await type(root.querySelector('form input')!, typed);
    await act(() => button(label).click());
    await act(() => button(label).click());
    // As a second press of Enter in the field, which needs no button.
    if (typed)
      await act(() => {
        root.querySelector('form')!.dispatchEvent(new Event('submit', {bubbles: true, cancelable: true}));
      });
    await wait(50);
    expect([label, asked.filter(({method}) => method !== 'GET').length]).toEqual([label, 1]);
    // After an error, the user may try again.
    await change.give(json({detail: 'not now'}, 409));
    expect(button(label).disabled).toBe(false);
    await act(() => render(null, root));
  }
  await until_toasts_end();
});

test('an error of an action on an address is shown in its dialog', async () => {
  const address = {id: 'a', url: 'https://hooks', on: ['failed'], labels: {}, created: '', created_by: 'ada'};
  let works = false;
  answer = ({method, path}) => {
    if (method !== 'GET')
      return works ? json({subscription: address, key: 'new-key'}) : json({detail: 'the store is full'}, 409);
    return json(path.endsWith('/dead-letters') ? {deliveries: []} : {subscriptions: [address]});
  };
  await show(() => h(Notifications, {project: 'p', admin: true}), '/projects/p/notifications');
  const confirm = async () => {
    await act(() => dialog()!.querySelector<HTMLButtonElement>('.danger')!.click());
    await wait(50);
  };
  await act(() => root.querySelector<HTMLButtonElement>('td .danger')!.click());
  await confirm();
  expect(dialog()!.querySelector('[role=alert]')!.textContent).toContain('the store is full');
  await act(() => button('Cancel').click());

  await act(() => button('New key').click());
  await confirm();
  expect(dialog()!.querySelector('[role=alert]')!.textContent).toContain('the store is full');
  works = true;
  await confirm();
  expect(dialog()!.textContent).toContain('new-key');
});

test('an error of a dialog that was closed meanwhile is reported', async () => {
  const removal = later();
  const view = () => [
    h(ConfirmDialog, {
      key: 1,
      title: 'Remove?',
      verb: 'Remove',
      act: async () => {
        const answer = await removal.answer;
        throw new Error(await answer.text());
      },
      close: () => {},
      children: '',
    }),
    h(Toasts, {key: 2}),
  ];
  await act(() => render(view(), root));
  await act(() => button('Remove').click());
  await act(() => render([h(Toasts, {key: 2})], root));
  await removal.give(new Response('it is in use'));
  expect(root.querySelector('.toast')!.textContent).toContain('it is in use');
  await until_toasts_end();
});

test('a view that has failed is shown again at another place', async () => {
  const Failing = () => {
    throw new Error('broken view');
  };
  await act(() => render(h(ErrorBoundary, {at: '/jobs/a', children: h(Failing, {})}), root));
  expect(text()).toContain('broken view');
  await act(() => render(h(ErrorBoundary, {at: '/jobs', children: 'the list'}), root));
  expect(text()).toBe('the list');
});

// --- the user

const user = (name: string) => ({user: name, server_role: 'none', projects: {}, address: '127.0.0.1', token: 't'});

/** An address bar that only records where the page goes. */
function address_bar(address: string): string[] {
  const gone: string[] = [];
  const url = new URL(address, 'https://server');
  vi.stubGlobal('location', {
    hash: url.hash,
    host: url.host,
    pathname: url.pathname,
    search: url.search,
    replace: (next: string) => gone.push(next),
  });
  vi.stubGlobal('history', {replaceState: () => {}, pushState: () => {}});
  return gone;
}

/** Answers for a browser with the session of `present`, if any, and a code that opens the session of `meant`. */
function session_answers(present: string, meant: object): void {
  answer = ({method}) => (method === 'POST' ? json(meant) : present ? json(user(present)) : json({title: 'no'}, 401));
}
const whoami = 'GET /v1/whoami';
const kCheck = {code: 'muster_abc', check: true};
const kLogin = {code: 'muster_abc'};
/** The bodies of the requests that concern the session. */
const session_bodies = () => asked.filter(({path}) => path === '/v1/ui/session').map(({body}) => body);

test('users with a server role see the users of the server, and only admins can change them', async () => {
  const ben = {name: 'ben', server_role: 'none', projects: {}, disabled: false, created: '2026-11-30T11:00:00Z'};
  answer = ({path}) => json(path === '/v1/users' ? {users: [ben]} : {tokens: []});
  for (const [role, sees, changes] of [
    ['none', false, false],
    ['viewer', true, false],
    ['member', true, false],
    ['admin', true, true],
  ] as const) {
    asked = [];
    me.value = {...user('ada'), server_role: role} as never;
    await show(Tokens, '/tokens');
    expect(paths().includes('GET /v1/users')).toBe(sees);
    expect(text().includes('ben')).toBe(sees);
    for (const label of ['Invite', 'Disable', 'New invitation']) expect(!!button(label)).toBe(changes);
    await act(() => render(null, root));
  }
});

test('the last answer about the rights of the user counts', async () => {
  const late = later();
  me.value = user('ada') as never;
  answer = () => late.answer;
  const first = load_session();
  answer = ({path}) => json(path === '/v1/info' ? {version: '1'} : {...user('ada'), server_role: 'admin'});
  await load_session();
  expect(is_server_admin()).toBe(true);
  await late.give(json(user('ada')));
  await first;
  expect(is_server_admin()).toBe(true);
});

test('a code in the address logs in a browser without a session only after a question', async () => {
  address_bar('/ui/jobs#code=muster_abc');
  session_answers('', user('mallory'));
  await use_code_of_address();
  expect(paths()).toEqual([whoami, 'POST /v1/ui/session']);
  expect(me.value).toBeNull();
  logged_out.value = true;
  await act(() => render([h(LoginDialog, {key: 1}), h(CodeQuestion, {key: 2})], root));
  // The question takes the place of the login dialog.
  expect(text()).toContain('Log in as mallory?');
  expect(text()).toContain('server as mallory');
  expect(text()).not.toContain('Log in to Muster');
  await act(() => button('Do not log in').click());
  expect(text()).toContain('Log in to Muster');
  expect(session_bodies()).toEqual([kCheck]);

  await use_code_of_address();
  await act(() => button('Log in as mallory').click());
  await wait();
  expect(session_bodies()).toEqual([kCheck, kCheck, kLogin]);
  expect(me.value!.user).toBe('mallory');
  expect(logged_out.value).toBe(false);
  expect(text()).toBe('');
});

test('a code that its author gains nothing from needs no question', async () => {
  for (const [present, token] of [
    ['', ''],
    ['ada', 't'],
  ] as const) {
    asked = [];
    address_bar('/ui/jobs#code=muster_abc');
    session_answers(present, {...user('ada'), token});
    await use_code_of_address();
    await act(() => render(h(CodeQuestion, {}), root));
    expect(text()).toBe('');
    expect(session_bodies()).toEqual([kCheck, kLogin]);
    expect(me.value!.user).toBe('ada');
    me.value = null;
  }
  // The owner of the socket is another user than that of the session.
  asked = [];
  session_answers('ben', {...user('ada'), token: ''});
  await use_code_of_address();
  expect(session_bodies()).toEqual([kCheck]);
  await act(() => button('Stay logged in as ben').click());
});

test('a code that is not valid is reported with and without a session', async () => {
  for (const present of ['ada', '']) {
    me.value = null;
    address_bar('/ui/jobs#code=muster_abc');
    answer = ({method}) =>
      method === 'POST'
        ? json({detail: 'the code is not valid'}, 401)
        : present
          ? json(user(present))
          : json({title: 'no'}, 401);
    await use_code_of_address();
    logged_out.value = !present;
    await act(() => render([h(LoginDialog, {key: present}), h(CodeQuestion, {}), h(Toasts, {})], root));
    expect(root.querySelector(present ? '.toast' : 'form .fault')!.textContent).toContain('the code is not valid');
    await wait(20_000);
  }
});

test('an answer that leaves open whether there is a session does not let a code replace it', async () => {
  for (const status of [403, 429, 500]) {
    address_bar('/ui/jobs#code=muster_abc');
    asked = [];
    answer = ({method}) => (method === 'POST' ? json(user('mallory')) : json({detail: 'not now'}, status));
    await use_code_of_address();
    expect(paths()).toEqual(['GET /v1/whoami']);
    expect(me.value).toBeNull();
  }
});

test('a code in the address does not replace a session without a question', async () => {
  const gone = address_bar('/ui/jobs?phase=Failed#code=muster_abc');
  session_answers('ada', user('mallory'));
  await use_code_of_address();
  await act(() => render(h(CodeQuestion, {}), root));
  expect(text()).toContain('You are logged in as ada');
  await act(() => button('Stay logged in as ada').click());
  expect(text()).toBe('');
  expect(session_bodies()).toEqual([kCheck]);
  expect(gone).toEqual([]);

  await use_code_of_address();
  await act(() => render(h(CodeQuestion, {}), root));
  await act(() => button('Log in as mallory').click());
  await wait();
  expect(session_bodies()).toEqual([kCheck, kCheck, kLogin]);
  expect(gone).toEqual(['/ui/jobs?phase=Failed']);
});

test('the page of a user is replaced when another user logs in', async () => {
  const gone = address_bar('/ui/submit');
  me.value = user('ada') as never;
  logged_out.value = true;
  answer = () => json(user('ben'));
  await act(() => render(h(LoginDialog, {}), root));
  await type(root.querySelector('input')!, 'muster_xyz');
  await act(() => button('Log in').click());
  await wait();
  expect(gone).toEqual(['/ui/submit']);
  expect(is_leaving()).toBe(true);
  // The waiting requests of the former user are not sent.
  expect(logged_out.value).toBe(true);
});

test('another tab that logs in as another user replaces the page', async () => {
  const gone = address_bar('/ui/submit');
  let receive: (message: {data: string}) => void = () => {};
  vi.stubGlobal(
    'BroadcastChannel',
    class {
      set onmessage(take: typeof receive) {
        receive = take;
      }
      postMessage() {}
    },
  );
  start_session();
  me.value = user('ada') as never;
  // The session has ended in both tabs, and is renewed in the other one.
  logged_out.value = true;
  receive({data: 'ada'});
  expect(gone).toEqual([]);
  expect(logged_out.value).toBe(false);
  receive({data: 'ben'});
  expect(gone).toEqual(['/ui/submit']);
});

test('a logout loads a new page, without the drafts of the user', async () => {
  const gone = address_bar('/ui/jobs/j');
  me.value = user('ada') as never;
  answer = () => new Response(null, {status: 204});
  await log_out();
  expect(paths()).toEqual(['POST /v1/logout']);
  expect(gone).toEqual(['/ui/']);
  expect(is_leaving()).toBe(true);
});

test('a logout without a valid session does not wait for a login', async () => {
  const gone = address_bar('/ui/jobs/j');
  me.value = user('ada') as never;
  answer = () => json({title: 'no'}, 401);
  void log_out();
  await wait();
  expect(logged_out.value).toBe(false);
  expect(gone).toEqual(['/ui/']);
  expect(paths()).toEqual(['POST /v1/logout']);
});
