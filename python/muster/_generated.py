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
#: launcher that runs the command, and workers that it reaches by ssh; `grpc` is a TensorFlow
#: cluster: a chief, workers and parameter servers, each of which runs the command; `torch` is a
#: master and workers, each of which runs the command with its rank and the master's address.
Kind = Literal["single", "mpi", "grpc", "torch"]

#: When an image is pulled: if the host lacks it, at each start, or never.
PullPolicy = Literal["if-missing", "always", "never"]

#: How a launcher reaches the workers that it starts ranks in. `ssh`: by ssh, and an sshd in each
#: worker. `agent`: by Muster's own remote shell; an image needs only its MPI. `srun`: Slurm's srun
#: starts the ranks, and MPI uses PMIx; only if the server runs jobs on Slurm. `auto`: by ssh if the
#: images have sshd and ssh, otherwise `agent`.
LaunchBy = Literal["auto", "ssh", "agent", "srun"]

#: Where a volume comes from.
VolumeKind = Literal["host_path", "tree", "storage", "artifacts"]

#: The purpose of a job sets its default priority, and whether it may be evicted.
Purpose = Literal["train", "build", "inference"]

#: How an elastic job handles workers that join and leave while it runs: it continues with the
#: present workers (`live`), or is restarted (`restart`). `auto`: `live` if its command supports it
#: (torchrun; an MPI program that calls discover_hosts.sh), otherwise `restart`.
Resize = Literal["auto", "live", "restart"]

#: How tasks are distributed over nodes.
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

#: Only files can be downloaded. A folder is listed only if the server cannot read it.
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

    #: The time of the output.
    time: datetime.datetime
    task: str
    #: The host name of the rank if it is known, otherwise of the task.
    host: str
    #: `notice`: a notice of Muster.
    stream: Literal["output", "error", "notice"]
    #: The attempt of the job that printed it; absent: unknown.
    attempt: Optional[int] = None
    #: The MPI rank that printed it, if known.
    rank: Optional[int] = None
    #: A line, without its newline; absent if `base64` is present.
    text: Optional[str] = None
    #: A line that is not UTF-8.
    base64: Optional[str] = None
    #: A long line was split here; the next record of its source continues it.
    continues: Optional[bool] = None


@dataclass
class Container(Record):
    """The isolation of a job's containers from their host. The default of each field is the stricter
    value.
    """

    pull: PullPolicy = "if-missing"
    #: The whole image is writable; otherwise only volumes, /tmp and the like.
    writable_root: bool = False
    #: Set-user-id programs gain privileges.
    new_privileges: bool = False
    #: Linux capabilities in addition to the default ones, each once, with or without `CAP_`.
    capabilities: Sequence[str] = field(default_factory=list)
    #: The size of /dev/shm. 0: the engine's default.
    shm_bytes: int = 0


@dataclass
class Slurm(Record):
    """Options for Slurm, in addition to those that follow from the rest of the spec. Other engines
    store them without effect. Absent or empty: Slurm's default.
    """

    #: Instead of the node pools; several are separated by commas.
    partition: str = ""
    #: Instead of the project's account.
    account: str = ""
    qos: str = ""
    reservation: str = ""
    #: Features of nodes with Slurm's operators: `a100&nvlink`.
    constraint: str = ""


@dataclass
class Resources(Record):
    """The resources of a task on a node: of each worker, or of the single task. 0: no claim."""

    #: Whole ones.
    gpus: int = 0
    #: That part of one GPU; 0: none. Cannot be used with `gpus`.
    gpu_share: float = 0.0
    #: The part of one GPU that has this memory; 0: none. Cannot be used with the other two.
    gpu_memory_bytes: int = 0
    #: Thousandths count.
    cpus: float = 0.0
    memory_bytes: int = 0


@dataclass
class RoleSpec(Record):
    """The program and resources of the tasks of one role, where they differ from the workers'."""

    #: Empty: the job's.
    image: str = ""
    #: If an image is given: its user. Empty: the image's own user.
    user: str = ""
    #: If an image is given: the login for its registry.
    registry: Optional[RegistryLogin] = None
    #: Empty: the job's command, with its arguments. Not for the launcher of kind `mpi`, which runs
    #: the job's command.
    command: Sequence[Text] = field(default_factory=list)
    #: If `command` is empty: after the job's arguments.
    arguments: Sequence[Text] = field(default_factory=list)
    #: Not inherited from the job.
    resources: Resources = field(default_factory=Resources)
    #: In addition to the job's.
    environment: Mapping[str, Text] = field(default_factory=dict)


