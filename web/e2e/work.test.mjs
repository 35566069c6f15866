// Tests work on the page against a real server: sending files, rerunning and converting jobs, searching
// logs, testing a notification, opening a log that was deleted.
import assert from 'node:assert/strict';
import {mkdirSync, readdirSync, rmSync, writeFileSync} from 'node:fs';
import path from 'node:path';
import {after, before, test} from 'node:test';
import {Team, go, log_in, open_browser, open_page, settled, until} from './harness.mjs';

const team = new Team();
let browser;
let ada;
let ben;

before(async () => {
  await team.start();
  browser = await open_browser();
  await team.api('POST', '/v1/projects', {name: 'vision', quota: {deserved: {gpus: 4}}});
  await team.api('POST', '/v1/projects', {name: 'speech'});
  ada = await team.user('ada', 'vision', 'admin');
  ben = await team.user('ben', 'speech', 'member');
});

after(async () => {
  await browser?.close();
  await team.close();
});

async function with_page(token, target, run) {
  const page = await open_page(browser, team);
  await log_in(page, team, token, target);
  await settled(page);
  await run(page);
  assert.deepEqual(page.faults, []);
  await page.context().close();
}

/** The end of a job, its log, and the cause of a failure, so that a failed test shows it. */
async function done(id) {
  const job = await team.ended(id);
  return {phase: job.phase, log: await log_of(id), ...(job.failure && {failure: job.failure})};
}

async function log_of(id) {
  const answer = await team.api('GET', `/v1/jobs/${id}/log-window?lines=100`);
  return answer.records.map((record) => record.text).join('\n');
}

const id_of = (page) => /jobs\/([a-z2-7]{12})/.exec(page.url())?.[1];

test('a folder is sent with the job, without what .gitignore excludes', async () => {
  const folder = path.join(team.folder, 'sources');
  mkdirSync(path.join(folder, 'data'), {recursive: true});
  mkdirSync(path.join(folder, '.git'));
  writeFileSync(path.join(folder, '.gitignore'), '*.tmp\n/data/secret\n');
  writeFileSync(path.join(folder, '.git', 'config'), 'x');
  writeFileSync(path.join(folder, 'run.sh'), '#!/bin/sh\nfind . -type f | sort\ncat data/words\n');
  writeFileSync(path.join(folder, 'scratch.tmp'), 'x');
  writeFileSync(path.join(folder, 'data', 'words'), 'hello from the page\n');
  writeFileSync(path.join(folder, 'data', 'secret'), 'x');
  await with_page(ada, '/submit?project=vision', async (page) => {
    await page.getByLabel('Name', {exact: true}).fill('with-files');
    await page.getByRole('textbox', {name: 'Command', exact: true}).fill('./run.sh');
    await page.locator('input[type=file]').setInputFiles(folder);
    await page.getByText('3 files').waitFor();
    await page.getByText('3 are left out').waitFor();
    await page.locator('.note.good').waitFor();
    await page.getByRole('button', {name: 'Submit', exact: true}).click();
    await page.getByRole('heading', {name: 'with-files'}).waitFor();
    assert.deepEqual(await done(id_of(page)), {
      phase: 'Succeeded',
      log: './.gitignore\n./data/words\n./run.sh\nhello from the page',
    });
  });
});

test('a dropped file is sent, too', async () => {
  await with_page(ada, '/submit?project=vision', async (page) => {
    await page.getByLabel('Name', {exact: true}).fill('dropped');
    await page.getByRole('textbox', {name: 'Command', exact: true}).fill('cat note.txt');
    const data = await page.evaluateHandle(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File(['dropped text\n'], 'note.txt'));
      return transfer;
    });
    await page.locator('.drop').dispatchEvent('drop', {dataTransfer: data});
    await page.getByText('1 file').waitFor();
    await page.locator('.note.good').waitFor();
    await page.getByRole('button', {name: 'Submit', exact: true}).click();
    await page.getByRole('heading', {name: 'dropped'}).waitFor();
    assert.deepEqual(await done(id_of(page)), {phase: 'Succeeded', log: 'dropped text'});
  });
});

