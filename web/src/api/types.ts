// Generated from the OpenAPI document by scripts/generate_types.mjs; do not edit.

export type Amounts = {
  gpus: number;
  cpus: number;
  memory_bytes: number;
};

export type Array = {
  id: string;
  spec: JobSpec;
  owner: string;
  submitted: Time;
  ended?: Time;
  phase: Phase;
  counts: ArrayCounts;
  percent: number;
  stop_requested?: boolean;
  too_many_failures?: boolean;
  suspended?: boolean;
  failed?: MemberEnd[];
};

export type ArrayCounts = {
  queued: number;
  starting: number;
  running: number;
  succeeded: number;
  failed: number;
  stopped: number;
};

export type ArraySpec = {
  indexes?: string | null;
  lines?: Text[] | null;
  max_running?: number | null;
  max_failures?: number | null;
};

export type Arrays = {
  arrays: Array[];
};

export type Artifact = {
  path: Text;
  kind: ArtifactKind;
  bytes: number;
  modified: Time;
  sha256?: string;
};

export type ArtifactKind = 'file' | 'link' | 'folder' | 'pipe' | 'socket' | 'device';

export type ArtifactList = {
  artifacts: Artifact[];
  truncated?: boolean;
};

export type AuditPage = {
  records: AuditRecord[];
};

export type AuditRecord = {
  number: number;
  time: Time;
  user: string;
  address: string;
  token: string;
  request: string;
  action: string;
  target: string;
  project: string;
  changes: FieldChange[];
};

export type AwaitedJob = {
  id: string;
  name: string;
  met: boolean;
};

export type ChunkIds = {
  chunks: string[];
};

export type Container = {
  pull?: PullPolicy | null;
  writable_root?: boolean | null;
  new_privileges?: boolean | null;
  capabilities?: string[] | null;
  shm_bytes?: 0 | unknown | null;
};

export type DeadLetter = {
  id: string;
  subscription: string;
  event: Happening;
  object?: string;
  job: string;
  created: Time;
  attempts: number;
  fault: string;
  dead: Time | null;
};

export type DeadLetterIds = {
  ids: string[];
};

export type DeadLetters = {
  deliveries: DeadLetter[];
};

export type Dependency = {
  job: string;
  condition?: DependencyCondition | null;
  by_member?: boolean | null;
};

export type DependencyCondition = 'ok' | 'any' | 'failed';

export type Device = {
  index: number;
  model: string;
  memory_bytes: number;
  free: number;
  jobs: string[];
};

export type Event = {
  time: Time;
  text: string;
  fact?: Record<string, unknown>;
};

export type ExitStatus = {
  code: number;
  signal: number;
  out_of_memory: boolean;
  stopped: boolean;
  lost: boolean;
  error: Sentence;
  advice: Sentence;
  lost_log_bytes: number;
  limit?: LimitReached;
  pod?: PodEnd;
  explanation: string;
};

export type ExpectedEviction = {
  job: Record<string, unknown>;
  why: Record<string, unknown>;
};

export type Explanation = {
  name: string;
  phase: Phase;
  constraint: string;
  reason: string;
  details: Sentence[];
  reason_facts?: Record<string, unknown>;
  may_start?: Time;
  position: number;
  events: Event[];
};

export type Failure = {
  task: string;
  rank?: number;
  cause: string;
  cause_fact?: Record<string, unknown>;
  advice: Sentence;
  last_lines: Sentence[];
};

export type Fault = {
  field: string;
  what: string;
  line?: number;
};

export type FieldChange = {
  field: string;
  before: Sentence;
  after: Sentence;
};

export type Forecast = {
  members?: number;
  starts_now: boolean;
  placing: Placing[];
  evictions: Sentence[];
  eviction_facts: ExpectedEviction[];
  hides_evictions: boolean;
  reason: string;
  details: Sentence[];
  reason_facts?: Record<string, unknown>;
  may_start?: Time;
  before: Project;
  after: Project;
};

export type Happening = 'started' | 'requeued' | 'succeeded' | 'failed' | 'stopped';

export type Health = {
  status: 'ok';
};

