// What is said to Slurm of a job: by flags through whole command lines, by the keys of a file, and
// as it is shown.
#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "cli/common/job_words.h"
#include "cli/jobs/jobs.h"
#include "cli/spec/spec_file.h"
#include "cli/test_call.h"

namespace muster::cli::spec {

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

TEST(SlurmFlags, AreTakenByEachKindOfJobAndByRun) {
  for (const char* kind : {"single", "mpi", "grpc", "torch"}) {
    Words words{"submit", kind, "a"};
    if (kind != std::string("single")) words.insert(words.end(), {"-n", "2"});
    EXPECT_EQ(parsed<jobs::SubmitCommand>(with_all(words)).spec.slurm, kAll) << kind;
  }
  EXPECT_EQ(parsed<jobs::RunCommand>(with_all({"run"})).spec.slurm, kAll);
  EXPECT_EQ(parsed<jobs::RunCommand>({"run", "--", "ls"}).spec.slurm, SlurmSpec());
}

TEST(SlurmFlags, RanksOfAnMpiJobMayBeStartedBySrun) {
  const Words words{"submit", "mpi", "a", "-n", "2", "--launch", "srun", "--", "./train"};
  EXPECT_EQ(parsed<jobs::SubmitCommand>(words).spec.launch, job::LaunchBy::kSrun);
}

TEST(SlurmFlags, EachFaultIsToldUnderItsFlag) {
  const std::string told = refusal(
      {"submit", "single", "a", "--slurm-partition", "gpu long", "--slurm-account", "a;b",
       "--slurm-qos", "-q", "--slurm-reservation", ",", "--slurm-constraint", "a b", "--", "ls"});
  for (const char* line :
       {"--slurm-partition: 'gpu long' is neither the name of a partition nor several",
        "--slurm-account: 'a;b' is not the name of an account",
        "--slurm-qos: '-q' is neither the name of a QOS",
        "--slurm-reservation: ',' is neither the name of a reservation",
        "--slurm-constraint: 'a b' is not made of features of nodes"}) {
    EXPECT_NE(told.find(line), std::string::npos) << line << "\n" << told;
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

TEST(SlurmOfAJobFile, EachFaultIsToldOnceWithItsLine) {
  const auto spec = parse_spec_file(
      "name: one\ncommand: ls\nslurm:\n  partition: [gpu]\n  acount: vision\n  qos: 'a b'\n",
      "job.yaml", {.folder = "/"});

  ASSERT_FALSE(spec);
  Words told;
  for (const base::Fault& fault : spec.error().faults) {
    told.push_back(std::to_string(fault.line) + " " + fault.field + " " + fault.what);
  }
  EXPECT_EQ(told, (Words{"4 slurm.partition must be a single value, not a list",
                         "5 slurm.acount unknown key; did you mean 'account'?",
                         "6 slurm.qos 'a b' is neither the name of a QOS nor several with commas "
                         "between them; a name has letters, digits and _-.+:@"}));
  EXPECT_FALSE(parse_spec_file("name: a\ncommand: ls\nslurm: gpu\n", "job.yaml", {.folder = "/"}));
}

TEST(SlurmWords, SayWhatWasSaid) {
  EXPECT_EQ(slurm_words({.spec = {.slurm = kAll}}),
            "partition gpu,long, account vision, qos high, reservation spring, "
            "constraint a100&nvlink");
  EXPECT_EQ(slurm_words({.spec = {.slurm = {.qos = "high"}}}), "qos high");
  EXPECT_EQ(slurm_words({}), "");
}

TEST(SlurmWords, NameItsLastJobThere) {
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
