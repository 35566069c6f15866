#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "job/checker.h"
#include "job/container.h"
#include "job/test_specs.h"
#include "job/validate.h"

namespace muster::job {
namespace {

using base::Texts;

Texts container_faults(const SpecChange& change) {
  JobSpec spec{.name = "a",
               .kind = Kind::kMpi,
               .image = "horovod/horovod",
               .command = {"mpirun"},
               .workers = 2,
               .folder = "/"};
  change(spec);
  return base::texts_of(validate(spec));
}

struct WrongContainer {
  SpecChange change;
  std::string text;
};

void expect_container_faults(const std::vector<WrongContainer>& wrongs) {
  for (const WrongContainer& wrong : wrongs)
    EXPECT_EQ(container_faults(wrong.change), Texts{wrong.text});
}

TEST(ValidateContainer, AcceptsEveryField) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.user = "ada:video";
              spec.registry = {.server = "r.example.com:5000", .username = "ada", .secret = "KEY"};
              spec.container = {.pull = PullPolicy::kNever,
                                .writable_root = true,
                                .new_privileges = true,
                                .capabilities = {"SYS_PTRACE", "IPC_LOCK"},
                                .shm_bytes = int64_t{1} << 30};
              spec.launch = LaunchBy::kAgent;
              spec.replaces_entrypoint = false;
              spec.leader = {.image = "lead",
                             .user = "0",
                             .registry = {.server = {}, .username = "$oauthtoken", .secret = "K2"}};
            }),
            Texts{});
}

TEST(ValidateContainer, AUserIsANameOrANumberWithAnOptionalGroup) {
  for (const char* user : {"root", "0", "1000", "1000:1000", "ada:video", "4294967294", "a.b-c_d",
                           "_apt", "1000:video"}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.user = user; }), Texts{}) << user;
  }
  for (const std::string& user :
       {std::string(":"), std::string("a:"), std::string(":a"), std::string("a:b:c"),
        std::string("-1"), std::string("4294967295"), std::string("99999999999"),
        std::string("a b"), std::string("a/b"), std::string(65, 'a'), std::string("\xC3\xA4")}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.user = user; }),
              Texts{"user " + in_quotes(user) +
                    " is neither USER nor USER:GROUP, each a name or a number of the image"});
  }
}

TEST(ValidateContainer, ALoginHasBothAUserAndASecret) {
  expect_container_faults({
      {[](JobSpec& spec) { spec.registry.username = "ada"; },
       "registry.secret is missing; name the secret of the project that holds the password"},
      {[](JobSpec& spec) { spec.registry.secret = "KEY"; },
       "registry.username is missing; give the user name for the registry"},
      {[](JobSpec& spec) { spec.registry = {.server = {}, .username = "a", .secret = "A-B"}; },
       "registry.secret 'A-B' is not the name of a secret; use letters, digits and '_'"},
      {[](JobSpec& spec) { spec.registry = {.server = {}, .username = "a\n", .secret = "K"}; },
       "registry.username 'a\n' is not a user's name of a registry"},
      {[](JobSpec& spec) {
         spec.registry = {.server = "https://r.example.com", .username = "a", .secret = "K"};
       },
       "registry.server 'https://r.example.com' is not the name of a registry, as in "
       "registry.example.com:5000"},
  });
  EXPECT_EQ(
      container_faults([](JobSpec& spec) { spec.registry.server = "docker.io"; }),
      (Texts{
          "registry.username is missing; give the user name for the registry",
          "registry.secret is missing; name the secret of the project that holds the password"}));
}

