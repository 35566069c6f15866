// Takes the steps of docs/web.md and docs/web-tour.md as a new user: from `muster ui` on a machine
// without a server to a job that was submitted in the page, its log, a shell in it, and a comparison.
import assert from 'node:assert/strict';
import {after, before, test} from 'node:test';
import {open_browser} from './harness.mjs';
import {Server} from './server.mjs';

const server = new Server();
let browser;
let page;

before(async () => {
  browser = await open_browser();
  const context = await browser.newContext({viewport: {width: 1440, height: 900}, reducedMotion: 'reduce'});
  page = await context.newPage();
  page.setDefaultTimeout(180_000);
});

after(async () => {
  await browser?.close();
  await server.stop();
});

test('muster ui opens the page', async () => {
  const address = await server.page();
  assert.match(address, /^http:\/\/ui-[a-z2-7]{8}\.localhost:\d+\/ui\/#code=muster_\w+$/);
  await page.goto(address);
  await page.getByRole('heading', {name: 'Overview'}).waitFor();
  assert.ok(!page.url().includes('code='));
  assert.match(await server.muster('token', 'list'), /web page/);
});

const script = `sh -c 'for e in 1 2 3 4 5 6; do echo "::metrics step=$e loss=0.$((9 - e))"; sleep 0.1; done; exec sleep 1000'`;

async function submit(name) {
  await page.keyboard.press('c');
  await page.getByRole('heading', {name: 'Submit a job'}).waitFor();
  await page.getByLabel('Name', {exact: true}).fill(name);
  await page.getByRole('textbox', {name: 'Command', exact: true}).fill(`${script} --lr 0.${name.length}`);
  await page.locator('.note.good').waitFor();
  await page.getByRole('button', {name: 'Submit', exact: true}).click();
  await page.getByRole('heading', {name}).waitFor();
  await page.locator('.badge', {hasText: 'Running'}).waitFor();
}

test('c, a name and a command submit a job, and its log appears', async () => {
  await submit('first');
  await page.getByRole('link', {name: 'Logs', exact: true}).click();
  await page.locator('.log .line', {hasText: '::metrics step=6'}).waitFor();
  await page.locator('.log .line .at').first().click();
  await page.waitForURL(/line=1$/);
});

test('a shell runs in its task', async () => {
  await page.getByRole('link', {name: 'Shell', exact: true}).click();
  await page.getByRole('button', {name: 'Open a shell'}).click();
  await page.locator('.xterm-rows', {hasText: /[#$]/}).waitFor();
  await page.keyboard.type('echo $((6 * 7))-here\n');
  await page.locator('.xterm-rows', {hasText: '42-here'}).waitFor();
  await page.keyboard.press('Control+Shift+Escape');
  await page.waitForFunction(() => !document.activeElement?.closest('.xterm'));
});

test('two jobs of the list are compared', async () => {
  await submit('second');
  await page.keyboard.press('g');
  await page.keyboard.press('j');
  await page.getByRole('checkbox', {name: 'Select first'}).check();
  await page.getByRole('checkbox', {name: 'Select second'}).check();
  await page.getByRole('link', {name: 'Compare', exact: true}).last().click();
  await page.getByRole('heading', {name: 'Curves'}).waitFor();
  await page.getByRole('img', {name: 'Curves of loss over step'}).waitFor();
  await page.getByRole('rowheader', {name: '--lr'}).waitFor();
});

test('the page is there again after a restart of the server', async () => {
  await server.muster('server', '--stop');
  await server.muster('list');
  await page.getByRole('link', {name: 'Jobs', exact: true}).click();
  await page.getByRole('link', {name: 'second', exact: true}).waitFor();
});

test('log out ends the session', async () => {
  await page.getByRole('button', {name: 'Log out'}).click();
  await page.getByRole('dialog', {name: /expired|Log in/}).waitFor();
  assert.doesNotMatch(await server.muster('token', 'list'), /web page/);
});
