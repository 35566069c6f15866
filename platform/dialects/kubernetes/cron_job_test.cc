#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <string>

#include "dialects/kubernetes/test_files.h"

namespace muster::dialects::kubernetes {
namespace {

using Overlap = job::ScheduleSpec::Overlap;
using CatchUp = job::ScheduleSpec::CatchUp;

/// A CronJob with one container. `spec`: its keys beside `jobTemplate`, each on one line.
std::string cron_job(const Lines& spec, const Lines& job_template = {}, const Lines& job = {}) {
  std::string text =
      "apiVersion: batch/v1\n"
      "kind: CronJob\n"
      "metadata: {name: nightly}\n"
      "spec:\n";
  for (const std::string& line : spec) text += "  " + line + "\n";
  text += "  jobTemplate:\n";
  for (const std::string& line : job_template) text += "    " + line + "\n";
  text += "    spec:\n";
  for (const std::string& line : job) text += "      " + line + "\n";
  return text +
         "      template:\n"
         "        spec:\n"
         "          restartPolicy: Never\n"
         "          containers:\n"
         "          - {name: main, image: 'registry.example.com/train:1', command: [./train]}\n";
}

job::ScheduleSpec schedule_in(const std::string& text) {
  const TranslatedFile file = translated(text);
  for (const std::string& fault : file.faults) ADD_FAILURE() << fault;
  if (file.jobs.size() == 1 && file.jobs[0].schedule) return *file.jobs[0].schedule;
  ADD_FAILURE() << "not one schedule";
  return {};
}

TEST(CronJob, IsAScheduleWithTheJobOfItsRuns) {
  const TranslatedFile file =
      translated(cron_job({"schedule: '0 3 * * mon-fri'", "timeZone: Europe/Zurich",
                           "concurrencyPolicy: Forbid", "suspend: true"},
                          {"metadata: {labels: {team: vision}}"}, {"backoffLimit: 2"}));

  ASSERT_EQ(file.faults, Lines());
  ASSERT_EQ(file.jobs.size(), 1U);
  EXPECT_EQ(file.jobs[0].schedule, (job::ScheduleSpec{.name = "nightly",
                                                      .cron = "0 3 * * mon-fri",
                                                      .timezone = "Europe/Zurich",
                                                      .overlap = Overlap::kForbid,
                                                      .held = true}));
  const job::JobSpec& run = file.jobs[0].spec;
  EXPECT_EQ(run.command, Lines{"./train"});
  EXPECT_EQ(run.image, "registry.example.com/train:1");
  EXPECT_EQ(run.labels, (std::map<std::string, std::string>{{"team", "vision"}}));
  EXPECT_EQ(run.scheduling.retries, 2);
  EXPECT_FALSE(run.held) << "the schedule is suspended, not the jobs of its runs";
}

TEST(CronJob, HasTheDefaultsOfKubernetes) {
  const job::ScheduleSpec schedule = schedule_in(cron_job({"schedule: '@midnight'"}));
  EXPECT_EQ(schedule.cron, "@daily");
  EXPECT_EQ(schedule.timezone, "UTC");
  EXPECT_EQ(schedule.overlap, Overlap::kAllow);
  EXPECT_EQ(schedule.catch_up, CatchUp::kOne);
  EXPECT_EQ(schedule.catch_up_within, std::nullopt);
  EXPECT_FALSE(schedule.held);
}

TEST(CronJob, MayReplaceAnEarlierRun) {
  const std::string text = cron_job({"schedule: '? 3 ? * *'", "concurrencyPolicy: Replace"});
  EXPECT_EQ(schedule_in(text).overlap, Overlap::kReplace);
  EXPECT_EQ(schedule_in(text).cron, "* 3 * * *");
}

TEST(CronJob, StartsAMissedRunUntilItsDeadline) {
  const auto with = [](const std::string& seconds) {
    return schedule_in(cron_job({"schedule: '0 3 * * *'", "startingDeadlineSeconds: " + seconds}));
  };
  EXPECT_EQ(with("60").catch_up, CatchUp::kNone);
  EXPECT_EQ(with("3600").catch_up, CatchUp::kOne);
  EXPECT_EQ(with("3600").catch_up_within, std::chrono::hours(1));
}

TEST(CronJob, WarnsAboutTheLimitsOfItsHistory) {
  EXPECT_EQ(warnings_of(cron_job({"schedule: '0 3 * * *'", "successfulJobsHistoryLimit: 3"})),
            (Lines{"spec.successfulJobsHistoryLimit: has no effect: ttlSecondsAfterFinished or the "
                   "server's rules say how long jobs are kept"}));
}

TEST(CronJob, NamesEachFieldWithoutACounterpart) {
  const Lines faults =
      faults_of(cron_job({"schedule: '@every 1h'", "concurrencyPolicy: Never", "jobNames: x"},
                         {"status: {}"}, {"maxFailedIndexes: 2"}));
  ASSERT_EQ(faults.size(), 5U);
  EXPECT_EQ(faults[0].substr(0, 14), "spec.schedule:");
  EXPECT_EQ(faults[1].substr(0, 23), "spec.concurrencyPolicy:");
  EXPECT_EQ(faults[2].substr(0, 14), "spec.jobNames:");
  EXPECT_EQ(faults[3].substr(0, 24), "spec.jobTemplate.status:");
  EXPECT_EQ(faults[4].substr(0, 39), "spec.jobTemplate.spec.maxFailedIndexes:");
  EXPECT_EQ(faults_of(cron_job({"timeZone: UTC"})), Lines{"spec.schedule: is missing"});
  EXPECT_EQ(faults_of(cron_job({"schedule: CRON_TZ=UTC 0 3 * * *"})),
            Lines{"spec.schedule: contains a time zone; give it as timeZone"});
}

}  // namespace
}  // namespace muster::dialects::kubernetes