test('the job file takes the short forms of muster submit -f, and the form follows', async () => {
  await with_page(ada, '/submit?project=vision', async (page) => {
    await page.getByLabel('Job file (YAML)').fill(`name: from-file
project: vision
command: echo $RATE
resources: {memory: 64Mi}
environment: {RATE: 0.10}
volumes: ['/usr/share:/data:ro']
scheduling: {time_limit: 10m}
`);
    await page.locator('.note.good').waitFor();
    assert.equal(await page.getByLabel('Name', {exact: true}).inputValue(), 'from-file');
    assert.equal(await page.getByLabel('Memory', {exact: true}).inputValue(), '64Mi');
    assert.match(
      await page.locator('.side-pane pre').last().textContent(),
      /--memory 64Mi.*--time-limit 10m.*--env RATE=0.10/,
    );
    await page
      .getByLabel('Job file (YAML)')
      .fill('name: from-file\ncommand: [true]\nworkerz: 2\nresources: {memory: lots}\n');
    await page.getByText(/workerz: unknown key/).waitFor();
    await page.getByText(/resources.memory: /).waitFor();
    assert.ok(await page.getByRole('button', {name: 'Submit', exact: true}).isDisabled());
  });
});

test('a job is rerun as it is, with changes, and converted to training', async () => {
  const build = await team.submit({
    name: 'notebook',
    project: 'vision',
    command: ['sh', '-c', 'echo build; sleep 1000'],
    scheduling: {purpose: 'build'},
  });
  await team.running(build.id);
  await with_page(ada, `/jobs/${build.id}`, async (page) => {
    await page.getByRole('button', {name: 'Rerun', exact: true}).click();
    await page.getByRole('heading', {name: 'notebook-2'}).waitFor();
    await page.getByText('rerun of').waitFor();
    const second = id_of(page);
    assert.deepEqual((await team.api('GET', `/v1/jobs/${second}`)).origin.id, build.id);

    // The draft of the job as it is must not be the one that is converted.
    await go(page, team, `/jobs/${build.id}`);
    await page.getByRole('link', {name: 'Rerun with changes'}).click();
    await page.waitForFunction(() => document.querySelector('#yaml')?.value.includes('purpose: build'));
    await page.goBack();
    await page.getByRole('link', {name: 'Convert to training'}).click();
    await page.getByRole('heading', {name: 'Rerun with changes'}).waitFor();
    const command = page.getByRole('textbox', {name: 'Command', exact: true});
    await page.waitForFunction(() => {
      const file = document.querySelector('#yaml')?.value ?? '';
      return file.includes('echo build') && !file.includes('purpose: build');
    });
    await command.fill('echo trained');
    await page.locator('.note.good').waitFor();
    await page.getByRole('button', {name: 'Submit', exact: true}).click();
    await page.getByRole('heading', {name: /^notebook-3$/}).waitFor();
    const third = await team.ended(id_of(page));
    assert.equal(third.spec.scheduling.purpose ?? 'train', 'train');
    assert.equal(await log_of(third.id), 'trained');

    await go(page, team, `/jobs/${third.id}/spec?view=diff`);
    await page.locator('ins', {hasText: 'trained'}).waitFor();
    for (const id of [build.id, second]) await team.api('POST', `/v1/jobs/${id}/stop?now=true`);
  });
});

