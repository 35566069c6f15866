#include "job/job_facts.h"

#include <gtest/gtest.h>

#include <random>
#include <utility>

#include "job/test_specs.h"

namespace muster::job {
namespace {

std::vector<RunSpan> runs_in(const JobFacts& facts) {
  std::vector<RunSpan> runs;
  facts.each_run([&](const RunSpan& run) { runs.push_back(run); });
  return runs;
}

std::vector<std::string> trees_in(const JobFacts& facts) {
  std::vector<std::string> trees;
  facts.each_tree([&](std::string_view id) { trees.emplace_back(id); });
  return trees;
}

std::string searched(const JobFacts& facts) {
  std::string scratch;
  return std::string(facts.searched_text(scratch));
}

void expect_same(const JobFacts& packed, const JobFacts& plain) {
  EXPECT_EQ(packed.id, plain.id);
  EXPECT_EQ(packed.name, plain.name);
  EXPECT_EQ(packed.project, plain.project);
  EXPECT_EQ(packed.owner, plain.owner);
  EXPECT_EQ(packed.kind, plain.kind);
  EXPECT_EQ(packed.phase, plain.phase);
  EXPECT_EQ(packed.submitted, plain.submitted);
  EXPECT_EQ(packed.started, plain.started);
  EXPECT_EQ(packed.ended, plain.ended);
  EXPECT_EQ(packed.attempt, plain.attempt);
  EXPECT_EQ(packed.exit_code, plain.exit_code);
  EXPECT_EQ(packed.has_phase, plain.has_phase);
  ASSERT_EQ(packed.origin.has_value(), plain.origin.has_value());
  if (packed.origin) {
    EXPECT_EQ(packed.origin->kind, plain.origin->kind);
    EXPECT_EQ(packed.origin->name, plain.origin->name);
    EXPECT_EQ(packed.origin->id, plain.origin->id);
    EXPECT_EQ(packed.origin->member, plain.origin->member);
  }
  EXPECT_EQ(packed.priority(), plain.priority());
  EXPECT_EQ(packed.gpu_milli(), plain.gpu_milli());
  EXPECT_EQ(packed.has_labels(), plain.has_labels());
  EXPECT_EQ(searched(packed), searched(plain));
  EXPECT_EQ(packed.first_event(), plain.first_event());
  EXPECT_EQ(packed.last_event(), plain.last_event());
  EXPECT_EQ(packed.keep_for(), plain.keep_for());
  EXPECT_EQ(packed.held(), plain.held());
  EXPECT_EQ(runs_in(packed), runs_in(plain));
  EXPECT_EQ(trees_in(packed), trees_in(plain));
  const std::string_view absent = "no-such-label";
  EXPECT_EQ(packed.label(absent), plain.label(absent));
  if (plain.spec == nullptr) return;
  for (const auto& [name, value] : plain.spec->labels) EXPECT_EQ(packed.label(name), value);
}

FactsAtHand at_hand(const Job& job, const std::string& packed) {
  return {packed.data(), job.spec.project, job.owner};
}

Job ended_full_job() {
  Job job = full_job();
  job.phase = Phase::kFailed;
  job.suspended = false;
  return job;
}

TEST(JobFacts, PackedFactsAreThoseOfTheJob) {
  const Job job = ended_full_job();
  const std::string packed = pack_facts(job);
  expect_same(facts_in(packed.data()), facts_of(job));
  EXPECT_EQ(packed_size(packed.data()), packed.size());
  EXPECT_EQ(names_in(packed.data()).id, job.id);
  EXPECT_EQ(names_in(packed.data()).name, job.spec.name);
  EXPECT_EQ(names_in(packed.data()).project, job.spec.project);
}

TEST(JobFacts, PackedFactsOfAnEmptyJobAreThoseOfTheJob) {
  const Job job{.phase = Phase::kStopped};
  const std::string packed = pack_facts(job);
  expect_same(facts_in(packed.data()), facts_of(job));
}

TEST(JobFacts, TheLastAttemptEndsWithItsJobAndNotWithTheLaterEvent) {
  const auto at = [](int second) { return Time(std::chrono::seconds(second)); };
  Job job{.phase = Phase::kSucceeded, .ended = at(5)};
  job.events = {{.time = at(1), .what = Placed{}},
                {.time = at(2), .what = Notice{Notice::What::kEvictedAndGone}},
                {.time = at(3), .what = Placed{}},
                {.time = at(9), .what = PhaseReached{Phase::kSucceeded}}};
  EXPECT_EQ(run_spans(job),
            (std::vector<RunSpan>{{.begin = at(1), .end = at(2)}, {.begin = at(3), .end = at(5)}}));

  job.ended = at(2);
  EXPECT_EQ(run_spans(job).back(), (RunSpan{.begin = at(3), .end = at(3)}));
  job.ended = at(99);
  EXPECT_EQ(run_spans(job).back(), (RunSpan{.begin = at(3), .end = at(9)}));
}

TEST(JobFacts, PackedFactsLieAtAnyAddress) {
  const Job job = ended_full_job();
  const std::string packed = "x" + pack_facts(job);
  expect_same(facts_in(packed.data() + 1), facts_of(job));
}

TEST(JobFacts, ATextMayContainAnyByte) {
  Job job = ended_full_job();
  job.spec.labels = {{"a", std::string("\0=\n\xFF", 4)}, {"b", ""}, {"c", "Upper"}};
  job.spec.command = {"", std::string("\0", 1), "TRAIN"};
  const std::string packed = pack_facts(job);
  expect_same(facts_in(packed.data()), facts_of(job));
}

std::string random_text(std::mt19937& random) {
  std::string text(random() % 40, '\0');
  for (char& each : text) each = static_cast<char>(random());
  return text;
}

/// A job whose facts have random values.
Job random_job(std::mt19937& random) {
  const auto time = [&] { return time_at(static_cast<int64_t>(random())); };
  const auto maybe = [&] { return random() % 2 == 0; };
  Job job = maybe() ? ended_full_job() : Job{};
  job.id = random_text(random);
  job.spec.name = random_text(random);
  job.spec.project = random_text(random);
  job.owner = random_text(random);
  job.spec.kind = static_cast<Kind>(random() % 4);
  job.phase = static_cast<Phase>(3 + random() % 3);
  job.submitted = time();
  if (maybe()) job.started = time();
  if (maybe()) job.ended = time();
  if (maybe()) job.exit_code = static_cast<int>(random());
  if (maybe()) {
    job.origin = JobOrigin{.kind = static_cast<JobOrigin::Kind>(random() % 4),
                           .name = random_text(random),
                           .id = random_text(random),
                           .member = static_cast<int>(random())};
  }
  for (size_t i = random() % 4; i > 0; --i) {
    job.spec.labels[random_text(random)] = random_text(random);
    job.spec.command.push_back(random_text(random));
    job.spec.volumes.push_back({.kind = Volume::Kind::kTree, .source = random_text(random)});
    job.events.push_back({.time = time(), .what = Placed{}});
    if (maybe()) job.events.push_back({.time = time(), .what = StartsAgain{}});
  }
  return job;
}

TEST(JobFacts, PackedFactsOfRandomJobsAreThoseOfTheJobs) {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    const Job job = random_job(random);
    const std::string packed = pack_facts(job);
    expect_same(facts_in(packed.data()), facts_of(job));
    expect_same(at_hand(job, packed).facts(packed.data()), facts_of(job));
    if (HasFailure()) return;
  }
}

TEST(FactsAtHand, AreThoseOfACopyOfThePackedFacts) {
  const Job job = ended_full_job();
  std::string packed = pack_facts(job);
  const FactsAtHand facts = at_hand(job, packed);
  const std::string copy = "x" + std::exchange(packed, "");

  expect_same(facts.facts(copy.data() + 1), facts_of(job));
  EXPECT_EQ(facts.names(copy.data() + 1).id, job.id);
  EXPECT_EQ(facts.names(copy.data() + 1).name, job.spec.name);
  EXPECT_EQ(facts.names(copy.data() + 1).project, job.spec.project);
}

TEST(FactsAtHand, AreNoneIfATextIsTooLong) {
  Job job = ended_full_job();
  EXPECT_TRUE(at_hand(job, pack_facts(job)));

  job.spec.command = {std::string(1 << 16, 'x')};
  EXPECT_FALSE(at_hand(job, pack_facts(job)));
}

}  // namespace
}  // namespace muster::job
