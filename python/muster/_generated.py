"""Made by generate_client.py from the API's document: edit that, not this.

The shapes of the API as dataclasses, and its operations as methods.
"""

from __future__ import annotations

import abc
import datetime
from dataclasses import dataclass, field
from typing import (Any, Callable, Dict, Generic, Iterator, List, Literal, Mapping, Optional, Sequence, Tuple,
                    TypeVar, Union)
from urllib.parse import quote

from ._tables import Record
from ._wire import UNSET, Each, Sentence, Text, Unset, same

__all__ = ["Amounts", "Artifact", "ArtifactKind", "ArtifactList", "AuditPage", "AuditRecord", "ChunkIds", "Container",
           "DeadLetter", "DeadLetterIds", "DeadLetters", "Device", "Event", "ExitStatus", "ExpectedEviction",
           "Explanation", "Failure", "FieldChange", "Forecast", "Happening", "Health", "Job", "JobEvent",
           "JobPage", "JobSpec", "Jobs", "KeyedSubscription", "Kind", "LabelChanges", "Launch", "LaunchBy",
           "Limit", "LimitReached", "LogRecord", "LoginRequest", "MachineType", "MachineTypes", "Member",
           "MemberRole", "Members", "MetricPoint", "MetricSeries", "Metrics", "NewToken", "NewUser", "Node",
           "Nodes", "Operations", "Packing", "Phase", "PingResult", "Placing", "Progress", "Project",
           "ProjectChange", "ProjectRequest", "ProjectUse", "Projects", "PullPolicy", "Purpose", "Quota",
           "QuotaChange", "RegistryLogin", "RemovedJob", "Resize", "Resources", "Retried", "RetryAction",
           "RetryRule", "Role", "RoleSpec", "Sandbox", "Scheduling", "Secret", "SecretUse", "SecretValue",
           "Secrets", "ServerInfo", "Share", "ShareChange", "Slurm", "StreamEvent", "Subscription",
           "SubscriptionRequest", "Subscriptions", "Task", "TaskPhase", "TaskRole", "Token", "TokenKind",
           "TokenRequest", "Tokens", "Tree", "User", "UserChange", "UserRequest", "Users", "Volume",
           "VolumeKind", "WhoAmI"]

T = TypeVar("T")


@dataclass(frozen=True)
class StreamEvent(Generic[T]):
    """One event of a stream. `id` says where to go on when the stream breaks."""

    kind: str
    data: T
    id: Optional[str]


#: How the tasks of a job find each other: `single` is one task that runs the command; `mpi` is a
#: launcher that runs it, and workers that it reaches by ssh; `grpc` is a TensorFlow cluster: a
#: chief, workers and parameter servers, each of which runs it; `torch` is a master and workers,
#: each of which runs it and is told its rank and the master's address.
Kind = Literal["single", "mpi", "grpc", "torch"]

#: When an image is fetched: where the host has it not, at each start, or never.
PullPolicy = Literal["if-missing", "always", "never"]

#: How a launcher reaches the workers that it starts ranks in. `ssh`: by ssh, and an sshd in each
#: worker. `agent`: by Muster's own remote shell; an image needs nothing but its MPI. `srun`:
#: Slurm's srun starts the ranks, and the MPI asks it by PMIx; only where the server runs jobs on
#: Slurm. `auto`: by ssh where the images have what it takes.
LaunchBy = Literal["auto", "ssh", "agent", "srun"]

#: Where a volume comes from.
VolumeKind = Literal["host_path", "tree", "storage", "artifacts"]

#: How important the job is and whether it may be evicted, unless it says so itself.
Purpose = Literal["train", "build", "inference"]

#: How an elastic job takes it that workers come and go while it runs: it goes on with those that
#: there are (`live`), or is started again (`restart`). `auto`: `live` where its command is made for
#: it (torchrun; an MPI program that asks discover_hosts.sh), else `restart`.
Resize = Literal["auto", "live", "restart"]

#: How tasks are laid out on nodes.
Packing = Literal["auto", "pack", "spread"]

RetryAction = Literal["retry", "fail", "avoid-node"]

#: `bubblewrap`: each task has its own host name, process tree and /generated.
Sandbox = Literal["bubblewrap", "none"]

Phase = Literal["Queued", "Starting", "Running", "Succeeded", "Failed", "Stopped"]

TaskRole = Literal["launcher", "worker", "single", "chief", "ps", "master", "evaluator"]

TaskPhase = Literal["Pending", "Starting", "Running", "Ended"]

Limit = Literal["memory", "processes", "scratch", "file_size"]

#: Each role includes the one before it: a viewer reads, a member submits jobs, an admin sets
#: members, secrets and quotas.
Role = Literal["none", "viewer", "member", "admin"]

#: An `invitation` permits one login, a `session` was created by a login, and `api` is for programs.
TokenKind = Literal["invitation", "session", "api"]

#: Only a file can be fetched. A folder is listed only if the server cannot read it.
ArtifactKind = Literal["file", "link", "folder", "pipe", "socket", "device"]

#: `requeued`: the job ran, and waits again.
Happening = Literal["started", "requeued", "succeeded", "failed", "stopped"]


@dataclass(frozen=True)
class Health(Record):
    """See the API's document: Health."""

    status: str


@dataclass(frozen=True)
class LogRecord(Record):
    """See the API's document: LogRecord."""

    #: When it was printed.
    time: datetime.datetime
    task: str
    #: Of the task, or of the rank where one is known.
    host: str
    #: `notice`: Muster's own words.
    stream: Literal["output", "error", "notice"]
    #: Of the job: which start of its gang printed this; absent: not known.
    attempt: Optional[int] = None
    #: The MPI rank that printed it, where one is known.
    rank: Optional[int] = None
    #: A line, without its newline; absent where `base64` is there.
    text: Optional[str] = None
    #: A line that is no UTF-8.
    base64: Optional[str] = None
    #: A long line was cut here; the next record of its source goes on.
    continues: Optional[bool] = None


@dataclass
class Container(Record):
    """How far the containers of a job are set apart from their host. What is absent is the stricter of
    both.
    """

    pull: PullPolicy = "if-missing"
    #: All of the image can be written to; else only volumes, /tmp and the like.
    writable_root: bool = False
    #: Set-user-id programs get what they say.
    new_privileges: bool = False
    #: Rights of root's beside the few that are left to it, each once, with or without `CAP_`.
    capabilities: Sequence[str] = field(default_factory=list)
    #: Of /dev/shm. 0: as the engine has it.
    shm_bytes: int = 0


@dataclass
class Slurm(Record):
    """What is said to Slurm of a job, beside what is made of the rest of the spec. On an engine other
    than Slurm it is kept and has no effect. What is absent or empty is not said, and what Slurm
    does then holds.
    """

    #: In the place of the node pools; several with commas between them.
    partition: str = ""
    #: In the place of the project's.
    account: str = ""
    qos: str = ""
    reservation: str = ""
    #: Features of nodes, as Slurm joins them: `a100&nvlink`.
    constraint: str = ""


@dataclass
class Resources(Record):
    """What a task needs of a node: each worker, or the single task. 0: no claim."""

    #: Whole ones.
    gpus: int = 0
    #: That part of one GPU; 0: none. Does not go with `gpus`.
    gpu_share: float = 0.0
    #: As much of one GPU as has this memory; 0: none. Goes with neither of the others.
    gpu_memory_bytes: int = 0
    #: Thousandths count.
    cpus: float = 0.0
    memory_bytes: int = 0