@dataclass
class Scheduling(Record):
    """Settings that decide when and where a job runs, in addition to the resources of its tasks."""

    purpose: Purpose = "train"
    #: Absent: 50, 75, 100 or 125 by purpose.
    priority: Optional[int] = None
    #: Absent: below priority 100.
    preemptible: Optional[bool] = None
    #: Elastic: the minimum number of running workers. Kind `mpi`: at least 1; not for kind
    #: `single`.
    min_workers: Optional[int] = None
    #: Values other than `auto` require `min_workers`; `live` with kind `grpc` requires parameter
    #: servers.
    resize: Resize = "auto"
    #: Tried in this order; empty: any pool of the project.
    node_pools: Sequence[str] = field(default_factory=list)
    #: Any of these; empty: any.
    gpu_models: Sequence[str] = field(default_factory=list)
    packing: Packing = "auto"
    #: A level such as `rack`: all tasks are placed in one domain; empty: anywhere.
    required_topology: str = ""
    #: All tasks are placed in one domain if there is room.
    preferred_topology: str = ""
    #: The job is ended after this time; absent: no limit.
    time_limit_ms: Optional[int] = None
    #: The number of restarts after a failure of the job.
    retries: int = 0
    retry_rules: Sequence[RetryRule] = field(default_factory=list)


@dataclass
class JobSpec(Record):
    """A job to submit. Absent and null fields have their defaults."""

    #: 1 to 48 of a-z, 0-9 and `-`, a letter or digit at both ends; unique in its project.
    name: str
    #: argv of the single task, of the launcher, or of every worker of kind `grpc` or `torch`.
    #: Empty: the image's command. No word contains a NUL byte, and the first word is not empty.
    command: Sequence[Text]
    #: Working directory of every task: an absolute path.
    folder: Text
    #: Empty: that of the client's context, else `default`.
    project: str = ""
    kind: Kind = "single"
    #: The image of the tasks. An engine that does not run images uses a stand-in for it, or the
    #: machine's own files.
    image: str = ""
    #: The user of the tasks: `USER` or `USER:GROUP`, each a name or a number of the image. Empty:
    #: the image's own user. Requires an image.
    user: str = ""
    #: The login for the image's registry. Requires an image.
    registry: Optional[RegistryLogin] = None
    #: The isolation of its containers from their hosts. Requires an image.
    container: Container = field(default_factory=Container)
    #: Options for Slurm, if the server runs jobs there.
    slurm: Slurm = field(default_factory=Slurm)
    #: Of kind `mpi`.
    launch: LaunchBy = "auto"
    #: The command replaces the image's entry point; otherwise it is passed to the entry point.
    #: False requires an image.
    replaces_entrypoint: bool = True
    #: Arguments after the command.
    arguments: Sequence[Text] = field(default_factory=list)
    #: Kind `mpi`: the command of the workers, beside their sshd.
    worker_command: Sequence[Text] = field(default_factory=list)
    #: The number of workers, without the launcher, chief or master. Kind `mpi`: 1 to 1000; kind
    #: `single`: 0.
    workers: int = 0
    #: The number of ranks for each worker.
    slots_per_worker: int = 1
    resources: Resources = field(default_factory=Resources)
    #: The launcher (without a command of its own), the chief or the master.
    leader: RoleSpec = field(default_factory=RoleSpec)
    #: Kind `mpi`: the number of ranks for the launcher, which is then last in the hostfile.
    leader_slots: int = 0
    #: Kind `mpi`: the job may succeed even if its command started no process in a worker.
    allow_launcher_only: bool = False
    #: Kind `grpc`; at most 1000 together with the workers.
    parameter_servers: int = 0
    parameter_server: RoleSpec = field(default_factory=RoleSpec)
    #: Kind `grpc`: the tasks that evaluate checkpoints beside the cluster.
    evaluators: int = 0
    evaluator: RoleSpec = field(default_factory=RoleSpec)
    #: Files and folders that are mounted in the tasks.
    volumes: Sequence[Volume] = field(default_factory=list)
    #: The job is suspended from the beginning, until `resume`.
    held: bool = False
    #: The program of the launcher, chief, master or single task reads the input of attached
    #: clients; otherwise its input is empty.
    input: bool = False
    #: That program has a terminal, which combines its standard output and error.
    terminal: bool = False
    #: How long the ended job is kept, with its logs and artifacts. Absent: the server's setting.
    keep_for_ms: Optional[int] = None
    #: Labels for selecting jobs; a label with an empty value is a tag. A name is 1 to 128 bytes of
    #: text without `=`, a value at most 256 bytes; at most 64 labels.
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Stored for the submitter: at most 64 KiB together.
    annotations: Mapping[str, Text] = field(default_factory=dict)
    scheduling: Scheduling = field(default_factory=Scheduling)
    environment: Mapping[str, Text] = field(default_factory=dict)
    secrets: Sequence[SecretUse] = field(default_factory=list)
    sandbox: Sandbox = "bubblewrap"
    #: The time until every worker must answer.
    start_timeout_ms: int = 30000
    #: The time between SIGTERM and SIGKILL.
    grace_ms: int = 10000


@dataclass
class RegistryLogin(Record):
    """See the API's document: RegistryLogin."""

    username: str
    #: The project's secret that contains the password.
    secret: str
    #: Absent or empty: the registry in the image's name.
    server: str = ""


