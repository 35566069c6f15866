// Images, containers and launch methods in a spec and a job on the wire.

#include <gtest/gtest.h>

#include "api/test_values.h"
#include "api/wire.h"
#include "base/test_faults.h"

namespace muster::api {
namespace {

using base::Texts;
using job::JobSpec;
using job::LaunchBy;
using job::PullPolicy;

JobSpec in_an_image() {
  return {.name = "a", .kind = job::Kind::kMpi, .image = "tf", .command = {"b"}, .folder = "/c"};
}

TEST(ContainerWire, HasTheDocumentedShape) {
  JobSpec spec = in_an_image();
  spec.user = "1000:video";
  spec.registry = {.server = "r.example.com:5000", .username = "ada", .secret = "KEY"};
  spec.container = {.pull = PullPolicy::kNever,
                    .writable_root = true,
                    .new_privileges = true,
                    .capabilities = {"SYS_PTRACE"},
                    .shm_bytes = 1 << 30};
  spec.launch = LaunchBy::kAgent;
  spec.replaces_entrypoint = false;
  spec.leader = {.image = "lead",
                 .user = "root",
                 .registry = {.server = {}, .username = "bob", .secret = "OTHER"}};

  const std::string text = spec_to_json(spec);

  EXPECT_NE(
      text.find(R"("image":"tf","user":"1000:video",)"
                R"("registry":{"server":"r.example.com:5000","username":"ada","secret":"KEY"},)"
                R"("container":{"pull":"never","writable_root":true,"new_privileges":true,)"
                R"("capabilities":["SYS_PTRACE"],"shm_bytes":1073741824},)"
                R"("launch":"agent","replaces_entrypoint":false,"command":["b"])"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("leader":{"image":"lead","user":"root",)"
                      R"("registry":{"username":"bob","secret":"OTHER"}})"),
            std::string::npos)
      << text;
  EXPECT_EQ(*spec_from_json(text), spec);
}

TEST(ContainerWire, OmitsDefaults) {
  const std::string text = spec_to_json(in_an_image());

  for (const char* name : {"user", "registry", "container", "launch", "replaces_entrypoint"}) {
    EXPECT_EQ(text.find("\"" + std::string(name) + "\""), std::string::npos) << name;
  }
  EXPECT_EQ(*spec_from_json(text), in_an_image());
}

TEST(ContainerWire, ReadsBackEachPolicyAndEachLaunchMethod) {
  for (const auto pull : {PullPolicy::kIfMissing, PullPolicy::kAlways, PullPolicy::kNever}) {
    for (const auto launch : {LaunchBy::kAuto, LaunchBy::kSsh, LaunchBy::kAgent, LaunchBy::kSrun}) {
      JobSpec spec = in_an_image();
      spec.container.pull = pull;
      spec.launch = launch;
      EXPECT_EQ(*spec_from_json(spec_to_json(spec)), spec);
    }
  }
}

TEST(ContainerWire, RemovesThePrefixOfACapability) {
  const auto read = spec_from_json(R"({"name":"a","image":"tf","command":["b"],"folder":"/c",)"
                                   R"("container":{"capabilities":["CAP_SYS_PTRACE","kill"]}})");

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->container.capabilities, (Texts{"SYS_PTRACE", "KILL"}));
}

TEST(ContainerWire, ReportsFaultsByField) {
  EXPECT_EQ(
      base::faults_of(spec_from_json(
          R"({"name":"a","command":["b"],"folder":"/c","user":1000,"launch":"shh",)"
          R"("registry":{"server":"r"},"replaces_entrypoint":"no",)"
          R"("container":{"pull":"IfNotPresent","root":true,"capabilities":"KILL",)"
          R"("shm_bytes":"1G"},"leader":{"user":[],"registry":{"secret":1,"username":"a"}}})")),
      (Texts{"user must be text, not a whole number", "registry.username is missing",
             "registry.secret is missing",
             "container.pull 'IfNotPresent' is invalid: expected one of if-missing, always, never",
             "container.capabilities must be a list of texts, not text",
             "container.shm_bytes must be a whole number, not text",
             "container.root is not a field",
             "launch 'shh' is invalid: expected one of auto, ssh, agent, srun; did you mean 'ssh'?",
             "replaces_entrypoint must be true or false, not text",
             "leader.user must be text, not a list",
             "leader.registry.secret must be text, not a whole number"}));
}

TEST(JobWire, HasTheLaunchMethodOnceItIsChosen) {
  job::Job job{.id = "x", .spec = in_an_image(), .submitted = time_at(0)};
  EXPECT_EQ(job_to_json(job).find("\"launch\""), std::string::npos);
  job.launch = job::LaunchFacts{
      .by = LaunchBy::kSsh, .why = "the images have sshd and ssh", .mpi = "Open MPI 4.1.4"};

  const std::string text = job_to_json(job);

  EXPECT_NE(text.find(R"("launch":{"by":"ssh","why":"the images have sshd and ssh",)"
                      R"("mpi":"Open MPI 4.1.4"})"),
            std::string::npos)
      << text;
  EXPECT_EQ(*job_from_json(text), job);
}

}  // namespace
namespace {

JobSpec spec_with(job::SlurmSpec slurm) {
  return {.name = "a",
          .kind = job::Kind::kMpi,
          .slurm = std::move(slurm),
          .command = {"b"},
          .folder = "/c"};
}

TEST(SlurmWire, HasTheDocumentedShape) {
  const JobSpec spec = spec_with({.partition = "gpu,long",
                                  .account = "vision",
                                  .qos = "high",
                                  .reservation = "spring",
                                  .constraint = "a100&nvlink"});

  const std::string text = spec_to_json(spec);

  EXPECT_NE(text.find(R"("slurm":{"partition":"gpu,long","account":"vision","qos":"high",)"
                      R"("reservation":"spring","constraint":"a100&nvlink"},"command":["b"])"),
            std::string::npos)
      << text;
  EXPECT_EQ(*spec_from_json(text), spec);
}

TEST(SlurmWire, HasEachFieldAndOmitsEmptyFields) {
  EXPECT_EQ(spec_to_json(spec_with({})).find("slurm"), std::string::npos);
  EXPECT_EQ(*spec_from_json(spec_to_json(spec_with({}))), spec_with({}));
  const std::vector<std::pair<std::string, std::string job::SlurmSpec::*>> fields{
      {"partition", &job::SlurmSpec::partition},
      {"account", &job::SlurmSpec::account},
      {"qos", &job::SlurmSpec::qos},
      {"reservation", &job::SlurmSpec::reservation},
      {"constraint", &job::SlurmSpec::constraint}};
  for (const auto& [name, member] : fields) {
    job::SlurmSpec slurm;
    slurm.*member = "x";
    const std::string text = spec_to_json(spec_with(slurm));
    EXPECT_NE(text.find(R"("slurm":{")" + name + R"(":"x"},)"), std::string::npos) << text;
    EXPECT_EQ(*spec_from_json(text), spec_with(slurm)) << text;
  }
}

TEST(SlurmWire, ReportsFaultsByField) {
  EXPECT_EQ(
      base::faults_of(spec_from_json(R"({"name":"a","command":["b"],"folder":"/c",)"
                                     R"("slurm":{"partition":["gpu"],"account":1,"nodes":2}})")),
      (Texts{"slurm.partition must be text, not a list",
             "slurm.account must be text, not a whole number", "slurm.nodes is not a field"}));
}

}  // namespace

// Roles, volumes and labels in a spec on the wire.
namespace {

using job::Volume;

JobSpec smallest() {
  return {.name = "a", .command = {"b"}, .folder = "/c"};
}

TEST(SpecRoles, HaveTheDocumentedShape) {
  JobSpec spec = smallest();
  spec.kind = job::Kind::kGrpc;
  spec.image = "tf";
  spec.arguments = {"-v"};
  spec.leader = {.command = {"chief"}};
  spec.parameter_servers = 1;
  spec.parameter_server = {.image = "ps", .environment = {{"A", "1"}}};
  spec.evaluators = 1;
  spec.evaluator = {.command = {"evaluate"}};
  spec.volumes = {{.kind = Volume::Kind::kStorage, .source = "s", .target = "/s"},
                  {.kind = Volume::Kind::kArtifacts, .target = "/a", .read_only = true}};
  spec.held = true;
  spec.labels = {{"tag", ""}};

  const std::string text = spec_to_json(spec);

  EXPECT_NE(text.find(R"("kind":"grpc","image":"tf","command":["b"],"arguments":["-v"],)"
                      R"("workers":0)"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find(R"("leader":{"command":["chief"]},"parameter_servers":1,)"
                      R"("parameter_server":{"image":"ps","environment":{"A":"1"}},)"
                      R"("evaluators":1,"evaluator":{"command":["evaluate"]},)"
                      R"("volumes":[{"kind":"storage","source":"s","target":"/s"},)"
                      R"({"kind":"artifacts","target":"/a","read_only":true}],)"
                      R"("held":true,"labels":{"tag":""},"scheduling":)"),
            std::string::npos)
      << text;
  EXPECT_EQ(*spec_from_json(text), spec);
}

TEST(SpecRoles, ReadBackForEachKindOfJobAndVolume) {
  for (const job::Kind kind :
       {job::Kind::kSingle, job::Kind::kMpi, job::Kind::kGrpc, job::Kind::kTorch}) {
    JobSpec spec = full_spec();
    spec.kind = kind;
    const auto read = spec_from_json(spec_to_json(spec));
    ASSERT_TRUE(read) << read.error().to_string();
    EXPECT_EQ(*read, spec);
  }
  for (const Volume::Kind kind : {Volume::Kind::kHostPath, Volume::Kind::kTree,
                                  Volume::Kind::kStorage, Volume::Kind::kArtifacts}) {
    JobSpec spec = smallest();
    spec.volumes = {{.kind = kind, .source = kBinary, .target = "/" + kBinary}};
    EXPECT_EQ(*spec_from_json(spec_to_json(spec)), spec);
  }
}

TEST(SpecRoles, OfAJobWithAnImageMayHaveAnEmptyCommand) {
  const auto read = spec_from_json(R"({"name":"a","image":"tf","command":[],"folder":"/c"})");

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, (JobSpec{.name = "a", .image = "tf", .folder = "/c"}));
}

TEST(SpecRoles, ReportFaultsByField) {
  EXPECT_EQ(
      faults_of(spec_from_json(R"({"name":"a","command":[],"folder":"/c","kind":"grcp",
              "leader":{"resources":{"gpus":"1"},"workers":1}, "parameter_server":[],
              "leader_slots":"2", "held":1, "labels":{"a":null}, "annotations":["x"],
              "volumes":[{"kind":"nfs","source":1},"/data"]})")),
      (Texts{
          "kind 'grcp' is invalid: expected one of single, mpi, grpc, torch; did you mean 'grpc'?",
          "leader.resources.gpus must be a whole number, not text", "leader.workers is not a field",
          "leader_slots must be a whole number, not text",
          "parameter_server must be an object, not a list",
          "volumes[0].kind 'nfs' is invalid: expected one of host_path, tree, storage, artifacts",
          "volumes[0].source must be text, not a whole number", "volumes[0].target is missing",
          "volumes[1] must be an object, not text",
          "held must be true or false, not a whole number", "labels.a must be text, not null",
          "annotations must be an object of texts, not a list"}));
}

TEST(SpecRoles, OfATaskAreKept) {
  job::Job job = full_job();
  for (const job::TaskRole role :
       {job::TaskRole::kLauncher, job::TaskRole::kWorker, job::TaskRole::kSingle,
        job::TaskRole::kChief, job::TaskRole::kParameterServer, job::TaskRole::kMaster,
        job::TaskRole::kEvaluator}) {
    job.tasks[0].role = role;
    EXPECT_EQ(job_from_json(job_to_json(job))->tasks[0].role, role);
  }
}

}  // namespace
}  // namespace muster::api
