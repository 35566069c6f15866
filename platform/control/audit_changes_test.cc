#include "control/audit_changes.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

using access::FieldChange;
using job::Volume;

job::Job plain() {
  return {.id = "x", .spec = {.name = "a", .command = {"b"}, .folder = "/c"}};
}

std::vector<std::string> fields_of(const std::vector<FieldChange>& changes) {
  std::vector<std::string> fields;
  for (const FieldChange& change : changes) fields.push_back(change.field);
  return fields;
}

TEST(AuditChanges, OfAPlainJobOmitUnusedSettings) {
  const job::Job job = plain();

  EXPECT_EQ(fields_of(changes_of(nullptr, &job)),
            (std::vector<std::string>{"gpus", "id", "kind", "phase", "stop_requested", "suspended",
                                      "workers"}));
}

TEST(AuditChanges, NameTheVolumesOfAJobAndTheClaimsOfItsRoles) {
  const job::Job before = plain();
  job::Job after = plain();
  after.spec.image = "tf";
  after.spec.leader.resources.gpus = 1;
  after.spec.parameter_servers = 2;
  after.spec.parameter_server.resources.gpu_share_milli = 500;
  after.spec.evaluators = 1;
  after.spec.evaluator.resources.gpus = 1;
  after.spec.volumes = {{.kind = Volume::Kind::kHostPath, .source = "/mnt/a", .target = "/a"},
                        {.kind = Volume::Kind::kStorage, .source = "s", .target = "/s"},
                        {.kind = Volume::Kind::kHostPath, .source = "/mnt/b", .target = "/b"}};

  EXPECT_EQ(
      changes_of(&before, &after),
      (std::vector<FieldChange>{{.field = "evaluator.gpus", .before = "", .after = "1"},
                                {.field = "evaluators", .before = "", .after = "1"},
                                {.field = "host_paths", .before = "", .after = "/mnt/a, /mnt/b"},
                                {.field = "image", .before = "", .after = "tf"},
                                {.field = "leader.gpus", .before = "", .after = "1"},
                                {.field = "parameter_server.gpus", .before = "", .after = "0.5"},
                                {.field = "parameter_servers", .before = "", .after = "2"}}));
}

TEST(AuditChanges, NameTheMinimumOfAnElasticJobAndNeverItsSeed) {
  const job::Job before = plain();
  job::Job after = plain();
  after.spec.scheduling.min_workers = 2;
  after.sealed_seed = "sealed";

  EXPECT_EQ(changes_of(&before, &after),
            (std::vector<FieldChange>{{.field = "min_workers", .before = "", .after = "2"}}));
}

TEST(AuditChanges, NameTheRightsOfAContainer) {
  const job::Job before = plain();
  job::Job after = plain();
  after.spec.container.capabilities = {"SYS_PTRACE", "IPC_LOCK"};
  after.spec.container.new_privileges = true;

  EXPECT_EQ(changes_of(&before, &after),
            (std::vector<FieldChange>{
                {.field = "capabilities", .before = "", .after = "SYS_PTRACE, IPC_LOCK"},
                {.field = "new_privileges", .before = "", .after = "true"}}));
}

TEST(AuditChanges, NameTheOldAndTheNewLabels) {
  job::Job before = plain();
  before.spec.labels = {{"nightly", ""}};
  job::Job after = plain();
  after.spec.labels = {{"nightly", ""}, {"team", "vision"}};

  EXPECT_EQ(changes_of(&before, &after),
            (std::vector<FieldChange>{
                {.field = "labels", .before = "nightly", .after = "nightly, team=vision"}}));
}

}  // namespace
}  // namespace muster::control