export type Job = {
  id: string;
  origin?: JobOrigin;
  awaited?: AwaitedJob[];
  owner: string;
  spec: JobSpec;
  phase: Phase;
  reason: string;
  reason_details: Sentence[];
  reason_facts?: Record<string, unknown>;
  eviction?: Sentence;
  eviction_fact?: Record<string, unknown>;
  may_start?: Time;
  attempt: number;
  restarts: number;
  retries_used: number;
  avoided_nodes: string[];
  suspended: boolean;
  stop_requested: boolean;
  submitted: Time;
  started?: Time;
  ended?: Time;
  exit_code?: number;
  failure?: Failure;
  launch?: Launch;
  kept_until?: Time;
  unreadable?: boolean;
  progress?: Progress;
  tasks: Task[];
  events: Event[];
};

export type JobCounts = {
  all: number;
  queued: number;
  starting: number;
  running: number;
  succeeded: number;
  failed: number;
  stopped: number;
};

export type JobEvent = {
  time: Time;
  job: string;
  project: string;
  job_id: string;
  text: string;
  fact?: Record<string, unknown>;
};

export type JobOrigin = {
  kind: JobOriginKind;
  name: string;
  id?: string;
  member: number;
};

export type JobOriginKind = 'rerun' | 'array' | 'sweep' | 'schedule';

export type JobPage = {
  jobs: Job[];
  next?: string;
  counts?: JobCounts;
};

export type JobRow = {
  object: ListedObject;
  id: string;
  name: string;
  project: string;
  owner: string;
  kind: Kind;
  phase: Phase;
  reason: Sentence;
  labels: Record<string, Text>;
  origin?: JobOrigin;
  gpus: number;
  priority: number;
  tasks: number;
  tasks_running: number;
  members?: MemberCounts;
  submitted: Time;
  started?: Time;
  ended?: Time;
  may_start?: Time;
  exit_code?: number;
  attempt: number;
  restarts: number;
  suspended: boolean;
  stop_requested: boolean;
  unreadable?: boolean;
  progress?: Progress;
};

export type JobSpec = {
  name: string;
  project?: string | null;
  kind?: Kind | null;
  image?: string | null;
  user?: string | null;
  registry?: RegistryLogin | null;
  container?: Container | null;
  slurm?: Slurm | null;
  kubernetes?: Kubernetes | null;
  launch?: LaunchBy | null;
  replaces_entrypoint?: boolean | null;
  command: Text[];
  arguments?: Text[] | null;
  worker_command?: Text[] | null;
  workers?: number | null;
  slots_per_worker?: number | null;
  resources?: Resources | null;
  leader?: RoleSpec | null;
  leader_slots?: number | null;
  chief_is_worker?: boolean | null;
  success?: Success | null;
  allow_launcher_only?: boolean | null;
  parameter_servers?: number | null;
  parameter_server?: RoleSpec | null;
  evaluators?: number | null;
  evaluator?: RoleSpec | null;
  volumes?: Volume[] | null;
  held?: boolean | null;
  input?: boolean | null;
  terminal?: boolean | null;
  keep_for_ms?: number | null;
  labels?: Record<string, string> | null;
  annotations?: Record<string, Text> | null;
  scheduling?: Scheduling | null;
  after?: Dependency[] | null;
  array?: ArraySpec | null;
  environment?: Record<string, Text> | null;
  secrets?: SecretUse[] | null;
  folder: Text;
  sandbox?: Sandbox | null;
  start_timeout_ms?: number | null;
  grace_ms?: number | null;
};

export type Jobs = {
  jobs: Job[];
  next?: string;
};

export type KeyedSubscription = {
  subscription: Subscription;
  key: string;
};

export type Kind = 'single' | 'mpi' | 'grpc' | 'torch';

export type Kubernetes = {
  node_selector?: Record<string, Text> | null;
  tolerations?: Text[] | null;
  priority_class?: string | null;
  service_account?: string | null;
  runtime_class?: string | null;
  image_pull_secrets?: Text[] | null;
  claims?: Text[] | null;
  devices?: Record<string, Text> | null;
  labels?: Record<string, Text> | null;
  annotations?: Record<string, Text> | null;
  containers?: PodContainer[] | null;
};

