// The part of a spec's and a job's wire that is about images, containers, and how ranks are
// started.
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

TEST(ContainerWire, HasTheShapeThatIsDocumented) {
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

TEST(ContainerWire, TellsNothingOfWhatHasItsDefault) {
  const std::string text = spec_to_json(in_an_image());

  for (const char* name : {"user", "registry", "container", "launch", "replaces_entrypoint"}) {
    EXPECT_EQ(text.find("\"" + std::string(name) + "\""), std::string::npos) << name;
  }
  EXPECT_EQ(*spec_from_json(text), in_an_image());
}

TEST(ContainerWire, IsReadBackForEachPolicyAndEachLaunch) {
  for (const auto pull : {PullPolicy::kIfMissing, PullPolicy::kAlways, PullPolicy::kNever}) {
    for (const auto launch : {LaunchBy::kAuto, LaunchBy::kSsh, LaunchBy::kAgent, LaunchBy::kSrun}) {
      JobSpec spec = in_an_image();
      spec.container.pull = pull;
      spec.launch = launch;
      EXPECT_EQ(*spec_from_json(spec_to_json(spec)), spec);
    }
  }
}

TEST(ContainerWire, TakesThePrefixOfACapabilityOff) {
  const auto read = spec_from_json(R"({"name":"a","image":"tf","command":["b"],"folder":"/c",)"
                                   R"("container":{"capabilities":["CAP_SYS_PTRACE","kill"]}})");

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(read->container.capabilities, (Texts{"SYS_PTRACE", "KILL"}));
}

TEST(ContainerWire, SaysWhatIsWrongByField) {
  EXPECT_EQ(
      base::faults_of(spec_from_json(
          R"({"name":"a","command":["b"],"folder":"/c","user":1000,"launch":"shh",)"
          R"("registry":{"server":"r"},"replaces_entrypoint":"no",)"
          R"("container":{"pull":"IfNotPresent","root":true,"capabilities":"KILL",)"
          R"("shm_bytes":"1G"},"leader":{"user":[],"registry":{"secret":1,"username":"a"}}})")),
      (Texts{"user must be text, not a whole number", "registry.username is missing",
             "registry.secret is missing",
             "container.pull 'IfNotPresent' is none of if-missing, always, never",
             "container.capabilities must be a list of texts, not text",
             "container.shm_bytes must be a whole number, not text",
             "container.root is not a field",
             "launch 'shh' is none of auto, ssh, agent, srun; did you mean 'ssh'?",
             "replaces_entrypoint must be true or false, not text",
             "leader.user must be text, not a list",
             "leader.registry.secret must be text, not a whole number"}));
}

TEST(JobWire, TellsHowRanksWereStartedOnceItIsKnown) {
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
}  // namespace muster::api
