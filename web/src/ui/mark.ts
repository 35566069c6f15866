// The matches of a search pattern, which are marked in the lines that are shown. Like the server, RE2 needs linear time
// for every pattern; a browser's RegExp could need years to search one line for (\w+\s?)*:.
import {signal} from '@preact/signals';
import {useEffect, useMemo} from 'preact/hooks';
import type {RE2JS} from 're2js';

export interface Mark {
  pattern: RE2JS;
  /** After so many matches in one text, empty ones included, no more are marked. */
  most: number;
}

/** The server searches this much of a line. */
const kMostMarked = 1024;
const kMostMatches = 200;
/** About the most steps of a search per character of a text. The search for one match needs as many as the pattern has parts. */
const kMostSteps = 8000;

/** Null: not loaded. Most pages show no search, and do not need it. */
const re2 = signal<typeof RE2JS | null>(null);
let loading: Promise<void> | null = null;

export function load_re2(): Promise<void> {
  loading ??= import('re2js').then(
    (loaded) => {
      re2.value = loaded.RE2JS;
    },
    () => {
      // The lines are shown without marks. The next search tries again.
      loading = null;
    },
  );
  return loading;
}

/** Null: without a pattern, before RE2 is loaded, or if the pattern is invalid or cannot be searched in linear time. */
export function mark_of(grep: string): Mark | null {
  if (!grep || !re2.value) return null;
  try {
    const pattern = re2.value.compile(grep);
    return {pattern, most: Math.min(kMostMatches, Math.ceil(kMostSteps / pattern.programSize()))};
  } catch {
    // The server reports a pattern that is not valid.
    return null;
  }
}

/** The mark for a pattern. Loads RE2 for the first pattern; the component is rendered again when it is loaded. */
export function useMark(grep: string): Mark | null {
  useEffect(() => {
    if (grep) void load_re2();
  }, [grep]);
  return useMemo(() => mark_of(grep), [grep, re2.value]);
}

/** The begin and the end of each match in the part of a text that is searched. */
export function matches_in(text: string, {pattern, most}: Mark): [number, number][] {
  const found: [number, number][] = [];
  const matcher = pattern.matcher(text.slice(0, kMostMarked));
  for (let i = 0; i < most && matcher.find(); i++)
    if (matcher.end() > matcher.start()) found.push([matcher.start(), matcher.end()]);
  return found;
}