TEST(ValidateContainer, ImageSettingsRequireAnImage) {
  EXPECT_EQ(
      container_faults([](JobSpec& spec) {
        spec.image = "";
        spec.user = "ada";
        spec.registry = {.server = {}, .username = "ada", .secret = "KEY"};
        spec.container = {.pull = PullPolicy::kAlways,
                          .writable_root = true,
                          .new_privileges = true,
                          .capabilities = {"KILL"},
                          .shm_bytes = 1 << 20};
        spec.replaces_entrypoint = false;
        spec.leader.user = "root";
      }),
      (Texts{
          "user 'ada' is for an image, but the job names no image",
          "registry a login is for an image, but the job names no image",
          "leader.user 'root' is for an image, but the leader itself names no image",
          "container.pull is for tasks that run in an image, but the job names no image",
          "container.writable_root is for tasks that run in an image, but the job names no image",
          "container.new_privileges is for tasks that run in an image, but the job names no image",
          "container.capabilities is for tasks that run in an image, but the job names no image",
          "container.shm is for tasks that run in an image, but the job names no image",
          "replaces_entrypoint is for tasks that run in an image, but the job names no image"}));
}

TEST(ValidateContainer, SettingsOfAnImageOfAParameterServerOrEvaluatorRequireThatImage) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.kind = Kind::kGrpc;
              spec.parameter_server.user = "root";
              spec.evaluator.registry = {.server = {}, .username = "ada", .secret = "KEY"};
            }),
            (Texts{"parameter_server.user 'root' is for an image, but the parameter_server itself "
                   "names no image",
                   "evaluator.registry a login is for an image, but the evaluator itself names "
                   "no image"}));
}

TEST(ValidateContainer, AnImageOfOneRoleIsEnoughForContainerSettings) {
  EXPECT_EQ(container_faults([](JobSpec& spec) {
              spec.image = "";
              spec.leader.image = "lead";
              spec.container.writable_root = true;
            }),
            Texts{});
}

TEST(ValidateContainer, CapabilitiesAreThoseOfLinux) {
  expect_container_faults({
      {[](JobSpec& spec) { spec.container.capabilities = {"SYS_PTRAC"}; },
       "container.capabilities[0] 'SYS_PTRAC' is not a Linux capability; did you mean "
       "'SYS_PTRACE'?"},
      {[](JobSpec& spec) { spec.container.capabilities = {"KILL", "CAP_KILL"}; },
       "container.capabilities[1] 'CAP_KILL' is not a Linux capability; did you mean 'KILL'?"},
      {[](JobSpec& spec) { spec.container.capabilities = {"everything"}; },
       "container.capabilities[0] 'everything' is not a Linux capability such as SYS_PTRACE"},
      {[](JobSpec& spec) { spec.container.capabilities = {"KILL", "CHOWN", "KILL"}; },
       "container.capabilities[2] 'KILL' is listed twice"},
      {[](JobSpec& spec) { spec.container.capabilities = Texts(42, "KILL"); },
       "container.capabilities are more than Linux has"},
  });
  for (const std::string& name : capabilities()) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.container.capabilities = {name}; }),
              Texts{});
  }
}

