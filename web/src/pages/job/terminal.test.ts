// @vitest-environment jsdom
// Tests what a shell sends and reports, with a connection and a terminal that the test controls.
import {afterEach, beforeEach, expect, test, vi} from 'vitest';
import {open_shell, type ShellSession} from './terminal';

/** The terminal that the shell has opened, and what the user does in it. */
const screen = vi.hoisted(() => ({
  rows: 24,
  cols: 80,
  type: (_text: string) => {},
  resize: (_rows: number, _cols: number) => {},
}));
vi.mock('@xterm/xterm', () => ({
  Terminal: class {
    options = {};
    get rows() {
      return screen.rows;
    }
    get cols() {
      return screen.cols;
    }
    onData(take: (text: string) => void) {
      screen.type = take;
    }
    onResize(take: (size: {rows: number; cols: number}) => void) {
      screen.resize = (rows, cols) => {
        Object.assign(screen, {rows, cols});
        take({rows, cols});
      };
    }
    onBinary() {}
    loadAddon() {}
    open() {}
    attachCustomKeyEventHandler() {}
    focus() {}
    dispose() {}
  },
}));
vi.mock('@xterm/addon-fit', () => ({
  FitAddon: class {
    fit() {}
  },
}));
vi.mock('@xterm/xterm/css/xterm.css', () => ({}));

class Socket {
  static readonly OPEN = 1;
  readyState = 0;
  sent: (string | Uint8Array)[] = [];
  onopen = () => {};
  onclose = () => {};
  constructor(readonly url: string) {
    socket = this;
  }
  send(message: string | Uint8Array) {
    this.sent.push(message);
  }
  close() {}
  opens() {
    this.readyState = 1;
    this.onopen();
  }
  closes() {
    this.readyState = 3;
    this.onclose();
  }
}
let socket: Socket;
let session: ShellSession;
let ended: string[];
let asked: string[];
let answer: Response;
/** The answer to a request for the job. */
let job: Response;

beforeEach(() => {
  Object.assign(screen, {rows: 24, cols: 80});
  ended = [];
  asked = [];
  vi.stubGlobal('WebSocket', Socket);
  vi.stubGlobal(
    'ResizeObserver',
    class {
      observe() {}
      disconnect() {}
    },
  );
  vi.stubGlobal('matchMedia', () => ({matches: false}));
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    return Promise.resolve(url === '/v1/jobs/j' ? job : answer);
  });
  session = open_shell(document.createElement('div'), 'j', 'main', 'sh', (text) => ended.push(text));
});
afterEach(() => {
  session.dispose();
  vi.unstubAllGlobals();
});
const problem = (status: number, detail: string, advice?: string) => Response.json({detail, advice}, {status});
const job_with = (name: string, phase: string) => Response.json({tasks: [{name, phase}]});

test('a size that changes while the connection is opened is sent when it is open', () => {
  screen.resize(50, 132);
  expect(socket.sent).toEqual([]);
  socket.opens();
  expect(socket.sent).toEqual(['{"resize":{"rows":50,"columns":132}}']);
  screen.resize(51, 132);
  expect(socket.sent.length).toBe(2);
});

test('the size is not sent again if it is that of the request', () => {
  socket.opens();
  expect(socket.sent).toEqual([]);
});

test('a long paste is sent in pieces that the server accepts', () => {
  socket.opens();
  const pasted = 'é'.repeat(1 << 20);
  screen.type(pasted);
  const pieces = socket.sent as Uint8Array[];
  expect(Math.max(...pieces.map((piece) => piece.length))).toBe(64 << 10);
  expect(Buffer.concat(pieces).toString()).toBe(pasted);
});

test('the reason for which the server refuses a shell is shown', async () => {
  answer = problem(403, "your role in project 'p' is viewer", 'ask an admin');
  socket.closes();
  await vi.waitFor(() => expect(ended.length).toBe(1));
  expect(ended[0]).toBe("The shell could not be opened: your role in project 'p' is viewer – ask an admin");
  expect(new URL(asked[0]!, 'https://x').href).toBe(socket.url.replace(/^ws:\/\/[^/]*/, 'https://x'));
});

test.each<[string, Response, string]>([
  ['has ended', job_with('main', 'Ended'), 'main does not run: it is Ended'],
  ['does not exist', job_with('worker-0', 'Running'), 'the job has no task main'],
  ['belongs to a job that was deleted', problem(404, "there is no job 'j'"), "there is no job 'j'"],
])('the reason is shown if the task %s', async (_, sent, reason) => {
  answer = problem(400, 'expected an upgrade');
  job = sent;
  socket.closes();
  await vi.waitFor(() => expect(ended).toEqual([`The shell could not be opened: ${reason}`]));
});

test('a connection that breaks is reported without a reason', async () => {
  answer = problem(400, 'expected an upgrade');
  job = job_with('main', 'Running');
  socket.closes();
  await vi.waitFor(() => expect(ended).toEqual(['The connection to the task was closed.']));
});

test('the end of an open shell needs no further request', () => {
  socket.opens();
  socket.closes();
  expect(ended).toEqual(['The connection to the task was closed.']);
  expect(asked).toEqual([]);
});
