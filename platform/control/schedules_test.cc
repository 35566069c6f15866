// Schedules: the decisions about runs, and the jobs of a server that may be killed between any two
// commits.
#include "control/schedules.h"

#include <gtest/gtest.h>

#include <ctime>

#include "control/audit_changes.h"
#include "control/test_parts.h"

namespace muster::control {
namespace {

using job::Phase;
using job::ScheduledRun;
using job::ScheduleSpec;
using RunOutcome = ScheduledRun::Outcome;

/// "2026-01-02T03:00:00Z"
base::Time moment(const char* text) {
  std::tm utc{};
  strptime(text, "%Y-%m-%dT%H:%M:%SZ", &utc);
  return base::Time(std::chrono::seconds(timegm(&utc)));
}

ScheduleSpec schedule_of(const std::string& name, const std::string& cron = "0 * * * *") {
  return {.name = name, .project = "lab", .cron = cron, .job = single("run", "lab", 1)};
}

TEST(DecideRun, FollowsThePoliciesOfTheSchedule) {
  using What = DueRun::What;
  using Overlap = ScheduleSpec::Overlap;
  using CatchUp = ScheduleSpec::CatchUp;
  const auto cron = cron::parse_cron("0 3 * * *");
  const auto zone = cron::load_zone("UTC");
  const struct {
    const char* now;
    bool has_unfinished;
    Overlap overlap;
    CatchUp catch_up;
    What what;
    const char* time;
  } table[] = {
      {"2026-01-02T02:59:59Z", false, Overlap::kForbid, CatchUp::kOne, What::kNothing, ""},
      {"2026-01-02T03:00:00Z", false, Overlap::kForbid, CatchUp::kOne, What::kRun,
       "2026-01-02T03:00:00Z"},
      {"2026-01-02T03:01:00Z", false, Overlap::kForbid, CatchUp::kNone, What::kRun,
       "2026-01-02T03:00:00Z"},
      {"2026-01-02T03:01:01Z", false, Overlap::kForbid, CatchUp::kNone, What::kMissed,
       "2026-01-02T03:00:00Z"},
      {"2026-01-02T03:01:01Z", false, Overlap::kForbid, CatchUp::kOne, What::kRun,
       "2026-01-02T03:00:00Z"},
      {"2026-01-09T12:00:00Z", false, Overlap::kForbid, CatchUp::kOne, What::kRun,
       "2026-01-09T03:00:00Z"},
      {"2026-01-02T03:00:00Z", true, Overlap::kForbid, CatchUp::kOne, What::kSkip,
       "2026-01-02T03:00:00Z"},
      {"2026-01-02T03:00:00Z", true, Overlap::kAllow, CatchUp::kOne, What::kRun,
       "2026-01-02T03:00:00Z"},
      {"2026-01-02T03:00:00Z", true, Overlap::kReplace, CatchUp::kOne, What::kReplace,
       "2026-01-02T03:00:00Z"},
      {"2026-01-02T09:00:00Z", true, Overlap::kReplace, CatchUp::kNone, What::kMissed,
       "2026-01-02T03:00:00Z"},
  };
  for (const auto& row : table) {
    ScheduleSpec spec;
    spec.overlap = row.overlap;
    spec.catch_up = row.catch_up;
    const DueRun due = decide_run(*cron, *zone, spec, moment("2026-01-01T03:00:00Z"),
                                  moment(row.now), row.has_unfinished);
    EXPECT_EQ(due.what, row.what) << row.now;
    if (row.what == What::kNothing) continue;
    EXPECT_EQ(due.time, moment(row.time)) << row.now;
  }
}

TEST(DecideRun, LeavesOutARunThatIsTooLateToCatchUp) {
  const auto cron = cron::parse_cron("0 3 * * *");
  const auto zone = cron::load_zone("UTC");
  ScheduleSpec spec;
  spec.catch_up_within = std::chrono::hours(2);
  const auto decided = [&](const char* now) {
    return decide_run(*cron, *zone, spec, moment("2026-01-01T03:00:00Z"), moment(now), false).what;
  };
  EXPECT_EQ(decided("2026-01-02T05:00:00Z"), DueRun::What::kRun);
  EXPECT_EQ(decided("2026-01-02T05:00:01Z"), DueRun::What::kMissed);
  spec.catch_up_within = std::chrono::seconds(1);
  EXPECT_EQ(decided("2026-01-02T03:01:00Z"), DueRun::What::kRun) << "it is on time";
  EXPECT_EQ(decided("2026-01-02T03:01:01Z"), DueRun::What::kMissed);
}

TEST(RunName, IsTheLocalTimeOfTheRun) {
  const auto zone = cron::load_zone("Europe/Zurich");
  EXPECT_EQ(run_name("n", *zone, moment("2026-11-29T02:00:00Z"), false), "n-20261129-0300");
  EXPECT_EQ(run_name("n", *zone, moment("2026-11-29T02:00:07Z"), true), "n-20261129-030007");
  // The clocks go back at 3:00.
  EXPECT_EQ(run_name("n", *zone, moment("2026-10-25T00:30:00Z"), false), "n-20261025-0230");
  EXPECT_EQ(run_name("n", *zone, moment("2026-10-25T01:30:00Z"), false), "n-20261025-0230-2");
}

/// The clock begins at 22:13:20 on 14 November 2023.
class ScheduledJobs : public Scheduling {
 protected:
  ScheduledJobs() { add(project_of("lab", 2)); }