@dataclass
class RoleSpec(Record):
    """What the tasks of one role run and need, beside what the job says of its workers."""

    #: Empty: the job's.
    image: str = ""
    #: Where an image is given: who runs in it. Empty: whom the image says.
    user: str = ""
    #: Where an image is given: how whoever fetches it logs in.
    registry: Optional[RegistryLogin] = None
    #: Empty: the job's, with its arguments. Not of the launcher of kind `mpi`, which runs the
    #: job's.
    command: Sequence[Text] = field(default_factory=list)
    #: Where `command` is empty: behind the job's.
    arguments: Sequence[Text] = field(default_factory=list)
    #: None of the job's are taken over.
    resources: Resources = field(default_factory=Resources)
    #: On top of the job's.
    environment: Mapping[str, Text] = field(default_factory=dict)


@dataclass
class Scheduling(Record):
    """What decides when and where a job runs, beside what its tasks need."""

    purpose: Purpose = "train"
    #: Absent: 50, 75, 100 or 125 by purpose.
    priority: Optional[int] = None
    #: Absent: below priority 100.
    preemptible: Optional[bool] = None
    #: Elastic: runs with so many of `workers` at the least. Of kind `mpi`: 1 or more; not of
    #: `single`.
    min_workers: Optional[int] = None
    #: Other than `auto` only with `min_workers`; `live` of kind `grpc` only with parameter servers.
    resize: Resize = "auto"
    #: Tried in this order; empty: any that the project has.
    node_pools: Sequence[str] = field(default_factory=list)
    #: Any of these; empty: any.
    gpu_models: Sequence[str] = field(default_factory=list)
    packing: Packing = "auto"
    #: A level such as `rack`: all tasks within one; empty: anywhere.
    required_topology: str = ""
    #: Within one if there is room.
    preferred_topology: str = ""
    #: The job is ended then; absent: never.
    time_limit_ms: Optional[int] = None
    #: How often it may start again after a fault of its own.
    retries: int = 0
    retry_rules: Sequence[RetryRule] = field(default_factory=list)


@dataclass
class JobSpec(Record):
    """What is submitted. What is absent or null has its default."""

    #: 1 to 48 of a-z, 0-9 and `-`, a letter or digit at both ends; unique in its project.
    name: str
    #: argv of the single task, of the launcher, or of every worker of kind `grpc` or `torch`.
    #: Empty: what the image runs. No word contains a NUL byte, and the first is not empty.
    command: Sequence[Text]
    #: Working directory of every task: an absolute path.
    folder: Text
    #: Empty: that of the client's context, else `default`.
    project: str = ""
    kind: Kind = "single"
    #: What an image holds. An engine that runs none has a stand-in for it, or the machine's own
    #: files.
    image: str = ""
    #: Who runs in the image: `USER` or `USER:GROUP`, each a name or a number of the image. Empty:
    #: whom the image says. Needs an image.
    user: str = ""
    #: How whoever fetches the image logs in. Needs an image.
    registry: Optional[RegistryLogin] = None
    #: How far its containers are set apart from their hosts. Needs an image.
    container: Container = field(default_factory=Container)
    #: What is said to Slurm of it, where the server runs jobs there.
    slurm: Slurm = field(default_factory=Slurm)
    #: Of kind `mpi`.
    launch: LaunchBy = "auto"
    #: The command is run in the place of the image's entry point; else it is what that is given.
    #: False needs an image.
    replaces_entrypoint: bool = True
    #: Behind the command.
    arguments: Sequence[Text] = field(default_factory=list)
    #: Of kind `mpi`: what workers run beside answering ssh.
    worker_command: Sequence[Text] = field(default_factory=list)
    #: Those beside the launcher, chief or master. Of kind `mpi`: 1 to 1000; of `single`: 0.
    workers: int = 0
    #: Ranks that a worker takes.
    slots_per_worker: int = 1
    resources: Resources = field(default_factory=Resources)
    #: Of the launcher (which has no command of its own), the chief or the master.
    leader: RoleSpec = field(default_factory=RoleSpec)
    #: Of kind `mpi`: ranks that the launcher takes. It is last in the hostfile then.
    leader_slots: int = 0
    #: Of kind `mpi`: the job succeeds even where its command never ran anything in a worker.
    allow_launcher_only: bool = False
    #: Of kind `grpc`, and at most 1000 together with the workers.
    parameter_servers: int = 0
    parameter_server: RoleSpec = field(default_factory=RoleSpec)
    #: Of kind `grpc`: what evaluates checkpoints beside the cluster.
    evaluators: int = 0
    evaluator: RoleSpec = field(default_factory=RoleSpec)
    #: What tasks find at paths of theirs.
    volumes: Sequence[Volume] = field(default_factory=list)
    #: It waits for `resume` from the beginning.
    held: bool = False
    #: The program of the launcher, chief, master or single task reads what those who attach write;
    #: else nothing.
    input: bool = False
    #: That program has a terminal: its standard output and error are one.
    terminal: bool = False
    #: How long it is kept after its end, with its logs and artifacts. Absent: as the server has it.
    keep_for_ms: Optional[int] = None
    #: To select by; one whose value is empty is a tag. A name is 1 to 128 bytes of text without
    #: `=`, a value at most 256 bytes; at most 64.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Kept for whoever submitted it: at most 64 KiB together.
    annotations: Mapping[str, Text] = field(default_factory=dict)
    scheduling: Scheduling = field(default_factory=Scheduling)
    environment: Mapping[str, Text] = field(default_factory=dict)
    secrets: Sequence[SecretUse] = field(default_factory=list)
    sandbox: Sandbox = "bubblewrap"
    #: Until every worker answers.
    start_timeout_ms: int = 30000
    #: Between SIGTERM and SIGKILL.
    grace_ms: int = 10000


@dataclass
class RegistryLogin(Record):
    """See the API's document: RegistryLogin."""

    username: str
    #: Of the project: the one that holds the password.
    secret: str
    #: Absent or empty: the one that the image names.
    server: str = ""


@dataclass
class Volume(Record):
    """Something that tasks find at a path of theirs."""

    kind: VolumeKind
    #: Absolute, without `.`, `..` and a `/` at its end; not `/`, `/proc`, `/sys`, `/dev` or
    #: `/generated`, or below these.
    target: Text
    #: Of `host_path`: a file or folder of the node, absolute. Of `tree`: the id of files that were
    #: sent, of which each job has a copy; empty: an empty folder. Of `storage`: the name of a
    #: folder of the project, which outlives its jobs. Of `artifacts`, a folder that is kept as long
    #: as the job: nothing.
    source: Text = ""
    read_only: bool = False


@dataclass
class RetryRule(Record):
    """What to do when a task fails in this way; the first rule that matches counts. `exit_code`,
    `log_pattern` or both say what it matches.
    """

    #: `retry` costs one retry; `avoid-node` costs none and keeps the job off that node.
    action: RetryAction
    #: Of the task at fault, as a shell shows it (137: SIGKILL).
    exit_code: Optional[int] = None
    #: A regular expression (ECMAScript), found in its last lines; empty: any.
    log_pattern: Text = ""


