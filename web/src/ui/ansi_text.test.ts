// @vitest-environment jsdom
import {h, render} from 'preact';
import {act} from 'preact/test-utils';
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {AnsiText} from './ansi_text';
import {load_re2, useMark} from './mark';

let root: HTMLElement;
beforeEach(() => {
  root = document.body.appendChild(document.createElement('div'));
});
afterEach(async () => {
  await act(() => render(null, root));
  root.remove();
});
function Line({text, pattern}: {text: string; pattern: string}) {
  return h(AnsiText, {text, dark: false, mark: useMark(pattern)});
}
const show = (text: string, pattern: string) =>
  act(async () => {
    render(h(Line, {text, pattern}), root);
    if (pattern) await load_re2();
  });

test('a faint text has the class of faint texts', async () => {
  await show('\x1b[2mfaint\x1b[22m plain', '');
  expect([...root.querySelectorAll('span')].map((span) => [span.textContent, span.className])).toEqual([
    ['faint', 'fa'],
    [' plain', ''],
  ]);
});

test('matches are marked in the part of a line that the server searches, and the whole line is shown', async () => {
  const line = `needle ${'x'.repeat(3000)} needle`;
  await show(line, 'needle');
  expect(root.querySelectorAll('mark').length).toBe(1);
  expect(root.textContent).toBe(line);
});

test('the marks of a line appear when the search library is loaded', async () => {
  vi.resetModules();
  const {AnsiText: Text} = await import('./ansi_text');
  const {load_re2: load, useMark: use} = await import('./mark');
  const marks = () => [...root.querySelectorAll('mark')].map((mark) => mark.textContent);
  const Fresh = () => h(Text, {text: 'a foobar', dark: false, mark: use('(foo|bar)+')});
  await act(async () => {
    render(h(Fresh, {}), root);
    expect([root.textContent, marks()]).toEqual(['a foobar', []]);
    await load();
  });
  expect([root.textContent, marks()]).toEqual(['a foobar', ['foobar']]);
});

test('a line is shown without marks if the page cannot search for the pattern', async () => {
  await show('aab', 'a(?=b)');
  expect(root.querySelector('mark')).toBeNull();
  expect(root.textContent).toBe('aab');
});
