#include "control/job_index.h"

#include <gtest/gtest.h>

#include <deque>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "job/test_specs.h"
#include "store/records.h"

namespace muster::control {
namespace {

using job::Phase;

base::Time at_second(int second) {
  return base::Time(std::chrono::seconds(second));
}

class JobIndexTest : public testing::Test {
 protected:
  JobEntry& add(const std::string& name, int second) {
    JobEntry& entry = entries_.emplace_back();
    entry.job.id = "id-of-" + name;
    entry.job.spec.name = name;
    entry.job.submitted = at_second(second);
    entry.sequence = entries_.size();
    index_.add({.entry = &entry, .packed = {}, .sequence = entry.sequence});
    return entry;
  }

  void erase(const JobEntry& entry) { index_.erase(*index_.with_id(entry.job.id)); }

  std::string names(bool newest_first, std::optional<base::Time> after = {}, size_t most = 1000) {
    std::string names;
    size_t count = 0;
    index_.each_by_time(newest_first, after, job::FactTexts::kAll, [&](const job::JobFacts& job) {
      names += job.name;
      return ++count < most;
    });
    return names;
  }

  std::deque<JobEntry> entries_;  // elements keep their addresses
  JobIndex index_;
};

TEST_F(JobIndexTest, VisitsJobsInTheOrderOfSubmissionWhateverTheOrderOfAdding) {
  for (const auto& [name, second] :
       std::vector<std::pair<std::string, int>>{{"c", 3}, {"a", 1}, {"d", 4}, {"b", 2}}) {
    add(name, second);
  }
  EXPECT_EQ(names(false), "abcd");
  EXPECT_EQ(names(true), "dcba");
  EXPECT_EQ(names(false, std::nullopt, 2), "ab");
}

TEST_F(JobIndexTest, BeginsAfterATimeInEitherDirection) {
  add("a", 1);
  add("b", 2);
  add("c", 3);
  EXPECT_EQ(names(false, at_second(2)), "c");
  EXPECT_EQ(names(true, at_second(2)), "a");
  EXPECT_EQ(names(false, at_second(0)), "abc");
  EXPECT_EQ(names(true, at_second(0)), "");
  EXPECT_EQ(names(false, at_second(3)), "");
  EXPECT_EQ(names(true, at_second(9)), "cba");
}

TEST_F(JobIndexTest, JobsSubmittedAtOneTimeAreAllVisitedAndCanBeErased) {
  add("a", 1);
  JobEntry& second = add("b", 1);
  add("c", 1);
  EXPECT_EQ(names(false), "abc");
  erase(second);
  EXPECT_EQ(names(false), "ac");
  EXPECT_EQ(names(true), "ca");
  add("d", 1);
  EXPECT_EQ(names(false), "acd");
}

TEST_F(JobIndexTest, AVisitContinuesAfterEachJobOfOneTime) {
  for (const char* const name : {"a", "b", "c"}) add(name, 1);
  add("d", 2);
  const auto names_one_by_one = [&](bool newest_first) {
    std::string names;
    std::optional<base::Time> after;
    for (size_t visits = 0; visits < 10; ++visits) {
      index_.each_by_time(newest_first, after, job::FactTexts::kAll, [&](const job::JobFacts& job) {
        names += job.name;
        after = job.submitted;
        return false;
      });
    }
    return names;
  };
  EXPECT_EQ(names_one_by_one(false), "abcd");
  EXPECT_EQ(names_one_by_one(true), "dcba");

  std::vector<base::Time> times;
  index_.each_by_time(false, std::nullopt, job::FactTexts::kAll, [&](const job::JobFacts& job) {
    times.push_back(job.submitted);
    return true;
  });
  std::vector<base::Time> times_by_name;
  index_.each_by_name({"a", ""}, [&](const job::JobFacts& job) {
    times_by_name.push_back(job.submitted);
    return true;
  });
  EXPECT_EQ(times_by_name, times);
}

TEST_F(JobIndexTest, ErasedJobsAreNeverVisited) {
  std::vector<JobEntry*> added;
  for (int i = 0; i < 100; ++i) added.push_back(&add(std::to_string(i) + ".", i));
  std::string left;
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 3) {
      left += std::to_string(i) + ".";
    } else {
      erase(*added[static_cast<size_t>(i)]);
    }
  }
  EXPECT_EQ(names(false), left);
  EXPECT_EQ(names(false, at_second(3), 1), "13.");
  EXPECT_EQ(index_.with_id("id-of-4."), nullptr);
  add("new", 50);
  EXPECT_EQ(names(false, at_second(43), 2), "new53.");
}

TEST_F(JobIndexTest, EachJobIsInOnePartAndThePartsKeepTheOrder) {
  for (int i = 0; i < 10; ++i) add(std::string(1, static_cast<char>('a' + i)), i);
  erase(entries_[4]);
  const auto names_of_parts = [&](bool newest_first, size_t parts) {
    std::string names;
    for (size_t part = 0; part < parts; ++part) {
      index_.each_of_part(newest_first, part, parts, job::FactTexts::kAll,
                          [&](const job::JobFacts& job) {
                            names += job.name;
                            return true;
                          });
      names += '|';
    }
    return names;
  };
  EXPECT_EQ(names_of_parts(false, 3), "abc|df|ghij|");
  EXPECT_EQ(names_of_parts(true, 3), "cba|fd|jihg|");
  EXPECT_EQ(names_of_parts(false, 1), "abcdfghij|");
  EXPECT_EQ(names_of_parts(false, 12), "|a|b|c|d|||f|g|h|i|j|");
}

