#include "control/gang_tasks.h"

#include <gtest/gtest.h>

#include <vector>

#include "control/launch_planner.h"

namespace muster::control {
namespace {

using std::chrono::minutes;
using std::chrono::seconds;

const base::Time kStart{seconds{1'700'000'000}};

job::Job running_job(int workers, job::Kind kind = job::Kind::kMpi) {
  job::Job job{.id = "j1", .spec = {.name = "dist", .kind = kind, .workers = workers}};
  job.tasks = job::tasks_of(job.spec);
  for (job::Task& task : job.tasks) {
    task.node = "n1";
    task.phase = job::TaskPhase::kRunning;
    task.started = kStart;
  }
  return job;
}

job::Task& worker_numbered(job::Job& job, int number) {
  return job.tasks.at(static_cast<size_t>(number) + 1);
}

void lose(job::Task& task, job::ExitStatus status = {.code = 1}) {
  task.left = true;
  task.phase = job::TaskPhase::kEnded;
  task.exit = status;
}

void add_worker(job::Job& job, base::Time started) {
  job.tasks.push_back(job::next_worker(job, 1));
  job.tasks.back().node = "n1";
  job.tasks.back().phase = job::TaskPhase::kRunning;
  job.tasks.back().started = started;
}

TEST(LiveGang, AWorkerThatLeavesKeepsItsResourcesUntilItHasEnded) {
  job::Job job = running_job(1);
  job::Task& one = worker_numbered(job, 0);
  EXPECT_TRUE(holds_place(one));
  one.left = true;
  EXPECT_TRUE(holds_place(one));
  EXPECT_EQ(task_in_seat(job, 1), nullptr);
  one.phase = job::TaskPhase::kEnded;
  EXPECT_FALSE(holds_place(one));
}

TEST(LiveGang, MembersAreTheWorkersThatRunAndStay) {
  job::Job job = running_job(4);
  worker_numbered(job, 1).left = true;
  worker_numbered(job, 2).phase = job::TaskPhase::kStarting;
  worker_numbered(job, 3).phase = job::TaskPhase::kEnded;

  EXPECT_EQ(members_of(job), (std::set<std::string>{"worker-0"}));
  EXPECT_EQ(workers_of(job, count_members(job)), (job::Workers{.count = 1, .requested = 4}));
}

TEST(LiveGang, ARowIsOfThoseThatWereStartedLast) {
  job::Job job = running_job(3);
  lose(worker_numbered(job, 1));
  lose(worker_numbered(job, 2));
  const base::Time now = kStart + seconds(10);
  EXPECT_EQ(lost_soon_in_a_row(job, {"worker-1", "worker-2"}, now), 2);

  add_worker(job, kStart + seconds(20));
  EXPECT_EQ(lost_soon_in_a_row(job, {"worker-1", "worker-2"}, kStart + seconds(30)), 2)
      << "nobody knows yet of the one that has just come";
  lose(job.tasks.back());
  EXPECT_EQ(lost_soon_in_a_row(job, {"worker-1", "worker-2", "worker-3"}, kStart + seconds(30)), 3);
}

TEST(LiveGang, AWorkerThatRanForSomeTimeResetsTheCountOfFailures) {
  job::Job job = running_job(3);
  lose(worker_numbered(job, 1));
  lose(worker_numbered(job, 2));
  const std::set<std::string> soon{"worker-1", "worker-2"};

  EXPECT_EQ(lost_soon_in_a_row(job, soon, kStart + minutes(2)), 0)
      << "worker-0 was started with them, and lives";
  lose(worker_numbered(job, 0));
  EXPECT_EQ(lost_soon_in_a_row(job, soon, kStart + minutes(2)), 0) << "it was lost late";
}

TEST(LiveGang, TheEndOfAWorkerThatWasToLeaveIsNotAFailure) {
  job::Job job = running_job(3);
  for (int i = 0; i < 3; ++i) lose(worker_numbered(job, i));
  worker_numbered(job, 1).exit = {.signal = 15, .stopped = true};

  EXPECT_EQ(lost_soon_in_a_row(job, {"worker-0", "worker-2"}, kStart + seconds(5)), 2);
}

TEST(LiveGang, SeatsAreRenumberedOverWorkersWithResources) {
  job::Job job = running_job(4);
  worker_numbered(job, 0).left = true;  // the worker has left the gang and still runs
  lose(worker_numbered(job, 1));
  clear_place(worker_numbered(job, 2));

  renumber_seats(job);

  std::vector<int> seats;
  for (const job::Task& task : job.tasks) seats.push_back(task.seat);
  EXPECT_EQ(seats, (std::vector<int>{0, 1, 3, 4, 2}));
}

TEST(KeptSeed, ComesBackAsItWasWithTheReachOfItsGang) {
  KeptSeed kept{.reach = launch::Reach::kHosts};
  kept.seed.client_key.fill(7);
  kept.seed.rsh_key.fill(9);

  const auto back = kept_seed_of(to_text(kept));

  ASSERT_TRUE(back);
  EXPECT_EQ(back->reach, launch::Reach::kHosts);
  EXPECT_EQ(back->seed.client_key, kept.seed.client_key);
  EXPECT_EQ(back->seed.rsh_key, kept.seed.rsh_key);
}

TEST(KeptSeed, OtherTextsAreNone) {
  const std::string text = to_text({});
  for (const std::string& other :
       {std::string(), std::string("loopback"), "elsewhere" + text.substr(text.find(' ')),
        text.substr(0, text.size() - 1)}) {
    EXPECT_FALSE(kept_seed_of(other)) << other;
  }
}

}  // namespace
}  // namespace muster::control
