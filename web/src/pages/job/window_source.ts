// The log of one task by line numbers. Of a log of any length, only the visible blocks are fetched and kept.
import {Failure, get, job_path} from '../../api/client';
import type {LogRecord} from '../../api/types';
import {kRetryPause, limit_request} from '../../app/live';
import {line_of, type LogLine} from './log_source';

interface Answer {
  attempt: number;
  lines: number;
  first: number;
  bytes: number;
  complete: boolean;
  records: (LogRecord & {line: number; hit?: boolean; unfinished?: boolean})[];
  next?: number;
}

const kBlock = 500;
const kKept = 24;
/** After an answer that is an error, such as that of a server with too many requests. */
const kFaultPause = 15_000;
/** While the server reads the log for the first time. */
const kReadingPause = 50;
const kGrowingPause = 1000;
/** For a log that grows in a hidden page, and for the last lines of a job that has just ended. */
const kSlowPause = 5000;

export class WindowSource {
  total = 0;
  first = 0;
  complete = false;
  started = false;
  /** The server has no log of the task: none was written yet, or it was deleted. */
  missing = false;
  fault: unknown = null;
  private blocks = new Map<number, LogLine[]>();
  private asked = new Set<number>();
  /** The blocks that were answered without lines. They are not requested again before the length of the log changes. */
  private blank = new Set<number>();
  /** The blocks whose request failed. They are not requested again before a poll succeeds. */
  private failed_blocks = new Set<number>();
  private attempt: number | undefined;
  private requests = 0;
  /** The last request whose answer has set the length of the log. */
  private newest = 0;
  /** The first request that was answered from the present log. */
  private oldest = 0;
  /** The number of requests that were given up since the last answer. */
  private given_up = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private polling = false;
  /** Whether the job may not have ended when the last poll began. */
  private was_growing = true;
  /** The pause before the next poll, because of the last request that failed. 0: the last poll has succeeded. */
  private failure_pause = 0;
  private readonly abort = new AbortController();

  constructor(
    private readonly query: {id: string; task: string; attempt: string},
    private readonly grows: () => boolean,
    private readonly changed: () => void,
  ) {
    document.addEventListener('visibilitychange', this.on_visible);
    void this.poll();
  }

  stop(): void {
    document.removeEventListener('visibilitychange', this.on_visible);
    this.abort.abort();
    clearTimeout(this.timer);
  }

  get length(): number {
    return this.total - this.first;
  }

  /** The line at a position, counted from the first line that was not deleted. */
  at(index: number): LogLine | undefined {
    const number = this.first + index;
    return this.blocks.get(Math.floor(number / kBlock))?.[number % kBlock];
  }

  /** Fetches the missing blocks of a range of positions, and drops the blocks farthest from it. */
  want(begin: number, end: number): void {
    if (this.length === 0 || end <= begin) return;
    const from = Math.floor((this.first + Math.max(0, begin)) / kBlock);
    const until = Math.floor((this.first + Math.max(0, Math.min(end, this.length) - 1)) / kBlock);
    for (let block = from; block <= until; block++) {
      if (![this.blocks, this.asked, this.blank, this.failed_blocks].some((known) => known.has(block)))
        void this.fetch_block(block);
    }
    if (this.blocks.size > kKept) {
      for (const block of [...this.blocks.keys()]
        .sort((a, b) => Math.abs(b - from) - Math.abs(a - from))
        .slice(0, this.blocks.size - kKept))
        this.blocks.delete(block);
    }
  }

  private async fetch_block(block: number): Promise<void> {
    this.asked.add(block);
    const request = ++this.requests;
    try {
      const answer = await this.ask({line: block * kBlock, lines: kBlock});
      this.take(answer, request);
      if (request >= this.oldest && !this.blocks.has(block)) this.blank.add(block);
      // The server may have lost its index of the log. It then reads the log again, and polls follow until it has.
      if (!this.complete && !this.polling) this.poll_after(this.failure_pause || kReadingPause);
    } catch (fault) {
      if (request >= this.oldest) this.failed_blocks.add(block);
      this.failed(fault);
      // The next poll permits another request for the block.
      if (!this.polling) this.poll_after(this.failure_pause || kFaultPause);
    } finally {
      // Of a log that began anew since, the block may have been asked for again.
      if (request >= this.oldest) this.asked.delete(block);
    }
  }

