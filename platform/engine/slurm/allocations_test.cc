// Requesting, reporting and releasing allocations. Nothing is submitted twice, whenever an answer
// or a server is lost.
#include "engine/slurm/test_slurm_engine.h"
#include "words/test_words.h"

namespace muster::engine::slurm {
namespace {

using base::Error;
using base::ErrorCode;

TEST_F(SlurmEngineTest, RecordsARequestBeforeItSubmitsIt) {
  cluster_.is_away = true;
  ask(gang_, request_for({"main"}));
  wait_for_reason(gang_, "Slurm's controller has not answered since");

  ASSERT_TRUE(has_record(gang_));
  EXPECT_EQ(record(gang_).job.comment, "muster:0123456789abcdef:job1:1");
  EXPECT_EQ(record(gang_).job.id, 0U);
  const auto file = gang_record_in(folder_ / "jobs/job1/1");
  EXPECT_EQ(std::filesystem::status(file).permissions(), static_cast<std::filesystem::perms>(0600));

  cluster_.is_away = false;
  wait_until([&] { return record(gang_).job.id == 17; });
  EXPECT_EQ(cluster_.submitted.size(), 1U);
}

TEST_F(SlurmEngineTest, TheKeyIsOnlyInTheScript) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  const Submission& sent = cluster_.submitted[0];
  const std::string key = base::to_hex(record(gang_).common.key);