  job::Schedule create(const ScheduleSpec& spec) {
    const auto created = controller_->schedules().create(spec, {.user = "ada"});
    EXPECT_TRUE(created) << created.error().to_string();
    settle();
    return created ? *created : job::Schedule{};
  }
  job::Schedule schedule(const std::string& name) {
    return controller_->schedules().named(name).at(0);
  }

  /// Advances the clock and lets the server act.
  void pass(std::chrono::nanoseconds time) {
    clock_.advance(time);
    submit(single("tick-" + std::to_string(++ticks_), "lab", 0));
  }
  void restart() {
    live_again();
    ASSERT_TRUE(controller_->recover());
    settle();
  }
  bool has_job(const std::string& name) {
    return static_cast<bool>(controller_->jobs().find(name));
  }

  int ticks_ = 0;
};

TEST_F(ScheduledJobs, EachRunIsAJobOfItsOwnerWithTheTimeInItsName) {
  const job::Schedule created = create(schedule_of("hourly"));
  ASSERT_EQ(created.upcoming.size(), 5U);
  EXPECT_EQ(created.upcoming[0], moment("2023-11-14T23:00:00Z"));

  pass(std::chrono::minutes(47));

  const job::Job& run = job("hourly-20231114-2300");
  EXPECT_EQ(run.phase, Phase::kRunning);
  EXPECT_EQ(run.owner, "ada");
  ASSERT_TRUE(run.origin);
  EXPECT_EQ(run.origin->kind, job::JobOrigin::Kind::kSchedule);
  EXPECT_EQ(run.origin->id, created.id);
  end("hourly-20231114-2300", {.code = 3});
  const job::Schedule after = schedule("hourly");
  ASSERT_EQ(after.history.size(), 1U);
  EXPECT_EQ(after.history[0].phase, Phase::kFailed);
  EXPECT_EQ(after.history[0].exit_code, 3);
  EXPECT_EQ(after.upcoming[0], moment("2023-11-15T00:00:00Z"));
}

TEST_F(ScheduledJobs, ARunIsSkippedWhileAnEarlierOneHasNotEnded) {
  create(schedule_of("hourly"));
  pass(std::chrono::hours(1));
  pass(std::chrono::hours(1));
  const auto history = schedule("hourly").history;
  ASSERT_EQ(history.size(), 2U);
  EXPECT_EQ(history[0].outcome, RunOutcome::kSkipped);
  EXPECT_EQ(history[1].outcome, RunOutcome::kStarted);
}

TEST_F(ScheduledJobs, AReplacedRunIsStoppedBeforeTheNextStarts) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.overlap = ScheduleSpec::Overlap::kReplace;
  create(spec);
  pass(std::chrono::hours(1));
  engine_.stops_obey = false;
  pass(std::chrono::hours(1));
  EXPECT_TRUE(job("hourly-20231114-2300").stop_requested);
  EXPECT_EQ(job("hourly-20231115-0000").phase, Phase::kQueued);

