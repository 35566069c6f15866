// Fills the cluster of the tests of pages: projects with users, jobs in every phase, groups of jobs, and hostile
// texts in every field that users can fill in.
import {until} from './harness.mjs';
import {kAll, kMarkup} from './hostile.mjs';

/** Resolves to the tokens of the users, the jobs, and the array, sweep and schedule. */
export async function fill(team) {
  const tokens = {};
  const jobs = {};
  const groups = {};
  await team.api('POST', '/v1/projects', {name: 'vision', quota: {deserved: {gpus: 4}}});
  await team.api('POST', '/v1/projects', {name: 'vision-a', parent: 'vision', quota: {deserved: {gpus: 3}}});
  await team.api('POST', '/v1/projects', {name: 'speech', quota: {deserved: {gpus: 2}}});
  tokens.ada = await team.user('ada', 'vision', 'admin');
  tokens.ben = await team.user('ben', 'speech', 'member');
  tokens.root = (await team.api('POST', '/v1/users', {name: 'grace', server_role: 'admin'}), await team.token('grace'));
  await team.api('POST', '/v1/projects/vision-a/notifications', {
    url: `${team.receiver}/training`,
    on: ['succeeded', 'failed'],
    job: 'train-*',
  });
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
  await add_hostile_places(team, jobs, groups);
  await add_groups(team, groups);
  return {tokens, jobs, groups};
}

function array(name, lines) {
  const command = ['sh', '-c', 'echo "$MUSTER_ARRAY_LINE"; case "$MUSTER_ARRAY_LINE" in t* | v*) ;; *) exit 3 ;; esac'];
  return {name, project: 'vision-a', array: {lines}, command};
}

function sweep(name, parameters) {
  return {
    parameters: {lr: {values: ['0.4', '0.2', '0.1']}, ...parameters},
    method: 'grid',
    metric: 'loss',
    goal: 'minimize',
    job: {
      name,
      project: 'vision-a',
      folder: '/tmp',
      command: [
        'python3',
        '-c',
        `
import math, sys
for step in range(1, 21):
    print(f"::metrics step={step} loss={math.exp(-step * float(sys.argv[1]) / 3) + len(sys.argv[2]) / 50}", flush=True)
`,
        '{lr}',
        ...Object.keys(parameters).map((each) => `{${each}}`),
      ],
    },
  };
}

/** An array, a sweep and a schedule. */
async function add_groups(team, groups) {
  groups.array = await team.submit(array('shards', ['train', 'validation', 'test', 'missing', 'broken']));
  groups.sweep = await team.api('POST', '/v1/sweeps', sweep('tune', {batch: {values: ['16', '32']}}));
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

/** Hostile labels, variables, lines, files, parameters, descriptions of tokens, and filters of notifications. */
async function add_hostile_places(team, jobs, groups) {
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
  await team.api('POST', '/v1/projects/vision/notifications', {
    url: `${team.receiver}/team?x=<script>alert(1)</script>`,
    on: ['failed'],
    labels: {[kMarkup[1].replaceAll('=', ':')]: kMarkup[0]},
  });
  groups.odd_array = await team.submit(array('odd-array', kMarkup.slice(0, 6)));
  groups.odd_sweep = await team.api(
    'POST',
    '/v1/sweeps',
    sweep('odd-sweep', {note: {values: [kMarkup[1], kMarkup[9]]}}),
  );
  await until(async () => (await team.api('GET', `/v1/arrays/${groups.odd_array.id}`)).ended);
  await until(async () => (await team.api('GET', `/v1/sweeps/${groups.odd_sweep.id}`)).ended);
}