TEST(ValidateContainer, ShmHasAPlausibleSize) {
  for (const int64_t size : {int64_t{65'536}, int64_t{16} << 40}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) { spec.container.shm_bytes = size; }), Texts{});
  }
  expect_container_faults({
      {[](JobSpec& spec) { spec.container.shm_bytes = 65'535; },
       "container.shm 65535 bytes are out of range; give 64Ki to 16Ti"},
      {[](JobSpec& spec) { spec.container.shm_bytes = -1; },
       "container.shm -1 bytes are out of range; give 64Ki to 16Ti"},
  });
}

TEST(ValidateContainer, OnlyAnMpiJobHasALaunchMethod) {
  for (const Kind kind : {Kind::kSingle, Kind::kTorch, Kind::kGrpc}) {
    EXPECT_EQ(container_faults([&](JobSpec& spec) {
                spec.kind = kind;
                spec.workers = 0;
                spec.launch = LaunchBy::kSsh;
              }),
              Texts{"launch only an mpi job has a launcher that starts ranks; leave it out"});
  }
  EXPECT_EQ(container_faults([](JobSpec& spec) { spec.launch = LaunchBy::kSsh; }), Texts{});
}

TEST(Capability, IsAcceptedWithOrWithoutItsPrefixAndInAnyCase) {
  EXPECT_EQ(capabilities_of({"SYS_PTRACE", "CAP_SYS_PTRACE", "cap_kill", "net_raw"}),
            (Texts{"SYS_PTRACE", "SYS_PTRACE", "KILL", "NET_RAW"}));
}

}  // namespace
namespace {

Texts slurm_faults(const SpecChange& change) {
  JobSpec spec{.name = "a", .kind = Kind::kMpi, .command = {"mpirun"}, .workers = 2, .folder = "/"};
  change(spec);
  return base::texts_of(validate(spec));
}

TEST(ValidateSlurm, AcceptsEveryField) {
  EXPECT_EQ(slurm_faults([](JobSpec& spec) {
              spec.slurm = {.partition = "gpu,long-2.a",
                            .account = "vision_lab@site",
                            .qos = "high+night",
                            .reservation = "maint:1,root_3",
                            .constraint = "[(a100&nvlink)|h100*2],!old"};
              spec.launch = LaunchBy::kSrun;
            }),
            Texts{});
}

// No field accepts characters that would end a line, an argument or a quotation.
TEST(ValidateSlurm, RefusesCharactersThatALineOrAShellInterprets) {
  for (const std::string& bad :
       {std::string("a b"), std::string("a\n#SBATCH --uid=0"), std::string("a'b"),
        std::string("a\"b"), std::string("a#b"), std::string("a\\b"), std::string("$(id)"),
        std::string("a;b"), std::string("a`b"), std::string("-p"), std::string("a\0b", 3),
        std::string("\xC3\xA4"), std::string(1025, 'a')}) {
    const std::vector<std::pair<std::string, std::string SlurmSpec::*>> fields{
        {"slurm.partition ", &SlurmSpec::partition},
        {"slurm.account ", &SlurmSpec::account},
        {"slurm.qos ", &SlurmSpec::qos},
        {"slurm.reservation ", &SlurmSpec::reservation},
        {"slurm.constraint ", &SlurmSpec::constraint}};
    for (const auto& [field, member] : fields) {
      const Texts faults = slurm_faults([&, m = member](JobSpec& spec) { spec.slurm.*m = bad; });
      ASSERT_EQ(faults.size(), 1U) << field << bad;
      EXPECT_TRUE(faults.front().starts_with(field + in_quotes(bad))) << faults.front();
    }
  }
}

TEST(ValidateSlurm, ReportsAllFaultsAtOnce) {
  EXPECT_EQ(slurm_faults([](JobSpec& spec) {
              spec.slurm = {.partition = "gpu,,long",
                            .account = "a,b",
                            .qos = ",",
                            .reservation = "a|b",
                            .constraint = "a100 & nvlink"};
            }),
            (Texts{"slurm.partition 'gpu,,long' is neither the name of a partition nor a list of "
                   "them with commas; a name has letters, digits and _-.+:@",
                   "slurm.account 'a,b' is not the name of an account; a name has letters, digits "
                   "and _-.+:@",
                   "slurm.qos ',' is neither the name of a QOS nor a list of them with commas; "
                   "a name has letters, digits and _-.+:@",
                   "slurm.reservation 'a|b' is neither the name of a reservation nor a list of "
                   "them with commas; a name has letters, digits and _-.+:@",
                   "slurm.constraint 'a100 & nvlink' is not an expression of node features such as "
                   "a100&nvlink; use letters, digits, _-.+:@ and Slurm's &|*,()[]!=/"}));
}

TEST(ValidateSlurm, SrunStartsOnlyTheRanksOfMpiJobs) {
  for (const Kind kind : {Kind::kSingle, Kind::kTorch, Kind::kGrpc}) {
    EXPECT_EQ(slurm_faults([&](JobSpec& spec) {
                spec.kind = kind;
                spec.workers = 0;
                spec.launch = LaunchBy::kSrun;
              }),
              Texts{"launch only an mpi job has a launcher that starts ranks; leave it out"});
  }
}

TEST(ValidateSlurm, ItsTextsCountTowardsTheJobsText) {
  const Texts faults = slurm_faults([](JobSpec& spec) {
    spec.environment["A"] = std::string(131'000, 'a');
    spec.environment["B"] = std::string((256 << 10) - 132'000, 'b');
    spec.slurm.constraint = std::string(1000, 'a');
  });
  ASSERT_EQ(faults.size(), 1U);
  EXPECT_NE(faults.front().find("bytes long together with the environment"), std::string::npos);
}

}  // namespace
namespace {

Texts secret_faults(std::vector<SecretUse> secrets) {
  const JobSpec spec{.name = "one",
                     .command = {"true"},
                     .environment = {{"HERE", "1"}},
                     .secrets = std::move(secrets),
                     .folder = "/"};
  return base::texts_of(validate(spec));
}

TEST(ValidateSecrets, AcceptsVariablesFilesAndBoth) {
  EXPECT_EQ(secret_faults({{.name = "KEY", .variable = "KEY"},
                           {.name = "KEY", .variable = "SAME_IN_ANOTHER"},
                           {.name = "ca_2", .file = "ca.pem"},
                           {.name = "_x", .variable = "X", .file = "tls/.a/b-c_d"},
                           {.name = "KEY", .file = std::string(100, 'f')}}),
            Texts{});
}

TEST(ValidateSecrets, ReportsEveryFaultAtOnceByItsField) {
  EXPECT_EQ(
      secret_faults({{.name = "1KEY", .variable = "A-B", .file = "/etc/passwd"}, {.name = "KEY"}}),
      (Texts{"secrets[0].name '1KEY' is not the name of a secret; use letters, digits and '_'",
             "secrets[0].variable 'A-B' is not a variable name; use letters, digits and '_'",
             "secrets[0].file '/etc/passwd' is not a path below /generated/secrets; use at most "
             "100 characters, as in tls/ca.pem",
             "secrets[1] has no destination; give it a variable or a file"}));
}

TEST(ValidateSecrets, ANameThatIsAlsoTheVariableIsReportedOnce) {
  EXPECT_EQ(secret_faults({{.name = "1KEY", .variable = "1KEY"}}),
            Texts{"secrets[0].name '1KEY' is not the name of a secret; use letters, digits and "
                  "'_'"});
}

TEST(ValidateSecrets, RefusesPathsThatLeadElsewhere) {
  for (const std::string& path :
       {std::string("/a"), std::string(".."), std::string("../a"), std::string("a/../b"),
        std::string("a/.."), std::string("."), std::string("./a"), std::string("a//b"),
        std::string("a/"), std::string("a b"), std::string("a\nb"), std::string("a\0b", 3),
        std::string("a\\b"), std::string("\xc3\xa4"), std::string(101, 'f')}) {
    EXPECT_EQ(secret_faults({{.name = "KEY", .file = path}}).size(), 1U) << path;
  }
}

TEST(ValidateSecrets, RefusesVariablesThatMusterOrMpiSets) {
  for (const char* name : {"PATH", "TMPDIR", "CUDA_VISIBLE_DEVICES", "MUSTER_RENDEZVOUS_KEY",
                           "OMPI_MCA_btl", "PRTE_MCA_x", "PMIX_x"}) {
    EXPECT_EQ(secret_faults({{.name = "KEY", .variable = name}}),
              Texts{"secrets[0].variable '" + std::string(name) +
                    "' is a reserved variable; choose another name"});
  }
}

TEST(ValidateSecrets, ASecretIsGivenOnce) {
  EXPECT_EQ(secret_faults({{.name = "A", .variable = "X"}, {.name = "A", .variable = "X"}}),
            Texts{"secrets[1].variable 'X' is given twice"});
}

TEST(ValidateSecrets, NoTwoSecretsShareAPlace) {
  EXPECT_EQ(secret_faults({{.name = "A", .variable = "HERE"},
                           {.name = "A", .variable = "X", .file = "a"},
                           {.name = "B", .variable = "X", .file = "a"},
                           {.name = "C", .file = "a/b"},
                           {.name = "D", .file = "ab"}}),
            (Texts{"secrets[0].variable 'HERE' is also in the environment of the job",
                   "secrets[2].variable 'X' already holds another secret",
                   "secrets[2].file 'a' is already the file of another secret",
                   "secrets[3].file 'a/b' is already the file of another secret"}));
  EXPECT_EQ(secret_faults({{.name = "A", .file = "a/b"}, {.name = "B", .file = "a"}}),
            Texts{"secrets[1].file 'a' is already the file of another secret"});
}

TEST(ValidateSecrets, ConflictsWithAVariableOfARole) {
  for (RoleSpec JobSpec::* role :
       {&JobSpec::leader, &JobSpec::parameter_server, &JobSpec::evaluator}) {
    JobSpec spec{.name = "a",
                 .kind = Kind::kGrpc,
                 .command = {"train"},
                 .secrets = {{.name = "KEY", .variable = "THERE"}},
                 .folder = "/c"};
    (spec.*role).environment = {{"THERE", "1"}};

    EXPECT_EQ(validate(spec),
              (std::vector<Fault>{{.field = "secrets[0].variable",
                                   .what = "'THERE' is also in the environment of the job"}}));
  }
}

TEST(ValidateSecrets, AHundredIsTheMaximum) {
  EXPECT_EQ(secret_faults(std::vector<SecretUse>(101, {.name = "A"})),
            Texts{"secrets are more than 100"});
}

TEST(SecretName, IsAVariableName) {
  for (const char* name : {"KEY", "_", "a1", "API_KEY"}) EXPECT_TRUE(is_secret_name(name)) << name;
  for (const char* name : {"", "1A", "A-B", "A.B", "A B", "../A", "\xc3\xa4"}) {
    EXPECT_FALSE(is_secret_name(name)) << name;
  }
  EXPECT_TRUE(is_secret_name(std::string(128, 'A')));
  EXPECT_FALSE(is_secret_name(std::string(129, 'A')));
}

}  // namespace
namespace {

using VolumeKind = Volume::Kind;

const std::string kTreeId(64, 'a');

std::vector<Fault> volume_faults(std::vector<Volume> volumes,
                                 Sandbox sandbox = Sandbox::kBubblewrap) {
  const JobSpec spec{.name = "a",
                     .command = {"b"},
                     .volumes = std::move(volumes),
                     .folder = "/c",
                     .sandbox = sandbox};
  return validate(spec);
}

TEST(ValidateVolumes, AcceptsThoseOfAnExperiment) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, kTreeId, "/home/paperspace"},
                           {VolumeKind::kStorage, "storage", "/storage"},
                           {VolumeKind::kArtifacts, "", "/artifacts"},
                           {VolumeKind::kTree, kTreeId, "/data/mnist", true},
                           {VolumeKind::kTree, "", "/scratch"},
                           {VolumeKind::kHostPath, "/", "/host", true},
                           {VolumeKind::kHostPath, "/mnt/Zoë's data", "/mnt/Zoë's data"}}),
            std::vector<Fault>{});
}