  EXPECT_NE(sent.script.find(key), std::string::npos);
  EXPECT_EQ(sent.comment.find(key), std::string::npos);
  for (const auto& [name, value] : sent.environment) EXPECT_EQ(value.find(key), std::string::npos);
}

TEST_F(SlurmEngineTest, ReportsChangesOfTheReason) {
  ask(gang_, request_for({"main"}));
  wait_for_reason(gang_, "waits in Slurm as job 17");
  cluster_.job(17).reason = "QOSMaxGRESPerUser";
  cluster_.job(17).partition = "gpu";
  cluster_.job(17).account = "vision";
  cluster_.job(17).may_start = base::SystemClock().now() + std::chrono::hours(1);
  wait_for_reason(gang_, "(QOSMaxGRESPerUser); Slurm expects it to start at");
  wait_for_polls();  // a poll may have been in progress

  const size_t news_before = news_[gang_].size();
  wait_for_polls(5);

  EXPECT_EQ(news_[gang_].size(), news_before);
  const auto* const waits = last_news<AllocationPending>(gang_);
  EXPECT_EQ(waits->constraint, "QOSMaxGRESPerUser");
  EXPECT_TRUE(waits->may_start);
  ASSERT_FALSE(waits->reason.details.empty());
  EXPECT_EQ(words::details(waits->reason)[0], "in Slurm: partition gpu, account vision");
}

TEST_F(SlurmEngineTest, ReportsTheAllocationAfterAllNodesHaveCalled) {
  ask(gang_, request_for({"launcher", "worker-0"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.run(17, {"n1", "n2"});
  const auto first = node(hello(0, 0, 17, "n1"));
  wait_for_reason(gang_, "n2 has not called back yet");
  EXPECT_EQ(last_news<AllocationGranted>(gang_), nullptr);

  const auto second = node(hello(1, 0, 17, "n2"));

  const auto given = wait_for<AllocationGranted>(gang_);
  EXPECT_EQ(given.slurm_job, 17U);
  EXPECT_EQ(given.places,
            (std::vector<AllocatedPlace>{{"launcher", "n1", {}}, {"worker-0", "n2", {}}}));
}

TEST_F(SlurmEngineTest, ReportsTheAllocationIfTheAnswerOfTheSubmitComesLater) {
  cluster_.submit_error = Error{.code = ErrorCode::kTimeout, .what = "Socket timed out"};
  cluster_.accepts_despite_error = true;
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });

  const auto its_node = node(hello());

  wait_for<AllocationGranted>(gang_);
  EXPECT_EQ(cluster_.submitted.size(), 1U);
}

TEST_F(SlurmEngineTest, SharesTheGpusOfANodeAmongItsTasks) {
  open([](SlurmEngineOptions& options) { options.tasks_per_node = 2; });
  AllocationRequest what = request_for({"worker-0", "worker-1"});
  for (TaskRequest& task : what.tasks) task.resources.gpus = 2;
  ask(gang_, what);
  wait_until([&] { return cluster_.submitted.size() == 1; });
  EXPECT_EQ(cluster_.submitted[0].components[0].gpus_per_node, 4);
  node::Hello one = hello(0);
  node::Hello other = hello(1);
  one.facts.gpu_indices = other.facts.gpu_indices = {0, 2, 5, 7};

  const auto first = node(one);
  const auto second = node(other);

  EXPECT_EQ(wait_for<AllocationGranted>(gang_).places,
            (std::vector<AllocatedPlace>{{"worker-0", "n1", {0, 2}}, {"worker-1", "n1", {5, 7}}}));
}

TEST_F(SlurmEngineTest, AnElasticGangHasTheAllocatedNodes) {
  AllocationRequest what = request_for({"launcher", "worker-0", "worker-1"});
  what.tasks[2].may_be_missing = true;
  ask(gang_, what);
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.run(17, {"n1", "n2"});

  const auto first = node(hello(0, 0, 17, "n1"));
  const auto second = node(hello(1, 0, 17, "n2"));

  EXPECT_EQ(wait_for<AllocationGranted>(gang_).places.size(), 2U);
}

/// The usual MPI job: its launcher is a guest on the first node.
TEST_F(SlurmEngineTest, AnElasticGangWithAGuestHasATaskOnEachNode) {
  AllocationRequest what = request_for({"launcher", "worker-0", "worker-1"});
  what.tasks[0].only_launches = true;
  what.tasks[2].may_be_missing = true;
  ask(gang_, what);
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.run(17, {"n1", "n2"});
  node::Hello of_guest = hello(0, 0, 17, "n1");
  of_guest.facts.component = 1;

  const auto guest = node(of_guest);
  const auto first = node(hello(0, 0, 17, "n1"));
  wait_for_reason(gang_, "n2 has not called back yet");
  wait_for_polls(5);
  const auto second = node(hello(1, 0, 17, "n2"));

  EXPECT_EQ(wait_for<AllocationGranted>(gang_).places.size(), 3U);
}

TEST_F(SlurmEngineTest, OnlyTheElasticPartOfAGangHasFewerTasks) {
  open([](SlurmEngineOptions& options) { options.tasks_per_node = 2; });
  AllocationRequest what =
      request_for({"launcher", "worker-0", "worker-1", "worker-2", "worker-3"});
  for (size_t i = 0; i < what.tasks.size(); ++i) {
    what.tasks[i].resources.cpu_milli = i == 0 ? 1000 : 2000;
    what.tasks[i].may_be_missing = i > 2;
  }
  ask(gang_, what);
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.run(17, {"n1", "n2"});
  node::Hello worker = hello(0, 0, 17, "n2");
  worker.facts.component = 1;
  node::Hello other = worker;
  other.facts.index = 1;

  const auto launcher = node(hello(0, 0, 17, "n1"));
  const auto first = node(worker);
  const auto second = node(other);

  EXPECT_EQ(wait_for<AllocationGranted>(gang_).places.size(), 3U);
}

// --- a cluster that does not list its nodes

class Unlisted : public SlurmEngineTest {
 protected:
  Unlisted() {
    cluster_.nodes_error = Error{.code = ErrorCode::kRefused, .what = "Access/permission denied"};
    open_again();
  }
  void open_again() {
    open([](SlurmEngineOptions& options) { options.nodes_poll = std::chrono::milliseconds(5); });
  }
  AllocationRequest wary() const {
    AllocationRequest wary = request_for({"main"});
    wary.avoided_nodes = {"n1"};
    return wary;
  }
};

TEST_F(Unlisted, NodesDoNotMeanThatTheControllerIsAway) {
  const auto its_node = gang_that_runs();
  const int until = cluster_.node_listings + 3;
  wait_until([&] { return cluster_.node_listings > until; });

  EXPECT_EQ(last_news<AllocationStateChange>(gang_), nullptr);
}

TEST_F(Unlisted, NodesAreAvoidedNevertheless) {
  ask(gang_, wary());

  wait_until([&] { return cluster_.submitted.size() == 1; });
  EXPECT_EQ(cluster_.submitted.front().excluded_nodes, std::vector<std::string>{"n1"});
}

/// Up to v0.0.38, slurmrestd reports the refusal as an unspecified error.
class UnlistedForUnspecifiedReason : public Unlisted {
 protected:
  UnlistedForUnspecifiedReason() {
    cluster_.nodes_error = Error{.code = ErrorCode::kUnavailable, .what = "Unspecified error"};
    open_again();
  }
};

TEST_F(UnlistedForUnspecifiedReason, NodesDoNotMeanThatTheControllerIsAway) {
  const auto its_node = gang_that_runs();
  const int until = cluster_.node_listings + 3;
  wait_until([&] { return cluster_.node_listings > until; });

  EXPECT_EQ(last_news<AllocationStateChange>(gang_), nullptr);
}

/// The nodes are requested before the first listing of jobs.
TEST_F(UnlistedForUnspecifiedReason, NodesDoNotMeanThatTheControllerIsAwayAfterARestart) {
  const auto its_node = gang_that_runs();
  open_again();
  wait_for_polls();

  EXPECT_EQ(last_news<AllocationStateChange>(gang_), nullptr);
}

TEST_F(UnlistedForUnspecifiedReason, NodesAreAvoidedNevertheless) {
  ask(gang_, wary());

  wait_until([&] { return cluster_.submitted.size() == 1; });
  EXPECT_EQ(cluster_.submitted.front().excluded_nodes, std::vector<std::string>{"n1"});
}

TEST_F(Unlisted, NodesAreAvoidedIfTheListIsEmpty) {
  cluster_.nodes_error.reset();
  cluster_.nodes.clear();
  open_again();

  ask(gang_, wary());

  wait_until([&] { return cluster_.submitted.size() == 1; });
  EXPECT_EQ(cluster_.submitted.front().excluded_nodes, std::vector<std::string>{"n1"});
}

TEST_F(Unlisted, AJobThatAvoidsNodesWaitsForTheFirstAnswer) {
  cluster_.answers_nodes = false;
  open_again();

  ask(gang_, wary());

  wait_for_reason(gang_, "Slurm has not listed its nodes yet");
  EXPECT_TRUE(cluster_.submitted.empty());
}

/// The controller did not answer when the nodes were requested: the failure is no refusal.
TEST_F(Unlisted, AJobThatAvoidsNodesWaitsIfTheirRequestIsOlderThanTheFirstListing) {
  cluster_.nodes_error.reset();
  cluster_.answers_nodes = false;
  open_again();
  ASSERT_EQ(cluster_.held_nodes.size(), 1U);
  AllocationRequest wary = request_for({"main"});
  wary.avoided_nodes = {"gone"};
  ask(gang_, wary);
  wait_for_reason(gang_, "Slurm has not listed its nodes yet");
  wait_for_polls();

  cluster_.held_nodes.front()(Error{.code = ErrorCode::kTimeout, .what = "Socket timed out"});
  wait_until([&] { return cluster_.held_nodes.size() == 2; });
  wait_for_polls();
  EXPECT_TRUE(cluster_.submitted.empty());

  cluster_.held_nodes.back()(cluster_.nodes);
  wait_until([&] { return cluster_.submitted.size() == 1; });
  EXPECT_TRUE(cluster_.submitted.front().excluded_nodes.empty());
}

// --- lost answers

struct LostAnswer {
  const char* name;
  bool was_taken;
};

class LostAnswers : public SlurmEngineTest, public testing::WithParamInterface<LostAnswer> {};

TEST_P(LostAnswers, AreLookedUpBeforeAnotherSubmission) {
  cluster_.submit_error = Error{.code = ErrorCode::kTimeout, .what = "Socket timed out"};
  cluster_.accepts_despite_error = GetParam().was_taken;
  ask(gang_, request_for({"main"}));

  wait_until([&] { return record(gang_).job.id == 17; });

  EXPECT_EQ(cluster_.submitted.size(), GetParam().was_taken ? 1U : 2U);
  EXPECT_EQ(cluster_.jobs.size(), 1U);
  wait_for_polls();
  EXPECT_TRUE(cluster_.cancelled.empty());
}

INSTANTIATE_TEST_SUITE_P(Submits, LostAnswers,
                         testing::Values(LostAnswer{"Taken", true}, LostAnswer{"NotTaken", false}),
                         [](const auto& each) { return each.param.name; });

TEST_F(SlurmEngineTest, ARefusalIsReportedAndLeavesNothing) {
  cluster_.submit_error = Error{.code = ErrorCode::kRefused, .what = "Invalid account"};
  ask(gang_, request_for({"main"}));

  EXPECT_EQ(wait_for<AllocationRefused>(gang_).error.what, "Invalid account");
  EXPECT_FALSE(has_record(gang_));
}

TEST_F(SlurmEngineTest, ATemporaryLimitOfJobsIsNoRefusal) {
  cluster_.submit_error = Error{.code = ErrorCode::kExhausted, .what = "too many jobs"};
  ask(gang_, request_for({"main"}));

  wait_until([&] { return record(gang_).job.id == 17; });

  EXPECT_EQ(cluster_.submitted.size(), 2U);
  EXPECT_EQ(last_news<AllocationRefused>(gang_), nullptr);
}

TEST_F(SlurmEngineTest, PartsOfGpusAreRefusedWithoutARequest) {
  AllocationRequest what = request_for({"main"});
  what.tasks[0].resources.gpu_share_milli = 500;

  EXPECT_FALSE(engine_->check_allocation_request(what));
  ask(gang_, what);

  EXPECT_NE(wait_for<AllocationRefused>(gang_).error.to_string().find("Slurm allocates whole GPUs"),
            std::string::npos);
  EXPECT_TRUE(cluster_.submitted.empty());
}

// --- releasing an allocation

TEST_F(SlurmEngineTest, AWaitingJobIsCancelledAndForgottenWhenItIsReleased) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });

  give_back(gang_);

  wait_until([&] { return !has_record(gang_); });
  ASSERT_FALSE(cluster_.cancelled.empty());
  // A listing that was requested before the cancellation causes another one.
  for (const auto& jobs : cluster_.cancelled) EXPECT_EQ(jobs, std::vector<uint64_t>{17});
}

