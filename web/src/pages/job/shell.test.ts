// @vitest-environment jsdom
import {h, render} from 'preact';
import {act} from 'preact/test-utils';
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {Shell} from './shell';

const dispose = vi.hoisted(() => vi.fn());
vi.mock('./terminal', () => ({
  open_shell: (host: HTMLElement) => {
    host.append('output of the shell');
    return {close: () => {}, dispose};
  },
}));

let root: HTMLElement;
beforeEach(() => {
  may_open = true;
  dispose.mockReset();
  root = document.body.appendChild(document.createElement('div'));
});
afterEach(async () => {
  await act(() => render(null, root));
  root.remove();
});

let may_open = true;
const show = (phase: string, ...running: string[]) => {
  const tasks = running.map((name) => ({name, phase: 'Running'}));
  return act(() => render(h(Shell, {job: {id: 'j', phase, tasks, spec: {project: 'p'}} as never, may_open}), root));
};
const button = () => root.querySelector<HTMLButtonElement>('form .primary');

test('the output of a shell stays when its task or the job has ended', async () => {
  await show('Running', 'main');
  await act(async () => {
    button()!.click();
    await vi.waitFor(() => expect(root.textContent).toContain('output of the shell'));
  });
  for (const [phase, reason] of [
    ['Queued', 'No task is running'],
    ['Failed', 'The job has ended'],
  ] as const) {
    await show(phase);
    expect(root.textContent).toContain('output of the shell');
    expect(root.textContent).toContain(reason);
    expect(button()!.disabled).toBe(true);
  }
  await show('Running', 'main');
  expect(button()!.disabled).toBe(false);
  expect(dispose).not.toHaveBeenCalled();
});

test('without an open shell and a running task, there is no terminal', async () => {
  await show('Queued');
  expect(root.textContent).toContain('No task is running');
  await show('Succeeded');
  expect(root.textContent).toContain('The job has ended');
  expect(button()).toBeNull();
});

test('without the role member there is no terminal', async () => {
  may_open = false;
  await show('Running', 'main');
  expect(root.textContent).toContain('A shell needs the role member in project p.');
  expect(button()).toBeNull();
});