@dataclass
class Volume(Record):
    """A file or folder that is mounted in the tasks."""

    kind: VolumeKind
    #: An absolute path without `.`, `..` and a `/` at its end; not `/`, `/proc`, `/sys`, `/dev` or
    #: `/generated`, or below these.
    target: Text
    #: `host_path`: the absolute path of a file or folder of the node. `tree`: the id of uploaded
    #: files, of which each job has a copy; empty: an empty folder. `storage`: the name of a folder
    #: of the project, which outlives its jobs. `artifacts`, a folder that is kept as long as the
    #: job: empty.
    source: Text = ""
    read_only: bool = False


@dataclass
class RetryRule(Record):
    """The action when a task fails in this way; the first matching rule counts. Requires `exit_code`,
    `log_pattern` or both.
    """

    #: `retry` costs one retry; `avoid-node` costs none and keeps the job off that node.
    action: RetryAction
    #: The exit code of the failed task, as a shell shows it (137: SIGKILL).
    exit_code: Optional[int] = None
    #: A regular expression (ECMAScript) that matches in its last lines; empty: any.
    log_pattern: Text = ""


@dataclass
class SecretUse(Record):
    """A secret for the tasks: as a variable, as a file, or both."""

    #: The name of a secret of the project.
    name: str
    #: The environment variable; empty: none.
    variable: str = ""
    #: A path below /generated/secrets; empty: no file.
    file: str = ""


@dataclass(frozen=True)
class ServerInfo(Record):
    """See the API's document: ServerInfo."""

    version: str
    #: 0 unless the caller is an admin of the server.
    pid: int
    #: Empty unless the caller is an admin of the server.
    state_folder: str
    #: Its configuration file was changed after it was read. False unless the caller is an admin of
    #: the server.
    config_changed: bool
    #: The engine of its tasks: `process`, `container` or `slurm`.
    engine: Optional[str] = None
    #: HOST:PORT for other machines. Absent: it serves only a unix socket, or the caller is not an
    #: admin of the server.
    address: Optional[str] = None


@dataclass(frozen=True)
class Job(Record):
    """See the API's document: Job."""

    #: Never reused.
    id: str
    #: The user who submitted it.
    owner: str
    spec: JobSpec
    phase: Phase
    #: Why it waits, or what it does now.
    reason: str
    #: The holders of the resources that the job needs, and remedies.
    reason_details: List[Sentence]
    #: The number of times its gang was started.
    attempt: int
    #: The number of attempts that were abandoned for another.
    restarts: int
    retries_used: int
    #: The nodes that its retry rules avoid.
    avoided_nodes: List[str]
    #: It waits only for `resume`.
    suspended: bool
    stop_requested: bool
    submitted: datetime.datetime
    tasks: List[Task]
    events: List[Event]
    #: `reason` as data: its `kind`, and the fields of that kind; `details` has such an object for
    #: each fact behind it.
    reason_facts: Optional[Dict[str, Any]] = None
    #: Why it is being evicted.
    eviction: Optional[Sentence] = None
    #: `eviction` as data.
    eviction_fact: Optional[Dict[str, Any]] = None
    #: While it waits: when resources are expected to be free.
    may_start: Optional[datetime.datetime] = None
    #: When it became Running.
    started: Optional[datetime.datetime] = None
    ended: Optional[datetime.datetime] = None
    #: The exit code of the deciding task, after the job has ended.
    exit_code: Optional[int] = None
    failure: Optional[Failure] = None
    #: For the last attempt of a job of kind `mpi`, once it is known.
    launch: Optional[Launch] = None
    #: For an ended job: when the server removes it.
    kept_until: Optional[datetime.datetime] = None
    #: The store's record of the job is unreadable: only its id, name and project are known.
    unreadable: Optional[bool] = None
    #: As reported by its program; for running jobs, and for ended jobs that are requested by name.
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
    #: The MPI rank that failed first, if known.
    rank: Optional[int] = None
    #: `cause` as data: its `kind`, and the fields of that kind.
    cause_fact: Optional[Dict[str, Any]] = None


@dataclass(frozen=True)
class Launch(Record):
    """How the ranks of an MPI job were started."""

    #: `ssh`, `agent` or `srun`; `auto`: not known yet.
    by: LaunchBy
    #: The reason, such as `the images have sshd and ssh`.
    why: str
    #: The MPI of mpirun, such as `Open MPI 4.1.4`; empty: unknown.
    mpi: str


@dataclass(frozen=True)
class Progress(Record):
    """The progress that a program reports: `done` of `total` epochs or steps are complete."""

    #: Empty: a fraction of 1.
    unit: Literal["epoch", "step", ""]
    done: float
    total: float
    #: Estimated from the pace so far.
    ends: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class Task(Record):
    """See the API's document: Task."""

    #: `launcher`, `chief`, `master`, `worker-0`, `ps-0`, `evaluator-0`, `main`.
    name: str
    role: TaskRole
    hostname: str
    #: Its number among the tasks of the job. A worker that replaces another has the same seat, and
    #: a new name.
    seat: int
    #: Its node; empty while it waits.
    node: str
    #: Its GPUs there.
    devices: List[int]
    #: The share of each GPU: 1, or a fraction.
    gpu_share: float
    phase: TaskPhase
    #: It ended, or is being ended, while its elastic job continues without it.
    left: bool
    exit: Optional[ExitStatus] = None
    started: Optional[datetime.datetime] = None
    ended: Optional[datetime.datetime] = None


