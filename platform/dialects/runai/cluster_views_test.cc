#include "dialects/runai/cluster_views.h"

#include <gtest/gtest.h>

#include <string>

#include "dialects/runai/test_jobs.h"

namespace muster::dialects::runai {

namespace {

constexpr int64_t kGi = int64_t{1} << 30;

job::Node gpu_node() {
  return {.name = "gpu-7",
          .pool = "default",
          .state = "ready",
          .cpu_milli = 16'000,
          .cpu_milli_free = 12'000,
          .memory_bytes = 64 * kGi,
          .memory_bytes_free = 60 * kGi,
          .devices = {{.index = 0,
                       .model = "V100",
                       .memory_bytes = 16 * kGi,
                       .free_milli = 0,
                       .jobs = {"dist"}},
                      {.index = 1, .model = "V100", .memory_bytes = 16 * kGi, .free_milli = 500}}};
}

job::Node plain_node(const std::string& state) {
  return {.name = "cpu-1",
          .pool = "default",
          .state = state,
          .cpu_milli = 2000,
          .cpu_milli_free = 2000,
          .memory_bytes = 4 * kGi,
          .memory_bytes_free = 4 * kGi};
}

TEST(ClusterViews, NodesAreListedWithTheirFreeResources) {
  EXPECT_EQ(node_list({gpu_node(), plain_node("cordoned")}),
            "NAME   STATUS                    IP Address  ROLE    CPU ALLOCATED  MEMORY ALLOCATED"
            "  GPU TYPE  GPU ALLOCATABLE  GPU FREE\n"
            "gpu-7  Ready                     -           <none>  4              4Gi             "
            "  V100      2                0.5\n"
            "cpu-1  Ready,SchedulingDisabled  -           <none>  0              0               "
            "  -         0                0\n");
  EXPECT_NE(node_list({plain_node("gone")}).find("cpu-1  NotReady"), std::string::npos);
}

TEST(ClusterViews, ProjectsAreListedByNameAndTheOneInUseIsMarked) {
  job::ProjectStatus b{.project = {.name = "team-b"}, .deserved = {.gpu_milli = std::nullopt}};
  job::ProjectStatus a{.project = {.name = "team-a", .parent = "lab"},
                       .deserved = {.gpu_milli = 2000}};

  EXPECT_EQ(project_list({b, a}, "team-a"),
            "PROJECT           DEPARTMENT  DESERVED GPUs  INT LIMIT  INT AFFINITY  TRAIN AFFINITY\n"
            "team-a (default)  lab         2              -          -             -\n"
            "team-b            -           -              -          -             -\n");
}

TEST(ClusterViews, ClustersAreListedWithTheirProjectsInUse) {
  EXPECT_EQ(cluster_list({{"local", "team-a"}, {"lab", ""}}, "local"),
            "CLUSTER          CURRENT PROJECT\n"
            "local (default)  team-a\n"
            "lab              -\n");
}

TEST(ClusterViews, TopShowsAllocationsAndDashesForUnmeasuredValues) {
  EXPECT_EQ(
      top_nodes({gpu_node()}, true),
      "NAME   STATUS  GPU CAPACITY  GPU ALLOCATED  GPU UTILIZATION  CPU CAPACITY  CPU ALLOCATED"
      "  CPU UTILIZATION  MEMORY CAPACITY  MEMORY ALLOCATED  MEMORY USAGE\n"
      "gpu-7  Ready              2            1.5                -            16              4"
      "                -             64Gi               4Gi             -\n"
      "\n"
      "NODE   GPU  MODEL  ALLOCATED  UTILIZATION  MEMORY CAPACITY  MEMORY USAGE  IDLE TIME  JOBS\n"
      "gpu-7    0  V100           1            -             16Gi             -          -  dist\n"
      "gpu-7    1  V100         0.5            -             16Gi             -          -  -\n");
  EXPECT_EQ(top_nodes({gpu_node()}, false).find("IDLE TIME"), std::string::npos);
}

TEST(ClusterViews, TopShowsRunningJobsWithTheMostGpusFirst) {
  job::Job half_up = mpi_job("half-up", 4);
  half_up.tasks[1].phase = job::TaskPhase::kPending;

  EXPECT_EQ(top_jobs({mpi_job("a", 1), mpi_job("b", 2), waiting_job("c", 3), half_up}, kNow),
            "NAME  PROJECT  USER  TYPE   DURATION  NODE   GPU ALLOCATED  GPU UTIL  GPU MEMORY"
            "  CPU ALLOCATED  CPU USAGE  MEMORY ALLOCATED  MEMORY USAGE\n"
            "b     team-a   ada   Train  4m        gpu-7              2         -           -"
            "              0          -                 0             -\n"
            "a     team-a   ada   Train  4m        gpu-7              1         -           -"
            "              0          -                 0             -\n");
}

}  // namespace

}  // namespace muster::dialects::runai
