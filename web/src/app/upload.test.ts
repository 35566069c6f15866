import {expect, test} from 'vitest';
import {kept} from './upload';

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