TEST_F(SlurmEngineTest, AJobReleasedBeforeTheAnswerIsCancelled) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  give_back(gang_);

  wait_until([&] { return !has_record(gang_) && is_over(cluster_.job(17).state); });
}

TEST_F(SlurmEngineTest, AJobReleasedWhileTheControllerIsAwayIsCancelledByTheNextServer) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  cluster_.is_away = true;
  give_back(gang_);
  wait_for_polls();
  open();
  EXPECT_TRUE(record(gang_).common.given_back);

  cluster_.is_away = false;

  wait_until([&] { return !has_record(gang_); });
  EXPECT_EQ(cluster_.job(17).state, JobState::kCancelled);
}

TEST_F(SlurmEngineTest, ManyJobsAreCancelledByOneCall) {
  for (int i = 1; i <= 20; ++i) ask({"job" + std::to_string(i), 1}, request_for({"main"}));
  wait_until([&] { return cluster_.jobs.size() == 20; });
  wait_for_polls();

  for (int i = 1; i <= 20; ++i) give_back({"job" + std::to_string(i), 1});
  wait_until([&] { return !cluster_.cancelled.empty(); });

  EXPECT_EQ(cluster_.cancelled[0].size(), 20U);
}

TEST_F(SlurmEngineTest, AGangCanBeRequestedAgainWhileItsOldJobEnds) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  cluster_.cancel_ends = false;
  give_back(gang_);
  ask(gang_, request_for({"main"}));
  wait_for_reason(gang_, "waits for Slurm to end its earlier job 17");
  EXPECT_EQ(cluster_.submitted.size(), 1U);

  cluster_.end(17, JobState::kCancelled, "CANCELLED");

  wait_until([&] { return record(gang_).job.id == 18; });
  EXPECT_EQ(record(gang_).job.former, std::vector<uint64_t>{17});
}

