// Tests the parts of the page as a user uses them: logs of several tasks, comparison, quota, members, secrets,
// tokens, usage, nodes, actions on several jobs, settings.
import assert from 'node:assert/strict';
import {readFileSync} from 'node:fs';
import {after, before, test} from 'node:test';
import {Team, go, log_in, open_browser, open_page, settled, until} from './harness.mjs';

const team = new Team();
let browser;
let page;

before(async () => {
  await team.start();
  browser = await open_browser();
  await team.api('POST', '/v1/projects', {name: 'vision', quota: {deserved: {gpus: 4}}});
  await team.api('POST', '/v1/projects', {name: 'vision-a', parent: 'vision', quota: {deserved: {gpus: 2}}});
  await team.api('POST', '/v1/users', {name: 'grace', server_role: 'admin'});
  await team.api('POST', '/v1/users', {name: 'ben'});
  page = await open_page(browser, team);
  await log_in(page, team, await team.token('grace'));
});

after(async () => {
  assert.deepEqual(page?.faults, []);
  await browser?.close();
  await team.close();
});

async function open(target) {
  await go(page, team, target);
  await settled(page);
}

const row = (name) => page.locator('tr', {has: page.getByRole('link', {name, exact: true})});
const button = (name) => page.getByRole('button', {name, exact: true});
const job = (name, script, more = {}) => ({name, project: 'vision-a', command: ['sh', '-c', script], ...more});

async function downloaded(click) {
  const [download] = await Promise.all([page.waitForEvent('download'), click()]);
  return {name: download.suggestedFilename(), text: readFileSync(await download.path(), 'utf8')};
}

test('logs of several tasks: merged, one alone, two side by side, by level, by line, downloaded', async () => {
  const script =
    'echo "INFO $MUSTER_TASK begins"; echo "ERROR $MUSTER_TASK ends"; [ $MUSTER_TASK = worker-0 ] || sleep 2';
  const two = await team.submit(job('two', script, {kind: 'torch', workers: 1}));
  await team.ended(two.id);
  await open(`/jobs/${two.id}/logs`);
  const line = (text) => page.locator('.log .line', {hasText: text});
  for (const task of ['master', 'worker-0']) await line(`INFO ${task} begins`).waitFor();

  await page.getByLabel('Task or rank', {exact: true}).selectOption('worker-0');
  await line('INFO worker-0 begins').waitFor();
  await line('INFO master begins').waitFor({state: 'detached'});

  await page.getByLabel('Second task or rank').selectOption('master');
  await page.locator('.panes .log').nth(1).waitFor();
  await page.locator('.panes > *').nth(0).getByText('ERROR worker-0 ends').waitFor();
  await page.locator('.panes > *').nth(1).getByText('ERROR master ends').waitFor();
  await page.getByLabel('Second task or rank').selectOption('');
  await page.getByLabel('Task or rank', {exact: true}).selectOption('');

  await page.getByLabel('Level').selectOption('error');
  await line('INFO master begins').waitFor({state: 'detached'});
  await until(async () => (await line('ERROR').count()) === 2);

  await open(`/jobs/${two.id}/logs?task=master&line=2`);
  assert.match(await page.locator('.log .line.target').textContent(), /ERROR master ends/);

  await page.getByLabel('Level').selectOption('error');
  await page.getByText('1 line matches in the whole log').waitFor();
  assert.match(await page.locator('.hit:not(.context)').innerText(), /ERROR master ends/);

  const {name, text} = await downloaded(() => page.getByRole('link', {name: 'Download'}).click());
  assert.equal(name, 'two-master.log');
  assert.equal(text, 'INFO master begins\nERROR master ends\n');
});

