#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/test_faults.h"
#include "schedule/ledger.h"

namespace muster::schedule {

namespace {

using base::Texts;

Project bare_project(const std::string& name, const std::string& parent = "") {
  return {.name = name, .parent = parent};
}

std::vector<std::string> texts(const std::vector<Project>& projects) {
  std::vector<std::string> texts;
  for (const base::Fault& fault : check_projects(projects)) {
    texts.push_back(fault.field + ": " + fault.what);
  }
  return texts;
}

TEST(CheckProjects, FindsNothingWrongWithASoundTree) {
  Project team = bare_project("team", "dept");
  team.quota = {.deserved = {kUnlimited, 2000, 0}, .limit = {4000, 2000, 0}, .weight = 0};
  Project other = bare_project("other", "dept");
  other.quota.deserved.gpu_milli = 99'000;  // more than the quota of its parent, which is valid
  EXPECT_EQ(texts({team, other, bare_project("dept")}), Texts{});
  EXPECT_EQ(texts({}), Texts{});
}

TEST(CheckProjects, NamesAMissingParentAndTheNearestProject) {
  EXPECT_EQ(
      texts({bare_project("research"), bare_project("a", "reserch"), bare_project("b", "sales")}),
      (Texts{"parent: project 'a': there is no project 'reserch' to be its parent; did you mean "
             "'research'?",
             "parent: project 'b': there is no project 'sales' to be its parent"}));
}

TEST(CheckProjects, NamesEachCycleOnceAndWhole) {
  EXPECT_EQ(texts({bare_project("tail", "b"), bare_project("a", "c"), bare_project("b", "a"),
                   bare_project("c", "b"), bare_project("self", "self")}),
            (Texts{"parent: the parents of projects form a cycle: a -> c -> b -> a; move one of "
                   "them to the top",
                   "parent: project 'self' is its own parent; give it another parent or none"}));
}

TEST(CheckProjects, NamesADuplicateOnce) {
  EXPECT_EQ(texts({bare_project("a"), bare_project("a"), bare_project("a"), bare_project("")}),
            (Texts{"name: there are several projects 'a'; rename all but one",
                   "name: a project has no name; give it one"}));
}

TEST(CheckProjects, FindsEveryWrongNumber) {
  Project wrong = bare_project("a");
  wrong.quota = {.deserved = {-500, 3000, 0},
                 .limit = {1000, 2000, -1},
                 .weight = std::numeric_limits<double>::quiet_NaN()};
  wrong.quotas["fast"].deserved.gpu_milli = 3000;
  wrong.quotas["fast"].limit.gpu_milli = 2000;
  wrong.quotas["fast"].weight = -1;
  wrong.quotas["slow"].weight = std::numeric_limits<double>::infinity();
  wrong.reclaim_min_runtime = Milliseconds{-1};
  wrong.preempt_min_runtime = Milliseconds{-1};
  wrong.past_use.cpu_milli = -1;

  EXPECT_EQ(
      texts({wrong}),
      (Texts{"quota.deserved.gpus: project 'a': -0.5 GPUs are negative",
             ("quota.deserved.cpus: project 'a': a quota of 3 CPUs is above the limit of 2 CPUs; "
              "raise the limit or lower the quota"),
             "quota.limit.memory: project 'a': -1 B of memory is negative",
             ("quota.weight: project 'a': its weight is not a number; give 0 (nothing over quota) "
              "or more"),
             ("quotas.fast.deserved.gpus: project 'a': a quota of 3 GPUs is above the limit of 2 "
              "GPUs; raise the limit or lower the quota"),
             ("quotas.fast.weight: project 'a': its weight is negative; give 0 (nothing over "
              "quota) or more"),
             ("quotas.slow.weight: project 'a': its weight is infinite; give 0 (nothing over "
              "quota) or more"),
             "reclaim_min_runtime: project 'a': -1 ms is negative",
             "preempt_min_runtime: project 'a': -1 ms is negative",
             "past_use.cpus: project 'a': its past use is negative"}));
}

}  // namespace

}  // namespace muster::schedule
