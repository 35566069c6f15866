// Valid specs and changes to them, and the fields of faults, for the tests of validate().
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/job.h"
#include "job/spec.h"

namespace muster::job {

/// A change that makes a valid spec invalid, or another valid spec.
using SpecChange = std::function<void(JobSpec&)>;

inline JobSpec changed(JobSpec spec, const SpecChange& change) {
  change(spec);
  return spec;
}

inline JobSpec valid_mpi_spec(int workers) {
  return {.name = "dist",
          .kind = Kind::kMpi,
          .command = {"mpirun", "train"},
          .workers = workers,
          .folder = "/home/ada"};
}

inline std::vector<std::string> fields_of(const std::vector<base::Fault>& faults) {
  std::vector<std::string> fields;
  for (const base::Fault& fault : faults) fields.push_back(fault.field);
  return fields;
}

// Values for tests in which no field has its default, so that a forgotten field is detected.

/// Invalid UTF-8, as argv and logs may contain.
inline const std::string kBinary("\xFF\0\xC3\x28", 4);

inline base::Time time_at(int64_t nanoseconds) {
  return base::Time(std::chrono::nanoseconds(nanoseconds));
}

inline Scheduling full_scheduling() {
  return {
      .purpose = Purpose::kInference,
      .priority = 7,
      .preemptible = false,
      .min_workers = 2,
      .resize = Resize::kRestart,
      .node_pools = {"a100", "default"},
      .gpu_models = {"NVIDIA A100"},
      .packing = Packing::kSpread,
      .required_topology = "rack",
      .preferred_topology = "block",
      .time_limit = std::chrono::milliseconds(3'600'000),
      .retries = 3,
      .retry_rules = {{.exit_code = 42, .action = RetryRule::Action::kFail},
                      {.log_pattern = "CUDA " + kBinary, .action = RetryRule::Action::kAvoidNode}}};
}

inline RoleSpec full_role(const std::string& program) {
  return {
      .image = program + ":1",
      .user = "1000:video",
      .registry = {.server = "r.example.com:5000", .username = program, .secret = "ROLE_PASSWORD"},
      .command = {program, kBinary},
      .arguments = {"-v", ""},
      .resources = {.gpus = 1, .cpu_milli = 500, .memory_bytes = 70'000},
      .environment = {{"ROLE", program}, {"RAW", kBinary}}};
}

inline JobSpec full_spec() {
  return {.name = "dist",
          .project = "vision",
          .kind = Kind::kMpi,
          .image = "nvcr.io/nvidia/tensorflow:24.01",
          .user = "ada",
          .registry = {.server = "nvcr.io", .username = "$oauthtoken", .secret = "NGC_KEY"},
          .container = {.pull = PullPolicy::kAlways,
                        .writable_root = true,
                        .new_privileges = true,
                        .capabilities = {"SYS_PTRACE", "IPC_LOCK"},
                        .shm_bytes = int64_t{1} << 30},
          .slurm = {.partition = "gpu,long",
                    .account = "vision",
                    .qos = "high",
                    .reservation = "spring",
                    .constraint = "a100&nvlink"},
          .kubernetes = {.node_selector = {{"zone", "a"}},
                         .tolerations = {"dedicated=train:NoSchedule"},
                         .priority_class = "high",
                         .service_account = "trainer",
                         .runtime_class = "nvidia",
                         .image_pull_secrets = {"nvcr"},
                         .claims = {"data/sets:/claim:ro"},
                         .devices = {{"rdma/hca", "1"}},
                         .labels = {{"team", "vision"}},
                         .annotations = {{"example.com/note", "a note"}},
                         .containers = {{.name = "fetch",
                                         .runs = PodContainer::Runs::kBeside,
                                         .of = PodContainer::Of::kLeader,
                                         .image = "curl:8",
                                         .pull = PullPolicy::kAlways,
                                         .command = {"curl", kBinary},
                                         .arguments = {"-o", "file"},
                                         .environment = {{"A", kBinary}},
                                         .folder = "/tmp",
                                         .user = "7:8",
                                         .cpu_milli = 250,
                                         .memory_bytes = int64_t{64} << 20,
                                         .mounts = {"/claim:/in:ro"}}}},
          .launch = LaunchBy::kAgent,
          .command = {"mpirun", "python3", "train \"it\"\n\\", "", kBinary, "Zoë 漢字 🚀"},
          .arguments = {"--epochs", kBinary},
          .replaces_entrypoint = false,
          .workers = 4,
          .slots_per_worker = 2,
          .resources = {.gpus = 8,
                        .gpu_share_milli = 250,
                        .gpu_memory_bytes = int64_t{8} << 30,
                        .cpu_milli = 15'500,
                        .memory_bytes = int64_t{64} << 30},
          .worker_command = {"sleep", "infinity"},
          .leader = full_role("lead"),
          .leader_slots = 3,
          .chief_is_worker = true,
          .success = Success::kAll,
          .allow_launcher_only = true,
          .parameter_servers = 2,
          .parameter_server = full_role("serve"),
          .evaluators = 1,
          .evaluator = full_role("evaluate"),
          .volumes = {{.kind = Volume::Kind::kTree,
                       .source = std::string(64, 'a'),
                       .target = "/data/" + kBinary,
                       .read_only = true},
                      {.kind = Volume::Kind::kArtifacts, .target = "/artifacts"}},
          .held = true,
          .labels = {{"nightly", ""}, {"team", "Zoë"}},
          .annotations = {{"gradient/command", "a\n" + kBinary}},
          .scheduling = full_scheduling(),
          .environment = {{"A", "1"}, {"RAW", kBinary}, {"QUOTED", "\"\x01\x7F\t"}},
          .secrets = {{.name = "API_KEY", .variable = "KEY"},
                      {.name = "CA", .file = "tls/ca.pem"},
                      {.name = "BOTH", .variable = "BOTH", .file = "both"}},
          .folder = "/home/ada/" + kBinary,
          .sandbox = Sandbox::kNone,
          .start_timeout = std::chrono::milliseconds(1'234),
          .grace = std::chrono::milliseconds(0)};
}

/// Without the sealed seed, which is never sent.
inline Job full_job() {
  const ExitStatus exit{.code = 1,
                        .signal = 9,
                        .out_of_memory = true,
                        .stopped = true,
                        .lost = true,
                        .error = "cannot start '" + kBinary + "'",
                        .advice = "rename '" + kBinary + "'",
                        .lost_log_bytes = int64_t{1} << 40,
                        .limit = LimitReached{Limit::kScratch, int64_t{1} << 30, int64_t{1} << 31}};
  return {
      .id = "abc234",
      .spec = full_spec(),
      .owner = "ada",
      .phase = Phase::kFailed,
      .reason = {NoRoom{.tasks = 2, .placed = 1, .claim = {.gpus = 1}, .nodes = 3, .lack_gpu = 2},
                 {Detail(Remark{"é is no byte"}, "fast")}},
      .may_start = time_at(6),
      .attempt = 3,
      .restarts = 2,
      .retries_used = 1,
      .avoided_nodes = {"n7"},
      .suspended = true,
      .stop_requested = true,
      .eviction = Preempted{.by = {"id-b", "b", "lab"}, .by_priority = 7, .priority = 5},
      .submitted = time_at(1'767'225'600'123'456'789),
      .started = time_at(1'767'225'601'000'000'000),
      .ended = time_at(1'767'225'602'000'000'001),
      .exit_code = 137,
      .failure = Failure{.task = "worker-1",
                         .cause = TaskFailed{.task = "worker-1",
                                             .is_rank = true,
                                             .rank = 1,
                                             .exit = {.signal = 9},
                                             .clue = "raw bytes"},
                         .advice = "ask for less",
                         .last_lines = {"one", kBinary}},
      .launch =
          LaunchFacts{
              .by = LaunchBy::kSsh, .why = "the images have sshd and ssh", .mpi = "Open MPI 4.1.4"},
      .tasks = {{.name = "launcher",
                 .role = TaskRole::kLauncher,
                 .hostname = "dist-launcher",
                 .seat = 4,
                 .node = "n1",
                 .devices = {0, 5},
                 .gpu_share_milli = 1000,
                 .phase = TaskPhase::kEnded,
                 .exit = exit,
                 .started = time_at(1),
                 .ended = time_at(2),
                 .left = true},
                {.name = "worker-0", .role = TaskRole::kWorker, .seat = 1}},
      .events = {
          {.time = time_at(3), .what = Notice{Notice::What::kSubmitted}},
          {.time = time_at(4), .what = Remark{}},
          {.time = time_at(5),
           .what = SlurmWaits{.slurm_job = 6, .since = time_at(1'767'225'602'000'000'001)}}}};
}

}  // namespace muster::job