test('the level and a pattern of a merged log are searched in the whole log', async () => {
  const script = '[ $MUSTER_TASK = worker-0 ] || { echo "ERROR early"; seq 1 6000; }';
  const long = await team.submit(job('long', script, {kind: 'torch', workers: 1}));
  await team.ended(long.id);
  await open(`/jobs/${long.id}/logs?level=error`);
  await page.locator('.log .line', {hasText: 'ERROR early'}).waitFor();
  await page.getByText('1 line matches in the whole log').waitFor();

  await page.getByLabel('Level').selectOption('');
  await page.getByText('Only the last 5\u202f000 lines are loaded').waitFor();
  await page.getByRole('searchbox').fill('^[0-9]+$');
  await page.getByText('5\u202f000 lines match in the loaded part of the log').waitFor();
  await page.getByRole('button', {name: 'Load earlier lines'}).click();
  await page.getByText('6\u202f000 lines match in the whole log').waitFor();
});

test('a file of a job is downloaded as it is, and never shown by the browser', async () => {
  const made = await team.submit(
    job('leaves', 'echo "<script>alert(1)</script>" > /artifacts/page.html', {
      volumes: [{kind: 'artifacts', target: '/artifacts'}],
    }),
  );
  await team.ended(made.id);
  await open(`/jobs/${made.id}/files`);
  const link = page.getByRole('link', {name: 'Download page.html'});
  const {name, text} = await downloaded(() => link.click());
  assert.deepEqual([name, text], ['page.html', '<script>alert(1)</script>\n']);
  const headers = await page.evaluate(
    async (url) => Object.fromEntries((await fetch(url)).headers),
    await link.getAttribute('href'),
  );
  assert.match(headers['content-disposition'], /^attachment/);
  assert.equal(headers['x-content-type-options'], 'nosniff');
  assert.doesNotMatch(headers['content-type'], /html/);
});

test('jobs are compared: best first, by either end, only the differences, with the ends of the axes', async () => {
  const ids = [];
  for (const [name, lr, loss] of [
    ['low', '0.1', 3],
    ['middle', '0.2', 1],
    ['high', '0.4', 2],
  ]) {
    const command = ['sh', '-c', `echo "::metrics step=1 loss=9"; echo "::metrics step=2 loss=${loss}"`, '--lr', lr];
    ids.push((await team.submit({name, project: 'vision-a', command})).id);
  }
  for (const id of ids) await team.ended(id);
  await open(`/compare?jobs=${ids.join(',')}`);
  const names = () => page.getByRole('table', {name: 'Compared jobs', exact: true}).locator('tbody th').allInnerTexts();
  await page.getByRole('table', {name: 'Compared jobs', exact: true}).waitFor();
  assert.deepEqual(
    (await names()).map((each) => each.trim()),
    ['middle', 'high', 'low'],
  );
  await page.getByLabel('Best is').selectOption('max');
  await until(async () => (await names())[0].trim() === 'low');
  const axes = await page
    .getByRole('img', {name: /^Parallel coordinates of 3 jobs/})
    .locator('text')
    .allTextContents();
  for (const text of ['--lr', '0.1', '0.4', 'loss', '1', '3']) assert.ok(axes.includes(text), `${text} in ${axes}`);

  const parameters = page.getByRole('table', {name: 'Parameters of the compared jobs'}).locator('tbody tr');
  const differing = await parameters.count();
  await page.getByLabel('Only differences').uncheck();
  await until(async () => (await parameters.count()) > differing);
  await page.getByText('As a table').click();
  await page.locator('details[open] td', {hasText: '9'}).first().waitFor();
});

