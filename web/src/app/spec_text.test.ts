import {describe, expect, test} from 'vitest';
import {command_line, flat, from_file, parse_size, parse_time, parse_yaml, shell_word, size_word, time_word, to_file, yaml_text, type TextFault, type Tree} from './spec_text';

test.each([[17179869184, '16Gi'], [536870912, '512Mi'], [1000, '1000'], [0, '0']])('size %d', (bytes, word) => {
  expect(size_word(bytes)).toBe(word);
  expect(parse_size(word)).toBe(bytes);
});

test.each([[30000, '30s'], [43200000, '12h'], [500, '500ms'], [86400000, '1d']])('time %d', (ms, word) => {
  expect(time_word(ms)).toBe(word);
  expect(parse_time(word)).toBe(ms);
});

test('a text that is no size or time is not one', () => {
  expect(parse_size('many')).toBeUndefined();
  expect(parse_time('1 fortnight')).toBeUndefined();
});

const kSpec: Tree = {
  name: 'dist', project: 'team-a', kind: 'mpi', workers: 2, folder: '/home/ada', grace_ms: 10000, start_timeout_ms: 60000,
  command: ['mpirun', '-np', '2', 'sh', '-c', 'echo "a: b"\nexit 0\n', 'yes', '1.0', '#no', ': x', '', ' lead', '\u202e'],
  resources: {gpus: 1, cpus: 0.5, memory_bytes: 17179869184, gpu_share: 0, gpu_memory_bytes: 0},
  environment: {LR: '0.1', ON: 'true', NAME: 'null'}, labels: {nightly: '', team: 'vision'},
  scheduling: {purpose: 'train', retries: 2, time_limit_ms: 43200000, retry_rules: [{exit_code: 42, action: 'fail'}, {log_pattern: 'Xid \\d+', action: 'avoid-node'}]},
  volumes: [{kind: 'host_path', source: '/mnt', target: '/data', read_only: true}],
};

describe('a job file', () => {
  test('leaves out what is the default and writes units', () => {
    expect(to_file(kSpec)).toMatchObject({resources: {gpus: 1, cpus: 0.5, memory: '16Gi'}, start_timeout: '1m', scheduling: {time_limit: '12h'}});
    expect(to_file(kSpec)).not.toHaveProperty('grace');
  });

  test('means the same spec when it is read again', async () => {
    const faults: TextFault[] = [];
    const again = from_file(await parse_yaml(yaml_text(to_file(kSpec))), faults);
    expect(faults).toEqual([]);
    expect(flat(to_file(again))).toEqual(flat(to_file(kSpec)));
  });

  test('reports the field of a wrong unit', () => {
    const faults: TextFault[] = [];
    from_file({resources: {memory: 'lots'}, grace: 'soon'}, faults);
    expect(faults.map((each) => each.field)).toEqual(['resources.memory', 'grace']);
  });

  test('cannot reach the prototype', async () => {
    const tree = from_file(await parse_yaml('name: x\n__proto__: {polluted: yes}\n'), []) as Tree;
    expect(({} as Tree)['polluted']).toBeUndefined();
    expect(tree['name']).toBe('x');
  });
});

test('the command line quotes what a shell would read', () => {
  expect(shell_word("it's")).toBe(`'it'\\''s'`);
  expect(command_line({name: 'x', kind: 'single', command: ['echo', '$HOME; rm -rf /'], resources: {gpus: 2}})).toBe(`muster submit single x --gpus 2 -- echo '$HOME; rm -rf /'`);
});
