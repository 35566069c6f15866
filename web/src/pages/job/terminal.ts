// A terminal, xterm.js, on the WebSocket of /v1/jobs/ID/exec. The content policy allows no inline styles.
import {FitAddon} from '@xterm/addon-fit';
import {Terminal} from '@xterm/xterm';
import '@xterm/xterm/css/xterm.css';
import {Failure, get_once, job_path, with_query} from '../../api/client';
import type {Job} from '../../api/types';
import {is_dark} from '../../ui/ansi_text';
import {error_text} from '../../ui/parts';

export interface ShellSession {
  /** Ends the shell; its output stays on the screen. */
  close(): void;
  /** Ends the shell and removes the terminal. Calls nothing back. */
  dispose(): void;
}

let wrapped = false;

/**
 * xterm.js writes its colours into <style> elements and style attributes, which the content policy blocks.
 * From here on, creating a <style> creates a hidden element whose text becomes an adopted style sheet, and
 * setting the attribute `style` of a span sets its style object. The policy allows both.
 */
function allow_styles_of_xterm(): void {
  if (wrapped) return;
  wrapped = true;
  const create = document.createElement.bind(document);
  document.createElement = ((name: string, options?: ElementCreationOptions) => {
    if (name === 'style') {
      const element = create('span');
      element.hidden = true;
      const sheet = new CSSStyleSheet();
      document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet];
      Object.defineProperty(element, 'textContent', {
        set: (text: string) => {
          sheet.replaceSync(text);
        },
        get: () => '',
      });
      Object.defineProperty(element, 'sheet', {get: () => sheet});
      const remove = element.remove.bind(element);
      element.remove = () => {
        document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet);
        remove();
      };
      return element;
    }
    const element = create(name, options);
    if (name === 'span') {
      const set = element.setAttribute.bind(element);
      element.setAttribute = (attribute: string, value: string) => {
        if (attribute === 'style') element.style.cssText = value;
        else set(attribute, value);
      };
    }
    return element;
  }) as typeof document.createElement;
}

const kDark = {background: '#0b0f14', foreground: '#e3e8ef', cursor: '#84b4ff', selectionBackground: '#2f4a75'};
const kLight = {
  background: '#ffffff',
  foreground: '#1a222d',
  cursor: '#1a56b0',
  selectionBackground: '#bcd3f5',
  black: '#1a222d',
  red: '#b3261e',
  green: '#17693a',
  yellow: '#7d5200',
  blue: '#1a56b0',
  magenta: '#6b3fa0',
  cyan: '#0b6370',
  white: '#4d5663',
  brightBlack: '#556070',
  brightRed: '#b3261e',
  brightGreen: '#17693a',
  brightYellow: '#7d5200',
  brightBlue: '#1a56b0',
  brightMagenta: '#6b3fa0',
  brightCyan: '#0b6370',
  brightWhite: '#1a222d',
};

/** The server closes a connection that sends a message of more than 1 MiB. */
const kPiece = 64 << 10;

const kClosed = 'The connection to the task was closed.';

/**
 * Why the server refuses to open a shell. Undefined: it refuses nothing. A browser does not show the answer to a WebSocket.
 * A plain request is refused for the same reasons if they concern the user or the job; the state of the task is in the job.
 */
async function refusal(path: string, id: string, task: string): Promise<string | undefined> {
  try {
    await get_once(path);
  } catch (fault) {
    // 400: the user may open a shell, and the server expects a WebSocket.
    if (!(fault instanceof Failure && fault.status === 400)) return error_text(fault);
  }
  try {
    const job = await get_once<Job>(job_path(id));
    const phase = job.tasks.find((each) => each.name === task)?.phase;
    if (!phase) return `the job has no task ${task}`;
    return phase === 'Running' ? undefined : `${task} does not run: it is ${phase}`;
  } catch (fault) {
    return error_text(fault);
  }
}

/** Opens a shell in a task. `ended` is called once, with the reason. */
export function open_shell(
  host: HTMLElement,
  id: string,
  task: string,
  command: string,
  ended: (text: string) => void,
): ShellSession {
  allow_styles_of_xterm();
  host.replaceChildren();
  const terminal = new Terminal({
    cursorBlink: false,
    fontSize: 13,
    fontFamily: getComputedStyle(document.documentElement).getPropertyValue('--mono'),
    scrollback: 10000,
    theme: is_dark() ? kDark : kLight,
    screenReaderMode: false,
    allowProposedApi: false,
    minimumContrastRatio: 4.5,
    linkHandler: null,
  });
  const fit = new FitAddon();
  terminal.loadAddon(fit);
  terminal.open(host);
  fit.fit();
  terminal.textarea?.setAttribute('aria-label', `Terminal of ${task}`);
  terminal.attachCustomKeyEventHandler((event) => {
    if (event.key === 'Escape' && event.ctrlKey && event.shiftKey) {
      (host.closest('.card')?.querySelector('button') as HTMLElement | null)?.focus();
      return false;
    }
    return true;
  });
  const words = /\s/.test(command.trim()) ? ['sh', '-c', command] : [command.trim()];
  const {rows, cols} = terminal;
  const path = with_query(job_path(id, 'exec'), {
    task,
    command: JSON.stringify(words),
    terminal: true,
    rows,
    columns: cols,
  });
  const socket = new WebSocket(`${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${path}`);
  socket.binaryType = 'arraybuffer';
  const encoder = new TextEncoder();
  let has_ended = false;
  const end = (text: string) => {
    if (has_ended) return;
    has_ended = true;
    terminal.options.disableStdin = true;
    ended(text);
  };
  socket.onmessage = (message) => {
    if (message.data instanceof ArrayBuffer) {
      const bytes = new Uint8Array(message.data);
      if (bytes.length > 1) terminal.write(bytes.subarray(1));
    } else {
      const exit = (JSON.parse(String(message.data)) as {exit?: {code?: number; signal?: number; error?: string}}).exit;
      if (exit)
        end(
          exit.error
            ? `The program could not be started: ${exit.error}`
            : exit.signal
              ? `The program was ended by signal ${exit.signal}.`
              : `The program ended with code ${exit.code ?? 0}.`,
        );
    }
  };
  let was_open = false;
  const send_input = (bytes: Uint8Array<ArrayBuffer>) => {
    if (socket.readyState !== WebSocket.OPEN) return;
    for (let begin = 0; begin < bytes.length; begin += kPiece) socket.send(bytes.subarray(begin, begin + kPiece));
  };
  const send_size = () => {
    if (socket.readyState === WebSocket.OPEN)
      socket.send(JSON.stringify({resize: {rows: terminal.rows, columns: terminal.cols}}));
  };
  socket.onopen = () => {
    was_open = true;
    // The size may have changed while the connection was opened.
    if (terminal.rows !== rows || terminal.cols !== cols) send_size();
  };
  socket.onclose = () => {
    if (was_open || has_ended) end(kClosed);
    else
      void refusal(path, id, task).then((reason) => end(reason ? `The shell could not be opened: ${reason}` : kClosed));
  };
  terminal.onData((text) => send_input(encoder.encode(text)));
  terminal.onBinary((text) => send_input(Uint8Array.from(text, (c) => c.charCodeAt(0))));
  terminal.onResize(send_size);
  const observer = new ResizeObserver(() => {
    if (host.isConnected) fit.fit();
  });
  observer.observe(host);
  terminal.focus();
  const close = () => {
    observer.disconnect();
    socket.close();
    end('The shell was closed.');
  };
  return {
    close,
    dispose: () => {
      has_ended = true;
      close();
      terminal.dispose();
    },
  };
}
