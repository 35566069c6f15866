// Tests the sessions of the page in a browser, against a server with TLS and one on its loopback port: a code is
// exchanged for a cookie that scripts cannot read, and pages of other sites can neither read nor change anything.
//
//   node e2e/sessions.mjs
import {createServer} from 'node:http';
import assert from 'node:assert/strict';
import {chromium} from 'playwright-core';
import {Server, chromium_path} from './server.mjs';

const results = [];
async function test(name, run) {
  try {
    await run();
    results.push(true);
    console.log(`ok      ${name}`);
  } catch (error) {
    results.push(false);
    console.log(`FAILED  ${name}\n${error.stack ?? error}`);
  }
}

/// A site that the user visits during a session.
async function hostile_site() {
  const site = createServer((_request, response) => {
    response.setHeader('content-type', 'text/html');
    response.end('<!doctype html><title>hostile</title><body></body>');
  });
  await new Promise((done) => site.listen(0, '127.0.0.1', done));
  return site;
}

/// Resolves to what the attacking page can read: the status, 'opaque', or 'blocked'.
const attack = (page, url, options) =>
  page.evaluate(
    async ([target, init]) => {
      try {
        const answer = await fetch(target, {credentials: 'include', ...init});
        return answer.type === 'opaque' ? 'opaque' : answer.status;
      } catch {
        return 'blocked';
      }
    },
    [url, options],
  );

const websocket = (page, url) =>
  page.evaluate(
    (target) =>
      new Promise((done) => {
        const socket = new WebSocket(target);
        socket.onopen = () => done('open');
        socket.onerror = () => done('refused');
      }),
    url,
  );

const phase = async (server) => JSON.parse(await server.muster('get', 'victim', '-o', 'json')).phase;

async function log_in(browser, address) {
  const context = await browser.newContext({ignoreHTTPSErrors: true});
  const page = await context.newPage();
  const problems = [];
  page.on('console', (message) => {
    if (message.type() === 'error') problems.push(message.text());
  });
  const answered = (check) =>
    page.waitForResponse(
      (answer) => answer.url().endsWith('/v1/ui/session') && !!answer.request().postDataJSON().check === check,
    );
  const checked = answered(true);
  const opened = answered(false);
  // If the code is refused, the page sends no further request.
  opened.catch(() => {});
  await page.goto(address);
  const answer = await checked;
  if (answer.status() !== 200) return {context, page, problems, status: answer.status()};
  const {user} = await answer.json();
  // The owner of the server on its own machine is not asked.
  if (address.startsWith('https:')) await page.getByRole('button', {name: `Log in as ${user}`}).click();
  return {context, page, problems, status: (await opened).status()};
}

async function attacks_of_another_site(browser, server, address) {
  const {context, page, status} = await log_in(browser, address);
  assert.equal(status, 200);
  const origin = new URL(address).origin;
  const own = await attack(page, `${origin}/v1/whoami`, {});
  assert.equal(own, 200);
  assert.equal(await attack(page, `${origin}/v1/jobs/victim/stop`, {method: 'POST'}), 403, 'without the header');
  assert.equal(
    await websocket(page, `${origin.replace('http', 'ws')}/v1/jobs/victim/exec?task=main&command=["id"]`),
    'open',
    'the page itself opens a shell',
  );

  const site = await hostile_site();
  try {
    const evil = await context.newPage();
    await evil.goto(`http://127.0.0.1:${site.address().port}/`);
    for (const options of [
      {},
      {mode: 'no-cors'},
      {method: 'POST'},
      {method: 'POST', mode: 'no-cors'},
      {method: 'POST', headers: {'x-muster-request': 'ui'}},
      {method: 'DELETE'},
    ]) {
      const path = options.method === 'POST' ? '/stop' : '';
      const seen = await attack(evil, `${origin}/v1/jobs/victim${path}`, options);
      assert.ok(['blocked', 'opaque'].includes(seen), `${JSON.stringify(options)}: ${seen}`);
    }
    await evil.evaluate((target) => {
      const frame = document.body.appendChild(document.createElement('iframe'));
      frame.name = 'sink';
      const form = document.body.appendChild(document.createElement('form'));
      form.method = 'post';
      form.action = target;
      form.target = 'sink';
      form.enctype = 'text/plain';
      form.submit();
    }, `${origin}/v1/jobs/victim/stop`);
    assert.equal(
      await websocket(evil, `${origin.replace('http', 'ws')}/v1/jobs/victim/exec?task=main&command=["id"]`),
      'refused',
    );
    const framed = await evil.evaluate(
      (target) =>
        new Promise((done) => {
          const frame = document.createElement('iframe');
          frame.onload = () => {
            try {
              done(frame.contentDocument === null ? 'blocked' : 'open');
            } catch {
              done('blocked');
            }
          };
          frame.src = target;
          document.body.append(frame);
        }),
      `${origin}/ui/`,
    );
    assert.equal(framed, 'blocked');
    // The server has handled the form, whose request was sent before that of the socket.
    assert.equal(await phase(server), 'Running');
  } finally {
    site.close();
  }
  await context.close();
}

