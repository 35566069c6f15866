#include "engine/slurm/listing.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::engine::slurm {
namespace {

using namespace std::chrono_literals;
using Names = std::vector<std::string>;

/// The output of the programs, with '|' as the separator.
std::string printed(std::string text) {
  std::replace(text.begin(), text.end(), '|', '\x1f');
  return text;
}

constexpr const char* kComment = "muster:0123456789abcdef:job-1:1";

ListedJob only(const std::string& text) {
  const auto jobs = read_squeue(printed(text));
  EXPECT_TRUE(jobs);
  EXPECT_EQ(jobs ? jobs->size() : 0, 1u);
  return jobs && !jobs->empty() ? jobs->front() : ListedJob{};
}

TEST(ReadSqueue, AJobThatWaits) {
  const ListedJob job = only(
      "2|N/A|N/A|PENDING|Resources|2026-11-22T19:45:29||0|0|main|(null)|(null)|muster:"
      "0123456789abcdef:job-1:1|\n");
  EXPECT_EQ(job.id, 2u);
  EXPECT_EQ(job.state, JobState::kPending);
  EXPECT_EQ(job.reason, "Resources");
  EXPECT_EQ(job.may_start, base::Time(1795376729s));
  EXPECT_EQ(job.nodes, Names{});
  EXPECT_EQ(job.partition, "main");
  EXPECT_EQ(job.account, "");
  EXPECT_EQ(job.comment, kComment);
}

TEST(ReadSqueue, ARunningJobHasNodesAndNoReason) {
  const ListedJob job = only(
      "1|N/A|N/A|RUNNING|None|2026-11-22T19:45:29|n[1-2]|3|0|main|team|high|muster:"
      "0123456789abcdef:job-1:1|\n");
  EXPECT_EQ(job.state, JobState::kRunning);
  EXPECT_EQ(job.reason, "");
  EXPECT_FALSE(job.may_start);
  EXPECT_EQ(job.nodes, (Names{"n1", "n2"}));
  EXPECT_EQ(job.restarts, 3);
  EXPECT_EQ(job.account, "team");
  EXPECT_EQ(job.qos, "high");
}

TEST(ReadSqueue, ReadsTheExitStatus) {
  const ListedJob failed = only(
      "17|N/A|N/"
      "A|FAILED|NonZeroExitCode|2026-11-22T19:47:06|n1|0|768|main|(null)|(null)|(null)|\n");
  EXPECT_EQ(failed.exit_code, 3);
  EXPECT_EQ(failed.exit_signal, 0);
  EXPECT_EQ(failed.comment, "");
  const ListedJob killed = only(
      "18|N/A|N/A|FAILED|JobLaunchFailure|2026-11-22T19:47:06|n2|0|9|main|(null)|(null)|(null)|\n");
  EXPECT_EQ(killed.exit_code, 0);
  EXPECT_EQ(killed.exit_signal, 9);
}

TEST(ReadSqueue, AHeterogeneousJobIsOne) {
  const auto jobs = read_squeue(printed(
      "20|19|1|PENDING|Resources|N/A||0|0|main|(null)|(null)|muster:0123456789abcdef:job-2:1|\n"
      "5|N/A|N/A|RUNNING|None|2026-11-22T19:45:29|n3|0|0|main|(null)|(null)|(null)|\n"
      "19|19|0|PENDING|None|2026-11-22T19:45:29||1|0|main|(null)|(null)|muster:0123456789abcdef:"
      "job-"
      "2:1|\n"));
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2u);
  const ListedJob& job = jobs->front();
  EXPECT_EQ(job.id, 19u);
  EXPECT_EQ(job.state, JobState::kPending);
  EXPECT_EQ(job.reason, "Resources");
  EXPECT_TRUE(job.may_start);
  EXPECT_EQ(job.restarts, 1);
  EXPECT_EQ(jobs->back().id, 5u);
}

TEST(ReadSqueue, NodesOfAHeterogeneousJobAreInTheOrderOfItsParts) {
  const ListedJob job = only(
      "29|28|1|RUNNING|None|2026-11-22T19:45:29|n[1-2]|0|0|main|(null)|(null)|(null)|\n"
      "28|28|0|RUNNING|None|2026-11-22T19:45:29|m07|0|0|main|(null)|(null)|(null)|\n");
  EXPECT_EQ(job.nodes, (Names{"m07", "n1", "n2"}));
}

TEST(ReadSqueue, ThePartWithAReasonDecidesTheEndOfTheJob) {
  const ListedJob job = only(
      "28|28|0|CANCELLED|None|2026-11-22T19:45:29|m07|0|15|main|(null)|(null)|(null)|\n"
      "29|28|1|NODE_FAIL|NodeDown|2026-11-22T19:45:29|n1|0|0|main|(null)|(null)|(null)|\n");
  EXPECT_EQ(job.state, JobState::kNodeFailed);
  EXPECT_EQ(job.state_text, "NODE_FAIL");
}