@dataclass(frozen=True)
class ExitStatus(Record):
    """See the API's document: ExitStatus."""

    #: The program's exit code; 0 if a signal ended it.
    code: int
    #: The signal that ended it, or 0.
    signal: int
    #: A process was killed because memory was used up.
    out_of_memory: bool
    #: The task was asked to stop before it ended.
    stopped: bool
    #: Its end was not observed.
    lost: bool
    #: Why the program could not be started; empty: it was started.
    error: Sentence
    #: Advice on the error; may be empty.
    advice: Sentence
    #: The amount of output that is missing in the log because its disk was full.
    lost_log_bytes: int
    #: A sentence that explains the end.
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

    #: Unique among the events of a server.
    time: datetime.datetime
    text: str
    #: `text` as data: its `kind`, and the fields of that kind. Fields that are zero, empty or
    #: hidden from the caller are omitted. Later versions may add kinds and fields.
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
    #: A code for programs (`room`, `quota`, ...). Empty: the job does not wait.
    constraint: str
    #: Why it waits.
    reason: str
    #: The holders of the resources that the job needs, and remedies.
    details: List[Sentence]
    #: The position in the queue, from 1. 0: the job does not wait.
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
    #: Where it would start now.
    placing: List[Placing]
    #: The jobs that would be evicted for it, and why.
    evictions: List[Sentence]
    #: The same as data, for the jobs that the caller may see.
    eviction_facts: List[ExpectedEviction]
    #: Jobs that the caller may not see would be evicted, too.
    hides_evictions: bool
    #: Why it would wait.
    reason: str
    #: The holders of the resources that the job needs, and remedies.
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
    #: Empty: top level.
    parent: str
    #: In every pool that is not in `pools`.
    quota: Quota
    pools: Dict[str, Quota]
    #: Projects with a larger number are served first from resources that others leave unused.
    priority: int
    reclaim_min_runtime_ms: int
    preempt_min_runtime_ms: int
    #: Only for the project `default`: its quota is all GPUs that are in no other project's quota.
    takes_the_rest: bool
    #: The order of creation.
    sequence: int
    created: datetime.datetime
    status: ProjectUse


@dataclass(frozen=True)
class Quota(Record):
    """See the API's document: Quota."""

    #: The resources that the project can always claim.
    deserved: Share
    #: The resources that the project never exceeds.
    limit: Share
    #: The project's share of resources that other projects leave unused.
    weight: float


@dataclass(frozen=True)
class Share(Record):
    """null: no limit, or in a quota all resources."""

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
    #: The sum over running and waiting jobs.
    requested: Amounts
    fair_share: Share
    #: Jobs, including those of subprojects.
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
    """Other labels are not changed."""

    #: Each label gets its value, or is removed if the value is null.
    labels: Mapping[str, Optional[str]]


@dataclass(frozen=True)
class RemovedJob(Record):
    """A job that no longer exists."""

    id: str
    name: str
    project: str


@dataclass(frozen=True)
class JobEvent(Record):
    """An event of a job."""

    #: Unique among the events of a server.
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
    #: gpu_memory_free_bytes, gpu_power_watts, gpu_temperature_celsius. Any other metric is reported
    #: by the program.
    metric: str
    task: str
    #: Oldest first.
    points: List[MetricPoint]
    #: If the program reported it.
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
    """An absent field is not changed; null removes the limit."""

    gpus: Union[float, None, Unset] = field(default=UNSET, metadata={"null": True})
    cpus: Union[float, None, Unset] = field(default=UNSET, metadata={"null": True})
    memory_bytes: Union[int, None, Unset] = field(default=UNSET, metadata={"null": True})


@dataclass
class QuotaChange:
    """See the API's document: QuotaChange."""

    deserved: Optional[Union[ShareChange, Mapping[str, Any]]] = None
    limit: Optional[Union[ShareChange, Mapping[str, Any]]] = None
    #: The project's share of resources that other projects leave unused.
    weight: Optional[float] = None


@dataclass
class ProjectRequest:
    """An absent field has its default."""

    #: 1 to 63 of a-z, 0-9 and `-`, a letter or digit at both ends.
    name: str
    #: Empty: top level.
    parent: Optional[str] = None
    quota: Optional[Union[QuotaChange, Mapping[str, Any]]] = None
    #: null instead of a quota removes the pool's own quota.
    pools: Optional[Mapping[str, Optional[Union[QuotaChange, Mapping[str, Any]]]]] = None
    priority: Optional[int] = None
    reclaim_min_runtime_ms: Optional[int] = None
    preempt_min_runtime_ms: Optional[int] = None
    #: Only for the project `default`. A quota of GPUs ends it.
    takes_the_rest: Optional[bool] = None
    #: Ignored, so that a client can send back a project that it has read.
    sequence: Any = None
    #: Ignored.
    created: Any = None
    #: Ignored.
    status: Any = None


