import {describe, expect, test} from 'vitest';
import {level_of, pattern_of, pieces_of, plain_text, readable, visible_text} from './ansi';

describe('pieces_of', () => {
  test.each([
    ['plain', [{text: 'plain'}]],
    ['\x1b[31mred\x1b[0m rest', [{text: 'red', fg: 1}, {text: ' rest'}]],
    ['\x1b[1;92mx', [{text: 'x', bold: true, fg: 10}]],
    ['\x1b[38;5;208morange', [{text: 'orange', fg: '#ff8700'}]],
    ['\x1b[38;5;3mthree', [{text: 'three', fg: 3}]],
    ['\x1b[48;2;1;2;3mx', [{text: 'x', bg: '#010203'}]],
    ['\x1b[38;2;300;0;0mx', [{text: 'x'}]],
    ['a\x1b[2Jb\x1b[10;10Hc', [{text: 'a'}, {text: 'b'}, {text: 'c'}]],
    ['\x1b]0;title\x07x', [{text: 'x'}]],
    ['\x1b]8;;https://evil.example/\x1b\\link\x1b]8;;\x1b\\', [{text: 'link'}]],
    ['\x1b]52;c;ZXZpbA==', [{text: ''}]],
    ['\x1bP+q544e\x1b\\x', [{text: 'x'}]],
    ['\x9b31mred', [{text: 'red', fg: 1}]],
    ['10%\r50%\r100%', [{text: '100%'}]],
    ['', [{text: ''}]],
  ])('%j', (line, pieces) => expect(pieces_of(line)).toEqual(pieces));

  test('an unfinished sequence hides nothing that follows on the next line', () => {
    expect(plain_text('before \x1b[')).toBe('before ');
    expect(plain_text('after')).toBe('after');
  });
});

test('characters that reorder or hide text become visible', () => {
  expect(visible_text('a\u202eb')).toBe('a⟨U+202E⟩b');
  expect(visible_text('a\u0000b\u0007')).toBe('a␀b␇');
  expect(visible_text('zero\u200bwidth')).toBe('zero⟨U+200B⟩width');
  expect(visible_text('مرحبا é')).toBe('مرحبا é');
  expect(visible_text('x' + '\u0301'.repeat(500)).length).toBe(5);
});

test('every colour can be read on both grounds', () => {
  for (const colour of ['#000000', '#ffffff', '#ffff00', '#0000ff', '#808080', '#101418']) {
    for (const dark of [true, false]) expect(readable(colour, dark)).toMatch(/^#[0-9a-f]{6}$/);
  }
  expect(readable('#ffff00', false)).not.toBe('#ffff00');
  expect(readable('#ffff00', true)).toBe('#ffff00');
});

test.each([
  ['2026-01-31 ERROR disk full', 'error'],
  ['Traceback (most recent call last):', 'error'],
  ['ValueError: no', 'error'],
  ['error: x', 'error'],
  ['WARNING: slow', 'warning'],
  ['UserWarning: old', 'warning'],
  ['INFO started', 'info'],
  ['DEBUG x', 'debug'],
  ['epoch 3 loss 0.1', ''],
])('level of %j', (line, level) => expect(level_of(line)).toBe(level));

test('the pattern of a level finds the lines that name the level', () => {
  const lines = [
    'ERROR disk full',
    'E0131 12:00:00 gone',
    'ValueError: shapes do not match',
    'Traceback (most recent call last):',
    '[error] refused',
    'WARNING slow',
    'UserWarning: old',
    'INFO begins',
    'DEBUG step 1',
    'an error rate of 3 %',
    'loss 0.1',
  ];
  const found = (level: 'error' | 'warning') => lines.filter((line) => new RegExp(pattern_of(level)).test(line));
  expect(found('error')).toEqual(lines.filter((line) => level_of(line) === 'error'));
  expect(found('warning')).toEqual(lines.filter((line) => ['error', 'warning'].includes(level_of(line))));
});
