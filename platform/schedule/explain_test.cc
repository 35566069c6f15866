#include "schedule/explain.h"

#include <gtest/gtest.h>

#include "schedule/test_books.h"
#include "schedule/test_units.h"
#include "schedule/test_words.h"

namespace muster::schedule {

namespace {

Gang gang(const std::string& name, const std::string& project, Claim claim = {.gpus = 1},
          int count = 1) {
  return {.id = "id-" + name,
          .name = name,
          .project = project,
          .groups = {{.claim = claim, .count = count, .minimum = count}}};
}

/// The reason why the ledger refuses the additional amounts, in words.
WaitReason refusal(const Books& books, const Gang& gang, const Amounts& requested,
                   bool preemptible) {
  const auto refusal = books.ledger.refuses(books[gang.project], requested, preemptible);
  EXPECT_TRUE(refusal);
  return refusal ? wait_reason(capacity_verdict(gang, *refusal, books.ledger)) : WaitReason{};
}

TEST(CapacityReason, NamesTheProjectItsLimitTheUseAndTheRequest) {
  Books books({.gpus = 8}, {{"team-a", 1, {.limit = 4}}});
  books.runs("team-a", 3, kPreemptible);

  const WaitReason reason = refusal(books, gang("dist", "team-a"), gpus(2), kPreemptible);

  EXPECT_EQ(reason.constraint, Constraint::kLimit);
  EXPECT_EQ(reason.text,
            "'dist' requests 2 GPUs, but project team-a has a limit of 4 GPUs, with 3 GPUs "
            "allocated: 1 GPU too many");
  EXPECT_EQ(reason.details,
            (std::vector<std::string>{"starts when jobs of project team-a give back 1 GPU, or when "
                                      "its limit is raised to 5 GPUs"}));
}

TEST(CapacityReason, NamesTheLevelAndTheHoldersAtThatLevel) {
  Books books({.gpus = 20}, {{"org", 1, {.limit = 10}},
                             {"a", 1, {.parent = "org"}},
                             {"b", 1, {.parent = "org"}},
                             {"c", 1, {.parent = "org"}},
                             {"d", 1, {.parent = "org"}},
                             {"e", 1, {.parent = "org"}}});
  books.runs("b", 5, kPreemptible);
  books.runs("c", 2, kPreemptible);
  books.runs("d", 2, kNonPreemptible);
  books.runs("e", 0.5, kPreemptible);

  const WaitReason reason = refusal(books, gang("dist", "a"), gpus(1), kPreemptible);

  EXPECT_EQ(reason.text,
            "'dist' requests 1 GPU, but project org (above a) has a limit of 10 GPUs, with 9.5 "
            "GPUs allocated: 0.5 GPU too many");
  ASSERT_EQ(reason.details.size(), 2U);
  EXPECT_EQ(
      reason.details[1],
      "below project org, b holds 5 GPUs, c holds 2 GPUs, d holds 2 GPUs and 1 other 0.5 GPU");
}

TEST(CapacityReason, HasARemedyForAJobThatIsNotPreemptible) {
  Books books({.gpus = 8}, {{"team-a", 2}});
  books.runs("team-a", 1, kNonPreemptible);
  books.runs("team-a", 4, kPreemptible);

  const WaitReason reason = refusal(books, gang("build", "team-a"), gpus(2), kNonPreemptible);

  EXPECT_EQ(reason.constraint, Constraint::kQuota);
  EXPECT_EQ(reason.text,
            "'build' is not preemptible and requests 2 GPUs, but project team-a has a quota of 2 "
            "GPUs, with 1 GPU allocated to jobs that are not preemptible: 1 GPU too many");
  EXPECT_EQ(reason.details,
            (std::vector<std::string>{
                "starts when jobs of project team-a that are not preemptible give back 1 GPU, or "
                "when its quota is raised to 3 GPUs",
                "as a preemptible job it may run over quota"}));
}

TEST(CapacityReason, ReportsThatWaitingDoesNotHelpIfTheRequestExceedsTheLimit) {
  Ledger ledger;
  Project one{.name = "one"};
  one.quota.limit.memory_bytes = 16 * kGib;
  ledger.set_projects({one}, kDefaultPool);
  const auto refusal = ledger.refuses(0, {0, 0, 24 * kGib}, kPreemptible);
  ASSERT_TRUE(refusal);

  const WaitReason reason = wait_reason(capacity_verdict(gang("big", "one"), *refusal, ledger));

  EXPECT_EQ(reason.text,
            "'big' requests 24 GiB of memory, but project one has a limit of 16 GiB of memory, "
            "with nothing allocated: 8 GiB of memory too much");
  EXPECT_EQ(reason.details,
            (std::vector<std::string>{"it requests more than the whole limit of project one, and "
                                      "cannot start until that is at least 24 GiB of memory"}));
}

TEST(CapacityReason, SurvivesAbsurdRequests) {
  Books books({.gpus = 8}, {{"a", 1, {.limit = 1}}});
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  const WaitReason reason = refusal(books, gang("mad", "a"), {kMost, kMost, kMost}, kPreemptible);
  EXPECT_EQ(reason.text,
            "'mad' requests unlimited GPUs, but project a has a limit of 1 GPU, with nothing "
            "allocated: unlimited GPUs too many");
}

TEST(EvictionText, OfAReclaimGivesBothProjectsUseQuotaFairShareAndPriority) {
  Books books({.gpus = 4}, {{"team-a", 2, {.weight = 1}}, {"team-b", 2, {.priority = 101}}});
  books.runs("team-a", 3, kPreemptible);
  books.runs("team-b", 1, kPreemptible);
  books.waits("team-b", 1);
  books.settle();

  EXPECT_EQ(eviction_text(gang("over", "team-a"), gang("b", "team-b"), EvictionCause::kReclaimed,
                          books.ledger),
            "was evicted for 'b' of project team-b, which claims its share: project team-a uses 3 "
            "GPUs (quota 2 GPUs, fair share 2 GPUs, priority 100); project team-b uses 1 GPU "
            "(quota 2 GPUs, fair share 2 GPUs, priority 101)");
}

TEST(EvictionText, OfAReclaimIsAboutTheLevelAtWhichItWasDecided) {
  Books books({.gpus = 4},
              {{"d1", 1}, {"d2", 3}, {"a", 1, {.parent = "d1"}}, {"b", 1, {.parent = "d2"}}});
  books.runs("a", 2, kPreemptible);
  books.waits("b", 1);
  books.settle();

  EXPECT_EQ(
      eviction_text(gang("over", "a"), gang("b", "b"), EvictionCause::kReclaimed, books.ledger),
      "was evicted for 'b' of project b, which claims its share: project d1 (above a) uses 2 "
      "GPUs (quota 1 GPU, fair share 1 GPU, priority 100); project d2 (above b) uses 0 GPUs "
      "(quota 3 GPUs, fair share 1 GPU, priority 100)");
}

TEST(EvictionText, ComparesTheResourcesThatHaveAQuota) {
  Ledger ledger;
  Project one{.name = "one", .quota = {.deserved = {0, 2000, kUnlimited}}};
  Project other{.name = "other", .quota = {.deserved = {0, 2000, kUnlimited}}};
  ledger.set_total({0, 4000, kGib});
  ledger.set_projects({one, other}, kDefaultPool);
  ledger.add_request(0, {0, 4000, kGib});
  ledger.allocate(0, {0, 4000, kGib}, kPreemptible);
  ledger.add_request(1, {0, 1000, kGib});
  ledger.settle_fair_shares();

  EXPECT_EQ(
      eviction_text(gang("v", "one"), gang("b", "other", {.cpu_milli = 1000, .memory_bytes = kGib}),
                    EvictionCause::kReclaimed, ledger),
      "was evicted for 'b' of project other, which claims its share: project one uses 4 CPUs "
      "(quota 2 CPUs, fair share 3 CPUs, priority 100); project other uses 0 CPUs (quota 2 "
      "CPUs, fair share 1 CPU, priority 100)");
}

TEST(EvictionText, OfAPreemptionGivesBothPriorities) {
  Gang build = gang("build", "team-a");
  build.priority = 100;
  EXPECT_EQ(
      eviction_text(gang("t", "team-a"), build, EvictionCause::kPreempted, Ledger{}),
      "was preempted by 'build' (priority 100) of the same project; this job has priority 50");
}

TEST(EvictionText, OfAMoveStatesThatTheGangContinues) {
  EXPECT_EQ(eviction_text(gang("t", "a"), gang("wide", "b"), EvictionCause::kMoved, Ledger{}),
            "is moved so that 'wide' of project b fits; it restarts on other nodes at once");
}

TEST(EvictionText, OfAForecastDoesNotDescribeAPastEvent) {
  const auto forecast = [](EvictionCause cause) {
    return eviction_text(gang("t", "a"), gang("b", "b"), cause, Ledger{}, Tense::kForecast);
  };
  EXPECT_EQ(forecast(EvictionCause::kReclaimed),
            "would be evicted for 'b' of project b, which claims its share");
  EXPECT_TRUE(forecast(EvictionCause::kPreempted).starts_with("would be preempted by 'b'"));
  EXPECT_EQ(
      forecast(EvictionCause::kMoved),
      "would be moved so that 'b' of project b fits; it would restart on other nodes at once");
}

TEST(EvictionText, OfARemovedProjectStillNamesTheBeneficiary) {
  EXPECT_EQ(eviction_text(gang("t", "a"), gang("b", "b"), EvictionCause::kReclaimed, Ledger{}),
            "was evicted for 'b' of project b, which claims its share");
}

TEST(PlanWords, AreStable) {
  const auto causes = {EvictionCause::kReclaimed, EvictionCause::kPreempted, EvictionCause::kMoved,
                       EvictionCause::kStale};
  std::string words;
  for (const EvictionCause cause : causes) words += std::string(to_string(cause)) + " ";
  EXPECT_EQ(words, "reclaimed preempted moved stale ");

  words.clear();
  for (int i = 0; i <= static_cast<int>(Constraint::kNever); ++i) {
    words += std::string(to_string(static_cast<Constraint>(i))) + " ";
  }
  EXPECT_EQ(words, "none project limit quota room topology reserved releasing never ");
}

}  // namespace

}  // namespace muster::schedule
