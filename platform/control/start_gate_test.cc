// Jobs that wait for other jobs, for a time, or for a singleton, in a server that may be killed.
#include <gtest/gtest.h>

#include <algorithm>

#include "control/test_parts.h"
#include "control/test_with_accounts.h"
#include "words/sentence.h"

namespace muster::control {
namespace {

using job::Phase;

class StartGateJobs : public Scheduling {
 protected:
  StartGateJobs() { add(project_of("lab", 2)); }

  static job::JobSpec spec_of(const std::string& name, std::vector<job::Dependency> after = {}) {
    job::JobSpec spec = single(name, "lab", 1);
    spec.after = std::move(after);
    return spec;
  }

  /// Returns the id.
  std::string submit_array(const std::string& name, const std::string& indexes,
                           std::vector<job::Dependency> after, bool is_held = false) {
    job::JobSpec spec = spec_of(name, std::move(after));
    spec.array.indexes = indexes;
    spec.held = is_held;
    const auto made = controller_->submit_array(spec, "", {.user = "ada"});
    EXPECT_TRUE(made) << made.error().to_string();
    settle();
    return made ? made->id : "";
  }

  void restart() {
    live_again();
    ASSERT_TRUE(controller_->recover());
    settle();
  }

  std::string constraint(const std::string& name) { return controller_->explain(name)->constraint; }
  std::string reason(const std::string& name) { return words::sentence(job(name).reason); }
};

TEST_F(StartGateJobs, AJobStartsWhenTheOtherHasSucceeded) {
  submit(spec_of("prep"));
  submit(spec_of("train", {{.job = "prep"}}));
  EXPECT_EQ(job("train").phase, Phase::kQueued);
  EXPECT_EQ(reason("train"), "starts when 'prep' has succeeded");
  EXPECT_EQ(constraint("train"), "dependency");

  end("prep");

  EXPECT_EQ(job("train").phase, Phase::kRunning);
  EXPECT_TRUE(job("train").awaited[0].is_met);
}

TEST_F(StartGateJobs, AFailureFailsEveryJobOfTheChainAndStartsTheJobThatCleansUp) {
  submit(spec_of("a"));
  submit(spec_of("b", {{.job = "a"}}));
  submit(spec_of("c", {{.job = "b"}}));
  submit(spec_of("clean", {{.job = "c", .condition = job::Dependency::Condition::kFailed}}));

  end("a", {.code = 3});

  EXPECT_EQ(job("b").phase, Phase::kFailed);
  EXPECT_EQ(job("b").exit_code, 1);
  EXPECT_EQ(reason("b"), "did not start: 'a' had to succeed, but failed");
  EXPECT_EQ(reason("c"), "did not start: 'b' had to succeed, but failed");
  EXPECT_EQ(job("clean").phase, Phase::kRunning);
}

TEST_F(StartGateJobs, ADependencyOnAJobThatHasFailedAlreadyEndsTheNewJobAtOnce) {
  submit(spec_of("a"));
  end("a", {.code = 1});

  const auto forecast = controller_->forecast(spec_of("b", {{.job = "a"}}));
  ASSERT_TRUE(forecast);
  EXPECT_FALSE(forecast->starts_now);
  EXPECT_EQ(words::sentence(forecast->reason), "did not start: 'a' had to succeed, but failed");
  submit(spec_of("b", {{.job = "a"}}));
  EXPECT_EQ(job("b").phase, Phase::kFailed);
}

TEST_F(StartGateJobs, AJobThatWaitsForAnotherHoldsNoResources) {
  submit(spec_of("prep"));
  job::JobSpec wide = single("wide", "lab", 2);
  wide.after = {{.job = "prep"}};
  submit(wide);
  submit(spec_of("small"));
  EXPECT_EQ(job("small").phase, Phase::kRunning);
}

TEST_F(StartGateJobs, TheOtherJobMayBeDeletedOnceItHasEnded) {
  submit(spec_of("a"));
  submit(spec_of("b"));
  submit(spec_of("c", {{.job = "a"}, {.job = "b"}}));
  end("a");
  ASSERT_TRUE(controller_->remove("a"));
  restart();

  end("b");

  EXPECT_EQ(job("c").phase, Phase::kRunning);
}

TEST_F(StartGateJobs, AnUnknownJobIsRefusedWithTheNearestNameOfTheProject) {
  add(project_of("other", 0));
  submit(spec_of("prep"));
  submit(single("secret-plan", "other", 0));

  const auto typo = controller_->submit(spec_of("train", {{.job = "prpe"}}), "");
  ASSERT_FALSE(typo);
  EXPECT_EQ(typo.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(typo.error().faults.at(0).field, "after[0].job");
  EXPECT_EQ(typo.error().faults.at(0).what,
            "project 'lab' has no job 'prpe'; did you mean 'prep'?");

  for (const std::string& name : {std::string("secret-plan"), job("secret-plan").id}) {
    const auto foreign = controller_->submit(spec_of("train", {{.job = name}}), "");
    ASSERT_FALSE(foreign);
    EXPECT_EQ(foreign.error().faults.at(0).what, "project 'lab' has no job '" + name + "'");
  }
}

TEST_F(StartGateJobs, AJobWaitsForItsTime) {
  job::JobSpec spec = spec_of("later");
  spec.scheduling.begin = clock_.now() + std::chrono::hours(2);
  submit(spec);
  EXPECT_EQ(job("later").phase, Phase::kQueued);
  EXPECT_EQ(constraint("later"), "begin");
  EXPECT_EQ(job("later").may_start, spec.scheduling.begin);
  restart();
  EXPECT_EQ(job("later").phase, Phase::kQueued);

  clock_.advance(std::chrono::hours(2));
  submit(spec_of("other"));  // a change of any job plans again

  EXPECT_EQ(job("later").phase, Phase::kRunning);
}

TEST_F(StartGateJobs, JobsWithOneSingletonRunInTheOrderOfTheirSubmission) {
  for (const char* name : {"first", "second", "third"}) {
    job::JobSpec spec = spec_of(name);
    spec.scheduling.singleton = "nightly";
    submit(spec);
  }
  job::JobSpec other = spec_of("other");
  other.scheduling.singleton = "weekly";
  submit(other);
  EXPECT_EQ(job("first").phase, Phase::kRunning);
  EXPECT_EQ(constraint("second"), "singleton");
  EXPECT_EQ(job("other").phase, Phase::kRunning);
  restart();
  EXPECT_EQ(job("second").phase, Phase::kQueued);

  end("first", {.code = 1});
  EXPECT_EQ(job("second").phase, Phase::kRunning);
  EXPECT_EQ(job("third").phase, Phase::kQueued);
  EXPECT_EQ(reason("third"), "starts when 'second' has ended; both have singleton 'nightly'");
}

TEST_F(StartGateJobs, TheEndOfAJobStoresNoneOfTheOthersThatStillWaitForTheSingleton) {
  for (int i = 0; i < 40; ++i) {
    job::JobSpec spec = spec_of("j" + std::to_string(i));
    spec.scheduling.singleton = "nightly";
    submit(spec);
  }
  const int before = store_.written;

  end("j0");

  EXPECT_EQ(job("j1").phase, Phase::kRunning);
  EXPECT_EQ(reason("j39"), "starts when 'j1' has ended; both have singleton 'nightly'");
  EXPECT_LT(store_.written - before, 20);
}

TEST_F(StartGateJobs, ASuspendedJobKeepsItsPlaceAndWaitsAgainWhenItIsResumed) {
  submit(spec_of("prep"));
  submit(spec_of("train", {{.job = "prep"}}));
  ASSERT_TRUE(controller_->suspend("train"));
  settle();
  ASSERT_TRUE(controller_->resume("train"));
  settle();
  EXPECT_EQ(reason("train"), "starts when 'prep' has succeeded");
  ASSERT_TRUE(controller_->suspend("train"));
  end("prep");
  EXPECT_EQ(job("train").phase, Phase::kQueued);
  ASSERT_TRUE(controller_->resume("train"));
  settle();
  EXPECT_EQ(job("train").phase, Phase::kRunning);
}

TEST_F(StartGateJobs, AStoppedJobThatWaitsEndsAtOnceAndItsDependentsWithIt) {
  submit(spec_of("prep"));
  submit(spec_of("train", {{.job = "prep"}}));
  submit(spec_of("test", {{.job = "train"}}));
  ASSERT_TRUE(controller_->stop("train", false));
  settle();
  EXPECT_EQ(job("train").phase, Phase::kStopped);
  EXPECT_EQ(reason("test"), "did not start: 'train' had to succeed, but was stopped");
}

TEST_F(StartGateJobs, AServerKilledBeforeOrAfterAnyCommitEndsTheChainInTheSameWay) {
  // The ends of the first job and of its dependents are committed one after the other.
  int crashes = 0;
  for (int death = 1; death <= 8; ++death) {
    for (const bool before : {true, false}) {
      SCOPED_TRACE(std::to_string(death) + (before ? " before" : " after"));
      const std::string suffix = "-" + std::to_string(death) + (before ? "b" : "a");
      submit(spec_of("a" + suffix));
      submit(spec_of("b" + suffix, {{.job = "a" + suffix}}));
      submit(spec_of("c" + suffix, {{.job = "b" + suffix}}));
      submit(spec_of("d" + suffix,
                     {{.job = "a" + suffix, .condition = job::Dependency::Condition::kFailed}}));
      const engine::GangId first = gang("a" + suffix);
      (before ? store_.dies_before : store_.dies_after) = store_.commits + death;
      try {
        engine_.end_for_good(first, "main", {.code = 1});
        settle();
      } catch (const Crash&) {
        ++crashes;
      }
      store_.dies_before = store_.dies_after = 0;
      restart();
      EXPECT_EQ(job("a" + suffix).phase, Phase::kFailed);
      EXPECT_EQ(job("b" + suffix).phase, Phase::kFailed);
      EXPECT_EQ(job("c" + suffix).phase, Phase::kFailed);
      EXPECT_EQ(job("d" + suffix).phase, Phase::kRunning);
      end("d" + suffix);
    }
  }
  EXPECT_GT(crashes, 0);
}

TEST_F(StartGateJobs, AHeldJobStartsAfterTheJobThatHadSucceededWasDeleted) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts ? "after a restart" : "without a restart");
    const std::string prep = restarts ? "prep-too" : "prep";
    const std::string train = restarts ? "train-too" : "train";
    submit(spec_of(prep));
    end(prep);
    job::JobSpec held = spec_of(train, {{.job = prep}});
    held.held = true;
    submit(held);
    if (restarts) restart();
    ASSERT_TRUE(controller_->remove(prep));
    ASSERT_TRUE(controller_->resume(train));
    settle();
    EXPECT_EQ(job(train).phase, Phase::kRunning);
    end(train);
  }
}