@dataclass
class SecretUse(Record):
    """A secret that the tasks get: as a variable, as a file, or both."""

    #: Of a secret of the project.
    name: str
    #: Of the environment; empty: not there.
    variable: str = ""
    #: Below /generated/secrets; empty: not there.
    file: str = ""


@dataclass(frozen=True)
class ServerInfo(Record):
    """See the API's document: ServerInfo."""

    version: str
    #: 0 unless the caller is an admin of the server.
    pid: int
    #: Empty unless the caller is an admin of the server.
    state_folder: str
    #: Its configuration file has been written since it was read. False unless the caller is an
    #: admin of the server.
    config_changed: bool
    #: Where its tasks run: `process`, `container` or `slurm`.
    engine: Optional[str] = None
    #: HOST:PORT where other machines reach it. Absent: it serves only a unix socket, or the caller
    #: is not an admin of the server.
    address: Optional[str] = None


@dataclass(frozen=True)
class Job(Record):
    """See the API's document: Job."""

    #: Never given again.
    id: str
    #: Who submitted it.
    owner: str
    spec: JobSpec
    phase: Phase
    #: Why it waits, or what it does right now.
    reason: str
    #: Who holds what the job needs, and what would help.
    reason_details: List[Sentence]
    #: How often its gang was started.
    attempt: int
    #: How often an attempt was given up for another.
    restarts: int
    retries_used: int
    #: By its retry rules.
    avoided_nodes: List[str]
    #: It waits for `resume`, and for nothing else.
    suspended: bool
    stop_requested: bool
    submitted: datetime.datetime
    tasks: List[Task]
    events: List[Event]
    #: `reason` as data: its `kind`, and the fields of that kind; `details` has such an object for
    #: each fact behind it.
    reason_facts: Optional[Dict[str, Any]] = None
    #: It is being evicted, and why.
    eviction: Optional[Sentence] = None
    #: What `eviction` says, as data.
    eviction_fact: Optional[Dict[str, Any]] = None
    #: While it waits: when room is expected to be free.
    may_start: Optional[datetime.datetime] = None
    #: When it entered Running.
    started: Optional[datetime.datetime] = None
    ended: Optional[datetime.datetime] = None
    #: Of the task that decides, once the job has ended.
    exit_code: Optional[int] = None
    failure: Optional[Failure] = None
    #: Of the last attempt of a job of kind `mpi`, once it is known.
    launch: Optional[Launch] = None
    #: Of an ended job: when it is removed by itself.
    kept_until: Optional[datetime.datetime] = None
    #: The store has a record of the job that cannot be read: only its id, name and project are
    #: known.
    unreadable: Optional[bool] = None
    #: As its program reports it: of a job that runs, and of one that has ended where it is asked
    #: for by its name.
    progress: Optional[Progress] = None


@dataclass(frozen=True)
class Failure(Record):
    """See the API's document: Failure."""

    #: The first task at fault.
    task: str
    cause: str
    advice: Sentence
    #: Its last lines.
    last_lines: List[Sentence]
    #: Of the MPI program, where one is known to have failed first.
    rank: Optional[int] = None
    #: `cause` as data: its `kind`, and the fields of that kind.
    cause_fact: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class Launch(Record):
    """How the ranks of an MPI job were started."""

    #: `ssh`, `agent` or `srun`; `auto` where it is not known yet.
    by: LaunchBy
    #: As in `the images have sshd and ssh`.
    why: str
    #: Whose mpirun it was, as in `Open MPI 4.1.4`; empty: not known.
    mpi: str


@dataclass(frozen=True)
class Progress(Record):
    """How far a program says it is: `done` of `total` epochs or steps are behind it."""

    #: Empty: a part of 1.
    unit: Literal["epoch", "step", ""]
    done: float
    total: float
    #: At the pace it has gone so far.
    ends: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class Task(Record):
    """See the API's document: Task."""

    #: `launcher`, `chief`, `master`, `worker-0`, `ps-0`, `evaluator-0`, `main`.
    name: str
    role: TaskRole
    hostname: str
    #: Its number among the tasks that the job asks for. A worker that came in the place of another
    #: has that one's seat, and a name of its own.
    seat: int
    #: Where it was placed; empty while it waits.
    node: str
    #: Its GPUs there.
    devices: List[int]
    #: Of each of them: 1, or a part of one.
    gpu_share: float
    phase: TaskPhase
    #: It ended, or is being ended, while its elastic job goes on: it takes part no more.
    left: bool
    exit: Optional[ExitStatus] = None
    started: Optional[datetime.datetime] = None
    ended: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class ExitStatus(Record):
    """See the API's document: ExitStatus."""

    #: The program's exit code; 0 when a signal ended it.
    code: int
    #: The signal that ended it, or 0.
    signal: int
    #: A process was killed meanwhile because memory was used up.
    out_of_memory: bool
    #: The task was told to stop before it ended.
    stopped: bool
    #: Nobody saw the end.
    lost: bool
    #: Why the program could not be started; empty: it was.
    error: Sentence
    #: What to do about the error; empty: nothing particular.
    advice: Sentence
    #: How much output the log lacks because the disk under it was full.
    lost_log_bytes: int
    #: All of this in a sentence.
    explanation: str
    #: The limit that the task reached, with its bound and the peak.
    limit: Optional[LimitReached] = None


@dataclass(frozen=True)
class LimitReached(Record):
    """A limit that a task reached: it was killed for it, or was refused more."""

    limit: Limit
    #: In bytes; of processes and threads their number; 0: not known.
    bound: int
    #: The most that the task used; 0: not known.
    peak: int


@dataclass(frozen=True)
class Event(Record):
    """See the API's document: Event."""

    #: No two events of one server have the same.
    time: datetime.datetime
    text: str
    #: `text` as data: its `kind`, and the fields of that kind. Fields that are zero, empty or not
    #: visible to the caller are left out. Later versions may add kinds and fields.
    fact: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class Jobs(Record):
    """See the API's document: Jobs."""

    jobs: List[Job]


@dataclass(frozen=True)
class JobPage(Record):
    """See the API's document: JobPage."""

    jobs: List[Job]
    #: The `cursor` of the next page. Absent: this is the last page.
    next: Optional[str] = None


@dataclass(frozen=True)
class Explanation(Record):
    """See the API's document: Explanation."""

    name: str
    phase: Phase
    #: A word for programs (`room`, `quota`, ...). Empty: the job does not wait.
    constraint: str
    #: Why it waits.
    reason: str
    #: Who holds what the job needs, and what would help.
    details: List[Sentence]
    #: In the queue, from 1. 0: the job does not wait.
    position: int
    events: List[Event]
    #: `reason` as data: its `kind`, and the fields of that kind; `details` has such an object for
    #: each fact behind it.
    reason_facts: Optional[Dict[str, Any]] = None
    may_start: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class Forecast(Record):
    """See the API's document: Forecast."""

    starts_now: bool
    #: Where it starts now.
    placing: List[Placing]
    #: Which jobs would be evicted for it, and why.
    evictions: List[Sentence]
    #: The same as data, of the jobs that the caller sees.
    eviction_facts: List[ExpectedEviction]
    #: Jobs that the caller does not see would be evicted, too.
    hides_evictions: bool
    #: Why it would wait.
    reason: str
    #: Who holds what the job needs, and what would help.
    details: List[Sentence]
    #: The project without the job.
    before: Project
    #: The project with the job.
    after: Project
    #: `reason` as data: its `kind`, and the fields of that kind; `details` has such an object for
    #: each fact behind it.
    reason_facts: Optional[Dict[str, Any]] = None
    may_start: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class Placing(Record):
    """See the API's document: Placing."""

    task: str
    node: str
    devices: List[int]
    gpu_share: float