TEST(ValidateVolumes, ReportsInvalidSources) {
  const std::string no_path =
      " is not an absolute path of at most 1000 bytes without '.', '..', '//' and a '/' at its end";
  const struct {
    VolumeKind kind;
    std::string source, what;
  } cases[] = {
      {VolumeKind::kHostPath, "data", "'data'" + no_path},
      {VolumeKind::kHostPath, "", "''" + no_path},
      {VolumeKind::kHostPath, "/a/../b", "'/a/../b'" + no_path},
      {VolumeKind::kTree, "abc", "'abc' is not the id of uploaded files; an id has 64 hex digits"},
      {VolumeKind::kTree, std::string(64, 'A'),
       "'" + std::string(60, 'A') +
           "...' is not the id of uploaded files; an id has 64 hex digits"},
      {VolumeKind::kStorage, "", "'' is not a valid storage name; use 1 to 63 of a-z, 0-9 and '-'"},
      {VolumeKind::kStorage, "../x",
       "'../x' is not a valid storage name; use 1 to 63 of a-z, 0-9 and '-'"},
      {VolumeKind::kArtifacts, "x", "artifacts belong to the job; leave the source out"},
  };
  for (const auto& [kind, source, what] : cases) {
    EXPECT_EQ(volume_faults({{kind, source, "/x"}}),
              (std::vector<Fault>{{.field = "volumes[0].source", .what = what}}));
  }
}

