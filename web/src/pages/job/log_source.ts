// Follows the log of a job as the server streams it: all tasks merged, one task or one rank, from the last
// N lines on. Keeps at most kMost lines and drops the oldest ones first.
import {Failure, job_path, send, type Query} from '../../api/client';
import {read_events} from '../../api/events';
import type {LogRecord} from '../../api/types';
import {text_of} from '../../app/format';
import {level_of, plain_text, type Level} from '../../ui/ansi';

export interface LogLine {
  /** Counts from the first line that was received. */
  number: number;
  time: string;
  task: string;
  rank: number | undefined;
  attempt: number | undefined;
  stream: 'output' | 'error' | 'notice';
  text: string;
}

export const kMost = 200000;
/** The page shows at most this many characters of a line; the download has the whole line. */
export const kLongest = 4000;

export function line_of(record: LogRecord, number: number): LogLine {
  const text = record.base64 !== undefined ? text_of({base64: record.base64}) : (record.text ?? '');
  return {
    number,
    time: record.time,
    task: record.task,
    rank: record.rank,
    attempt: record.attempt,
    stream: record.stream,
    text:
      text.length > kLongest ? text.slice(0, kLongest) + ' … (the line is cut here; the download has all of it)' : text,
  };
}

export interface LogQuery {
  id: string;
  task: string;
  rank: string;
  grep: string;
  level: Level;
  since: string;
  attempt: string;
  tail: number;
}

export class LogSource {
  lines: LogLine[] = [];
  dropped = 0;
  ended = false;
  fault: unknown = null;
  started = false;
  private stop_stream = new AbortController();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private next = 1;

  constructor(
    private readonly query: LogQuery,
    private readonly changed: () => void,
  ) {
    void this.run();
  }

  stop(): void {
    this.stop_stream.abort();
    clearTimeout(this.timer);
  }

  private soon(): void {
    if (this.timer === undefined)
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.changed();
      }, 80);
  }

  private add(record: LogRecord): void {
    const {level, rank} = this.query;
    const line = line_of(record, this.next);
    if (rank !== '' && record.rank !== undefined && String(record.rank) !== rank) return;
    if (level && line.stream !== 'notice') {
      const own = level_of(plain_text(line.text));
      const bad =
        own === 'error' || (level === 'warning' && own === 'warning') || (level === 'info' && own !== 'debug');
      if (!bad) return;
    }
    this.next++;
    this.lines.push(line);
    if (this.lines.length > kMost) {
      this.dropped += this.lines.length - kMost / 2;
      this.lines = this.lines.slice(-kMost / 2);
    }
  }

  private async run(): Promise<void> {
    let place = '';
    let since_place = 0;
    let pauses = 0;
    const {id, task, rank, grep, since, tail, attempt} = this.query;
    for (;;) {
      let skip = place ? since_place : 0;
      try {
        const query: Query = {follow: true, task, rank, grep, since, attempt};
        if (place) query['last_event_id'] = place;
        else if (!since) query['tail'] = tail;
        const answer = await send('GET', job_path(id, 'logs'), {query, signal: this.stop_stream.signal});
        this.started = true;
        this.fault = null;
        this.soon();
        for await (const event of read_events(answer)) {
          pauses = 0;
          if (event.event === 'log') {
            // After an interruption, the server repeats the lines after the last place.
            if (skip > 0) skip--;
            else {
              this.add(JSON.parse(event.data) as LogRecord);
              since_place++;
              this.soon();
            }
          } else if (event.event === 'end') {
            this.ended = true;
            this.soon();
            return;
          }
          if (event.id) {
            place = event.id;
            since_place = 0;
          }
        }
      } catch (fault) {
        if ((fault as Error).name === 'AbortError' || this.stop_stream.signal.aborted) return;
        if (fault instanceof Failure && !fault.unreachable) {
          this.fault = fault;
          this.soon();
          return;
        }
      }
      await new Promise((resolve) => setTimeout(resolve, Math.min(3000, 300 * 2 ** pauses++)));
      if (this.stop_stream.signal.aborted) return;
    }
  }
}