  end("hourly-20231114-2300", {.signal = 15, .stopped = true});

  EXPECT_EQ(job("hourly-20231115-0000").phase, Phase::kRunning);
}

TEST_F(ScheduledJobs, APausedScheduleStartsNothingAndMakesUpForNothing) {
  const std::string id = create(schedule_of("hourly")).id;
  ASSERT_TRUE(controller_->schedules().pause(id, {.user = "ada"}));
  pass(std::chrono::hours(3));
  restart();
  EXPECT_TRUE(schedule("hourly").paused);
  ASSERT_TRUE(controller_->schedules().resume(id, {.user = "ada"}));
  settle();
  EXPECT_TRUE(schedule("hourly").history.empty());
  pass(std::chrono::hours(1));
  EXPECT_TRUE(has_job("hourly-20231115-0200"));
}

TEST_F(ScheduledJobs, AHeldScheduleIsPausedFromTheBeginning) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.held = true;
  const std::string id = create(spec).id;
  pass(std::chrono::hours(3));
  EXPECT_TRUE(schedule("hourly").history.empty());
  ASSERT_TRUE(controller_->schedules().resume(id, {.user = "ada"}));
  restart();
  EXPECT_FALSE(schedule("hourly").paused);
  pass(std::chrono::hours(1));
  EXPECT_TRUE(has_job("hourly-20231115-0200"));
}

/// In Zurich, 2:00 becomes 3:00 on 31 March 2024, and 3:00 becomes 2:00 on 27 October 2024.
TEST_F(ScheduledJobs, ATimeThatAChangeOfClocksSkipsOrRepeatsRunsOnceAlsoWithAServerThatIsKilled) {
  ScheduleSpec spec = schedule_of("daily", "30 2 * * *");
  spec.timezone = "Europe/Zurich";
  spec.overlap = ScheduleSpec::Overlap::kAllow;
  spec.job.resources.gpus = 0;
  const auto runs_of = [&](const char* name, const char* from) {
    clock_.advance(moment(from) - clock_.now());
    ScheduleSpec own = spec;
    own.name = name;
    create(own);
    for (int half_hour = 0; half_hour < 2 * 27; ++half_hour) {  // the change, and a day more
      pass(std::chrono::minutes(30));
      restart();
    }
    std::vector<std::string> runs;
    for (const ScheduledRun& run : schedule(name).history) {
      EXPECT_EQ(run.outcome, RunOutcome::kStarted);
      EXPECT_TRUE(has_job(run.job)) << run.job;
      runs.push_back(run.job + " at " + base::to_rfc3339(run.time, 0));
    }
    return runs;
  };
  EXPECT_EQ(runs_of("skipped", "2024-03-31T00:00:00Z"),
            (std::vector<std::string>{"skipped-20240401-0230 at 2024-04-01T00:30:00Z",
                                      "skipped-20240331-0300 at 2024-03-31T01:00:00Z"}));
  EXPECT_EQ(runs_of("repeated", "2024-10-26T23:00:00Z"),
            (std::vector<std::string>{"repeated-20241028-0230 at 2024-10-28T01:30:00Z",
                                      "repeated-20241027-0230 at 2024-10-27T00:30:00Z"}));
}

TEST_F(ScheduledJobs, ARunThatTheServerRefusesIsInTheHistoryAndTheScheduleContinues) {
  ScheduleSpec spec = schedule_of("hourly");
  submit(single("prep", "lab", 0));
  spec.job.after = {{.job = "prep", .condition = job::Dependency::Condition::kAny}};
  create(spec);
  end("prep");
  ASSERT_TRUE(controller_->remove("prep"));
  pass(std::chrono::hours(1));
  const auto history = schedule("hourly").history;
  ASSERT_EQ(history.size(), 1U);
  EXPECT_EQ(history[0].outcome, RunOutcome::kRefused);
  EXPECT_NE(history[0].error.find("no job 'prep'"), std::string::npos) << history[0].error;
  EXPECT_EQ(schedule("hourly").upcoming.size(), 5U);
}