@dataclass(frozen=True)
class ExpectedEviction(Record):
    """See the API's document: ExpectedEviction."""

    job: Dict[str, Any]
    why: Dict[str, Any]


@dataclass(frozen=True)
class Project(Record):
    """See the API's document: Project."""

    name: str
    #: Empty: at the top.
    parent: str
    #: In every pool that is not in `pools`.
    quota: Quota
    pools: Dict[str, Quota]
    #: Projects with a larger number are served first from resources that others leave unused.
    priority: int
    reclaim_min_runtime_ms: int
    preempt_min_runtime_ms: int
    #: The project `default` alone: it deserves the GPUs that are in no other project's quota.
    takes_the_rest: bool
    #: The order of creation.
    sequence: int
    created: datetime.datetime
    status: ProjectUse


@dataclass(frozen=True)
class Quota(Record):
    """See the API's document: Quota."""

    #: What the project can always claim.
    deserved: Share
    #: What the project never exceeds.
    limit: Share
    #: The project's part of resources that others leave unused.
    weight: float


@dataclass(frozen=True)
class Share(Record):
    """null: no bound in a limit, all there is in a quota."""

    gpus: Optional[float]
    cpus: Optional[float]
    memory_bytes: Optional[int]


@dataclass(frozen=True)
class ProjectUse(Record):
    """See the API's document: ProjectUse."""

    #: The quota in force.
    deserved: Share
    allocated: Amounts
    allocated_non_preemptible: Amounts
    #: By running and waiting jobs.
    requested: Amounts
    fair_share: Share
    #: Jobs, including those of projects below this one.
    running: int
    waiting: int


@dataclass(frozen=True)
class Amounts(Record):
    """See the API's document: Amounts."""

    gpus: float
    cpus: float
    memory_bytes: int


@dataclass
class LabelChanges:
    """A label that is not named stays as it is."""

    #: Each label gets its value, or is removed where the value is null.
    labels: Mapping[str, Optional[str]]


@dataclass(frozen=True)
class RemovedJob(Record):
    """A job that no longer exists."""

    id: str
    name: str
    project: str


@dataclass(frozen=True)
class JobEvent(Record):
    """What happened to a job."""

    #: No two events of one server have the same.
    time: datetime.datetime
    #: Its name.
    job: str
    project: str
    job_id: str
    text: str
    #: `text` as data, as in an event of a job.
    fact: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class MetricSeries(Record):
    """See the API's document: MetricSeries."""

    #: Sampled: cpu_percent (100: one CPU), memory_bytes, network_received_bytes_per_second,
    #: network_sent_bytes_per_second, gpu_percent (100: one GPU), gpu_memory_bytes,
    #: gpu_memory_free_bytes, gpu_power_watts, gpu_temperature_celsius. Any other is the program's
    #: own.
    metric: str
    task: str
    #: Oldest first.
    points: List[MetricPoint]
    #: Where the program told it.
    rank: Optional[int] = None


@dataclass(frozen=True)
class MetricPoint(Record):
    """See the API's document: MetricPoint."""

    time: datetime.datetime
    value: float


@dataclass(frozen=True)
class Metrics(Record):
    """See the API's document: Metrics."""

    series: List[MetricSeries]


@dataclass(frozen=True)
class Projects(Record):
    """See the API's document: Projects."""

    #: Parents first.
    projects: List[Project]


@dataclass
class ShareChange:
    """An absent field stays as it is; null removes the bound."""

    gpus: Union[float, None, Unset] = field(default=UNSET, metadata={"null": True})
    cpus: Union[float, None, Unset] = field(default=UNSET, metadata={"null": True})
    memory_bytes: Union[int, None, Unset] = field(default=UNSET, metadata={"null": True})


@dataclass
class QuotaChange:
    """See the API's document: QuotaChange."""

    deserved: Optional[Union[ShareChange, Mapping[str, Any]]] = None
    limit: Optional[Union[ShareChange, Mapping[str, Any]]] = None
    #: The project's part of resources that others leave unused.
    weight: Optional[float] = None


@dataclass
class ProjectRequest:
    """An absent field has its default."""

    #: 1 to 63 of a-z, 0-9 and `-`, a letter or digit at both ends.
    name: str
    #: Empty: at the top.
    parent: Optional[str] = None
    quota: Optional[Union[QuotaChange, Mapping[str, Any]]] = None
    #: null in the place of a quota removes the pool's own quota.
    pools: Optional[Mapping[str, Optional[Union[QuotaChange, Mapping[str, Any]]]]] = None
    priority: Optional[int] = None
    reclaim_min_runtime_ms: Optional[int] = None
    preempt_min_runtime_ms: Optional[int] = None
    #: Only of the project `default`. A quota of GPUs ends it.
    takes_the_rest: Optional[bool] = None
    #: Ignored, so that a project that was read can be sent back.
    sequence: Any = None
    #: Ignored.
    created: Any = None
    #: Ignored.
    status: Any = None


@dataclass
class ProjectChange:
    """An absent field stays as it is."""

    #: The name in the path: a project keeps its name.
    name: Optional[str] = None
    #: Empty: at the top.
    parent: Optional[str] = None
    quota: Optional[Union[QuotaChange, Mapping[str, Any]]] = None
    #: null in the place of a quota removes the pool's own quota.
    pools: Optional[Mapping[str, Optional[Union[QuotaChange, Mapping[str, Any]]]]] = None
    priority: Optional[int] = None
    reclaim_min_runtime_ms: Optional[int] = None
    preempt_min_runtime_ms: Optional[int] = None
    #: Only of the project `default`. A quota of GPUs ends it.
    takes_the_rest: Optional[bool] = None
    #: Ignored, so that a project that was read can be sent back.
    sequence: Any = None
    #: Ignored.
    created: Any = None
    #: Ignored.
    status: Any = None


@dataclass(frozen=True)
class Node(Record):
    """See the API's document: Node."""

    name: str
    pool: str
    #: `draining`: cordoned, here or by the cluster, and something still runs.
    state: Literal["ready", "cordoned", "draining", "gone"]
    cpus: float
    cpus_free: float
    memory_bytes: int
    memory_bytes_free: int
    devices: List[Device]
    #: That have a task there, as far as the caller sees them.
    jobs: List[str]
    #: Level to domain.
    topology: Dict[str, str]
    labels: Dict[str, str]


@dataclass(frozen=True)
class Device(Record):
    """See the API's document: Device."""

    index: int
    model: str
    #: 0: unknown.
    memory_bytes: int
    #: What is free of it, of 1.
    free: float
    #: Whose tasks are on it, as far as the caller sees them.
    jobs: List[str]


@dataclass(frozen=True)
class Nodes(Record):
    """See the API's document: Nodes."""

    #: By name.
    nodes: List[Node]