TEST(ValidateVolumes, ReportsInvalidTargets) {
  const std::string no_path =
      " is not an absolute path of at most 1000 bytes without '.', '..', '//' and a '/' at its end";
  const std::string taken = " is reserved for the sandbox; choose another path";
  const struct {
    std::string target, what;
  } cases[] = {
      {"", "''" + no_path},
      {"x", "'x'" + no_path},
      {"/x/", "'/x/'" + no_path},
      {"//x", "'//x'" + no_path},
      {"/x/./y", "'/x/./y'" + no_path},
      {"/x/../../etc", "'/x/../../etc'" + no_path},
      {"/a\nb", "'/a\nb'" + no_path},
      {"/a\xC2\x9B\x31mb", "'/a\xC2\x9B\x31mb'" + no_path},
      {std::string("/a\0b", 4), "'" + std::string("/a\0b", 4) + "'" + no_path},
      {"/" + std::string(1000, 'x'), "'/" + std::string(59, 'x') + "...'" + no_path},
      {"/", "'/' is the root folder; name a folder below it"},
      {"/proc", "'/proc'" + taken},
      {"/dev/shm", "'/dev/shm'" + taken},
      {"/sys/fs", "'/sys/fs'" + taken},
      {"/generated/secrets", "'/generated/secrets'" + taken},
  };
  for (const auto& [target, what] : cases) {
    EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", target}}),
              (std::vector<Fault>{{.field = "volumes[0].target", .what = what}}));
  }
  for (const char* target : {"/process", "/devices", "/generated-data", "/tmp", "/etc/mpi"}) {
    EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", target}}), std::vector<Fault>{}) << target;
  }
}

