#include "launch/plan_task.h"

#include <gtest/gtest.h>

#include "job/spec.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::Kind;
using job::TaskRole;
using job::Volume;

const job::ImageStandIns kImages{
    {"tf", {.command = {"serve"}, .folder = "/opt/tf", .environment = {{"A", "tf"}, {"B", "tf"}}}},
    {"ps", {.command = {"ps-serve"}}}};

TEST(ProgramOf, IsTheRolesOwnOrTheJobsOrTheStandIns) {
  struct Case {
    job::JobSpec spec;
    TaskRole role;
    Words argv;
  };
  const std::vector<Case> cases{
      {{.command = {"train"}, .arguments = {"--fast"}}, TaskRole::kSingle, {"train", "--fast"}},
      {{.image = "tf", .arguments = {"--fast"}}, TaskRole::kSingle, {"serve", "--fast"}},
      {{.image = "tf", .command = {"train"}}, TaskRole::kSingle, {"train"}},
      {{.image = "unknown"}, TaskRole::kSingle, {}},
      {{.kind = Kind::kGrpc,
        .image = "tf",
        .arguments = {"--fast"},
        .parameter_server = {.image = "ps", .arguments = {"--port"}}},
       TaskRole::kParameterServer,
       {"ps-serve", "--fast", "--port"}},
      {{.kind = Kind::kGrpc,
        .command = {"train"},
        .arguments = {"--fast"},
        .parameter_server = {.command = {"ps.py"}, .arguments = {"-v"}}},
       TaskRole::kParameterServer,
       {"ps.py", "-v"}},
      {{.kind = Kind::kGrpc, .command = {"train"}, .leader = {.arguments = {"--lead"}}},
       TaskRole::kChief,
       {"train", "--lead"}},
      {{.kind = Kind::kGrpc, .command = {"train"}, .leader = {.arguments = {"--lead"}}},
       TaskRole::kWorker,
       {"train"}},
      {{.kind = Kind::kMpi, .image = "tf", .command = {"mpirun"}}, TaskRole::kWorker, {}},
      {{.kind = Kind::kMpi, .command = {"mpirun"}, .worker_command = {"sleep", "1"}},
       TaskRole::kWorker,
       {"sleep", "1"}},
      {{.kind = Kind::kMpi, .command = {"mpirun"}, .worker_command = {"sleep", "1"}},
       TaskRole::kLauncher,
       {"mpirun"}}};
  for (const Case& c : cases) {
    EXPECT_EQ(program_of(c.spec, c.role, kImages), c.argv) << testing::PrintToString(c.argv);
  }
}

TEST(FolderOf, IsTheStandInsUnlessTheJobHasItsOwnFiles) {
  job::JobSpec spec{.image = "tf", .folder = "/home/ada"};
  EXPECT_EQ(folder_of(spec, TaskRole::kSingle, kImages), "/opt/tf");
  EXPECT_EQ(folder_of(spec, TaskRole::kSingle, {}), "/home/ada");

  spec.volumes = {{.kind = Volume::Kind::kHostPath, .source = "/a", .target = "/b"}};
  EXPECT_EQ(folder_of(spec, TaskRole::kSingle, kImages), "/opt/tf");
  spec.volumes = {{.kind = Volume::Kind::kTree, .target = "/home/ada"}};
  EXPECT_EQ(folder_of(spec, TaskRole::kSingle, kImages), "/home/ada");

  spec = {.image = "ps", .folder = "/home/ada"};
  EXPECT_EQ(folder_of(spec, TaskRole::kSingle, kImages), "/home/ada");
}

TEST(SetVariables, OfTheStandInAreOverriddenByTheJobsAndTheRoles) {
  const job::JobSpec spec{.kind = Kind::kGrpc,
                          .image = "tf",
                          .leader = {.environment = {{"C", "chief"}}},
                          .environment = {{"B", "job"}, {"C", "job"}}};

  EXPECT_EQ(set_variables(spec, TaskRole::kWorker, kImages),
            (Variables{{"A", "tf"}, {"B", "job"}, {"C", "job"}}));
  EXPECT_EQ(set_variables(spec, TaskRole::kChief, kImages),
            (Variables{{"A", "tf"}, {"B", "job"}, {"C", "chief"}}));
}

TEST(InAnImage, InheritedVariablesAreIgnored) {
  job::JobSpec spec{.kind = Kind::kGrpc,
                    .image = "tf",
                    .leader = {.environment = {{"HOME", "/lead"}}},
                    .environment = {{"HOME", "/home/ada"}, {"PATH", "/venv/bin"}, {"B", "job"}},
                    .folder = "/home/ada"};
  const ImageFacts image{.folder = "/opt"};
  EXPECT_EQ(set_variables_in_image(spec, TaskRole::kWorker), spec.environment);
  EXPECT_EQ(folder_in_image(spec, image), "/home/ada");

  job::note_inherited({"HOME", "PATH"}, true, spec);

  EXPECT_EQ(set_variables_in_image(spec, TaskRole::kWorker), (Variables{{"B", "job"}}));
  EXPECT_EQ(set_variables_in_image(spec, TaskRole::kChief),
            (Variables{{"B", "job"}, {"HOME", "/lead"}}));
  EXPECT_EQ(folder_in_image(spec, image), "/opt");
  EXPECT_EQ(folder_in_image(spec, {}), "/");
}

}  // namespace
}  // namespace muster::launch