@dataclass(frozen=True)
class MachineType(Record):
    """A machine by the name that clouds sell it under, and the resources of a task that requests it.
    0: no claim.
    """

    #: `p2.xlarge`, `V100`. Letters match in any case.
    name: str
    #: For people. It does not restrict where a task runs.
    gpu_model: str
    #: Whole ones.
    gpus: int
    #: That part of one GPU; 0: none. Does not go with `gpus`.
    gpu_share: float
    #: As much of one GPU as has this memory; 0: none. Goes with neither of the others.
    gpu_memory_bytes: int
    #: Thousandths count.
    cpus: float
    memory_bytes: int


@dataclass(frozen=True)
class MachineTypes(Record):
    """See the API's document: MachineTypes."""

    machine_types: List[MachineType]


@dataclass(frozen=True)
class WhoAmI(Record):
    """See the API's document: WhoAmI."""

    user: str
    server_role: Role
    #: The user's role in each project and the projects below it.
    projects: Dict[str, Role]
    #: The id of the caller's token. Empty: the unix socket.
    token: str
    #: The highest role that the token gives.
    ceiling: Role
    #: The caller's address; `local`: the unix socket.
    address: str
    #: When the token expires. Absent: never.
    expires: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class User(Record):
    """See the API's document: User."""

    name: str
    server_role: Role
    #: Roles in these projects and those below them.
    projects: Dict[str, Role]
    #: The server refuses the user's tokens.
    disabled: bool
    created: datetime.datetime
    #: Unix account under which the process engine of a server that runs as root runs the user's
    #: jobs. Empty: ids of the user's own.
    account: Optional[str] = None


@dataclass(frozen=True)
class Users(Record):
    """See the API's document: Users."""

    users: List[User]


@dataclass
class UserRequest:
    """See the API's document: UserRequest."""

    #: 1 to 64 of a-z, 0-9, `.`, `_`, `-` and `@`, a letter or digit first.
    name: str
    #: In every project. An admin of the server also administers the server itself.
    server_role: Role = "none"
    #: Roles in these projects and those below them.
    projects: Optional[Mapping[str, Role]] = None
    disabled: bool = False
    #: Unix account under which the process engine of a server that runs as root runs the user's
    #: jobs. Empty: ids of the user's own.
    account: Optional[str] = None
    #: Ignored: the server sets it.
    created: Any = None


@dataclass
class UserChange:
    """An absent field stays as it is."""

    server_role: Optional[Role] = None
    #: Roles that change. `none` removes the user from the project.
    projects: Optional[Mapping[str, Role]] = None
    disabled: Optional[bool] = None
    #: Unix account that runs the user's jobs. Empty: none any more.
    account: Optional[str] = None


@dataclass(frozen=True)
class Token(Record):
    """A token without its text, which the server does not store."""

    #: Names the token. It is no secret.
    id: str
    user: str
    kind: TokenKind
    description: Sentence
    #: The highest role that the token gives, whatever its user's is.
    ceiling: Role
    #: The token is valid for these projects and those below them. Empty: for all projects of its
    #: user.
    projects: List[str]
    created: datetime.datetime
    last_address: str
    #: Absent: never.
    expires: Optional[datetime.datetime] = None
    #: Stored with a delay of up to a minute. Absent: never.
    last_used: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class Tokens(Record):
    """See the API's document: Tokens."""

    #: Newest first.
    tokens: List[Token]


@dataclass
class TokenRequest:
    """See the API's document: TokenRequest."""

    #: Whose token. Absent or empty: the caller's.
    user: Optional[str] = None
    description: Optional[Text] = None
    #: The highest role that the token gives.
    ceiling: Role = "admin"
    #: The token is valid for these projects and those below them. Empty: for all projects of the
    #: user.
    projects: Optional[Sequence[str]] = None
    #: In seconds. Absent: the token does not expire.
    lifetime_s: Optional[int] = None


@dataclass
class LoginRequest:
    """See the API's document: LoginRequest."""

    #: Ignored.
    user: Any = None
    ceiling: Any = None
    projects: Any = None
    #: Where the session is, for `muster token list`.
    description: Optional[Text] = None
    #: In seconds. Absent, or longer than the server permits (30 days): as long as the server
    #: permits.
    lifetime_s: Optional[int] = None


@dataclass(frozen=True)
class NewUser(Record):
    """See the API's document: NewUser."""

    user: User
    invitation: NewToken


@dataclass(frozen=True)
class NewToken(Record):
    """See the API's document: NewToken."""

    token: Token
    #: The token itself. The server shows it only once.
    text: str


@dataclass(frozen=True)
class Member(Record):
    """See the API's document: Member."""

    user: str
    role: Role


@dataclass(frozen=True)
class Members(Record):
    """See the API's document: Members."""

    members: List[Member]


@dataclass
class MemberRole:
    """See the API's document: MemberRole."""

    role: Literal["viewer", "member", "admin"]


@dataclass(frozen=True)
class Secret(Record):
    """A secret without its value, which only tasks of jobs receive."""

    project: str
    name: str
    created: datetime.datetime
    changed: datetime.datetime
    changed_by: str


@dataclass(frozen=True)
class Secrets(Record):
    """See the API's document: Secrets."""

    #: By name.
    secrets: List[Secret]


@dataclass
class SecretValue:
    """See the API's document: SecretValue."""

    #: 1 byte to 64 KiB. Bytes that are not UTF-8 are sent in base64.
    value: Text


@dataclass(frozen=True)
class AuditRecord(Record):
    """See the API's document: AuditRecord."""

    #: Counts from 1 in the order of commits.
    number: int
    time: datetime.datetime
    user: str
    address: str
    token: str
    request: str
    #: `job.submit`, `project.set`, `token.revoke`, ...
    action: str
    #: The name of the changed object.
    target: str
    #: The project of the changed object. Empty: the object belongs to the server.
    project: str
    changes: List[FieldChange]


@dataclass(frozen=True)
class FieldChange(Record):
    """See the API's document: FieldChange."""

    field: str
    #: Empty: the field was not set.
    before: Sentence
    #: Empty: the field is not set any more.
    after: Sentence


@dataclass(frozen=True)
class AuditPage(Record):
    """See the API's document: AuditPage."""

    #: Newest first.
    records: List[AuditRecord]


@dataclass(frozen=True)
class ArtifactList(Record):
    """See the API's document: ArtifactList."""

    artifacts: List[Artifact]
    #: More follow the last.
    truncated: Optional[bool] = None


@dataclass(frozen=True)
class Artifact(Record):
    """See the API's document: Artifact."""

    #: Relative to the folder, with '/' between names.
    path: Text
    kind: ArtifactKind
    #: The size of a file. 0 for every other kind.
    bytes: int
    modified: datetime.datetime
    #: Of a file, if the request asks for checksums and the file did not change while it was read.
    sha256: Optional[str] = None


@dataclass
class SubscriptionRequest:
    """See the API's document: SubscriptionRequest."""

    #: https, without user and fragment.
    url: str
    #: Which events of jobs are sent.
    on: Sequence[Happening]
    #: A pattern of job names, with * and ?. Empty: every job.
    job: Optional[str] = None
    #: The job must have all of these labels.
    labels: Optional[Mapping[str, str]] = None
    #: Also send the last lines of a failed job.
    with_lines: bool = False


@dataclass(frozen=True)
class Subscription(Record):
    """See the API's document: Subscription."""

    id: str
    project: str
    #: Without its path, unless the caller is an admin of the project.
    url: str
    on: List[Happening]
    job: str
    labels: Dict[str, str]
    with_lines: bool
    created: datetime.datetime
    created_by: str
    #: When the receiver answered 410. Nothing is sent since then.
    gone: Optional[datetime.datetime]