TEST_F(StartGateJobs, ASuspendedJobStartsAfterTheArrayThatHasSucceededWasDeleted) {
  for (const bool restarts : {false, true}) {
    SCOPED_TRACE(restarts ? "after a restart" : "without a restart");
    const std::string prep = restarts ? "prep-too" : "prep";
    const std::string train = restarts ? "train-too" : "train";
    const std::string id = submit_array(prep, "0-1", {});
    submit(spec_of(train, {{.job = prep}}));
    ASSERT_TRUE(controller_->suspend(train));
    end(prep + "-0", {.code = 1});
    end(prep + "-1");
    ASSERT_TRUE(controller_->arrays().rerun_failed(id, {}, {.user = "ada"}));
    settle();
    end(prep + "-0");
    if (restarts) restart();
    ASSERT_TRUE(controller_->arrays().remove(id, {.user = "ada"}));
    ASSERT_TRUE(controller_->resume(train));
    settle();
    EXPECT_EQ(job(train).phase, Phase::kRunning);
    end(train);
  }
}

TEST_F(StartGateJobs, AHeldArrayRunsAfterADeletedSuccessAndDoesNotAfterADeletedFailure) {
  int number = 0;
  for (const bool succeeds : {false, true}) {
    for (const bool restarts : {false, true}) {
      ++number;
      SCOPED_TRACE(number);
      const std::string prep = "prep" + std::to_string(number);
      const std::string train = "train" + std::to_string(number);
      submit(spec_of(prep));
      const std::string id = submit_array(train, "0-1", {{.job = prep}}, true);
      end(prep, {.code = succeeds ? 0 : 1});
      if (restarts) restart();
      ASSERT_TRUE(controller_->remove(prep));
      ASSERT_TRUE(controller_->arrays().resume(id, {.user = "ada"}));
      settle();
      for (const std::string member : {"-0", "-1"}) {
        EXPECT_EQ(job(train + member).phase, succeeds ? Phase::kRunning : Phase::kFailed);
        if (succeeds) end(train + member);
      }
    }
  }
}

