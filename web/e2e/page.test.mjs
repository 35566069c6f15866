// Tests every view of the page against a real server with real jobs, as two users and an admin.
import assert from 'node:assert/strict';
import {mkdirSync} from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {Team, axe, go, log_in, open_browser, open_page, overflow, settled} from './harness.mjs';
import {fill} from './cluster.mjs';

const team = new Team();
let browser;
let tokens;
let jobs;
let groups;

before(async () => {
  await team.start();
  browser = await open_browser();
  ({tokens, jobs, groups} = await fill(team));
});

after(async () => {
  await browser?.close();
  await team.close();
});

test('a token opens the page once, and does not stay in the address', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada);
  assert.equal(new URL(page.url()).hash, '');
  assert.match(await page.locator('.who').textContent(), /ada/);
  const stored = await page.evaluate(() => JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie]));
  assert.ok(!stored.includes('muster_'), stored);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

/** Starts a simulation and waits for its answer. */
async function simulate(page) {
  await page.getByRole('button', {name: 'Simulate'}).click();
  await page.getByRole('link', {name: 'wide'}).nth(1).waitFor();
}

/** The name and the address of each page, and for some a function that prepares it. */
const pages = () => [
  ['overview', '/overview'],
  ['jobs', '/jobs'],
  ['job', `/jobs/${jobs.train.id}`],
  ['job-failed', `/jobs/${jobs.broken.id}`],
  ['job-waiting', `/jobs/${jobs.wide.id}`],
  ['logs', `/jobs/${jobs.train.id}/logs`],
  ['metrics', `/jobs/${jobs['lr-low'].id}/metrics`],
  ['spec', `/jobs/${jobs.train.id}/spec`],
  ['spec-file', `/jobs/${jobs.train.id}/spec?view=yaml`],
  ['difference', `/jobs/${jobs['lr-low'].id}/spec?view=diff&with=${jobs['lr-high'].id}`],
  ['files', `/jobs/${jobs.train.id}/files`],
  ['shell', `/jobs/${jobs.train.id}/shell`],
  ['compare', `/compare?jobs=${['lr-high', 'lr-middle', 'lr-low'].map((name) => jobs[name].id).join(',')}`],
  ['search', '/logs?grep=loss'],
  ['submit', `/submit?from=${jobs.train.id}`],
  ['scheduler', '/scheduler'],
  ['what-if', '/scheduler', simulate],
  ['projects', '/projects'],
  ['project', '/projects/vision-a'],
  ['members', '/projects/vision/members'],
  ['secrets', '/projects/vision-a/secrets'],
  ['usage', '/projects/vision-a/usage'],
  ['nodes', '/nodes'],
  ['node', `/nodes/${team.node}`],
  ['tokens', '/tokens'],
  ['audit', '/audit'],
  ['sweeps', '/sweeps'],
  ['array', `/arrays/${groups.array.id}`],
  ['sweep', `/sweeps/${groups.sweep.id}`],
  ['schedule', `/schedules/${groups.schedule.id}`],
  ['notifications', '/projects/vision-a/notifications'],
  ['messy', `/jobs/${jobs.messy.id}`],
  ['odd-array', `/arrays/${groups.odd_array.id}`],
  ['odd-sweep', `/sweeps/${groups.odd_sweep.id}`],
  ['odd-notifications', '/projects/vision/notifications'],
  ['messy-files', `/jobs/${jobs.messy.id}/files`],
  ['messy-metrics', `/jobs/${jobs.messy.id}/metrics`],
  ['missing', '/settings'],
  ['hostile', `/jobs/${jobs.hostile.id}`],
  ['hostile-logs', `/jobs/${jobs.hostile.id}/logs`],
  ['hostile-spec', `/jobs/${jobs.hostile.id}/spec`],
];

