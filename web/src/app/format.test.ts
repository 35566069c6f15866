import {expect, test} from 'vitest';
import {
  amount_text,
  bytes_text,
  clock_text,
  count_text,
  job_gpus,
  number_text,
  span_text,
  text_of,
  tick_texts,
  time_text,
} from './format';

test.each([
  [0, '0s'],
  [59999, '59s'],
  [61000, '1m 01s'],
  [3600000 * 5 + 120000, '5h 02m'],
  [86400000 * 3 + 3600000 * 4, '3d 4h'],
])('%d ms', (ms, text) => expect(span_text(ms)).toBe(text));
test.each([
  [0, '0 B'],
  [1023, '1023 B'],
  [1536, '1.5 KiB'],
  [85899345920, '80 GiB'],
])('%d bytes', (bytes, text) => expect(bytes_text(bytes)).toBe(text));

test('times in UTC name their zone', () => {
  const time = Date.parse('2026-01-31T12:00:05.5Z');
  expect(time_text(time, true)).toBe('2026-01-31 12:00:05Z');
  expect(clock_text(time, true, false)).toBe('12:00');
});

test('a time axis over several days names the days', () => {
  const hour = 3600e3;
  const noon = Date.parse('2026-10-24T12:00:00Z');
  const every = (step: number, count: number) => Array.from({length: count}, (_, i) => noon + i * step);
  expect(tick_texts(every(15e3, 3), true)).toEqual(['12:00:00', '12:00:15', '12:00:30']);
  expect(tick_texts(every(3 * hour, 3), true)).toEqual(['12:00', '15:00', '18:00']);
  expect(tick_texts(every(6 * hour, 3), true)).toEqual(['10-24 12:00', '10-24 18:00', '10-25 00:00']);
  expect(tick_texts(every(24 * hour, 3), true)).toEqual(['10-24', '10-25', '10-26']);
  // The midnights of a zone whose clocks change: the days have 24, 25 and 23 hours.
  const before = process.env['TZ'];
  process.env['TZ'] = 'Europe/Berlin';
  const midnights = [24, 25, 26].map((day) => new Date(2026, 9, day).getTime());
  expect((midnights[2]! - midnights[1]!) / hour).toBe(25);
  expect(tick_texts(midnights.slice(1), false)).toEqual(['10-25', '10-26']);
  const spring = [28, 29, 30].map((day) => new Date(2026, 2, day).getTime());
  expect(tick_texts(spring.slice(1), false)).toEqual(['03-29', '03-30']);
  if (before === undefined) delete process.env['TZ'];
  else process.env['TZ'] = before;
});

test('numbers', () => {
  expect(count_text(1234567)).toBe('1\u202f234\u202f567');
  expect(amount_text(0.1 + 0.2)).toBe('0.3');
  expect(amount_text(null)).toBe('∞');
});

test.each([
  [999999, '999999'],
  [1234567, '1234567'],
  [-1234567, '-1234567'],
  [1234567.8, '1234568'],
  [12345678, '1.235e+7'],
  [0.1 + 0.2, '0.3'],
  [0.00012345, '1.234e-4'],
  [0, '0'],
])('the number %d', (number, text) => expect(number_text(number)).toBe(text));

test('the GPUs of all tasks', () => {
  const spec = {name: 'x', command: [], folder: '/'};
  expect(job_gpus({...spec, resources: {gpus: 3}})).toBe(3);
  expect(job_gpus({...spec, kind: 'mpi', workers: 4, resources: {gpus: 2}})).toBe(8);
  expect(job_gpus({...spec, kind: 'torch', workers: 3, resources: {gpus: 1}})).toBe(4);
  expect(job_gpus({...spec, resources: {gpu_share: 0.5}})).toBe(0.5);
});

test('a text that is not UTF-8', () => {
  expect(text_of({base64: 'aGk='})).toBe('hi');
  expect(text_of({base64: '!'})).toBe('\ufffd');
  expect(text_of(undefined)).toBe('');
});
