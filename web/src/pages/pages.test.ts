// @vitest-environment jsdom
import {describe, expect, test} from 'vitest';
import type {Job, Project, WhoAmI} from '../api/types';
import {me, role_in} from '../app/session';
import {split_words} from './fields';
import {bars_of} from './job/timeline';
import {JobRows, page_of, type JobRow} from './job_rows';
import {labels_of, parameters_of} from './compared';
import {project_rows} from './project_tree';

const row = (id: number): JobRow => ({
  object: 'job',
  id: String(id),
  name: `j${id}`,
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
  submitted: '',
  attempt: 0,
  restarts: 0,
  suspended: false,
  stop_requested: false,
});

/** A list on the server, newest first; the cursor is the id of the last row. */
function server(ids: number[]) {
  const asked: string[] = [];
  const counted: string[] = [];
  const fetch = (query: {cursor?: unknown; limit?: unknown; count?: unknown}) => {
    const cursor = String(query.cursor ?? '');
    asked.push(cursor);
    if (query.count) counted.push(cursor);
    const begin = cursor === '' ? 0 : ids.findIndex((id) => id < Number(cursor));
    const rows = begin < 0 ? [] : ids.slice(begin, begin + Number(query.limit)).map(row);
    const more = rows.length > 0 && ids.indexOf(Number(rows.at(-1)!.id)) < ids.length - 1;
    return Promise.resolve({
      rows,
      next: more ? rows.at(-1)!.id : '',
      counts: query.count
        ? {all: ids.length, queued: ids.length, starting: 0, running: 0, succeeded: 0, failed: 0, stopped: 0}
        : undefined,
    });
  };
  return {ids, asked, counted, fetch: fetch as never};
}
const ids = (n: number) => Array.from({length: n}, (_, i) => n - i);
const never = new AbortController().signal;