TEST_F(StartGateJobs, AHeldArrayRunsAfterTheArrayThatHasSucceededWasDeleted) {
  const std::string prep = submit_array("prep", "0-1", {});
  const std::string train = submit_array("train", "0-1", {{.job = "prep"}}, true);
  end("prep-0");
  end("prep-1");
  ASSERT_TRUE(controller_->arrays().remove(prep, {.user = "ada"}));
  restart();
  ASSERT_TRUE(controller_->arrays().resume(train, {.user = "ada"}));
  settle();
  EXPECT_EQ(job("train-0").phase, Phase::kRunning);
}

// Its former job, which had the result of the other one, is removed.
TEST_F(StartGateJobs, TheOnlyMemberOfAnArrayRunsAgainIfTheDeletedJobHadSucceeded) {
  for (const bool succeeds : {false, true}) {
    SCOPED_TRACE(succeeds ? "success" : "failure");
    const std::string prep = succeeds ? "prep-too" : "prep";
    const std::string train = succeeds ? "train-too" : "train";
    submit(spec_of(prep));
    const std::string id = submit_array(train, "0", {{.job = prep}});
    end(prep, {.code = succeeds ? 0 : 1});
    if (succeeds) end(train + "-0", {.code = 3});
    ASSERT_EQ(job(train + "-0").phase, Phase::kFailed);
    ASSERT_TRUE(controller_->remove(prep));

    ASSERT_TRUE(controller_->arrays().rerun_failed(id, {}, {.user = "ada"}));
    settle();

    EXPECT_EQ(job(train + "-0").phase, succeeds ? Phase::kRunning : Phase::kFailed);
    if (succeeds) end(train + "-0");
  }
}