TEST(ReadSqueue, AHeterogeneousJobIsOverAfterItsLastPart) {
  const ListedJob job = only(
      "28|28|0|COMPLETED|None|2026-11-22T19:45:29|m07|0|0|main|(null)|(null)|(null)|\n"
      "29|28|1|RUNNING|None|2026-11-22T19:45:29|n1|0|0|main|(null)|(null)|(null)|\n");
  EXPECT_EQ(job.state, JobState::kCompleting);
}

TEST(ReadSqueue, ACommentMayContainAnything) {
  EXPECT_EQ(only("17|N/A|N/A|PENDING|None|N/A||0|0|main|(null)|(null)|x|y|PENDING|\n").comment,
            printed("x|y|PENDING"));
}

TEST(ReadSqueue, AReasonMayBeASentence) {
  EXPECT_EQ(
      only("4|N/A|N/A|PENDING|Job's account not known, so it can't use this partition (closed "
           "allows nobody)|N/A||0|0|closed|(null)|(null)|(null)|\n")
          .reason,
      "Job's account not known, so it can't use this partition (closed allows nobody)");
}

TEST(ReadSqueue, ACommentOfTwoLinesHidesNoOtherJob) {
  const auto jobs =
      read_squeue(printed("1|N/A|N/A|PENDING|None|N/A||0|0|main|(null)|(null)|one\nand two|\n"
                          "2|N/A|N/A|PENDING|None|N/A||0|0|main|(null)|(null)|(null)|\n"));
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ(jobs->front().comment, "one");
}

TEST(ReadSqueue, EmptyOutputHasNoJobsAndInvalidOutputIsAnError) {
  ASSERT_TRUE(read_squeue(""));
  EXPECT_TRUE(read_squeue("")->empty());
  const auto nonsense = read_squeue("Usage: squeue [-A account]\n");
  ASSERT_FALSE(nonsense);
  EXPECT_EQ(nonsense.error().what,
            "squeue has printed an unknown format: 'Usage: squeue [-A account]'");
}

TEST(ReadSacct, ReadsTheDatabase) {
  const auto jobs = read_sacct(
      printed("41|CANCELLED by 1000|0:15|n[1-2]|main|team|high|muster:0123456789abcdef:job-1:1\n"
              "50+0|COMPLETED|0:0|n1|main|team|normal|\n"
              "50+1|COMPLETED|0:0|n2|main|team|normal|\n"
              "60|FAILED|3:0|None assigned|main|team|normal|\n"));
  ASSERT_TRUE(jobs);
  ASSERT_EQ(jobs->size(), 3u);
  const ListedJob& cancelled = jobs->front();
  EXPECT_EQ(cancelled.id, 41u);
  EXPECT_EQ(cancelled.state, JobState::kCancelled);
  EXPECT_EQ(cancelled.state_text, "CANCELLED by 1000");
  EXPECT_EQ(cancelled.exit_signal, 15);
  EXPECT_EQ(cancelled.comment, kComment);
  EXPECT_EQ((*jobs)[1].id, 50u);
  EXPECT_EQ((*jobs)[1].nodes, (Names{"n1", "n2"}));
  EXPECT_EQ((*jobs)[2].exit_code, 3);
}

TEST(SacctArguments, NameAllJobsInOneCall) {
  const Names arguments = sacct_arguments({7, 8, 9});
  EXPECT_EQ(arguments.back(), "--jobs=7,8,9");
}

TEST(ReadSinfo, ANodeOfSeveralPartitionsIsOneNode) {
  const auto nodes = read_sinfo(
      printed("m07|127.0.0.1|idle+drain|bad disk, call=Bob|8|8000|gpu:tesla:2(S:0)|small|(null)|\n"
              "n1|10.0.0.1|mixed|none|64|512000|gpu:a100:4|main|fast,a100|\n"
              "n1|10.0.0.1|mixed|none|64|512000|gpu:a100:4|small|fast,a100|\n"
              "n2|10.0.0.2|down*|Not responding|64|512000|(null)|main|(null)|\n"));
  ASSERT_TRUE(nodes);
  ASSERT_EQ(nodes->size(), 3u);
  const ListedNode& drained = nodes->front();
  EXPECT_EQ(drained.state_text, "IDLE+DRAIN");
  EXPECT_FALSE(drained.takes_jobs);
  EXPECT_EQ(drained.reason, "bad disk, call=Bob");
  EXPECT_EQ(drained.gpus, 2);
  EXPECT_EQ(drained.gpu_type, "tesla");
  EXPECT_EQ(drained.features, Names{});
  const ListedNode& shared = (*nodes)[1];
  EXPECT_EQ(shared.address, "10.0.0.1");
  EXPECT_TRUE(shared.takes_jobs);
  EXPECT_EQ(shared.reason, "");
  EXPECT_EQ(shared.cpus, 64);
  EXPECT_EQ(shared.memory_bytes, int64_t{512000} << 20);
  EXPECT_EQ(shared.partitions, (Names{"main", "small"}));
  EXPECT_EQ(shared.features, (Names{"fast", "a100"}));
  EXPECT_FALSE(nodes->back().takes_jobs);
  EXPECT_EQ(nodes->back().gpus, 0);
}

