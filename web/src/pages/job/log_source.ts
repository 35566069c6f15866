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

function bytes_of(record: LogRecord): Uint8Array {
  if (record.base64 === undefined) return new TextEncoder().encode(record.text ?? '');
  return Uint8Array.from(atob(record.base64), (c) => c.charCodeAt(0));
}

/**
 * Finds what is new in a log whose connection breaks. Only some records have an id, so after a break the server repeats
 * everything since the last id. It may divide the bytes into other records, and may interleave the tasks differently; only the
 * bytes of each source are the same. (A source is one stream of one rank of a task in an attempt.) So bytes are counted.
 */
class NewParts {
  /** By source: the bytes received since the last id, and how many of them this connection has yet to repeat. */
  private since_id = new Map<string, number>();
  private repeated = new Map<string, number>();

  /** The connection broke: everything since the last id will be repeated. */
  broke(): void {
    this.repeated = new Map(this.since_id);
  }

  /** An id came: the following records come after it. */
  id_came(): void {
    this.since_id = new Map(this.repeated);
  }

  /** The new part of a record, or undefined. */
  take(record: LogRecord): LogRecord | undefined {
    const source = [record.attempt, record.rank, record.stream, record.task].join('/');
    const bytes = bytes_of(record);
    const size = bytes.length + (record.continues ? 0 : 1);
    const seen = this.repeated.get(source) ?? 0;
    if (seen > size) this.repeated.set(source, seen - size);
    else this.repeated.delete(source);
    if (seen >= size) return undefined;
    this.since_id.set(source, (this.since_id.get(source) ?? 0) + size - seen);
    if (seen === 0) return record;
    return {...record, text: new TextDecoder().decode(bytes.subarray(seen)), base64: undefined};
  }
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

/** Whether a line has at least this level. The notices of Muster have every level. */
export function fits_level(line: LogLine, level: Level): boolean {
  if (!level || line.stream === 'notice') return true;
  const own = level_of(plain_text(line.text));
  return own === 'error' || (level === 'warning' && own === 'warning') || (level === 'info' && own !== 'debug');
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
  private printed_before_search = 0;
  /** When the server had found the last lines, by its own clock. */
  private search_done_at: number | undefined;
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
    return !this.query.since && this.printed_before_search >= this.query.tail;
  }

  private server_time(): number {
    return Date.now() + this.offset;
  }

  /**
   * Whether a line was printed before the server had found the last lines. If the clock of a node is fast, the time of a
   * line is after that of its arrival.
   */
  private was_printed_before_search(record: LogRecord): boolean {
    if (this.search_done_at === undefined) return true;
    return Math.min(millis(record.time), this.server_time()) <= this.search_done_at + kSlack;
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
    return (!grep && pattern_of(level) !== '') || fits_level(line, level);
  }

  private add(record: LogRecord): void {
    const {rank} = this.query;
    const line = line_of(record, this.next);
    if (this.was_printed_before_search(record)) this.printed_before_search++;
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
    // After an interruption, the stream continues after the last place, and the server repeats what followed it.
    let place = '';
    const parts = new NewParts();
    await keep_open(
      {
        open: (signal) => {
          const query: Query = {follow: true, task, rank, grep, since, attempt};
          if (!place && !since) query['tail'] = tail;
          parts.broke();
          // The place of a large job is longer than a target may be.
          const headers = place ? {'last-event-id': place} : undefined;
          return send('GET', job_path(id, 'logs'), {query, signal, headers});
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
            const part = parts.take(JSON.parse(event.data) as LogRecord);
            if (part) this.add(part);
          } else if (event.event === 'end') this.ended = true;
          if (event.id) {
            this.search_done_at ??= this.server_time();
            place = event.id;
            parts.id_came();
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