async function cookie_and_code(browser, address) {
  const {context, page, problems, status} = await log_in(browser, address);
  assert.equal(status, 200);
  await page.waitForFunction(() => !location.hash.includes('code='));
  assert.equal(await page.evaluate(() => document.cookie), '');
  assert.equal(
    await page.evaluate(() => JSON.stringify([{...localStorage}, {...sessionStorage}]).includes('muster_')),
    false,
  );
  const [cookie] = await context.cookies();
  assert.equal(cookie.httpOnly, true);
  assert.equal(cookie.sameSite, 'Strict');
  assert.equal(cookie.secure, address.startsWith('https:'));
  assert.deepEqual(
    problems.filter((text) => /Content Security Policy|Trusted/i.test(text)),
    [],
  );
  const again = await log_in(browser, address);
  assert.equal(again.status, 401, 'the same code once more');
  await again.context.close();
  await context.close();
}

const browser = await chromium.launch({executablePath: chromium_path});
const team = await new Server().start_team();
const local = new Server();
try {
  for (const server of [team, local]) {
    await server.muster('submit', 'single', 'victim', '--', 'sleep', '600');
    while ((await phase(server)) !== 'Running') await server.muster('explain', 'victim');
  }
  const ada = await team.user('ada', '--project', 'default=member');

  await test('over TLS: a code is exchanged for a cookie once', async () => cookie_and_code(browser, await ada.page()));
  await test('over TLS: the page of another site can do nothing', async () =>
    attacks_of_another_site(browser, team, await ada.page()));
  await test('on loopback: a code is exchanged for a cookie once', async () =>
    cookie_and_code(browser, await local.page()));
  await test('on loopback: the page of another port can do nothing', async () =>
    attacks_of_another_site(browser, local, await local.page()));

  await test('on loopback: another port of 127.0.0.1 does not get the cookie', async () => {
    const {context} = await log_in(browser, await local.page());
    let cookies = '';
    const thief = createServer((request, response) => {
      cookies += request.headers.cookie ?? '';
      response.end();
    });
    await new Promise((done) => thief.listen(0, '127.0.0.1', done));
    const page = await context.newPage();
    await page.goto(`http://127.0.0.1:${thief.address().port}/`);
    thief.close();
    assert.equal(cookies, '');
    await context.close();
  });

  await test('a session lives through a restart and ends with its user', async () => {
    const {context, page} = await log_in(browser, await ada.page());
    assert.equal(await attack(page, `${team.url}/v1/whoami`, {}), 200);
    await team.end_server();
    await team.start_team();
    assert.equal(await attack(page, `${team.url}/v1/whoami`, {}), 200);
    await team.muster('user', 'delete', 'ada');
    assert.equal(await attack(page, `${team.url}/v1/whoami`, {}), 401);
    await context.close();
  });

  await test('no code and no token is in the log of the server', async () => {
    assert.doesNotMatch(team.log, /muster_[a-z2-7]{12}_/);
  });
} finally {
  await browser.close();
  await team.stop();
  await local.stop();
}
const failed = results.filter((passed) => !passed).length;
console.log(`${results.length - failed} of ${results.length} passed`);
process.exit(failed === 0 ? 0 : 1);
