#include "access/audit.h"

#include <gtest/gtest.h>

namespace muster::access {
namespace {

using std::chrono::seconds;

const AuditRecord kRecord{.number = 7,
                          .time = base::Time(seconds(100)),
                          .actor = {.user = "ada"},
                          .action = "job.submit",
                          .target = "dist",
                          .project = "team"};

TEST(AuditQuery, WithoutConditionsMatchesEveryRecord) {
  EXPECT_TRUE(matches({}, kRecord));
}

TEST(AuditQuery, EachConditionMatchesOnlyTheRecordsItNames) {
  struct Case {
    AuditQuery met;
    AuditQuery missed;
  };
  const std::vector<Case> cases{
      {{.user = "ada"}, {.user = "ad"}},
      {{.project = "team"}, {.project = "tea"}},
      {{.action = "job.submit"}, {.action = "job.stop"}},
      {{.action = "job"}, {.action = "jo"}},
      {{.action = "job"}, {.action = "job.submit.again"}},
      {{.action = "job"}, {.action = ""}},
      {{.since = base::Time(seconds(100))}, {.since = base::Time(seconds(101))}},
      {{.before = 8}, {.before = 7}},
  };
  for (size_t i = 0; i < cases.size(); ++i) {
    EXPECT_TRUE(matches(cases[i].met, kRecord)) << i;
    EXPECT_FALSE(matches(cases[i].missed, kRecord)) << i;
  }
}

TEST(AuditQuery, AllConditionsMustMatch) {
  EXPECT_TRUE(matches({.user = "ada", .project = "team", .action = "job"}, kRecord));
  EXPECT_FALSE(matches({.user = "ada", .project = "team", .action = "token"}, kRecord));
  EXPECT_FALSE(matches({.user = "bob", .project = "team", .action = "job"}, kRecord));
}

}  // namespace
}  // namespace muster::access