  /** Requests a part of the log. A request that is not answered in time is aborted; a later poll repeats it. */
  private async ask(range: {line?: number; lines: number}): Promise<Answer> {
    const mine = new AbortController();
    const stop = () => mine.abort();
    this.abort.signal.addEventListener('abort', stop);
    const tries = this.given_up;
    const end_limit = limit_request(tries, () => {
      this.given_up = tries + 1;
      mine.abort();
    });
    try {
      const answer = await get<Answer>(
        job_path(this.query.id, 'log-window'),
        {task: this.query.task, attempt: this.query.attempt, ...range},
        mine.signal,
      );
      this.given_up = 0;
      return answer;
    } finally {
      end_limit();
      this.abort.signal.removeEventListener('abort', stop);
    }
  }

  private take(answer: Answer, request: number): void {
    if (request < this.oldest) return;
    if (request > this.newest) {
      this.newest = request;
      // The log of another attempt, or a log that began anew: its lines have the numbers of the kept ones.
      const is_other = this.attempt !== undefined && this.attempt !== answer.attempt;
      if (is_other || (answer.complete && answer.lines < this.total)) {
        this.blocks.clear();
        this.asked.clear();
        this.blank.clear();
        this.oldest = request;
      }
      if (this.total !== answer.lines || this.first !== answer.first) this.blank.clear();
      this.attempt = answer.attempt;
      this.total = answer.lines;
      this.first = answer.first;
      this.complete = answer.complete;
    }
    this.started = true;
    this.missing = false;
    this.fault = null;
    for (const record of answer.records) {
      const block = Math.floor(record.line / kBlock);
      let lines = this.blocks.get(block);
      if (!lines) {
        lines = new Array<LogLine>(kBlock);
        this.blocks.set(block, lines);
      }
      lines[record.line % kBlock] = line_of(record, record.line);
    }
    this.changed();
  }

  private failed(fault: unknown): void {
    if (this.abort.signal.aborted) return;
    // A request that was given up has waited long enough.
    this.failure_pause = kGrowingPause;
    if ((fault as Error).name === 'AbortError') return;
    this.failure_pause = kRetryPause;
    if (fault instanceof Failure && fault.unreachable) return;
    this.missing = fault instanceof Failure && fault.status === 404;
    this.failure_pause = this.missing ? 0 : kFaultPause;
    if (this.missing) this.complete = true;
    else this.fault = fault;
    this.started = true;
    this.changed();
  }

  private readonly on_visible = () => {
    if (!document.hidden && !this.polling) void this.poll();
  };

  private poll_after(pause: number): void {
    if (this.abort.signal.aborted) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      void this.poll();
    }, pause);
  }

  private async poll(): Promise<void> {
    clearTimeout(this.timer);
    this.polling = true;
    const before = this.total;
    // The log may grow after the answer and before the end of the job is known, so further polls follow.
    const was_growing = this.was_growing;
    this.was_growing = this.grows();
    const was_started = this.started;
    const request = ++this.requests;
    try {
      // The last lines, because the log may have grown; at first a whole block.
      const last = await this.ask({lines: this.started ? 100 : kBlock});
      if (this.abort.signal.aborted) return;
      this.failed_blocks.clear();
      this.failure_pause = 0;
      // Between the former end and these lines, a kept block would have holes: it is fetched again.
      const begin = last.records[0]?.line ?? last.lines;
      if (this.started && begin > before)
        for (let block = Math.floor(before / kBlock); block <= Math.floor(begin / kBlock); block++)
          this.blocks.delete(block);
      this.take(last, request);
      // The block of the last lines is fetched whole if its beginning is missing.
      const block = Math.floor(begin / kBlock);
      const lines = this.blocks.get(block);
      if (
        lines &&
        begin > Math.max(block * kBlock, this.first) &&
        !lines[Math.max(block * kBlock, this.first) % kBlock]
      )
        await this.fetch_block(block);
    } catch (fault) {
      this.failed(fault);
    }
    this.polling = false;
    if (this.failure_pause) this.poll_after(this.failure_pause);
    else if (!this.complete) this.poll_after(kReadingPause);
    else if (this.grows()) this.poll_after(document.hidden ? kSlowPause : kGrowingPause);
    else if (was_growing || this.was_growing || (was_started && this.total !== before)) this.poll_after(kSlowPause);
  }
}

export interface SearchHits {
  lines: (LogLine & {hit: boolean})[];
  next: number | undefined;
  complete: boolean;
}

/** At most `most` hits of a pattern in the log of a task from line `from` on, with the lines around them. */
export async function search_log(
  id: string,
  task: string,
  attempt: string,
  pattern: string,
  from: number,
  most: number,
  signal: AbortSignal,
): Promise<SearchHits> {
  const answer = await get<Answer>(
    job_path(id, 'log-search'),
    {task, attempt, q: pattern, regex: true, line: from, hits: most, context: 2},
    signal,
  );
  return {
    lines: answer.records.map((record) => ({...line_of(record, record.line), hit: record.hit === true})),
    next: answer.next,
    complete: answer.complete,
  };
}