test('jobs of the list are suspended, resumed, stopped, run again and deleted together', async () => {
  for (const name of ['bulk-a', 'bulk-b']) {
    await team.running((await team.submit(job(name, 'sleep 1000', {labels: {set: 'bulk'}}))).id);
  }
  await open('/jobs?label=set%3Dbulk');
  const act = async (verb, effect, phase) => {
    await page.getByRole('checkbox', {name: 'Select all jobs in view'}).check();
    await page.getByRole('group', {name: 'Selected jobs'}).getByRole('button', {name: verb}).click();
    const dialog = page.getByRole('dialog');
    assert.match(await dialog.innerText(), effect);
    await dialog.getByRole('button', {name: verb, exact: true}).click();
    await dialog.waitFor({state: 'detached'});
    if (phase) for (const name of ['bulk-a', 'bulk-b']) await row(name).getByText(phase, {exact: true}).waitFor();
  };
  await act('Suspend', /keep their place in the queue/, 'Suspended');
  await act('Resume', /wait for resources again/, 'Running');
  await act('Stop', /The tasks of 2 jobs get SIGTERM/, 'Stopped');
  await act('Rerun', /2 new jobs with the same specification are submitted/);
  for (const name of ['bulk-a-2', 'bulk-b-2']) await row(name).getByText('Running', {exact: true}).waitFor();
  await page.getByRole('checkbox', {name: 'Select bulk-a', exact: true}).check();
  await page.getByRole('checkbox', {name: 'Select bulk-a-2'}).check();
  await page.getByRole('group', {name: 'Selected jobs'}).getByRole('button', {name: 'Delete'}).click();
  assert.match(await page.getByRole('dialog').innerText(), /1 selected job has not ended/);
  await page.getByRole('dialog').getByRole('button', {name: 'Delete'}).click();
  await row('bulk-a').waitFor({state: 'detached'});
  await row('bulk-a-2').waitFor();
});

test('the list is sorted and filtered by each of its filters, and the address has them', async () => {
  const elsewhere = await team.submit(job('elsewhere', 'true', {project: 'default'}));
  await team.ended(elsewhere.id);
  await open('/jobs');
  const shown = async () => (await page.locator('.vt tbody tr th').allInnerTexts()).map((each) => each.trim());
  await page.getByRole('button', {name: 'Name'}).click();
  await page.locator('th[aria-sort=ascending]', {hasText: 'Name'}).waitFor();
  await until(async () => (await shown())[0] === 'bulk-a-2');
  await page.getByRole('button', {name: 'Name'}).click();
  await page.locator('th[aria-sort=descending]', {hasText: 'Name'}).waitFor();
  await until(async () => (await shown())[0] === 'two');
  assert.equal(await page.locator('th[aria-sort]').count(), 1);

  await open('/jobs');
  const all = await shown();
  assert.ok(all.includes('elsewhere'));
  for (const [label, value, name, expected] of [
    ['Kind', 'torch', 'kind', ['long', 'two']],
    ['Project', 'vision-a', 'project', all.filter((each) => each !== 'elsewhere')],
    ['Project', 'default', 'project', ['elsewhere']],
  ]) {
    await open('/jobs');
    await page.getByRole('combobox', {name: label}).selectOption(value);
    await until(async () => JSON.stringify(await shown()) === JSON.stringify(expected));
    assert.equal(new URL(page.url()).searchParams.get(name), value);
  }
  await team.api('DELETE', `/v1/jobs/${elsewhere.id}`);
  // No job is older than an hour: the request has the filter, and the list has all jobs.
  await open('/jobs');
  const [request] = await Promise.all([
    page.waitForRequest((each) => new URL(each.url()).searchParams.has('submitted_after')),
    page.getByRole('combobox', {name: 'Time'}).selectOption('1h'),
  ]);
  const hour_ago = Date.now() - 3600e3;
  const after = Date.parse(new URL(request.url()).searchParams.get('submitted_after'));
  assert.ok(Math.abs(after - hour_ago) < 300e3, `${after} instead of ${hour_ago}`);
  await until(async () => (await shown()).length === all.length - 1);
  assert.equal(new URL(page.url()).searchParams.get('within'), '1h');
  await open('/jobs');
  await page.getByRole('textbox', {name: 'Label'}).fill('set=bulk');
  await until(async () => (await shown()).every((each) => each.startsWith('bulk-')) && (await shown()).length === 3);
  await open('/jobs');
  await page.getByRole('textbox', {name: 'User'}).fill('nobody');
  await page.getByText('No job matches the filters.').waitFor();
});