TEST_F(SlurmEngineTest, AJobWhoseTasksHaveAllEndedEndsByItself) {
  const auto its_node = gang_that_runs();
  its_node->send(node::EndedNews{{.status = {.code = 3}, .time = {}}});
  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  EXPECT_EQ(its_node->last<node::Farewell>()->code, 3);
  give_back(gang_);
  wait_for_polls();
  EXPECT_TRUE(cluster_.cancelled.empty());

  cluster_.end(17, JobState::kFailed, "FAILED");

  wait_until([&] { return !has_record(gang_); });
  EXPECT_TRUE(cluster_.cancelled.empty());
  EXPECT_EQ(end_of("main")->status.code, 3);
}

TEST_F(SlurmEngineTest, ReleasingAnUnknownGangDoesNothing) {
  give_back({"other", 7});
  wait_for_polls(0);
  EXPECT_TRUE(cluster_.cancelled.empty());
}

TEST_F(SlurmEngineTest, NothingIsPolledWhileNothingIsPending) {
  wait_until([&] { return cluster_.listings == 1; });  // for jobs of an earlier server
  const auto pause = std::make_shared<bool>(false);
  const auto later = loop_.loop().after(std::chrono::milliseconds(100), [pause] { *pause = true; });
  wait_until([&] { return *pause; });
  EXPECT_EQ(cluster_.listings, 1);
}

TEST_F(SlurmEngineTest, ARequestAfterARestIsPolled) {
  wait_until([&] { return cluster_.listings == 1; });
  const auto rested = std::make_shared<bool>(false);
  const auto later =
      loop_.loop().after(std::chrono::milliseconds(50), [rested] { *rested = true; });
  wait_until([&] { return *rested; });

  ask(gang_, request_for({"main"}));

  wait_for_reason(gang_, "(Priority)");
}

TEST_F(SlurmEngineTest, AThousandWaitingGangsShareOneListing) {
  for (int i = 0; i < 1000; ++i) ask({"job" + std::to_string(i), 1}, request_for({"main"}));
  wait_until([&] { return cluster_.jobs.size() == 1000; });
  wait_until([&] { return news_.size() == 1000; });
  EXPECT_EQ(cluster_.past_listings, 0);
  EXPECT_EQ(cluster_.submitted.size(), 1000U);
}

}  // namespace
}  // namespace muster::engine::slurm