export type LabelChanges = {
  labels: Record<string, string | null>;
};

export type Launch = {
  by: LaunchBy;
  why: string;
  mpi: string;
};

export type LaunchBy = 'auto' | 'ssh' | 'agent' | 'srun';

export type Limit = 'memory' | 'processes' | 'scratch' | 'file_size';

export type LimitReached = {
  limit: Limit;
  bound: number;
  peak: number;
};

export type ListedObject = 'job' | 'array' | 'sweep' | 'schedule';

export type LogHits = {
  row: JobRow;
  more: boolean;
  records: LogRecord[];
};

export type LogRecord = {
  time: Time;
  task: string;
  attempt?: number;
  host: string;
  rank?: number;
  stream: 'output' | 'error' | 'notice';
  text?: string;
  base64?: string;
  continues?: boolean;
  line?: number;
  bytes?: number;
  unfinished?: boolean;
  hit?: boolean;
};

export type LogSearchProgress = {
  searched: number;
  jobs: number;
  older: boolean;
};

export type LogWindow = {
  task: string;
  attempt: number;
  bytes: number;
  lines: number;
  first: number;
  complete: boolean;
  next?: number;
  records: LogRecord[];
};

export type LoginRequest = {
  user?: unknown;
  ceiling?: unknown;
  projects?: unknown;
  description?: Text | null;
  lifetime_s?: number | null;
};

export type MachineType = {
  name: string;
  gpu_model: string;
  gpus: number;
  gpu_share: number;
  gpu_memory_bytes: number;
  cpus: number;
  memory_bytes: number;
};

export type MachineTypes = {
  machine_types: MachineType[];
};

export type Member = {
  user: string;
  role: Role;
};

export type MemberCounts = {
  all: number;
  waiting: number;
  running: number;
  succeeded: number;
  failed: number;
  stopped: number;
};

export type MemberEnd = {
  index: number;
  job?: string;
  phase: Phase;
  exit_code?: number;
  reason?: string;
};

export type MemberRole = {
  role: 'viewer' | 'member' | 'admin';
};

export type Members = {
  members: Member[];
};

export type MetricPoint = {
  time: Time;
  value: number;
};

export type MetricSeries = {
  metric: string;
  task: string;
  rank?: number;
  points: MetricPoint[];
};

export type Metrics = {
  series: MetricSeries[];
};

export type NewToken = {
  token: Token;
  text: string;
};

export type NewUser = {
  user: User;
  invitation: NewToken;
};

export type Node = {
  name: string;
  pool: string;
  state: 'ready' | 'cordoned' | 'draining' | 'gone';
  cpus: number;
  cpus_free: number;
  memory_bytes: number;
  memory_bytes_free: number;
  devices: Device[];
  jobs: string[];
  topology: Record<string, string>;
  labels: Record<string, string>;
};

export type Nodes = {
  nodes: Node[];
};

export type Nothing = Record<string, unknown>;

export type Packing = 'auto' | 'pack' | 'spread';

export type PageCode = {
  code: string;
  url: string;
  expires: Time;
};

export type PageLogin = {
  code: string;
  check?: boolean | null;
};

export type Phase = 'Queued' | 'Starting' | 'Running' | 'Succeeded' | 'Failed' | 'Stopped';

export type PingResult = {
  arrived: boolean;
  status: number;
  fault: string;
  advice: string;
  took_ms: number;
};

export type Placing = {
  task: string;
  node: string;
  devices: number[];
  gpu_share: number;
};

export type PodContainer = {
  name: string;
  runs?: PodContainerRuns | null;
  of?: PodContainerOf | null;
  image: string;
  pull?: PullPolicy | null;
  command?: Text[] | null;
  arguments?: Text[] | null;
  environment?: Record<string, Text> | null;
  folder?: string | null;
  user?: string | null;
  cpus?: number | null;
  memory_bytes?: number | null;
  mounts?: Text[] | null;
};

export type PodContainerOf = 'all' | 'leader' | 'workers' | 'parameter_servers' | 'evaluators';

export type PodContainerRuns = 'before' | 'beside';

export type PodEnd = {
  cause: PodEndCause;
  pod?: string;
  node?: string;
  word?: string;
  text?: Sentence;
};

