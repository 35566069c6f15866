#include "service/watched_store.h"

#include <gtest/gtest.h>

#include "store/memory_store.h"

namespace muster::service {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

/// Refuses commits as it is told.
class RefusingStore : public store::MemoryStore {
 public:
  Result<void> commit(const store::Batch&) override { return outcome; }
  Result<void> outcome;
};

class FakeLeadership : public store::Leadership {
 public:
  Result<bool> try_to_lead(const std::string&) override { return false; }
  Result<std::optional<std::string>> leader() override { return who; }
  Result<std::optional<std::string>> who = std::optional<std::string>("me");
};

class WatchedStoreTest : public testing::Test {
 protected:
  WatchedStore watched(store::Leadership* leadership) {
    return WatchedStore(store_, leadership, "me", [this] { ++lost_; });
  }
  static Error error(ErrorCode code) { return {.code = code, .what = "no"}; }

  RefusingStore store_;
  FakeLeadership leadership_;
  int lost_ = 0;
};

TEST_F(WatchedStoreTest, TellsOnceThatAnotherServerLeads) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kRefused);
  leadership_.who = std::optional<std::string>("you");
  EXPECT_FALSE(store.commit({}));
  EXPECT_FALSE(store.commit({}));
  EXPECT_EQ(lost_, 1);
}

TEST_F(WatchedStoreTest, TellsThatAnotherLedInBetween) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kRefused);
  leadership_.who = std::optional<std::string>();
  EXPECT_FALSE(store.commit({}));
  EXPECT_EQ(lost_, 1);
}

TEST_F(WatchedStoreTest, AReadOnlyDatabaseIsNoLossOfTheLead) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kRefused);
  EXPECT_FALSE(store.commit({}));
  EXPECT_EQ(lost_, 0);
}

TEST_F(WatchedStoreTest, ADatabaseThatDoesNotAnswerIsNoLossOfTheLead) {
  WatchedStore store = watched(&leadership_);
  store_.outcome = error(ErrorCode::kUnavailable);
  leadership_.who = error(ErrorCode::kUnavailable);
  EXPECT_FALSE(store.commit({}));
  store.look();
  EXPECT_EQ(lost_, 0);
}

TEST_F(WatchedStoreTest, ALookNoticesWhatNoCommitTold) {
  WatchedStore store = watched(&leadership_);
  store.look();
  leadership_.who = std::optional<std::string>();
  store.look();
  EXPECT_EQ(lost_, 0);
  leadership_.who = std::optional<std::string>("you");
  store.look();
  EXPECT_EQ(lost_, 1);
}

TEST_F(WatchedStoreTest, AStoreOfOneServerHasNoLeadToLose) {
  WatchedStore store = watched(nullptr);
  store_.outcome = error(ErrorCode::kRefused);
  EXPECT_FALSE(store.commit({}));
  store.look();
  EXPECT_EQ(lost_, 0);
}

}  // namespace
}  // namespace muster::service