for (const scheme of ['light', 'dark']) {
  for (const width of [360, 1440]) {
    test(`every page at ${width} px, ${scheme}: accessible, nothing overflows, no fault`, async () => {
      const page = await open_page(browser, team, {width, height: width === 360 ? 740 : 900, scheme});
      await log_in(page, team, tokens.root);
      const faults = [];
      for (const [name, target, prepare] of pages()) {
        await go(page, team, target);
        await settled(page);
        await prepare?.(page);
        if (name === 'submit') await page.locator('.note.good, .note.warn, .note.error').first().waitFor();
        if (name === 'logs') await page.locator('.log .line').first().waitFor();
        for (const fault of await axe(page)) faults.push(`${name}: ${fault}`);
        const over = await overflow(page);
        if (over) faults.push(`${name}: overflows ${over}`);
        if (process.env.MUSTER_UI_IMAGES) {
          mkdirSync(process.env.MUSTER_UI_IMAGES, {recursive: true});
          await page.screenshot({
            path: path.join(process.env.MUSTER_UI_IMAGES, `web-${name}-${scheme}${width === 360 ? '-narrow' : ''}.png`),
          });
        }
      }
      assert.deepEqual([...faults, ...page.faults], []);
      await page.context().close();
    });
  }
}

test('the pages use a screen of 3840 px', async () => {
  const page = await open_page(browser, team, {width: 3840, height: 2160, scheme: 'dark'});
  await log_in(page, team, tokens.root);
  for (const [name, target, prepare] of pages()) {
    if (!['overview', 'jobs', 'job', 'compare', 'submit', 'logs', 'projects', 'sweep'].includes(name)) continue;
    await go(page, team, target);
    await settled(page);
    await prepare?.(page);
    assert.equal(await overflow(page), '', name);
    // The content is as wide as the screen, and a table is not wider than its card.
    assert.ok(await page.evaluate(() => document.querySelector('#main').clientWidth > 3000), name);
    if (process.env.MUSTER_UI_IMAGES) {
      await page.screenshot({path: path.join(process.env.MUSTER_UI_IMAGES, `web-${name}-4k.png`)});
    }
  }
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('hostile texts are shown as texts on every page', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.root);
  for (const [, target, prepare] of pages()) {
    await go(page, team, target);
    await settled(page);
    await prepare?.(page);
    assert.equal(await page.evaluate(() => window.__attacked), undefined, target);
    assert.equal(
      await page.evaluate(
        () =>
          document.querySelectorAll(
            '#app script, #app iframe, #app style, #app link, #app base, #app meta, #app img, #app form[action]',
          ).length,
      ),
      0,
      target,
    );
    assert.deepEqual(
      await page.evaluate(() =>
        [...document.querySelectorAll('a[href]')]
          .filter((link) => link.origin !== location.origin)
          .map((link) => link.href),
      ),
      [],
      target,
    );
    assert.equal(
      await page.evaluate(
        () => document.querySelectorAll('head script, head style').length <= 40 && document.title.endsWith('Muster'),
      ),
      true,
      target,
    );
  }
  await go(page, team, `/jobs/${jobs.hostile.id}/logs`);
  await page.getByText('<img src=x onerror="window.__attacked=1">').first().waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a user sees nothing of another project', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ben, '/jobs');
  await page.getByRole('link', {name: 'tts'}).waitFor();
  for (const target of [
    '/overview',
    '/jobs',
    '/scheduler',
    '/projects',
    '/nodes',
    '/audit',
    '/logs?grep=epoch',
    '/compare',
    '/tokens',
    `/jobs/${jobs.train.id}`,
    `/jobs/${jobs.train.id}/logs`,
    '/projects/vision-a',
    '/projects/vision-a/notifications',
    `/arrays/${groups.array.id}`,
    `/sweeps/${groups.sweep.id}`,
    `/schedules/${groups.schedule.id}`,
    '/sweeps',
    `/submit?from=${jobs.train.id}`,
  ]) {
    await go(page, team, target);
    await settled(page);
    const text = await page.locator('body').innerText();
    // As words, because an id may contain the letters of a name.
    for (const secret of ['vision', 'lr-high', 'broken', 'ada'])
      assert.doesNotMatch(text, new RegExp(`\\b${secret}\\b`), target);
  }
  await page.context().close();
});

