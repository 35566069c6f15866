// A shell in a task. The terminal is loaded when the first one is opened.
import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {Job} from '../../api/types';
import {has_ended} from '../../app/format';
import {query_value, set_query} from '../../app/router';
import {Card} from '../../ui/parts';
import type {ShellSession} from './terminal';

export function Shell({job}: {job: Job}) {
  const tasks = job.tasks.filter((task) => task.phase === 'Running').map((task) => task.name);
  const task = query_value('task') || tasks[0] || '';
  const command = useSignal('sh');
  const state = useSignal<'idle' | 'opening' | 'open' | 'closed'>('idle');
  const note = useSignal('');
  const host = useRef<HTMLDivElement>(null);
  const session = useRef<ShellSession | null>(null);
  useEffect(() => () => session.current?.close(), []);
  const open = async (event: Event) => {
    event.preventDefault();
    session.current?.close();
    state.value = 'opening';
    note.value = '';
    const {open_shell} = await import('./terminal');
    session.current = open_shell(host.current!, job.id, task, command.value, (text) => {
      note.value = text;
      state.value = 'closed';
    });
    state.value = 'open';
  };
  if (has_ended(job.phase) || tasks.length === 0)
    return (
      <Card title="Shell">
        <div class="empty">
          {has_ended(job.phase) ? 'The job has ended: its tasks take no shells.' : 'No task runs yet.'}
        </div>
      </Card>
    );
  return (
    <Card title="Shell">
      <div class="stack tight">
        <form
          class="filters"
          onSubmit={(event) => {
            void open(event);
          }}
        >
          <select aria-label="Task" value={task} onChange={(e) => set_query({task: e.currentTarget.value})}>
            {tasks.map((name) => (
              <option key={name} value={name} selected={name === task}>
                {name}
              </option>
            ))}
          </select>
          <input
            aria-label="Command"
            value={command.value}
            onInput={(e) => {
              command.value = e.currentTarget.value;
            }}
          />
          <button class="primary" disabled={!command.value.trim()}>
            {state.value === 'open' ? 'Open again' : 'Open a shell'}
          </button>
          {state.value === 'open' && (
            <button type="button" onClick={() => session.current?.close()}>
              Close
            </button>
          )}
        </form>
        {note.value && (
          <div class="note" role="status">
            {note.value}
          </div>
        )}
        <div ref={host} class={`shell-host ${state.value === 'idle' ? 'off' : ''}`} />
        <p class="muted small">
          The terminal takes every key, Tab included; press <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>Esc</kbd> to leave it.
        </p>
      </div>
    </Card>
  );
}
