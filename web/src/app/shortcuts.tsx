// Keyboard shortcuts: two keys in a row open a page, a single key is an action. `?` lists them; a user can
// switch them off, as WCAG 2.1.4 requires. A view registers shortcuts of its own while it is visible.
import {signal} from '@preact/signals';
import {Fragment} from 'preact';
import {useEffect} from 'preact/hooks';
import {Dialog} from '../ui/parts';
import {navigate} from './router';
import {shortcuts_on} from './settings';

export interface Shortcut {
  keys: string;
  what: string;
  run: () => void;
}

const kGlobal: Shortcut[] = [
  {keys: 'g o', what: 'Overview', run: () => navigate('/overview')},
  {keys: 'g j', what: 'Jobs', run: () => navigate('/jobs')},
  {keys: 'g s', what: 'Scheduler', run: () => navigate('/scheduler')},
  {keys: 'g p', what: 'Projects', run: () => navigate('/projects')},
  {keys: 'g n', what: 'Nodes', run: () => navigate('/nodes')},
  {keys: 'g c', what: 'Compare jobs', run: () => navigate('/compare')},
  {keys: 'c', what: 'Submit a job', run: () => navigate('/submit')},
  {
    keys: '/',
    what: 'Go to the search or filter of the page',
    run: () => document.querySelector<HTMLElement>('[data-search]')?.focus(),
  },
  {
    keys: '?',
    what: 'List the shortcuts',
    run: () => {
      help_open.value = true;
    },
  },
];

export const help_open = signal(false);
const local = signal<Shortcut[]>([]);

/** Registers shortcuts of a view. Their functions are those of the render in which `depends` changed last. */
export function useShortcuts(list: Shortcut[], depends: unknown[] = []): void {
  useEffect(() => {
    local.value = [...local.value, ...list];
    return () => {
      local.value = local.value.filter((each) => !list.includes(each));
    };
  }, depends);
}

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.(
    'input:not([type=checkbox]):not([type=radio]), textarea, select, [contenteditable], .xterm',
  );
}

export function start_shortcuts(): void {
  let first = '';
  let first_at = 0;
  document.addEventListener('keydown', (event) => {
    if (!shortcuts_on.value || event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
    if (document.querySelector('dialog[open]')) return;
    const sequence = first && Date.now() - first_at < 1500 ? `${first} ${event.key}` : event.key;
    const all = [...local.value, ...kGlobal];
    const found = all.find((each) => each.keys === sequence) ?? all.find((each) => each.keys === event.key);
    first = '';
    if (found) {
      event.preventDefault();
      found.run();
    } else if (all.some((each) => each.keys.startsWith(event.key + ' '))) {
      first = event.key;
      first_at = Date.now();
    }
  });
}

export function ShortcutHelp() {
  if (!help_open.value) return null;
  const rows = (list: Shortcut[]) =>
    list.map((each) => (
      <tr key={each.keys}>
        <td class="nowrap">
          {each.keys.split(' ').map((k, i) => (
            <Fragment key={i}>
              {i > 0 && ' '}
              <kbd>{k}</kbd>
            </Fragment>
          ))}
        </td>
        <td>{each.what}</td>
      </tr>
    ));
  return (
    <Dialog
      title="Keyboard shortcuts"
      onClose={() => {
        help_open.value = false;
      }}
    >
      <label>
        <input
          type="checkbox"
          checked={shortcuts_on.value}
          onChange={(e) => {
            shortcuts_on.value = e.currentTarget.checked;
          }}
        />{' '}
        Shortcuts are on
      </label>
      <table class="grid">
        <caption class="hidden-text">Shortcuts</caption>
        <thead>
          <tr>
            <th>Keys</th>
            <th>Action</th>
          </tr>
        </thead>
        <tbody>
          {rows(local.value)}
          {rows(kGlobal)}
        </tbody>
      </table>
    </Dialog>
  );
}
