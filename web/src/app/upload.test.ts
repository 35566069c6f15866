import {expect, test, vi} from 'vitest';
import {in_byte_order, kept, send_tree} from './upload';

test.each<[string, string[], [string, string][], string[]]>([
  ['the usual folders', ['.git/HEAD', 'a.py', '.idea/x', 'src/.git'], [], ['a.py', 'src/.git']],
  ['a name anywhere', ['a.log', 'x/a.log', 'a.py'], [['', '*.log']], ['a.py']],
  ['an anchored name', ['build/x', 'src/build/x'], [['', '/build']], ['src/build/x']],
  ['a folder only', ['data', 'x/data/y'], [['', 'data/']], ['data']],
  ['taken back in', ['a.log', 'keep.log'], [['', '*.log\n!keep.log']], ['keep.log']],
  ['nothing comes back from a folder that is left out', ['out/keep.log'], [['', 'out/\n!out/keep.log']], []],
  [
    'a deeper file decides',
    ['src/a.o', 'b.o'],
    [
      ['', '*.o'],
      ['src', '!a.o'],
    ],
    ['src/a.o'],
  ],
  ['two stars', ['a/b/c/x.ckpt', 'a/x.ckpt', 'x.ckpt'], [['', 'a/**/x.ckpt']], ['x.ckpt']],
  ['comments, spaces, sets', ['#x', 'a1', 'a2', 'b'], [['', '# no\n\na[!2]  ']], ['#x', 'a2', 'b']],
  ['dots are not wildcards', ['axb', 'a.b'], [['', 'a.b']], ['axb']],
])('%s', (_, paths, texts, left) => expect(kept(paths, new Map(texts))).toEqual(left));

test('paths are sorted by their bytes, and each path is encoded once', () => {
  const paths = ['\u{1f600}', '\uff5e', 'b', 'a/b', 'a', 'é', 'a-b'];
  const encode = vi.spyOn(TextEncoder.prototype, 'encode');
  const sorted = in_byte_order(paths.map((path) => ({path}))).map(({path}) => path);
  expect(encode).toHaveBeenCalledTimes(paths.length);
  encode.mockRestore();
  expect(sorted).toEqual(['a', 'a-b', 'a/b', 'b', 'é', '\uff5e', '\u{1f600}']);
});

test('more than 200,000 files are not sent', async () => {
  const files = new Array(200_001).fill({path: 'a', file: new Blob(['a'])});
  await expect(send_tree('p', files, () => {})).rejects.toThrow('more than 200,000 files');
});
