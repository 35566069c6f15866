// Takeover after the death of a server at any point.
#include <signal.h>

#include "engine/slurm/test_slurm_engine.h"

namespace muster::engine::slurm {
namespace {

using base::Error;
using base::ErrorCode;

/// The point at which the earlier server died.
enum class Point { kKept, kSentAndLost, kQueued, kAllThere };

struct Stop {
  const char* name;
  Point point;
};

class AskedBefore : public SlurmEngineTest, public testing::WithParamInterface<Stop> {
 protected:
  void come_to(Point point) {
    if (point == Point::kKept) cluster_.is_away = true;
    if (point == Point::kSentAndLost) {
      cluster_.submit_error = Error{.code = ErrorCode::kTimeout, .what = "Socket timed out"};
      cluster_.accepts_despite_error = true;
    }
    if (point == Point::kAllThere) {
      its_node_ = gang_with_allocation();
      return;
    }
    ask(gang_, request_for({"main"}));
    switch (point) {
      case Point::kKept:
        return wait_until([&] { return has_record(gang_); });
      case Point::kSentAndLost:
        return wait_until([&] { return cluster_.submitted.size() == 1; });
      default:
        return wait_until([&] { return record(gang_).job.id == 17; });
    }
  }

  std::unique_ptr<FakeNode> its_node_;
};

TEST_P(AskedBefore, IsAdoptedAndNeverSubmittedTwice) {
  come_to(GetParam().point);
  open();
  its_node_.reset();
  cluster_.is_away = false;

  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  cluster_.run(17, {"n1"});
  const auto its_node = node(hello());

  wait_for<AllocationGranted>(gang_);
  wait_for_polls();
  EXPECT_EQ(cluster_.jobs.size(), 1U);
  EXPECT_EQ(cluster_.submitted.size(), 1U);
  EXPECT_TRUE(cluster_.cancelled.empty());
}

INSTANTIATE_TEST_SUITE_P(Points, AskedBefore,
                         testing::Values(Stop{"Kept", Point::kKept},
                                         Stop{"SentAndLost", Point::kSentAndLost},
                                         Stop{"Queued", Point::kQueued},
                                         Stop{"AllThere", Point::kAllThere}),
                         [](const auto& each) { return each.param.name; });

TEST_F(SlurmEngineTest, TheNextServerCanStartAnAllocatedGangBeforeItsNodesReconnect) {
  gang_with_allocation();
  open();
  std::optional<base::Result<void>> started;
  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kNothing);
  call([&] { engine_->start(gang_, {plan()}, loop_.into(started)); });
  const auto its_node = node(hello());
  wait_until([&] { return its_node->last<node::StartOrder>() != nullptr; });
  its_node->send(node::StartAnswer{});

  wait_until([&] { return started.has_value(); });

  EXPECT_TRUE(*started);
}

struct FolderSharing {
  const char* name;
  bool is_shared;
};

class Adopted : public SlurmEngineTest, public testing::WithParamInterface<FolderSharing> {
 protected:
  Adopted() { is_shared_ = GetParam().is_shared; }

  /// A file of the task's shim that this server can read.
  void write_end(job::ExitStatus status) {
    const TaskFolder folder{folder_ / "jobs/job1/1/main"};
    ASSERT_TRUE(base::make_private_folder(folder.path));
    ASSERT_TRUE(base::write_file(folder.exit(), encode(ExitRecord{.status = std::move(status)})));
  }
};

TEST_P(Adopted, ARunningTaskContinuesAndItsEndIsReported) {
  auto its_node = gang_that_runs();
  open();
  its_node.reset();
  ASSERT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);
  node::Hello again = hello();
  again.holds_task = true;
  its_node = node(again);
  wait_until([&] { return its_node->last<node::Welcome>() != nullptr; });
  its_node->send(node::StartAnswer{});
  its_node->send(node::AnsweredNews{});
  its_node->send(node::EndedNews{{.status = {.code = 6}, .time = {}}});
  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  its_node.reset();  // it has removed its files

  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_EQ(end_of("main")->status.code, 6);
  EXPECT_EQ(reports_.size(), 1U) << "the earlier server has reported that it answers";
}

TEST_P(Adopted, ATaskWhoseJobIsOverIsLost) {
  auto its_node = gang_that_runs();
  cluster_.end(17, JobState::kNodeFailed, "NODE_FAIL");
  open();
  its_node.reset();
  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, AllocationRevoked::Why::kNodeLost);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

TEST_P(Adopted, AnEndRecordedHereIsReported) {
  auto its_node = gang_that_runs();
  write_end({.code = 5});
  open();
  its_node.reset();

  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kEnded);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_EQ(end_of("main")->status.code, 5);
  EXPECT_EQ(engine_->adopt(gang_, "never-started"), AdoptionResult::kNothing);
}

/// Slurm's signal ended the task while no server ran, and only Slurm has the reason.
TEST_P(Adopted, AnEndBySignalWaitsForTheListingOfSlurm) {
  auto its_node = gang_that_runs();
  write_end({.signal = SIGTERM, .stopped = true});
  cluster_.end(17, JobState::kCancelled, "CANCELLED by 0");
  open();
  its_node.reset();

  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, AllocationRevoked::Why::kCancelled);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

TEST_P(Adopted, ACrashIsReportedAsACrashAfterItsSlurmJobIsOver) {
  auto its_node = gang_that_runs();
  write_end({.signal = SIGSEGV});
  cluster_.end(17, JobState::kFailed, "FAILED");
  open();
  its_node.reset();

  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);

  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_EQ(end_of("main")->status.signal, SIGSEGV);
  EXPECT_FALSE(end_of("main")->status.lost);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_P(Adopted, AMusterNodeWithoutItsTaskHasLostIt) {
  auto its_node = gang_that_runs();
  open();
  its_node.reset();
  ASSERT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);

  its_node = node(hello());

  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