TEST(ValidateVolumes, OfTwoWithTheSameTargetTheSecondHasTheFault) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", "/x"}, {VolumeKind::kArtifacts, "", "/x"}}),
            (std::vector<Fault>{{.field = "volumes[1].target",
                                 .what = "'/x' is already the target of another volume"}}));
}

TEST(ValidateVolumes, AVolumeWithinAReadOnlyVolumeHasTheFaultInEitherOrder) {
  const Volume outer{VolumeKind::kTree, kTreeId, "/data", true};
  const Volume inner{VolumeKind::kTree, kTreeId, "/data/a/b"};
  const std::string what =
      "'/data/a/b' is within '/data', which is read-only: its folder cannot be created there";

  EXPECT_EQ(volume_faults({outer, inner}),
            (std::vector<Fault>{{.field = "volumes[1].target", .what = what}}));
  EXPECT_EQ(volume_faults({inner, outer}),
            (std::vector<Fault>{{.field = "volumes[0].target", .what = what}}));
}

TEST(ValidateVolumes, AVolumeWithinAWritableVolumeIsValid) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, kTreeId, "/run-here"},
                           {VolumeKind::kArtifacts, "", "/run-here/out"}}),
            std::vector<Fault>{});
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, kTreeId, "/data", true},
                           {VolumeKind::kTree, "", "/database"}}),
            std::vector<Fault>{});
}

TEST(ValidateVolumes, RequireASandbox) {
  EXPECT_EQ(volume_faults({{VolumeKind::kTree, "", "/x"}}, Sandbox::kNone),
            (std::vector<Fault>{
                {.field = "volumes",
                 .what = "is not possible without a sandbox, and this job runs without one"}}));
}

TEST(ValidateVolumes, HaveAMaximumNumber) {
  std::vector<Volume> volumes;
  for (int i = 0; i < 100; ++i)
    volumes.push_back({VolumeKind::kTree, "", "/x" + std::to_string(i)});
  EXPECT_EQ(volume_faults(volumes), std::vector<Fault>{});

  volumes.push_back({VolumeKind::kTree, "", "/y"});

  EXPECT_EQ(volume_faults(volumes),
            (std::vector<Fault>{{.field = "volumes", .what = "are more than 100"}}));
}

}  // namespace
}  // namespace muster::job