TEST(GpusIn, CountsAndTypesOfGres) {
  struct Row {
    const char* gres;
    Gpus gpus;
  };
  const std::vector<Row> rows{
      {"gpu:4", {4, ""}},
      {"gpu", {1, ""}},
      {"gpu:a100:8(S:0-1)", {8, "a100"}},
      {"nic:2,gpu:tesla:2(S:0,2)", {2, "tesla"}},
      {"gpu:a100:4,gpu:a100:4", {8, "a100"}},
      {"gpu:a100:2,gpu:h100:2", {4, ""}},
      {"gpu:no_consume:4", {4, "no_consume"}},
      {"gpu:0", {0, ""}},
      {"gpus:4", {0, ""}},
      {"(null)", {0, ""}},
      {"", {0, ""}},
      {"gpu:-3", {0, ""}},
      {"gpu:99999999999", {0, ""}},
  };
  for (const Row& row : rows) EXPECT_EQ(gpus_in(row.gres), row.gpus) << row.gres;
}

TEST(TimeOf, ATimeInUtcOrNothing) {
  EXPECT_EQ(time_of("1970-01-01T00:00:01"), base::Time(1s));
  EXPECT_EQ(time_of("2026-02-28T23:59:59"), base::Time(1772323199s));
  for (const char* text : {"N/A", "Unknown", "", "2026-02-30T00:00:00", "2026-13-01T00:00:00",
                           "2026-01-01 00:00:00", "2026-01-01T24:00:00", "2026-01-01T00:60:00",
                           "+026-01-01T00:00:00", "9999-01-01T00:00:00", "2026-01-01T00:00:00Z"}) {
    EXPECT_FALSE(time_of(text)) << text;
  }
}

}  // namespace
namespace {

ListedPart part(uint64_t id, uint64_t leader, int offset, JobState state,
                std::vector<std::string> nodes = {}) {
  return {.job = {.id = id, .state = state, .nodes = std::move(nodes)},
          .leader = leader,
          .offset = offset};
}

TEST(JobParts, AJobHasTheNodesOfAllItsPartsInTheirOrder) {
  const auto jobs = whole_jobs(
      {part(9, 9, 0, JobState::kRunning, {"n9"}), part(6, 5, 1, JobState::kRunning, {"n2", "n3"}),
       part(5, 5, 0, JobState::kRunning, {"n1"}), part(7, 5, 2, JobState::kRunning, {"n4"})});
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, 9U);
  EXPECT_EQ(jobs[1].id, 5U);
  EXPECT_EQ(jobs[1].nodes, (std::vector<std::string>{"n1", "n2", "n3", "n4"}));
}

TEST(JobParts, AJobEndsAsThePartWithAReasonAfterAllParts) {
  struct Case {
    JobState leader;
    JobState other;
    JobState whole;
  };
  for (const Case& one : {
           Case{JobState::kCompleted, JobState::kCompleted, JobState::kCompleted},
           Case{JobState::kCancelled, JobState::kNodeFailed, JobState::kNodeFailed},
           Case{JobState::kNodeFailed, JobState::kCancelled, JobState::kNodeFailed},
           Case{JobState::kFailed, JobState::kTimeout, JobState::kTimeout},
           Case{JobState::kCompleted, JobState::kRunning, JobState::kCompleting},
           Case{JobState::kRunning, JobState::kCompleted, JobState::kRunning},
           Case{JobState::kRunning, JobState::kConfiguring, JobState::kConfiguring},
           Case{JobState::kConfiguring, JobState::kRunning, JobState::kConfiguring},
       }) {
    const auto jobs = whole_jobs({part(5, 5, 0, one.leader), part(6, 5, 1, one.other)});
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].state, one.whole);
  }
}

TEST(JobParts, AJobStartsWithItsLastPartAndHasTheReasonOfAnyPart) {
  ListedPart leader = part(5, 5, 0, JobState::kPending);
  ListedPart other = part(6, 5, 1, JobState::kPending);
  leader.job.may_start = base::Time(std::chrono::seconds(10));
  other.job.may_start = base::Time(std::chrono::seconds(20));
  other.job.reason = "Resources";
  other.job.restarts = 2;
  const auto jobs = whole_jobs({leader, other});
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].may_start, other.job.may_start);
  EXPECT_EQ(jobs[0].reason, "Resources");
  EXPECT_EQ(jobs[0].restarts, 2);
}

TEST(JobParts, ReadsAnExitStatus) {
  ListedJob job;
  set_exit(job, 7 << 8);
  EXPECT_EQ(job.exit_code, 7);
  EXPECT_EQ(job.exit_signal, 0);
  set_exit(job, 9);
  EXPECT_EQ(job.exit_code, 0);
  EXPECT_EQ(job.exit_signal, 9);
}

}  // namespace
}  // namespace muster::engine::slurm
