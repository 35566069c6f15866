// What a user chose for this browser: theme, UTC, shortcuts. Nothing secret is ever kept here.
import {effect, signal} from '@preact/signals';
import {utc} from './format';

function load(key: string, otherwise: string): string {
  try {
    return localStorage.getItem(key) ?? otherwise;
  } catch {
    return otherwise;
  }
}
function keep(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    /* private windows may refuse */
  }
}

export type Theme = 'auto' | 'light' | 'dark';
export const theme = signal<Theme>(load('muster.theme', 'auto') as Theme);
export const shortcuts_on = signal(load('muster.shortcuts', 'yes') === 'yes');
/** Changes whenever colours may have changed; charts draw again. */
export const colours = signal(0);

export function start_settings(): void {
  effect(() => {
    const chosen = theme.value;
    if (chosen === 'auto') document.documentElement.removeAttribute('data-theme');
    else document.documentElement.dataset['theme'] = chosen;
    keep('muster.theme', chosen);
    queueMicrotask(() => {
      colours.value++;
    });
  });
  effect(() => keep('muster.shortcuts', shortcuts_on.value ? 'yes' : 'no'));
  effect(() => keep('muster.utc', utc.value ? 'yes' : 'no'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    colours.value++;
  });
}