export type PodEndCause = 'ended' | 'evicted' | 'preempted' | 'queue_evicted' | 'drained' | 'tainted' | 'shut_down' | 'deleted' | 'node_lost' | 'not_admitted' | 'deadline';

export type Problem = {
  type: 'about:blank';
  title: string;
  status: number;
  detail: string;
  code?: 'invalid' | 'not_found' | 'conflict' | 'refused' | 'exhausted' | 'unavailable' | 'timeout' | 'internal';
  advice?: string;
  cause?: string;
  faults?: Fault[];
};

export type Progress = {
  unit: 'epoch' | 'step' | '';
  done: number;
  total: number;
  ends?: Time;
};

export type Project = {
  name: string;
  parent: string;
  quota: Quota;
  pools: Record<string, Quota>;
  priority: number;
  reclaim_min_runtime_ms: number;
  preempt_min_runtime_ms: number;
  takes_the_rest: boolean;
  sequence: number;
  created: Time;
  status: ProjectUse;
};

export type ProjectChange = {
  name?: string | null;
  parent?: string | null;
  quota?: QuotaChange | null;
  pools?: Record<string, QuotaChange | null> | null;
  priority?: number | null;
  reclaim_min_runtime_ms?: number | null;
  preempt_min_runtime_ms?: number | null;
  takes_the_rest?: boolean | null;
  sequence?: unknown;
  created?: unknown;
  status?: unknown;
};

export type ProjectRequest = {
  name: string;
  parent?: string | null;
  quota?: QuotaChange | null;
  pools?: Record<string, QuotaChange | null> | null;
  priority?: number | null;
  reclaim_min_runtime_ms?: number | null;
  preempt_min_runtime_ms?: number | null;
  takes_the_rest?: boolean | null;
  sequence?: unknown;
  created?: unknown;
  status?: unknown;
};

export type ProjectUsage = {
  project: string;
  since: Time;
  until: Time;
  users: UserUsage[];
};

export type ProjectUse = {
  deserved: Share;
  allocated: Amounts;
  allocated_non_preemptible: Amounts;
  requested: Amounts;
  fair_share: Share;
  running: number;
  waiting: number;
};

export type Projects = {
  projects: Project[];
};

export type PullPolicy = 'if-missing' | 'always' | 'never';

export type Purpose = 'train' | 'build' | 'inference';

export type Quota = {
  deserved: Share;
  limit: Share;
  weight: number;
};

export type QuotaChange = {
  deserved?: ShareChange | null;
  limit?: ShareChange | null;
  weight?: number | null;
};

export type RegistryLogin = {
  server?: string | null;
  username: string;
  secret: string;
};

export type RemovedJob = {
  id: string;
  name: string;
  project: string;
};

export type RerunRequest = {
  max_running?: number | null;
  max_failures?: number | null;
};

export type Resize = 'auto' | 'live' | 'restart';

export type Resources = {
  gpus?: number | null;
  gpu_share?: number | null;
  gpu_memory_bytes?: number | null;
  cpus?: number | null;
  memory_bytes?: number | null;
};

export type Retried = {
  retried: number;
};

export type RetryAction = 'retry' | 'fail' | 'avoid-node';

export type RetryRule = {
  exit_code?: number | null;
  last_exit_code?: number | null;
  log_pattern?: Text | null;
  action: RetryAction;
};

export type Role = 'none' | 'viewer' | 'member' | 'admin';

export type RoleSpec = {
  image?: string | null;
  user?: string | null;
  registry?: RegistryLogin | null;
  command?: Text[] | null;
  arguments?: Text[] | null;
  resources?: Resources | null;
  environment?: Record<string, Text> | null;
};

export type RowPage = {
  rows: JobRow[];
  next?: string;
  counts?: JobCounts;
};

export type RungValue = {
  value?: number;
};

export type Sandbox = 'bubblewrap' | 'none';

export type Schedule = {
  id: string;
  spec: ScheduleSpec;
  owner: string;
  paused: boolean;
  created: Time;
  history: ScheduledRun[];
  upcoming: Time[];
  problem?: string;
};

export type ScheduleCatchUp = 'one' | 'none';

