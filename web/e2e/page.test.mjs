// The page against a real server with real jobs, at two users.
import assert from 'node:assert/strict';
import {mkdirSync} from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {Team, axe, go, log_in, open_browser, open_page, overflow, settled, until} from './harness.mjs';
import {kAll, kMarkup} from './hostile.mjs';

const team = new Team();
let browser;
const tokens = {};
const jobs = {};
const groups = {};
let subscription;

before(async () => {
  await team.start();
  browser = await open_browser();
  await team.api('POST', '/v1/projects', {name: 'vision', quota: {deserved: {gpus: 4}}});
  await team.api('POST', '/v1/projects', {name: 'vision-a', parent: 'vision', quota: {deserved: {gpus: 3}}});
  await team.api('POST', '/v1/projects', {name: 'speech', quota: {deserved: {gpus: 2}}});
  tokens.ada = await team.user('ada', 'vision', 'admin');
  tokens.ben = await team.user('ben', 'speech', 'member');
  tokens.root = (await team.api('POST', '/v1/users', {name: 'grace', server_role: 'admin'}), await team.token('grace'));
  await team.api('PUT', '/v1/projects/vision-a/secrets/HF_TOKEN', {value: 'very-secret'});
  const report = (lr) => [
    'python3',
    '-c',
    `
import math, os, socket, time
path = os.environ["MUSTER_METRICS"]
folder = os.open(os.path.dirname(path), os.O_PATH)
sender = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
for epoch in range(1, 31):
    loss = math.exp(-epoch * ${lr}) + 0.05 + 0.02 * math.sin(epoch * 2.1)
    sender.sendto(f"epoch={epoch} epochs=30 loss={loss} accuracy={1 - loss / 1.2}".encode(), f"/proc/self/fd/{folder}/" + os.path.basename(path))
    print(f"epoch {epoch} loss {loss:.4f}", flush=True)
    print(f"INFO checkpoint {epoch} written" if epoch % 5 == 0 else f"DEBUG step {epoch * 100}", flush=True)
    time.sleep(0.1)
print("WARNING learning rate decayed")
`,
  ];
  for (const [name, lr] of [
    ['lr-high', 0.4],
    ['lr-middle', 0.2],
    ['lr-low', 0.1],
  ])
    jobs[name] = await team.submit({
      name,
      project: 'vision-a',
      command: [...report(lr), '--lr', String(lr)],
      resources: {gpus: 1},
      labels: {team: 'vision', study: 'lr'},
    });
  jobs.broken = await team.submit({
    name: 'broken',
    project: 'vision-a',
    command: [
      'bash',
      '-c',
      'echo "Traceback (most recent call last):"; echo "ValueError: shapes (3,4) and (5,6) do not match" >&2; exit 3',
    ],
    scheduling: {retries: 1},
  });
  for (const name of ['lr-high', 'lr-middle', 'lr-low', 'broken']) jobs[name] = await team.ended(jobs[name].id);
  jobs.train = await team.submit({
    name: 'train',
    project: 'vision-a',
    command: [
      'bash',
      '-c',
      'for i in $(seq 1 100000); do echo "epoch $i loss 0.$RANDOM"; printf "\\033[32mok\\033[0m \\033[1;31mhot\\033[0m \\033[38;5;208morange\\033[0m\\n"; sleep 1; done',
    ],
    resources: {gpus: 3},
    scheduling: {time_limit_ms: 7200000},
  });
  jobs.tts = await team.submit({name: 'tts', project: 'speech', command: ['sleep', '100000'], resources: {gpus: 4}});
  await team.running(jobs.train.id);
  await team.running(jobs.tts.id);
  jobs.wide = await team.submit({
    name: 'wide',
    project: 'speech',
    command: ['sleep', '10'],
    resources: {gpus: 6},
    scheduling: {time_limit_ms: 3600000},
  });
  jobs.hostile = await team.submit({
    name: 'w'.repeat(48),
    project: 'vision-a',
    command: ['printf', '%s\\n', ...kAll.map((text) => text.replaceAll('\u0000', '\u2400'))],
    labels: Object.fromEntries(
      kMarkup.map((text, i) => [`${i} ${text}`.replaceAll('=', ':').slice(0, 100), text.slice(0, 250)]),
    ),
    environment: Object.fromEntries(
      kAll.filter((text) => text.length < 1000).map((text, i) => [`V${i}`, text.replaceAll('\u0000', '')]),
    ),
    annotations: {note: kMarkup.join(' ')},
  });
  jobs.hostile = await team.ended(jobs.hostile.id);
  await add_groups();
  await add_hostile_places();
});