TEST_F(ScheduledJobs, TheEndOfARunIsKnownAfterItsJobWasDeleted) {
  create(schedule_of("hourly"));
  pass(std::chrono::hours(1));
  end("hourly-20231114-2300", {.code = 4});
  ASSERT_TRUE(controller_->remove("hourly-20231114-2300"));
  restart();
  EXPECT_EQ(schedule("hourly").history.at(0).exit_code, 4);
}

TEST_F(ScheduledJobs, ARunByRequestObeysTheOverlapPolicy) {
  const std::string id = create(schedule_of("hourly")).id;
  const auto first = controller_->schedules().run(id, {.user = "ada"});
  ASSERT_TRUE(first) << first.error().to_string();
  EXPECT_EQ(first->job, "hourly-20231114-221320");
  EXPECT_EQ(first->job_id, job("hourly-20231114-221320").id);
  settle();
  const auto second = controller_->schedules().run(id, {.user = "ada"});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, base::ErrorCode::kConflict);
}

TEST_F(ScheduledJobs, ARunMayBeAnArray) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.job.array.indexes = "0-2";
  spec.job.resources.gpus = 0;
  create(spec);
  pass(std::chrono::hours(1));

  EXPECT_EQ(job("hourly-20231114-2300-2").phase, Phase::kRunning);
  EXPECT_EQ(schedule("hourly").history.at(0).job, "hourly-20231114-2300");
  EXPECT_FALSE(schedule("hourly").history[0].phase);

  pass(std::chrono::hours(1));
  EXPECT_EQ(schedule("hourly").history[0].outcome, RunOutcome::kSkipped);
  restart();
  for (const char* const member : {"0", "1", "2"}) {
    end(std::string("hourly-20231114-2300-") + member, {.code = *member == '1' ? 3 : 0});
  }
  EXPECT_EQ(schedule("hourly").history.at(1).phase, Phase::kFailed);
  restart();
  EXPECT_EQ(schedule("hourly").history.at(1).phase, Phase::kFailed);
  pass(std::chrono::hours(1));
  EXPECT_EQ(schedule("hourly").history[0].job, "hourly-20231115-0100");
  EXPECT_EQ(schedule("hourly").history[0].outcome, RunOutcome::kStarted);
}

TEST_F(ScheduledJobs, AnArrayThatIsOlderThanTheHistoryKeepsTheNextFromStartingAlsoAfterARestart) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.job.array.indexes = "0-1";
  spec.job.resources.gpus = 0;
  create(spec);
  for (size_t hour = 0; hour < job::Schedule::kKeptRuns + 5; ++hour) pass(std::chrono::hours(1));

  restart();
  pass(std::chrono::hours(1));

  const std::vector<ScheduledRun> history = schedule("hourly").history;
  EXPECT_EQ(history.size(), job::Schedule::kKeptRuns);
  EXPECT_EQ(history.front().outcome, RunOutcome::kSkipped);
  EXPECT_EQ(history.back().job, "hourly-20231114-2300");
}

TEST_F(ScheduledJobs, AnArrayWhoseFailedMembersRunAgainIsARunThatHasNotEnded) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.job.array.indexes = "0-1";
  spec.job.resources.gpus = 0;
  create(spec);
  pass(std::chrono::hours(1));
  end("hourly-20231114-2300-0", {.code = 3});
  end("hourly-20231114-2300-1");
  const ScheduledRun run = schedule("hourly").history.at(0);
  ASSERT_EQ(run.phase, Phase::kFailed);

  ASSERT_TRUE(controller_->arrays().rerun_failed(run.job_id, {}, {.user = "ada"}));
  settle();
  EXPECT_EQ(schedule("hourly").history.at(0).phase, std::nullopt);
  pass(std::chrono::hours(1));
  EXPECT_EQ(schedule("hourly").history.at(0).outcome, RunOutcome::kSkipped);
  restart();
  EXPECT_EQ(schedule("hourly").history.at(1).phase, std::nullopt);

  end("hourly-20231114-2300-0");
  EXPECT_EQ(schedule("hourly").history.at(1).phase, Phase::kSucceeded);
  pass(std::chrono::hours(1));
  EXPECT_EQ(schedule("hourly").history.at(0).outcome, RunOutcome::kStarted);
}

