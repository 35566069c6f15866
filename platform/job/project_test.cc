#include "job/project.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace muster::job {
namespace {

using base::Fault;
using std::chrono::milliseconds;

Project valid_project() {
  return {.name = "team-a",
          .parent = "lab",
          .quota = {.deserved = {.gpu_milli = 2000, .cpu_milli = 8000, .memory_bytes = 1 << 30},
                    .limit = {.gpu_milli = 2000, .memory_bytes = 2LL << 30},
                    .weight = 0},
          .pools = {{"a100", {.limit = {.gpu_milli = 0}}}}};
}

TEST(ValidateProject, AcceptsACompleteProjectAndOneWithOnlyAName) {
  EXPECT_EQ(validate_project(valid_project()), std::vector<Fault>{});
  EXPECT_EQ(validate_project({.name = "default"}), std::vector<Fault>{});
}

TEST(ValidateProject, AnUnlimitedQuotaIsCompatibleWithAnyLimit) {
  Project project = valid_project();
  project.quota = {.deserved = {}, .limit = {.gpu_milli = 1, .cpu_milli = 0, .memory_bytes = 1}};

  EXPECT_EQ(validate_project(project), std::vector<Fault>{});
}

struct WrongProject {
  std::function<void(Project&)> change;
  std::string field;
  std::string what;
};

TEST(ValidateProject, NamesTheFieldAndItsFault) {
  const double infinity = std::numeric_limits<double>::infinity();
  const WrongProject wrongs[] = {
      {[](Project& project) { project.name = "Team"; }, "name",
       "'Team' is not a project name; use 1 to 63 of a-z, 0-9 and '-', with a letter or digit at "
       "both ends"},
      {[](Project& project) { project.parent = "a/b"; }, "parent", "'a/b' is not a project name"},
      {[](Project& project) { project.parent = "team-a"; }, "parent", "is the project itself"},
      {[](Project& project) { project.quota.deserved.gpu_milli = -500; }, "quota.deserved.gpus",
       "-0.5 is out of range; give 0 to 1000000"},
      {[](Project& project) { project.quota.limit.cpu_milli = int64_t{1} << 40; },
       "quota.limit.cpus", "1099511627.776 is out of range; give 0 to 1000000"},
      {[](Project& project) { project.quota.limit.memory_bytes = INT64_MAX; },
       "quota.limit.memory_bytes", "8388607.9Ti is out of range; give 0 to 1024Ti"},
      {[](Project& project) { project.quota.deserved.gpu_milli = 2500; }, "quota.deserved.gpus",
       "2.5 is more than the limit, 2"},
      {[](Project& project) { project.pools["a100"].deserved.gpu_milli = 1; },
       "pools.a100.deserved.gpus", "0.001 is more than the limit, 0"},
      {[](Project& project) { project.pools[""] = {}; }, "pools", "'' is not a node pool name"},
      {[](Project& project) { project.quota.weight = -1; }, "quota.weight",
       "is out of range; give 0 to 1000000"},
      {[=](Project& project) { project.quota.weight = infinity; }, "quota.weight",
       "is out of range; give 0 to 1000000"},
      {[](Project& project) { project.quota.weight = std::numeric_limits<double>::quiet_NaN(); },
       "quota.weight", "is out of range; give 0 to 1000000"},
      {[](Project& project) { project.priority = -1; }, "priority",
       "-1 is out of range; give 0 to 1000"},
      {[](Project& project) { project.reclaim_min_runtime = milliseconds(-1); },
       "reclaim_min_runtime_ms", "give a time between 0s and 365d"},
      {[](Project& project) { project.preempt_min_runtime = std::chrono::hours(24 * 366); },
       "preempt_min_runtime_ms", "give a time between 0s and 365d"},
  };
  for (const WrongProject& wrong : wrongs) {
    Project project = valid_project();
    wrong.change(project);
    EXPECT_EQ(validate_project(project),
              (std::vector<Fault>{{.field = wrong.field, .what = wrong.what}}))
        << wrong.field;
  }
}

TEST(ValidateProject, ReportsEveryFaultAtOnce) {
  const Project project{.name = "", .quota = {.weight = -1}, .priority = 5000};

  EXPECT_EQ(validate_project(project).size(), 3U);
}

}  // namespace
}  // namespace muster::job
