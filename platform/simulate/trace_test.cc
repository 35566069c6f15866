#include "simulate/trace.h"

#include <gtest/gtest.h>

namespace muster::simulate {
namespace {

TEST(ParseTrace, ReadsTheFourColumnsThatEveryTraceHas) {
  const auto jobs = parse_trace(
      "project,gpus,duration_s,submit_s\n"
      "a,8,3600,0\n"
      "b,0.25,0.5,12.25\n");

  ASSERT_TRUE(jobs) << jobs.error().to_string();
  EXPECT_EQ(*jobs, (std::vector<TraceJob>{{.line = 2,
                                           .submit = milliseconds(0),
                                           .duration = milliseconds(3'600'000),
                                           .gpus = 8,
                                           .project = "a"},
                                          {.line = 3,
                                           .submit = milliseconds(12'250),
                                           .duration = milliseconds(500),
                                           .gpu_share_milli = 250,
                                           .project = "b"}}));
}

TEST(ParseTrace, ReadsTheOthersAndTakesAnEmptyCellForTheDefault) {
  const auto jobs = parse_trace(
      "submit_s,duration_s,gpus,project,tasks,cpus,memory,priority,time_limit_s\n"
      "0,10,2,a,4,1.5,16G,125,60\n"
      "0,10,2,a,,,,,\n");

  ASSERT_TRUE(jobs) << jobs.error().to_string();
  const TraceJob& full = jobs->at(0);
  EXPECT_EQ(full.tasks, 4);
  EXPECT_EQ(full.cpu_milli, 1500);
  EXPECT_EQ(full.memory_bytes, 16LL << 30);
  EXPECT_EQ(full.priority, 125);
  EXPECT_EQ(full.time_limit, milliseconds(60'000));
  const TraceJob& bare = jobs->at(1);
  EXPECT_EQ(bare,
            (TraceJob{.line = 3, .duration = milliseconds(10'000), .gpus = 2, .project = "a"}));
}

TEST(ParseTrace, TellsEveryFaultAtOnceWithItsLine) {
  const auto jobs = parse_trace(
      "submit_s,duration_s,gpus,project,tasks,memory,priority\n"
      "-1,10,1,a,1,1G,50\n"
      "0,soon,1.5,,0,much,50\n"
      "0,10,1,a,1,1G,50\n"
      "1700000000,10,1,a,1,1G,2000\n");

  ASSERT_FALSE(jobs);
  std::vector<std::pair<int, std::string>> faults;
  for (const base::Fault& fault : jobs.error().faults) faults.emplace_back(fault.line, fault.field);
  EXPECT_EQ(faults, (std::vector<std::pair<int, std::string>>{{2, "submit_s"},
                                                              {3, "duration_s"},
                                                              {3, "gpus"},
                                                              {3, "project"},
                                                              {3, "tasks"},
                                                              {3, "memory"},
                                                              {5, "submit_s"},
                                                              {5, "priority"}}));
}

TEST(ParseTrace, RefusesOneWithoutJobs) {
  const auto jobs = parse_trace("submit_s,duration_s,gpus,project\n");

  ASSERT_FALSE(jobs);
  EXPECT_EQ(jobs.error().faults.size(), 1u);
}

}  // namespace
}  // namespace muster::simulate