test('the logs of all jobs are searched on the server', async () => {
  for (let i = 0; i < 30; i++)
    await team.submit({name: `quiet-${i}`, project: 'vision', command: ['echo', 'nothing here']});
  const loud = await team.submit({
    name: 'loud',
    project: 'vision',
    command: ['sh', '-c', 'seq 1 40 | sed "s/^/needle /"'],
  });
  const other = await team.submit({name: 'other', project: 'speech', command: ['echo', 'needle of speech']});
  await team.ended(loud.id);
  await team.ended(other.id);
  await until(
    async () => (await team.api('GET', '/v1/jobs?phase=Queued,Starting,Running&prefix=quiet')).jobs.length === 0,
  );
  await with_page(ada, '/logs?grep=needle', async (page) => {
    await page.getByText(/of \d+ jobs searched, 1 with hits\.$/).waitFor();
    await page.getByText('needle 40', {exact: true}).waitFor();
    assert.equal(await page.locator('.hit').count(), 20);
    await page.getByText('The last 20 hits').waitFor();
    assert.equal(await page.getByText('needle of speech').count(), 0);
    await page.getByRole('searchbox').fill('needle (');
    await page.locator('.note.error').waitFor();
  });
  await with_page(ben, '/logs?grep=needle', async (page) => {
    await page.getByText('1 of 1 jobs searched, 1 with hits.').waitFor();
    assert.equal(await page.locator('.hit').count(), 1);
  });
});

test('an address is subscribed, tested, given a new key and removed, and what it refused is listed', async () => {
  await with_page(ada, '/projects/vision/notifications', async (page) => {
    await page.getByLabel('Address', {exact: true}).fill('http://192.0.2.1/hook');
    await page.getByRole('button', {name: 'Add', exact: true}).click();
    await page.locator('.note.error').waitFor();
    await page.getByLabel('Address', {exact: true}).fill(`${team.receiver}/hook`);
    await page.getByLabel('Only jobs named').fill('refused-*');
    await page.getByRole('button', {name: 'Add', exact: true}).click();
    const key = page.getByRole('dialog', {name: 'The signing key'});
    const first = await key.locator('pre').textContent();
    assert.match(first, /^\w{20,}$/);
    await key.getByRole('button', {name: 'Done'}).click();
    await page.getByRole('button', {name: /^New key/}).click();
    await page.getByRole('dialog', {name: 'Replace the key?'}).getByRole('button', {name: 'Replace'}).click();
    await key.waitFor();
    assert.notEqual(await key.locator('pre').textContent(), first);
    await key.getByRole('button', {name: 'Done'}).click();
    await page.getByRole('button', {name: /^Send a test/}).click();
    await page.getByText(/The test arrived: status 204/).waitFor();

    const job = await team.submit({name: 'refused-1', project: 'vision', command: ['true']});
    await team.ended(job.id);
    await until(async () => (await team.api('GET', '/v1/projects/vision/dead-letters')).deliveries.length > 0);
    await page.reload();
    await page.getByRole('link', {name: 'refused-1'}).waitFor();
    await page.getByText('answered 400').waitFor();
    await page.getByRole('button', {name: 'Send succeeded of refused-1 again'}).click();
    await page.getByText('1 notification is sent again').waitFor();
    await page.getByRole('button', {name: /^Remove/}).click();
    await page.getByRole('dialog').getByRole('button', {name: 'Remove'}).click();
    await page.getByText('No addresses yet.').waitFor();
  });
});

test('a task whose log was deleted: the page reports it and works', async () => {
  const job = await team.submit({name: 'gone', project: 'vision', command: ['sh', '-c', 'echo was here; exit 3']});
  await team.ended(job.id);
  remove_logs(path.join(team.env.MUSTER_STATE_DIR, 'jobs', job.id));
  await with_page(ada, `/jobs/${job.id}/logs`, async (page) => {
    await page.getByText('The log of this task no longer exists').waitFor();
    await page.getByRole('link', {name: 'Summary'}).click();
    await page.getByText('Why it failed').waitFor();
  });
});

function remove_logs(folder) {
  const logs = readdirSync(folder, {recursive: true, withFileTypes: true}).filter(
    (entry) => entry.isFile() && /log/.test(entry.name),
  );
  assert.ok(logs.length > 0, `no log below ${folder}`);
  for (const entry of logs) rmSync(path.join(entry.parentPath ?? entry.path, entry.name));
}
