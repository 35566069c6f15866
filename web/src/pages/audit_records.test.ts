import {expect, test} from 'vitest';
import type {AuditRecord} from '../api/types';
import {AuditRecords, kAuditPage, kMostPages} from './audit_records';

/** An audit log with the records 1 to `last`, of which a filter shows those whose number is a multiple of `step`. */
function log(last: number, step = 1) {
  const there = {
    last,
    asked: [] as (number | undefined)[],
    fetch: (before?: number) => {
      there.asked.push(before);
      const records: AuditRecord[] = [];
      for (let number = Math.min(there.last, (before ?? Infinity) - 1); number > 0; number--) {
        if (number % step === 0 && records.length < kAuditPage) records.push({number} as AuditRecord);
      }
      return Promise.resolve(records);
    },
  };
  return there;
}
const numbers = (kept: AuditRecords) => kept.records.map((record) => record.number);
const down = (from: number, until: number, step = 1) =>
  Array.from({length: (from - until) / step + 1}, (_, i) => from - i * step);

test('the newest page, then older ones up to the first record', async () => {
  const there = log(250);
  const kept = new AuditRecords(there.fetch);
  await kept.refresh();
  expect([numbers(kept), kept.end]).toEqual([down(250, 151), false]);
  await kept.load_older();
  await kept.load_older();
  expect([numbers(kept), kept.end]).toEqual([down(250, 1), true]);
  expect(there.asked).toEqual([undefined, 151, 51]);
});

test('after many changes, no record is missing between the newest page and the older ones', async () => {
  for (const step of [1, 7]) {
    const there = log(300 * step, step);
    const kept = new AuditRecords(there.fetch);
    await kept.refresh();
    await kept.load_older();
    // 99, 100 and 101 are around the length of a page.
    for (const added of [1, 99, 100, 101, 350]) {
      there.last += added * step;
      await kept.refresh();
      expect(numbers(kept)).toEqual(down(there.last, 101 * step, step));
    }
  }
});

test('a refresh without a change asks for one page and keeps the older ones', async () => {
  const there = log(300);
  const kept = new AuditRecords(there.fetch);
  await kept.refresh();
  await kept.load_older();
  await kept.load_older();
  there.asked = [];
  await kept.refresh();
  expect(there.asked).toEqual([undefined]);
  expect([numbers(kept), kept.end]).toEqual([down(300, 1), false]);
});

test('behind a gap of more than some pages, the older records are dropped and loaded on demand', async () => {
  const there = log(200);
  const kept = new AuditRecords(there.fetch);
  await kept.refresh();
  await kept.load_older();
  there.last += (kMostPages + 1) * kAuditPage;
  await kept.refresh();
  expect([numbers(kept), kept.end]).toEqual([down(there.last, there.last - kMostPages * kAuditPage + 1), false]);
  await kept.load_older();
  expect(numbers(kept)).toEqual(down(there.last, there.last - (kMostPages + 1) * kAuditPage + 1));
});

test('an older page that arrives after its records were dropped is not appended', async () => {
  const there = log(200);
  const kept = new AuditRecords(there.fetch);
  await kept.refresh();
  const older = kept.load_older();
  there.last += (kMostPages + 1) * kAuditPage;
  const refreshed = kept.refresh();
  await Promise.all([older, refreshed]);
  const shown = numbers(kept);
  expect(shown).toEqual(down(there.last, there.last - shown.length + 1));
});