INSTANTIATE_TEST_SUITE_P(Folders, Adopted,
                         testing::Values(FolderSharing{"Shared", true},
                                         FolderSharing{"NotShared", false}),
                         [](const auto& each) { return each.param.name; });

TEST_F(SlurmEngineTest, TheNextServerAlsoReportsWhyAnAllocationWasRevoked) {
  auto its_node = gang_that_runs();
  cluster_.end(17, JobState::kPreempted, "PREEMPTED");
  its_node.reset();
  wait_until([&] { return end_of("main") != nullptr; });
  open();

  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kEnded);

  wait_until([&] { return end_of("main") != nullptr; });
  ASSERT_NE(last_news<AllocationRevoked>(gang_), nullptr);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_)->why, AllocationRevoked::Why::kEvicted);
  EXPECT_TRUE(end_of("main")->status.lost);
}

TEST_F(SlurmEngineTest, TheNextServerListensAtTheSamePort) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  const node::NodeBrief brief = brief_in(cluster_.submitted[0].script);
  open();

  const auto kept = node::decode_callback(*base::read_file(folder_ / "jobs" / node::kCallbackFile));

  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->port, brief.port);
  EXPECT_EQ(*base::read_file(folder_ / "jobs" / brief.mark), brief.nonce + "\n");
}

/// A running gang of one task, whose record the next server cannot read.
class WithoutARecord : public SlurmEngineTest {
 protected:
  WithoutARecord() {
    auto its_node = gang_that_runs();
    EXPECT_TRUE(base::make_private_folder(folder_ / "jobs/job1/1/main"));
    EXPECT_TRUE(base::write_file(record_file_, "x"));
    open();
    its_node.reset();
    EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);
    wait_for_polls(4);
  }

  const std::filesystem::path record_file_ = gang_record_in(folder_ / "jobs/job1/1");
};

TEST_F(WithoutARecord, ARunningTaskContinuesAndTheNextServerMayReadTheRecord) {
  EXPECT_TRUE(cluster_.cancelled.empty());
  EXPECT_EQ(end_of("main"), nullptr);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
  EXPECT_EQ(*base::read_file(record_file_), "x");
}

TEST_F(WithoutARecord, TheTaskIsLostWhenItsSlurmJobIsOver) {
  cluster_.end(17, JobState::kNodeFailed, "NODE_FAIL");

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, AllocationRevoked::Why::kNodeLost);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

TEST_F(WithoutARecord, ATaskThatIsStoppedEndsWithItsSlurmJob) {
  call([&] { engine_->stop(gang_, {"main"}, StopMode::kGraceful); });

  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_TRUE(end_of("main")->status.stopped);
  EXPECT_EQ(cluster_.job(17).state, JobState::kCancelled);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_F(WithoutARecord, AJobIsStoppedAlthoughOneOfItsTasksHadEndedBefore) {
  ASSERT_TRUE(base::make_private_folder(folder_ / "jobs/job1/1/worker-1"));
  open();
  ASSERT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);
  wait_for_polls(4);
  ASSERT_TRUE(cluster_.cancelled.empty());

  call([&] { engine_->stop(gang_, {"main"}, StopMode::kGraceful); });

  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.stopped);
  EXPECT_EQ(cluster_.job(17).state, JobState::kCancelled);
}

TEST_F(WithoutARecord, ItsJobIsRequestedAgainAfterItsSlurmJobIsOver) {
  cluster_.end(17, JobState::kNodeFailed, "NODE_FAIL");
  wait_for<AllocationRevoked>(gang_);

  ask(gang_, request_for({"main"}));

  wait_until([&] { return record(gang_).job.id == 18; });
  EXPECT_EQ(record(gang_).job.former, std::vector<uint64_t>{17});
}

TEST_F(WithoutARecord, AnAllocationThatIsGivenBackEnds) {
  give_back(gang_);

  wait_until([&] { return !has_record(gang_); });
  EXPECT_EQ(cluster_.job(17).state, JobState::kCancelled);
}

TEST_F(SlurmEngineTest, NothingIsCancelledIfTheFolderOfAJobCannotBeListed) {
  auto its_node = gang_that_runs();
  engine_.reset();
  const auto job = folder_ / "jobs/job1";
  std::filesystem::rename(job, folder_ / "moved");
  std::filesystem::create_symlink("job1", job);  // a listing of it fails
  open();

  const auto found = engine_->check_found_tasks();

  ASSERT_FALSE(found);
  EXPECT_NE(found.error().what.find(job.string()), std::string::npos) << found.error().what;
  std::filesystem::remove(job);
  std::filesystem::rename(folder_ / "moved", job);
  open();
  EXPECT_TRUE(engine_->check_found_tasks());
  EXPECT_EQ(engine_->adopt(gang_, "main"), AdoptionResult::kRunning);
  EXPECT_TRUE(cluster_.cancelled.empty());
}

TEST_F(SlurmEngineTest, AnUnreadableRecordIsLoggedAndTheOthersAreAdopted) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  const auto other = gang_record_in(folder_ / "jobs/job2/1");
  ASSERT_TRUE(base::make_private_folder(other.parent_path()));
  ASSERT_TRUE(base::write_file(other, "half a rec"));
  open();

  give_back(gang_);

  wait_until([&] { return !has_record(gang_); });
}

}  // namespace
}  // namespace muster::engine::slurm