describe('JobRows', () => {
  test('loads only what is seen', async () => {
    const there = server(ids(1000));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    expect(there.asked).toEqual(['']);
    expect(rows.length).toBe(1000);
    expect(rows.at(5)!.id).toBe('995');
    expect(rows.at(500)).toBeUndefined();
  });
  test('reaches the end of a long list and forgets what is far away', async () => {
    const there = server(ids(100000));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    await rows.load(99970, 100000, never, false);
    expect(rows.at(99999)!.id).toBe('1');
    expect([...rows.kept()].length).toBeLessThan(5000);
    expect(rows.complete).toBe(true);
  });
  test('new rows above move the others down, none is lost or doubled', async () => {
    const there = server(ids(500));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 450, never, true);
    there.ids.unshift(503, 502, 501);
    await rows.load(0, 450, never, true);
    expect(Array.from({length: 450}, (_, i) => rows.at(i)?.id)).toEqual(ids(503).slice(0, 450).map(String));
    expect(rows.index_of('500')).toBe(3);
  });
  test('a changed row is shown at once, and one that is not here is left alone', async () => {
    const there = server(ids(100));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    expect(rows.put({...row(60), phase: 'Running'})?.phase).toBe('Queued');
    expect(rows.at(40)).toMatchObject({id: '60', phase: 'Running'});
    expect(rows.put(row(101))).toBeUndefined();
    expect(rows.length).toBe(100);
  });
  test('a range has all rows between two jobs in the present order, or is refused', async () => {
    const there = server(ids(100000));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    there.ids.unshift(100002, 100001);
    await rows.load(0, 30, never, true);
    const range = (one: number, other: number) => rows.between(String(one), String(other))?.map((each) => each.id);
    expect(range(100000, 99998)).toEqual(['100000', '99999', '99998']);
    expect(range(99998, 100001)).toEqual(['100001', '100000', '99999', '99998']);
    expect(range(99998, 1)).toBeUndefined();
    // The rows between were forgotten.
    await rows.load(99970, 100002, never, false);
    await rows.load(0, 30, never, false);
    expect(rows.index_of('1')).toBeGreaterThan(0);
    expect(range(100000, 1)).toBeUndefined();
  });
  test('a range is refused over the border of a part that is older than its neighbour', async () => {
    const there = server(ids(1000));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    await rows.load(0, 230, never, false);
    const range = (one: number, other: number) =>
      rows.between(String(one), String(other))?.map((each) => Number(each.id));
    const from_990_to_780 = Array.from({length: 211}, (_, i) => 990 - i);
    expect(range(990, 780)).toEqual(from_990_to_780);
    // The first part loses 801 and 802 to the second part, which is not loaded again.
    there.ids.unshift(1002, 1001);
    const renewal = rows.load(0, 30, never, true);
    // Until the answer arrives, the range is as shown.
    expect(range(990, 780)).toEqual(from_990_to_780);
    await renewal;
    expect(range(990, 780)).toBeUndefined();
    expect(range(780, 790)).toBeUndefined();
    expect(range(1002, 1000)).toEqual([1002, 1001, 1000]);
    await rows.load(150, 230, never, false);
    expect(range(990, 780)).toEqual(from_990_to_780);
    expect(range(780, 778)).toEqual([780, 779, 778]);
  });
  /** Loads what a view lacks, as the page does when the user scrolls, and returns its rows. */
  const seen = async (rows: JobRows, first: number, last: number) => {
    for (let i = 0; i < 10 && rows.lacks(first, last); i++) await rows.load(first, last, never, false);
    expect(rows.lacks(first, last)).toBe(false);
    return Array.from({length: Math.min(last, rows.length) - first}, (_, i) => Number(rows.at(first + i)?.id));
  };
  test('after a refresh of the first rows, no row is missing or old below them', async () => {
    const there = server(ids(1000));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    for (const first of [150, 350, 550]) await seen(rows, first, first + 30);
    there.ids.unshift(1002, 1001);
    await rows.load(0, 30, never, true);
    expect(rows.length).toBe(1002);
    // The ends of the parts, from above and from below.
    for (const first of [185, 385, 585, 385, 185, 0])
      expect(await seen(rows, first, first + 30)).toEqual(there.ids.slice(first, first + 30));
    there.ids.splice(300, 5);
    await rows.load(590, 620, never, true);
    for (const first of [185, 385, 585, 385])
      expect(await seen(rows, first, first + 30)).toEqual(there.ids.slice(first, first + 30));
  });
  test('the counts and the length follow the list while the view is far below its beginning', async () => {
    const there = server(ids(900));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 30, never, true);
    await seen(rows, 600, 630);
    there.ids.unshift(903, 902, 901);
    there.counted.length = 0;
    await rows.load(600, 630, never, true);
    expect(there.counted.length).toBe(1);
    expect([rows.counts!.queued, rows.total, rows.length]).toEqual([903, 903, 903]);
    expect(await seen(rows, 0, 5)).toEqual([903, 902, 901, 900, 899]);
  });
  test('a list that was complete grows at both ends', async () => {
    const there = server(ids(250).map((id) => id + 100));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 250, never, true);
    expect([rows.complete, rows.length]).toEqual([true, 250]);
    there.ids.unshift(...Array.from({length: 500}, (_, i) => 850 - i));
    there.ids.push(100, 99);
    await rows.load(0, 30, never, true);
    expect([rows.complete, rows.length]).toEqual([false, 752]);
    expect(await seen(rows, 722, 752)).toEqual(there.ids.slice(722));
    for (const first of [0, 185, 385])
      expect(await seen(rows, first, first + 30)).toEqual(there.ids.slice(first, first + 30));
    there.ids.splice(10, 700);
    await rows.load(0, 30, never, true);
    expect(await seen(rows, 0, 60)).toEqual(there.ids);
    expect([rows.complete, rows.length]).toEqual([true, 52]);
  });
  test('deleted rows disappear', async () => {
    const there = server(ids(300));
    const rows = new JobRows(() => ({}), there.fetch);
    await rows.load(0, 300, never, true);
    there.ids.splice(10, 50);
    await rows.load(0, 300, never, true);
    expect(rows.known).toBe(250);
  });
});

test('a row leads to the page of its object', () => {
  expect((['job', 'array', 'sweep', 'schedule'] as const).map((object) => page_of({...row(1), object}))).toEqual([
    '/jobs/1',
    '/arrays/1',
    '/sweeps/1',
    '/schedules/1',
  ]);
});

test('a command is split as a shell does', () => {
  expect(split_words(`python3 train.py --name 'a b' "c\\"d" e\\ f ''`)).toEqual([
    'python3',
    'train.py',
    '--name',
    'a b',
    'c"d',
    'e f',
    '',
  ]);
  expect(split_words(`echo 'open`)).toBeUndefined();
});