test('the list follows changes and keeps selection, focus and scroll', async () => {
  // A low window, in which the list is longer than its view.
  const page = await open_page(browser, team, {height: 520});
  await log_in(page, team, tokens.ada, '/jobs');
  const box = page.getByRole('checkbox', {name: 'Select train'});
  await box.check();
  const broken = page.getByRole('link', {name: 'broken'});
  await broken.focus();
  const list = page.getByRole('region', {name: 'Jobs', exact: true});
  const scroll = (to) =>
    list.evaluate((region, top) => {
      if (top !== undefined) region.scrollTop = top;
      return region.scrollTop;
    }, to);
  assert.equal(await scroll(96), 96);
  // The row at the top of the view is laid out again.
  await settled(page);
  const place = () => broken.evaluate((link) => Math.round(link.getBoundingClientRect().top));
  const before = await place();
  const fresh = await team.submit({name: 'fresh', project: 'vision-a', command: ['sleep', '1000']});
  await page.getByRole('link', {name: 'fresh'}).waitFor();
  await page
    .locator('tr', {has: page.getByRole('link', {name: 'fresh'})})
    .getByText('Running')
    .waitFor();
  assert.ok(await box.isChecked());
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'broken');
  // The new row above has a height of 32.
  assert.equal(await scroll(), 128);
  assert.equal(await place(), before);
  await box.uncheck();
  await page.getByRole('checkbox', {name: 'Select fresh'}).check();
  await page.getByRole('checkbox', {name: 'Select broken'}).check();
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  const dialog = page.getByRole('dialog');
  assert.match(await dialog.innerText(), /Stop job fresh\?/);
  assert.match(await dialog.innerText(), /SIGTERM/);
  assert.match(await dialog.innerText(), /1 selected job has already ended and will not change/);
  await dialog.getByRole('button', {name: 'Stop'}).click();
  await page
    .locator('tr', {has: page.getByRole('link', {name: 'fresh'})})
    .getByText('Stopped', {exact: true})
    .waitFor();
  await team.ended(fresh.id);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('filters stand in the address and select on the server', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.root, '/jobs?phase=Failed');
  await page.getByRole('link', {name: 'broken'}).waitFor();
  assert.equal(await page.getByRole('link', {name: 'train', exact: true}).count(), 0);
  await page.getByRole('button', {name: /^Failed/}).click();
  await page.getByRole('searchbox').fill('lr-');
  await page.getByRole('link', {name: 'lr-low'}).waitFor();
  await page.waitForFunction(() => !document.querySelector('#main')?.textContent?.includes('tts'));
  assert.match(page.url(), /text=lr-/);
  await page.reload();
  await page.getByRole('link', {name: 'lr-low'}).waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a job is submitted from the form, and its log, colours and search are shown', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/submit');
  await settled(page);
  await page.getByLabel('Name', {exact: true}).fill('Not A Name');
  await page
    .getByRole('textbox', {name: 'Command', exact: true})
    .fill(`sh -c 'printf "\\033[31mred\\033[0m line\\n"; seq 1 300; sleep 1000'`);
  await page.getByLabel('Project', {exact: true}).selectOption('vision-a');
  await page.locator('.field .fault', {hasText: 'Not A Name'}).waitFor();
  await page.getByLabel('Name', {exact: true}).fill('from-page');
  await page.locator('.note.good', {hasText: 'start now'}).waitFor();
  const file = page.getByLabel('Job file (YAML)');
  assert.match(await file.inputValue(), /name: from-page/);
  await file.fill((await file.inputValue()) + 'labels:\n  origin: page\n');
  await page.waitForFunction(() =>
    [...document.querySelectorAll('.submit form textarea')].some((area) => area.value === 'origin=page'),
  );
  await page.getByRole('button', {name: 'Submit', exact: true}).click();
  await page.getByRole('heading', {name: 'from-page'}).waitFor();
  await page.getByRole('link', {name: 'Logs', exact: true}).click();
  await page.locator('.log .line', {hasText: /300$/}).waitFor();
  await page.locator('.log').evaluate((region) => {
    region.scrollTop = 0;
  });
  await page.locator('.log .f1', {hasText: 'red'}).waitFor();
  await page.getByRole('searchbox').fill('^29');
  await page.waitForFunction(() => /1[01] lines match/.test(document.body.textContent ?? ''));
  assert.equal(await page.locator('.log mark').first().textContent(), '29');
  const id = /jobs\/(\w+)/.exec(page.url())[1];
  await team.api('POST', `/v1/jobs/${id}/stop?now=true`);
  await team.ended(id);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a shell runs in a task', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, `/jobs/${jobs.train.id}/shell`);
  await page.getByRole('button', {name: 'Open a shell'}).click();
  await page.locator('.xterm').waitFor();
  await page.locator('.xterm-rows', {hasText: /[#$]/}).waitFor();
  await page.keyboard.type('echo $((6 * 7))-from-the-task; printf "\\033[38;2;10;200;30mgreen\\033[0m\\n"\n');
  await page.locator('.xterm-rows', {hasText: '42-from-the-task'}).waitFor();
  if (process.env.MUSTER_UI_IMAGES)
    await page.screenshot({path: path.join(process.env.MUSTER_UI_IMAGES, 'web-shell-light.png')});
  await page.keyboard.type('exit 5\n');
  await page.getByText('The program ended with code 5.').waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a viewer of a project gets no shell and no buttons of members', async () => {
  const vera = await team.user('vera', 'vision', 'viewer');
  const page = await open_page(browser, team);
  await log_in(page, team, vera, `/jobs/${jobs.train.id}/shell`);
  await page.getByText('A shell needs the role member in project vision-a.').waitFor();
  for (const name of ['Open a shell', 'Stop', 'Suspend', 'Rerun'])
    assert.equal(await page.getByRole('button', {name, exact: true}).count(), 0, name);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a restart of the server is reported, and the page continues without a reload', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/jobs');
  await page.getByRole('link', {name: 'train', exact: true}).waitFor();
  await page.evaluate(() => {
    window.__same = true;
  });
  await team.stop();
  await page.getByText('The connection to the server was lost').waitFor();
  await page.getByRole('link', {name: 'train', exact: true}).waitFor();
  await team.start();
  await page.getByText('The connection to the server was lost').waitFor({state: 'detached'});
  const late = await team.submit({name: 'after-restart', project: 'vision-a', command: ['true']});
  await page.getByRole('link', {name: 'after-restart'}).waitFor();
  await team.ended(late.id);
  assert.equal(await page.evaluate(() => window.__same), true);
  await page.context().close();
});