test('each number of the overview leads to the list behind it', async () => {
  await open('/overview');
  for (const label of ['jobs running', 'jobs waiting', 'failed in 24 h', 'succeeded in 24 h']) {
    await open('/overview');
    const tile = page.locator('.tile', {hasText: label});
    const number = await tile.locator('strong').innerText();
    await tile.click();
    await settled(page);
    await page.locator('.card header [role=status]', {hasText: new RegExp(`^${number} jobs?$`)}).waitFor();
  }
});

test('a project is made, its members, secrets and usage', async () => {
  await open('/projects');
  await button('New project').click();
  const dialog = page.getByRole('dialog', {name: 'New project'});
  await dialog.getByLabel('Name').fill('vision');
  await dialog.getByRole('button', {name: 'Create'}).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByLabel('Name').fill('vision-b');
  await dialog.getByLabel('Parent').selectOption('vision');
  await dialog.getByLabel('GPU quota').fill('1.5');
  await dialog.getByRole('button', {name: 'Create'}).click();
  await page.getByRole('heading', {name: 'vision-b'}).waitFor();
  const made = await team.api('GET', '/v1/projects/vision-b');
  assert.deepEqual([made.parent, made.quota.deserved.gpus], ['vision', 1.5]);

  await open('/projects/vision-b');
  await page.getByLabel('GPU quota').fill('many');
  await button('Save').click();
  await page.getByText("'many' is not an amount of GPUs, such as 4 or 0.5").waitFor();
  await page.getByLabel('GPU quota').fill('2');
  await button('Save').click();
  await page.getByText('Changed the quota').waitFor();
  assert.equal((await team.api('GET', '/v1/projects/vision-b')).quota.deserved.gpus, 2);

  await open('/projects/vision-b/members');
  await page.getByLabel('User').fill('ben');
  await button('Add').click();
  await page.getByLabel('Role of ben').selectOption('viewer');
  await page.getByText('Changed the role of ben').waitFor();
  assert.deepEqual((await team.api('GET', '/v1/projects/vision-b/members')).members, [{user: 'ben', role: 'viewer'}]);
  await button('Remove ben').click();
  await page.getByText('No members yet').waitFor();

  await open('/projects/vision-b/secrets');
  await page.getByLabel('Name').fill('HF');
  await page.getByLabel('Value').fill('not-to-be-seen');
  await button('Store').click();
  await page.getByRole('rowheader', {name: 'HF'}).waitFor();
  assert.ok(!(await page.content()).includes('not-to-be-seen'));
  await button('Delete HF').click();
  await page.getByRole('dialog', {name: 'Delete secret HF?'}).getByRole('button', {name: 'Delete'}).click();
  await page.getByText('No secrets yet.').waitFor();

  await open('/projects');
  await page.getByRole('link', {name: 'vision-b'}).click();
  await button('Delete').click();
  await page.getByRole('dialog').getByRole('button', {name: 'Delete'}).click();
  await page.getByRole('heading', {name: 'Projects'}).waitFor();
  await page.getByRole('link', {name: 'vision-b'}).waitFor({state: 'detached'});
});

test('the usage of a project is that of the projects below it, also as a file', async () => {
  const busy = await team.submit(job('busy', 'sleep 1000', {resources: {gpus: 2}}));
  await team.running(busy.id);
  await open('/projects/vision/usage');
  const cells = page.getByRole('table', {name: 'Usage by user'}).locator('tbody tr').first().locator('th, td');
  await cells.first().waitFor();
  assert.equal((await cells.allInnerTexts())[1], 'vision-a');
  const {name, text} = await downloaded(() => page.getByRole('link', {name: 'CSV'}).click());
  assert.equal(name, 'usage-vision.csv');
  assert.match(text, /^project,user,jobs,failed,job_hours,gpu_hours\n(vision-a,\w+,\d+,0,\d+\.\d{3},\d+\.\d{3}\n)+$/);
  assert.match(
    await team.muster('project', 'usage', 'vision'),
    /PROJECT +USER +JOBS +FAILED +JOB HOURS +GPU HOURS\nvision-a/,
  );
  await page.getByLabel('Time', {exact: true}).selectOption('7d');
  await page.waitForURL(/span=7d/);
  await team.api('POST', `/v1/jobs/${busy.id}/stop?now=true`);
});