test('the timeline of a job that was retried', () => {
  const at = (s: number) => new Date(s * 1000).toISOString();
  const job = {
    submitted: at(0),
    ended: at(40),
    tasks: [],
    events: [
      {time: at(0), text: 'submitted', fact: {kind: 'notice', what: 'submitted'}},
      {time: at(10), text: 'placed', fact: {kind: 'placed', attempt: 1}},
      {time: at(12), text: 'running', fact: {kind: 'notice', what: 'running'}},
      {time: at(20), text: 'failed', fact: {kind: 'failed'}},
      {time: at(20), text: 'again', fact: {kind: 'starts_again'}},
      {time: at(25), text: 'placed', fact: {kind: 'placed', attempt: 2}},
      {time: at(26), text: 'running', fact: {kind: 'notice', what: 'running'}},
      {time: at(40), text: 'Succeeded', fact: {kind: 'phase'}},
    ],
  } as unknown as Job;
  expect(bars_of(job, 99000).map((bar) => [bar.kind, bar.begin / 1000, bar.end / 1000])).toEqual([
    ['waits', 0, 10],
    ['starts', 10, 12],
    ['failed', 12, 20],
    ['waits', 20, 25],
    ['starts', 25, 26],
    ['runs', 26, 40],
  ]);
});

test('projects in the order of their tree; a hidden parent hides no child', () => {
  const project = (name: string, parent: string, sequence: number, allocated = 0) =>
    ({name, parent, sequence, status: {deserved: {gpus: 2}, allocated: {gpus: allocated}}}) as unknown as Project;
  const rows = project_rows([project('b', 'a', 2, 3), project('a', '', 3), project('c', 'hidden', 1)]);
  expect(rows.map((each) => [each.project.name, each.depth, each.borrowed])).toEqual([
    ['c', 0, 0],
    ['a', 0, 0],
    ['b', 1, 1],
  ]);
});

test('the role in a project is the highest of three: on the server, in the project, in a project above it', () => {
  const roles = (server_role: string) => {
    me.value = {server_role, projects: {team: 'member', run: 'viewer'}} as unknown as WhoAmI;
    return [role_in('other'), role_in('team'), role_in('run', ['team']), role_in('run')];
  };
  expect(roles('none')).toEqual(['none', 'member', 'member', 'viewer']);
  expect(roles('viewer')).toEqual(['viewer', 'member', 'member', 'viewer']);
  expect(roles('member')).toEqual(['member', 'member', 'member', 'member']);
  expect(roles('admin')).toEqual(['admin', 'admin', 'admin', 'admin']);
  me.value = null;
  expect(role_in('team')).toBe('none');
});

test('parameters of a command', () => {
  const job = {
    spec: {
      name: 'x',
      folder: '/',
      command: ['python3', 'train.py', '--lr', '0.1', '--epochs=3', '--amp'],
      environment: {SEED: '1', MUSTER_PARAM_SEED: '1', MUSTER_SWEEP_TRIAL: '3'},
    },
  } as unknown as Job;
  expect(parameters_of(job)).toMatchObject({
    '--lr': '0.1',
    '--epochs': '3',
    '--amp': 'yes',
    'environment.SEED': '1',
    command: 'python3 train.py',
  });
  expect(Object.keys(parameters_of(job)).filter((key) => key.includes('MUSTER_'))).toEqual([]);
});

test('compared jobs of one name have different labels', () => {
  const job = (id: string, name: string, project?: string) => ({job: {id, spec: {name, project}} as never, series: []});
  const labels = labels_of([
    job('1', 'a'),
    job('2', 'b', 'x'),
    job('3', 'b'),
    job('4', 'b', 'default'),
    job('5', 'c', 'x'),
  ]);
  expect([...labels.values()]).toEqual(['a', 'b (x)', 'b (3)', 'b (4)', 'c']);
});

test('a tree of 10,000 projects is put in order without delay', () => {
  const many = Array.from(
    {length: 10000},
    (_, i) =>
      ({
        name: `p${i}`,
        parent: i % 10 ? `p${i - (i % 10)}` : '',
        sequence: i,
        status: {deserved: {gpus: 0}, allocated: {gpus: 0}},
      }) as unknown as Project,
  );
  const begun = performance.now();
  const rows = project_rows(many);
  expect(performance.now() - begun).toBeLessThan(500);
  expect(rows.length).toBe(10000);
  expect(rows.slice(0, 2).map((each) => [each.project.name, each.depth, each.has_children])).toEqual([
    ['p0', 0, true],
    ['p1', 1, false],
  ]);
});
