#include <gtest/gtest.h>

#include "base/test_faults.h"
#include "schedule/explain.h"
#include "schedule/test_units.h"
#include "schedule/test_words.h"

namespace muster::schedule {

namespace {

using base::Texts;

constexpr bool kSomeday = true;
constexpr bool kNeverEver = false;

WaitReason shortage_reason(const Gang& gang, const Shortage& shortage, bool ever) {
  return wait_reason(shortage_verdict(gang, gang.pools.empty() ? kDefaultPool : gang.pools.front(),
                                      shortage, ever));
}

Gang waiting_gang(int count, const Claim& claim) {
  return {.id = "1",
          .name = "dist",
          .project = "a",
          .groups = {{.claim = claim, .count = count, .minimum = count}}};
}

// The case of the documents: one free GPU, a gang of two.
TEST(ShortageReason, HasTheNumberOfPlacedTasksAndTheMissingResources) {
  const Claim one{.gpus = 1};
  const WaitReason reason = shortage_reason(waiting_gang(2, one),
                                            {.tasks = 2,
                                             .placed = 1,
                                             .claim = one,
                                             .nodes = 1,
                                             .free_gpu_milli = 1000,
                                             .largest_free_gpu_milli = 1000,
                                             .lack_gpu = 1},
                                            kSomeday);
  EXPECT_EQ(reason.constraint, Constraint::kRoom);
  EXPECT_EQ(
      reason.text,
      "needs 2 tasks with 1 GPU each; room for 1 of 2: the only node lacks GPUs (1 GPU free)");
  EXPECT_EQ(reason.details, (Texts{"starts when there is room for 1 more task with 1 GPU"}));
}

TEST(ShortageReason, ListsEveryMissingResource) {
  const Claim claim{.gpus = 1, .cpu_milli = 8000, .memory_bytes = 64 * kGib};
  const WaitReason reason = shortage_reason(waiting_gang(1, claim),
                                            {.tasks = 1,
                                             .claim = claim,
                                             .nodes = 5,
                                             .free_gpu_milli = 1500,
                                             .largest_free_gpu_milli = 1000,
                                             .largest_free_cpu_milli = 3500,
                                             .largest_free_memory_bytes = 16 * kGib,
                                             .lack_gpu = 3,
                                             .lack_cpu = 1,
                                             .lack_memory = 5,
                                             .lack_task_slots = 2},
                                            kSomeday);
  EXPECT_EQ(
      reason.text,
      "needs 1 GPU, 8 CPUs and 64 GiB of memory; 3 of 5 nodes lack GPUs (1.5 GPUs free in all, at "
      "most 1 GPU on one node), 1 of 5 lacks CPUs (at most 3.5 CPUs free on one node), 5 of 5 lack "
      "memory (at most 16 GiB of memory free on one node) and 2 of 5 lack task slots");
}

TEST(ShortageReason, ReportsFragmentedGpus) {
  const Claim four{.gpus = 4};
  const WaitReason reason = shortage_reason(waiting_gang(1, four),
                                            {.tasks = 1,
                                             .claim = four,
                                             .nodes = 3,
                                             .free_gpu_milli = 6000,
                                             .largest_free_gpu_milli = 2000,
                                             .lack_gpu = 3},
                                            kSomeday);
  EXPECT_EQ(
      reason.details,
      (Texts{"starts when there is room for 1 more task with 4 GPUs",
             "enough GPUs are free in total, but no node has more than 2 GPUs for one task"}));
}

TEST(ShortageReason, NamesTheTaskThatDoesNotFitIfTasksDiffer) {
  const Claim launcher{.cpu_milli = 1000};
  const Claim worker{.gpus = 8, .cpu_milli = 4000};
  Gang gang = waiting_gang(1, launcher);
  gang.groups.push_back({.claim = worker, .count = 2, .minimum = 2});
  EXPECT_EQ(
      shortage_reason(gang,
                      {.tasks = 3,
                       .placed = 1,
                       .claim = worker,
                       .nodes = 4,
                       .free_gpu_milli = 4000,
                       .largest_free_gpu_milli = 1000,
                       .lack_gpu = 4},
                      kSomeday)
          .text,
      "needs 3 tasks at once; room for 1 of 3, but not for a task with 8 GPUs and 4 CPUs: 4 of 4 "
      "nodes lack GPUs (4 GPUs free in all, at most 1 GPU on one node)");
}

TEST(ShortageReason, NamesTheTopologyLevelThatMustHoldThemAll) {
  const Claim two{.gpus = 2};
  Shortage shortage{.tasks = 4, .placed = 3, .claim = two, .nodes = 8};
  shortage.topology = "rack";
  const WaitReason reason = shortage_reason(waiting_gang(4, two), shortage, kSomeday);
  EXPECT_EQ(reason.constraint, Constraint::kTopology);
  EXPECT_EQ(reason.text,
            "needs 4 tasks with 2 GPUs each in one rack; room for 3 of 4 in the best rack: no rack "
            "has room for all of them at once");
}

TEST(ShortageReason, ReportsIfNoEndOfAGangWouldHelp) {
  const Claim four{.gpus = 4};
  const WaitReason reason = shortage_reason(waiting_gang(2, four),
                                            {.tasks = 2,
                                             .claim = four,
                                             .nodes = 2,
                                             .free_gpu_milli = 4000,
                                             .largest_free_gpu_milli = 2000,
                                             .lack_gpu = 2},
                                            kNeverEver);
  EXPECT_EQ(reason.constraint, Constraint::kNever);
  EXPECT_EQ(reason.text,
            "can never start here: needs 2 tasks with 4 GPUs each; room for 0 of 2 with nothing "
            "else running: 2 of 2 nodes lack GPUs (4 GPUs in all, at most 2 GPUs on one node)");
  EXPECT_EQ(reason.details, (Texts{"request less, or add larger nodes"}));
}

TEST(ShortageReason, ReportsThatNoNodeIsEligible) {
  Gang gang = waiting_gang(1, {.gpus = 1});
  const Shortage shortage{.tasks = 1, .claim = {.gpus = 1}};
  EXPECT_EQ(shortage_reason(gang, shortage, kSomeday).text,
            "needs 1 GPU; there is no node that it may use (pool default)");

  gang.pools = {"fast"};
  gang.gpu_models = {"A100", "H100"};
  gang.node_labels = {{"disk", "ssd"}, {"zone", "a"}};
  gang.excluded_nodes = {"n1", "n2"};
  EXPECT_EQ(shortage_reason(gang, shortage, kNeverEver).text,
            "can never start here: needs 1 GPU; there is no node that it may use (pool fast, "
            "GPU model A100 or H100, label disk=ssd, label zone=a and not n1 or n2, "
            "excluded by its rule avoid-node)");
}

TEST(ShortageReason, CountsTheCordoned) {
  Shortage shortage{.tasks = 1, .claim = {.gpus = 1}, .cordoned = 2};
  const WaitReason all = shortage_reason(waiting_gang(1, {.gpus = 1}), shortage, kSomeday);
  EXPECT_EQ(all.text, "needs 1 GPU; all 2 nodes that it may use are cordoned (pool default)");
  EXPECT_EQ(all.details,
            (Texts{"2 nodes are cordoned and accept no new tasks; uncordon them to use them"}));

  shortage.cordoned = 1;
  EXPECT_EQ(shortage_reason(waiting_gang(1, {.gpus = 1}), shortage, kSomeday).text,
            "needs 1 GPU; the only node that it may use is cordoned (pool default)");
  EXPECT_EQ(shortage_reason(waiting_gang(1, {.gpus = 1}), shortage, kSomeday).details.back(),
            "1 node is cordoned and accepts no new tasks; uncordon it to use it");
}

TEST(ShortageReason, NamesTheSilentNodesAndTheirFaults) {
  const auto silent = [](const std::string& name, const std::string& fault) {
    Node node{.name = name, .cordoned = true, .silent = true, .fault = fault};
    return std::make_shared<const Node>(node);
  };
  const Gang gang = waiting_gang(1, {.gpus = 1});
  Shortage shortage{.tasks = 1, .claim = {.gpus = 1}, .silent = {silent("n1", "no route")}};
  const WaitReason one = shortage_reason(gang, shortage, kSomeday);
  EXPECT_EQ(one.text,
            "needs 1 GPU; the only node that it may use does not answer (pool default): no route");
  EXPECT_EQ(one.details, (Texts{"node n1 does not answer: no route"}));

  shortage.silent.push_back(silent("n2", ""));
  const WaitReason two = shortage_reason(gang, shortage, kSomeday);
  EXPECT_EQ(two.text,
            "needs 1 GPU; none of the 2 nodes that it may use answers (pool default): no route");
  EXPECT_EQ(two.details, (Texts{"node n1 does not answer: no route", "node n2 does not answer"}));

  shortage.cordoned = 1;
  EXPECT_EQ(shortage_reason(gang, shortage, kSomeday).text,
            "needs 1 GPU; of the nodes that it may use, 2 do not answer and 1 is cordoned (pool "
            "default): no route");

  for (const char* name : {"n3", "n4", "n5"}) shortage.silent.push_back(silent(name, "off"));
  shortage.cordoned = 0;
  EXPECT_EQ(shortage_reason(gang, shortage, kSomeday).details.back(), "2 more nodes do not answer");
}

TEST(ShortageReason, OfTasksThatClaimNothingIsAboutSlots) {
  EXPECT_EQ(shortage_reason(waiting_gang(3, {}),
                            {.tasks = 3, .placed = 2, .nodes = 1, .lack_task_slots = 1}, kSomeday)
                .text,
            "needs 3 tasks at once; room for 2 of 3: the only node lacks task slots");
}

}  // namespace

}  // namespace muster::schedule
