// Flags on files and labels through whole command lines, and the keys of a job file.

#include "cli/spec/send_workspace.h"

#include <gtest/gtest.h>

#include "cli/jobs/jobs.h"
#include "cli/spec/spec_file.h"
#include "cli/test_call.h"
#include "job/spec.h"
#include "job/spec_table.h"

namespace muster::cli::spec {

namespace {

using job::Volume;
using Volumes = std::vector<Volume>;

jobs::SubmitCommand submitted(const Words& words) {
  return parsed<jobs::SubmitCommand>(with_program(words));
}

TEST(ContentFlags, ArtifactsWithoutAValueMeansTheDefaultFolder) {
  const auto volumes = [](const std::string& flag) {
    return submitted({"submit", "single", "a", flag}).spec.volumes;
  };

  EXPECT_EQ(volumes("--artifacts"),
            (std::vector<Volume>{{.kind = Volume::Kind::kArtifacts, .target = "/artifacts"}}));
  EXPECT_EQ(volumes("--artifacts=/out"),
            (std::vector<Volume>{{.kind = Volume::Kind::kArtifacts, .target = "/out"}}));
}

TEST(ContentFlags, VolumesArePathsStorageOrArtifacts) {
  const jobs::SubmitCommand command =
      submitted({"submit", "single", "a", "-v", "/data:/cifar:ro", "--volume", "in:/in", "-v",
                 "storage/models:/models", "-v", "artifacts:/out:rw"});

  EXPECT_EQ(command.spec.volumes,
            (Volumes{
                {.source = "/data", .target = "/cifar", .read_only = true},
                {.source = "/home/ada/in", .target = "/in"},
                {.kind = Volume::Kind::kStorage, .source = "models", .target = "/models"},
                {.kind = Volume::Kind::kArtifacts, .target = "/out"},
            }));
}

TEST(ContentFlags, InvalidVolumesAreRefused) {
  for (const char* text : {"", "/data", "/data:", ":/data", "/a:/b:rx", "/a:/b:ro:x"}) {
    EXPECT_FALSE(job::parse_volume(text)) << text;
  }
  EXPECT_EQ(refusal({"submit", "single", "a", "-v", "/data", "--", "ls"})
                    .find("'/data' is not FROM:TO, FROM:TO:ro or FROM:TO:rw") == std::string::npos,
            false);
}

TEST(ContentFlags, ALabelWithoutAValueIsATag) {
  const jobs::SubmitCommand command =
      submitted({"submit", "single", "a", "-l", "nightly", "--label", "note=a=b", "--hold",
                 "--image", "train:3"});

  const std::map<std::string, std::string> labels{{"nightly", ""}, {"note", "a=b"}};
  EXPECT_EQ(command.spec.labels, labels);
  EXPECT_TRUE(command.spec.held);
  EXPECT_EQ(command.spec.image, "train:3");
}

TEST(ContentFlags, AWorkspaceIsFetchedAndBecomesTheWorkingFolder) {
  const jobs::SubmitCommand command =
      submitted({"submit", "mpi", "a", "-n", "2", "--workspace", "https://example.org/a.git",
                 "--workspace-ref", "v3", "--ignore", "*.bin"});

  ASSERT_TRUE(command.workspace);
  EXPECT_EQ(command.workspace->source.where, "https://example.org/a.git");
  EXPECT_EQ(command.workspace->source.ref, "v3");
  EXPECT_EQ(command.workspace->ignore, Words{"*.bin"});
  job::JobSpec spec = command.spec;
  work_in("0123", spec);
  EXPECT_EQ(spec.folder, "/workspace");
  EXPECT_EQ(spec.volumes,
            (Volumes{{.kind = Volume::Kind::kTree, .source = "0123", .target = "/workspace"}}));
}

TEST(ContentFlags, WorkspaceFlagsRequireAWorkspaceAndExcludeAFolder) {
  const std::string alone = refusal({"submit", "single", "a", "--ignore", "b", "--", "ls"});
  EXPECT_NE(alone.find("--ignore needs --workspace"), std::string::npos) << alone;
  const std::string both =
      refusal({"submit", "single", "a", "--workspace", ".", "--folder", "/tmp", "--", "ls"});
  EXPECT_NE(both.find("--folder cannot be used with --workspace"), std::string::npos) << both;
}

TEST(ContentFlags, TheChiefOfATensorFlowClusterWorksLikeItsWorkers) {
  const jobs::SubmitCommand command =
      submitted({"submit", "grpc", "a", "-n", "1", "--gpus", "2", "--parameter-servers", "3",
                 "--parameter-server-command", "python3 ps.py"});

  EXPECT_EQ(command.spec.kind, job::Kind::kGrpc);
  EXPECT_EQ(command.spec.leader.resources.gpus, 2);
  EXPECT_EQ(command.spec.parameter_servers, 3);
  EXPECT_EQ(command.spec.parameter_server.command, (Words{"sh", "-c", "python3 ps.py"}));
  EXPECT_EQ(command.spec.parameter_server.resources.gpus, 0);
}

TEST(ContentFlags, AnEvaluatorRunsItsOwnCommandOrThatOfTheJob) {
  const job::JobSpec same = submitted({"submit", "grpc", "a", "-n", "0", "--evaluators", "1"}).spec;
  const job::JobSpec own =
      submitted({"submit", "grpc", "a", "-n", "0", "--evaluator-command", "python3 ev.py"}).spec;

  EXPECT_EQ(same.evaluators, 1);
  EXPECT_EQ(same.evaluator, job::RoleSpec());
  EXPECT_EQ(own.evaluators, 1);
  EXPECT_EQ(own.evaluator.command, (Words{"sh", "-c", "python3 ev.py"}));
  const auto refused = [](const Words& words) { return refusal(with_program(words)); };
  EXPECT_NE(refused({"submit", "grpc", "a", "-n", "1", "--evaluators", "2"})
                .find("--evaluators 2 is out of range; give 0 to 1"),
            std::string::npos);
  EXPECT_NE(refused({"submit", "torch", "a", "-n", "1", "--evaluators", "1"})
                .find("unknown flag '--evaluators'"),
            std::string::npos);
}

// --- keys of a job file

Result<job::JobSpec> parse_roles(const std::string& text) {
  job::JobSpec defaults;
  defaults.folder = "/home/ada";
  return parse_spec_file("name: one\n" + text, "job.yaml", defaults);
}

TEST(RolesOfAJobFile, AreMapsWithCommandsAndResources) {
  const auto spec = parse_roles(
      "kind: grpc\nworkers: 1\nimage: train:3\narguments: [--epochs, \"3\"]\n"
      "leader: {resources: {gpus: 1}, environment: {ROLE: lead}}\n"
      "parameter_servers: 2\n"
      "parameter_server: {image: ps:1, command: python3 ps.py, resources: {cpus: 2}}\n"
      "evaluators: 1\nevaluator: {command: [python3, ev.py], environment: {ROLE: ev}}\n"
      "labels: {team: vision, nightly: \"\"}\nannotations: {ticket: 17}\nheld: true\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->image, "train:3");
  EXPECT_TRUE(spec->command.empty());
  EXPECT_EQ(spec->arguments, (Words{"--epochs", "3"}));
  EXPECT_EQ(spec->leader.resources.gpus, 1);
  EXPECT_EQ(spec->leader.environment.at("ROLE"), "lead");
  EXPECT_EQ(spec->parameter_servers, 2);
  EXPECT_EQ(spec->parameter_server.image, "ps:1");
  EXPECT_EQ(spec->parameter_server.command, (Words{"sh", "-c", "python3 ps.py"}));
  EXPECT_EQ(spec->parameter_server.resources.cpu_milli, 2000);
  EXPECT_EQ(spec->evaluators, 1);
  EXPECT_EQ(spec->evaluator.command, (Words{"python3", "ev.py"}));
  EXPECT_EQ(spec->evaluator.environment.at("ROLE"), "ev");
  EXPECT_EQ(spec->labels.at("team"), "vision");
  EXPECT_EQ(spec->annotations.at("ticket"), "17");
  EXPECT_TRUE(spec->held);
}

TEST(RolesOfAJobFile, HaveVolumesAsTextsOrMaps) {
  const auto spec = parse_roles(
      "command: [ls]\nvolumes:\n  - data:/data:ro\n"
      "  - {kind: storage, source: models, target: /models}\n"
      "  - {source: in, target: /in, read_only: true}\n");

  ASSERT_TRUE(spec) << spec.error().to_string();
  EXPECT_EQ(spec->volumes,
            (Volumes{{.source = "/home/ada/data", .target = "/data", .read_only = true},
                     {.kind = Volume::Kind::kStorage, .source = "models", .target = "/models"},
                     {.source = "/home/ada/in", .target = "/in", .read_only = true}}));
}

TEST(RolesOfAJobFile, ReportEachFaultOnceWithItsLine) {
  const auto spec = parse_roles(
      "command: [ls]\n"
      "leader: [a]\n"
      "parameter_servers: many\n"
      "volumes:\n"
      "  - nowhere\n"
      "  - {kind: storige, target: /a}\n"
      "labels: {team: vision, team: sound}\n"
      "held: perhaps\n");

  ASSERT_FALSE(spec);
  std::vector<std::string> places;
  for (const base::Fault& fault : spec.error().faults) {
    places.push_back(std::to_string(fault.line) + " " + fault.field);
  }
  EXPECT_EQ(places, (Words{"3 leader", "4 parameter_servers", "6 volumes[0]", "7 volumes[1].kind",
                           "8 labels.team", "9 held"}));
}

}  // namespace

// Flags on images and containers through whole command lines, and the keys of a job file.

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

TEST(ContainerFlags, HaveStrictDefaults) {
  const job::JobSpec spec = submitted_mpi({"-i", "train:3"});

  EXPECT_EQ(spec.image, "train:3");
  EXPECT_EQ(spec.user, "");
  EXPECT_EQ(spec.registry, job::RegistryLogin());
  EXPECT_EQ(spec.container, job::ContainerSpec());
  EXPECT_EQ(spec.launch, LaunchBy::kAuto);
  EXPECT_TRUE(spec.replaces_entrypoint);
}

TEST(ContainerFlags, SetTheAccountTheProgramAndTheIsolation) {
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

TEST(ContainerFlags, TakeThePullPolicyInOurTermsOrInThoseOfKubernetes) {
  const std::vector<std::pair<std::string, PullPolicy>> table{
      {"if-missing", PullPolicy::kIfMissing}, {"always", PullPolicy::kAlways},
      {"never", PullPolicy::kNever},          {"IfNotPresent", PullPolicy::kIfMissing},
      {"Always", PullPolicy::kAlways},        {"Never", PullPolicy::kNever}};
  for (const auto& [word, policy] : table) {
    EXPECT_EQ(submitted_mpi({"-i", "a", "--image-pull-policy", word}).container.pull, policy)
        << word;
  }
}

TEST(ContainerFlags, ReportEachFaultUnderItsFlag) {
  const std::string text = refusal_by(
      kAdaInVenv,
      mpi_with({"-i", "Train", "--user", "a b", "--registry-username", "ada", "--image-pull-policy",
                "alway", "--cap-add", "SYS_PTRAC", "--shm-size", "1K", "--launch", "shh"}));

  for (const char* line :
       {"--image: 'Train' is not the name of an image: it has capital letters; only a tag may have "
        "them",
        "--user: 'a b' is neither USER nor USER:GROUP",
        "--registry-secret: is missing; name the secret of the project that holds the password",
        "--image-pull-policy: 'alway' is invalid: expected one of if-missing, always, never; did "
        "you mean 'always'?",
        "--cap-add: 'SYS_PTRAC' is not a Linux capability; did you mean 'SYS_PTRACE'?",
        "--shm-size: 1024 bytes are out of range; give 64Ki to 16Ti",
        "--launch: 'shh' is invalid: expected one of auto, ssh, agent, srun; did you mean "
        "'ssh'?"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(ContainerFlags, RequireAnImage) {
  const std::string text =
      refusal_by(kAdaInVenv, mpi_with({"--user", "ada", "--shm-size", "1G", "--keep-entrypoint"}));

  for (const char* line : {"--user: 'ada' is for an image, but the job names no image",
                           "--shm-size: is for tasks that run in an image",
                           "--keep-entrypoint: is for tasks that run in an image"}) {
    EXPECT_NE(text.find(line), std::string::npos) << line << "\n" << text;
  }
}

TEST(ContainerFlags, ALaunchMethodIsAcceptedOnlyForMpiJobs) {
  const auto launch = [](Words words) {
    words.insert(words.end(), {"--launch", "agent", "--", "./train"});
    return parsed_by<jobs::RunCommand>(kAdaInVenv, words).spec.launch;
  };
  EXPECT_EQ(launch({"run", "-n", "2"}), LaunchBy::kAgent);
  EXPECT_NE(refusal_by(kAdaInVenv, {"run", "--launch", "agent", "--", "ls"})
                .find("--launch: only an mpi job has a launcher that starts ranks"),
            std::string::npos);
}

TEST(ContainerFlags, InheritedVariablesAreNotedForJobsWithAnImage) {
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

// --- keys of a job file

Result<job::JobSpec> parse_containers(const std::string& text) {
  job::JobSpec defaults{.environment = {{"PATH", "/bin"}, {"HOME", "/home/ada"}},
                        .folder = "/home/ada"};
  return parse_spec_file("name: one\nkind: mpi\nworkers: 2\n" + text, "job.yaml", defaults);
}

TEST(ContainersOfAJobFile, AreSetForTheJobAndForItsRoles) {
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

TEST(ContainersOfAJobFile, ReportEachFaultOnceWithItsLine) {
  const auto spec = parse_containers(
      "image: train\n"
      "user: [a]\n"
      "registry: {user: ada}\n"
      "container:\n  pull: sometimes\n  capabilities: [KIL]\n  shm: much\n"
      "launch: shh\n"
      "replaces_entrypoint: perhaps\n"
      "command: [ls]\n");

  ASSERT_FALSE(spec);
  Words faults;
  for (const base::Fault& fault : spec.error().faults) {
    faults.push_back(std::to_string(fault.line) + " " + fault.field + " " + fault.what);
  }
  EXPECT_EQ(
      faults,
      (Words{
          "5 user must be a single value, not a list",
          "6 registry.user unknown key; did you mean 'username'?",
          "8 container.pull 'sometimes' is invalid: expected one of if-missing, always, never",
          "9 container.capabilities[0] 'KIL' is not a Linux capability; did you "
          "mean 'KILL'?",
          "10 container.shm 'much' is not a size such as 512M or 16G",
          "11 launch 'shh' is invalid: expected one of auto, ssh, agent, srun; did you mean 'ssh'?",
          "12 replaces_entrypoint 'perhaps' is neither true nor false"}));
}

}  // namespace

// The flags on secrets, through whole command lines.

namespace {

using job::SecretUse;

const Caller kAdaWithLang{.folder = "/home/ada", .environment = {{"LANG", "C"}}};

std::string refusal_of_secrets(const Words& flags) {
  return refusal(with_program({"submit", "single", "a"}, flags), kAdaWithLang);
}

TEST(SecretFlags, SetVariablesAndFilesWithTheSecretsNamesOrOthers) {
  const Words flags{"--secret",      "KEY",   "--secret",      "TOKEN=HF_TOKEN",
                    "--secret-file", "NETRC", "--secret-file", "CA=tls/ca.pem"};
  const std::vector<SecretUse> expected{{.name = "KEY", .variable = "KEY"},
                                        {.name = "TOKEN", .variable = "HF_TOKEN"},
                                        {.name = "NETRC", .file = "NETRC"},
                                        {.name = "CA", .file = "tls/ca.pem"}};

  const Words submit = with_program({"submit", "single", "a"}, flags);
  EXPECT_EQ(parsed<jobs::SubmitCommand>(submit, kAdaWithLang).spec.secrets, expected);
  const Words run = with_program({"run"}, flags);
  EXPECT_EQ(parsed<jobs::RunCommand>(run, kAdaWithLang).spec.secrets, expected);
}

TEST(SecretFlags, ReportEachFaultUnderItsFlag) {
  const std::string text =
      refusal_of_secrets({"--secret", "KEY=", "--secret", "=X", "--secret-file", "CA=../ca"});
  EXPECT_NE(text.find("--secret: 'KEY=' has an empty target; give NAME or NAME=TARGET"),
            std::string::npos)
      << text;

  const std::string files = refusal_of_secrets({"--secret", "LANG", "--secret-file", "CA=../ca"});
  EXPECT_NE(files.find("--secret: 'LANG' is also in the environment of the job"), std::string::npos)
      << files;
  EXPECT_NE(files.find("--secret-file: '../ca' is not a path below /generated/secrets"),
            std::string::npos)
      << files;
}

TEST(SecretFlags, ConflictWithVariablesThatAreSet) {
  const std::string text = refusal_of_secrets({"--secret", "KEY", "-e", "KEY=1"});
  EXPECT_TRUE(text.starts_with("--secret 'KEY' is also in the environment of the job")) << text;
}

}  // namespace

}  // namespace muster::cli::spec
