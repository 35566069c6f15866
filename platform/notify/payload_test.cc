#include "notify/payload.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "job/test_specs.h"
#include "notify/test_values.h"

namespace muster::notify {
namespace {

using job::Happening;
using nlohmann::json;

constexpr base::Time kTime{std::chrono::milliseconds(1'700'000'000'123)};

job::Job failed_job() {
  job::Job job = job::full_job();
  job.spec.name = "train-7";
  job.spec.project = "lab";
  job.spec.command = {"python", "confidential.py"};
  job.spec.environment = {{"TOKEN", "confidential"}};
  job.phase = job::Phase::kFailed;
  job.exit_code = 3;
  job.failure = job::Failure{.task = "worker-1",
                             .rank = 4,
                             .cause = job::Remark{"worker-1 ended with exit code 3"},
                             .advice = "look there",
                             .last_lines = {"confidential line", "\xff"}};
  return job;
}

TEST(Payload, NamesTheJobAndTheEvent) {
  const json payload =
      json::parse(payload_of(failed_job(), Happening::kFailed, "d1", kTime, PayloadLines::kNone));

  EXPECT_EQ(payload["id"], "d1");
  EXPECT_EQ(payload["event"], "job.failed");
  EXPECT_EQ(payload["time"], "2023-11-14T22:13:20.123Z");
  EXPECT_EQ(payload["project"], "lab");
  EXPECT_EQ(payload["job"]["name"], "train-7");
  EXPECT_EQ(payload["job"]["phase"], "Failed");
  EXPECT_EQ(payload["job"]["exit_code"], 3);
  EXPECT_EQ(payload["failure"]["task"], "worker-1");
  EXPECT_EQ(payload["failure"]["rank"], 4);
  EXPECT_EQ(payload["failure"]["cause"], "worker-1 ended with exit code 3");
}

TEST(Payload, HoldsNeitherCommandNorEnvironmentNorLines) {
  const std::string text =
      payload_of(failed_job(), Happening::kFailed, "d1", kTime, PayloadLines::kNone);

  EXPECT_EQ(text.find("confidential"), std::string::npos) << text;
}

TEST(Payload, HoldsTheLinesOfAFailureWhereTheyAreRequested) {
  const json payload = json::parse(
      payload_of(failed_job(), Happening::kFailed, "d1", kTime, PayloadLines::kOfFailure));

  EXPECT_EQ(payload["failure"]["last_lines"], (json{"confidential line", "\xEF\xBF\xBD"}));
}

TEST(Payload, HoldsNoFailureOfAJobThatHasNotFailed) {
  job::Job job = failed_job();
  job.phase = job::Phase::kRunning;
  const json payload =
      json::parse(payload_of(job, Happening::kStarted, "d1", kTime, PayloadLines::kNone));

  EXPECT_FALSE(payload.contains("failure"));
  EXPECT_EQ(payload["event"], "job.started");
}

TEST(Payload, OfAStartDescribesARunningJobEvenIfTheJobHasEnded) {
  job::Job job = failed_job();
  job.started = kTime;
  job.ended = kTime;
  const json payload =
      json::parse(payload_of(job, Happening::kStarted, "d1", kTime, PayloadLines::kNone));

  EXPECT_EQ(payload["job"]["phase"], "Running");
  EXPECT_TRUE(payload["job"]["exit_code"].is_null());
  EXPECT_TRUE(payload["job"]["ended"].is_null());
  EXPECT_EQ(payload["job"]["reason"], "");
}

TEST(Payload, OfAPingHasNoJob) {
  const json payload = json::parse(ping_payload("lab", "d1", kTime));

  EXPECT_EQ(payload["event"], "ping");
  EXPECT_EQ(payload["project"], "lab");
  EXPECT_FALSE(payload.contains("job"));
}

}  // namespace
namespace {

using job::Phase;
using Happenings = std::vector<Happening>;

ObservedState was(Phase phase, std::optional<int> started = std::nullopt) {
  ObservedState standing{.phase = phase};
  if (started) standing.started = at_second(*started);
  return standing;
}

/// The events between the state `before` and a job in `phase`.
Happenings happenings_after(const ObservedState& before, Phase phase,
                            std::optional<int> started = std::nullopt) {
  job::Job job{.phase = phase};
  if (started) job.started = at_second(*started);
  return happenings_between(before, job);
}

TEST(Happenings, AreTheChangesOfAPhase) {
  EXPECT_EQ(happenings_after(was(Phase::kQueued), Phase::kStarting), Happenings{});
  EXPECT_EQ(happenings_after(was(Phase::kStarting), Phase::kRunning, 1),
            Happenings{Happening::kStarted});
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kRunning, 1), Happenings{});
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kSucceeded, 1),
            Happenings{Happening::kSucceeded});
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kFailed, 1),
            Happenings{Happening::kFailed});
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kStopped, 1),
            Happenings{Happening::kStopped});
}

TEST(Happenings, OfAJobThatNeverRanAreItsEndAlone) {
  EXPECT_EQ(happenings_after(was(Phase::kQueued), Phase::kStopped),
            Happenings{Happening::kStopped});
  EXPECT_EQ(happenings_after(was(Phase::kStarting), Phase::kFailed),
            Happenings{Happening::kFailed});
  EXPECT_EQ(happenings_after(was(Phase::kStarting), Phase::kQueued), Happenings{});
}

TEST(Happenings, OfOneCommitAreReportedInOrder) {
  EXPECT_EQ(happenings_after(was(Phase::kQueued), Phase::kSucceeded, 1),
            (Happenings{Happening::kStarted, Happening::kSucceeded}));
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kFailed, 2),
            (Happenings{Happening::kRequeued, Happening::kStarted, Happening::kFailed}));
}

TEST(Happenings, ReportThatARunningJobWaitsAgain) {
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kQueued),
            Happenings{Happening::kRequeued});
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kStarting),
            Happenings{Happening::kRequeued});
  EXPECT_EQ(happenings_after(was(Phase::kRunning, 1), Phase::kRunning, 2),
            (Happenings{Happening::kRequeued, Happening::kStarted}));
}

TEST(Happenings, AreNotReportedAfterAJobHasEnded) {
  EXPECT_EQ(happenings_after(was(Phase::kFailed, 1), Phase::kFailed, 1), Happenings{});
}

}  // namespace
}  // namespace muster::notify
