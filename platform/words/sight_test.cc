#include "words/sight.h"

#include <gtest/gtest.h>

#include "words/sentence.h"

namespace muster::words {
namespace {

using Sentences = std::vector<std::string>;

const Sight kMember = sight_of_project("mine");

job::JobRef job_of(const std::string& project, const std::string& name) {
  return {.id = "id-" + name, .name = name, .project = project};
}

TEST(SeenBy, RemediesNameNoProjectAbove) {
  const job::Reason seen =
      seen_by(kMember, job::Reason(job::OverCapacity{.job = "dist",
                                                     .project = {.name = "org", .above = "mine"},
                                                     .bound = 4000,
                                                     .allocated = 3000,
                                                     .requested = 2000}));
  EXPECT_EQ(details(seen),
            (Sentences{"starts when jobs of another project give back 1 GPU, or when its limit is "
                       "raised to 5 GPUs"}));
}

TEST(SeenBy, OmitsListsOfHiddenHoldersOnly) {
  const job::HeldByOthers theirs{.holders = {.named = {{.job = job_of("theirs", "spy")}}}};
  const job::HeldByOthers more{.holders = {.named = {{.project = "theirs"}}, .more = 3}};
  const job::HeldByOthers own{.holders = {.named = {{.project = "mine", .amount = 2000}}}};

  const job::Reason seen = seen_by(kMember, job::Reason(job::Remark{"waits"}, {theirs, more, own}));

  EXPECT_EQ(details(seen), (Sentences{"held by project: mine (2 GPUs)"}));
}

TEST(SeenBy, AppliesTheSameRuleToDetailsOfOtherPools) {
  const job::Reason seen = seen_by(
      kMember,
      job::Reason(job::Remark{"waits"}, {{job::Reserved{job_of("theirs", "spy")}, "fast"}}));
  EXPECT_EQ(
      details(seen),
      (Sentences{"in pool fast: resources are free, but reserved for a job of another project, "
                 "which is ahead of it in the queue and could not start otherwise"}));
}

TEST(HideFrom, HidesTheReasonTheEventsAndTheEvictionOfAJob) {
  const job::Reclaimed why{.by = job_of("theirs", "spy")};
  job::Job job{.reason = job::Evicted{.why = why, .stage = job::Evicted::Stage::kBeingEnded},
               .eviction = why,
               .events = {{.what = job::Evicted{.why = why}}}};
  hide_from(kMember, job);

  const std::string hidden = "was evicted for a job of another project, which claims its share";
  EXPECT_EQ(sentence(job.reason), "is being ended; it " + hidden);
  EXPECT_EQ(sentence(*job.eviction), hidden);
  EXPECT_EQ(sentence(job.events[0].what), hidden);
}

// A job of the same name in the reader's own project does not make another project's job visible.
TEST(HideFrom, HidesTheEvictedJobsOfOthersInAForecast) {
  const job::Reclaimed why{.by = job_of("mine", "new"), .expected = true};
  job::Forecast forecast{
      .evictions = {{job_of("theirs", "dist"), why}, {job_of("mine", "dist"), why}}};
  hide_from(kMember, forecast);

  EXPECT_EQ(evictions(forecast),
            (Sentences{"'dist' would be evicted for 'new' of project mine, which claims its share",
                       "jobs of other projects would be evicted for it"}));
}

TEST(Refusal, DependsOnTheReader) {
  const job::Reason reason = job::OverCapacity{
      .job = "dist", .project = {.name = "org", .above = "mine"}, .bound = 1000, .requested = 2000};
  EXPECT_EQ(refusal({"dist", seen_by(kMember, reason)}).what,
            "job 'dist' can never start: 'dist' requests 2 GPUs, but a project above mine has a "
            "limit of 1 GPU, with nothing allocated: 1 GPU too many");
  EXPECT_NE(base::detail_of<job::NeverStarts>(refusal({"dist", reason})), nullptr);
}

}  // namespace
}  // namespace muster::words
