#include "control/journal.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::Job;

/// Counts commits, and refuses them on demand.
class CountingStore : public store::MemoryStore {
 public:
  Result<void> commit(const store::Batch& batch) override {
    ++commits;
    if (full) return base::Error{.code = base::ErrorCode::kExhausted, .what = "the disk is full"};
    return MemoryStore::commit(batch);
  }
  int commits = 0;
  bool full = false;
};

class JournalOfJobs : public testing::Test {
 protected:
  void turn() {
    loop_.post([this] { loop_.stop(); });
    loop_.run();
  }

  Job job(const std::string& name) {
    Job job{.id = "id-" + name};
    job.spec.name = name;
    return job;
  }

  void keep(const Job& job) {
    journal_.add(job, "", [](const Result<void>& kept) { EXPECT_TRUE(kept); });
    turn();
  }

  base::EventLoop loop_;
  CountingStore store_;
  Metrics metrics_;
  Journal journal_{loop_, store_, metrics_};
};

TEST_F(JournalOfJobs, CommitsTheChangesOfOneTurnTogether) {
  Job one = job("one");
  Job two = job("two");
  keep(one);
  keep(two);
  store_.commits = 0;

  one.reason = job::Remark{"a"};
  journal_.change(one);
  two.reason = job::Remark{"b"};
  journal_.change(two);
  one.reason = job::Remark{"c"};
  journal_.change(one);
  turn();

  EXPECT_EQ(store_.commits, 1);
  const auto kept = store_.load();
  EXPECT_EQ(kept->jobs[0].reason, "c");
  EXPECT_EQ(kept->jobs[1].reason, "b");
}

TEST_F(JournalOfJobs, RunsCallbacksInOrderAfterTheCommit) {
  Job one = job("one");
  keep(one);
  std::vector<int> order;
  journal_.change(one);
  const int before = store_.commits;
  journal_.then([&] { order.push_back(store_.commits - before); });
  journal_.then([&] { order.push_back(7); });
  EXPECT_TRUE(order.empty());

  ASSERT_TRUE(journal_.flush());

  EXPECT_EQ(order, (std::vector<int>{1, 7}));
}

TEST_F(JournalOfJobs, ReportsThatANewJobCouldNotBeStored) {
  store_.full = true;
  const Job one = job("one");
  bool answered = false;
  journal_.add(one, "", [&](const Result<void>& kept) {
    answered = true;
    EXPECT_EQ(kept.error().code, base::ErrorCode::kExhausted);
  });
  turn();
  EXPECT_TRUE(answered);
}

TEST_F(JournalOfJobs, CommitsTheNeighboursOfAJobThatTheStoreRefuses) {
  Job known = job("known");
  keep(known);
  const Job first = job("first");
  Job taken = job("taken");
  taken.id = known.id;
  const Job last = job("last");
  std::vector<std::string> answers;
  const auto add = [&](const Job& job) {
    const std::string name = job.spec.name;
    access::AuditRecord record{.action = "job.submit", .project = name};
    journal_.add(job, "key-" + name,
                 [&answers, name](const Result<void>& kept) {
                   answers.push_back(name + (kept ? " kept" : ": " + kept.error().what));
                 },
                 {record});
  };

  add(first);
  add(taken);
  add(last);
  known.reason = job::Remark{"changed"};
  journal_.change(known);
  turn();

  EXPECT_EQ(answers,
            (std::vector<std::string>{"first kept",
                                      "taken: the id, the name or the key of job 'taken' is in use "
                                      "in project 'default'",
                                      "last kept"}));
  const auto stored = store_.load()->jobs;
  ASSERT_EQ(stored.size(), 3U);
  EXPECT_EQ(stored[0].reason, "changed");
  EXPECT_EQ(stored[1].spec.name, "first");
  EXPECT_EQ(stored[2].spec.name, "last");
  const auto records = store_.audit({});
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ((*records)[0].project, "last");
  EXPECT_EQ((*records)[1].project, "first");
}

TEST_F(JournalOfJobs, KeepsAChangeThatCouldNotBeCommittedForTheNextTime) {
  Job one = job("one");
  keep(one);
  store_.full = true;
  one.reason = job::Remark{"changed"};
  journal_.change(one);
  turn();
  EXPECT_NE(store_.load()->jobs[0].reason, "changed");

  store_.full = false;
  ASSERT_TRUE(journal_.flush());

  EXPECT_EQ(store_.load()->jobs[0].reason, "changed");
}

TEST_F(JournalOfJobs, DelaysActionsUntilTheirCommit) {
  Job one = job("one");
  keep(one);
  store_.full = true;
  journal_.change(one);
  bool happened = false;
  journal_.once_committed([&] { happened = true; });
  turn();
  EXPECT_FALSE(happened);

  store_.full = false;
  ASSERT_TRUE(journal_.flush());

  EXPECT_TRUE(happened);
}

TEST_F(JournalOfJobs, DropsARemovedJob) {
  auto one = std::make_unique<Job>(job("one"));
  keep(*one);
  journal_.change(*one);
  journal_.forget(*one);
  one.reset();
  store_.commits = 0;
  turn();
  EXPECT_EQ(store_.commits, 0);
}

TEST_F(JournalOfJobs, CommitsNothingWhereNothingChanged) {
  ASSERT_TRUE(journal_.flush());
  EXPECT_EQ(store_.commits, 0);
}

}  // namespace
}  // namespace muster::control
