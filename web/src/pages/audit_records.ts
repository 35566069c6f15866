// The audit records that the page has loaded: always the newest ones, and without gaps between them.
import type {AuditRecord} from '../api/types';

/** The records before a number, newest first; without a number, the newest ones. At most kAuditPage. */
export type FetchRecords = (before: number | undefined, signal?: AbortSignal) => Promise<AuditRecord[]>;

export const kAuditPage = 100;
/** So many pages are loaded to close a gap. If the gap is longer, the records below it are dropped. */
export const kMostPages = 10;

export class AuditRecords {
  /** Newest first. */
  records: AuditRecord[] = [];
  /** Whether the last record is the oldest one of the log. */
  end = false;

  constructor(private readonly fetch: FetchRecords) {}

  /** Loads the records that were added since. */
  async refresh(signal?: AbortSignal): Promise<void> {
    const known = this.records[0]?.number;
    const added: AuditRecord[] = [];
    for (let pages = 0; pages < kMostPages; pages++) {
      const page = await this.fetch(added.at(-1)?.number, signal);
      if (signal?.aborted) return;
      added.push(...page);
      if (page.length < kAuditPage) {
        this.records = added;
        this.end = true;
        return;
      }
      // Without older records, the first page is enough.
      if (known === undefined) break;
      if (added.at(-1)!.number <= known) {
        const last = added.at(-1)!.number;
        this.records = [...added, ...this.records.filter((record) => record.number < last)];
        return;
      }
    }
    this.records = added;
    this.end = false;
  }

  /** Loads the page of records before the last one. */
  async load_older(): Promise<void> {
    const last = this.records.at(-1)?.number;
    const page = await this.fetch(last);
    // A refresh has dropped the records that this page follows.
    if (this.records.at(-1)?.number !== last) return;
    this.records = [...this.records, ...page];
    this.end = page.length < kAuditPage;
  }
}
