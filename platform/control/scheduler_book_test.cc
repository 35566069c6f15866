#include "control/scheduler_book.h"

#include <gtest/gtest.h>

namespace muster::control {
namespace {

TEST(AForwardClock, StandsStillWhenTheOtherClockIsSetBackAndThenContinuesWithIt) {
  base::FakeClock clock;
  const ForwardClock forward(clock);
  const base::Time start = forward.now();

  clock.advance(std::chrono::hours(-1));
  EXPECT_EQ(forward.now(), start);
  clock.advance(std::chrono::seconds(5));
  EXPECT_EQ(forward.now(), start + std::chrono::seconds(5));
}

TEST(AForwardClock, PutsATimeOfTheOtherInItsPlaceButNotAfterNow) {
  base::FakeClock clock;
  const ForwardClock forward(clock);
  const base::Time start = forward.now();
  clock.advance(std::chrono::hours(-1));
  EXPECT_EQ(forward.of(start), forward.now());

  clock.advance(std::chrono::seconds(5));
  const base::Time noted = clock.now();
  clock.advance(std::chrono::seconds(7));
  EXPECT_EQ(forward.now() - forward.of(noted), std::chrono::seconds(7));
}

TEST(ASchedulerBook, ReportsHowLongAnAdoptedGangHasRunAfterTheClockWasSetBack) {
  base::FakeClock clock;
  NodeTable nodes;
  SchedulerBook book({}, clock, nodes);
  JobEntry entry;
  entry.job.started = clock.now() - std::chrono::hours(2);
  EXPECT_EQ(book.now() - book.start_of(entry.job), std::chrono::hours(2));

  clock.advance(std::chrono::hours(-1));
  EXPECT_EQ(book.start_of(entry.job), book.now() - std::chrono::hours(1)) << "never too long";
  entry.job = {.id = "j1", .spec = {.name = "one", .project = "q", .resources = {.gpus = 1}}};
  entry.job.spec.scheduling.time_limit = std::chrono::minutes(10);
  entry.job.tasks = {{.name = "main", .node = "n1", .devices = {0}, .gpu_share_milli = 1000}};
  entry.job.started = clock.now();
  clock.advance(std::chrono::minutes(4));
  schedule::Project project{.name = "q"};
  project.quota.deserved.gpu_milli = schedule::kWholeGpu;
  book.scheduler().set_projects({project});
  book.scheduler().set_node({.name = "n1", .gpus = 1});
  book.adopt(entry, {});
  JobEntry next{.job = entry.job, .sequence = 2};
  next.job.id = "j2";
  book.scheduler().submit(book.gang_of(next));

  EXPECT_EQ(book.scheduler().explain("j2", book.now()).may_start,
            book.now() + std::chrono::minutes(6));
}

TEST(ASchedulerBook, AwaitsTheEndOfAGangForItsGraceOrAMinuteAndAMinuteMore) {
  const std::map<std::chrono::seconds, std::chrono::seconds> expected{
      {std::chrono::seconds(10), std::chrono::seconds(70)},
      {std::chrono::hours(24), std::chrono::seconds(120)}};
  for (const auto& [grace, awaited] : expected) {
    base::FakeClock clock;
    NodeTable nodes;
    SchedulerBook book({}, clock, nodes);
    book.scheduler().set_projects({schedule::Project{.name = "q"}});
    book.scheduler().set_node({.name = "n1", .gpus = 1});
    JobEntry entry;
    entry.job = {.id = "j1", .spec = {.name = "one", .project = "q", .resources = {.gpus = 1}}};
    entry.job.spec.grace = grace;
    entry.job.tasks = {{.name = "main", .node = "n1", .devices = {0}, .gpu_share_milli = 1000}};

    book.adopt(entry, {.all_leave = true});

    EXPECT_EQ(book.scheduler().plan(book.now()).again_at, book.now() + awaited);
  }
}

}  // namespace
}  // namespace muster::control
