#include <gtest/gtest.h>

#include "engine/doctor/doctor.h"
#include "engine/doctor/test_findings.h"
#include "engine/doctor/test_programs.h"

namespace muster::engine::doctor {

using job::Finding;

using Verdict = job::Finding::Verdict;

namespace {

ProcessFacts healthy_node() {
  return {.has_shim = true,
          .has_remote_shell = true,
          .programs = "/opt/libexec",
          .answers = {{"bwrap", good_answer("bwrap", "bubblewrap 0.8.0\n")},
                      {"sandbox", good_answer("bwrap", "")},
                      {"ssh", good_answer("ssh", "")},
                      {"mpirun", good_answer("mpirun", "mpirun (Open MPI) 4.1.4\n")}},
          .has_sshd = true,
          .sshd = "/usr/sbin/sshd",
          .gpus = NvmlGpus{.gpus = {{.model = "H100", .memory_bytes = int64_t{80} << 30},
                                    {.model = "H100", .memory_bytes = int64_t{80} << 30}}},
          .limits = {.memory_bytes = int64_t{4} << 30, .cpu_milli = 1500},
          .group_places = {{.folder = "/m", .home = "/", .controllers = {"memory"}},
                           {.folder = "/p", .home = "/", .controllers = {"pids"}}}};
}

TEST(ProcessDoctor, DescribesACompleteMachine) {
  const job::Diagnosis diagnosis = diagnose(healthy_node());
  EXPECT_EQ(
      diagnosis,
      (job::Diagnosis{
          .engine = "process",
          .findings = {{"muster's programs", Verdict::kFine, "/opt/libexec", ""},
                       {"bubblewrap", Verdict::kFine, "bubblewrap 0.8.0, /usr/bin/bwrap", ""},
                       {"sandboxes", Verdict::kFine, "work", ""},
                       {"remote shells", Verdict::kFine, "ssh and sshd; Muster's own", ""},
                       {"mpirun", Verdict::kFine, "Open MPI 4.1.4, /usr/bin/mpirun", ""},
                       {"GPUs", Verdict::kFine, "2 x H100, 80Gi", ""},
                       {"control group", Verdict::kNote, "leaves jobs 1.5 CPUs, 4Gi of memory", ""},
                       {"task limits", Verdict::kFine, "control groups: memory, pids", ""},
                       {"job networks", Verdict::kNote,
                        "jobs share the machine's network: this server has one user", ""}}}));
  EXPECT_TRUE(can_run(diagnosis));
}

TEST(ProcessDoctor, DescribesTheIsolationOfATeamServer) {
  ProcessFacts facts = healthy_node();
  facts.is_team = true;
  job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(finding_on(diagnosis, "job networks").text,
            "each job has its own, without a way to the Internet (tasks.internet: false)");
  EXPECT_EQ(finding_on(diagnosis, "separate projects").verdict, Verdict::kFine);

  facts.is_root = true;
  Finding finding = finding_on(diagnose(facts), "separate projects");
  EXPECT_EQ(finding.verdict, Verdict::kLacks);
  EXPECT_EQ(finding.text, "jobs of one project at a time: its tasks run as root");
  facts.trusts_projects = true;
  EXPECT_EQ(finding_on(diagnose(facts), "separate projects").verdict, Verdict::kNote);

  facts.accounts = AccountSource{
      .is_root = true, .uids = {{1'900'000'000, 3 * kIdsOfUser}}, .place = "tasks.subids"};
  facts.trusts_projects = false;
  EXPECT_EQ(finding_on(diagnose(facts), "separate projects").text,
            "kept apart by accounts and sandboxes");
  EXPECT_EQ(finding_on(diagnose(facts), "accounts").text,
            "the Unix account of each user, else ids of its own: room for 2 users (tasks.subids)");
  facts.accounts =
      base::Error{.what = "newuidmap is not installed", .advice = "apt install uidmap"};
  finding = finding_on(diagnose(facts), "accounts");
  EXPECT_EQ(finding.verdict, Verdict::kNote);
  EXPECT_EQ(finding.advice, "apt install uidmap");

  facts.is_root = false;
  facts.shares_network = true;
  diagnosis = diagnose(facts);
  EXPECT_EQ(finding_on(diagnosis, "job networks").text,
            "jobs share the machine's network (tasks.network: shared)");
  EXPECT_EQ(finding_on(diagnosis, "separate projects").advice, "tasks.network: own");
}

TEST(ProcessDoctor, DescribesTheEgressOfATeamServersJobs) {
  ProcessFacts facts = healthy_node();
  facts.is_team = true;
  facts.egress = std::string("over a bridge");
  EXPECT_EQ(finding_on(diagnose(facts), "job networks").text,
            "each job has its own, and reaches the Internet over a bridge");
  facts.egress = base::Error{.what = "jobs have no way to the Internet: nft is not installed",
                             .advice = "tasks.internet: false"};
  const Finding finding = finding_on(diagnose(facts), "job networks");
  EXPECT_EQ(finding.verdict, Verdict::kNote);
  EXPECT_EQ(finding.text,
            "each job has its own; jobs have no way to the Internet: nft is not installed");
  EXPECT_EQ(finding.advice, "tasks.internet: false");
}

TEST(ProcessDoctor, FailsOnATeamServerWithoutNetworksForJobs) {
  ProcessFacts facts = healthy_node();
  facts.is_team = true;
  facts.network = base::Error{.what = "cannot make a network for the job: EPERM"};
  EXPECT_EQ(finding_on(diagnose(facts), "job networks").verdict, Verdict::kFails);
  EXPECT_FALSE(can_run(diagnose(facts)));
}

TEST(ProcessDoctor, WithoutControlGroupsLimitsAreMeasured) {
  ProcessFacts facts = healthy_node();
  facts.group_places.clear();
  const Finding finding = finding_on(diagnose(facts), "task limits");
  EXPECT_EQ(finding.verdict, Verdict::kNote);
  EXPECT_NE(finding.text.find("are measured"), std::string::npos);
}

TEST(ProcessDoctor, FailsWithoutSandboxes) {
  ProcessFacts facts = healthy_node();
  facts.answers["sandbox"] = {.path = "/usr/bin/bwrap",
                              .code = 1,
                              .errors = "bwrap: No permissions to create new namespace\n"};
  facts.namespace_settings = {"user.max_user_namespaces=15000"};
  job::Diagnosis diagnosis = diagnose(facts);
  Finding finding = finding_on(diagnosis, "sandboxes");
  EXPECT_EQ(finding.verdict, Verdict::kFails);
  EXPECT_EQ(finding.text, "cannot be created: bwrap: No permissions to create new namespace");
  EXPECT_EQ(finding.advice,
            "allow user namespaces (sysctl user.max_user_namespaces=15000), or run without a "
            "sandbox: --sandbox none");
  EXPECT_FALSE(can_run(diagnosis));

  facts.answers["bwrap"] = {};
  diagnosis = diagnose(facts);
  finding = finding_on(diagnosis, "bubblewrap");
  EXPECT_EQ(finding.verdict, Verdict::kFails);
  EXPECT_EQ(finding.text, "is not installed");
  EXPECT_NE(finding.advice.find("apt install bubblewrap"), std::string::npos);
  EXPECT_EQ(finding_on(diagnosis, "sandboxes").subject, "none");

  facts = healthy_node();
  facts.has_shim = false;
  EXPECT_FALSE(can_run(diagnose(facts)));
}

TEST(ProcessDoctor, WarnsWithoutShellsMpiAndGpus) {
  ProcessFacts facts = healthy_node();
  facts.has_sshd = false;
  facts.answers["ssh"] = facts.answers["mpirun"] = {};
  facts.gpus = base::Error{.code = base::ErrorCode::kNotFound, .what = "no library"};
  facts.limits = {};
  const job::Diagnosis diagnosis = diagnose(facts);

  EXPECT_TRUE(can_run(diagnosis));
  EXPECT_EQ(
      finding_on(diagnosis, "remote shells").text,
      "ssh is not installed; /usr/sbin/sshd is missing; Muster's own remote shell is installed");
  EXPECT_EQ(finding_on(diagnosis, "remote shells").verdict, Verdict::kLacks);
  EXPECT_EQ(finding_on(diagnosis, "mpirun").verdict, Verdict::kLacks);
  EXPECT_EQ(finding_on(diagnosis, "GPUs").verdict, Verdict::kNote);
  EXPECT_EQ(finding_on(diagnosis, "GPUs").text, "none: no NVIDIA driver is installed");
  EXPECT_EQ(finding_on(diagnosis, "control group").text, "has no limits here");
  facts.limits.memory_bytes = int64_t{0x7FFFFFFFFFFFF000};
  EXPECT_EQ(finding_on(diagnose(facts), "control group").text, "has no limits here");
}

TEST(ProcessDoctor, ReportsAnUnknownMpirunAndFailedDrivers) {
  ProcessFacts facts = healthy_node();
  facts.answers["mpirun"] = {.path = "/opt/mpirun", .code = 0, .output = "some launcher 1.0\n"};
  facts.gpus = base::Error{
      .code = base::ErrorCode::kUnavailable, .what = "the driver is broken", .advice = "mend it"};
  job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(finding_on(diagnosis, "mpirun").text,
            "/opt/mpirun is unknown to Muster: some launcher 1.0");
  EXPECT_EQ(finding_on(diagnosis, "GPUs").verdict, Verdict::kLacks);
  EXPECT_EQ(finding_on(diagnosis, "GPUs").advice, "mend it");

  facts.gpus = NvmlGpus{.gpus = {{.model = "T4"}}, .unreached = {"GPU 1 is lost"}};
  EXPECT_EQ(finding_on(diagnose(facts), "GPUs").text, "1 x T4; GPU 1 is lost");
  facts.declared_gpus = "4:A100";
  EXPECT_EQ(finding_on(diagnose(facts), "GPUs").text,
            "declared as 4:A100, whatever the machine has");
}

TEST(ProcessLook, RunsTheProgramsOfTheServersPath) {
  StandIns programs;
  programs.add("bwrap",
               "test \"$1\" = --version && echo 'bubblewrap 9.9' && exit; "
               "echo 'no namespaces' >&2; exit 1");
  programs.add("ssh", "echo OpenSSH >&2");
  programs.add("mpirun", "echo 'mpirun (Open MPI) 5.0.1'");
  programs.add("muster-shim", "exit 0");

  const ProcessFacts facts = look_at_process({.environment = programs.environment(),
                                              .programs = programs.folder(),
                                              .sshd = programs.path("sshd"),
                                              .nvml = "no-such-library.so"});

  EXPECT_TRUE(facts.has_shim);
  EXPECT_FALSE(facts.has_remote_shell);
  EXPECT_FALSE(facts.has_sshd);
  ASSERT_FALSE(facts.gpus);
  EXPECT_EQ(facts.gpus.error().code, base::ErrorCode::kNotFound);
  const job::Diagnosis diagnosis = diagnose(facts);
  EXPECT_EQ(finding_on(diagnosis, "bubblewrap").text, "bubblewrap 9.9, " + programs.path("bwrap"));
  EXPECT_EQ(finding_on(diagnosis, "sandboxes").text, "cannot be created: no namespaces");
  EXPECT_EQ(finding_on(diagnosis, "mpirun").text, "Open MPI 5.0.1, " + programs.path("mpirun"));
}

}  // namespace
}  // namespace muster::engine::doctor
