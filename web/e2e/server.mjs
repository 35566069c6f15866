// A real server with its own folder, for tests of the page in a browser. The programs come from MUSTER_BUILD
// (build/release); everything that was started ends with stop().
import {execFile, spawn} from 'node:child_process';
import {mkdtempSync, mkdirSync, rmSync} from 'node:fs';
import {tmpdir} from 'node:os';
import {join, resolve, dirname} from 'node:path';
import {fileURLToPath} from 'node:url';

const root = resolve(dirname(fileURLToPath(import.meta.url)), '..', '..');
export const build = process.env.MUSTER_BUILD ?? join(root, 'build', 'release');
export const chromium_path = process.env.CHROMIUM ?? '/usr/bin/chromium';
const program = join(build, 'platform', 'muster');

export class Server {
  constructor() {
    this.folder = mkdtempSync(join(tmpdir(), 'muster-web-'));
    this.work = join(this.folder, 'work');
    mkdirSync(this.work);
    this.environment = {
      PATH: process.env.PATH,
      HOME: this.folder,
      LANG: 'C.UTF-8',
      TERM: 'xterm',
      MUSTER_STATE_DIR: join(this.folder, 'state'),
      XDG_CONFIG_HOME: join(this.folder, 'config'),
      // With a way out for jobs, the server makes a bridge in the browser's network, and a port for each job; Chromium
      // ends its requests at each such change (ERR_NETWORK_CHANGED).
      MUSTER_TASK_INTERNET: 'false',
    };
    this.log = '';
  }

  /// Runs a command of the server's owner; resolves to its standard output. Rejects with its standard error.
  muster(...words) {
    return this.muster_as({}, ...words);
  }

  muster_as(environment, ...words) {
    return new Promise((done, failed) => {
      execFile(
        program,
        words.map(String),
        {env: {...this.environment, ...environment}, cwd: this.work, maxBuffer: 64 << 20},
        (error, out, err) => (error ? failed(new Error(`muster ${words.join(' ')}: ${err || error}`)) : done(out)),
      );
    });
  }

  /// Starts a server of a team on TLS. `flags`: more flags of `muster server`.
  async start_team(...flags) {
    this.address ??= '127.0.0.1:0';
    this.process = spawn(
      program,
      [
        'server',
        '--listen',
        this.address,
        '--task-accounts',
        'shared',
        '--trust-each-other',
        'true',
        '--shared-folder',
        this.work,
        ...flags,
      ],
      {env: this.environment, cwd: this.work, stdio: ['ignore', 'pipe', 'pipe']},
    );
    this.ended = new Promise((done) => this.process.on('exit', done));
    await new Promise((done, failed) => {
      const receive = (bytes) => {
        this.log += bytes;
        if (this.log.includes(`serves on ${join(this.folder, 'state')}`)) done();
      };
      this.process.stdout.on('data', receive);
      this.process.stderr.on('data', receive);
      this.process.on('exit', (code) => failed(new Error(`the server ended with ${code}:\n${this.log}`)));
    });
    this.address = this.log.match(/serves on https:\/\/(\S+),/)[1];
    this.url = `https://${this.address}`;
    return this;
  }

  /// Ends the server alone, as for a restart; its jobs continue.
  async end_server() {
    this.process.kill('SIGTERM');
    await this.ended;
    this.log = '';
  }

  /// Creates a user and logs it in. Resolves to its commands: ben.muster('list').
  async user(name, ...flags) {
    const invitation = (await this.muster('user', 'create', name, ...flags)).match(/muster_\w+/)[0];
    const fingerprint = (await this.muster('server', '--fingerprint')).trim().split(/\s+/).at(-1);
    const environment = {XDG_CONFIG_HOME: join(this.folder, `config-${name}`)};
    await new Promise((done, failed) => {
      const child = execFile(
        program,
        ['login', this.url, '--name', 'lab', '--fingerprint', fingerprint, '--token-stdin'],
        {env: {...this.environment, ...environment}, cwd: this.work},
        (error, _out, err) => (error ? failed(new Error(err)) : done()),
      );
      child.stdin.end(invitation + '\n');
    });
    return {
      name,
      muster: (...words) => this.muster_as(environment, ...words),
      /// The address of the page with a new code.
      page: async () => (await this.muster_as(environment, 'ui', '--no-open')).trim(),
    };
  }

  /// The address of the page for the owner. Over TLS if the server has it; else on its loopback port.
  async page() {
    return (await this.muster('ui', '--no-open')).trim();
  }

  async stop() {
    try {
      const jobs = JSON.parse(await this.muster('list', '-o', 'json'));
      const names = (jobs.jobs ?? jobs)
        .filter((job) => !['Succeeded', 'Failed', 'Stopped'].includes(job.phase))
        .map((job) => job.id);
      if (names.length > 0) await this.muster('stop', '--now', ...names);
      for (const name of names) await this.muster('delete', name).catch(() => {});
    } catch (error) {
      console.error(String(error));
    }
    await this.muster('server', '--stop').catch(() => {});
    await this.ended;
    rmSync(this.folder, {recursive: true, force: true});
  }
}
