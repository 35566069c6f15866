// Reads the server-sent events of a response, one at a time.
import {Failure} from './client';

export interface ServerEvent {
  event: string;
  data: string;
  id: string;
}

/**
 * Turns pieces of text/event-stream into events; keeps an unfinished event for the next piece.
 *
 * An id without data becomes the event `place`: the position in the log from which a broken stream
 * continues.
 */
export class EventParser {
  private rest = '';
  private event = '';
  private data: string[] = [];
  private id = '';

  push(text: string): ServerEvent[] {
    const out: ServerEvent[] = [];
    const all = this.rest + text;
    let begin = 0;
    for (;;) {
      const end = all.indexOf('\n', begin);
      if (end < 0) break;
      const line = all.slice(begin, all.charCodeAt(end - 1) === 13 && end > begin ? end - 1 : end);
      begin = end + 1;
      if (line === '') {
        if (this.data.length || this.id) {
          out.push({
            event: this.data.length ? this.event || 'message' : 'place',
            data: this.data.join('\n'),
            id: this.id,
          });
        }
        this.event = '';
        this.data = [];
        this.id = '';
      } else if (line[0] !== ':') {
        const colon = line.indexOf(':');
        const field = colon < 0 ? line : line.slice(0, colon);
        let value = colon < 0 ? '' : line.slice(colon + 1);
        if (value[0] === ' ') value = value.slice(1);
        if (field === 'event') this.event = value;
        else if (field === 'data') this.data.push(value);
        else if (field === 'id') this.id = value;
      }
    }
    this.rest = all.slice(begin);
    return out;
  }
}

/** Calls `received` for each piece of the stream, also for a comment, which has no event. */
export async function* read_events(answer: Response, received?: () => void): AsyncGenerator<ServerEvent> {
  const reader = answer.body!.getReader();
  const decoder = new TextDecoder();
  const parser = new EventParser();
  try {
    for (;;) {
      const {done, value} = await reader.read();
      if (done) return;
      received?.();
      yield* parser.push(decoder.decode(value, {stream: true}));
    }
  } catch (fault) {
    if ((fault as Error).name === 'AbortError') throw fault;
    throw new Failure(0, 'the connection to the server was lost', 'load the page again');
  } finally {
    void reader.cancel().catch(() => {});
  }
}