export type ScheduleOverlap = 'forbid' | 'allow' | 'replace';

export type ScheduleSpec = {
  name: string;
  project?: string | null;
  cron: string;
  timezone?: string | null;
  overlap?: ScheduleOverlap | null;
  catch_up?: ScheduleCatchUp | null;
  catch_up_within_ms?: number | null;
  held?: boolean | null;
  job: JobSpec;
};

export type ScheduledRun = {
  time: Time;
  by_request?: boolean;
  outcome: ScheduledRunOutcome;
  job?: string;
  job_id?: string;
  phase?: Phase;
  exit_code?: number;
  error?: string;
};

export type ScheduledRunOutcome = 'started' | 'skipped' | 'missed' | 'refused';

export type Schedules = {
  schedules: Schedule[];
};

export type Scheduling = {
  purpose?: Purpose | null;
  priority?: number | null;
  preemptible?: boolean | null;
  min_workers?: number | null;
  resize?: Resize | null;
  node_pools?: string[] | null;
  gpu_models?: string[] | null;
  packing?: Packing | null;
  required_topology?: string | null;
  preferred_topology?: string | null;
  time_limit_ms?: number | null;
  retries?: number | null;
  retry_rules?: RetryRule[] | null;
  begin?: Time | null;
  singleton?: string | null;
};

export type Secret = {
  project: string;
  name: string;
  created: Time;
  changed: Time;
  changed_by: string;
};

export type SecretUse = {
  name: string;
  variable?: string | null;
  file?: string | null;
};

export type SecretValue = {
  value: string | {
    base64: string;
  };
};

export type Secrets = {
  secrets: Secret[];
};

export type Sentence = string | {
  base64: string;
};

export type ServerInfo = {
  version: string;
  pid: number;
  state_folder: string;
  engine?: string;
  address?: string;
  config_changed: boolean;
  need_restart?: Text[];
  on_demand?: boolean;
  settings?: Record<string, Text>;
};

export type Share = {
  gpus: number | null;
  cpus: number | null;
  memory_bytes: number | null;
};

export type ShareChange = {
  gpus?: number | null;
  cpus?: number | null;
  memory_bytes?: number | null;
};

export type Slurm = {
  partition?: string | null;
  account?: string | null;
  qos?: string | null;
  reservation?: string | null;
  constraint?: string | null;
};

export type Subscription = {
  id: string;
  project: string;
  url: string;
  on: Happening[];
  job: string;
  labels: Record<string, string>;
  with_lines: boolean;
  members: boolean;
  created: Time;
  created_by: string;
  gone: Time | null;
};

export type SubscriptionRequest = {
  url: string;
  on: Happening[];
  job?: string | null;
  labels?: Record<string, string> | null;
  with_lines?: boolean | null;
  members?: boolean | null;
};

export type Subscriptions = {
  subscriptions: Subscription[];
};

export type Success = 'leader' | 'all';

export type Sweep = {
  id: string;
  name: string;
  project: string;
  owner: string;
  phase: SweepPhase;
  end: SweepEnd;
  created: Time;
  ended?: Time;
  method: SweepMethod;
  metric: string;
  goal: SweepGoal;
  trials_total: number;
  trials_started: number;
  trials_active: number;
  trials_paused: number;
  trials_completed: number;
  trials_failed: number;
  trials_stopped: number;
  best_trial?: number;
  best?: number;
  trials: Trial[];
  budgets: number[];
  spec: SweepSpec;
};

export type SweepEnd = 'none' | 'completed' | 'stopped' | 'failures' | 'no-metric';

export type SweepGoal = 'maximize' | 'minimize';

export type SweepMethod = 'grid' | 'random' | 'asha';

export type SweepParameter = {
  values?: Text[] | null;
  low?: number | null;
  high?: number | null;
  log?: boolean | null;
  integer?: boolean | null;
  step?: number | null;
};

export type SweepPhase = 'Running' | 'Paused' | 'Succeeded' | 'Failed' | 'Stopped';

export type SweepPlan = {
  trials_total: number;
  max_concurrent: number;
  gpus: number;
  budgets: number[];
  most_steps?: number;
  expected_steps?: number;
  most_gpu_hours?: number;
  expected_gpu_hours?: number;
  first: Trial[];
};

