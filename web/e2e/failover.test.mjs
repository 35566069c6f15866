// Tests the failover between two servers with one PostgreSQL behind a load balancer: the page continues with the
// second server, without a reload and without a new login.
import assert from 'node:assert/strict';
import {spawn} from 'node:child_process';
import {once} from 'node:events';
import {mkdtempSync, rmSync} from 'node:fs';
import {connect, createServer} from 'node:net';
import {tmpdir} from 'node:os';
import path from 'node:path';
import {createInterface} from 'node:readline';
import {after, before, test} from 'node:test';
import {fileURLToPath} from 'node:url';
import {Team, log_in, open_browser, open_page, until} from './harness.mjs';

const tests = fileURLToPath(new URL('../../tests', import.meta.url));

/** A private PostgreSQL (tests/postgres_harness.py) that ends with the standard input of its parent. */
class Database {
  async start() {
    const program =
      'from postgres_harness import Postgres; import sys\nwith Postgres() as it: print(it.new_url(), flush=True); sys.stdin.read()';
    this.process = spawn('python3', ['-c', program], {cwd: tests, stdio: ['pipe', 'pipe', 'inherit']});
    const [url] = await once(createInterface(this.process.stdout), 'line');
    return url;
  }

  async stop() {
    const ended = once(this.process, 'exit');
    this.process.stdin.end();
    await ended;
  }
}

/** One address in front of the servers, which forwards connections to the server that leads. */
class Balancer {
  async start(leader) {
    this.leader = leader;
    this.sockets = new Set();
    this.server = createServer((client) => {
      const [host, port] = this.leader.listen.split(':');
      const there = connect(Number(port), host);
      for (const [one, other] of [
        [client, there],
        [there, client],
      ]) {
        this.sockets.add(one);
        one.on('error', () => other.destroy());
        one.on('close', () => {
          this.sockets.delete(one);
          other.destroy();
        });
        one.pipe(other);
      }
    });
    this.server.listen(0, '127.0.0.1');
    await once(this.server, 'listening');
    return `https://127.0.0.1:${this.server.address().port}`;
  }

  stop() {
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }
}

const database = new Database();
const balancer = new Balancer();
const jobs = mkdtempSync(path.join(tmpdir(), 'muster-page-jobs-'));
let first;
let second;
let browser;

before(async () => {
  const shared = ['--store', await database.start(), '--jobs-dir', jobs];
  first = new Team(shared);
  second = new Team(shared);
  await first.start_server();
  await second.start_server();
  browser = await open_browser();
});

after(async () => {
  await browser?.close();
  balancer.stop();
  await first.stop();
  await second.close();
  rmSync(first.folder, {recursive: true, force: true});
  rmSync(jobs, {recursive: true, force: true});
  await database.stop();
});

const leads = (team) =>
  team.api('GET', '/readyz').then(
    () => true,
    () => false,
  );

test('the page continues with the second server when the first is killed', async () => {
  assert.equal(await leads(second), false);
  const token = await first.user('ada', 'default', 'member');
  const runs = await first.submit({name: 'runs', command: ['sh', '-c', 'echo begun; exec sleep 1000']});
  await first.running(runs.id);
  const address = await balancer.start(first);
  const page = await open_page(browser, {address});
  await log_in(page, {address}, token, '/jobs');
  await page.getByRole('link', {name: 'runs', exact: true}).waitFor();
  await page.evaluate(() => {
    window.__same = true;
  });

  await first.stop('SIGKILL');
  await page.getByText('The connection to the server was lost').waitFor();
  await page.getByRole('link', {name: 'runs', exact: true}).waitFor();
  await until(() => leads(second));
  balancer.leader = second;

  await page.getByText('The connection to the server was lost').waitFor({state: 'detached'});
  const later = await second.submit({name: 'later', command: ['true']});
  await page.getByRole('link', {name: 'later', exact: true}).waitFor();
  await second.ended(later.id);
  await page.getByRole('link', {name: 'runs', exact: true}).click();
  await page.getByRole('heading', {name: 'runs'}).waitFor();
  await page.getByRole('link', {name: 'Logs', exact: true}).click();
  await page.locator('.log .line', {hasText: 'begun'}).waitFor();
  assert.equal(await page.evaluate(() => window.__same), true);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});
