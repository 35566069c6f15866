// Tests that the lists follow the stream of changes, and send no requests while nothing changes.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {Team, go, log_in, open_browser, open_page, settled, show_tab, until} from './harness.mjs';

const team = new Team();
let browser;
let page;
let token;

before(async () => {
  await team.start();
  browser = await open_browser();
  token = await team.user('ada', 'default', 'admin');
  page = await open_page(browser, team);
  await log_in(page, team, token);
});

after(async () => {
  await browser?.close();
  await team.close();
});

async function open(target) {
  await go(page, team, target);
  await settled(page);
}

const row = (name) => page.locator('tr', {has: page.getByRole('link', {name, exact: true})});
const job = (name, command) => ({name, folder: '/tmp', command});

test('the page sends no requests while nothing changes', async () => {
  const array = await team.submit({...job('quiet', ['true']), array: {lines: ['a']}});
  await until(async () => (await team.api('GET', `/v1/arrays/${array.id}`)).ended);
  const quiet = await open_page(browser, team);
  await quiet.clock.install();
  await log_in(quiet, team, token);
  for (const target of ['/jobs', '/overview', '/sweeps', `/arrays/${array.id}`]) {
    const stream = quiet.waitForResponse((answer) => answer.url().includes('/v1/watch/jobs'));
    await go(quiet, team, target);
    await stream;
    await settled(quiet);
    // The requests that the opening of the stream and its events have caused.
    await quiet.clock.runFor(4000);
    await settled(quiet);
    const asked = [];
    const note = (request) => asked.push(new URL(request.url()).pathname);
    quiet.on('request', note);
    // Without the stream, a page would poll every 15 seconds. It reconnects after 40 seconds of silence.
    await quiet.clock.runFor(32_000);
    quiet.off('request', note);
    assert.deepEqual(asked, [], target);
  }
  await quiet.context().close();
});

test('the list of arrays, sweeps and schedules', async () => {
  await open('/sweeps');
  const schedule = await team.api('POST', '/v1/schedules', {
    name: 'nightly',
    project: 'default',
    cron: '0 3 * * *',
    job: job('nightly', ['true']),
  });
  await row('nightly').getByText('active').waitFor();
  await team.api('POST', `/v1/schedules/${schedule.id}/pause`);
  await row('nightly').getByText('paused').waitFor();
  await team.api('DELETE', `/v1/schedules/${schedule.id}`);
  await row('nightly').waitFor({state: 'detached'});

  const array = await team.submit({...job('shards', ['true']), array: {lines: ['a', 'b', 'c']}});
  await row('shards').getByText('100 %').waitFor();
  await team.api('DELETE', `/v1/arrays/${array.id}`);
  await row('shards').waitFor({state: 'detached'});

  const sweep = await team.api('POST', '/v1/sweeps', {
    parameters: {lr: {values: ['0.1', '0.2']}},
    method: 'grid',
    metric: 'loss',
    goal: 'minimize',
    job: job('tune', ['sh', '-c', 'echo "::metrics step=1 loss={lr}"']),
  });
  await row('tune').getByText('2/2').waitFor();
  await team.api('DELETE', `/v1/sweeps/${sweep.id}`);
  await row('tune').waitFor({state: 'detached'});
});

test('the pages of an array and of a schedule', async () => {
  const array = await team.submit({...job('gated', ['sleep', '1000']), array: {lines: ['a', 'b']}});
  await open(`/arrays/${array.id}`);
  await team.api('POST', `/v1/arrays/${array.id}/stop?now=true`);
  await page.getByText('100 % done').waitFor();
  await page.getByText('Stopped', {exact: true}).first().waitFor();

  const schedule = await team.api('POST', '/v1/schedules', {
    name: 'yearly',
    project: 'default',
    cron: '0 3 1 1 *',
    job: job('yearly', ['true']),
  });
  await open(`/schedules/${schedule.id}`);
  await team.api('POST', `/v1/schedules/${schedule.id}/run`);
  await page.getByRole('cell', {name: 'Succeeded'}).waitFor();
  await team.api('DELETE', `/v1/schedules/${schedule.id}`);
  await page.getByText('There is no such schedule').waitFor();
});

test('the overview', async () => {
  await open('/overview');
  const tile = (label) => page.locator('.tile', {hasText: label}).locator('strong');
  const holds = await team.submit({...job('holds', ['sleep', '1000']), resources: {gpus: 8}});
  await tile('jobs running').filter({hasText: '1'}).waitFor();
  await tile('GPUs used').filter({hasText: '8 / 8'}).waitFor();
  await team.submit({...job('waits', ['sleep', '1000']), resources: {gpus: 1}});
  await row('waits').waitFor();
  const fails = await team.submit(job('fails', ['false']));
  await team.ended(fails.id);
  await row('fails').waitFor();

  await team.api('POST', `/v1/nodes/${team.node}/drain`);
  const evictions = page.locator('section', {has: page.getByRole('heading', {name: /^Evictions/})});
  await evictions.getByRole('link', {name: 'holds'}).first().waitFor();
  await page.reload();
  await evictions.getByRole('link', {name: 'holds'}).first().waitFor();
  await team.api('POST', `/v1/jobs/${holds.id}/stop?now=true`);
  assert.deepEqual(page.faults, []);
});

