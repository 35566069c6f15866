// Jobs whose workers join and leave while they run, and the notices to their members.
#include "control/test_resizing.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::JobSpec;
using job::Phase;
using job::TaskPhase;

// --- growing

TEST_F(ResizingGang, AJobGrowsIntoReleasedResourcesWithoutARestart) {
  submit(single("other", "default", 2));
  submit(live("dist", "default", 1, 4));
  ASSERT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1"}));
  EXPECT_EQ(job("dist").reason, "runs with 2 of 4 workers");

  end("other");

  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1", "worker-2", "worker-3"}));
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(job("dist").restarts, 0);
  EXPECT_EQ(job("dist").reason, "runs with 4 of 4 workers");
  EXPECT_TRUE(noted("dist", "worker-2 joins on n1: 3 of 4 workers") ||
              noted("dist", "worker-2 joins on n2: 3 of 4 workers"))
      << text_of(job("dist"));
  EXPECT_TRUE(noted("dist", "has joined: the job continues with 4 of 4 workers"));
}

TEST_F(ResizingGang, AJobThatStartsWithSomeOfItsWorkersHasNotWaited) {
  submit(live("dist", "default", 1, 6));

  ASSERT_EQ(workers_of("dist").size(), 4U);
  EXPECT_FALSE(noted("dist", "needs")) << text_of(job("dist"));
  EXPECT_TRUE(noted("dist", ", attempt 1, with 4 of 6 workers")) << text_of(job("dist"));
}

TEST_F(ResizingGang,
       ThoseWhoAreThereLearnOfANewcomerBeforeItStartsAndThatItTakesPartOnceItAnswers) {
  submit(single("first", "default", 2));
  submit(single("second", "default", 1));
  submit(live("dist", "default", 1, 2));
  ASSERT_EQ(workers_of("dist"), (Names{"worker-0"}));
  engine_.calls.clear();
  engine_.file_changes.clear();

  engine_.end_for_good(gang("second"), "main", {});
  turn();

  EXPECT_LT(call("dist", "change", "launcher"), call("dist", "start", "worker-1"));
  EXPECT_TRUE(called("dist", "start", "worker-1"));
  EXPECT_EQ(sent_hosts("dist"), "") << "it does not answer yet";
  EXPECT_EQ(job("dist").reason, "runs with 1 of 2 workers");
  settle();
  EXPECT_EQ(sent_hosts("dist"), "dist-worker-0 slots=1\ndist-worker-1 slots=1\n");
  EXPECT_EQ(job("dist").reason, "runs with 2 of 2 workers");
}

