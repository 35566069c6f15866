#include "schedule/what_if.h"

#include <gtest/gtest.h>

#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using namespace testing;
using std::chrono::seconds;

/// One node of 4 GPUs, which a gang uses for another 100 s, and two gangs that wait.
ClusterState busy_cluster() {
  ClusterState cluster;
  cluster.nodes = {node("n1", 4)};
  cluster.projects = projects({project("p", {.deserved = 8})});
  TaskPlace place{.node = "n1", .devices = {0, 1, 2, 3}, .share_milli = kWholeGpu};
  cluster.running = {
      {.gang = limited(gang("runs", "p", 4), seconds(100)), .places = {place}, .started = kStart}};
  cluster.waiting = {limited(gang("first", "p", 4), seconds(50)),
                     limited(gang("second", "p", 4), seconds(50))};
  for (size_t i = 0; i < cluster.waiting.size(); ++i) cluster.waiting[i].sequence = i + 1;
  return cluster;
}

using Starts = std::map<std::string, Time>;

TEST(WhatIf, ExpectsGangsToStartOneAfterAnother) {
  const WhatIfResult result = what_if(busy_cluster(), {.now = kStart});

  EXPECT_EQ(result.starts,
            (Starts{{"first", kStart + seconds(100)}, {"second", kStart + seconds(150)}}));
  EXPECT_TRUE(result.complete);
}

TEST(WhatIf, StartsThemEarlierOnMoreNodes) {
  ClusterState cluster = busy_cluster();
  cluster.nodes.push_back(node("n2", 4));

  const WhatIfResult result = what_if(cluster, {.now = kStart});

  EXPECT_EQ(result.starts, (Starts{{"first", kStart}, {"second", kStart + seconds(50)}}));
}

TEST(WhatIf, HasNoStartForAGangWhoseResourcesAreNeverFree) {
  ClusterState cluster = busy_cluster();
  cluster.running[0].gang.time_limit.reset();

  EXPECT_EQ(what_if(cluster, {.now = kStart}).starts, Starts{});
  EXPECT_EQ(what_if(cluster, {.now = kStart, .run_time = seconds(30)}).starts,
            (Starts{{"first", kStart + seconds(30)}, {"second", kStart + seconds(80)}}));
}

TEST(WhatIf, EndsAGangThatIsPastItsLimitAtOnce) {
  ClusterState cluster = busy_cluster();
  cluster.running[0].started = kStart - seconds(200);

  const auto starts = what_if(cluster, {.now = kStart}).starts;

  EXPECT_LT(starts.at("first"), kStart + seconds(1));
}

/// "e" of project q with tasks of one GPU each runs for 100 s from now on, on each GPU of the only node.
/// Gangs of project p, which has a quota for all GPUs, take these for 50 s. "z" of project q waits, too.
ClusterState reclaimed_cluster(int gpus, const std::vector<Gang>& reclaiming) {
  ClusterState cluster;
  cluster.nodes = {node("n1", gpus)};
  cluster.projects = projects({project("p", {.deserved = gpus}), project("q", {.weight = 1})});
  RunningGang running{.gang = limited(elastic(gang("e", "q", 1, 4), 2), seconds(100)),
                      .started = kStart};
  for (int task = 0; task < 4; ++task) {
    running.places.emplace_back();
    if (task >= gpus) continue;
    running.places.back() = TaskPlace{.node = "n1", .devices = {task}, .share_milli = kWholeGpu};
  }
  cluster.running = {running};
  cluster.waiting = reclaiming;
  cluster.waiting.push_back(gang("z", "q", gpus));
  for (size_t i = 0; i < cluster.waiting.size(); ++i) cluster.waiting[i].sequence = i + 1;
  return cluster;
}

TEST(WhatIf, RunsAnElasticGangThatWasEvictedInTwoStepsFromItsNextStartOn) {
  const ClusterState cluster = reclaimed_cluster(
      4, {limited(gang("x", "p", 2), seconds(50)), limited(gang("y", "p", 2), seconds(50))});

  const WhatIfResult result = what_if(cluster, {.now = kStart});

  EXPECT_EQ(result.evictions, 2);
  EXPECT_EQ(result.starts, (Starts{{"x", kStart}, {"y", kStart}, {"z", kStart + seconds(150)}}));
}

TEST(WhatIf, RunsAnElasticGangThatWasEvictedBelowItsFullSizeFromItsNextStartOn) {
  const ClusterState cluster = reclaimed_cluster(2, {limited(gang("x", "p", 2), seconds(50))});

  const WhatIfResult result = what_if(cluster, {.now = kStart});

  EXPECT_EQ(result.evictions, 1);
  EXPECT_EQ(result.starts, (Starts{{"x", kStart}, {"z", kStart + seconds(150)}}));
}

TEST(WhatIf, LooksOnlyAsFarAsItsHorizon) {
  const auto result = what_if(busy_cluster(), {.now = kStart, .horizon = seconds(120)});
  EXPECT_EQ(result.starts, (Starts{{"first", kStart + seconds(100)}}));
}

}  // namespace
}  // namespace muster::schedule
