#include "schedule/plan.h"

#include <gtest/gtest.h>

namespace muster::schedule {
namespace {

Resources gpus(int count) {
  return {.gpus = count};
}

Node node(std::string name, int total, int free, int slots = 10) {
  return {
      .name = std::move(name), .total = gpus(total), .free = gpus(free), .free_task_slots = slots};
}

Waiting gang(std::string id, std::vector<Resources> tasks) {
  return {.job_id = std::move(id), .tasks = std::move(tasks)};
}

TEST(MakePlan, StartsInOrderWhatFits) {
  const Plan plan = make_plan(
      {.nodes = {node("n1", 2, 2)}, .queue = {gang("a", {gpus(1)}), gang("b", {gpus(1)})}});

  EXPECT_EQ(plan.starts, (std::vector<Start>{{"a", {"n1"}}, {"b", {"n1"}}}));
  EXPECT_TRUE(plan.waits.empty());
}

TEST(MakePlan, BooksNothingForAGangThatDoesNotFitWhole) {
  const Plan plan = make_plan(
      {.nodes = {node("n1", 4, 2)}, .queue = {gang("wide", {gpus(1), gpus(1), gpus(1)})}});

  EXPECT_TRUE(plan.starts.empty());
  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(plan.waits[0].reason, "waits for room: it needs 3 GPUs, 2 of 4 GPUs are free");
}

TEST(MakePlan, LetsNobodyOvertakeAGangForWhatItWaitsFor) {
  const Plan plan = make_plan({.nodes = {node("n1", 2, 1)},
                               .queue = {gang("wide", {gpus(1), gpus(1)}), gang("late", {gpus(1)}),
                                         gang("needs-no-gpu", {Resources{}})}});

  EXPECT_EQ(plan.starts, (std::vector<Start>{{"needs-no-gpu", {"n1"}}}));
  EXPECT_EQ(plan.waits.size(), 2U);
}

TEST(MakePlan, SaysWhatCanNeverStartAndLetsOthersPass) {
  const Plan plan = make_plan(
      {.nodes = {node("n1", 2, 2)}, .queue = {gang("huge", {gpus(8)}), gang("small", {gpus(2)})}});

  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(plan.waits[0].reason,
            "needs 8 GPUs, and there are only 2 GPUs in all: it can never start here");
  EXPECT_EQ(plan.starts, (std::vector<Start>{{"small", {"n1"}}}));
}

TEST(MakePlan, SpillsTheTasksOfAGangOverNodes) {
  const Plan plan = make_plan(
      {.nodes = {node("n1", 1, 1), node("n2", 1, 1)}, .queue = {gang("a", {gpus(1), gpus(1)})}});

  EXPECT_EQ(plan.starts, (std::vector<Start>{{"a", {"n1", "n2"}}}));
}

TEST(MakePlan, NamesTheScarceResource) {
  struct Case {
    Resources claim;
    std::string reason;
  };
  const Case cases[] = {
      {{.cpus = 4}, "waits for room: it needs 4 CPUs, 1 of 8 CPUs are free"},
      {{.memory_bytes = 2LL << 30},
       "waits for room: it needs 2048 MiB of memory, 1024 of 8192 MiB of memory are free"},
  };
  for (const Case& expected : cases) {
    Node scarce = node("n1", 0, 0);
    scarce.total = {.cpus = 8, .memory_bytes = 8LL << 30};
    scarce.free = {.cpus = 1, .memory_bytes = 1LL << 30};
    const Plan plan = make_plan({.nodes = {scarce}, .queue = {gang("a", {expected.claim})}});
    ASSERT_EQ(plan.waits.size(), 1U);
    EXPECT_EQ(plan.waits[0].reason, expected.reason);
  }
}

TEST(MakePlan, KeepsToTheTaskSlots) {
  const Plan plan = make_plan(
      {.nodes = {node("n1", 0, 0, 1)}, .queue = {gang("pair", {Resources{}, Resources{}})}});

  ASSERT_EQ(plan.waits.size(), 1U);
  EXPECT_EQ(plan.waits[0].reason, "waits for room: it has 2 tasks, 1 more task can run now");
}

}  // namespace
}  // namespace muster::schedule
