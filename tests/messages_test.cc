// Compares every message about a job with a table, data/messages.txt. After a change of wording, read the
// whole table like a person who does not know Muster. To write the table anew, run:
//
//   MUSTER_WRITE_MESSAGES=1 build/release/tests/messages_test
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <functional>
#include <sstream>

#include "job/exit_status.h"
#include "job/test_specs.h"
#include "job/validate.h"
#include "words/sentence.h"

namespace muster::words {
namespace {

using job::ExitStatus;
using job::JobSpec;
using job::Resource;
using std::chrono::seconds;

/// The lines of the table.
class MessageTable {
 public:
  void section(const std::string& title) { text_ += "\n" + title + "\n\n"; }
  void line(const std::string& message) { text_ += "  " + message + "\n"; }
  void fact(const job::Fact& fact) { line(sentence(fact)); }
  void reason(const job::Reason& reason) {
    line(sentence(reason));
    for (const std::string& detail : details(reason)) line("  " + detail);
  }
  /// The faults of `spec` with one change.
  void faults(const JobSpec& spec, const job::SpecChange& change) {
    const std::vector<base::Fault> found = validate(job::changed(spec, change));
    EXPECT_FALSE(found.empty()) << text_;
    for (const base::Fault& fault : found) line(fault.field + ": " + fault.what);
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

template <class Enum>
std::vector<Enum> up_to(Enum last) {
  std::vector<Enum> all;
  for (int i = 0; i <= static_cast<int>(last); ++i) all.push_back(static_cast<Enum>(i));
  return all;
}

const job::JobRef kOther{.id = "id-train", .name = "train", .project = "vision"};
const base::Time kNoon = base::Time(std::chrono::hours(24 * 365 * 50 + 12));

void add_waiting(MessageTable& table) {
  table.section("Why a job waits");
  for (const bool is_quota : {false, true}) {
    table.reason(job::OverCapacity{.job = "dist",
                                   .project = {.name = "lab", .above = "vision"},
                                   .is_quota = is_quota,
                                   .resource = Resource::kGpu,
                                   .bound = 4000,
                                   .allocated = 3000,
                                   .requested = 2000});
  }
  table.reason(job::OverCapacity{.job = "dist",
                                 .project = {.name = "lab"},
                                 .resource = Resource::kMemory,
                                 .bound = 1 << 30,
                                 .requested = int64_t{2} << 30});
  const job::NoRoom shortage{.tasks = 2,
                             .placed = 1,
                             .claim = {.gpus = 2},
                             .nodes = 3,
                             .free_gpu_milli = 2000,
                             .largest_free_gpu_milli = 1000,
                             .lack_gpu = 2,
                             .lack_cpu = 1};
  table.reason(shortage);
  table.reason(
      job::NoRoom{.ever = false, .tasks = 1, .claim = {.gpus = 8}, .nodes = 1, .lack_gpu = 1});
  table.reason(
      job::NoRoom{.tasks = 4, .placed = 2, .claim = {.gpus = 1}, .topology = "rack", .nodes = 4});
  table.reason(job::NoRoom{.tasks = 1,
                           .claim = {.gpus = 1},
                           .cordoned = 2,
                           .pools = {"fast"},
                           .gpu_models = {"A100"},
                           .labels = {"zone=a"},
                           .excluded_nodes = {"n7"}});
  table.reason(job::NoRoom{.tasks = 1, .claim = {.gpus = 1}, .pools = {"fast"}});
  for (const bool has_children : {false, true}) {
    table.fact(job::NoProject{.project = "lab", .has_children = has_children});
  }
  table.fact(job::Reserved{kOther});
  table.fact(job::Promised{.tasks = 3, .leaving = {12}});
  table.fact(job::Promised{.tasks = 3, .leaving = {0}});
  table.fact(job::Promised{.tasks = 3});
  table.fact(job::AfterEvictions{{1}});
  table.fact(job::AfterEvictions{});
  table.fact(job::TriedAgain{5});
  table.fact(job::HeldByOthers{.holders = {.named = {{.job = kOther, .amount = 3000}}, .more = 2}});
  table.fact(job::HeldByOthers{
      .below = job::ProjectRef{.name = "lab"},
      .holders = {
          .named = {{.project = "vision", .amount = 3000}}, .more = 2, .more_amount = 4000}});
  for (const bool held : {false, true}) table.fact(job::Suspended{.job = "dist", .held = held});
  using Condition = job::Dependency::Condition;
  table.fact(job::WaitsForJobs{{{.job = kOther}}});
  table.fact(job::WaitsForJobs{{{.job = kOther, .condition = Condition::kAny},
                                {.job = kOther, .condition = Condition::kFailed}}});
  table.fact(job::WaitsUntil{kNoon});
  table.fact(job::WaitsForSingleton{.job = kOther, .singleton = "nightly"});
}

void add_evictions(MessageTable& table) {
  table.section("Why a job is evicted");
  const job::ProjectShare share{.project = {.name = "vision"},
                                .uses = {2000, 0, 0},
                                .quota = {1000, 0, 0},
                                .fair_share = {1000, 0, 0},
                                .priority = 100};
  const std::vector<job::Eviction> all{
      job::SuspendedByUser{},
      job::Reclaimed{.by = kOther, .shares = {share}, .compared = {Resource::kGpu}},
      job::Reclaimed{.by = kOther, .expected = true},
      job::Preempted{.by = kOther, .by_priority = 9, .priority = 1},
      job::Moved{.so_that = kOther},
      job::Stale{.running = 1, .minimum = 3, .grace = std::chrono::minutes(1)},
      job::NodeDrained{"n1"},
      job::TooFewWorkers{2},
      job::KubernetesEnded{.pod = job::PodEnd{.cause = job::PodEnd::Cause::kQueueEvicted,
                                              .word = "WorkloadEvictedDueToPreempted",
                                              .text = "Preempted to accommodate a workload"}}};
  for (const job::Eviction& why : all) table.line(sentence(why));
  for (const auto stage : up_to(job::Evicted::Stage::kWaitsAgain)) {
    table.fact(job::Evicted{.why = job::NodeDrained{"n1"}, .stage = stage});
  }
}

void add_events(MessageTable& table) {
  table.section("What happens to a job");
  for (const auto what : up_to(job::Notice::What::kResumed)) table.fact(job::Notice{what});
  const job::Workers workers{2, 4};
  table.fact(job::Placed{.nodes = {"n1", "n2"}, .slurm_job = 17, .attempt = 2, .workers = workers});
  table.fact(job::PhaseReached{job::Phase::kFailed});
  table.fact(job::EveryWorkerAnswers{"launcher"});
  for (const bool has : {false, true})
    table.fact(job::ImageNotRun{.image = "tf", .has_stand_in = has});
  table.fact(job::LooksForImages{{"tf", "ps"}});
  table.fact(
      job::FetchesImage{.node = "n1", .image = "tf", .done_megabytes = 3, .all_megabytes = 9});
  table.fact(job::ImagesThere{seconds(3)});
  for (const bool silent : {true, false})
    table.fact(job::NodeSilence{.node = "n1", .silent = silent});
  table.fact(job::WorkersLeave{
      .tasks = {"worker-2", "worker-3"}, .why = job::NodeDrained{"n1"}, .left = workers});
  table.fact(job::WorkerLost{.task = "worker-1", .exit = {.code = 1}, .left = workers});
  table.fact(job::WorkerJoins{.task = "worker-4", .node = "n2", .now = workers});
  table.fact(job::WorkerJoins{.task = "worker-4", .now = workers});
  table.fact(job::WorkerDidNotJoin{.what = "worker-4 did not start", .left = workers});
  table.fact(job::Runs{.workers = workers,
                       .silent = {{.node = "n1", .since = "2026-01-01T00:00:00Z"}},
                       .in_slurm = job::SlurmState{.slurm_job = 6}});
}

void add_failures(MessageTable& table) {
  table.section("Why a job fails, or starts again");
  const job::TaskFailed ended{.task = "worker-1", .exit = {.code = 1}};
  const std::vector<job::FailureCause> all{
      ended,
      job::TaskFailed{.how = job::TaskFailed::How::kAborted,
                      .task = "worker-1",
                      .is_rank = true,
                      .rank = 1,
                      .exit = {.code = 3}},
      job::TaskFailed{
          .how = job::TaskFailed::How::kUnfinalized, .task = "worker-1", .is_rank = true},
      job::TaskFailed{.task = "worker-1",
                      .exit = {.code = 1},
                      .clue = "ValueError: nan",
                      .third_loss_within = std::chrono::minutes(1)},
      job::TaskFailed{.task = "master",
                      .exit = {.code = 1},
                      .clue = "RuntimeError: Connection closed by peer",
                      .exited_before = "worker-1"},
      job::TaskFailed{.task = "main",
                      .exit = {.signal = 9,
                               .out_of_memory = true,
                               .limit = job::LimitReached{job::Limit::kMemory, 1 << 30, 1 << 30}},
                      .image = "tf:2"},
      job::TaskFailed{.task = "main", .exit = {.code = 127}, .image = "tf:2"},
      job::WorkerUnreachable{.host = "10.0.0.7", .launcher = "launcher", .exit = {.code = 205}},
      job::TimeLimitReached{std::chrono::hours(2)},
      job::NoSshAnswer{.task = "worker-0", .bound = seconds(30), .others = 2},
      job::DependencyUnmet{.awaited = {.job = kOther}, .phase = job::Phase::kFailed},
      job::DependencyUnmet{.awaited = {.job = kOther}, .phase = job::Phase::kStopped},
      job::DependencyUnmet{
          .awaited = {.job = kOther, .condition = job::Dependency::Condition::kFailed},
          .phase = job::Phase::kSucceeded},
      job::DependencyUnmet{.awaited = {.job = kOther}}};
  for (const job::FailureCause& cause : all) table.line(sentence(cause));
  for (const auto fault : up_to(job::RanksAstray::Fault::kTooFewStarted)) {
    table.fact(job::RanksAstray{.fault = fault,
                                .ranks = 4,
                                .of = 8,
                                .task = "worker-1",
                                .slots = 2,
                                .mpi = "Open MPI 4.1.4"});
  }
  for (const auto why : up_to(job::AttemptAbandoned::Why::kServerRestarted)) {
    table.fact(job::AttemptAbandoned{.why = why,
                                     .task = "worker-0",
                                     .port = 31234,
                                     .node = "n1",
                                     .error = "the engine does not answer"});
  }
  const std::vector<job::Retry> retries{
      {.number = 1, .of = 3},
      {.cost = job::Retry::Cost::kNone},
      {.cost = job::Retry::Cost::kAvoidsNode, .node = "n1", .by_rule = true, .exit_code = 42},
      {.number = 1, .of = 3, .by_rule = true, .log_pattern = "ECC"}};
  for (const job::Retry& retry : retries)
    table.fact(job::StartsAgain{.cause = ended, .retry = retry});
}

ExitStatus limited(int signal, job::Limit limit) {
  return {.signal = signal, .limit = job::LimitReached{limit, 1 << 20, 2 << 20}};
}

void add_exits(MessageTable& table) {
  table.section("How a task ended, and what to do");
  const std::vector<ExitStatus> all{{.code = 1},
                                    {.code = 126},
                                    {.code = 127},
                                    {.code = 137},
                                    {.signal = 6},
                                    {.signal = 7},
                                    {.signal = 9},
                                    {.signal = 11},
                                    {.signal = 15, .stopped = true},
                                    {.code = 3, .stopped = true},
                                    {.signal = 9, .out_of_memory = true},
                                    limited(9, job::Limit::kMemory),
                                    limited(9, job::Limit::kProcesses),
                                    limited(9, job::Limit::kScratch),
                                    limited(25, job::Limit::kFileSize),
                                    {.lost = true}};
  for (const ExitStatus& status : all) {
    table.line(explain(status));
    if (const std::string advice = job::advice_for(status); !advice.empty()) {
      table.line("  " + advice);
    }
  }
  table.line(job::lost_output({.lost_log_bytes = 1234}));
}

void add_slurm(MessageTable& table) {
  table.section("Jobs in Slurm");
  for (const auto stage : up_to(job::SlurmWaits::Stage::kEarlier)) {
    table.fact(job::SlurmWaits{.stage = stage,
                               .slurm_job = 17,
                               .reason = "Resources",
                               .text = "its nodes are in use",
                               .nodes = {"n1", "n2"},
                               .expected = kNoon,
                               .since = kNoon});
  }
  table.fact(job::SlurmQueue{.partition = "gpu", .account = "lab", .qos = "high"});
  for (const auto what : up_to(job::SlurmState::What::kAway)) {
    for (const bool over : {false, true}) {
      table.fact(job::SlurmState{.what = what, .slurm_job = 17, .since = kNoon, .over = over});
    }
  }
  for (const auto cause : up_to(job::SlurmEnded::Cause::kSilent)) {
    table.fact(job::SlurmEnded{.cause = cause,
                               .slurm_job = 17,
                               .nodes = {"n1"},
                               .task = "worker-1",
                               .user = "ada",
                               .state = "FAILED",
                               .code = 1,
                               .bound = seconds(60),
                               .text = "Slurm rejected the job"});
  }
  table.fact(job::RequestsAllocation{.cluster = "Slurm"});
  table.fact(job::ClusterDecides{.cluster = "Slurm", .tasks = 3});
}

void add_kubernetes(MessageTable& table) {
  table.section("Jobs on Kubernetes");
  for (const auto stage : up_to(job::KubernetesWaits::Stage::kAway)) {
    table.fact(job::KubernetesWaits{.stage = stage,
                                    .pod = "muster-1-worker-0",
                                    .task = "worker-0",
                                    .others = 2,
                                    .node = "n1",
                                    .image = "tf:2",
                                    .container = "fetch",
                                    .word = "Unschedulable",
                                    .text = "0/2 nodes are available"});
  }
  table.fact(job::KubernetesWaits{.stage = job::KubernetesWaits::Stage::kUnschedulable,
                                  .task = "main",
                                  .word = "SchedulingGated",
                                  .text = "insufficient unused quota for cpu"});
  for (const auto cause : up_to(job::PodEnd::Cause::kDeadline)) {
    ExitStatus status{.lost = true};
    status.pod = job::PodEnd{.cause = cause,
                             .pod = "muster-1-worker-0",
                             .node = "n1",
                             .word = "Evicted",
                             .text = "the node was low on memory"};
    table.line(explain(status));
  }
}

void add_faults_of_programs(MessageTable& table, const JobSpec& mpi, const JobSpec& single) {
  table.faults(mpi, [](JobSpec& spec) { spec.name = "Dist_1"; });
  table.faults(mpi, [](JobSpec& spec) { spec.project = "Lab 1"; });
  table.faults(single, [](JobSpec& spec) { spec.command.clear(); });
  table.faults(single, [](JobSpec& spec) { spec.command.push_back(std::string("a\0b", 3)); });
  table.faults(mpi, [](JobSpec& spec) { spec.worker_command = {""}; });
  table.faults(single, [](JobSpec& spec) { spec.command.emplace_back(200 << 10, 'x'); });
  table.faults(single, [](JobSpec& spec) {
    spec.command.insert(spec.command.end(), 3, std::string(100 << 10, 'x'));
  });
  table.faults(single, [](JobSpec& spec) { spec.folder = "work"; });
  table.faults(single, [](JobSpec& spec) { spec.start_timeout = seconds(0); });
  table.faults(single, [](JobSpec& spec) { spec.grace = seconds(-1); });
  table.faults(single, [](JobSpec& spec) { spec.keep_for = seconds(-1); });
  table.faults(single, [](JobSpec& spec) { spec.environment["1A"] = "x"; });
  table.faults(single, [](JobSpec& spec) { spec.environment["A"] = std::string(1, '\0'); });
  table.faults(single, [](JobSpec& spec) { spec.environment["A"] = std::string(200 << 10, 'x'); });
  table.faults(single, [](JobSpec& spec) { spec.labels["a=b"] = "x"; });
  table.faults(single, [](JobSpec& spec) { spec.labels[" a"] = "x\n"; });
  table.faults(single, [](JobSpec& spec) { spec.annotations["a"] = std::string(70 << 10, 'x'); });
}

void add_faults_of_roles(MessageTable& table, const JobSpec& mpi, const JobSpec& single) {
  table.faults(single, [](JobSpec& spec) { spec.workers = 2; });
  table.faults(single, [](JobSpec& spec) { spec.leader.user = "ada"; });
  table.faults(mpi, [](JobSpec& spec) { spec.workers = 0; });
  table.faults(mpi, [](JobSpec& spec) { spec.leader.command = {"a"}; });
  table.faults(mpi, [](JobSpec& spec) { spec.leader.arguments = {"a"}; });
  table.faults(single, [](JobSpec& spec) {
    spec.leader_slots = 1;
    spec.allow_launcher_only = true;
    spec.worker_command = {"a"};
    spec.parameter_servers = 1;
    spec.parameter_server.user = "ada";
    spec.evaluators = 1;
    spec.evaluator.user = "ada";
    spec.launch = job::LaunchBy::kSsh;
  });
}

void add_faults_of_scheduling(MessageTable& table, const JobSpec& mpi, const JobSpec& single) {
  table.faults(single, [](JobSpec& spec) { spec.resources.gpus = -1; });
  table.faults(single, [](JobSpec& spec) {
    spec.resources = {.gpus = 1, .gpu_share_milli = 500, .gpu_memory_bytes = 1, .cpu_milli = -1};
  });
  table.faults(mpi, [](JobSpec& spec) { spec.scheduling.priority = 5000; });
  table.faults(mpi, [](JobSpec& spec) {
    spec.scheduling.node_pools = {" a"};
    spec.scheduling.gpu_models = {""};
    spec.scheduling.required_topology = " rack";
  });
  table.faults(mpi, [](JobSpec& spec) { spec.scheduling.min_workers = 9; });
  table.faults(single, [](JobSpec& spec) { spec.scheduling.min_workers = 1; });
  table.faults(mpi, [](JobSpec& spec) { spec.scheduling.resize = job::Resize::kLive; });
  table.faults(single, [](JobSpec& spec) { spec.scheduling.resize = job::Resize::kLive; });
  table.faults(mpi, [](JobSpec& spec) { spec.scheduling.time_limit = seconds(0); });
  table.faults(mpi, [](JobSpec& spec) { spec.scheduling.retry_rules = {{}}; });
  table.faults(mpi, [](JobSpec& spec) {
    spec.scheduling.purpose = job::Purpose::kBuild;
    spec.scheduling.retries = 1;
  });
}

void add_faults_of_containers(MessageTable& table, const JobSpec& single) {
  for (const char* image : {"-v", "https://r/a", "a//b", "ab/A", "a:", "a@b", "a b", "r.io/a!"}) {
    table.faults(single, [&](JobSpec& spec) { spec.image = image; });
  }
  table.faults(single, [](JobSpec& spec) {
    spec.user = "ada";
    spec.registry.server = "r.io";
    spec.container.writable_root = true;
  });
  table.faults(single, [](JobSpec& spec) {
    spec.image = "tf";
    spec.user = "a b";
    spec.registry = {.server = "r io"};
    spec.container.capabilities = {"SYS_PTRAC", "x", "KILL", "KILL"};
    spec.container.shm_bytes = 1;
  });
  table.faults(single, [](JobSpec& spec) {
    spec.slurm = {.partition = "a b", .account = "-", .qos = "!", .constraint = "a b"};
  });
}

void add_faults_of_files(MessageTable& table, const JobSpec& single) {
  table.faults(single, [](JobSpec& spec) {
    spec.environment["SET"] = "x";
    spec.secrets = {{.name = "a b", .variable = "X"}, {.name = "A"},
                    {.name = "A", .variable = "1"},   {.name = "A", .variable = "PATH"},
                    {.name = "A", .variable = "SET"}, {.name = "A", .variable = "B"},
                    {.name = "A", .variable = "B"},   {.name = "A", .file = "../x"},
                    {.name = "A", .file = "f"},       {.name = "A", .file = "f"}};
  });
  using Kind = job::Volume::Kind;
  table.faults(single, [](JobSpec& spec) {
    spec.volumes = {{.kind = Kind::kHostPath, .source = "data", .target = "/data"},
                    {.kind = Kind::kTree, .source = "x", .target = "/tree"},
                    {.kind = Kind::kStorage, .source = "A b", .target = "/storage"},
                    {.kind = Kind::kArtifacts, .source = "x", .target = "/artifacts"},
                    {.kind = Kind::kHostPath, .source = "/a", .target = "/"},
                    {.kind = Kind::kHostPath, .source = "/a", .target = "/dev"},
                    {.kind = Kind::kHostPath, .source = "/a", .target = "/b", .read_only = true},
                    {.kind = Kind::kHostPath, .source = "/a", .target = "/b"},
                    {.kind = Kind::kHostPath, .source = "/a", .target = "/b/c"}};
  });
  table.faults(single, [](JobSpec& spec) {
    spec.sandbox = job::Sandbox::kNone;
    spec.volumes = {{.kind = Kind::kHostPath, .source = "/a", .target = "/b"}};
  });
}

void add_faults_of_projects(MessageTable& table) {
  job::Project project{.name = "Lab 1", .parent = "Lab 1", .priority = -1};
  project.quota.deserved.gpu_milli = 5000;
  project.quota.limit.gpu_milli = 4000;
  project.quota.limit.cpu_milli = -1;
  project.quota.weight = -1;
  project.pools[" a"] = {};
  project.reclaim_min_runtime = seconds(-1);
  for (const base::Fault& fault : validate_project(project)) {
    table.line(fault.field + ": " + fault.what);
  }
}

std::string all_messages() {
  MessageTable table;
  add_waiting(table);
  add_evictions(table);
  add_events(table);
  add_failures(table);
  add_exits(table);
  add_slurm(table);
  add_kubernetes(table);
  const JobSpec mpi = job::valid_mpi_spec(2);
  JobSpec single = job::valid_mpi_spec(0);
  single.kind = job::Kind::kSingle;
  table.section("Faults of a job");
  add_faults_of_programs(table, mpi, single);
  add_faults_of_roles(table, mpi, single);
  add_faults_of_scheduling(table, mpi, single);
  add_faults_of_containers(table, single);
  add_faults_of_files(table, single);
  table.section("Faults of a project");
  add_faults_of_projects(table);
  return table.text();
}

TEST(Messages, AreThoseOfTheTable) {
  const std::string path = std::string(MUSTER_SOURCE) + "/tests/data/messages.txt";
  const std::string messages = all_messages();
  if (std::getenv("MUSTER_WRITE_MESSAGES") != nullptr) std::ofstream(path) << messages;
  std::ifstream file(path);
  std::ostringstream table;
  table << file.rdbuf();
  EXPECT_EQ(messages, table.str()) << "run with MUSTER_WRITE_MESSAGES=1, and read messages.txt";
}

}  // namespace
}  // namespace muster::words