/** An array, a sweep and a schedule, with hostile values. */
async function add_groups() {
  groups.array = await team.submit({
    name: 'shards',
    project: 'vision-a',
    array: {lines: [...kMarkup.slice(0, 6), 'plain']},
    command: ['sh', '-c', 'echo "$MUSTER_ARRAY_LINE"; test "$MUSTER_ARRAY_LINE" = plain'],
  });
  groups.sweep = await team.api('POST', '/v1/sweeps', {
    parameters: {lr: {values: ['0.4', '0.2', '0.1']}, note: {values: [kMarkup[1], 'plain']}},
    method: 'grid',
    metric: 'loss',
    goal: 'minimize',
    job: {
      name: 'tune',
      project: 'vision-a',
      folder: '/tmp',
      command: [
        'python3',
        '-c',
        `
import math, sys
for step in range(1, 21):
    print(f"::metrics step={step} loss={math.exp(-step * float(sys.argv[1]) / 3) + 0.05}", flush=True)
`,
        '{lr}',
        '{note}',
      ],
    },
  });
  groups.schedule = await team.api('POST', '/v1/schedules', {
    name: 'nightly',
    project: 'vision-a',
    cron: '0 3 * * *',
    timezone: 'Europe/Zurich',
    job: {name: 'nightly', project: 'vision-a', folder: '/tmp', command: ['true']},
  });
  await team.api('POST', `/v1/schedules/${groups.schedule.id}/run`);
  await until(async () => (await team.api('GET', `/v1/arrays/${groups.array.id}`)).ended);
  await until(async () => (await team.api('GET', `/v1/sweeps/${groups.sweep.id}`)).ended);
  await until(async () =>
    (await team.api('GET', `/v1/schedules/${groups.schedule.id}`)).history.some((run) => run.phase === 'Succeeded'),
  );
}

/** Hostile names of files, last lines of a failure, and descriptions of tokens. */
async function add_hostile_places() {
  const names = kAll
    .filter((text) => text.length < 60 && !text.includes('\u0000'))
    .map((text) => text.replaceAll('/', '\u2215'));
  jobs.messy = await team.submit({
    name: 'messy',
    project: 'vision-a',
    volumes: [{kind: 'artifacts', target: '/artifacts'}],
    command: [
      'python3',
      '-c',
      `
import os, sys
for name in sys.argv[1:]:
    open(os.path.join("/artifacts", name), "w").write("<script>window.__attacked=1</script>")
    print(name)
    print(f"::metrics step=1 {name}=1")
sys.exit(3)
`,
      ...names,
    ],
  });
  jobs.messy = await team.ended(jobs.messy.id);
  for (const description of kMarkup.slice(0, 8))
    await team.api('POST', '/v1/tokens', {
      user: 'ada',
      description: description.slice(0, 60),
      ceiling: 'viewer',
      lifetime_s: 86400,
    });
  subscription = (
    await team.api('POST', '/v1/projects/vision-a/notifications', {
      url: `${team.receiver}/team?x=<script>alert(1)</script>`,
      on: ['failed'],
      labels: {[kMarkup[1].replaceAll('=', ':')]: kMarkup[0]},
    })
  ).subscription;
}

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

/** Fills in the form of the simulation, and waits for its answer. */
async function simulate(page) {
  await page.getByRole('button', {name: 'Simulate'}).click();
  await page.getByRole('link', {name: 'wide'}).nth(1).waitFor();
}

/** Name, address, and what is done there first. */
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
    for (const secret of ['vision', 'lr-high', 'broken', 'ada'])
      assert.ok(
        !text.replace(/invitation|may see|may not see|adapt|load/g, '').includes(secret),
        `${target} shows ${secret}`,
      );
  }
  await page.context().close();
});

test('the list follows changes and keeps selection, focus and scroll', async () => {
  const page = await open_page(browser, team);
  await log_in(page, team, tokens.ada, '/jobs');
  const box = page.getByRole('checkbox', {name: 'Select train'});
  await box.check();
  await page.getByRole('link', {name: 'broken'}).focus();
  const fresh = await team.submit({name: 'fresh', project: 'vision-a', command: ['sleep', '1000']});
  await page.getByRole('link', {name: 'fresh'}).waitFor();
  await page
    .locator('tr', {has: page.getByRole('link', {name: 'fresh'})})
    .getByText('Running')
    .waitFor();
  assert.ok(await box.isChecked());
  assert.equal(await page.evaluate(() => document.activeElement?.textContent), 'broken');
  await box.uncheck();
  await page.getByRole('checkbox', {name: 'Select fresh'}).check();
  await page.getByRole('checkbox', {name: 'Select broken'}).check();
  await page.getByRole('button', {name: 'Stop', exact: true}).click();
  const dialog = page.getByRole('dialog');
  assert.match(await dialog.innerText(), /Stop job fresh\?/);
  assert.match(await dialog.innerText(), /SIGTERM/);
  assert.match(await dialog.innerText(), /1 selected job have already ended|1 selected job/);
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

test('two tabs that change one quota: the second learns of the first', async () => {
  const first = await open_page(browser, team);
  await log_in(first, team, tokens.root, '/projects/speech');
  const second = await first.context().newPage();
  await go(second, team, '/projects/speech');
  await second.getByLabel('limit gpus').fill('7');
  await first.getByLabel('deserved gpus').fill('3');
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
  await page.waitForFunction(() => document.activeElement?.closest('tr.at'));
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
