// The settings of this browser: theme, UTC, shortcuts. The page stores no secret there.
import {effect, signal} from '@preact/signals';
import {utc} from './format';

function load(key: string, otherwise: string): string {
  try {
    return localStorage.getItem(key) ?? otherwise;
  } catch {
    return otherwise;
  }
}
function store(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // A private window may refuse to store: the setting then lasts as long as the page.
  }
}

export type Theme = 'auto' | 'light' | 'dark';
export const theme = signal<Theme>(load('muster.theme', 'auto') as Theme);
export const shortcuts_on = signal(load('muster.shortcuts', 'yes') === 'yes');
/** Changes when the colours may have changed; charts are then drawn again. */
export const colours = signal(0);

export function start_settings(): void {
  effect(() => {
    const chosen = theme.value;
    if (chosen === 'auto') document.documentElement.removeAttribute('data-theme');
    else document.documentElement.dataset['theme'] = chosen;
    store('muster.theme', chosen);
    queueMicrotask(() => {
      colours.value++;
    });
  });
  effect(() => store('muster.shortcuts', shortcuts_on.value ? 'yes' : 'no'));
  effect(() => store('muster.utc', utc.value ? 'yes' : 'no'));
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => {
    colours.value++;
  });
}
