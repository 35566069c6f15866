// Keeps a stream of server-sent events open: it is opened again after each interruption, and closed while the page is
// hidden.
//
// Over HTTP/1.1, a browser opens at most six connections to a server, for all tabs together. Each tab holds at least one
// stream; the streams of a few hidden tabs would leave no connection for the requests of the visible tab.
import {logged_out} from '../api/client';
import {read_events, type ServerEvent} from '../api/events';

const kPauses = [300, 500, 1000, 2000, 3000];
/** The server sends something at least every 15 seconds. */
export const kSilence = 40_000;
/** How long a page is hidden before its streams are closed. */
export const kHidden = 10_000;

export interface Stream {
  /** Sends the request. Called at each opening. */
  open: (signal: AbortSignal) => Promise<Response>;
  /** The server has answered. */
  opened?: (answer: Response) => void;
  /** Takes an event. `again` opens the stream again, `end` ends it. */
  take: (event: ServerEvent) => 'again' | 'end' | void;
  /**
   * The request was refused, or the connection was lost: then `fault` is the reason, or undefined if the stream ended or
   * was silent for too long. `tries` counts the interruptions since something arrived. `end` ends the stream.
   */
  interrupted?: (fault: unknown, tries: number) => 'end' | void;
  /** The stream was closed because the page is hidden. */
  hidden?: () => void;
}

/** The life of one connection: it ends with the stream, after a silence, or when the page has been hidden for a while. */
class Connection {
  readonly abort = new AbortController();
  was_hidden = false;
  private silence: ReturnType<typeof setTimeout> | undefined;
  private hiding: ReturnType<typeof setTimeout> | undefined;

  constructor(private readonly stop: AbortSignal) {
    stop.addEventListener('abort', this.close);
    document.addEventListener('visibilitychange', this.look);
    this.alive();
    this.look();
  }

  /** Something has arrived. */
  readonly alive = (): void => {
    clearTimeout(this.silence);
    // A request that waits for a login is not silent.
    this.silence = setTimeout(() => (logged_out.value ? this.alive() : this.close()), kSilence);
  };

  readonly close = (): void => {
    clearTimeout(this.silence);
    clearTimeout(this.hiding);
    this.stop.removeEventListener('abort', this.close);
    document.removeEventListener('visibilitychange', this.look);
    this.abort.abort();
  };

  private readonly look = (): void => {
    clearTimeout(this.hiding);
    if (!document.hidden) return;
    this.hiding = setTimeout(() => {
      this.was_hidden = true;
      this.close();
    }, kHidden);
  };
}

/** Resolves when the page is visible, or when the stream is stopped. */
function visible(stop: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (document.hidden && !stop.aborted) return;
      document.removeEventListener('visibilitychange', look);
      stop.removeEventListener('abort', look);
      resolve();
    };
    document.addEventListener('visibilitychange', look);
    stop.addEventListener('abort', look);
    look();
  });
}

/** Resolves when the stream has ended or was stopped. */
export async function keep_open(stream: Stream, stop: AbortSignal): Promise<void> {
  let tries = 0;
  for (;;) {
    await visible(stop);
    if (stop.aborted) return;
    const connection = new Connection(stop);
    const {signal} = connection.abort;
    let fault: unknown;
    try {
      const answer = await stream.open(signal);
      stream.opened?.(answer);
      const received = () => {
        tries = 0;
        connection.alive();
      };
      for await (const event of read_events(answer, received)) {
        const next = stream.take(event);
        if (next === 'end') return;
        if (next === 'again') break;
      }
    } catch (problem) {
      // An aborted connection was silent or hidden: that is no fault of the request.
      if (!signal.aborted) fault = problem;
    } finally {
      connection.close();
    }
    if (stop.aborted) return;
    if (connection.was_hidden) {
      stream.hidden?.();
      continue;
    }
    if (stream.interrupted?.(fault, tries) === 'end') return;
    const pause = kPauses[Math.min(tries, kPauses.length - 1)];
    tries++;
    await new Promise((resolve) => setTimeout(resolve, pause));
  }
}