test('a token is made, shown once, and revoked; a user is invited and disabled', async () => {
  await open('/tokens');
  await button('New token').click();
  const dialog = page.getByRole('dialog', {name: 'New token'});
  await dialog.getByLabel('Description').fill('from the page');
  await dialog.getByLabel('Highest role').selectOption('viewer');
  await dialog.getByLabel('Days until it expires').fill('2');
  await dialog.getByRole('button', {name: 'Create'}).click();
  const shown = page.getByRole('dialog', {name: 'The new token'});
  assert.match(await shown.locator('pre').textContent(), /^muster_\w+$/);
  await shown.getByRole('button', {name: 'Done'}).click();
  const {tokens} = await team.api('GET', '/v1/tokens?user=grace');
  assert.equal(tokens.find((each) => each.description === 'from the page').ceiling, 'viewer');
  await button('Revoke from the page').click();
  await page
    .getByRole('dialog', {name: 'Revoke from the page?'})
    .getByRole('button', {name: 'Revoke', exact: true})
    .click();
  await button('Revoke from the page').waitFor({state: 'detached'});

  await page.getByLabel('New user').fill('carol');
  await button('Invite').click();
  const invitation = page.getByRole('dialog', {name: 'The invitation'});
  assert.match(await invitation.locator('pre').textContent(), /^muster_\w+$/);
  await invitation.getByRole('button', {name: 'Done'}).click();
  const carol = page.locator('tr', {has: page.getByRole('rowheader', {name: 'carol'})});
  await carol.getByRole('button', {name: 'Disable'}).click();
  await carol.getByText('disabled').waitFor();
});

test('a node is cordoned, drained after a question, and uncordoned', async () => {
  const held = await team.submit(job('held', 'sleep 1000', {resources: {gpus: 1}}));
  await team.running(held.id);
  await open(`/nodes/${team.node}`);
  await page.getByRole('table', {name: /GPUs/}).getByText('held').first().waitFor();
  await button('Cordon').click();
  await page.getByText('draining', {exact: true}).waitFor();
  assert.equal((await team.api('GET', `/v1/jobs/${held.id}`)).phase, 'Running');
  await button('Drain').click();
  const dialog = page.getByRole('dialog', {name: `Drain ${team.node}?`});
  assert.match(await dialog.innerText(), /are stopped.*Jobs on the node:.*held/s);
  await dialog.getByRole('button', {name: 'Drain'}).click();
  await page.getByText('cordoned', {exact: true}).waitFor();
  await until(async () => (await team.api('GET', `/v1/jobs/${held.id}`)).phase === 'Queued');
  await button('Uncordon').click();
  await page.getByText('ready', {exact: true}).waitFor();
  await team.running(held.id);
  await team.api('POST', `/v1/jobs/${held.id}/stop?now=true`);
});

test('times in UTC, the theme and the shortcuts are settings that stay', async () => {
  await open('/jobs');
  const time = () => page.locator('.vt time').first().getAttribute('title');
  const local = await time();
  await page.getByLabel('Times in UTC').check();
  await until(async () => (await time()) !== local);
  assert.match(await time(), /Z/);
  await page.getByLabel('Theme').selectOption('dark');
  const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', {name: 'Keyboard shortcuts'});
  await help.getByLabel('Shortcuts are on').uncheck();
  await page.keyboard.press('Escape');
  await page.reload();
  await settled(page);
  assert.ok(await page.getByLabel('Times in UTC').isChecked());
  assert.equal(await ground(), dark);
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await page.keyboard.press('?');
  assert.match(page.url(), /\/jobs$/);
  assert.equal(await help.count(), 0);
  await page.getByRole('button', {name: 'Shortcuts (?)'}).click();
  await help.getByLabel('Shortcuts are on').check();
  await page.keyboard.press('Escape');
  await page.keyboard.press('g');
  await page.keyboard.press('p');
  await page.getByRole('heading', {name: 'Projects'}).waitFor();
});
