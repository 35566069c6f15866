// What image a job runs in, and how: flags through whole command lines, and the keys of a file.
#include <gtest/gtest.h>

#include "cli/jobs/jobs.h"
#include "cli/spec/content_flags.h"
#include "cli/spec/spec_file.h"
#include "cli/test_call.h"
#include "job/spec.h"

namespace muster::cli::spec {

namespace {

using job::LaunchBy;
using job::PullPolicy;

const Caller kAdaInVenv{.folder = "/home/ada",
                        .environment = {{"PATH", "/opt/venv/bin:/bin"}, {"HOME", "/home/ada"}}};

Words mpi_with(const Words& more) {
  return with_program({"submit", "mpi", "a", "-n", "2"}, more);
}

job::JobSpec submitted_mpi(const Words& more) {
  return parsed_by<jobs::SubmitCommand>(kAdaInVenv, mpi_with(more)).spec;
}

TEST(ContainerFlags, OfAJobWithoutThemAreTheStricterOnes) {
  const job::JobSpec spec = submitted_mpi({"-i", "train:3"});

  EXPECT_EQ(spec.image, "train:3");
  EXPECT_EQ(spec.user, "");
  EXPECT_EQ(spec.registry, job::RegistryLogin());
  EXPECT_EQ(spec.container, job::ContainerSpec());
  EXPECT_EQ(spec.launch, LaunchBy::kAuto);
  EXPECT_TRUE(spec.replaces_entrypoint);
}

TEST(ContainerFlags, SayWhoRunsWhatAndHowFarItIsSetApart) {
  const job::JobSpec spec = submitted_mpi({"--image",
                                           "r.example.com/train:3",
                                           "--user",
                                           "1000:video",
                                           "--registry-username",
                                           "ada",
                                           "--registry-secret",
                                           "PULL",
                                           "--registry-server",
                                           "r.example.com",
                                           "--writable-root",
                                           "--allow-new-privileges",
                                           "--cap-add",
                                           "CAP_SYS_PTRACE",
                                           "--cap-add",
                                           "ipc_lock",
                                           "--shm-size",
                                           "8G",
                                           "--keep-entrypoint",
                                           "--launch",
                                           "agent"});

  EXPECT_EQ(spec.image, "r.example.com/train:3");
  EXPECT_EQ(spec.user, "1000:video");
  EXPECT_EQ(spec.registry,
            (job::RegistryLogin{.server = "r.example.com", .username = "ada", .secret = "PULL"}));
  EXPECT_EQ(spec.container, (job::ContainerSpec{.writable_root = true,
                                                .new_privileges = true,
                                                .capabilities = {"SYS_PTRACE", "IPC_LOCK"},
                                                .shm_bytes = int64_t{8} << 30}));
  EXPECT_EQ(spec.launch, LaunchBy::kAgent);
  EXPECT_FALSE(spec.replaces_entrypoint);
}

TEST(ContainerFlags, TheImageIsFetchedInOurWordsOrInThoseOfKubernetes) {
  const std::vector<std::pair<std::string, PullPolicy>> table{
      {"if-missing", PullPolicy::kIfMissing}, {"always", PullPolicy::kAlways},
      {"never", PullPolicy::kNever},          {"IfNotPresent", PullPolicy::kIfMissing},
      {"Always", PullPolicy::kAlways},        {"Never", PullPolicy::kNever}};
  for (const auto& [word, policy] : table) {
    EXPECT_EQ(submitted_mpi({"-i", "a", "--image-pull-policy", word}).container.pull, policy)
        << word;
  }
}

TEST(ContainerFlags, EachFaultIsToldUnderItsFlag) {
  const std::string told = refusal_by(
      kAdaInVenv,
      mpi_with({"-i", "Train", "--user", "a b", "--registry-username", "ada", "--image-pull-policy",
                "alway", "--cap-add", "SYS_PTRAC", "--shm-size", "1K", "--launch", "shh"}));

  for (const char* line :
       {"--image: 'Train' is not the name of an image: it has capital letters, which only a tag "
        "may "
        "have",
        "--user: 'a b' is neither USER nor USER:GROUP",
        "--registry-secret: is missing; say which secret of the project holds the password",
        "--image-pull-policy: 'alway' is none of if-missing, always, never; did you mean 'always'?",
        "--cap-add: 'SYS_PTRAC' is no capability of Linux; did you mean 'SYS_PTRACE'?",
        "--shm-size: 1024 bytes are out of range; give 64Ki to 16Ti",
        "--launch: 'shh' is none of auto, ssh, agent, srun; did you mean 'ssh'?"}) {
    EXPECT_NE(told.find(line), std::string::npos) << line << "\n" << told;
  }
}

TEST(ContainerFlags, WhatIsOfAnImageIsRefusedWithoutOne) {
  const std::string told =
      refusal_by(kAdaInVenv, mpi_with({"--user", "ada", "--shm-size", "1G", "--keep-entrypoint"}));

  for (const char* line : {"--user: 'ada' is of an image, and the job names none",
                           "--shm-size: is of tasks that run in an image",
                           "--keep-entrypoint: is of tasks that run in an image"}) {
    EXPECT_NE(told.find(line), std::string::npos) << line << "\n" << told;
  }
}

TEST(ContainerFlags, OnlyAnMpiJobIsLaunchedOneWayOrTheOther) {
  const auto launch = [](Words words) {
    words.insert(words.end(), {"--launch", "agent", "--", "./train"});
    return parsed_by<jobs::RunCommand>(kAdaInVenv, words).spec.launch;
  };
  EXPECT_EQ(launch({"run", "-n", "2"}), LaunchBy::kAgent);
  EXPECT_NE(refusal_by(kAdaInVenv, {"run", "--launch", "agent", "--", "ls"})
                .find("--launch only an mpi job has a launcher that starts ranks"),
            std::string::npos);
}

TEST(ContainerFlags, WhatTheShellBringsAlongIsNotedWhereThereIsAnImage) {
  const job::JobSpec plain = submitted_mpi({"-i", "train:3"});
  EXPECT_EQ(job::inherited_variables(plain), (std::set<std::string>{"HOME", "PATH"}));
  EXPECT_TRUE(job::inherits_folder(plain));

  const job::JobSpec chosen = submitted_mpi({"-i", "train:3", "-e", "PATH", "--folder", "/srv"});
  EXPECT_EQ(job::inherited_variables(chosen), std::set<std::string>{"HOME"});
  EXPECT_FALSE(job::inherits_folder(chosen));

  EXPECT_TRUE(submitted_mpi({}).annotations.empty());
  job::JobSpec sent = plain;
  work_in("0123", sent);
  EXPECT_FALSE(job::inherits_folder(sent));
}

// --- the keys of a file

Result<job::JobSpec> parse_containers(const std::string& text) {
  job::JobSpec defaults{.environment = {{"PATH", "/bin"}, {"HOME", "/home/ada"}},
                        .folder = "/home/ada"};
  return parse_spec_file("name: one\nkind: mpi\nworkers: 2\n" + text, "job.yaml", defaults);
}

TEST(ContainersOfAJobFile, AreSaidOfTheJobAndOfItsRoles) {
  const auto spec = parse_containers(
      "image: r.example.com/train:3\nuser: 1000:video\n"
      "registry: {server: r.example.com, username: ada, secret: PULL}\n"
      "container:\n  pull: IfNotPresent\n  writable_root: true\n  new_privileges: true\n"
      "  capabilities: [CAP_SYS_PTRACE, KILL]\n  shm: 8G\n"
      "launch: ssh\nreplaces_entrypoint: false\n"
      "leader: {image: lead, user: root, registry: {username: bob, secret: OTHER}}\n"
      "environment: {PATH: /usr/bin}\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->user, "1000:video");
  EXPECT_EQ(spec->registry,
            (job::RegistryLogin{.server = "r.example.com", .username = "ada", .secret = "PULL"}));
  EXPECT_EQ(spec->container, (job::ContainerSpec{.writable_root = true,
                                                 .new_privileges = true,
                                                 .capabilities = {"SYS_PTRACE", "KILL"},
                                                 .shm_bytes = int64_t{8} << 30}));
  EXPECT_EQ(spec->launch, LaunchBy::kSsh);
  EXPECT_FALSE(spec->replaces_entrypoint);
  EXPECT_EQ(spec->leader.user, "root");
  EXPECT_EQ(spec->leader.registry,
            (job::RegistryLogin{.server = {}, .username = "bob", .secret = "OTHER"}));
  EXPECT_EQ(job::inherited_variables(*spec), std::set<std::string>{"HOME"});
  EXPECT_TRUE(job::inherits_folder(*spec));
}

TEST(ContainersOfAJobFile, EachFaultIsToldOnceWithItsLine) {
  const auto spec = parse_containers(
      "image: train\n"
      "user: [a]\n"
      "registry: {user: ada}\n"
      "container:\n  pull: sometimes\n  capabilities: [KIL]\n  shm: much\n"
      "launch: shh\n"
      "replaces_entrypoint: perhaps\n"
      "command: [ls]\n");

  ASSERT_FALSE(spec);
  Words told;
  for (const base::Fault& fault : spec.error().faults) {
    told.push_back(std::to_string(fault.line) + " " + fault.field + " " + fault.what);
  }
  EXPECT_EQ(told, (Words{"5 user must be a single value, not a list", "6 registry.user unknown key",
                         "8 container.pull 'sometimes' is none of if-missing, always, never",
                         "9 container.capabilities[0] 'KIL' is no capability of Linux; did you "
                         "mean 'KILL'?",
                         "10 container.shm 'much' is not a size such as 512M or 16G",
                         "11 launch 'shh' is none of auto, ssh, agent, srun; did you mean 'ssh'?",
                         "12 replaces_entrypoint 'perhaps' is neither true nor false"}));
}

}  // namespace

}  // namespace muster::cli::spec
