#include <gtest/gtest.h>

#include "launch/plan.h"

namespace muster::launch {
namespace {

using job::Job;
using job::LaunchBy;

const ImageFacts kComplete{
    .image = "horovod", .sshd = "/usr/sbin/sshd", .has_ssh = true, .has_shell = true};

ImageFacts without_sshd(const std::string& name) {
  ImageFacts image = kComplete;
  image.image = name;
  image.sshd.clear();
  return image;
}

ImageFacts without_ssh(const std::string& name) {
  ImageFacts image = kComplete;
  image.image = name;
  image.has_ssh = false;
  return image;
}

ImageFacts without_shell(const std::string& name) {
  ImageFacts image = kComplete;
  image.image = name;
  image.has_shell = false;
  return image;
}

ImageFacts without_name() {
  ImageFacts image = kComplete;
  image.account = {.uid = 1000, .gid = 1000, .name = "", .home = "/"};
  return image;
}

struct LaunchChoiceCase {
  std::string name;
  LaunchBy asked = LaunchBy::kAuto;
  ImageFacts launcher;
  ImageFacts worker;
  std::string outcome;  ///< "ssh: WHY", "agent: WHY", "refused: WHAT"
  int leader_slots = 0;
  std::string remote_shell = "/muster/bin/muster-rsh";
};

std::string outcome_of(const LaunchChoiceCase& item) {
  Job job{.id = "j1",
          .spec = {.name = "dist",
                   .kind = job::Kind::kMpi,
                   .launch = item.asked,
                   .workers = 2,
                   .leader_slots = item.leader_slots}};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) task.node = "n1";
  Site site{.image_facts = {{"launcher", item.launcher},
                            {"worker-0", item.worker},
                            {"worker-1", item.worker}},
            .remote_shell = item.remote_shell};
  const auto chosen = choose_launch(job, site);
  if (!chosen) {
    EXPECT_EQ(chosen.error().code, base::ErrorCode::kRefused);
    EXPECT_FALSE(chosen.error().advice.empty());
    return "refused: " + chosen.error().what;
  }
  return std::string(to_string(chosen->by)) + ": " + chosen->why;
}

TEST(ChooseLaunch, TakesSshIfTheImagesSupportItAndTheAgentOtherwise) {
  const std::vector<LaunchChoiceCase> cases{
      {.name = "all have all",
       .launcher = kComplete,
       .worker = kComplete,
       .outcome = "ssh: the images have sshd and ssh"},
      {.name = "a launcher that takes no ranks needs no sshd",
       .launcher = without_sshd("front"),
       .worker = kComplete,
       .outcome = "ssh: the images have sshd and ssh"},
      {.name = "one that takes some does",
       .launcher = without_sshd("front"),
       .worker = kComplete,
       .outcome = "agent: image 'front' has no sshd",
       .leader_slots = 1},
      {.name = "a worker needs no client",
       .launcher = kComplete,
       .worker = without_ssh("w"),
       .outcome = "ssh: the images have sshd and ssh"},
      {.name = "each image is named once, with what it lacks",
       .launcher = without_ssh("front"),
       .worker = without_sshd("w"),
       .outcome = "agent: image 'front' has no ssh; image 'w' has no sshd"},
      {.name = "no shell",
       .launcher = kComplete,
       .worker = without_shell("w"),
       .outcome = "agent: image 'w' has no shell (/bin/sh), which ssh requires"},
      {.name = "a user without a name",
       .launcher = kComplete,
       .worker = without_name(),
       .outcome = "agent: image 'horovod' has no name for user 1000, which ssh requires"},
      {.name = "no agent to turn to",
       .launcher = kComplete,
       .worker = without_sshd("w"),
       .outcome =
           "refused: image 'w' has no sshd, but Muster's own remote shell (muster-rsh) is missing",
       .remote_shell = ""},
      {.name = "ssh on request",
       .asked = LaunchBy::kSsh,
       .launcher = kComplete,
       .worker = kComplete,
       .outcome = "ssh: requested by the job"},
      {.name = "ssh on request that cannot be",
       .asked = LaunchBy::kSsh,
       .launcher = kComplete,
       .worker = without_sshd("w"),
       .outcome = "refused: the job requests --launch ssh, but image 'w' has no sshd"},
      {.name = "the agent on request",
       .asked = LaunchBy::kAgent,
       .launcher = kComplete,
       .worker = kComplete,
       .outcome = "agent: requested by the job"},
      {.name = "the agent on request that is not there",
       .asked = LaunchBy::kAgent,
       .launcher = kComplete,
       .worker = kComplete,
       .outcome = "refused: the job requests --launch agent, but Muster's own remote shell "
                  "(muster-rsh) is missing",
       .remote_shell = ""},
  };

  for (const LaunchChoiceCase& item : cases) EXPECT_EQ(outcome_of(item), item.outcome) << item.name;
}

TEST(ChooseLaunch, TakesTheMachinesSshdWithoutImages) {
  Job job{.spec = {.name = "dist", .kind = job::Kind::kMpi, .workers = 1}};
  job.tasks = job::tasks_of(job.spec);

  const auto chosen = choose_launch(job, {.remote_shell = "/usr/libexec/muster/muster-rsh"});
  ASSERT_TRUE(chosen);
  EXPECT_EQ(chosen->by, LaunchBy::kSsh);
  EXPECT_EQ(chosen->why, "the machine has its own sshd");

  job.spec.launch = LaunchBy::kAgent;
  EXPECT_EQ(choose_launch(job, {.remote_shell = "/usr/libexec/muster/muster-rsh"})->by,
            LaunchBy::kAgent);
}

TEST(ChooseLaunch, AssumesNoSshdOnTheNodesOfACluster) {
  const Job job{.spec = {.name = "dist", .kind = job::Kind::kMpi, .workers = 2}};
  Site site{.srun = "/usr/bin/srun", .joiner = "/opt/muster-node"};

  EXPECT_EQ(choose_launch(job, site)->by, LaunchBy::kSsh);
  site.remote_shell = "/opt/muster-rsh";
  EXPECT_EQ(choose_launch(job, site)->by, LaunchBy::kAgent);
}

TEST(ChooseLaunch, RefusesMpirunInAFolderWithABlankInItsPath) {
  Job job{.spec = {.name = "dist", .kind = job::Kind::kMpi, .command = {"./a"}, .workers = 1}};
  job.tasks = job::tasks_of(job.spec);
  Site site{
      .generated_folder = [](std::string_view task) { return "/my disk/" + std::string(task); },
      .remote_shell = "/muster/bin/muster-rsh",
      .srun = "/usr/bin/srun",
      .joiner = "/opt/muster-node"};

  for (const LaunchBy by : {LaunchBy::kAuto, LaunchBy::kSsh, LaunchBy::kAgent}) {
    job.spec.launch = by;
    const auto chosen = choose_launch(job, site);
    ASSERT_FALSE(chosen) << to_string(by);
    EXPECT_EQ(chosen.error().code, base::ErrorCode::kRefused);
    EXPECT_EQ(
        chosen.error().what,
        "the folder '/my disk/launcher' of task 'launcher' has a blank in its path, and mpirun "
        "splits paths at blanks");
    EXPECT_FALSE(chosen.error().advice.empty());
  }
  job.spec.launch = LaunchBy::kSrun;
  EXPECT_TRUE(choose_launch(job, site));
  job.spec.launch = LaunchBy::kAgent;
  site.generated_folder = [](std::string_view) { return std::string("/generated"); };
  EXPECT_TRUE(choose_launch(job, site));
}

TEST(ChooseLaunch, ChoosesNothingForJobsWithoutALauncher) {
  const Job job{.spec = {.name = "one", .launch = LaunchBy::kSsh}};

  EXPECT_EQ(*choose_launch(job, {}), job::LaunchFacts());
}

}  // namespace
}  // namespace muster::launch
