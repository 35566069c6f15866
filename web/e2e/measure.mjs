// Measures the page in Chromium, for bench/web.py: opens the address of `muster ui`, and prints JSON.
//
//   node e2e/measure.mjs URL jobs          first paint, memory, frames and the filter of the list of jobs
//   node e2e/measure.mjs URL log NAME      the log of a job: first lines, frames while it scrolls, memory
//   node e2e/measure.mjs URL view          the frames of the list, until standard input ends. First prints "open"
import {chromium} from 'playwright-core';
import {chromium_path} from './server.mjs';

const [address, what, argument] = process.argv.slice(2);
const browser = await chromium.launch({executablePath: chromium_path, args: ['--enable-precise-memory-info']});
const context = await browser.newContext({ignoreHTTPSErrors: true, viewport: {width: 1440, height: 900}});
const page = await context.newPage();
const origin = new URL(address).origin;

const rows_shown = () => page.waitForSelector('.vt tbody tr [href], .vt tbody tr a', {timeout: 60_000});

async function log_in() {
  const logged_in = page.waitForResponse(
    (answer) => answer.url().endsWith('/v1/ui/session') && !answer.request().postDataJSON().check,
  );
  await page.goto(address);
  const status = (await logged_in).status();
  if (status !== 200) throw new Error(`the login was answered with ${status}`);
  await page.goto(`${origin}/ui/jobs`);
  await rows_shown();
}

/// The times of the first paint and of the first rows of the list, in a new document from a warm server, in
/// milliseconds since the navigation began.
async function first_paint(url) {
  await page.addInitScript(() => {
    window.rows_at = 0;
    new MutationObserver((_changes, observer) => {
      if (!document.querySelector('.vt tbody tr a')) return;
      requestAnimationFrame(() => {
        window.rows_at ||= performance.now();
      });
      observer.disconnect();
    }).observe(document, {childList: true, subtree: true});
  });
  const paints = [];
  for (let i = 0; i < 7; i++) {
    await page.goto('about:blank');
    await page.goto(url);
    await rows_shown();
    await page.waitForFunction(() => window.rows_at > 0);
    paints.push(
      await page.evaluate(() => ({
        first: performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0,
        rows: window.rows_at,
      })),
    );
  }
  return paints.slice(1);
}

async function heap() {
  const session = await context.newCDPSession(page);
  await session.send('HeapProfiler.collectGarbage');
  const {usedSize} = await session.send('Runtime.getHeapUsage');
  await session.detach();
  return usedSize;
}

/// The times between frames while a region scrolls from its start to its end.
const frames = (region) =>
  page.evaluate(
    (selector) =>
      new Promise((done) => {
        const table = document.querySelector(selector);
        const times = [];
        const steps = 180;
        let step = 0;
        let last = performance.now();
        const frame = (now) => {
          times.push(now - last);
          last = now;
          table.scrollTop = (table.scrollHeight - table.clientHeight) * (++step / steps);
          if (step < steps) requestAnimationFrame(frame);
          else done(times.slice(2));
        };
        requestAnimationFrame(frame);
      }),
    region,
  );

/// The times between frames until standard input ends.
async function frames_until_the_end() {
  process.stdin.resume().on('end', () => page.evaluate(() => (window.is_over = true)));
  return await page.evaluate(
    () =>
      new Promise((done) => {
        const times = [];
        let last = performance.now();
        const frame = (now) => {
          times.push(now - last);
          last = now;
          if (window.is_over) done(times.slice(2));
          else requestAnimationFrame(frame);
        };
        requestAnimationFrame(frame);
      }),
  );
}

/// How long a long log takes to show its last lines, and what scrolling through it costs.
async function measure_log(name) {
  const lines = () => page.locator('.log .line .ansi').first().waitFor();
  await page.goto('about:blank');
  const begin = performance.now();
  await page.goto(`${origin}/ui/jobs/${name}/logs`);
  await lines();
  const shown = performance.now() - begin;
  const times = await frames('.log');
  await lines();
  return {
    shown,
    frames: times,
    heap: await heap(),
    elements: await page.evaluate(() => document.querySelectorAll('.log .line').length),
  };
}

/// From the server's answer to a filter until its rows are painted.
async function filter(text) {
  const answered = page.waitForResponse((answer) => answer.url().includes('/v1/') && answer.url().includes(text));
  await page.evaluate(() => {
    // The buffer of timings is full after the many requests of scrolling.
    performance.clearResourceTimings();
    window.changed_at = 0;
    new MutationObserver(() =>
      requestAnimationFrame(() => {
        window.changed_at = performance.now();
      }),
    ).observe(document.querySelector('main') ?? document.body, {childList: true, subtree: true, characterData: true});
  });
  await page.fill('input[data-search]', text);
  await answered;
  await page.waitForFunction(
    (wanted) =>
      performance
        .getEntriesByType('resource')
        .some((entry) => entry.name.includes(wanted) && window.changed_at > entry.responseEnd),
    text,
  );
  return page.evaluate((wanted) => {
    const entry = performance
      .getEntriesByType('resource')
      .filter((each) => each.name.includes(wanted))
      .at(-1);
    return {server: entry.responseEnd - entry.requestStart, page: window.changed_at - entry.responseEnd};
  }, text);
}

try {
  await log_in();
  if (what === 'view') {
    console.log('open');
    console.log(JSON.stringify({frames: await frames_until_the_end(), heap: await heap()}));
  } else if (what === 'log') {
    console.log(JSON.stringify(await measure_log(argument)));
  } else {
    const paints = await first_paint(`${origin}/ui/jobs`);
    const times = await frames('.vt');
    const result = {
      paints,
      frames: times,
      filters: [],
      heap: await heap(),
      rows: await page.evaluate(() => document.querySelectorAll('.vt tbody tr').length),
    };
    for (const text of ['filled-1', 'filled-99', 'filled-777']) result.filters.push(await filter(text));
    result.heap_after = await heap();
    console.log(JSON.stringify(result));
  }
} finally {
  await browser.close();
}