TEST_F(ScheduledJobs, AReplacedArrayIsStoppedBeforeTheNextStarts) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.job.array.indexes = "0-1";
  spec.job.resources.gpus = 0;
  spec.overlap = ScheduleSpec::Overlap::kReplace;
  create(spec);
  pass(std::chrono::hours(1));
  engine_.stops_obey = false;
  pass(std::chrono::hours(1));
  EXPECT_TRUE(job("hourly-20231114-2300-0").stop_requested);
  EXPECT_EQ(job("hourly-20231115-0000-0").phase, Phase::kQueued);

  end("hourly-20231114-2300-0", {.signal = 15, .stopped = true});
  end("hourly-20231114-2300-1", {.signal = 15, .stopped = true});

  EXPECT_EQ(job("hourly-20231115-0000-0").phase, Phase::kRunning);
  EXPECT_EQ(schedule("hourly").history.at(1).phase, Phase::kStopped);
}

TEST_F(ScheduledJobs, AClockThatWasAheadDoesNotSilenceASchedule) {
  const std::chrono::hours year(24 * 365);
  for (const bool restarts : {false, true}) {
    const std::string name = restarts ? "restarted" : "hourly";
    create(schedule_of(name));
    pass(year);
    ASSERT_TRUE(has_job(name + "-20241113-2200"));
    end(name + "-20241113-2200");

    clock_.advance(-year);
    if (restarts) restart();
    pass(std::chrono::minutes(1));
    EXPECT_EQ(schedule(name).upcoming.at(0), moment("2023-11-14T23:00:00Z"));
    pass(std::chrono::hours(1));
    EXPECT_TRUE(has_job(name + "-20231114-2300"));
    ASSERT_TRUE(controller_->schedules().remove(schedule(name).id, {.user = "ada"}));
    clock_.advance(-std::chrono::minutes(61));
  }
}

TEST_F(ScheduledJobs, APausedScheduleIsResumedByTheClockThatWasSetRight) {
  const std::chrono::hours year(24 * 365);
  const std::string id = create(schedule_of("hourly")).id;
  pass(year);
  end("hourly-20241113-2200");
  ASSERT_TRUE(controller_->schedules().pause(id, {.user = "ada"}));
  clock_.advance(-year);
  ASSERT_TRUE(controller_->schedules().resume(id, {.user = "ada"}));
  settle();
  pass(std::chrono::hours(1));
  EXPECT_TRUE(has_job("hourly-20231114-2300"));
}

TEST_F(ScheduledJobs, AClockThatIsSetBackALittleDoublesNoRun) {
  const std::string id = create(schedule_of("hourly")).id;
  pass(std::chrono::minutes(47));
  end("hourly-20231114-2300");
  clock_.advance(-std::chrono::seconds(30));
  pass(std::chrono::seconds(0));
  ASSERT_TRUE(controller_->schedules().pause(id, {.user = "ada"}));
  ASSERT_TRUE(controller_->schedules().resume(id, {.user = "ada"}));
  pass(std::chrono::seconds(30));
  EXPECT_EQ(schedule("hourly").history.size(), 1U);
}

TEST_F(ScheduledJobs, AClockThatWasBehindDoublesNoRun) {
  create(schedule_of("hourly"));
  pass(std::chrono::minutes(47));
  end("hourly-20231114-2300");
  ASSERT_TRUE(controller_->remove("hourly-20231114-2300"));
  settle();

  clock_.advance(-std::chrono::hours(3));
  pass(std::chrono::seconds(0));
  clock_.advance(std::chrono::hours(3));
  pass(std::chrono::seconds(0));

  EXPECT_EQ(schedule("hourly").history.size(), 1U);
  EXPECT_FALSE(has_job("hourly-20231114-2300"));
  pass(std::chrono::hours(1));
  EXPECT_TRUE(has_job("hourly-20231115-0000")) << "later runs start";
}

TEST_F(ScheduledJobs, AnAutomaticRunIsInTheAuditLog) {
  create(schedule_of("hourly"));
  pass(std::chrono::hours(1));
  const auto records = store_.audit({.action = "job.submit"});
  ASSERT_TRUE(records && records->size() == 1U);
  EXPECT_EQ(records->front().actor.user, kServer);
  EXPECT_EQ(records->front().target, "hourly-20231114-2300");
  EXPECT_EQ(records->front().changes.back(),
            (access::FieldChange{.field = "schedule", .after = "hourly"}));
}