@dataclass(frozen=True)
class Subscriptions(Record):
    """See the API's document: Subscriptions."""

    #: Oldest first.
    subscriptions: List[Subscription]


@dataclass(frozen=True)
class KeyedSubscription(Record):
    """See the API's document: KeyedSubscription."""

    subscription: Subscription
    #: Signs what is sent. No other answer has it.
    key: str


@dataclass(frozen=True)
class PingResult(Record):
    """See the API's document: PingResult."""

    arrived: bool
    #: Of the answer. 0: there was no answer.
    status: int
    #: Why it did not arrive.
    fault: str
    advice: str
    took_ms: int


@dataclass(frozen=True)
class DeadLetter(Record):
    """See the API's document: DeadLetter."""

    id: str
    #: Its id.
    subscription: str
    event: Happening
    job: str
    created: datetime.datetime
    attempts: int
    #: Why the last attempt failed.
    fault: str
    #: Since when it is not sent any more.
    dead: Optional[datetime.datetime]


@dataclass(frozen=True)
class DeadLetters(Record):
    """See the API's document: DeadLetters."""

    #: Newest first.
    deliveries: List[DeadLetter]


@dataclass
class DeadLetterIds:
    """See the API's document: DeadLetterIds."""

    #: Empty: all dead letters of the project.
    ids: Sequence[str]


@dataclass(frozen=True)
class Retried(Record):
    """See the API's document: Retried."""

    #: How many are sent again.
    retried: int


@dataclass(frozen=True)
class Tree(Record):
    """Files that a client uploaded for jobs."""

    #: The hash of the content: the same files have the same id.
    id: str
    bytes: int
    files: int


@dataclass
class ChunkIds(Record):
    """Pieces of files, each by the SHA-256 of its content."""

    chunks: Sequence[str]


def _segment(text: str) -> str:
    return quote(text, safe="")


