#include "control/journal.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"
#include "words/test_words.h"

namespace muster::control {
namespace {

using job::Job;

/// Counts commits, and refuses them if the test says so.
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

TEST_F(JournalOfJobs, CommitsWhatChangesInOneTurnTogether) {
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

TEST_F(JournalOfJobs, RunsWhatFollowsAfterTheCommitInOrder) {
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

TEST_F(JournalOfJobs, SaysWhenANewJobCouldNotBeKept) {
  store_.full = true;
  const Job one = job("one");
  bool told = false;
  journal_.add(one, "", [&](const Result<void>& kept) {
    told = true;
    EXPECT_EQ(kept.error().code, base::ErrorCode::kExhausted);
  });
  turn();
  EXPECT_TRUE(told);
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

TEST_F(JournalOfJobs, HoldsBackWhatMustNotHappenBeforeItIsWrittenDown) {
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

TEST_F(JournalOfJobs, ForgetsAJobThatGoes) {
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
