// The part of a spec's wire that is about roles, volumes and marks.
#include <gtest/gtest.h>

#include "api/test_values.h"
#include "api/wire.h"
#include "base/test_faults.h"

namespace muster::api {
namespace {

using base::Texts;
using job::JobSpec;
using job::Volume;

JobSpec smallest() {
  return {.name = "a", .command = {"b"}, .folder = "/c"};
}

TEST(SpecRoles, HaveTheShapeThatIsDocumented) {
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

TEST(SpecRoles, AreReadBackForEachKindOfJobAndVolume) {
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

TEST(SpecRoles, SayWhatIsWrongByField) {
  EXPECT_EQ(
      faults_of(spec_from_json(R"({"name":"a","command":[],"folder":"/c","kind":"grcp",
              "leader":{"resources":{"gpus":"1"},"workers":1}, "parameter_server":[],
              "leader_slots":"2", "held":1, "labels":{"a":null}, "annotations":["x"],
              "volumes":[{"kind":"nfs","source":1},"/data"]})")),
      (Texts{"kind 'grcp' is none of single, mpi, grpc, torch; did you mean 'grpc'?",
             "leader.resources.gpus must be a whole number, not text",
             "leader.workers is not a field", "leader_slots must be a whole number, not text",
             "parameter_server must be an object, not a list",
             "volumes[0].kind 'nfs' is none of host_path, tree, storage, artifacts",
             "volumes[0].source must be text, not a whole number", "volumes[0].target is missing",
             "volumes[1] must be an object, not text",
             "held must be true or false, not a whole number", "labels.a must be text, not null",
             "annotations must be an object of texts, not a list"}));
}

TEST(SpecRoles, OfATaskAreKept) {
  job::Job job = full_job();
  for (const job::Role role :
       {job::Role::kLauncher, job::Role::kWorker, job::Role::kSingle, job::Role::kChief,
        job::Role::kParameterServer, job::Role::kMaster, job::Role::kEvaluator}) {
    job.tasks[0].role = role;
    EXPECT_EQ(job_from_json(job_to_json(job))->tasks[0].role, role);
  }
}

}  // namespace
}  // namespace muster::api