class Operations(abc.ABC):
    """The API, operation by operation. How a request travels is the subclass's business."""

    @abc.abstractmethod
    def _call(self, method: str, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
              body: Any) -> Tuple[int, Any]:
        """The status and the body: JSON, text, or None where there is none."""

    @abc.abstractmethod
    def _events(self, path: str, query: Mapping[str, Any], headers: Mapping[str, Any],
                kinds: Mapping[str, Callable[[Any], Any]]) -> Iterator[StreamEvent[Any]]:
        """The events of a stream, each read by the function of its kind, until the stream ends."""

    def check_health(self) -> Health:
        """Whether the server runs."""
        _, answer = self._call("GET", "/healthz", {}, {}, None)
        return Health.from_wire(answer)

    def check_readiness(self) -> Health:
        """Whether the server takes requests."""
        _, answer = self._call("GET", "/readyz", {}, {}, None)
        return Health.from_wire(answer)

    def get_contract(self) -> Dict[str, Any]:
        """This document."""
        _, answer = self._call("GET", "/openapi.json", {}, {}, None)
        result: Dict[str, Any] = answer
        return result

    def get_metrics(self) -> str:
        """Figures for Prometheus."""
        _, answer = self._call("GET", "/metrics", {}, {}, None)
        result: str = answer
        return result

    def get_info(self) -> ServerInfo:
        """What the server is."""
        _, answer = self._call("GET", "/v1/info", {}, {}, None)
        return ServerInfo.from_wire(answer)

    def shut_down(self) -> None:
        """Tells the server to end; jobs go on.

        Over the unix socket only.
        """
        self._call("POST", "/v1/shutdown", {}, {}, None)

    def log_in(self, body: Union[LoginRequest, Mapping[str, Any]]) -> NewToken:
        """Exchanges an invitation, or any token, for a session.

        The invitation is used up; any other token stays. Over the unix socket there is nobody to
        log in: 409.
        """
        _, answer = self._call("POST", "/v1/login", {}, {}, body)
        return NewToken.from_wire(answer)

    def log_out(self) -> None:
        """Revokes the token that is shown.

        Over the unix socket there is none: 409.
        """
        self._call("POST", "/v1/logout", {}, {}, None)

    def who_am_i(self) -> WhoAmI:
        """Who the caller is, and what it may do."""
        _, answer = self._call("GET", "/v1/whoami", {}, {}, None)
        return WhoAmI.from_wire(answer)

    def list_jobs(self, *, project: Optional[str] = None, phase: Optional[Sequence[Phase]] = None,
                  owner: Optional[str] = None, prefix: Optional[str] = None, label: Optional[Sequence[str]] = None,
                  sort: Optional[Literal["submitted", "-submitted", "name"]] = None, limit: Optional[int] = None,
                  cursor: Optional[str] = None) -> JobPage:
        """Lists jobs, page by page."""
        _, answer = self._call("GET", "/v1/jobs",
                               {"project": project, "phase": phase, "owner": owner, "prefix": prefix, "label": Each.of(label), "sort": sort, "limit": limit, "cursor": cursor},
                               {}, None)
        return JobPage.from_wire(answer)

    def submit_job(self, body: Union[JobSpec, Mapping[str, Any]], *, dry_run: Optional[bool] = None,
                   idempotency_key: Optional[str] = None) -> Union[Job, Forecast]:
        """Submits a job, or says what would become of it."""
        status, answer = self._call("POST", "/v1/jobs", {"dry_run": dry_run}, {"Idempotency-Key": idempotency_key},
                                    body)
        if status == 201:
            return Job.from_wire(answer)
        return Forecast.from_wire(answer)

    def get_job(self, name: str, *, project: Optional[str] = None) -> Job:
        """One job."""
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}", {"project": project}, {}, None)
        return Job.from_wire(answer)

    def delete_job(self, name: str, *, project: Optional[str] = None) -> None:
        """Forgets an ended job and its logs.

        409 while it has not ended.
        """
        self._call("DELETE", f"/v1/jobs/{_segment(name)}", {"project": project}, {}, None)

    def set_labels(self, name: str, body: Union[LabelChanges, Mapping[str, Any]], *,
                   project: Optional[str] = None) -> Job:
        """Sets and takes away labels of a job."""
        _, answer = self._call("PATCH", f"/v1/jobs/{_segment(name)}", {"project": project}, {}, body)
        return Job.from_wire(answer)

    def stop_job(self, name: str, *, project: Optional[str] = None, now: Optional[bool] = None) -> Job:
        """Asks a job to end.

        SIGTERM and its grace. A job that has ended is answered as it is.
        """
        _, answer = self._call("POST", f"/v1/jobs/{_segment(name)}/stop", {"project": project, "now": now}, {}, None)
        return Job.from_wire(answer)

    def suspend_job(self, name: str, *, project: Optional[str] = None) -> Job:
        """Frees the job's room and holds it back."""
        _, answer = self._call("POST", f"/v1/jobs/{_segment(name)}/suspend", {"project": project}, {}, None)
        return Job.from_wire(answer)

    def resume_job(self, name: str, *, project: Optional[str] = None) -> Job:
        """Lets a suspended job run again."""
        _, answer = self._call("POST", f"/v1/jobs/{_segment(name)}/resume", {"project": project}, {}, None)
        return Job.from_wire(answer)

    def explain_job(self, name: str, *, project: Optional[str] = None) -> Explanation:
        """Why a job waits, or what was done to it."""
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}/explain", {"project": project}, {}, None)
        return Explanation.from_wire(answer)

    def stream_logs(self, name: str, *, project: Optional[str] = None, follow: Optional[bool] = None,
                    task: Optional[str] = None, rank: Optional[int] = None, grep: Optional[str] = None,
                    since: Optional[Union[datetime.datetime, str]] = None, tail: Optional[int] = None,
                    last_event_id: Optional[str] = None) -> Iterator[StreamEvent[Union[LogRecord, Job]]]:
        """A job's merged log, line by line.

        `log` events, each with a LogRecord, and at the end one `end` event with the Job. Comments
        come while nothing is said. An id stands alone, now and then, and names the place that the
        log has reached: whoever was cut off asks again with `Last-Event-ID` and is sent all that
        stands behind that place, to the byte. It may be cut into records in other places than
        before; where it was read behind the last id, as many bytes of each source (a stream of a
        rank of a task in an attempt; a line's newline counts) are to be dropped. Where `accept`
        names `application/vnd.muster.log-event-stream`, the same comes as binary frames, for
        Muster's own programs.
        """
        return self._events(f"/v1/jobs/{_segment(name)}/logs",
                            {"project": project, "follow": follow, "task": task, "rank": rank, "grep": grep, "since": since, "tail": tail},
                            {"Last-Event-ID": last_event_id}, {"log": LogRecord.from_wire, "end": Job.from_wire})

    def list_artifacts(self, name: str, *, project: Optional[str] = None, checksums: Optional[bool] = None,
                       prefix: Optional[str] = None, after: Optional[str] = None) -> ArtifactList:
        """The files in a job's artifacts folder.

        As they are now, by path, while the job runs and after it. Links, pipes, sockets and devices
        are named, and never followed or opened. Where there are more than one answer holds, it is
        truncated: ask with `after`, the last path.
        """
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}/artifacts",
                               {"project": project, "checksums": checksums, "prefix": prefix, "after": after}, {},
                               None)
        return ArtifactList.from_wire(answer)

    def get_artifact(self, name: str, *, project: Optional[str] = None, path: Optional[str] = None,
                     range: Optional[str] = None, if_match: Optional[str] = None,
                     if_range: Optional[str] = None) -> bytes:
        """The bytes of an artifact.

        As many as it had when it was opened: `content-length` says how many. Where it is cut
        meanwhile, the connection is. The `etag` is its SHA-256 where a list with checksums has told
        it, else it stands for the file as it is.
        """
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}/artifact", {"project": project, "path": path},
                               {"Range": range, "If-Match": if_match, "If-Range": if_range}, None)
        result: bytes = answer
        return result

    def get_job_metrics(self, name: str, *, project: Optional[str] = None, metric: Optional[Sequence[str]] = None,
                        task: Optional[str] = None, rank: Optional[int] = None,
                        since: Optional[Union[datetime.datetime, str]] = None,
                        until: Optional[Union[datetime.datetime, str]] = None, interval: Optional[str] = None,
                        last: Optional[bool] = None) -> Metrics:
        """What was measured of a job.

        What Muster samples of each task, and what the program reports of itself, of the job's
        present attempt, or of its last where it has ended. A series has at most 2000 points: of
        more, neighbours become their mean. A job has at most 1000 series.
        """
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}/metrics",
                               {"project": project, "metric": Each.of(metric), "task": task, "rank": rank, "since": since, "until": until, "interval": interval, "last": last},
                               {}, None)
        return Metrics.from_wire(answer)

    def list_queue(self) -> Jobs:
        """The jobs that wait, in the order they would be served."""
        _, answer = self._call("GET", "/v1/queue", {}, {}, None)
        return Jobs.from_wire(answer)

    def stream_jobs(self, *, project: Optional[str] = None, name: Optional[str] = None,
                    last_event_id: Optional[str] = None) -> Iterator[StreamEvent[Union[Job, Dict[str, Any], RemovedJob]]]:
        """Jobs as they are, and each change of them.

        First a `job` event for each job there is, then `ready`, then `job` and `removed` events as
        things change. Of a job that changed often while nobody read, only its last state comes.
        Whoever was cut off goes on with `Last-Event-ID`; where what happened since is not known any
        more, `reset` says that everything comes anew.
        """
        return self._events("/v1/watch/jobs", {"project": project, "name": name}, {"Last-Event-ID": last_event_id},
                            {"job": Job.from_wire, "ready": same, "removed": RemovedJob.from_wire, "reset": same})

    def stream_events(self, *, project: Optional[str] = None, name: Optional[str] = None,
                      since: Optional[Union[datetime.datetime, str]] = None,
                      last_event_id: Optional[str] = None) -> Iterator[StreamEvent[Union[Dict[str, Any], JobEvent, Job]]]:
        """What happens to jobs, as it happens.

        First a `ready` event, whose id is a place to go on from. Then `event` events in the order
        of time. With `name`, an `end` event with the Job comes once it has ended.
        """
        return self._events("/v1/watch/events", {"project": project, "name": name, "since": since},
                            {"Last-Event-ID": last_event_id},
                            {"ready": same, "event": JobEvent.from_wire, "end": Job.from_wire})

    def list_projects(self) -> Projects:
        """The projects that the caller sees."""
        _, answer = self._call("GET", "/v1/projects", {}, {}, None)
        return Projects.from_wire(answer)

    def create_project(self, body: Union[ProjectRequest, Mapping[str, Any]]) -> Project:
        """Makes a project."""
        _, answer = self._call("POST", "/v1/projects", {}, {}, body)
        return Project.from_wire(answer)

    def get_project(self, name: str) -> Project:
        """One project."""
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}", {}, {}, None)
        return Project.from_wire(answer)

    def change_project(self, name: str, body: Union[ProjectChange, Mapping[str, Any]]) -> Project:
        """Changes what is given of a project."""
        _, answer = self._call("PATCH", f"/v1/projects/{_segment(name)}", {}, {}, body)
        return Project.from_wire(answer)

    def delete_project(self, name: str) -> None:
        """Removes a project.

        With its secrets and the roles in it. 409 while it has jobs that have not ended, or projects
        below it.
        """
        self._call("DELETE", f"/v1/projects/{_segment(name)}", {}, {}, None)

    def list_members(self, name: str) -> Members:
        """Who has a role in the project."""
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/members", {}, {}, None)
        return Members.from_wire(answer)

    def set_member(self, name: str, user: str, body: Union[MemberRole, Mapping[str, Any]]) -> None:
        """Gives a user a role in the project."""
        self._call("PUT", f"/v1/projects/{_segment(name)}/members/{_segment(user)}", {}, {}, body)

    def remove_member(self, name: str, user: str) -> None:
        """Takes a user's role in the project away."""
        self._call("DELETE", f"/v1/projects/{_segment(name)}/members/{_segment(user)}", {}, {}, None)

    def list_secrets(self, name: str) -> Secrets:
        """The project's secrets, without their values."""
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/secrets", {}, {}, None)
        return Secrets.from_wire(answer)

    def set_secret(self, name: str, secret: str, body: Union[SecretValue, Mapping[str, Any]]) -> Secret:
        """Sets a secret."""
        _, answer = self._call("PUT", f"/v1/projects/{_segment(name)}/secrets/{_segment(secret)}", {}, {}, body)
        return Secret.from_wire(answer)

    def delete_secret(self, name: str, secret: str) -> None:
        """Removes a secret."""
        self._call("DELETE", f"/v1/projects/{_segment(name)}/secrets/{_segment(secret)}", {}, {}, None)

    def list_notifications(self, name: str) -> Subscriptions:
        """Who is told when jobs of the project begin and end.

        Of a URL, only its admins see more than scheme, host and port.
        """
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/notifications", {}, {}, None)
        return Subscriptions.from_wire(answer)

    def add_notification(self, name: str, body: Union[SubscriptionRequest, Mapping[str, Any]]) -> KeyedSubscription:
        """Has an address told when jobs of the project begin and end.

        docs/notifications.md says what is sent. 403 for an address that is not to be reached.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/notifications", {}, {}, body)
        return KeyedSubscription.from_wire(answer)

    def remove_notification(self, name: str, id: str) -> None:
        """Removes a subscription.

        With what is still to be delivered to it.
        """
        self._call("DELETE", f"/v1/projects/{_segment(name)}/notifications/{_segment(id)}", {}, {}, None)

    def rotate_notification(self, name: str, id: str) -> KeyedSubscription:
        """Makes a new key for a subscription.

        The old one signs nothing any more.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/notifications/{_segment(id)}/rotate", {}, {},
                               None)
        return KeyedSubscription.from_wire(answer)

    def test_notification(self, name: str, id: str) -> PingResult:
        """Sends a ping now, once.

        409 while another is under way. A ping that arrives brings a subscription back that is gone.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/notifications/{_segment(id)}/test", {}, {},
                               None)
        return PingResult.from_wire(answer)

    def list_dead_letters(self, name: str) -> DeadLetters:
        """What could not be delivered.

        Newest first. They are kept for 7 days, the newest 1000 of a project.
        """
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/dead-letters", {}, {}, None)
        return DeadLetters.from_wire(answer)

    def retry_dead_letters(self, name: str, body: Union[DeadLetterIds, Mapping[str, Any]]) -> Retried:
        """Tries dead letters again.

        409 for one whose receiver has answered that it is gone.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/dead-letters/retry", {}, {}, body)
        return Retried.from_wire(answer)

    def get_tree(self, name: str, id: str) -> Tree:
        """Files that were sent.

        404 where the server does not have them.
        """
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/trees/{_segment(id)}", {}, {}, None)
        return Tree.from_wire(answer)

    def keep_tree(self, name: str, id: str, body: Union[ChunkIds, Mapping[str, Any]]) -> Tree:
        """Makes a tree of chunks that were sent.

        The chunks of the body, in their order, are the tree's manifest; the server has to have all
        that it names. Repeating it does no harm.
        """
        _, answer = self._call("PUT", f"/v1/projects/{_segment(name)}/trees/{_segment(id)}", {}, {}, body)
        return Tree.from_wire(answer)

    def missing_chunks(self, name: str, body: Union[ChunkIds, Mapping[str, Any]]) -> ChunkIds:
        """Which of these chunks the server does not have."""
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/chunks/missing", {}, {}, body)
        return ChunkIds.from_wire(answer)

    def put_chunks(self, name: str, body: bytes) -> None:
        """Sends chunks.

        Each chunk stands behind its length: four bytes, the most significant first. A body has at
        most 3.5 MiB, frames included. One that is there already does no harm.
        """
        self._call("PUT", f"/v1/projects/{_segment(name)}/chunks", {}, {}, body)

    def list_users(self) -> Users:
        """The users."""
        _, answer = self._call("GET", "/v1/users", {}, {}, None)
        return Users.from_wire(answer)

    def create_user(self, body: Union[UserRequest, Mapping[str, Any]]) -> NewUser:
        """Makes a user, and an invitation to log in with."""
        _, answer = self._call("POST", "/v1/users", {}, {}, body)
        return NewUser.from_wire(answer)

    def get_user(self, name: str) -> User:
        """One user."""
        _, answer = self._call("GET", f"/v1/users/{_segment(name)}", {}, {}, None)
        return User.from_wire(answer)

    def change_user(self, name: str, body: Union[UserChange, Mapping[str, Any]]) -> User:
        """Changes what is given of a user."""
        _, answer = self._call("PATCH", f"/v1/users/{_segment(name)}", {}, {}, body)
        return User.from_wire(answer)

    def delete_user(self, name: str) -> None:
        """Removes a user with all of its tokens."""
        self._call("DELETE", f"/v1/users/{_segment(name)}", {}, {}, None)

    def invite_user(self, name: str) -> NewToken:
        """Makes a new invitation for a user."""
        _, answer = self._call("POST", f"/v1/users/{_segment(name)}/invitation", {}, {}, None)
        return NewToken.from_wire(answer)

    def list_tokens(self, *, user: Optional[str] = None) -> Tokens:
        """The caller's tokens, or those of another user."""
        _, answer = self._call("GET", "/v1/tokens", {"user": user}, {}, None)
        return Tokens.from_wire(answer)

    def create_token(self, body: Union[TokenRequest, Mapping[str, Any]]) -> NewToken:
        """Makes a token for programs."""
        _, answer = self._call("POST", "/v1/tokens", {}, {}, body)
        return NewToken.from_wire(answer)

    def revoke_token(self, id: str) -> None:
        """Revokes a token."""
        self._call("DELETE", f"/v1/tokens/{_segment(id)}", {}, {}, None)

    def list_audit(self, *, user: Optional[str] = None, project: Optional[str] = None, action: Optional[str] = None,
                   since: Optional[Union[datetime.datetime, str]] = None, before: Optional[int] = None,
                   limit: Optional[int] = None) -> AuditPage:
        """What was changed, by whom, newest first."""
        _, answer = self._call("GET", "/v1/audit",
                               {"user": user, "project": project, "action": action, "since": since, "before": before, "limit": limit},
                               {}, None)
        return AuditPage.from_wire(answer)

    def list_nodes(self) -> Nodes:
        """The nodes."""
        _, answer = self._call("GET", "/v1/nodes", {}, {}, None)
        return Nodes.from_wire(answer)

    def get_node(self, name: str) -> Node:
        """One node."""
        _, answer = self._call("GET", f"/v1/nodes/{_segment(name)}", {}, {}, None)
        return Node.from_wire(answer)

    def cordon_node(self, name: str) -> Node:
        """Keeps new tasks off a node."""
        _, answer = self._call("POST", f"/v1/nodes/{_segment(name)}/cordon", {}, {}, None)
        return Node.from_wire(answer)

    def uncordon_node(self, name: str) -> Node:
        """Lets tasks onto a node again."""
        _, answer = self._call("POST", f"/v1/nodes/{_segment(name)}/uncordon", {}, {}, None)
        return Node.from_wire(answer)

    def drain_node(self, name: str) -> Node:
        """Cordons a node and evicts what runs there."""
        _, answer = self._call("POST", f"/v1/nodes/{_segment(name)}/drain", {}, {}, None)
        return Node.from_wire(answer)

    def list_machine_types(self) -> MachineTypes:
        """Machines by name.

        What a task claims that asks for one by its name.
        """
        _, answer = self._call("GET", "/v1/machine-types", {}, {}, None)
        return MachineTypes.from_wire(answer)
