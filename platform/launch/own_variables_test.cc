#include "launch/own_variables.h"

#include <gtest/gtest.h>

#include "job/inherited.h"

namespace muster::launch {
namespace {

using job::JobSpec;
using job::Kind;
using Notes = std::vector<std::string>;

const std::string kAdvice = " out unless the program finds the others by itself";

JobSpec spec_of(Kind kind) {
  return {.name = "j",
          .kind = kind,
          .command = {"train"},
          .workers = 1,
          .parameter_servers = kind == Kind::kGrpc ? 1 : 0};
}

TEST(OwnVariables, AreSaidWithWhatTheyTakeAway) {
  struct Case {
    Kind kind;
    std::string name;
    std::string what;
  };
  for (const Case& c : {Case{Kind::kGrpc, "TF_CONFIG", "where each task answers"},
                        Case{Kind::kGrpc, "PS_CONFIG", "where each task answers"},
                        Case{Kind::kGrpc, "TYPE", "which task it is"},
                        Case{Kind::kTorch, "MASTER_ADDR", "where the master answers"},
                        Case{Kind::kTorch, "RANK", "which of how many tasks it is"},
                        Case{Kind::kTorch, "PET_RDZV_ID", "how the tasks of this attempt meet"},
                        Case{Kind::kMpi, "HYDRA_HOST_FILE", "where the hostfile is"}}) {
    JobSpec spec = spec_of(c.kind);
    spec.environment[c.name] = "mine";

    EXPECT_EQ(notes_on_own_variables(spec, {}, false),
              Notes{c.name + " is the job's own: Muster's, which says " + c.what +
                    ", is not set; leave it" + kAdvice});
  }
}

TEST(OwnVariables, ThatSayTheSameAreSaidAtOnce) {
  JobSpec spec = spec_of(Kind::kTorch);
  spec.environment = {{"MASTER_ADDR", "h"}, {"MASTER_PORT", "1"}, {"PET_RDZV_ENDPOINT", "h:1"}};

  EXPECT_EQ(notes_on_own_variables(spec, {}, false),
            Notes{"MASTER_ADDR, MASTER_PORT and PET_RDZV_ENDPOINT are the job's own: Muster's, "
                  "which say where the master answers, are not set; leave them" +
                  kAdvice});
}

TEST(OwnVariables, OfARoleAreSaidToBeThatRoles) {
  JobSpec spec = spec_of(Kind::kGrpc);
  spec.environment["PS_CONFIG"] = "all";
  spec.parameter_server.environment["TF_CONFIG"] = "ps";
  spec.leader.environment["TF_CONFIG"] = "chief";

  const Notes notes = notes_on_own_variables(spec, {}, false);

  ASSERT_EQ(notes.size(), 2U);
  EXPECT_TRUE(notes[0].starts_with("PS_CONFIG is the job's own: ")) << notes[0];
  EXPECT_TRUE(
      notes[1].starts_with("TF_CONFIG is the job's own in its tasks of role chief and ps: "))
      << notes[1];
}

TEST(OwnVariables, OfARoleThatTheJobHasNoTaskOfAreNotSet) {
  JobSpec spec = spec_of(Kind::kGrpc);
  spec.evaluator.environment["TF_CONFIG"] = "none";

  EXPECT_EQ(notes_on_own_variables(spec, {}, false), Notes());
}

TEST(OwnVariables, MayBeSecrets) {
  JobSpec spec = spec_of(Kind::kGrpc);
  spec.secrets = {{.name = "CLUSTER", .variable = "TF_CONFIG"}, {.name = "CA", .file = "ca"}};

  EXPECT_EQ(notes_on_own_variables(spec, {}, true).size(), 1U);
}

TEST(OwnVariables, MayComeFromWhatStandsInForAnImageOrFromTheShell) {
  JobSpec spec = spec_of(Kind::kTorch);
  spec.image = "torch";
  spec.environment["MASTER_PORT"] = "1";
  job::note_inherited({"MASTER_PORT"}, false, spec);
  const job::ImageStandIns images{{"torch", {.environment = {{"MASTER_ADDR", "h"}}}}};

  const Notes here = notes_on_own_variables(spec, images, false);
  ASSERT_EQ(here.size(), 1U);
  EXPECT_TRUE(here[0].starts_with("MASTER_ADDR and MASTER_PORT are"));

  EXPECT_EQ(notes_on_own_variables(spec, images, true), Notes());
}

TEST(OwnVariables, AreNotWorthAWordWhereTheyTuneOrMeanNothingToTheKind) {
  JobSpec torch = spec_of(Kind::kTorch);
  torch.environment = {{"PET_MAX_RESTARTS", "3"}, {"PET_NPROC_PER_NODE", "gpu"}, {"TF_CONFIG", ""}};
  EXPECT_EQ(notes_on_own_variables(torch, {}, false), Notes());

  JobSpec single = spec_of(Kind::kSingle);
  single.environment = {{"MASTER_ADDR", "h"}, {"TF_CONFIG", "{}"}};
  EXPECT_EQ(notes_on_own_variables(single, {}, false), Notes());
}

}  // namespace
}  // namespace muster::launch
