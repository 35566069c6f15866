#include "job/job.h"

#include <algorithm>
#include <array>

#include "record/field.h"

namespace muster::job {

namespace {

constexpr std::array<record::Named<Phase>, 6> kPhases{{{Phase::kQueued, "Queued"},
                                                       {Phase::kStarting, "Starting"},
                                                       {Phase::kRunning, "Running"},
                                                       {Phase::kSucceeded, "Succeeded"},
                                                       {Phase::kFailed, "Failed"},
                                                       {Phase::kStopped, "Stopped"}}};

constexpr std::array<record::Named<TaskRole>, 7> kRoles{{{TaskRole::kLauncher, "launcher"},
                                                         {TaskRole::kWorker, "worker"},
                                                         {TaskRole::kSingle, "single"},
                                                         {TaskRole::kChief, "chief"},
                                                         {TaskRole::kParameterServer, "ps"},
                                                         {TaskRole::kMaster, "master"},
                                                         {TaskRole::kEvaluator, "evaluator"}}};

constexpr std::array<record::Named<JobOrigin::Kind>, 4> kOriginKinds{
    {{JobOrigin::Kind::kRerun, "rerun"},
     {JobOrigin::Kind::kArray, "array"},
     {JobOrigin::Kind::kSweep, "sweep"},
     {JobOrigin::Kind::kSchedule, "schedule"}}};

constexpr std::array<record::Named<TaskPhase>, 4> kTaskPhases{{{TaskPhase::kPending, "Pending"},
                                                               {TaskPhase::kStarting, "Starting"},
                                                               {TaskPhase::kRunning, "Running"},
                                                               {TaskPhase::kEnded, "Ended"}}};

Task make_task(const JobSpec& spec, const std::string& name, TaskRole role) {
  return {.name = name, .role = role, .hostname = spec.name + "-" + name};
}

Task leader_of(const JobSpec& spec) {
  switch (spec.kind) {
    case Kind::kMpi:
      return make_task(spec, "launcher", TaskRole::kLauncher);
    case Kind::kGrpc:
      return make_task(spec, "chief", TaskRole::kChief);
    case Kind::kTorch:
      return make_task(spec, "master", TaskRole::kMaster);
    case Kind::kSingle:
      break;
  }
  return make_task(spec, "main", TaskRole::kSingle);
}

}  // namespace

record::Words<Phase> words_of(const Phase*) {
  return {.schema = "Phase", .values = kPhases};
}
record::Words<TaskRole> words_of(const TaskRole*) {
  return {.schema = "TaskRole", .values = kRoles};
}
record::Words<JobOrigin::Kind> words_of(const JobOrigin::Kind*) {
  return {.schema = "JobOriginKind", .values = kOriginKinds};
}
record::Words<TaskPhase> words_of(const TaskPhase*) {
  return {.schema = "TaskPhase", .values = kTaskPhases};
}

std::string_view to_string(Phase phase) {
  return record::word_for(phase);
}
std::optional<Phase> phase_of(std::string_view name) {
  return record::meant_by<Phase>(name);
}

std::string_view to_string(TaskRole role) {
  return record::word_for(role);
}
std::optional<TaskRole> role_of(std::string_view name) {
  return record::meant_by<TaskRole>(name);
}

std::string_view to_string(TaskPhase phase) {
  return record::word_for(phase);
}
std::optional<TaskPhase> task_phase_of(std::string_view name) {
  return record::meant_by<TaskPhase>(name);
}

bool is_final(Phase phase) {
  return phase == Phase::kSucceeded || phase == Phase::kFailed || phase == Phase::kStopped;
}

std::vector<Task> tasks_of(const JobSpec& spec) {
  std::vector<Task> tasks{leader_of(spec)};
  const auto add = [&](const char* name, TaskRole role, int count) {
    for (int i = 0; i < count; ++i) {
      tasks.push_back(make_task(spec, name + std::string("-") + std::to_string(i), role));
      tasks.back().seat = static_cast<int>(tasks.size()) - 1;
    }
  };
  if (spec.kind == Kind::kSingle) return tasks;
  add("worker", TaskRole::kWorker, spec.workers);
  if (spec.kind != Kind::kGrpc) return tasks;
  add("ps", TaskRole::kParameterServer, spec.parameter_servers);
  add("evaluator", TaskRole::kEvaluator, spec.evaluators);
  return tasks;
}

Task next_worker(const Job& job, int seat) {
  const auto workers = std::count_if(job.tasks.begin(), job.tasks.end(), [](const Task& task) {
    return task.role == TaskRole::kWorker;
  });
  Task task = make_task(job.spec, "worker-" + std::to_string(workers), TaskRole::kWorker);
  task.seat = seat;
  return task;
}

const Resources& resources_of(const JobSpec& spec, TaskRole role) {
  switch (role) {
    case TaskRole::kSingle:
    case TaskRole::kWorker:
      break;
    case TaskRole::kLauncher:
    case TaskRole::kChief:
    case TaskRole::kMaster:
      return spec.leader.resources;
    case TaskRole::kParameterServer:
      return spec.parameter_server.resources;
    case TaskRole::kEvaluator:
      return spec.evaluator.resources;
  }
  return spec.resources;
}

const Task& deciding_task(const Job& job) {
  return job.tasks.front();
}

using record::As;
using record::computed;
using record::field;
using record::Need;
using record::Sent;
using record::Table;

const Table& table_of(const Task*) {
  static const Table table =
      record::table<Task>(
          "Task",
          {field<&Task::name>("name", {.help = "`launcher`, `chief`, `master`, `worker-0`, `ps-0`, "
                                               "`evaluator-0`, `main`.",
                                       .need = Need::kRequired}),
           field<&Task::role>("role", {.need = Need::kRequired}),
           field<&Task::hostname>("hostname", {.sent = Sent::kAlways}),
           field<&Task::seat>("seat",
                              {.help = "Its number among the tasks of the job. A worker that "
                                       "replaces another has the same seat, and a new name.",
                               .sent = Sent::kAlways,
                               .least = 0}),
           field<&Task::node>("node", {.help = "The node of the task; empty while the task waits.",
                                       .sent = Sent::kAlways}),
           field<&Task::devices>("devices", {.help = "The GPUs of the node that the task has.",
                                             .sent = Sent::kAlways,
                                             .least = 0}),
           field<&Task::gpu_share_milli>("gpu_share",
                                         {.help = "The share of each GPU: 1, or a fraction.",
                                          .sent = Sent::kAlways,
                                          .schema = R"({"minimum": 0, "maximum": 1})"},
                                         As::kMilli),
           field<&Task::phase>("phase", {.need = Need::kRequired}), field<&Task::exit>("exit"),
           field<&Task::started>("started"), field<&Task::ended>("ended"),
           field<&Task::left>(
               "left",
               {.help = "It ended, or is being ended, while its elastic job continues without it.",
                .sent = Sent::kAlways})})
          .as_answer();
  return table;
}

const Table& table_of(const LimitReached*) {
  static const Table table =
      record::table<LimitReached>(
          "LimitReached",
          {field<&LimitReached::limit>("limit", {.need = Need::kRequired}),
           field<&LimitReached::bound>(
               "bound", {.help = "In bytes; of processes and threads their number; 0: not known.",
                         .sent = Sent::kAlways,
                         .least = 0}),
           field<&LimitReached::peak>("peak", {.help = "The most that the task used; 0: not known.",
                                               .sent = Sent::kAlways,
                                               .least = 0})},
          "A limit that a task reached: it was killed for it, or was refused more.")
          .as_answer();
  return table;
}

const Table& table_of(const PodEnd*) {
  static const Table table =
      record::table<PodEnd>(
          "PodEnd",
          {field<&PodEnd::cause>("cause", {.need = Need::kRequired}), field<&PodEnd::pod>("pod"),
           field<&PodEnd::node>("node"),
           field<&PodEnd::word>("word", {.help = "Kubernetes' reason, as in `Evicted`."}),
           field<&PodEnd::text>("text", {.help = "Kubernetes' own sentence."}, As::kSentence)},
          "How Kubernetes ended the pod of a task, before the task's own end was reported.")
          .as_answer();
  return table;
}

const Table& table_of(const ExitStatus*) {
  static const Table table =
      record::table<ExitStatus>(
          "ExitStatus",
          {field<&ExitStatus::code>(
               "code",
               {.help = "The program's exit code; 0 if a signal ended it.", .sent = Sent::kAlways}),
           field<&ExitStatus::signal>(
               "signal",
               {.help = "The signal that ended it, or 0.", .sent = Sent::kAlways, .least = 0}),
           field<&ExitStatus::out_of_memory>(
               "out_of_memory",
               {.help = "A process was killed because memory was used up.", .sent = Sent::kAlways}),
           field<&ExitStatus::stopped>(
               "stopped",
               {.help = "The task was asked to stop before it ended.", .sent = Sent::kAlways}),
           field<&ExitStatus::lost>("lost",
                                    {.help = "Its end was not observed.", .sent = Sent::kAlways}),
           field<&ExitStatus::error>(
               "error",
               {.help = "Why the program could not be started; empty: it was started.",
                .sent = Sent::kAlways},
               As::kSentence),
           field<&ExitStatus::advice>(
               "advice", {.help = "Advice on the error; may be empty.", .sent = Sent::kAlways},
               As::kSentence),
           field<&ExitStatus::lost_log_bytes>(
               "lost_log",
               {.help =
                    "The amount of output that is missing in the log because its disk was full.",
                .sent = Sent::kAlways,
                .least = 0},
               As::kBytes),
           field<&ExitStatus::limit>(
               "limit", {.help = "The limit that the task reached, with its bound and the peak."}),
           field<&ExitStatus::pod>("pod", {.help = "How Kubernetes ended its pod, if it did."}),
           computed<ExitStatus, explain>("explanation",
                                         {.help = "A sentence that explains the end."})})
          .as_answer();
  return table;
}

const Table& table_of(const LaunchFacts*) {
  static const Table table =
      record::table<LaunchFacts>(
          "Launch",
          {field<&LaunchFacts::by>("by",
                                   {.help = "`ssh`, `agent` or `srun`; `auto`: not known yet.",
                                    .need = Need::kRequired}),
           field<&LaunchFacts::why>("why",
                                    {.help = "The reason, such as `the images have sshd and ssh`.",
                                     .sent = Sent::kAlways},
                                    As::kProse),
           field<&LaunchFacts::mpi>(
               "mpi",
               {.help = "The MPI of mpirun, such as `Open MPI 4.1.4`; empty: unknown.",
                .sent = Sent::kAlways},
               As::kProse)},
          "How the ranks of an MPI job were started.")
          .as_answer();
  return table;
}

const Table& table_of(const JobOrigin*) {
  static const Table table =
      record::table<JobOrigin>(
          "JobOrigin",
          {field<&JobOrigin::kind>("kind", {.need = Need::kRequired}),
           field<&JobOrigin::name>(
               "name",
               {.help = "The name of the job that it repeats, or of its array, sweep or schedule.",
                .need = Need::kRequired}),
           field<&JobOrigin::id>("id", {.help = "The id of that job, array, sweep or schedule."}),
           field<&JobOrigin::member>(
               "member", {.help = "Its index in the array, or the number of the trial; 0 for other "
                                  "origins.",
                          .sent = record::Sent::kAlways})},
          "The object from which a job was made.")
          .as_answer();
  return table;
}

const Table& table_of(const AwaitedJob*) {
  static const Table table =
      record::table<AwaitedJob>(
          "AwaitedJob",
          {field<&AwaitedJob::id>("id", {.need = Need::kRequired}),
           field<&AwaitedJob::name>("name", {.need = Need::kRequired}),
           field<&AwaitedJob::is_met>(
               "met", {.help = "The other job has ended as the dependency requires.",
                       .sent = record::Sent::kAlways})},
          "A job or array of `after` in the spec.")
          .as_answer();
  return table;
}

const Table& table_of(const Progress*) {
  static const Table table =
      record::table<Progress>(
          "Progress",
          {field<&Progress::unit>("unit",
                                  {.help = "What is counted. Empty: `done` is a fraction of 1.",
                                   .need = Need::kRequired,
                                   .schema = R"({"enum": ["epoch", "step", ""]})"}),
           field<&Progress::done>("done", {.need = Need::kRequired}),
           field<&Progress::total>(
               "total", {.need = Need::kRequired, .schema = R"({"exclusiveMinimum": 0})"}),
           field<&Progress::ends>(
               "ends",
               {.help = "When the program is expected to end, estimated from its pace so far."})},
          "The progress that a program reports: `done` of `total` epochs or steps are complete.")
          .as_answer();
  return table;
}

}  // namespace muster::job
