// Plans of tasks in images; plan_test.cc has the others.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/fake_random.h"
#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;

ImageFacts image() {
  return {.image = "horovod",
          .id = "sha256:abc",
          .entrypoint = {"/entry", "--"},
          .command = {"python3"},
          .environment = {{"PATH", "/opt/bin"}, {"NCCL", "2"}, {"MUSTER_JOB", "image"}},
          .folder = "/examples",
          .account = {.uid = 1000, .gid = 1001, .name = "mpiuser", .home = "/home/mpiuser"},
          .sshd = "/usr/local/sbin/sshd",
          .has_ssh = true,
          .has_shell = true};
}

GangPlan plan_in_image(const job::JobSpec& spec, const ImageFacts& facts = image()) {
  Job job{.id = "j1", .spec = spec, .attempt = 1};
  job.tasks = job::tasks_of(spec);
  Site site{.user = "server",
            .programs = "/opt/muster/bin",
            .generated_folder = [](std::string_view) { return std::string("/generated"); },
            .reach = Reach::kNames};
  for (job::Task& task : job.tasks) {
    task.node = "n1";
    site.image_facts[task.name] = facts;
  }
  base::FakeRandom random;
  auto plan = plan_gang(job, make_seed(random), site);
  EXPECT_TRUE(plan);
  return *std::move(plan);
}

job::JobSpec single(Words command, Words arguments, bool replaces_entrypoint) {
  return {.name = "one",
          .image = "horovod",
          .command = std::move(command),
          .arguments = std::move(arguments),
          .replaces_entrypoint = replaces_entrypoint};
}

TEST(PlanImage, CommandReplacesTheEntryPointOrIsPassedToIt) {
  struct Case {
    job::JobSpec spec;
    Words argv;
  };
  const std::vector<Case> cases{
      {single({}, {}, true), {"/entry", "--", "python3"}},
      {single({}, {}, false), {"/entry", "--", "python3"}},
      {single({"train"}, {"-x"}, true), {"train", "-x"}},
      {single({"train"}, {"-x"}, false), {"/entry", "--", "train", "-x"}},
      {single({}, {"-x"}, true), {"/entry", "--", "-x"}},
      {single({}, {"-x"}, false), {"/entry", "--", "-x"}},
  };

  for (const Case& item : cases) {
    EXPECT_EQ(plan_in_image(item.spec).then[0].argv, item.argv)
        << testing::PrintToString(item.argv);
  }
}

TEST(PlanImage, ImageVariablesAreOverriddenByMustersAndTheJobs) {
  job::JobSpec spec = single({"train"}, {}, true);
  spec.environment = {{"NCCL", "3"}};

  const auto environment = plan_in_image(spec).then[0].environment;

  EXPECT_EQ(environment.at("PATH"), "/opt/bin");
  EXPECT_EQ(environment.at("NCCL"), "3");
  EXPECT_EQ(environment.at("MUSTER_JOB"), "one");
  EXPECT_EQ(environment.at("HOME"), "/home/mpiuser");
  EXPECT_EQ(environment.at("USER"), "mpiuser");

  spec.environment = {{"PATH", "/mine"}, {"HOME", "/data"}};
  EXPECT_EQ(plan_in_image(spec).then[0].environment.at("PATH"), "/mine");
  EXPECT_EQ(plan_in_image(spec).then[0].environment.at("HOME"), "/data");

  ImageFacts plain = image();
  plain.environment.clear();
  EXPECT_EQ(plan_in_image(single({"train"}, {}, true), plain).then[0].environment.at("PATH"),
            "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

TEST(PlanImage, FolderIsTheJobsOrTheImagesOrTheRoot) {
  job::JobSpec spec = single({"train"}, {}, true);
  ImageFacts plain = image();
  plain.folder.clear();

  EXPECT_EQ(plan_in_image(spec).then[0].folder, "/examples");
  EXPECT_EQ(plan_in_image(spec, plain).then[0].folder, "/");
  spec.folder = "/data";
  EXPECT_EQ(plan_in_image(spec).then[0].folder, "/data");
}

TEST(PlanImage, ImageIsGivenByItsIdWithItsAccountAndContainerSettings) {
  job::JobSpec spec = single({"train"}, {}, true);
  spec.container = {.writable_root = true, .capabilities = {"SYS_PTRACE"}, .shm_bytes = 1 << 30};
  spec.resources = {.cpu_milli = 500, .memory_bytes = 1 << 20};

  const TaskPlan task = plan_in_image(spec).then[0];

  EXPECT_EQ(task.image, "sha256:abc");
  EXPECT_EQ(task.account, image().account);
  EXPECT_EQ(task.container, spec.container);
  EXPECT_EQ(task.resources, spec.resources);
  EXPECT_EQ(task.reach, Reach::kNames);
}

TEST(PlanImage, LauncherLogsInAsTheImagesAccountAtTheImagesSshd) {
  job::JobSpec spec{.name = "dist", .kind = Kind::kMpi, .command = {"mpirun"}, .workers = 1};

  const GangPlan plan = plan_in_image(spec);

  const auto config =
      std::find_if(plan.then[0].files.begin(), plan.then[0].files.end(),
                   [](const PlannedFile& file) { return file.path == "ssh/config"; });
  EXPECT_NE(config->content.find("  User mpiuser\n"), std::string::npos);
  EXPECT_EQ(plan.first[0].ssh->command.front(), "/usr/local/sbin/sshd");
  EXPECT_TRUE(plan.first[0].argv.empty());  // the image's entry point does not run
}

TEST(PlanImage, FabricChosenByTheImageIsKept) {
  job::JobSpec spec{.name = "dist", .kind = Kind::kMpi, .command = {"mpirun"}, .workers = 1};
  ImageFacts facts = image();
  facts.environment["FI_PROVIDER"] = "verbs";

  const MpiChoice choice = *plan_in_image(spec, facts).then[0].mpi;

  EXPECT_FALSE(choice.variants.at(job::MpiKind::kIntel).environment.contains("FI_PROVIDER"));
}

}  // namespace
}  // namespace muster::launch