TEST_F(ResizingGang, ResourcesThatBecomeFreeDuringTheStartAreUsedOnceTheJobRuns) {
  submit(single("other", "default", 2));
  ASSERT_TRUE(controller_->submit(live("dist", "default", 1, 4), ""));
  turn();
  ASSERT_EQ(job("dist").phase, Phase::kStarting);

  engine_.end_for_good(gang("other"), "main", {});
  turn();
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1"}));
  settle();

  EXPECT_EQ(workers_of("dist").size(), 4U);
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(ResizingGang, ANewcomerThatCannotBeStartedIsNoFailureOfTheJobAndAnotherComes) {
  submit(single("other", "default", 2));
  submit(live("dist", "default", 1, 3));
  engine_.start_errors["worker-2"] = {.code = base::ErrorCode::kUnavailable,
                                      .what = "the machine is full"};

  end("other");

  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_TRUE(noted("dist",
                    "worker-2 could not join: the machine is full; the job continues with "
                    "2 of 3 workers"))
      << text_of(job("dist"));
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1", "worker-3"}));
  EXPECT_EQ(task("dist", "worker-3").seat, task("dist", "worker-2").seat);
}

TEST_F(ResizingGang, AWorkerIsNotStartedIfItsGangCouldNotBeNotified) {
  submit(single("other", "default", 2));
  submit(live("dist", "default", 1, 3));
  engine_.change_error = {.code = base::ErrorCode::kUnavailable, .what = "no answer"};

  end("other");

  EXPECT_TRUE(noted("dist",
                    "worker-2 could not join: the other tasks could not be updated: no "
                    "answer"));
  EXPECT_LT(call("dist", "stop", "worker-2 now"), call("dist", "start", "worker-2"))
      << "the engine may have prepared it on another node";
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1", "worker-2"})) << "at the next try";
}

TEST_F(ResizingGang, ANewWorkerThatDoesNotAnswerInTimeIsStoppedAndItsResourcesAreReleased) {
  submit(single("other", "default", 2));
  JobSpec spec = live("dist", "default", 1, 3);
  spec.start_timeout = std::chrono::milliseconds(1);
  pace_.rest = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  submit(spec);

  engine_.end_for_good(gang("other"), "main", {});
  while (!noted("dist", "worker-2 could not join: it did not answer within 1ms")) turn();
  turn();

  EXPECT_TRUE(called("dist", "stop", "worker-2 now"));
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(task("dist", "worker-2").phase, TaskPhase::kEnded);
  EXPECT_TRUE(task("dist", "worker-2").left);
}

TEST_F(ResizingGang, NoWorkerJoinsForAWhileAfterANewWorkerHasFailed) {
  pace_.rest = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  submit(single("other", "default", 2));
  submit(live("dist", "default", 1, 4));
  engine_.start_errors["worker-2"] = {.code = base::ErrorCode::kUnavailable, .what = "no"};

  end("other");

  EXPECT_EQ(workers_of("dist").count("worker-4"), 0U);
  EXPECT_FALSE(called("dist", "start", "worker-4"));
}

TEST_F(ResizingGang, ResourcesReservedForAPausedJobGoToAJobWithinItsQuota) {
  pace_.rest = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  add(project_of("team-a", 4));
  add(project_of("team-b", 0));
  submit(live("dist", "team-b", 2, 4));
  lose("dist", "worker-3", kKilled);
  ASSERT_EQ(workers_of("dist").size(), 3U);

  submit(single("owner", "team-a", 1));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(workers_of("dist").size(), 3U);
  EXPECT_EQ(job("dist").attempt, 1);
}

TEST_F(ResizingGang, ANewWorkerWhoseImageCannotBePulledIsNotStarted) {
  engine_.images = true;
  pace_.rest = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  set_machines({machine("n1", 2)});
  JobSpec spec = live("dist", "default", 1, 3);
  spec.image = "image";
  submit(spec);
  bring_images();
  ASSERT_EQ(workers_of("dist").size(), 2U);
  set_machines({machine("n1", 2), machine("n2", 1)});

  engine_.prepared(base::Error{.code = base::ErrorCode::kNotFound, .what = "no such image"});
  settle();

  EXPECT_TRUE(noted("dist",
                    "worker-2 could not join: no such image; the job continues with 2 of 3 "
                    "workers"))
      << text_of(job("dist"));
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_FALSE(called("dist", "start", "worker-2"));
  EXPECT_EQ(task("dist", "worker-2").node, "");
}

TEST_F(ResizingGang, ANodeThatIsLostWhileItPullsANewWorkersImageDoesNotAffectTheJob) {
  engine_.images = true;
  set_machines({machine("n1", 2)});
  JobSpec spec = live("dist", "default", 1, 3);
  spec.image = "image";
  submit(spec);
  bring_images();
  set_machines({machine("n1", 2), machine("n2", 1)});
  ASSERT_EQ(task("dist", "worker-2").node, "n2");

  set_machines({machine("n1", 2)});

  EXPECT_TRUE(noted("dist", "worker-2 could not join: it was lost: node n2 has gone"));
  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1"}));
  EXPECT_TRUE(engine_.preparing.expired());
}

// --- shrinking

class Reclaimed : public ResizingGang {
 protected:
  Reclaimed() {
    add(project_of("team-a", 4));
    add(project_of("team-b", 0));
  }
};

TEST_F(Reclaimed, AnotherProjectReclaimsTheWorkersAboveTheMinimumAndTheGangContinues) {
  submit(live("dist", "team-b", 2, 4));
  ASSERT_EQ(workers_of("dist").size(), 4U);

  submit(single("owner", "team-a", 1));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(workers_of("dist").size(), 3U);
  EXPECT_EQ(job("dist").reason, "runs with 3 of 4 workers");
  EXPECT_TRUE(noted("dist", "leaves: it was evicted for 'owner' of project team-a"))
      << text_of(job("dist"));
  EXPECT_TRUE(noted("dist", "; the job continues with 3 of 4 workers"));
}

TEST_F(Reclaimed, RemainingMembersAreNotifiedBeforeAWorkerIsStopped) {
  submit(live("dist", "team-b", 2, 4));
  engine_.calls.clear();

  submit(single("owner", "team-a", 1));

  ASSERT_TRUE(called("dist", "stop", "worker-3 gracefully"));
  EXPECT_LT(call("dist", "change", "launcher"), call("dist", "stop", "worker-3"));
  EXPECT_EQ(sent_hosts("dist"),
            "dist-worker-0 slots=1\ndist-worker-1 slots=1\ndist-worker-2 slots=1\n");
  EXPECT_FALSE(called("dist", "change", "worker-3"))
      << "a leaving task needs no change of its files";
  EXPECT_FALSE(called("dist", "stop", "launcher"));
}

TEST_F(Reclaimed, AWorkerIsStoppedSomeTimeAfterTheOthersWereNotified) {
  pace_.notice = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  submit(live("dist", "team-b", 2, 4));

  submit(single("owner", "team-a", 1));

  EXPECT_EQ(workers_of("dist").size(), 3U);
  EXPECT_TRUE(called("dist", "change", "launcher"));
  EXPECT_FALSE(called("dist", "stop", "worker-3"));
  EXPECT_EQ(job("owner").phase, Phase::kQueued) << "its room is not free yet";
}

TEST_F(Reclaimed, KindsWithoutNotificationsStopWorkersAtOnce) {
  pace_.notice = std::chrono::hours(1);
  controller_->set_resize_pace(pace_);
  JobSpec spec = live("ddp", "team-b", 1, 4);
  spec.kind = job::Kind::kTorch;
  submit(spec);
  ASSERT_EQ(workers_of("ddp").size(), 4U);

  submit(single("owner", "team-a", 1));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(workers_of("ddp").size(), 3U);
}

TEST_F(Reclaimed, AReplacementHasTheSeatOfTheOldWorkerAndANewName) {
  submit(live("dist", "team-b", 2, 4));
  submit(single("owner", "team-a", 1));
  ASSERT_TRUE(task("dist", "worker-3").left);

  end("owner");

  EXPECT_EQ(workers_of("dist"), (Names{"worker-0", "worker-1", "worker-2", "worker-4"}));
  EXPECT_EQ(task("dist", "worker-4").seat, task("dist", "worker-3").seat);
  EXPECT_EQ(sent_hosts("dist"),
            "dist-worker-0 slots=1\ndist-worker-1 slots=1\ndist-worker-2 slots=1\n"
            "dist-worker-4 slots=1\n");
}

TEST_F(Reclaimed, BelowItsMinimumTheWholeAttemptEnds) {
  submit(live("dist", "team-b", 3, 4));

  submit(single("owner", "team-a", 2));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").phase, Phase::kQueued);
  EXPECT_EQ(job("dist").restarts, 1);
  EXPECT_TRUE(job("dist").sealed_seed.empty());
  end("owner");
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(workers_of("dist").size(), 4U);
}

TEST_F(Reclaimed, SeveralLeaveTogether) {
  submit(live("dist", "team-b", 1, 4));

  submit(single("owner", "team-a", 2));

  EXPECT_EQ(job("owner").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(workers_of("dist").size(), 2U);
  EXPECT_TRUE(noted("dist", "leave: each was evicted for 'owner'")) << text_of(job("dist"));
}

TEST_F(Reclaimed, ANewcomerIsSentAwayBeforeAnybodyHasStartedIt) {
  engine_.images = true;
  JobSpec spec = live("dist", "team-b", 2, 4);
  spec.image = "image";
  set_machines({machine("n1", 2), machine("n2", 1)});
  submit(spec);
  bring_images();
  ASSERT_EQ(workers_of("dist").size(), 3U);
  set_machines({machine("n1", 2), machine("n2", 2)});
  ASSERT_TRUE(noted("dist", "worker-3 joins on n2"));

  JobSpec owner = single("owner", "team-a", 1);
  owner.image = "image";
  submit(owner);

  EXPECT_EQ(workers_of("dist").size(), 3U);
  EXPECT_FALSE(called("dist", "start", "worker-3"));
  EXPECT_TRUE(called("dist", "stop", "worker-3 now")) << "the engine may have prepared it";
  EXPECT_EQ(task("dist", "worker-3").node, "");
  EXPECT_EQ(job("owner").phase, Phase::kStarting) << "its image comes now";
}

TEST_F(ResizingGang, AMovedWorkerLeavesAndAnotherStartsElsewhere) {
  JobSpec spec = live("dist", "default", 1, 2);
  spec.scheduling.packing = job::Packing::kSpread;
  submit(spec);
  ASSERT_NE(task("dist", "worker-0").node, task("dist", "worker-1").node);

  submit(single("wide", "default", 2));

  EXPECT_EQ(job("wide").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(workers_of("dist").size(), 2U);
  EXPECT_TRUE(noted("dist", "leaves: it is moved so that 'wide'")) << text_of(job("dist"));
  EXPECT_TRUE(noted("dist", "worker-2 joins on"));
}

TEST_F(ResizingGang, ADrainedNodeIsLeftByTheWorkersThereAlone) {
  submit(live("dist", "default", 1, 4));
  const std::string launchers = job("dist").tasks.front().node;
  const std::string other = launchers == "n1" ? "n2" : "n1";

  ASSERT_TRUE(controller_->nodes().drain(other));
  settle();

  EXPECT_TRUE(engine_.tasks_on(other).empty());
  EXPECT_EQ(job("dist").phase, Phase::kRunning);
  EXPECT_EQ(job("dist").attempt, 1);
  EXPECT_EQ(workers_of("dist").size(), 2U);
  EXPECT_TRUE(noted("dist", "leave: each was evicted: node " + other + " is being drained"));
  ASSERT_TRUE(controller_->nodes().uncordon(other));
  settle();
  EXPECT_EQ(workers_of("dist").size(), 4U);
}

TEST_F(ResizingGang, ADrainedNodeWithTheLeaderEndsTheAttempt) {
  submit(live("dist", "default", 1, 4));

  ASSERT_TRUE(controller_->nodes().drain(job("dist").tasks.front().node));
  settle();

  EXPECT_EQ(job("dist").attempt, 2);
  EXPECT_EQ(workers_of("dist").size(), 2U);
}

}  // namespace
}  // namespace muster::control