export type SweepSpec = {
  parameters: Record<string, SweepParameter>;
  method?: SweepMethod | null;
  metric: string;
  goal?: SweepGoal | null;
  max_trials?: number | null;
  max_concurrent?: number | null;
  seed?: number | null;
  step_metric?: string | null;
  max_steps?: number | null;
  max_time_ms?: number | null;
  divisor?: number | null;
  max_rungs?: number | null;
  max_failures?: number | null;
  metric_timeout_ms?: number | null;
  job: JobSpec;
};

export type SweepSummary = {
  id: string;
  name: string;
  project: string;
  owner: string;
  phase: SweepPhase;
  end: SweepEnd;
  created: Time;
  ended?: Time;
  method: SweepMethod;
  metric: string;
  goal: SweepGoal;
  trials_total: number;
  trials_started: number;
  trials_active: number;
  trials_paused: number;
  trials_completed: number;
  trials_failed: number;
  trials_stopped: number;
  best_trial?: number;
  best?: number;
};

export type Sweeps = {
  sweeps: SweepSummary[];
};

export type Task = {
  name: string;
  role: TaskRole;
  hostname: string;
  seat: number;
  node: string;
  devices: number[];
  gpu_share: number;
  phase: TaskPhase;
  exit?: ExitStatus;
  started?: Time;
  ended?: Time;
  left: boolean;
};

export type TaskPhase = 'Pending' | 'Starting' | 'Running' | 'Ended';

export type TaskRole = 'launcher' | 'worker' | 'single' | 'chief' | 'ps' | 'master' | 'evaluator';

export type Text = string | {
  base64: string;
};

export type Time = string;

export type Token = {
  id: string;
  user: string;
  kind: TokenKind;
  description: Sentence;
  ceiling: Role;
  projects: string[];
  created: Time;
  expires?: Time;
  last_used?: Time;
  last_address: string;
};

export type TokenKind = 'invitation' | 'session' | 'api';

export type TokenRequest = {
  user?: string | null;
  description?: Text | null;
  ceiling?: Role | null;
  projects?: string[] | null;
  lifetime_s?: number | null;
};

export type Tokens = {
  tokens: Token[];
};

export type Tree = {
  id: string;
  bytes: number;
  files: number;
};

export type Trial = {
  number: number;
  values: Record<string, Text>;
  phase: TrialPhase;
  rung: number;
  rungs: RungValue[];
  best?: number;
  last?: number;
  steps: number;
  ran_ms?: number;
  without_value?: boolean;
  fault?: Sentence;
  job?: string;
};

export type TrialPhase = 'Active' | 'Paused' | 'Completed' | 'Failed' | 'Stopped';

export type User = {
  name: string;
  server_role: Role;
  projects: Record<string, Role>;
  disabled: boolean;
  account?: string;
  created: Time;
};

export type UserChange = {
  server_role?: Role | null;
  projects?: Record<string, Role> | null;
  disabled?: boolean | null;
  account?: string | null;
};

export type UserRequest = {
  name: string;
  server_role?: Role | null;
  projects?: Record<string, Role> | null;
  disabled?: boolean | null;
  account?: string | null;
  created?: unknown;
};

export type UserUsage = {
  project: string;
  user: string;
  jobs: number;
  failed: number;
  job_hours: number;
  gpu_hours: number;
};

export type Users = {
  users: User[];
};

export type Volume = {
  kind: VolumeKind;
  source?: Text | null;
  target: Text;
  read_only?: boolean | null;
};

export type VolumeKind = 'host_path' | 'tree' | 'storage' | 'artifacts';

export type WhatIf = {
  jobs: WhatIfJob[];
  evictions: number;
  complete: boolean;
};

export type WhatIfJob = {
  id: string;
  name: string;
  project: string;
  before?: Time;
  after?: Time;
};

export type WhatIfRequest = {
  add_nodes?: number | null;
  like: string;
  run_time_ms?: number | null;
};

export type WhoAmI = {
  user: string;
  server_role: Role;
  projects: Record<string, Role>;
  token: string;
  ceiling: Role;
  expires?: Time;
  address: string;
};
