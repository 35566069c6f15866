// A shell in a task. The code of the terminal is loaded when the user opens a shell.
import {useSignal} from '@preact/signals';
import {useEffect, useRef} from 'preact/hooks';
import type {Job} from '../../api/types';
import {has_ended} from '../../app/format';
import {query_value, set_query} from '../../app/router';
import {Card, error_text} from '../../ui/parts';
import type {ShellSession} from './terminal';

export function Shell({job, may_open}: {job: Job; may_open: boolean}) {
  const tasks = job.tasks.filter((task) => task.phase === 'Running').map((task) => task.name);
  const task = query_value('task') || tasks[0] || '';
  const command = useSignal('sh');
  const state = useSignal<'idle' | 'opening' | 'open' | 'closed'>('idle');
  const note = useSignal('');
  const host = useRef<HTMLDivElement>(null);
  const session = useRef<ShellSession | null>(null);
  useEffect(() => () => session.current?.dispose(), []);
  const open = async (event: Event) => {
    event.preventDefault();
    session.current?.dispose();
    session.current = null;
    state.value = 'opening';
    note.value = '';
    try {
      const {open_shell} = await import('./terminal');
      // The user may have left the page while the code was loaded.
      if (!host.current) {
        state.value = 'idle';
        return;
      }
      session.current = open_shell(host.current, job.id, task, command.value, (text) => {
        note.value = text;
        state.value = 'closed';
      });
      state.value = 'open';
    } catch (fault) {
      note.value = `The terminal could not be loaded: ${error_text(fault)}. Load the page again.`;
      state.value = 'idle';
    }
  };
  const missing = has_ended(job.phase)
    ? 'The job has ended. A shell needs a running task.'
    : tasks.length === 0
      ? 'No task is running.'
      : may_open
        ? ''
        : `A shell needs the role member in project ${job.spec.project ?? 'default'}.`;
  // The output of a shell stays on the screen when its task has ended.
  if (missing && state.value === 'idle')
    return (
      <Card title="Shell">
        <div class="empty">{missing}</div>
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
          <button class="primary" disabled={!!missing || !command.value.trim() || state.value === 'opening'}>
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
        {missing && <p class="muted small">{missing}</p>}
        <div ref={host} class={`shell-host ${state.value === 'idle' ? 'off' : ''}`} />
        <p class="muted small">
          The terminal takes every key, Tab included; press <kbd>Ctrl</kbd>+<kbd>Shift</kbd>+<kbd>Esc</kbd> to leave it.
        </p>
      </div>
    </Card>
  );
}
