// The flags on resources and scheduling, through whole command lines.

#include "cli/spec/spec_flags.h"

#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "cli/common/job_view.h"
#include "cli/jobs/jobs.h"
#include "cli/spec/spec_file.h"
#include "cli/test_call.h"
#include "job/validate.h"

namespace muster::cli::spec {

namespace {

template <class Command>
job::JobSpec spec_of(const Words& words, const Words& flags, const std::string& project = {}) {
  Caller caller = ada();
  caller.project = project;
  return parsed<Command>(with_program(words, flags), caller).spec;
}

job::JobSpec single(const Words& flags) {
  return spec_of<jobs::SubmitCommand>({"submit", "single", "a"}, flags);
}
job::JobSpec mpi(const Words& flags) {
  return spec_of<jobs::SubmitCommand>({"submit", "mpi", "a"}, flags);
}

std::string refusal_of_flags(const Words& words, const Words& flags) {
  return refusal(with_program(words, flags));
}

TEST(ResourceFlags, SetWholeGpusFractionsAndMemory) {
  EXPECT_EQ(single({}).resources, job::Resources{});
  EXPECT_EQ(single({"--gpus", "2", "--cpus", "0.5", "--memory", "16G"}).resources,
            (job::Resources{.gpus = 2, .cpu_milli = 500, .memory_bytes = 16LL << 30}));
  EXPECT_EQ(single({"--gpu-share", "0.25"}).resources, job::Resources{.gpu_share_milli = 250});
  EXPECT_EQ(single({"--gpu-memory", "8G"}).resources,
            job::Resources{.gpu_memory_bytes = 8LL << 30});
  EXPECT_EQ(single({"--cpus", "500m"}).resources, job::Resources{.cpu_milli = 500});
}

TEST(SchedulingFlags, SetTheirFields) {
  const job::JobSpec spec = mpi({"-n",
                                 "4",
                                 "--min-workers",
                                 "2",
                                 "--resize",
                                 "restart",
                                 "--project",
                                 "team-a",
                                 "--priority",
                                 "60",
                                 "--no-preemptible",
                                 "--node-pool",
                                 "a100",
                                 "--node-pool",
                                 "default",
                                 "--gpu-model",
                                 "A100",
                                 "--packing",
                                 "spread",
                                 "--topology",
                                 "rack",
                                 "--prefer-topology",
                                 "block",
                                 "--time-limit",
                                 "12h",
                                 "--retries",
                                 "3",
                                 "--on-exit",
                                 "42=fail",
                                 "--on-log",
                                 "a=b CUDA=avoid-node"});

  EXPECT_EQ(spec.project, "team-a");
  EXPECT_EQ(spec.workers, 4);
  EXPECT_EQ(
      spec.scheduling,
      (job::Scheduling{.priority = 60,
                       .preemptible = false,
                       .min_workers = 2,
                       .resize = job::Resize::kRestart,
                       .node_pools = {"a100", "default"},
                       .gpu_models = {"A100"},
                       .packing = job::Packing::kSpread,
                       .required_topology = "rack",
                       .preferred_topology = "block",
                       .time_limit = std::chrono::hours(12),
                       .retries = 3,
                       .retry_rules = {{.exit_code = 42, .action = job::RetryRule::Action::kFail},
                                       {.log_pattern = "a=b CUDA",
                                        .action = job::RetryRule::Action::kAvoidNode}}}));
}

TEST(SchedulingFlags, AreAcceptedByRunToo) {
  const job::JobSpec spec = spec_of<jobs::RunCommand>(
      {"run"}, {"--gpu-share", "0.5", "--interactive", "--project", "team-b"});

  EXPECT_EQ(spec.resources.gpu_share_milli, 500);
  EXPECT_EQ(spec.scheduling.purpose, job::Purpose::kBuild);
  EXPECT_EQ(spec.project, "team-b");
}

TEST(SchedulingFlags, DefaultToTheProjectInUse) {
  const Words words{"submit", "single", "a"};

  EXPECT_EQ(spec_of<jobs::SubmitCommand>(words, {}).project, "default");
  EXPECT_EQ(spec_of<jobs::SubmitCommand>(words, {}, "team-a").project, "team-a");
  EXPECT_EQ(spec_of<jobs::SubmitCommand>(words, {"--project", "team-b"}, "team-a").project,
            "team-b");
}

TEST(InteractiveFlag, WaitsForShellsWithoutACommand) {
  const auto command_of = [](const Words& words) {
    const auto call = parse_by(ada(), words);
    return call ? call->options<jobs::SubmitCommand>()->spec.command
                : Words{call.error().to_string()};
  };

  EXPECT_EQ(command_of({"submit", "mpi", "lab", "-n", "2", "--interactive"}),
            (Words{"sleep", "infinity"}));
  EXPECT_EQ(command_of({"submit", "single", "lab", "--interactive", "--", "jupyter"}),
            Words{"jupyter"});
}

TEST(PriorityFlag, IsANumberOrAPurpose) {
  const auto scheduling = [](const Words& flags) { return single(flags).scheduling; };

  EXPECT_EQ(scheduling({"--priority", "train"}), job::Scheduling{});
  EXPECT_EQ(scheduling({"--priority", "build"}),
            (job::Scheduling{.purpose = job::Purpose::kBuild}));
  EXPECT_EQ(scheduling({"--interactive"}), scheduling({"--priority", "build"}));
  EXPECT_EQ(scheduling({"--interactive", "--priority", "build"}), scheduling({"--interactive"}));
  EXPECT_EQ(scheduling({"--priority", "inference", "--preemptible"}),
            (job::Scheduling{.purpose = job::Purpose::kInference, .preemptible = true}));
  EXPECT_EQ(scheduling({"--interactive", "--priority", "7"}),
            (job::Scheduling{.purpose = job::Purpose::kBuild, .priority = 7}));
}

TEST(WorkerFlags, OneNumberIsRigidTwoAreElastic) {
  EXPECT_EQ(mpi({"--workers", "4"}).scheduling.min_workers, std::nullopt);
  EXPECT_EQ(mpi({"--workers", "4", "--min-workers", "2"}).scheduling.min_workers, 2);

  const job::JobSpec elastic = mpi({"--min-workers", "2", "--max-workers", "8"});
  EXPECT_EQ(elastic.workers, 8);
  EXPECT_EQ(elastic.scheduling.min_workers, 2);
  EXPECT_EQ(mpi({"--min-workers", "2", "--max-workers", "8", "-n", "8"}).workers, 8);
}

TEST(WorkerFlags, AMaximumAloneIsElasticFromTheMinimumOfTheKind) {
  for (const auto& [kind, fewest] : {std::pair("mpi", 1), {"torch", 0}, {"grpc", 0}}) {
    const job::JobSpec spec =
        spec_of<jobs::SubmitCommand>({"submit", kind, "a"}, {"--max-workers", "3"});
    EXPECT_EQ(spec.workers, 3) << kind;
    EXPECT_EQ(spec.scheduling.min_workers, fewest) << kind;
    EXPECT_EQ(spec.scheduling.resize, job::Resize::kAuto) << kind;
  }
}

/// `spec` as the flags of a rerun change it.
job::JobSpec changed_by_rerun(job::JobSpec spec, const Words& flags) {
  const auto command = parsed<jobs::RerunCommand>(with_program({"rerun", "a"}, flags));
  FlagReader reader(command.flags.arguments);
  (void)override_spec(command.flags, reader, spec);
  EXPECT_TRUE(reader.ok());
  return spec;
}

TEST(WorkerFlags, ANewMaximumKeepsTheMinimumOfTheJob) {
  const job::JobSpec rigid = mpi({"--workers", "6"});
  EXPECT_EQ(changed_by_rerun(rigid, {"--max-workers", "8"}).scheduling.min_workers, 1);

  const job::JobSpec elastic = mpi({"--workers", "6", "--min-workers", "4"});
  const job::JobSpec wider = changed_by_rerun(elastic, {"--max-workers", "8"});
  EXPECT_EQ(wider.workers, 8);
  EXPECT_EQ(wider.scheduling.min_workers, 4);
  EXPECT_EQ(changed_by_rerun(elastic, {"--max-workers", "8", "--min-workers", "2"})
                .scheduling.min_workers,
            2);

  const std::vector<base::Fault> faults =
      job::validate(changed_by_rerun(elastic, {"--max-workers", "3"}));
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_EQ(faults[0].field, "scheduling.min_workers");
  EXPECT_EQ(faults[0].what, "4 is out of range; give 1 to 3, the number of workers");
}

struct BadSchedulingFlags {
  Words words;
  Words flags;
  std::string fault;
};

TEST(SchedulingFlags, ReportFaultsUnderTheirOwnNames) {
  const Words one{"submit", "single", "a"};
  const Words cluster{"submit", "grpc", "a"};
  const Words gang{"submit", "mpi", "a"};
  const BadSchedulingFlags lines[] = {
      {one, {"--cpus", "few"}, "--cpus 'few' is not a number of CPUs such as 4, 0.5 or 500m"},
      {one, {"--gpu-share", "1"}, "--gpu-share 1 is out of range; give 0.001 to 0.999"},
      {one, {"--gpu-share", "0"}, "--gpu-share 0 is out of range"},
      {one, {"--gpu-share", "99999999999999"}, "--gpu-share 99999999999999 is out of range"},
      {one,
       {"--gpus", "0.5"},
       "--gpus '0.5' is not a whole number; a part of one GPU is gpu_share: 0.5, or --gpu-share "
       "0.5"},
      {one, {"--gpus", "1.5"}, "--gpus '1.5' is not a whole number"},
      {one,
       {"--memory", "2GB"},
       "--memory '2GB' is not a size such as 512M or 16G; did you mean 2G?"},
      {one, {"--gpus", "1", "--gpu-share", "0.5"}, "--gpu-share is a part of one GPU"},
      {one, {"--gpus", "1", "--gpu-memory", "8G"}, "--gpu-memory is a part of one GPU"},
      {one,
       {"--gpu-share", "0.5", "--gpu-memory", "8G"},
       "--gpu-memory cannot be used with gpu_share"},
      {one,
       {"--priority", "high"},
       "--priority 'high' is not a priority; give a number, train, build or"},
      {one, {"--priority", "1001"}, "--priority 1001 is out of range"},
      {one,
       {"--interactive", "--priority", "train"},
       "--interactive cannot be used with --priority"},
      {one, {"--preemptible", "--no-preemptible"}, "--no-preemptible cannot be used with"},
      {one, {"--project", "Team A"}, "--project 'Team A' is not a project name"},
      {one, {"--node-pool", ""}, "--node-pool '' is not a node pool name"},
      {one, {"--gpu-model", " "}, "--gpu-model ' ' is not a GPU model name"},
      {one,
       {"--packing", "tight"},
       "--packing 'tight' is invalid: expected one of auto, pack, spread"},
      {one, {"--topology", "\n"}, "--topology '\n' is not a topology level such as rack"},
      {one, {"--time-limit", "0s"}, "--time-limit: give a time between 1ms and 365d"},
      {one, {"--time-limit", "soon"}, "--time-limit 'soon' is not a time"},
      {one, {"--retries", "-1"}, "--retries -1 is out of range"},
      {one, {"--on-exit", "42"}, "--on-exit '42' has no action; write it as in 42=fail"},
      {one, {"--on-exit", "x=fail"}, "--on-exit 'x' is not an exit code"},
      {one, {"--on-exit", "1-x=fail"}, "--on-exit '1-x' is not an exit code"},
      {one, {"--on-exit", "7-6=fail"}, "--on-exit 6 is out of range; give 7 to 255"},
      {one, {"--on-exit", "0=fail"}, "--on-exit 0 is out of range; give 1 to 255"},
      {one,
       {"--on-exit", "1=stop"},
       "--on-exit 'stop' is invalid: expected one of retry, fail, avoid-node"},
      {one, {"--artifacts=out"}, "--artifacts 'out' is not an absolute path"},
      {one, {"--artifacts=/"}, "--artifacts '/' is the root folder; name a folder below it"},
      {one, {"--sandbox", "none", "--artifacts"}, "--artifacts is not possible without a sandbox"},
      {one,
       {"--sandbox", "none", "--volume", "/data:/data"},
       "--volume is not possible without a sandbox"},
      {one,
       {"--sandbox", "none", "--volume", "/data:/data", "--artifacts"},
       "--volume is not possible without a sandbox"},
      {one, {"--on-log", "=fail"}, "--on-log '=fail' has no pattern"},
      {one, {"--on-log", "(=fail"}, "--on-log '(' is not a pattern"},
      {one, {"--min-workers", "1"}, "unknown flag '--min-workers'"},
      // And no further fault.
      {gang, {"--min-workers", "2"}, "--workers is missing; give a number"},
      {gang, {"-n", "2", "--min-workers", "3"}, "--min-workers 3 is out of range; give 1 to 2"},
      {gang,
       {"-n", "2", "--max-workers", "3"},
       "--max-workers 3 is not the 2 of --workers; both set the largest number, so give only one"},
      {gang, {"-n", "2", "--resize", "live"}, "--resize 'live' is for elastic jobs"},
      {gang,
       {"-n", "2", "--resize", "lively"},
       "--resize 'lively' is invalid: expected one of auto, live, restart"},
      {cluster,
       {"-n", "2", "--min-workers", "1", "--resize", "live"},
       "--resize: without parameter servers each worker of a grpc job waits for all others"},
      {gang, {"--max-workers", "0"}, "--max-workers 0 is out of range"},
      {gang, {"--max-workers", "some"}, "--max-workers 'some' is not a whole number"},
  };
  for (const BadSchedulingFlags& line : lines) {
    EXPECT_NE(refusal_of_flags(line.words, line.flags).find(line.fault), std::string::npos)
        << refusal_of_flags(line.words, line.flags) << "\n  should say: " << line.fault;
  }
}

TEST(WorkerFlags, AnInvalidValueCausesNoOtherFault) {
  const auto first_fault = [](const Words& words, const Words& flags) {
    const std::string text = refusal_of_flags(words, flags);
    return text.substr(0, text.find('\n'));  // only the number of faults
  };
  EXPECT_EQ(first_fault({"submit", "grpc", "a"}, {"-n", "2", "--min-workers", "1", "--resize",
                                                  "live", "--parameter-servers", "x"}),
            "--parameter-servers 'x' is not a whole number");
  EXPECT_EQ(first_fault({"submit", "mpi", "a"}, {"-n", "x", "--max-workers", "3"}),
            "--workers 'x' is not a whole number");
}

}  // namespace

// Slurm settings of a job: from flags through whole command lines, from the keys of a job file, and
// in the output.

namespace {

using job::SlurmSpec;

const SlurmSpec kAll{.partition = "gpu,long",
                     .account = "vision",
                     .qos = "high",
                     .reservation = "spring",
                     .constraint = "a100&nvlink"};

Words with_all(Words words) {
  words.insert(words.end(),
               {"--slurm-partition", "gpu,long", "--slurm-account", "vision", "--slurm-qos", "high",
                "--slurm-reservation", "spring", "--slurm-constraint", "a100&nvlink", "--", "ls"});
  return words;
}

TEST(SlurmFlags, AreAcceptedByEachKindOfJobAndByRun) {
  for (const char* kind : {"single", "mpi", "grpc", "torch"}) {
    Words words{"submit", kind, "a"};
    if (kind != std::string("single")) words.insert(words.end(), {"-n", "2"});
    EXPECT_EQ(parsed<jobs::SubmitCommand>(with_all(words)).spec.slurm, kAll) << kind;
  }
  EXPECT_EQ(parsed<jobs::RunCommand>(with_all({"run"})).spec.slurm, kAll);
  EXPECT_EQ(parsed<jobs::RunCommand>({"run", "--", "ls"}).spec.slurm, SlurmSpec());
}

TEST(SlurmFlags, SrunMayStartTheRanksOfAnMpiJob) {
  const Words words{"submit", "mpi", "a", "-n", "2", "--launch", "srun", "--", "./train"};
  EXPECT_EQ(parsed<jobs::SubmitCommand>(words).spec.launch, job::LaunchBy::kSrun);
}

TEST(SlurmFlags, ReportEachFaultUnderItsFlag) {
  const std::string text = refusal(
      {"submit", "single", "a", "--slurm-partition", "gpu long", "--slurm-account", "a;b",
       "--slurm-qos", "-q", "--slurm-reservation", ",", "--slurm-constraint", "a b", "--", "ls"});
  for (const char* line :
       {"--slurm-partition: 'gpu long' is neither the name of a partition nor a list",
        "--slurm-account: 'a;b' is not the name of an account",
        "--slurm-qos: '-q' is neither the name of a QOS",
        "--slurm-reservation: ',' is neither the name of a reservation",
        "--slurm-constraint: 'a b' is not an expression of node features"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(SlurmOfAJobFile, IsAMap) {
  const auto spec = parse_spec_file(
      "name: one\nkind: mpi\nworkers: 2\ncommand: [./train]\nlaunch: srun\n"
      "slurm:\n  partition: gpu,long\n  account: vision\n  qos: high\n  reservation: spring\n"
      "  constraint: a100&nvlink\n",
      "job.yaml", {.folder = "/"});

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->slurm, kAll);
  EXPECT_EQ(spec->launch, job::LaunchBy::kSrun);
}

TEST(SlurmOfAJobFile, ReportsEachFaultOnceWithItsLine) {
  const auto spec = parse_spec_file(
      "name: one\ncommand: ls\nslurm:\n  partition: [gpu]\n  acount: vision\n  qos: 'a b'\n",
      "job.yaml", {.folder = "/"});

  ASSERT_FALSE(spec);
  Words faults;
  for (const base::Fault& fault : spec.error().faults) {
    faults.push_back(std::to_string(fault.line) + " " + fault.field + " " + fault.what);
  }
  EXPECT_EQ(faults, (Words{"4 slurm.partition must be a single value, not a list",
                           "5 slurm.acount unknown key; did you mean 'account'?",
                           "6 slurm.qos 'a b' is neither the name of a QOS nor a list of them with "
                           "commas; a name has letters, digits and _-.+:@"}));
  EXPECT_FALSE(parse_spec_file("name: a\ncommand: ls\nslurm: gpu\n", "job.yaml", {.folder = "/"}));
}

TEST(SlurmWords, ListTheSettings) {
  EXPECT_EQ(slurm_words({.spec = {.slurm = kAll}}),
            "partition gpu,long, account vision, qos high, reservation spring, "
            "constraint a100&nvlink");
  EXPECT_EQ(slurm_words({.spec = {.slurm = {.qos = "high"}}}), "qos high");
  EXPECT_EQ(slurm_words({}), "");
}

TEST(SlurmWords, NameTheLastSlurmJob) {
  job::Job job{.events = {{.what = job::Notice{job::Notice::What::kSubmitted}},
                          {.what = job::SlurmWaits{.slurm_job = 7, .reason = "Priority"}}}};
  EXPECT_EQ(slurm_words(job), "job 7");
  job.events.push_back({.what = job::Placed{.nodes = {"n1", "n2"}, .slurm_job = 17, .attempt = 2}});
  job.events.push_back({.what = job::Placed{.nodes = {"nowhere"}}});
  job.spec.slurm.partition = "gpu";
  EXPECT_EQ(slurm_words(job), "job 17, partition gpu");
}

}  // namespace

}  // namespace muster::cli::spec
