import {beforeAll, expect, test, vi} from 'vitest';
import {load_re2, mark_of, matches_in} from './mark';

beforeAll(load_re2);

const matches = (pattern: string, text: string) =>
  matches_in(text, mark_of(pattern)!).map(([begin, end]) => text.slice(begin, end));

test.each<[string, string, string[]]>([
  ['loss: [0-9.]+', 'loss: 0.5, loss: 0.25', ['loss: 0.5', 'loss: 0.25']],
  ['(ERROR|FATAL) .*', 'an ERROR here', ['ERROR here']],
  ['error', 'Error, ERROR, error', ['error']],
  ['(step )?\\d+', 'step 12', ['step 12']],
  ['(foo|bar)+', 'a foobar and a barfoo', ['foobar', 'barfoo']],
  ['([0-9a-f]{2}:){5}[0-9a-f]{2}', 'eth0 0a:1b:2c:3d:4e:5f up', ['0a:1b:2c:3d:4e:5f']],
  ['[[:digit:]]+', 'rank 12', ['12']],
  ['x*', 'axxb', ['xx']],
  ['\u{1f680} \\w+', 'a \u{1f680} go', ['\u{1f680} go']],
])('the matches of the pattern %j in %j', (pattern, text, found) => expect(matches(pattern, text)).toEqual(found));

test('a match may begin anywhere in the part of a line that the server searches', () => {
  const found = 'step=12 loss=0.25 lr=0.001 acc=0.5';
  const pattern = 'step=\\d+ loss=\\d+\\.\\d+ lr=\\d+\\.\\d+ acc=\\d+\\.\\d+';
  expect(matches(pattern, 'x'.repeat(900) + found)).toEqual([found]);
  expect(matches(pattern, 'x'.repeat(1024) + found)).toEqual([]);
});

// A RegExp would need from seconds to years.
test.each([
  ['(\\w+\\s?)*:', 'a'.repeat(28)],
  ['(\\w+\\s?)*:', 'a'.repeat(1024)],
  ['a?'.repeat(30) + 'a{30}b', 'a'.repeat(1024)],
])('the search for %j in a line without a match ends', (pattern, text) => expect(matches(pattern, text)).toEqual([]));

test('the more parts a pattern has, the fewer matches are marked in a line', () => {
  const count = (pattern: string) => matches(pattern, 'a'.repeat(1024)).length;
  expect(count('a')).toBe(200);
  expect(count('(a.{0,50}){0,5}@|a')).toBeLessThan(20);
});

test.each(['(a*)\\1x', 'a(?=b)', '(?<!a)b', '(', ''])('the pattern %j is not marked', (pattern) =>
  expect(mark_of(pattern)).toBeNull(),
);

test('nothing is marked before RE2 is loaded', async () => {
  vi.resetModules();
  const fresh = await import('./mark');
  expect(fresh.mark_of('x')).toBeNull();
  await fresh.load_re2();
  expect(fresh.mark_of('x')).not.toBeNull();
});