TEST_F(JobIndexTest, CountsTheJobsOfEachPhaseWithAndWithoutMembers) {
  JobEntry& first = add("a", 1);
  add("b", 2);
  JobEntry& member = entries_.emplace_back();
  member.job.id = "id-of-c";
  member.job.spec.name = "c";
  member.job.submitted = at_second(3);
  member.job.origin = job::JobOrigin{.kind = job::JobOrigin::Kind::kArray};
  index_.add({.entry = &member, .packed = {}, .sequence = entries_.size()});
  EXPECT_EQ(index_.counts(true), (PhaseCounts{.queued = 3}));
  EXPECT_EQ(index_.counts(false), (PhaseCounts{.queued = 2}));

  first.job.phase = member.job.phase = Phase::kRunning;
  for (const JobEntry* entry : {&first, &member}) index_.count(*index_.with_id(entry->job.id));
  EXPECT_EQ(index_.counts(true), (PhaseCounts{.queued = 1, .running = 2}));
  EXPECT_EQ(index_.counts(false), (PhaseCounts{.queued = 1, .running = 1}));

  erase(member);
  erase(first);
  EXPECT_EQ(index_.counts(true), (PhaseCounts{.queued = 1}));
  EXPECT_EQ(index_.counts(false), (PhaseCounts{.queued = 1}));
}

/// Jobs that have ended, most of them packed.
class PackedIndex : public JobIndexTest {
 protected:
  /// A job whose texts have lengths that follow from `number`.
  JobEntry& add_ended(int number) {
    JobEntry& entry = entries_.emplace_back();
    entry.job = job::full_job();
    entry.job.phase = Phase::kFailed;
    entry.job.suspended = false;
    entry.job.id = "id-" + std::to_string(number);
    entry.job.spec.name =
        std::string(static_cast<size_t>(number % 50), 'n') + std::to_string(number);
    entry.job.spec.project = "project-" + std::to_string(number % 3);
    entry.job.owner = "owner-" + std::to_string(number % 5);
    entry.job.submitted = at_second(number);
    // Some texts are too long to be at hand.
    if (number % 7 == 3) entry.job.spec.command = {std::string(1 << 16, 'x')};
    entry.sequence = entries_.size();
    JobSlot& slot = index_.add({.entry = &entry, .packed = {}, .sequence = entry.sequence});
    pack(slot);
    return entry;
  }
  void pack(JobSlot& slot) {
    slot.packed = store::PackedJob(slot.entry->job, store::to_document(slot.entry->job));
    index_.pack(slot);
  }

  void expect_all(job::FactTexts read) {
    size_t at = 0;
    index_.each_by_time(false, std::nullopt, read, [&](const job::JobFacts& facts) {
      while (erased_.contains(entries_[at].job.id)) ++at;
      const job::Job& job = entries_[at++].job;
      std::string scratch;
      std::string scratch_of_job;
      EXPECT_EQ(facts.id, job.id);
      EXPECT_EQ(facts.name, job.spec.name);
      EXPECT_EQ(facts.project, job.spec.project);
      EXPECT_EQ(facts.owner, job.owner);
      EXPECT_EQ(facts.phase, job.phase);
      EXPECT_EQ(facts.searched_text(scratch), job::facts_of(job).searched_text(scratch_of_job));
      EXPECT_EQ(facts.held(), job::held_by(job));
      return true;
    });
    EXPECT_EQ(index_.size(), entries_.size() - erased_.size());
  }

  std::set<std::string> erased_;
};

TEST_F(PackedIndex, HasTheFactsOfEachJobWhateverIsReadAhead) {
  for (int number = 0; number < 2000; ++number) add_ended(number);
  // A third is whole again, as after a question for a job, and some of those have changed and are packed anew.
  for (size_t i = 0; i < entries_.size(); i += 3) {
    JobSlot& slot = *index_.with_id(entries_[i].job.id);
    slot.entry = &entries_[i];
    if (i % 2 == 0) continue;
    entries_[i].job.owner = "another owner";
    entries_[i].job.phase = Phase::kStopped;
    pack(slot);
  }
  for (const auto read : {job::FactTexts::kNone, job::FactTexts::kName, job::FactTexts::kSearched,
                          job::FactTexts::kAll}) {
    expect_all(read);
  }
}

TEST_F(PackedIndex, PlacesOfErasedJobsAreUsedAgain) {
  for (int number = 0; number < 1000; ++number) add_ended(number);
  for (size_t i = 0; i < 1000; i += 2) {
    erased_.insert(entries_[i].job.id);
    erase(entries_[i]);
  }
  for (int number = 1000; number < 2000; ++number) add_ended(number);

  expect_all(job::FactTexts::kAll);
}

}  // namespace
}  // namespace muster::control