TEST_F(ScheduledJobs, AnArrayThatACallerRequestsIsInTheAuditLogAsTheCallers) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.job.array.indexes = "0-1";
  const std::string id = create(spec).id;
  ASSERT_TRUE(controller_->schedules().run(id, {.user = "ben"}));
  settle();
  const auto made = store_.audit({.action = "array.submit"});
  ASSERT_TRUE(made && made->size() == 1U);
  EXPECT_EQ(made->front().actor.user, kServer);
  EXPECT_EQ(made->front().changes.back(),
            (access::FieldChange{.field = "schedule", .after = "hourly"}));
  const auto run = store_.audit({.action = "schedule.run"});
  ASSERT_TRUE(run && run->size() == 1U);
  EXPECT_EQ(run->front().actor.user, "ben");
  EXPECT_EQ(run->front().changes.front().after, made->front().target);
}

TEST_F(ScheduledJobs, AProjectWithSchedulesIsNotDeleted) {
  const std::string id = create(schedule_of("hourly")).id;
  const auto refused = controller_->projects().remove("lab");
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("it has 1 schedule"), std::string::npos);
  ASSERT_TRUE(controller_->schedules().remove(id, {.user = "ada"}));
  EXPECT_TRUE(controller_->projects().remove("lab"));
}

TEST_F(ScheduledJobs, AFullDiskDelaysARunAndLosesNone) {
  create(schedule_of("hourly"));
  clock_.advance(std::chrono::hours(1));
  store_.full = true;
  (void)controller_->submit(single("tick", "lab", 0), "");
  settle();
  EXPECT_FALSE(has_job("hourly-20231114-2300"));
  EXPECT_TRUE(schedule("hourly").history.empty());
  store_.full = false;
  pass(std::chrono::seconds(2));
  EXPECT_EQ(job("hourly-20231114-2300").phase, Phase::kRunning);
  EXPECT_EQ(schedule("hourly").history.size(), 1U);
}

TEST_F(ScheduledJobs, AFullDiskDelaysTheArrayOfARunAndLosesNone) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.job.array.indexes = "0-1";
  spec.job.resources.gpus = 0;
  create(spec);
  clock_.advance(std::chrono::hours(1));
  store_.full = true;
  (void)controller_->submit(single("tick", "lab", 0), "");
  settle();
  EXPECT_FALSE(has_job("hourly-20231114-2300-0"));
  EXPECT_TRUE(schedule("hourly").history.empty());
  store_.full = false;
  pass(std::chrono::seconds(2));
  EXPECT_EQ(job("hourly-20231114-2300-0").phase, Phase::kRunning);
  EXPECT_EQ(schedule("hourly").history.size(), 1U);
}

TEST_F(ScheduledJobs, AServerKilledBeforeOrAfterAnyCommitRunsEachTimeOnce) {
  ScheduleSpec spec = schedule_of("hourly");
  spec.overlap = ScheduleSpec::Overlap::kAllow;
  spec.job.resources.gpus = 0;
  create(spec);
  clock_.advance(std::chrono::minutes(46));  // 22:59:20
  int runs = 0;
  int crashes = 0;
  for (int death = 1; death <= 6; ++death) {
    for (const bool before : {true, false}) {
      SCOPED_TRACE(std::to_string(death) + (before ? " before" : " after"));
      (before ? store_.dies_before : store_.dies_after) = store_.commits + death;
      try {
        pass(std::chrono::hours(1));
      } catch (const Crash&) {
        ++crashes;
      }
      store_.dies_before = store_.dies_after = 0;
      restart();
      ++runs;
      const auto history = schedule("hourly").history;
      ASSERT_EQ(history.size(), static_cast<size_t>(runs));
      EXPECT_TRUE(has_job(history[0].job)) << history[0].job;
      EXPECT_FALSE(history[0].job_id.empty());
    }
  }
  EXPECT_GT(crashes, 0);
}

}  // namespace
}  // namespace muster::control
