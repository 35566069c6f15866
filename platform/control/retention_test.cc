#include "control/retention.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

const base::Time kNow{std::chrono::seconds{1'700'000'000}};

/// A job of the project p that ended this many hours ago.
EndedJob ended(std::string id, int hours_ago, std::optional<int64_t> bytes = {}) {
  return {.id = std::move(id),
          .project = "p",
          .ended = kNow - hours(hours_ago),
          .keep_for = {},
          .bytes = bytes};
}

EndedJob keeping_for(EndedJob job, milliseconds time) {
  job.keep_for = time;
  return job;
}

EndedJob of_project(EndedJob job, std::string project) {
  job.project = std::move(project);
  return job;
}

EndedJob used(EndedJob job) {
  job.in_use = true;
  return job;
}

struct RetentionCase {
  const char* what;
  std::vector<EndedJob> jobs;
  RetentionRules rules;
  std::vector<Removal> gone;
};

TEST(Retention, DecidesWhichGoAndWhy) {
  const std::string of_time = "keep_jobs_for=2h";
  const RetentionCase cases[] = {
      {"without a rule all stay", {ended("a", 1000), ended("b", 1, 1 << 30)}, {}, {}},
      {"by their time, the oldest first, also at the very moment",
       {ended("a", 1), ended("b", 2), ended("c", 3)},
       {.keep_for = hours(2)},
       {{"c", of_time}, {"b", of_time}}},
      {"a job's own time goes before, whether it is longer or shorter",
       {keeping_for(ended("a", 3), hours(4)), keeping_for(ended("b", 1), hours(1))},
       {.keep_for = hours(2)},
       {{"b", "keep_for=1h of the job"}}},
      {"a job's own time needs no rule",
       {keeping_for(ended("a", 0), milliseconds(0)), ended("b", 9)},
       {},
       {{"a", "keep_for=0ms of the job"}}},
      {"so many of each project, whatever time they ask for",
       {ended("a", 3), ended("b", 1), keeping_for(ended("c", 2), hours(99)),
        of_project(ended("d", 9), "q")},
       {.keep_jobs = 1},
       {{"a", "keep_jobs=1"}, {"c", "keep_jobs=1"}}},
      {"none of a project", {ended("a", 1)}, {.keep_jobs = 0}, {{"a", "keep_jobs=0"}}},
      {"until the rest is small enough, the oldest first",
       {ended("young", 1, 600), ended("old", 3, 300), ended("middle", 2, 200)},
       {.keep_bytes = 1000},
       {{"old", "keep_bytes=1000"}}},
      {"what goes anyhow makes room",
       {ended("young", 1, 600), ended("old", 3, 600)},
       {.keep_for = hours(2), .keep_bytes = 1000},
       {{"old", of_time}}},
      {"what is not measured is neither counted nor taken",
       {ended("unknown", 3), ended("empty", 3, 0), ended("young", 1, 2000)},
       {.keep_bytes = 1000},
       {{"young", "keep_bytes=1000"}}},
      {"each once, for the first rule that takes it",
       {ended("a", 5, 5000), ended("b", 1, 1)},
       {.keep_for = hours(2), .keep_jobs = 1, .keep_bytes = 10},
       {{"a", of_time}}},
      {"of too large ones, a job in use waits, and the next one goes in its place",
       {used(ended("a", 3, 400)), ended("b", 2, 400), ended("c", 1, 400)},
       {.keep_bytes = 1000},
       {{"a", "keep_bytes=1000", true}, {"b", "keep_bytes=1000"}}},
      {"a job in use that another rule takes keeps its bytes until then",
       {used(ended("a", 3, 400)), ended("b", 1, 400), ended("c", 1, 400)},
       {.keep_for = hours(2), .keep_bytes = 1000},
       {{"a", of_time, true}, {"b", "keep_bytes=1000"}}},
      {"no job goes in the place of one that alone is too large",
       {used(ended("a", 3, 2000)), ended("b", 2, 400), ended("c", 1, 400)},
       {.keep_bytes = 1000},
       {{"a", "keep_bytes=1000", true}}},
      {"a clock that was set back keeps what is from the future",
       {ended("a", -5)},
       {.keep_for = hours(0)},
       {}},
  };
  for (const RetentionCase& each : cases) {
    EXPECT_EQ(removals(each.jobs, each.rules, kNow), each.gone) << each.what;
  }
}

TEST(Retention, TheBytesOfYoungerJobsCount) {
  EXPECT_EQ(removals({ended("a", 2, 300), ended("b", 1, 300)}, {.keep_bytes = 1000}, kNow, 600),
            (std::vector<Removal>{{"a", "keep_bytes=1000"}}));
}

TEST(Retention, TheNextRemovedJobIsTheFirstWhoseTimeIsOver) {
  const std::vector<EndedJob> jobs{ended("a", 1), keeping_for(ended("b", 0), hours(3)),
                                   ended("c", 0)};

  EXPECT_EQ(next_removal(jobs, {.keep_for = hours(2)}, kNow), kNow + hours(1));
  EXPECT_EQ(next_removal(jobs, {.keep_jobs = 1}, kNow), kNow + hours(3));
  EXPECT_EQ(next_removal({ended("a", 1)}, {}, kNow), std::nullopt);
  EXPECT_EQ(next_removal(jobs, {.keep_for = hours(1)}, kNow), kNow + hours(1))
      << "a is due already";
}

}  // namespace
}  // namespace muster::control