test('a session that expires in the middle of a form loses nothing', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/submit');
  await settled(page);
  await page.getByLabel('Name', {exact: true}).fill('kept-text');
  await page.getByRole('textbox', {name: 'Command', exact: true}).fill('echo hi');
  await page.getByLabel('Project', {exact: true}).selectOption('vision-a');
  await page.locator('.note.good').waitFor();
  const {tokens: all} = await team.api('GET', '/v1/tokens?user=ada');
  const mine = await page.evaluate(async () => (await (await fetch('/v1/whoami')).json()).token);
  assert.ok(all.some((each) => each.id === mine));
  await team.api('DELETE', `/v1/tokens/${mine}`);
  await page.getByRole('button', {name: 'Submit', exact: true}).click();
  const sheet = page.getByRole('dialog', {name: 'Your session has expired'});
  await sheet.waitFor();
  assert.equal(await page.getByLabel('Name', {exact: true}).inputValue(), 'kept-text');
  await sheet.getByLabel('Code or token').fill(await team.token('ada'));
  await sheet.getByRole('button', {name: 'Log in'}).click();
  await page.getByRole('heading', {name: 'kept-text'}).waitFor();
  assert.equal((await team.api('GET', '/v1/jobs?prefix=kept-text')).jobs.length, 1);
  await page.context().close();
});

