// What those that run are told of who takes part.
#include <gtest/gtest.h>

#include "launch/test_plan.h"

namespace muster::launch {
namespace {

using job::Job;
using job::Kind;
using job::TaskPhase;

/// An MPI job of a launcher and twelve workers, which all run.
Job running_mpi_job() {
  Job job = placed({.name = "dist",
                    .kind = Kind::kMpi,
                    .command = {"horovodrun"},
                    .workers = 12,
                    .slots_per_worker = 2,
                    .folder = "/work"});
  for (job::Task& task : job.tasks) task.phase = TaskPhase::kRunning;
  return job;
}

std::vector<FileChange> changes_of(const Job& job, const std::set<std::string>& members) {
  auto changes = plan_membership(job, members);
  EXPECT_TRUE(changes);
  return *std::move(changes);
}

const std::string& content(const FileChange& change, const std::string& path) {
  return find_file(change.files, path)->content;
}

TEST(PlanMembership, ListsTheMembersAloneByTheirNumbers) {
  const auto changes = changes_of(running_mpi_job(), {"worker-10", "worker-2", "worker-0"});

  EXPECT_EQ(content(changes[0], "hostfile"),
            "dist-worker-0 slots=2\ndist-worker-2 slots=2\ndist-worker-10 slots=2\n");
  EXPECT_EQ(content(changes[0], "hostfile.intel"),
            "dist-worker-0:2\ndist-worker-2:2\ndist-worker-10:2\n");
  EXPECT_EQ(content(changes[0], "discover_hosts.sh"),
            "#!/bin/sh\n"
            "# Who takes ranks right now, for: horovodrun --host-discovery-script\n"
            "echo dist-worker-0:2\n"
            "echo dist-worker-2:2\n"
            "echo dist-worker-10:2\n");
}

TEST(PlanMembership, KeepsALauncherThatTakesRanksLast) {
  Job job = running_mpi_job();
  job.spec.leader_slots = 3;

  EXPECT_EQ(content(changes_of(job, {"worker-1"})[0], "hostfile"),
            "dist-worker-1 slots=2\ndist-launcher-0 slots=3\n");
}

TEST(PlanMembership, TellsAllThatRunThoseThatAreToGoToo) {
  Job job = running_mpi_job();
  job.tasks[1].left = true;
  job.tasks[2].phase = TaskPhase::kEnded;
  job.tasks[3].phase = TaskPhase::kStarting;

  const auto changes = changes_of(job, {"worker-5"});

  ASSERT_EQ(changes.size(), 10U);
  EXPECT_EQ(changes[0].task, "launcher");
  EXPECT_EQ(changes[1].task, "worker-3");
  EXPECT_EQ(changes[9].task, "worker-11");
  for (const FileChange& change : changes) {
    EXPECT_EQ(change.files, changes[0].files);
    EXPECT_TRUE(change.hosts.empty());  // names stay as they are
  }
}

TEST(PlanMembership, SaysTheSameAsAPlanOfThoseWhoTakePart) {
  Job job = placed({.name = "dist",
                    .kind = Kind::kMpi,
                    .command = {"mpirun"},
                    .workers = 3,
                    .leader_slots = 1,
                    .folder = "/work"});
  job.tasks[2].node.clear();
  const auto plan = plan_gang(job, seed(), plain_site());
  ASSERT_TRUE(plan);
  for (job::Task& task : job.tasks) task.phase = TaskPhase::kRunning;

  const auto changes = changes_of(job, {"worker-0", "worker-2"});

  for (const PlannedFile& file : changes[0].files) {
    EXPECT_EQ(file, *find_file(plan->then[0], file.path)) << file.path;
  }
}

TEST(PlanMembership, HasNothingToTellTheOtherKinds) {
  for (const Kind kind : {Kind::kGrpc, Kind::kTorch, Kind::kSingle}) {
    Job job = running_mpi_job();
    job.spec.kind = kind;

    EXPECT_TRUE(changes_of(job, {"worker-1"}).empty());
  }
}

TEST(PlanMembership, RefusesAMemberThatIsNoWorkerOrHasLeft) {
  Job job = running_mpi_job();
  job.tasks[1].left = true;

  for (const char* name : {"worker-0", "launcher", "worker-99"}) {
    const auto changes = plan_membership(job, {"worker-1", name});
    ASSERT_FALSE(changes) << name;
    EXPECT_EQ(changes.error().what,
              "job 'dist' has no worker '" + std::string(name) + "' that could take part");
  }
}

}  // namespace
}  // namespace muster::launch
