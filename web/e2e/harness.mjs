// Shared by the tests of the page: a real team server with users and jobs, and Chromium.
//
//   MUSTER_BUILD=../build/release   the build whose server is tested
//   MUSTER_UI_DIST=dist             serve these files in place of those in the server's program, under
//                                   the headers of the server: for work on the page without a new build
//   MUSTER_UI_IMAGES=../docs/images write the screenshots of the pages
import {execFile, spawn} from 'node:child_process';
import {existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync} from 'node:fs';
import {createServer} from 'node:http';
import {createRequire} from 'node:module';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {fileURLToPath} from 'node:url';
import {promisify} from 'node:util';
import {chromium} from 'playwright-core';

const here = path.dirname(fileURLToPath(import.meta.url));
const build = path.resolve(process.env.MUSTER_BUILD ?? path.join(here, '../../build/release'));
const muster = path.join(build, 'platform/muster');
const run = promisify(execFile);
export const axe_source = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** The limit in milliseconds for a test that hangs. A test that works never reaches it. */
export const kBound = Number(process.env.MUSTER_UI_BOUND ?? 180000);

export class Team {
  /** `flags`: more flags of `muster server`. */
  constructor(flags = []) {
    this.flags = flags;
    this.folder = mkdtempSync(path.join(tmpdir(), 'muster-page-'));
    this.env = {...process.env, MUSTER_STATE_DIR: path.join(this.folder, 'state'), HOME: this.folder};
    for (const name of Object.keys(this.env))
      if (/^(XDG_|MUSTER_(?!STATE_DIR|BUILD|UI_))/.test(name)) delete this.env[name];
    this.listen = '127.0.0.1:0';
  }

  async start() {
    await this.start_receiver();
    await this.start_server();
    this.node = (await this.api('GET', '/v1/nodes')).nodes[0].name;
  }

  async start_server() {
    mkdirSync(this.env.MUSTER_STATE_DIR, {recursive: true});
    const hook = this.receiver ? ['--notify-allow', new URL(this.receiver).host] : [];
    this.server = spawn(
      muster,
      [
        'server',
        '--listen',
        this.listen,
        '--declare-gpus',
        '8:A100:80G',
        '--notify-allow-http',
        'true',
        // With a way out for jobs, the server makes a bridge in the browser's network, and a port for each job; Chromium
        // ends its requests at each such change (ERR_NETWORK_CHANGED).
        '--task-internet',
        'false',
        ...hook,
        ...this.flags,
      ],
      {env: this.env, cwd: this.folder, stdio: ['ignore', 'pipe', 'pipe']},
    );
    let log = '';
    await new Promise((resolve, reject) => {
      const take = (data) => {
        log += data;
        const found = /serves on https:\/\/([\d.:]+)/.exec(log);
        if (found) this.listen = found[1];
        if (found && log.includes('muster.sock')) resolve();
      };
      this.server.stdout.on('data', take);
      this.server.stderr.on('data', take);
      this.server.on('exit', (code) => reject(new Error(`the server ended with ${code}: ${log}`)));
    });
    this.address = `https://${this.listen}`;
  }

  /** Starts a receiver of notifications, which accepts test requests and refuses all others. */
  async start_receiver() {
    if (this.receiver) return;
    this.hook = createServer((request, response) => {
      request.resume();
      response.writeHead(request.headers['muster-event'] === 'ping' ? 204 : 400).end();
    });
    await new Promise((resolve) => this.hook.listen(0, '127.0.0.1', resolve));
    this.receiver = `http://127.0.0.1:${this.hook.address().port}`;
  }

  /** Ends the server alone; its jobs continue. */
  async stop(signal = 'SIGTERM') {
    this.server.removeAllListeners('exit');
    if (this.server.exitCode !== null || this.server.signalCode !== null) return;
    const gone = new Promise((resolve) => this.server.once('exit', resolve));
    this.server.kill(signal);
    await gone;
  }

  async close() {
    try {
      const jobs = JSON.parse(
        await this.muster('list', '-o', 'json', '--all').catch(() => this.muster('list', '-o', 'json')),
      );
      for (const job of jobs.jobs ?? jobs.rows ?? jobs) {
        if (!['Succeeded', 'Failed', 'Stopped'].includes(job.phase))
          await this.api('POST', `/v1/jobs/${job.id}/stop?now=true`).catch(() => {});
      }
      await until(async () => (await this.api('GET', '/v1/jobs?phase=Queued,Starting,Running')).jobs.length === 0);
    } finally {
      await this.stop();
      this.hook?.close();
      rmSync(this.folder, {recursive: true, force: true});
    }
  }

  async muster(...args) {
    const {stdout} = await run(muster, args, {env: this.env, cwd: '/tmp', maxBuffer: 64 << 20});
    return stdout;
  }

  /** A request over the socket, as the owner of the server. */
  async api(method, target, body) {
    const args = [
      '-sS',
      '--fail-with-body',
      '-X',
      method,
      '--unix-socket',
      path.join(this.env.MUSTER_STATE_DIR, 'muster.sock'),
      `http://muster${target}`,
    ];
    if (body !== undefined) args.push('-H', 'content-type: application/json', '-d', JSON.stringify(body));
    const {stdout} = await run('curl', args, {maxBuffer: 64 << 20});
    return stdout ? JSON.parse(stdout) : undefined;
  }

  async submit(spec) {
    return await this.api('POST', '/v1/jobs', {folder: '/tmp', ...spec});
  }

  async ended(id) {
    return await until(async () => {
      const job = await this.api('GET', `/v1/jobs/${id}`);
      return ['Succeeded', 'Failed', 'Stopped'].includes(job.phase) && job;
    });
  }