@dataclass
class ProjectChange:
    """An absent field is not changed."""

    #: Must be the name in the path: a project cannot be renamed.
    name: Optional[str] = None
    #: Empty: top level.
    parent: Optional[str] = None
    quota: Optional[Union[QuotaChange, Mapping[str, Any]]] = None
    #: null instead of a quota removes the pool's own quota.
    pools: Optional[Mapping[str, Optional[Union[QuotaChange, Mapping[str, Any]]]]] = None
    priority: Optional[int] = None
    reclaim_min_runtime_ms: Optional[int] = None
    preempt_min_runtime_ms: Optional[int] = None
    #: Only for the project `default`. A quota of GPUs ends it.
    takes_the_rest: Optional[bool] = None
    #: Ignored, so that a client can send back a project that it has read.
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
    #: `draining`: cordoned, here or by the cluster, while jobs still run.
    state: Literal["ready", "cordoned", "draining", "gone"]
    cpus: float
    cpus_free: float
    memory_bytes: int
    memory_bytes_free: int
    devices: List[Device]
    #: The jobs with tasks there, as far as the caller may see them.
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
    #: The free part, of 1.
    free: float
    #: The jobs with tasks on it, as far as the caller may see them.
    jobs: List[str]


@dataclass(frozen=True)
class Nodes(Record):
    """See the API's document: Nodes."""

    #: By name.
    nodes: List[Node]


@dataclass(frozen=True)
class MachineType(Record):
    """A machine type by its name in clouds, with the resources of a task that requests it. 0: no
    claim.
    """

    #: `p2.xlarge`, `V100`. Not case-sensitive.
    name: str
    #: For people. It does not restrict where a task runs.
    gpu_model: str
    #: Whole ones.
    gpus: int
    #: That part of one GPU; 0: none. Cannot be used with `gpus`.
    gpu_share: float
    #: The part of one GPU that has this memory; 0: none. Cannot be used with the other two.
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
    #: The user's role in each project and its subprojects.
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
    #: Roles in these projects and their subprojects.
    projects: Dict[str, Role]
    #: The server refuses the user's tokens.
    disabled: bool
    created: datetime.datetime


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
    #: Roles in these projects and their subprojects.
    projects: Optional[Mapping[str, Role]] = None
    disabled: bool = False
    #: Ignored: the server sets it.
    created: Any = None


@dataclass
class UserChange:
    """An absent field is not changed."""

    server_role: Optional[Role] = None
    #: Changed roles. `none` removes the user from the project.
    projects: Optional[Mapping[str, Role]] = None
    disabled: Optional[bool] = None


@dataclass(frozen=True)
class Token(Record):
    """A token without its text, which the server does not store."""

    #: Identifies the token. It is not secret.
    id: str
    user: str
    kind: TokenKind
    description: Sentence
    #: The highest role that the token gives, even if its user's is higher.
    ceiling: Role
    #: The token is valid for these projects and their subprojects. Empty: for all projects of its
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

    #: The token's user. Absent or empty: the caller.
    user: Optional[str] = None
    description: Optional[Text] = None
    #: The highest role that the token gives.
    ceiling: Role = "admin"
    #: The token is valid for these projects and their subprojects. Empty: for all projects of the
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
    #: The machine of the session, for `muster token list`.
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
    #: Empty: the field is no longer set.
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
    #: More artifacts follow.
    truncated: Optional[bool] = None


@dataclass(frozen=True)
class Artifact(Record):
    """See the API's document: Artifact."""

    #: Relative to the folder, with '/' between names.
    path: Text
    kind: ArtifactKind
    #: The size of a file. 0 for other kinds.
    bytes: int
    modified: datetime.datetime
    #: The checksum of a file, if it was requested and the file did not change while it was read.
    sha256: Optional[str] = None


@dataclass
class SubscriptionRequest:
    """See the API's document: SubscriptionRequest."""

    #: An https URL without user and fragment.
    url: str
    #: The events of jobs that are sent.
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
    #: When the receiver answered 410. Since then nothing is sent.
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
    #: The signing key. Only this answer contains it.
    key: str


@dataclass(frozen=True)
class PingResult(Record):
    """See the API's document: PingResult."""

    arrived: bool
    #: The HTTP status of the answer. 0: no answer.
    status: int
    #: Why it was not delivered.
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
    #: When it was given up.
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

    #: The number of notifications that are sent again.
    retried: int


@dataclass(frozen=True)
class Tree(Record):
    """Files that a client uploaded for jobs."""

    #: The hash of the content: equal files have equal ids.
    id: str
    bytes: int
    files: int


