#include "engine/slurm/gang_submission.h"

#include <gtest/gtest.h>

#include "job/validate.h"

namespace muster::engine::slurm {
namespace {

constexpr int64_t kGiga = int64_t{1} << 30;

TaskWish task(const std::string& name, job::Resources needs = {}) {
  return {.task = name, .resources = needs};
}

RoomWish wish(std::vector<TaskWish> tasks) {
  return {.job = "train", .project = "vision", .tasks = std::move(tasks)};
}

std::vector<std::pair<int, int>> places(const RoomWish& wish) {
  std::vector<std::pair<int, int>> found;
  for (const Seat& seat : seats_for(wish)) found.emplace_back(seat.component, seat.index);
  return found;
}

using Places = std::vector<std::pair<int, int>>;

TEST(Seats, TasksThatNeedTheSameAreOneComponent) {
  EXPECT_EQ(places(wish({task("a"), task("b")})), (Places{{0, 0}, {0, 1}}));
}

TEST(Seats, ALauncherWithNeedsOfItsOwnIsTheFirstComponent) {
  const job::Resources launcher{.cpu_milli = 500};
  const job::Resources worker{.gpus = 4};
  EXPECT_EQ(places(wish({task("launcher", launcher), task("w0", worker), task("w1", worker)})),
            (Places{{0, 0}, {1, 0}, {1, 1}}));
}

TEST(Seats, WhoClaimsNothingBesideOthersIsAGuestBehindAllComponents) {
  const job::Resources worker{.gpus = 4};
  const RoomWish gang = wish({task("launcher"), task("w0", worker), task("w1", worker)});

  EXPECT_EQ(places(gang), (Places{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_EQ(guests_of(gang), 1);
  EXPECT_EQ(submission_for(gang, {})->components.size(), 1U);
}

TEST(Seats, ALauncherWithoutRanksIsAGuestThoughNobodyClaimsAnything) {
  RoomWish gang = wish({task("launcher"), task("w0"), task("w1")});
  gang.tasks.front().only_launches = true;

  EXPECT_EQ(places(gang), (Places{{1, 0}, {0, 0}, {0, 1}}));
  EXPECT_EQ(submission_for(gang, {})->components.front().tasks, 2);
}

TEST(Seats, ALauncherThatIsAloneIsNobodysGuest) {
  RoomWish gang = wish({task("launcher")});
  gang.tasks.front().only_launches = true;

  EXPECT_EQ(guests_of(gang), 0);
}

TEST(Seats, ALauncherThatOnlyLaunchesIsAGuestThoughNobodyClaimsAnything) {
  RoomWish gang = wish({task("launcher"), task("w0"), task("w1")});
  gang.tasks[0].only_launches = true;
  EXPECT_EQ(places(gang), (Places{{1, 0}, {0, 0}, {0, 1}}));
}

TEST(Submissions, ANodeIsAskedForWhatItsTasksNeed) {
  const job::Resources needs{.gpus = 2, .cpu_milli = 1'500, .memory_bytes = 4 * kGiga};
  SlurmEngineOptions options;
  options.tasks_per_node = 2;
  RoomWish gang = wish({task("a", needs), task("b", needs), task("c", needs)});
  gang.gpu_models = {"a100"};

  const auto submission = submission_for(gang, options);

  ASSERT_TRUE(submission);
  EXPECT_EQ(submission->components, (std::vector<Component>{{.tasks = 3,
                                                             .tasks_per_node = 2,
                                                             .cpus_per_task = 2,
                                                             .memory_bytes_per_node = 8 * kGiga,
                                                             .gpus_per_node = 4,
                                                             .gpu_type = "a100"}}));
}

TEST(Submissions, ANodeIsNotAskedForTasksThatThereAreNot) {
  SlurmEngineOptions options;
  options.tasks_per_node = 8;
  const auto submission = submission_for(wish({task("a", {.gpus = 1})}), options);
  EXPECT_EQ(submission->components[0].tasks_per_node, 1);
  EXPECT_EQ(submission->components[0].gpus_per_node, 1);
}

TEST(Submissions, AnElasticGangSaysWithHowManyItMayDo) {
  RoomWish gang = wish({task("a"), task("b"), task("c")});
  gang.tasks[2].may_be_missing = true;
  EXPECT_EQ(submission_for(gang, {})->components[0].least_tasks, 2);
}

struct AccountCase {
  const char* project;
  const char* of_job;
  const char* expected;
};

TEST(Submissions, TheAccountIsTheJobsOrTheProjectsOrTheDefault) {
  SlurmEngineOptions options;
  options.accounts = {{"vision", "v42"}};
  options.default_account = "muster-%p-x";
  for (const AccountCase& each :
       {AccountCase{"vision", "", "v42"}, AccountCase{"vision", "own", "own"},
        AccountCase{"audio", "", "muster-audio-x"}}) {
    RoomWish gang = wish({task("a")});
    gang.project = each.project;
    gang.slurm.account = each.of_job;
    EXPECT_EQ(submission_for(gang, options)->account, each.expected) << each.project;
  }
}

TEST(Submissions, WhatTheJobSaysOfSlurmWins) {
  SlurmEngineOptions options;
  options.qos = "normal";
  RoomWish gang = wish({task("a")});
  gang.node_pools = {"main", "long"};
  gang.avoided_nodes = {"n3"};
  auto submission = submission_for(gang, options);
  EXPECT_EQ(submission->partition, "main,long");
  EXPECT_EQ(submission->qos, "normal");
  EXPECT_EQ(submission->excluded_nodes, std::vector<std::string>{"n3"});

  gang.slurm.partition = "gpu";
  gang.slurm.qos = "high";
  submission = submission_for(gang, options);
  EXPECT_EQ(submission->partition, "gpu");
  EXPECT_EQ(submission->qos, "high");
}

TEST(Submissions, SlurmsLimitLeavesTimeForTheGraceAndForSlurm) {
  RoomWish gang = wish({task("a")});
  EXPECT_FALSE(submission_for(gang, {})->time_limit);
  gang.time_limit = std::chrono::minutes(10);
  gang.grace = std::chrono::seconds(30);
  EXPECT_EQ(submission_for(gang, {})->time_limit, std::chrono::minutes(12));
}

TEST(Submissions, AllThatCannotBeHadIsSaidAtOnce) {
  RoomWish gang = wish({task("a", {.gpu_share_milli = 500}), task("b", {.gpu_memory_bytes = kGiga}),
                        task("c", {.gpus = 1})});
  gang.gpu_models = {"a100", "h100"};

  const auto submission = submission_for(gang, {});

  ASSERT_FALSE(submission);
  EXPECT_EQ(submission.error().code, base::ErrorCode::kRefused);
  EXPECT_EQ(submission.error().faults.size(), 3U);
}

// Neither is a list, nor a number, nor an option of its own.
TEST(Submissions, APoolAndAModelOfGpusAreOneNameEach) {
  for (const std::string& bad :
       {std::string("a,b"), std::string("a100:8"), std::string("a b"), std::string("-p"),
        std::string("a\n#SBATCH --uid=0"), std::string("a\"b"), std::string("a\\b"),
        std::string("a(b)"), std::string("a;b"), std::string("$(id)")}) {
    RoomWish gang = wish({task("a", {.gpus = 1})});
    gang.node_pools = {"main", bad};
    gang.gpu_models = {bad};

    const auto submission = submission_for(gang, {});

    ASSERT_FALSE(submission) << bad;
    ASSERT_EQ(submission.error().faults.size(), 2U) << bad;
    EXPECT_EQ(submission.error().faults[0].field, "node pools");
    EXPECT_EQ(submission.error().faults[1].field, "gpu models");
  }
}

// The name and the project stand in the submission as they are: what they may be is settled before.
TEST(Submissions, NamesOfJobsAndProjectsThatWouldBeMoreAreNoneAtAll) {
  for (const char* bad : {"a b", "a\n#SBATCH --uid=0", "a\"b", "-p", "a,b", "%p", "$(id)", "a;b"}) {
    job::JobSpec spec{.name = bad, .project = bad, .command = {"true"}, .folder = "/"};
    std::vector<std::string> fields;
    for (const base::Fault& fault : job::validate(spec)) fields.push_back(fault.field);
    EXPECT_EQ(fields, (std::vector<std::string>{"name", "project"})) << bad;
  }
}

TEST(Submissions, TheirShapeTellsWhetherTheSameIsAskedFor) {
  RoomWish gang = wish({task("a")});
  const std::string shape = shape_of(*submission_for(gang, {}));
  EXPECT_EQ(shape_of(*submission_for(gang, {})), shape);
  gang.avoided_nodes = {"n1"};
  EXPECT_NE(shape_of(*submission_for(gang, {})), shape);
}

TEST(Comments, SayWhoseTheyAre) {
  const std::string comment = comment_for("0123456789abcdef", {"job1", 3});
  EXPECT_EQ(comment, "muster:0123456789abcdef:job1:3");
  EXPECT_TRUE(is_comment_of("0123456789abcdef", comment));
  EXPECT_FALSE(is_comment_of("0123456789abcde", comment));
  EXPECT_FALSE(is_comment_of("fedcba9876543210", comment));
}

}  // namespace
}  // namespace muster::engine::slurm