  async running(id) {
    return await until(async () => {
      const job = await this.api('GET', `/v1/jobs/${id}`);
      return job.phase === 'Running' && job;
    });
  }

  /** A user with a role, and the text of a token for the page. */
  async user(name, project, role) {
    await this.api('POST', '/v1/users', {name, projects: project ? {[project]: role} : {}});
    return await this.token(name);
  }

  async token(name) {
    return (
      await this.api('POST', '/v1/tokens', {user: name, description: `of ${name}`, ceiling: 'admin', lifetime_s: 86400})
    ).text;
  }
}

/** Repeats `check` until it returns a value. Only a hang reaches the limit. */
export async function until(check, bound = kBound) {
  const deadline = Date.now() + bound;
  for (;;) {
    const answer = await check();
    if (answer) return answer;
    if (Date.now() > deadline) throw new Error(`waited ${bound} ms for: ${check}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function open_browser() {
  // ignoreHTTPSErrors of a context covers the requests of its pages. A download is a request of the browser itself:
  // if no idle connection is left for it, it makes a new one, and the self-signed certificate would cancel it.
  const args = ['--ignore-certificate-errors'];
  // Chromium forbids WebSockets to local addresses for a page whose files do not come from the server.
  if (process.env.MUSTER_UI_DIST) args.push('--disable-features=LocalNetworkAccessChecks');
  return await chromium.launch({executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium', args});
}

/** A page whose `faults` collects violations of the content policy, errors and unexpected dialogs. */
export async function open_page(browser, team, {width = 1440, height = 900, scheme = 'light', ...options} = {}) {
  const context = await browser.newContext({
    ignoreHTTPSErrors: true,
    viewport: {width, height},
    colorScheme: scheme,
    timezoneId: 'Europe/Zurich',
    reducedMotion: 'reduce',
    ...options,
  });
  const page = await context.newPage();
  page.setDefaultTimeout(kBound);
  page.faults = [];
  page.on('pageerror', (error) => page.faults.push(`error: ${error.message}`));
  page.on('console', (message) => {
    if (message.type() === 'error' && !/Failed to load resource|ERR_/.test(message.text()))
      page.faults.push(`console: ${message.text()}`);
  });
  page.on('dialog', (dialog) => {
    if (dialog.type() === 'beforeunload') {
      void dialog.accept();
      return;
    }
    page.faults.push(`dialog: ${dialog.message()}`);
    void dialog.dismiss();
  });
  await page.addInitScript(() =>
    document.addEventListener('securitypolicyviolation', (event) =>
      console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`),
    ),
  );
  const dist = process.env.MUSTER_UI_DIST;
  if (dist) {
    let headers = null;
    await context.route(`${team.address}/ui/**`, async (route) => {
      headers ??= (await route.fetch({url: `${team.address}/ui/`})).headers();
      const name = new URL(route.request().url()).pathname.slice('/ui/'.length);
      const file = path.join(dist, name && existsSync(path.join(dist, name)) ? name : 'index.html');
      const types = {
        '.html': 'text/html; charset=utf-8',
        '.js': 'text/javascript',
        '.css': 'text/css',
        '.svg': 'image/svg+xml',
      };
      const {'content-encoding': _, 'content-length': __, etag: ___, ...rest} = headers;
      await route.fulfill({body: readFileSync(file), headers: {...rest, 'content-type': types[path.extname(file)]}});
    });
  }
  return page;
}

/** Logs in with a token, as with a code, and opens a page. The page asks first, unless it has a session of the user. */
export async function log_in(page, team, token, target = '/overview') {
  await page.goto(`${team.address}/ui${target}#code=${token}`);
  try {
    const accept = page.getByRole('dialog').getByRole('button', {name: /^Log in as /});
    await page.locator('.side .who').or(accept).first().waitFor({state: 'attached'});
    if (await accept.isVisible()) await accept.click();
    await page.locator('.side .who').waitFor({state: 'attached'});
  } catch (fault) {
    const shown = await page.locator('body').innerText();
    throw new Error(`not logged in; the page shows: ${shown}\n${page.faults.join('\n')}`, {cause: fault});
  }
}

export async function go(page, team, target) {
  await page.goto(`${team.address}/ui${target}`);
}

/** Waits until the page has loaded its data and was laid out. */
export async function settled(page) {
  await page.locator('#main h1').first().waitFor();
  await page.waitForFunction(() => !document.querySelector('#main')?.textContent?.includes('Loading…'));
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

/** Reports to a page that its tab is hidden, or visible again. In a headless browser, all tabs are visible. */
export async function show_tab(page, visible) {
  await page.evaluate((shown) => {
    Object.defineProperty(document, 'hidden', {configurable: true, get: () => !shown});
    document.dispatchEvent(new Event('visibilitychange'));
  }, visible);
}

export async function axe(page) {
  await page.evaluate(axe_source);
  const results = await page.evaluate(
    async () =>
      await window.axe.run(document, {
        runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'],
      }),
  );
  return results.violations.map(
    (each) =>
      `${each.id}: ${each.help}: ${each.nodes
        .slice(0, 3)
        .map((node) => `${node.target.join(' ')} ${node.failureSummary?.split('\n').slice(1, 2).join(' ')}`)
        .join(' | ')}`,
  );
}

export async function overflow(page) {
  return await page.evaluate(() =>
    document.documentElement.scrollWidth > innerWidth ? `${document.documentElement.scrollWidth} > ${innerWidth}` : '',
  );
}