@dataclass
class ChunkIds(Record):
    """Pieces of files, identified by the SHA-256 of their content."""

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
        """Whether the server accepts requests."""
        _, answer = self._call("GET", "/readyz", {}, {}, None)
        return Health.from_wire(answer)

    def get_contract(self) -> Dict[str, Any]:
        """This document."""
        _, answer = self._call("GET", "/openapi.json", {}, {}, None)
        result: Dict[str, Any] = answer
        return result

    def get_metrics(self) -> str:
        """Metrics for Prometheus."""
        _, answer = self._call("GET", "/metrics", {}, {}, None)
        result: str = answer
        return result

    def get_info(self) -> ServerInfo:
        """The server's version and settings."""
        _, answer = self._call("GET", "/v1/info", {}, {}, None)
        return ServerInfo.from_wire(answer)

    def shut_down(self) -> None:
        """Stops the server; jobs continue.

        Over the unix socket only.
        """
        self._call("POST", "/v1/shutdown", {}, {}, None)

    def log_in(self, body: Union[LoginRequest, Mapping[str, Any]]) -> NewToken:
        """Exchanges an invitation, or any token, for a session.

        An invitation is used up; any other token remains valid. Over the unix socket a login is not
        possible: 409.
        """
        _, answer = self._call("POST", "/v1/login", {}, {}, body)
        return NewToken.from_wire(answer)

    def log_out(self) -> None:
        """Revokes the token of the request.

        A request over the unix socket has no token: 409.
        """
        self._call("POST", "/v1/logout", {}, {}, None)

    def who_am_i(self) -> WhoAmI:
        """The caller, with its roles."""
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
        """Submits a job, or returns a forecast."""
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
        """Deletes an ended job with its logs.

        409 if the job has not ended.
        """
        self._call("DELETE", f"/v1/jobs/{_segment(name)}", {"project": project}, {}, None)

    def set_labels(self, name: str, body: Union[LabelChanges, Mapping[str, Any]], *,
                   project: Optional[str] = None) -> Job:
        """Sets and removes labels of a job."""
        _, answer = self._call("PATCH", f"/v1/jobs/{_segment(name)}", {"project": project}, {}, body)
        return Job.from_wire(answer)

    def stop_job(self, name: str, *, project: Optional[str] = None, now: Optional[bool] = None) -> Job:
        """Asks a job to end.

        Sends SIGTERM, and SIGKILL after the grace period. An ended job is returned unchanged.
        """
        _, answer = self._call("POST", f"/v1/jobs/{_segment(name)}/stop", {"project": project, "now": now}, {}, None)
        return Job.from_wire(answer)

    def suspend_job(self, name: str, *, project: Optional[str] = None) -> Job:
        """Suspends a job and releases its resources."""
        _, answer = self._call("POST", f"/v1/jobs/{_segment(name)}/suspend", {"project": project}, {}, None)
        return Job.from_wire(answer)

    def resume_job(self, name: str, *, project: Optional[str] = None) -> Job:
        """Resumes a suspended job."""
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
        are sent while there is no output. From time to time an id is sent alone: it identifies the
        place that the log has reached. After a lost connection, repeat the request with `Last-
        Event-ID`: the answer has everything after that place, to the byte. It may be split into
        records differently: drop the bytes that were received after the last id, counted for each
        source (a stream of a rank of a task in an attempt; newlines count). If `accept` contains
        `application/vnd.muster.log-event-stream`, the same is sent as binary frames, for Muster's
        own programs.
        """
        return self._events(f"/v1/jobs/{_segment(name)}/logs",
                            {"project": project, "follow": follow, "task": task, "rank": rank, "grep": grep, "since": since, "tail": tail},
                            {"Last-Event-ID": last_event_id}, {"log": LogRecord.from_wire, "end": Job.from_wire})

    def list_artifacts(self, name: str, *, project: Optional[str] = None, checksums: Optional[bool] = None,
                       prefix: Optional[str] = None, after: Optional[str] = None) -> ArtifactList:
        """The files in a job's artifact folder.

        The present files, by path, while the job runs and afterwards. Links, pipes, sockets and
        devices are listed, but never followed or opened. If there are too many for one answer, it
        is truncated: repeat the request with `after`, the last path.
        """
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}/artifacts",
                               {"project": project, "checksums": checksums, "prefix": prefix, "after": after}, {},
                               None)
        return ArtifactList.from_wire(answer)

    def get_artifact(self, name: str, *, project: Optional[str] = None, path: Optional[str] = None,
                     range: Optional[str] = None, if_match: Optional[str] = None,
                     if_range: Optional[str] = None) -> bytes:
        """The bytes of an artifact.

        The bytes of the file at the time of opening; `content-length` is their number. If the file
        is truncated meanwhile, the connection is closed early. The `etag` is its SHA-256 if a list
        with checksums has computed it; otherwise it identifies the present version of the file.
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
        """The metrics of a job.

        The metrics that Muster samples for each task, and those that the program reports, of the
        job's present attempt, or of the last attempt of an ended job. A series has at most 2000
        points: if there are more, neighbours are replaced by their mean. A job has at most 1000
        series.
        """
        _, answer = self._call("GET", f"/v1/jobs/{_segment(name)}/metrics",
                               {"project": project, "metric": Each.of(metric), "task": task, "rank": rank, "since": since, "until": until, "interval": interval, "last": last},
                               {}, None)
        return Metrics.from_wire(answer)

    def list_queue(self) -> Jobs:
        """The waiting jobs, in the order in which they would be served."""
        _, answer = self._call("GET", "/v1/queue", {}, {}, None)
        return Jobs.from_wire(answer)

    def stream_jobs(self, *, project: Optional[str] = None, name: Optional[str] = None,
                    last_event_id: Optional[str] = None) -> Iterator[StreamEvent[Union[Job, Dict[str, Any], RemovedJob]]]:
        """The existing jobs, and then each change.

        First a `job` event for each existing job, then `ready`, then `job` and `removed` events for
        changes. If a job changed several times while the client did not read, only its last state
        is sent. After a lost connection, continue with `Last-Event-ID`; if the changes since then
        are no longer known, a `reset` event announces that all jobs follow again.
        """
        return self._events("/v1/watch/jobs", {"project": project, "name": name}, {"Last-Event-ID": last_event_id},
                            {"job": Job.from_wire, "ready": same, "removed": RemovedJob.from_wire, "reset": same})

    def stream_events(self, *, project: Optional[str] = None, name: Optional[str] = None,
                      since: Optional[Union[datetime.datetime, str]] = None,
                      last_event_id: Optional[str] = None) -> Iterator[StreamEvent[Union[Dict[str, Any], JobEvent, Job]]]:
        """The events of jobs, as they occur.

        First a `ready` event, whose id is a place to continue from. Then `event` events in the
        order of time. With `name`, an `end` event with the Job is sent when it has ended.
        """
        return self._events("/v1/watch/events", {"project": project, "name": name, "since": since},
                            {"Last-Event-ID": last_event_id},
                            {"ready": same, "event": JobEvent.from_wire, "end": Job.from_wire})

    def list_projects(self) -> Projects:
        """The projects that the caller may see."""
        _, answer = self._call("GET", "/v1/projects", {}, {}, None)
        return Projects.from_wire(answer)

    def create_project(self, body: Union[ProjectRequest, Mapping[str, Any]]) -> Project:
        """Creates a project."""
        _, answer = self._call("POST", "/v1/projects", {}, {}, body)
        return Project.from_wire(answer)

    def get_project(self, name: str) -> Project:
        """One project."""
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}", {}, {}, None)
        return Project.from_wire(answer)

    def change_project(self, name: str, body: Union[ProjectChange, Mapping[str, Any]]) -> Project:
        """Changes the given fields of a project."""
        _, answer = self._call("PATCH", f"/v1/projects/{_segment(name)}", {}, {}, body)
        return Project.from_wire(answer)

    def delete_project(self, name: str) -> None:
        """Deletes a project.

        Also deletes its secrets and roles. 409 if it has jobs that have not ended, or subprojects.
        """
        self._call("DELETE", f"/v1/projects/{_segment(name)}", {}, {}, None)

    def list_members(self, name: str) -> Members:
        """The members of the project."""
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/members", {}, {}, None)
        return Members.from_wire(answer)

    def set_member(self, name: str, user: str, body: Union[MemberRole, Mapping[str, Any]]) -> None:
        """Gives a user a role in the project."""
        self._call("PUT", f"/v1/projects/{_segment(name)}/members/{_segment(user)}", {}, {}, body)

    def remove_member(self, name: str, user: str) -> None:
        """Removes a user's role in the project."""
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
        """Deletes a secret."""
        self._call("DELETE", f"/v1/projects/{_segment(name)}/secrets/{_segment(secret)}", {}, {}, None)

    def list_notifications(self, name: str) -> Subscriptions:
        """The subscriptions to events of the project's jobs.

        Only admins of the project see complete URLs; others see scheme, host and port.
        """
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/notifications", {}, {}, None)
        return Subscriptions.from_wire(answer)

    def add_notification(self, name: str, body: Union[SubscriptionRequest, Mapping[str, Any]]) -> KeyedSubscription:
        """Subscribes an address to events of the project's jobs.

        docs/notifications.md describes the requests. 403 for an address that is not allowed.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/notifications", {}, {}, body)
        return KeyedSubscription.from_wire(answer)

    def remove_notification(self, name: str, id: str) -> None:
        """Removes a subscription.

        Also deletes its undelivered notifications.
        """
        self._call("DELETE", f"/v1/projects/{_segment(name)}/notifications/{_segment(id)}", {}, {}, None)

    def rotate_notification(self, name: str, id: str) -> KeyedSubscription:
        """Replaces the key of a subscription.

        The old key is no longer used.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/notifications/{_segment(id)}/rotate", {}, {},
                               None)
        return KeyedSubscription.from_wire(answer)

    def test_notification(self, name: str, id: str) -> PingResult:
        """Sends one test request now.

        409 while another test is running. A successful test reactivates a subscription whose
        receiver answered 410.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/notifications/{_segment(id)}/test", {}, {},
                               None)
        return PingResult.from_wire(answer)

    def list_dead_letters(self, name: str) -> DeadLetters:
        """Undelivered notifications.

        Newest first. The newest 1000 of a project are kept, for 7 days.
        """
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/dead-letters", {}, {}, None)
        return DeadLetters.from_wire(answer)

    def retry_dead_letters(self, name: str, body: Union[DeadLetterIds, Mapping[str, Any]]) -> Retried:
        """Sends dead letters again.

        409 for a dead letter whose receiver answered 410.
        """
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/dead-letters/retry", {}, {}, body)
        return Retried.from_wire(answer)

    def get_tree(self, name: str, id: str) -> Tree:
        """Uploaded files.

        404 if the server does not have them.
        """
        _, answer = self._call("GET", f"/v1/projects/{_segment(name)}/trees/{_segment(id)}", {}, {}, None)
        return Tree.from_wire(answer)

    def keep_tree(self, name: str, id: str, body: Union[ChunkIds, Mapping[str, Any]]) -> Tree:
        """Creates a tree from uploaded chunks.

        The chunks of the body, in their order, are the tree's manifest; the server must have all
        chunks in it. The request may be repeated.
        """
        _, answer = self._call("PUT", f"/v1/projects/{_segment(name)}/trees/{_segment(id)}", {}, {}, body)
        return Tree.from_wire(answer)

    def missing_chunks(self, name: str, body: Union[ChunkIds, Mapping[str, Any]]) -> ChunkIds:
        """The chunks that the server lacks."""
        _, answer = self._call("POST", f"/v1/projects/{_segment(name)}/chunks/missing", {}, {}, body)
        return ChunkIds.from_wire(answer)

    def put_chunks(self, name: str, body: bytes) -> None:
        """Uploads chunks.

        Each chunk is preceded by its length: four bytes, most significant first. A body has at most
        3.5 MiB, including the lengths. An existing chunk may be sent again.
        """
        self._call("PUT", f"/v1/projects/{_segment(name)}/chunks", {}, {}, body)

    def list_users(self) -> Users:
        """The users."""
        _, answer = self._call("GET", "/v1/users", {}, {}, None)
        return Users.from_wire(answer)

    def create_user(self, body: Union[UserRequest, Mapping[str, Any]]) -> NewUser:
        """Creates a user, and an invitation for the first login."""
        _, answer = self._call("POST", "/v1/users", {}, {}, body)
        return NewUser.from_wire(answer)

    def get_user(self, name: str) -> User:
        """One user."""
        _, answer = self._call("GET", f"/v1/users/{_segment(name)}", {}, {}, None)
        return User.from_wire(answer)

    def change_user(self, name: str, body: Union[UserChange, Mapping[str, Any]]) -> User:
        """Changes the given fields of a user."""
        _, answer = self._call("PATCH", f"/v1/users/{_segment(name)}", {}, {}, body)
        return User.from_wire(answer)

    def delete_user(self, name: str) -> None:
        """Deletes a user with all of its tokens."""
        self._call("DELETE", f"/v1/users/{_segment(name)}", {}, {}, None)

    def invite_user(self, name: str) -> NewToken:
        """Creates a new invitation for a user."""
        _, answer = self._call("POST", f"/v1/users/{_segment(name)}/invitation", {}, {}, None)
        return NewToken.from_wire(answer)

    def list_tokens(self, *, user: Optional[str] = None) -> Tokens:
        """The caller's tokens, or those of another user."""
        _, answer = self._call("GET", "/v1/tokens", {"user": user}, {}, None)
        return Tokens.from_wire(answer)

    def create_token(self, body: Union[TokenRequest, Mapping[str, Any]]) -> NewToken:
        """Creates a token for programs."""
        _, answer = self._call("POST", "/v1/tokens", {}, {}, body)
        return NewToken.from_wire(answer)

    def revoke_token(self, id: str) -> None:
        """Revokes a token."""
        self._call("DELETE", f"/v1/tokens/{_segment(id)}", {}, {}, None)

    def list_audit(self, *, user: Optional[str] = None, project: Optional[str] = None, action: Optional[str] = None,
                   since: Optional[Union[datetime.datetime, str]] = None, before: Optional[int] = None,
                   limit: Optional[int] = None) -> AuditPage:
        """The audit log, newest first."""
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
        """Allows new tasks on a node again."""
        _, answer = self._call("POST", f"/v1/nodes/{_segment(name)}/uncordon", {}, {}, None)
        return Node.from_wire(answer)

    def drain_node(self, name: str) -> Node:
        """Cordons a node and evicts its jobs."""
        _, answer = self._call("POST", f"/v1/nodes/{_segment(name)}/drain", {}, {}, None)
        return Node.from_wire(answer)

    def list_machine_types(self) -> MachineTypes:
        """Machine types.

        The resources of a task that requests a machine type.
        """
        _, answer = self._call("GET", "/v1/machine-types", {}, {}, None)
        return MachineTypes.from_wire(answer)