test('the list of jobs shows a change without asking for the list again', async () => {
  await team.api('POST', `/v1/nodes/${team.node}/uncordon`);
  const job_of_the_list = await team.submit(job('changes', ['sleep', '1000']));
  await team.running(job_of_the_list.id);
  await open('/jobs');
  await page.route('**/v1/list?**', (route) => route.abort());
  await team.api('POST', `/v1/jobs/${job_of_the_list.id}/stop?now=true`);
  await row('changes').getByText('Stopped', {exact: true}).waitFor();
  await page.unroute('**/v1/list?**');
});

test('a page whose requests failed once is complete without a change and without a reload', async () => {
  await team.api('POST', '/v1/users', {name: 'grace', server_role: 'admin'});
  const done = await team.submit(job('done', ['true']));
  await team.ended(done.id);
  const shaky = await open_page(browser, team);
  await log_in(shaky, team, await team.token('grace'));
  const failed = new Set();
  await shaky.route(/\/v1\/(whoami|info|tokens|users|list)\b/, async (route) => {
    const name = new URL(route.request().url()).pathname;
    if (failed.has(name)) return await route.continue();
    failed.add(name);
    await route.abort('connectionreset');
  });
  await go(shaky, team, '/tokens');
  await shaky.getByLabel('New user').waitFor();
  await shaky.getByRole('rowheader', {name: 'grace', exact: true}).waitFor();
  await shaky.getByText('of grace').first().waitFor();
  await go(shaky, team, '/jobs');
  await shaky.getByRole('link', {name: 'done', exact: true}).waitFor();
  assert.deepEqual([...failed].sort(), ['/v1/info', '/v1/list', '/v1/tokens', '/v1/users', '/v1/whoami']);
  await shaky.context().close();
});

test('a page follows a change of the roles of its user', async () => {
  const linus = await team.user('linus', 'default', 'viewer');
  const other = await open_page(browser, team);
  await log_in(other, team, linus, '/projects');
  await other.getByRole('cell', {name: 'viewer', exact: true}).waitFor();
  const make = other.getByRole('button', {name: 'New project'});
  assert.equal(await make.count(), 0);
  await team.api('PATCH', '/v1/users/linus', {server_role: 'admin'});
  await make.waitFor();
  await other.getByRole('cell', {name: 'admin', exact: true}).waitFor();
  await team.api('PATCH', '/v1/users/linus', {server_role: 'none'});
  await make.waitFor({state: 'detached'});
  assert.deepEqual(other.faults, []);
  await other.context().close();
});

test('the list of jobs is complete after all of its first requests have failed', async () => {
  const done = await team.submit(job('done-too', ['true']));
  await team.ended(done.id);
  const shaky = await open_page(browser, team);
  await log_in(shaky, team, token);
  let works = false;
  await shaky.route('**/v1/list?**', (route) => (works ? route.continue() : route.abort('connectionreset')));
  await go(shaky, team, '/jobs');
  await shaky.locator('.note.error', {hasText: 'the server does not answer'}).waitFor();
  works = true;
  await shaky.getByRole('link', {name: 'done-too', exact: true}).waitFor();
  await shaky.locator('.note.error').waitFor({state: 'detached'});
  await shaky.context().close();
});

test('hidden tabs hold no connections, and follow changes again when they are visible', async () => {
  const first = await open_page(browser, team);
  const context = first.context();
  await context.clock.install();
  await log_in(first, team, token, '/jobs');
  await settled(first);
  // A browser has six connections to a server. The list holds one stream, and each overview two.
  const hidden = [first];
  for (let i = 0; i < 3; i++) hidden.push(await context.newPage());
  for (const tab of hidden) {
    if (tab !== first) await go(tab, team, '/overview');
    await settled(tab);
    await show_tab(tab, false);
    // The pause before the streams of a hidden page are closed.
    await context.clock.runFor(11_000);
  }
  const visible = await context.newPage();
  await go(visible, team, '/jobs');
  await settled(visible);
  const late = await team.submit(job('while-hidden', ['true']));
  await visible.getByRole('link', {name: 'while-hidden', exact: true}).waitFor();
  await team.ended(late.id);
  assert.equal(await first.getByRole('link', {name: 'while-hidden', exact: true}).count(), 0);
  await show_tab(first, true);
  await first.getByRole('link', {name: 'while-hidden', exact: true}).waitFor();
  await context.close();
});
