#include "control/job_table.h"

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

namespace muster::control {
namespace {

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
    index_.add(entry);
    return entry;
  }

  std::string names(bool newest_first, std::optional<base::Time> after = {}, size_t most = 1000) {
    std::string names;
    size_t count = 0;
    index_.each_by_time(newest_first, after, [&](const job::Job& job) {
      names += job.spec.name;
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
  index_.erase(second);
  EXPECT_EQ(names(false), "ac");
  EXPECT_EQ(names(true), "ca");
  add("d", 1);
  EXPECT_EQ(names(false), "acd");
}

TEST_F(JobIndexTest, ErasedJobsAreNeverVisited) {
  std::vector<JobEntry*> added;
  for (int i = 0; i < 100; ++i) added.push_back(&add(std::to_string(i) + ".", i));
  std::string left;
  for (int i = 0; i < 100; ++i) {
    if (i % 10 == 3) {
      left += std::to_string(i) + ".";
    } else {
      index_.erase(*added[static_cast<size_t>(i)]);
    }
  }
  EXPECT_EQ(names(false), left);
  EXPECT_EQ(names(false, at_second(3), 1), "13.");
  EXPECT_EQ(index_.with_id("id-of-4."), nullptr);
  add("new", 50);
  EXPECT_EQ(names(false, at_second(43), 2), "new53.");
}

}  // namespace
}  // namespace muster::control
