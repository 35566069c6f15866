// What Slurm does to a waiting or running gang, and how the engine reports it.
#include "engine/slurm/job_watch.h"

#include <signal.h>

#include "base/text.h"
#include "engine/engine.h"
#include "engine/lent/lent_tasks.h"
#include "engine/slurm/node_calls.h"
#include "engine/slurm/test_slurm_engine.h"
#include "words/sentence.h"

namespace muster::engine::slurm {
namespace {

using Why = AllocationRevoked::Why;

/// The reported reason, and the expected sentence.
std::string words_of(const AllocationRevoked& taken) {
  return words::sentence(taken.end) + "\n" + base::joined(taken.printed, "\n");
}

struct Verdict {
  const char* name;
  JobState state;
  const char* text;
  Why why;
  const char* words;
};

class Verdicts : public SlurmEngineTest, public testing::WithParamInterface<Verdict> {};

TEST_P(Verdicts, AreReportedBeforeTheLossOfTheTasks) {
  auto its_node = gang_that_runs();
  cluster_.end(17, GetParam().state, GetParam().text);
  its_node.reset();  // Slurm has killed it

  const auto taken = wait_for<AllocationRevoked>(gang_);
  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_EQ(taken.why, GetParam().why);
  EXPECT_NE(words_of(taken).find(GetParam().words), std::string::npos) << words_of(taken);
  EXPECT_TRUE(end_of("main")->status.lost);
  EXPECT_EQ(end_of("main")->status.error, words::sentence(taken.end));
}

INSTANTIATE_TEST_SUITE_P(
    States, Verdicts,
    testing::Values(Verdict{"Timeout", JobState::kTimeout, "TIMEOUT", Why::kFailed, "time limit"},
                    Verdict{"Deadline", JobState::kDeadline, "DEADLINE", Why::kFailed, "deadline"},
                    Verdict{"OutOfMemory", JobState::kOutOfMemory, "OUT_OF_MEMORY", Why::kFailed,
                            "out of memory"},
                    Verdict{"BootFailed", JobState::kBootFailed, "BOOT_FAIL", Why::kFailed, "boot"},
                    Verdict{"NodeFailed", JobState::kNodeFailed, "NODE_FAIL", Why::kNodeLost,
                            "failed (NODE_FAIL)"},
                    Verdict{"Preempted", JobState::kPreempted, "PREEMPTED", Why::kEvicted,
                            "for another job (PREEMPTED)"},
                    Verdict{"Cancelled", JobState::kCancelled, "CANCELLED by 0", Why::kCancelled,
                            "was cancelled in Slurm by root"},
                    Verdict{"Failed", JobState::kFailed, "FAILED", Why::kFailed,
                            "before its tasks ended"}),
    [](const auto& each) { return each.param.name; });

TEST_F(SlurmEngineTest, AJobThatFailedWithItsNodeNamesTheNode) {
  auto its_node = gang_that_runs();
  cluster_.nodes[0].state_text = "DOWN*";
  cluster_.end(17, JobState::kFailed, "FAILED");
  its_node.reset();

  const auto taken = wait_for<AllocationRevoked>(gang_);

  EXPECT_EQ(taken.why, Why::kNodeLost);
  EXPECT_EQ(taken.node, "n1");
}

TEST_F(SlurmEngineTest, AJobThatSlurmEndedWithItsNodeNamesTheNode) {
  auto its_node = gang_that_runs();
  cluster_.nodes[0].state_text = "DOWN*";
  cluster_.end(17, JobState::kNodeFailed, "NODE_FAIL");
  its_node.reset();

  const auto taken = wait_for<AllocationRevoked>(gang_);

  EXPECT_EQ(taken.why, Why::kNodeLost);
  EXPECT_EQ(taken.node, "n1");
}

TEST_F(SlurmEngineTest, ATaskThatEndedByItselfIsNotLostWithItsJob) {
  auto its_node = gang_that_runs();
  its_node->send(node::EndedNews{{.status = {.code = 4}, .time = {}}});
  wait_until([&] { return end_of("main") != nullptr; });
  cluster_.end(17, JobState::kFailed, "FAILED");
  wait_for_polls();

  EXPECT_EQ(end_of("main")->status.code, 4);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_F(SlurmEngineTest, AnEndInASharedFolderIsFoundWithoutAReport) {
  auto its_node = gang_that_runs();
  const TaskFolder folder{folder_ / "jobs/job1/1/main"};
  ASSERT_TRUE(base::make_private_folder(folder.path));
  ASSERT_TRUE(base::write_file(folder.exit(), encode(ExitRecord{.status = {.code = 5}})));
  cluster_.end(17, JobState::kFailed, "FAILED");
  its_node.reset();

  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_EQ(end_of("main")->status.code, 5);
  EXPECT_FALSE(end_of("main")->status.lost);
}

/// The end arrives at once, and its reason a moment later.
TEST_F(SlurmEngineTest, ATaskThatSlurmStopsWaitsWithItsEndForTheReason) {
  auto its_node = gang_that_runs();
  its_node->send(node::SignalledNews{.signal = SIGTERM});
  its_node->send(node::EndedNews{{.status = {.code = 0, .stopped = true}, .time = {}}});
  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  wait_for_polls();
  EXPECT_EQ(end_of("main"), nullptr);

  cluster_.end(17, JobState::kCancelled, "CANCELLED");

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kCancelled);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

/// The task has saved its work and exited with 0. It must continue from there, so it has not
/// succeeded.
TEST_F(SlurmEngineTest, ATaskThatEndsWellUponSlurmsSignalIsQueuedAgainWithItsJob) {
  auto its_node = gang_that_runs();
  its_node->send(node::SignalledNews{.signal = SIGTERM});
  its_node->send(node::EndedNews{{.status = {.code = 0}, .time = {}}});
  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  cluster_.queue_again(17);

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kEvicted);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

/// Slurm's signal may reach the task before its muster-node.
TEST_F(SlurmEngineTest, AnEndByAnUnreportedSignalWaitsForTheListing) {
  auto its_node = gang_that_runs();
  cluster_.queue_again(17);
  its_node->send(node::EndedNews{{.status = {.signal = SIGTERM}, .time = {}}});

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kEvicted);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

TEST_F(SlurmEngineTest, AnEndByTheSignalOfAUserIsReportedAtOnce) {
  auto its_node = gang_that_runs();
  its_node->send(node::EndedNews{{.status = {.signal = SIGKILL}, .time = {}}});

  wait_until([&] { return end_of("main") != nullptr; });

  EXPECT_EQ(end_of("main")->status.signal, SIGKILL);
  EXPECT_FALSE(end_of("main")->status.lost);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

struct ByHand {
  const char* name;
  JobState state;
  const char* text;
  int code;
};
class SignalledByHand : public SlurmEngineTest, public testing::WithParamInterface<ByHand> {};

/// scancel --signal does not end the job.
TEST_P(SignalledByHand, ATaskEndsAsItReports) {
  auto its_node = gang_that_runs();
  its_node->send(node::SignalledNews{.signal = SIGTERM});
  its_node->send(node::EndedNews{{.status = {.code = GetParam().code}, .time = {}}});
  wait_until([&] { return its_node->last<node::Farewell>() != nullptr; });
  cluster_.end(17, GetParam().state, GetParam().text);

  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_EQ(end_of("main")->status.code, GetParam().code);
  EXPECT_FALSE(end_of("main")->status.lost);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

INSTANTIATE_TEST_SUITE_P(States, SignalledByHand,
                         testing::Values(ByHand{"Well", JobState::kCompleted, "COMPLETED", 0},
                                         ByHand{"Badly", JobState::kFailed, "FAILED", 3}),
                         [](const auto& each) { return each.param.name; });

// --- nodes

TEST_F(SlurmEngineTest, ADrainedNodeIsClosedAndADownNodeIsSilent) {
  cluster_.nodes.push_back(cluster_.nodes[0]);
  cluster_.nodes.push_back(cluster_.nodes[0]);
  cluster_.nodes[1].name = "n2";
  cluster_.nodes[1].state_text = "IDLE+DRAIN";
  cluster_.nodes[2].name = "n3";
  cluster_.nodes[2].state_text = "DOWN*";
  for (const size_t i : {size_t{1}, size_t{2}}) {
    cluster_.nodes[i].takes_jobs = false;
    cluster_.nodes[i].reason = "its fan is loud";
  }
  open();
  wait_until([&] { return engine_->nodes().size() == 3; });

  const std::vector<Node> nodes = engine_->nodes();
  EXPECT_FALSE(is_closed(nodes[0]) || is_silent(nodes[0]));
  EXPECT_TRUE(is_closed(nodes[1]) && !is_silent(nodes[1]));
  EXPECT_TRUE(is_silent(nodes[2]) && !is_closed(nodes[2]));
  EXPECT_EQ(nodes[1].labels.at("reason"), "its fan is loud");
}

// --- queued again

TEST_F(SlurmEngineTest, AJobThatSlurmRequeuesIsAdoptedByTheNextAttempt) {
  auto its_node = gang_that_runs();
  cluster_.queue_again(17);
  its_node.reset();
  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kEvicted);
  wait_until([&] { return end_of("main") != nullptr; });

  ask(next_, request_for({"main"}));
  give_back(gang_);
  wait_until([&] { return !has_record(gang_); });
  cluster_.run(17, {"n1"});
  auto old = node(hello(0, 0));
  wait_until([&] { return old->is_hung_up; });
  auto anew = node(hello(0, 1));

  wait_for<AllocationGranted>(next_);
  EXPECT_EQ(cluster_.submitted.size(), 1U);
  EXPECT_TRUE(cluster_.cancelled.empty());
}

TEST_F(SlurmEngineTest, AListingFromBeforeTheStartOfItsJobEvictsNoGang) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  cluster_.holds_listings = true;
  wait_until([&] { return cluster_.held.size() == 1; });
  cluster_.run(17, {"n1"});
  const auto its_node = node(hello());
  wait_for<AllocationGranted>(gang_);

  cluster_.holds_listings = false;
  cluster_.held.front()();

  wait_for_polls();
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_F(SlurmEngineTest, AListingOfAnEarlierRunOfItsJobReportsNoEnd) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  cluster_.end(17, JobState::kCompleting, "COMPLETING");
  cluster_.holds_listings = true;
  wait_until([&] { return cluster_.held.size() == 1; });
  cluster_.run(17, {"n1"});
  const auto its_node = node(hello());
  wait_for<AllocationGranted>(gang_);

  cluster_.holds_listings = false;
  cluster_.held.front()();

  wait_for_polls();
  EXPECT_EQ(last_news<AllocationStateChange>(gang_), nullptr);
}

TEST_F(SlurmEngineTest, AReleasedJobThatSlurmRequeuesIsCancelled) {
  auto its_node = gang_that_runs();
  cluster_.queue_again(17);
  its_node.reset();
  wait_for<AllocationRevoked>(gang_);

  give_back(gang_);

  wait_until([&] { return !has_record(gang_); });
  EXPECT_EQ(cluster_.job(17).state, JobState::kCancelled);
}

TEST_F(SlurmEngineTest, TheNextAttemptSubmitsAgainIfItsRequestDiffers) {
  auto its_node = gang_that_runs();
  cluster_.queue_again(17);
  its_node.reset();
  wait_for<AllocationRevoked>(gang_);
  AllocationRequest other = request_for({"main"});
  other.avoided_nodes = {"n1"};

  ask(next_, other);
  give_back(gang_);

  wait_until([&] { return record(next_).job.id == 18; });
  wait_until([&] { return cluster_.job(17).state == JobState::kCancelled; });
}

/// Slurm refuses a job that names such a node. A server that has just started has no list of its
/// nodes when the first allocation is requested.
TEST_F(SlurmEngineTest, ARequestAvoidsOnlyNodesOfTheCluster) {
  AllocationRequest wary = request_for({"main"});
  wary.avoided_nodes = {"gone", "n1"};

  ask(gang_, wary);

  wait_until([&] { return cluster_.submitted.size() == 1; });
  EXPECT_EQ(cluster_.submitted.front().excluded_nodes, std::vector<std::string>{"n1"});
}

TEST_F(SlurmEngineTest, AJobRequeuedBeforeItsAllocationKeepsWaiting) {
  ask(gang_, request_for({"main", "worker-0"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.run(17, {"n1", "n2"});
  const auto first = node(hello());
  wait_for_reason(gang_, "has not called back yet");

  cluster_.queue_again(17);
  wait_for_reason(gang_, "waits in Slurm as job 17");
  wait_until([&] { return first->is_hung_up; });
  cluster_.run(17, {"n1", "n2"});
  const auto second = node(hello(0, 1));
  const auto third = node(hello(1, 1, 17, "n2"));

  wait_for<AllocationGranted>(gang_);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

// --- nodes that do not call back

TEST_F(SlurmEngineTest, ANodeThatDoesNotCallBackIsNamedWithARemedy) {
  open([](SlurmEngineOptions& options) {
    options.call_back_within = std::chrono::milliseconds(50);
  });
  ask(gang_, request_for({"main", "worker-0"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  ASSERT_TRUE(base::write_file(folder_ / "jobs/job1/1/slurm.out", "one\nno route to 10.0.0.9\n"));
  const auto first = node(hello());
  cluster_.run(17, {"n1", "n2"});

  const auto taken = wait_for<AllocationRevoked>(gang_);

  EXPECT_EQ(taken.why, Why::kNodeLost);
  EXPECT_EQ(taken.node, "n2");
  EXPECT_NE(words_of(taken).find("node n2"), std::string::npos) << words_of(taken);
  EXPECT_NE(words_of(taken).find("no route to 10.0.0.9"), std::string::npos) << words_of(taken);
  EXPECT_NE(taken.advice.find("/opt/muster/muster-node"), std::string::npos) << taken.advice;
  wait_until([&] { return cluster_.job(17).state == JobState::kCancelled; });
}

TEST_F(SlurmEngineTest, AJobThatEndsBeforeItsNodesHaveCalledQuotesItsScript) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  ASSERT_TRUE(base::write_file(folder_ / "jobs/job1/1/slurm.out", "muster-node is not on n1\n"));
  cluster_.job(17).exit_code = 127;
  cluster_.end(17, JobState::kFailed, "FAILED");

  const auto taken = wait_for<AllocationRevoked>(gang_);

  EXPECT_EQ(taken.why, Why::kFailed);
  EXPECT_NE(words_of(taken).find("code 127"), std::string::npos) << words_of(taken);
  EXPECT_NE(words_of(taken).find("muster-node is not on n1"), std::string::npos) << words_of(taken);
}

TEST_F(SlurmEngineTest, ANodeThatBootsIsNotLate) {
  open(
      [](SlurmEngineOptions& options) { options.call_back_within = std::chrono::milliseconds(1); });
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.run(17, {"n1"});
  cluster_.end(17, JobState::kConfiguring, "CONFIGURING");
  wait_for_reason(gang_, "Slurm is booting or preparing n1");
  wait_for_polls(5);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);

  cluster_.run(17, {"n1"});

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kNodeLost);
}

TEST_F(SlurmEngineTest, AJobInAStateOfANewerSlurmIsNotLate) {
  open(
      [](SlurmEngineOptions& options) { options.call_back_within = std::chrono::milliseconds(1); });
  ask(gang_, request_for({"main"}));
  wait_until([&] { return cluster_.submitted.size() == 1; });
  cluster_.job(17).reason = "Licenses";
  cluster_.end(17, JobState::kUnknown, "HIBERNATING");
  wait_for_reason(gang_, "(Licenses)");
  cluster_.job(17).nodes = {"n1"};
  wait_for_reason(gang_, "n1 has not called back yet");
  wait_for_polls(5);

  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
  EXPECT_TRUE(cluster_.cancelled.empty());
}

// --- while a job continues

TEST_F(SlurmEngineTest, SuspensionIsReportedUntilItEnds) {
  const auto its_node = gang_that_runs();
  cluster_.end(17, JobState::kSuspended, "SUSPENDED");
  EXPECT_EQ(words::sentence(job::Fact(*wait_for<AllocationStateChange>(gang_).state)),
            "Slurm has suspended it (job 17)");

  cluster_.run(17, {"n1"});

  wait_until([&] { return !last_news<AllocationStateChange>(gang_)->state; });
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

/// A suspended muster-node carries out no order.
class Suspended : public SlurmEngineTest {
 protected:
  void expect_stopped(std::unique_ptr<FakeNode> its_node) {
    wait_until([&] { return cluster_.job(17).state == JobState::kCancelled; });
    its_node.reset();  // Slurm has killed it
    wait_until([&] { return end_of("main") != nullptr; });
    EXPECT_TRUE(end_of("main")->status.stopped);
    EXPECT_EQ(end_of("main")->status.error, "was stopped");
    EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
  }

  void suspend() {
    cluster_.end(17, JobState::kSuspended, "SUSPENDED");
    wait_for<AllocationStateChange>(gang_);
  }
  void grant_launcher_and_worker() {
    ask(gang_, request_for({"launcher", "worker-0"}));
    wait_until([&] { return cluster_.submitted.size() == 1; });
    cluster_.run(17, {"n1", "n2"});
    nodes_["launcher"] = node(hello(0));
    nodes_["worker-0"] = node(hello(1, 0, 17, "n2"));
    wait_for<AllocationGranted>(gang_);
  }
  /// Starts these tasks, whose muster-nodes answer; returns whether the start has succeeded.
  bool answer_start(const std::vector<std::string>& tasks) {
    std::vector<launch::TaskPlan> plans;
    for (const std::string& task : tasks) plans.push_back(plan(task));
    std::optional<base::Result<void>> started;
    call([&] { engine_->start(gang_, plans, loop_.into(started)); });
    for (const std::string& task : tasks) {
      FakeNode& its_node = *nodes_.at(task);
      wait_until([&] { return its_node.last<node::StartOrder>() != nullptr; });
      its_node.send(node::StartAnswer{});
    }
    wait_until([&] { return started.has_value(); });
    return started && *started;
  }

  std::map<std::string, std::unique_ptr<FakeNode>> nodes_;
};

TEST_F(Suspended, AJobThatIsStoppedIsCancelled) {
  auto its_node = gang_that_runs();
  cluster_.end(17, JobState::kSuspended, "SUSPENDED");
  wait_for<AllocationStateChange>(gang_);
  EXPECT_TRUE(cluster_.cancelled.empty());

  call([&] { engine_->stop(gang_, {"main"}, StopMode::kGraceful); });

  expect_stopped(std::move(its_node));
}

TEST_F(Suspended, AJobThatWasToStopBeforeIsCancelled) {
  auto its_node = gang_that_runs();
  call([&] { engine_->stop(gang_, {"main"}, StopMode::kGraceful); });
  wait_for_polls();
  EXPECT_TRUE(cluster_.cancelled.empty());

  cluster_.end(17, JobState::kSuspended, "SUSPENDED");

  expect_stopped(std::move(its_node));
}

TEST_F(Suspended, AGangIsCancelledOnceAllOfItsTasksAreStopped) {
  grant_launcher_and_worker();
  EXPECT_TRUE(answer_start({"launcher", "worker-0"}));
  suspend();

  call([&] { engine_->stop(gang_, {"launcher"}, StopMode::kGraceful); });
  wait_for_polls();
  EXPECT_TRUE(cluster_.cancelled.empty());

  call([&] { engine_->stop(gang_, {"launcher", "worker-0"}, StopMode::kGraceful); });
  wait_until([&] { return cluster_.job(17).state == JobState::kCancelled; });
}

/// The muster-node does not answer its order to start the task.
TEST_F(Suspended, AJobThatIsStoppedDuringItsStartIsCancelled) {
  auto its_node = gang_with_allocation();
  std::optional<base::Result<void>> started;
  call([&] { engine_->start(gang_, {plan()}, loop_.into(started)); });
  wait_until([&] { return its_node->last<node::StartOrder>() != nullptr; });
  suspend();

  call([&] { engine_->stop(gang_, {"main"}, StopMode::kNow); });

  wait_until([&] { return cluster_.job(17).state == JobState::kCancelled; });
  its_node.reset();
  wait_until([&] { return started.has_value(); });
  EXPECT_FALSE(*started);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_F(Suspended, AGangThatIsStoppedDuringTheStartOfItsLauncherIsCancelled) {
  grant_launcher_and_worker();
  EXPECT_TRUE(answer_start({"worker-0"}));
  std::optional<base::Result<void>> started;
  call([&] { engine_->start(gang_, {plan("launcher")}, loop_.into(started)); });
  wait_until([&] { return nodes_.at("launcher")->last<node::StartOrder>() != nullptr; });
  suspend();

  call([&] { engine_->stop(gang_, {"launcher", "worker-0"}, StopMode::kGraceful); });

  wait_until([&] { return cluster_.job(17).state == JobState::kCancelled; });
  nodes_.clear();
  wait_until([&] { return started.has_value() && end_of("worker-0") != nullptr; });
  EXPECT_FALSE(*started);
  EXPECT_TRUE(end_of("worker-0")->status.stopped);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_F(SlurmEngineTest, ReportsThatSlurmIsStillEndingAJob) {
  const auto its_node = gang_that_runs();
  cluster_.end(17, JobState::kCompleting, "COMPLETING");
  EXPECT_EQ(words::sentence(job::Fact(*wait_for<AllocationStateChange>(gang_).state)),
            "Slurm is ending it (job 17)");

  cluster_.end(17, JobState::kCancelled, "CANCELLED");

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kCancelled);
}

/// The listing may arrive before the report of the muster-node, and the record in the folder before
/// both.
TEST_F(SlurmEngineTest, AnEndFoundInTheFolderOfARequeuedJobIsSlurms) {
  auto its_node = gang_that_runs();
  const TaskFolder folder{folder_ / "jobs/job1/1/main"};
  ASSERT_TRUE(base::make_private_folder(folder.path));
  ASSERT_TRUE(base::write_file(folder.exit(),
                               encode(ExitRecord{.status = {.signal = SIGTERM, .stopped = true}})));
  cluster_.queue_again(17);

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kEvicted);
  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.lost);
}

TEST_F(SlurmEngineTest, AnAbsentControllerIsReportedAndNothingIsLost) {
  const auto its_node = gang_that_runs();
  cluster_.is_away = true;
  const std::string text =
      words::sentence(job::Fact(*wait_for<AllocationStateChange>(gang_).state));
  EXPECT_NE(text.find("Slurm's controller has not answered since"), std::string::npos);
  EXPECT_NE(text.find("; running tasks continue"), std::string::npos);
  its_node->send(node::EndedNews{{.status = {.code = 2}, .time = {}}});
  wait_until([&] { return end_of("main") != nullptr; });

  cluster_.is_away = false;

  wait_until([&] { return !last_news<AllocationStateChange>(gang_)->state; });
  EXPECT_EQ(end_of("main")->status.code, 2);
}

TEST_F(SlurmEngineTest, AWaitingJobThatTheControllerHasLostIsSubmittedAgain) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  wait_for_polls();

  cluster_.jobs.clear();

  wait_until([&] { return record(gang_).job.id == 18; });
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);
}

TEST_F(SlurmEngineTest, AForgottenJobIsFoundInTheAccountingDatabase) {
  auto its_node = gang_that_runs();
  ListedJob past = cluster_.job(17);
  past.state = JobState::kTimeout;
  past.state_text = "TIMEOUT";
  cluster_.past = {past};
  cluster_.jobs.clear();
  its_node.reset();

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kFailed);
}

/// The accounting database may have recorded that the job was cancelled.
TEST_F(SlurmEngineTest, AForgottenJobIsNotSubmittedAgainBeforeTheAccountingDatabaseAnswers) {
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  ListedJob past = cluster_.job(17);
  past.state = JobState::kCancelled;
  past.state_text = "CANCELLED by 0";
  cluster_.past_error =
      base::Error{.code = base::ErrorCode::kUnavailable, .what = "slurmdbd: connection refused"};
  cluster_.jobs.clear();
  wait_until([&] { return cluster_.past_listings >= 3; });
  wait_for_polls();
  EXPECT_EQ(cluster_.submitted.size(), 1U);
  EXPECT_EQ(last_news<AllocationRevoked>(gang_), nullptr);

  cluster_.past_error.reset();
  cluster_.past = {past};

  EXPECT_EQ(wait_for<AllocationRevoked>(gang_).why, Why::kCancelled);
  EXPECT_EQ(cluster_.submitted.size(), 1U);
}

TEST_F(SlurmEngineTest, AForgottenJobThatIsStoppedDoesNotWaitForTheAccountingDatabase) {
  auto its_node = gang_that_runs();
  cluster_.past_error =
      base::Error{.code = base::ErrorCode::kUnavailable, .what = "slurmdbd: connection refused"};
  cluster_.jobs.clear();
  its_node.reset();
  wait_until([&] { return cluster_.past_listings >= 3; });
  EXPECT_EQ(end_of("main"), nullptr);

  call([&] { engine_->stop(gang_, {"main"}, StopMode::kGraceful); });

  wait_until([&] { return end_of("main") != nullptr; });
  EXPECT_TRUE(end_of("main")->status.stopped);
}

TEST_F(SlurmEngineTest, AForgottenJobIsSubmittedAgainIfTheAccountingDatabaseStaysAway) {
  open([](SlurmEngineOptions& options) {
    options.accounting_within = std::chrono::milliseconds(0);
  });
  ask(gang_, request_for({"main"}));
  wait_until([&] { return record(gang_).job.id == 17; });
  cluster_.past_error =
      base::Error{.code = base::ErrorCode::kUnavailable, .what = "slurmdbd: connection refused"};

  cluster_.jobs.clear();

  wait_until([&] { return record(gang_).job.id == 18; });
}

/// A muster-node that sends nothing.
class IdleConnection : public node::NodeConnection {
 public:
  const GangId& gang() const override { return gang_; }
  const node::Hello& hello() const override { return hello_; }
  void listen(Handlers) override {}
  void send(const node::NodeMessage&) override {}
  size_t waiting() const override { return 0; }
  void pause(bool) override {}

 private:
  GangId gang_{"job1", 1};
  node::Hello hello_;
};

/// A started task whose muster-node has been disconnected for five minutes.
class SilentTask : public testing::Test {
 protected:
  SilentTask() {
    tasks_.lender = calls_.lender();
    GangRecord record;
    record.common.seats = {{.task = "main", .node = "n1", .address = {}, .started = true}};
    record.common.given = true;
    record.job.id = 17;
    gang_ = gangs_.add({"job1", 1}, record, Stage::kAllocated);
  }

  void list(JobState state) {
    ListedJob listed;
    listed.id = 17;
    listed.state = state;
    listed.nodes = {"n1"};
    jobs_.update(gang_, listed);
  }
  bool is_awaited() { return jobs_.task_is_silent(gang_, gang_->tasks.at("main")); }

  base::TestFolder folder_;
  base::TestLoop loop_;
  FakeSlurmClient::Cluster cluster_;
  SlurmEngineOptions options_{.folder = folder_.path()};
  FakeSlurmClient client_{loop_.loop(), cluster_};
  Callback callback_;
  lent::LentTasks tasks_{loop_.loop(), {.folder = folder_.path()}, table_options(folder_.path())};
  GangTable gangs_{tasks_.gangs};
  SlurmQueue queue_{loop_.loop(), options_, client_, tasks_.reports};
  ClusterNodes nodes_{loop_.loop(), options_, client_, tasks_.reports, queue_};
  Allocations allocations_{loop_.loop(),   options_, client_, callback_,    gangs_,
                           tasks_.reports, queue_,   nodes_,  tasks_.tasks, tasks_.starter};
  SlurmJobWatch jobs_{loop_.loop(),   options_, client_,      callback_,      gangs_,
                      tasks_.reports, queue_,   tasks_.tasks, tasks_.starter, allocations_};
  NodeCalls calls_{gangs_, queue_, allocations_, jobs_};
  GangPointer gang_;
};

TEST_F(SilentTask, IsLostWhileItsJobRuns) {
  list(JobState::kRunning);

  EXPECT_FALSE(is_awaited());

  EXPECT_TRUE(gang_->record.taken);
}

TEST_F(SilentTask, IsAwaitedWhileSlurmHasSuspendedItsJob) {
  list(JobState::kSuspended);
  EXPECT_TRUE(is_awaited());

  list(JobState::kRunning);

  EXPECT_TRUE(is_awaited()) << "its muster-node needs some time to connect again";
  EXPECT_FALSE(gang_->record.taken);
}

/// Gang scheduling suspends and resumes a job again and again.
TEST_F(SilentTask, IsLostAfterThreeSilencesThatSuspensionsExcuse) {
  const auto resumes = [this] {
    list(JobState::kSuspended);
    list(JobState::kRunning);
  };
  for (int silence = 0; silence < 3; ++silence) {
    resumes();
    EXPECT_TRUE(is_awaited()) << silence;
  }
  resumes();

  EXPECT_FALSE(is_awaited());

  EXPECT_TRUE(gang_->record.taken);
}

TEST_F(SilentTask, IsExcusedAnewAfterItsMusterNodeHasConnected) {
  const TaskPointer task = gang_->tasks.at("main");
  list(JobState::kSuspended);
  list(JobState::kRunning);
  for (int silence = 0; silence < 3; ++silence) EXPECT_TRUE(is_awaited()) << silence;

  task->line = std::make_shared<IdleConnection>();
  list(JobState::kRunning);
  task->line.reset();

  EXPECT_TRUE(is_awaited());
}

TEST_F(SilentTask, IsAwaitedHoweverLongSlurmSuspendsItsJob) {
  list(JobState::kSuspended);
  for (int silence = 0; silence < 5; ++silence) EXPECT_TRUE(is_awaited()) << silence;
  list(JobState::kRunning);

  EXPECT_TRUE(is_awaited());
}

TEST_F(SlurmEngineTest, AnUnknownJobOfThisServerIsCancelled) {
  cluster_.jobs[5] = {
      .id = 5, .comment = "muster:0123456789abcdef:gone:1", .state_text = "RUNNING"};
  cluster_.jobs[5].state = JobState::kRunning;
  cluster_.jobs[6] = cluster_.jobs[5];
  cluster_.jobs[6].id = 6;
  cluster_.jobs[6].comment = "muster:fedcba9876543210:gone:1";
  open();

  wait_until([&] { return cluster_.job(5).state == JobState::kCancelled; });

  EXPECT_EQ(cluster_.job(6).state, JobState::kRunning);
}

}  // namespace
}  // namespace muster::engine::slurm