test('after a logout, the next user finds no draft of the former one', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/submit');
  await settled(page);
  await page.getByLabel('Name', {exact: true}).fill('draft-of-ada');
  await page.getByRole('button', {name: 'Log out'}).click();
  const sheet = page.getByRole('dialog', {name: 'Log in to Muster'});
  await sheet.getByLabel('Code or token').fill(tokens.ben);
  await sheet.getByRole('button', {name: 'Log in'}).click();
  await page.locator('.who', {hasText: 'ben'}).waitFor();
  await page.getByRole('navigation', {name: 'Pages'}).getByRole('link', {name: 'Submit'}).click();
  assert.equal(await page.getByLabel('Name', {exact: true}).inputValue(), '');
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('an address with a code logs in a browser without a session only after a question', async () => {
  const page = await open_page(browser, team);
  const question = page.getByRole('dialog', {name: 'Log in as ben?'});
  const form = page.getByRole('dialog', {name: 'Log in to Muster'});
  await page.goto(`${team.address}/ui/nodes#code=${tokens.ben}`);
  await question.getByText(new URL(team.address).host).waitFor();
  assert.deepEqual(await axe(page), []);
  await question.getByRole('button', {name: 'Do not log in'}).click();
  await form.waitFor();
  assert.deepEqual(await page.context().cookies(), []);

  await page.goto(`${team.address}/ui/jobs#code=${tokens.ben}`);
  await question.getByRole('button', {name: 'Log in as ben'}).click();
  await page.locator('.who', {hasText: 'ben'}).waitFor();
  assert.equal(new URL(page.url()).pathname, '/ui/jobs');
  await settled(page);

  // A code of the same user needs no question.
  await page.goto(`${team.address}/ui/nodes#code=${tokens.ben}`);
  await page.locator('.who', {hasText: 'ben'}).waitFor();
  assert.equal(await question.count(), 0);
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('an address with a code replaces a session only after a question, and then in all tabs', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/jobs');
  const other = await page.context().newPage();
  await go(other, team, '/jobs');
  await other.locator('.who', {hasText: 'ada'}).waitFor();
  const question = page.getByRole('dialog', {name: 'Log in as ben?'});
  const user = () => page.evaluate(async () => (await (await fetch('/v1/whoami')).json()).user);

  await page.goto(`${team.address}/ui/nodes#code=${tokens.ben}`);
  await question.getByText('You are logged in as ada').waitFor();
  assert.equal(new URL(page.url()).hash, '');
  await question.getByRole('button', {name: 'Stay logged in as ada'}).click();
  await question.waitFor({state: 'detached'});
  assert.equal(await user(), 'ada');

  await page.goto(`${team.address}/ui/jobs#code=${tokens.ben}`);
  await question.getByRole('button', {name: 'Log in as ben'}).click();
  await page.locator('.who', {hasText: 'ben'}).waitFor();
  assert.equal(new URL(page.url()).pathname, '/ui/jobs');
  assert.equal(await user(), 'ben');
  await other.locator('.who', {hasText: 'ben'}).waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('a number field keeps what is typed, and is not submitted before it is a number', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/submit');
  await settled(page);
  await page.getByLabel('Name', {exact: true}).fill('numbers');
  await page.getByRole('textbox', {name: 'Command', exact: true}).fill('true');
  await page.getByLabel('Project', {exact: true}).selectOption('vision-a');
  await page.locator('.note.good').waitFor();
  const submit = page.getByRole('button', {name: 'Submit', exact: true});
  const cpus = page.getByRole('spinbutton', {name: 'CPUs', exact: true}).first();
  await cpus.focus();
  await page.keyboard.type('1e');
  await page.getByText('this is not a number').waitFor();
  assert.ok(await submit.isDisabled());
  await page.keyboard.type('0');
  await page.getByText('this is not a number').waitFor({state: 'detached'});
  assert.equal(await cpus.inputValue(), '1e0');
  await page.locator('.note.good').waitFor();
  assert.ok(await submit.isEnabled());
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('two tabs that change one quota: the second reports the change of the first, and neither is lost', async () => {
  const first = await open_page(browser, team);
  await log_in(first, team, tokens.root, '/projects/speech');
  const second = await first.context().newPage();
  await go(second, team, '/projects/speech');
  await second.getByLabel('GPU limit').fill('7');
  await first.getByLabel('GPU quota').fill('3');
  await first.getByRole('button', {name: 'Save'}).click();
  await first.getByText('Changed the quota').waitFor();
  await second.getByText('has changed this quota').waitFor();
  await second.getByRole('button', {name: 'Save'}).click();
  await second.getByText('Changed the quota').waitFor();
  const {quota} = await team.api('GET', '/v1/projects/speech');
  assert.equal(quota.deserved.gpus, 3);
  assert.equal(quota.limit.gpus, 7);
  await first.context().close();
});

test('a clock that is wrong by an hour is reported', async () => {
  const page = await open_page(browser, team);
  await page.clock.install({time: Date.now() + 3600e3});
  await page.clock.resume();
  await log_in(page, team, tokens.ada, '/jobs');
  await page.getByText(/The clock of this machine is (1h 00m|59m \d\ds) ahead/).waitFor();
  await page.context().close();
});

test('a slow link shows what is being loaded, and then the page', async () => {
  const page = await open_page(browser, team);
  const session = await page.context().newCDPSession(page);
  await session.send('Network.emulateNetworkConditions', {
    offline: false,
    latency: 400,
    downloadThroughput: 50000,
    uploadThroughput: 20000,
  });
  await session.send('Emulation.setCPUThrottlingRate', {rate: 4});
  await log_in(page, team, tokens.ada, '/jobs');
  await page.getByRole('link', {name: 'train', exact: true}).waitFor();
  assert.deepEqual(page.faults, []);
  await page.context().close();
});

test('everything is reached by keyboard', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/overview');
  await settled(page);
  await page.keyboard.press('?');
  const help = page.getByRole('dialog', {name: 'Keyboard shortcuts'});
  await help.waitFor();
  await page.keyboard.press('Escape');
  await help.waitFor({state: 'detached'});
  await page.keyboard.press('g');
  await page.keyboard.press('j');
  await page.getByRole('heading', {name: 'Jobs'}).waitFor();
  await page.getByRole('link', {name: 'train', exact: true}).waitFor();
  await page.keyboard.press('j');
  await page.keyboard.press('j');
  await page.waitForFunction(
    () => document.activeElement?.closest('tr.at') === document.querySelectorAll('.vt tr[data-id]')[1],
  );
  await page.keyboard.press('x');
  await page.getByText('1 selected').waitFor();
  await page.keyboard.press('/');
  assert.equal(await page.evaluate(() => document.activeElement?.getAttribute('type')), 'search');
  await page.keyboard.type('g');
  assert.match(page.url(), /\/jobs/);
  await page.context().close();
});

test('the terminal is loaded only for a shell', async () => {
  const page = await open_page(browser, team);
  const loaded = [];
  page.on('request', (request) => loaded.push(new URL(request.url())));
  await log_in(page, team, tokens.ada, '/jobs');
  await settled(page);
  assert.ok(!loaded.some((url) => url.pathname.includes('terminal')));
  assert.ok(
    loaded.every((url) => url.origin === team.address),
    'nothing comes from elsewhere',
  );
  await page.context().close();
});