class UnisolatedJobs : public WithAccounts {
 protected:
  void restart(bool isolates_users) {
    be_killed();
    make_with(box_, {.user = "ada", .isolates_users = isolates_users});
    ASSERT_TRUE(controller_->recover());
    settle();
  }

  void submit_as(const std::string& user, const std::string& name, int gpus) {
    ASSERT_TRUE(controller_->submit(single(name, "default", gpus), "", {.user = user}));
    settle();
  }
};

TEST_F(UnisolatedJobs, StartOnlyWhereTheServerIsolatesThem) {
  ASSERT_TRUE(accounts_->create_user({.name = "ben"}, {.user = "ada"}));
  submit_as("ada", "first", 2);
  submit_as("ben", "bens", 1);
  submit_as("ada", "adas", 1);

  restart(false);
  end("first");

  EXPECT_EQ(job("adas").phase, Phase::kRunning);
  EXPECT_EQ(job("bens").phase, Phase::kQueued);
  EXPECT_EQ(
      words::sentence(job("bens").reason),
      "starts when the server listens for users again; this server would not isolate a job of "
      "user 'ben'");
  EXPECT_EQ(controller_->explain("bens")->constraint, "isolation");

  restart(true);
  EXPECT_EQ(job("bens").phase, Phase::kRunning);
}

// Its attempt was started in isolation; the next one would not be.
TEST_F(UnisolatedJobs, AreNotStartedAgainEither) {
  ASSERT_TRUE(accounts_->create_user({.name = "ben"}, {.user = "ada"}));
  job::JobSpec spec = single("bens", "default", 2);
  spec.scheduling.retries = 3;
  ASSERT_TRUE(controller_->submit(spec, "", {.user = "ben"}));
  settle();
  ASSERT_EQ(job("bens").phase, Phase::kRunning);

  restart(false);
  EXPECT_EQ(job("bens").phase, Phase::kRunning) << "it goes on";
  end("bens", {.code = 1});
  submit_as("ada", "adas", 2);

  EXPECT_EQ(job("bens").phase, Phase::kQueued);
  EXPECT_EQ(controller_->explain("bens")->constraint, "isolation");
  EXPECT_EQ(job("adas").phase, Phase::kRunning) << "the places are free";
}

TEST_F(UnisolatedJobs, GetNoMoreWorkersEither) {
  ASSERT_TRUE(accounts_->create_user({.name = "ben"}, {.user = "ada"}));
  submit_as("ada", "first", 1);
  job::JobSpec spec = mpi("bens", "default", 2);
  spec.scheduling.min_workers = 1;
  spec.scheduling.resize = job::Resize::kLive;
  spec.resources.gpus = 1;
  ASSERT_TRUE(controller_->submit(spec, "", {.user = "ben"}));
  settle();
  const auto running = [this] {
    return std::count_if(engine_.running.begin(), engine_.running.end(),
                         [this](const auto& each) { return each.first == gang("bens"); });
  };
  const auto before = running();
  ASSERT_EQ(job("bens").phase, Phase::kRunning);

  restart(false);
  end("first");

  EXPECT_EQ(running(), before);
  EXPECT_TRUE(noted("bens", "no more workers can join: this server would not isolate them"));
  EXPECT_EQ(job("bens").phase, Phase::kRunning) << "it goes on";
}

TEST_F(UnisolatedJobs, OfAUserWhoWasRemovedAreNotStartedEither) {
  ASSERT_TRUE(accounts_->create_user({.name = "ben"}, {.user = "ada"}));
  submit_as("ada", "first", 2);
  submit_as("ben", "bens", 1);
  ASSERT_TRUE(accounts_->remove_user("ben", {.user = "ada"}));
  settle();

  restart(false);
  end("first");

  EXPECT_EQ(job("bens").phase, Phase::kQueued);
  EXPECT_EQ(controller_->explain("bens")->constraint, "isolation");
}

}  // namespace
}  // namespace muster::control
