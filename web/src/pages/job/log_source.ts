// Follows the log of a job as the server streams it: all tasks merged, one task or one rank, from the last
// N lines on, or from the last N lines that match a pattern. Keeps at most kMost lines and drops the oldest ones first.
import {Failure, job_path, send, type Query} from '../../api/client';
import type {LogRecord} from '../../api/types';
import {millis, text_of} from '../../app/format';
import {clock_offset} from '../../app/live';
import {keep_open} from '../../app/stream';
import {level_of, pattern_of, plain_text, type Level} from '../../ui/ansi';

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
/** The server's date has no fractions of a second, and the clocks of the nodes may differ from that of the server. */
const kSlack = 1000;

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

/** The pattern that the server searches for: that of the user, or else that of the level. */
export function searched_pattern(query: Pick<LogQuery, 'grep' | 'level'>): string {
  return query.grep || pattern_of(query.level);
}

export class LogSource {
  lines: LogLine[] = [];
  dropped = 0;
  /** The number of received lines that match. The server sends notices with every pattern; they do not count. */
  matches = 0;
  ended = false;
  fault: unknown = null;
  /** The server has answered, and has searched the log if it was asked for the last lines. */
  started = false;
  /** The number of received lines that were printed before the server had found the last lines. */
  private former = 0;
  /** When the server had found the last lines, by its own clock. */
  private found_at: number | undefined;
  /** Server time minus the time of this machine, in milliseconds. */
  private offset = 0;
  private readonly stop_stream = new AbortController();
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

  /** Whether the log may have lines before the first one that was asked for. */
  get is_cut(): boolean {
    return !this.query.since && this.former >= this.query.tail;
  }

  private server_time(): number {
    return Date.now() + this.offset;
  }

  /**
   * Whether a line was printed before the server had found the last lines. If the clock of a node is fast, the time of a
   * line is after that of its arrival.
   */
  private is_former(record: LogRecord): boolean {
    if (this.found_at === undefined) return true;
    return Math.min(millis(record.time), this.server_time()) <= this.found_at + kSlack;
  }

  private soon(): void {
    if (this.timer === undefined)
      this.timer = setTimeout(() => {
        this.timer = undefined;
        this.changed();
      }, 80);
  }

  /** Whether a line has the chosen level. If the server searched for the level, it has sent no other lines. */
  private fits(line: LogLine): boolean {
    const {level, grep} = this.query;
    if (!level || line.stream === 'notice' || (!grep && pattern_of(level))) return true;
    const own = level_of(plain_text(line.text));
    return own === 'error' || (level === 'warning' && own === 'warning') || (level === 'info' && own !== 'debug');
  }

  private add(record: LogRecord): void {
    const {rank} = this.query;
    const line = line_of(record, this.next);
    if (this.is_former(record)) this.former++;
    if (rank !== '' && record.rank !== undefined && String(record.rank) !== rank) return;
    if (!this.fits(line)) return;
    this.next++;
    if (line.stream !== 'notice') this.matches++;
    this.lines.push(line);
    if (this.lines.length > kMost) {
      this.dropped += this.lines.length - kMost / 2;
      this.lines = this.lines.slice(-kMost / 2);
    }
  }

  private async run(): Promise<void> {
    const {id, task, rank, since, tail, attempt} = this.query;
    const grep = searched_pattern(this.query);
    // After an interruption, the stream continues after the last place, and the server repeats the lines that followed it.
    let place = '';
    let since_place = 0;
    let repeated = 0;
    await keep_open(
      {
        open: (signal) => {
          const query: Query = {follow: true, task, rank, grep, since, attempt};
          if (place) query['last_event_id'] = place;
          else if (!since) query['tail'] = tail;
          repeated = since_place;
          return send('GET', job_path(id, 'logs'), {query, signal});
        },
        opened: (answer) => {
          const date = Date.parse(answer.headers.get('date') ?? '');
          this.offset = date ? date - Date.now() : clock_offset.value;
          // The server sends a place when it has found the last lines, and then these lines.
          if (since) this.started = true;
          this.fault = null;
          this.soon();
        },
        take: (event) => {
          this.started = true;
          if (event.event === 'log') {
            if (repeated > 0) repeated--;
            else {
              this.add(JSON.parse(event.data) as LogRecord);
              since_place++;
            }
          } else if (event.event === 'end') this.ended = true;
          if (event.id) {
            this.found_at ??= this.server_time();
            place = event.id;
            since_place = repeated;
          }
          this.soon();
          return this.ended ? 'end' : undefined;
        },
        interrupted: (fault) => {
          if (!(fault instanceof Failure) || fault.unreachable) return undefined;
          this.fault = fault;
          this.soon();
          return 'end';
        },
      },
      this.stop_stream.signal,
    );
  }
}
