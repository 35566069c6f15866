import {describe, expect, test} from 'vitest';
import {
  command_line,
  parse_size,
  parse_time,
  parse_yaml,
  shell_word,
  size_word,
  time_word,
  to_file,
  yaml_text,
  type Tree,
} from './spec_text';

test.each([
  [17179869184, '16Gi'],
  [536870912, '512Mi'],
  [1000, '1000'],
  [0, '0'],
])('size %d', (bytes, word) => {
  expect(size_word(bytes)).toBe(word);
  expect(parse_size(word)).toBe(bytes);
});

test.each([
  [30000, '30s'],
  [43200000, '12h'],
  [500, '500ms'],
  [86400000, '1d'],
])('time %d', (ms, word) => {
  expect(time_word(ms)).toBe(word);
  expect(parse_time(word)).toBe(ms);
});

test('a text that is no size or time is not one', () => {
  expect(parse_size('many')).toBeUndefined();
  expect(parse_time('1 fortnight')).toBeUndefined();
});

const kSpec: Tree = {
  name: 'dist',
  project: 'team-a',
  kind: 'mpi',
  workers: 2,
  folder: '/home/ada',
  grace_ms: 10000,
  start_timeout_ms: 60000,
  command: [
    'mpirun',
    '-np',
    '2',
    'sh',
    '-c',
    'echo "a: b"\nexit 0\n',
    'yes',
    '1.0',
    '#no',
    ': x',
    '',
    ' lead',
    '\u202e',
  ],
  resources: {gpus: 1, cpus: 0.5, memory_bytes: 17179869184, gpu_share: 0, gpu_memory_bytes: 0},
  environment: {LR: '0.1', ON: 'true', NAME: 'null'},
  labels: {nightly: '', team: 'vision'},
  scheduling: {
    purpose: 'train',
    retries: 2,
    time_limit_ms: 43200000,
    retry_rules: [
      {exit_code: 42, action: 'fail'},
      {log_pattern: 'Xid \\d+', action: 'avoid-node'},
    ],
  },
  volumes: [{kind: 'host_path', source: '/mnt', target: '/data', read_only: true}],
};

describe('a job file', () => {
  test('leaves out what is the default and writes units', () => {
    expect(to_file(kSpec)).toMatchObject({
      resources: {gpus: 1, cpus: 0.5, memory: '16Gi'},
      start_timeout: '1m',
      scheduling: {time_limit: '12h'},
    });
    expect(to_file(kSpec)).not.toHaveProperty('grace');
  });

  test('keeps each scalar as the text that was typed', async () => {
    expect(
      await parse_yaml('environment: {LR: 0.10, ON: yes}\nresources: {memory: 16Gi}\nvolumes: ["data:/data"]\n'),
    ).toEqual({environment: {LR: '0.10', ON: 'yes'}, resources: {memory: '16Gi'}, volumes: ['data:/data']});
  });

  test('is the same tree when it is read again', async () => {
    const texts = (value: unknown): unknown =>
      Array.isArray(value)
        ? value.map(texts)
        : typeof value === 'object' && value !== null
          ? Object.fromEntries(Object.entries(value).map(([key, each]) => [key, texts(each)]))
          : String(value);
    expect(await parse_yaml(yaml_text(to_file(kSpec)))).toEqual(texts(to_file(kSpec)));
  });

  test('cannot reach the prototype', async () => {
    const tree = await parse_yaml('name: x\n__proto__: {polluted: yes}\n');
    expect(({} as Tree)['polluted']).toBeUndefined();
    expect(tree['name']).toBe('x');
  });
});

test('the command line quotes what a shell would read', () => {
  expect(shell_word("it's")).toBe(`'it'\\''s'`);
  expect(command_line({name: 'x', kind: 'single', command: ['echo', '$HOME; rm -rf /'], resources: {gpus: 2}})).toBe(
    `muster submit single x --gpus 2 -- echo '$HOME; rm -rf /'`,
  );
});

test('the command line has the flags of the server, and --set for the other fields', () => {
  expect(
    command_line({
      name: 'x',
      kind: 'mpi',
      command: ['./train'],
      workers: 4,
      labels: {nightly: '', team: 'a b'},
      terminal: true,
      keep_for_ms: 86400000,
      scheduling: {preemptible: false, retries: 2},
      leader: {resources: {cpus: 2}},
      volumes: [{kind: 'host_path', source: '/d', target: '/d'}],
    }),
  ).toMatchInlineSnapshot(
    `"muster submit mpi x --workers 4 --label nightly --label 'team=a b' --tty --keep-for 1d --set scheduling.preemptible=false --retries 2 --set leader.resources.cpus=2 --set 'volumes=[{"kind":"host_path","source":"/d","target":"/d"}]' -- ./train"`,
  );
});
