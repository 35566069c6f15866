#include "control/change_feed.h"

#include <gtest/gtest.h>

#include <chrono>
#include <map>
#include <random>

namespace muster::control {
namespace {

constexpr size_t kAll = 1'000'000;

/// "a b -c": the ids of changed jobs, and with a minus the ids of removed jobs.
std::string words(const std::optional<std::vector<ChangeFeed::Change>>& changes) {
  if (!changes) return "unknown";
  std::string text;
  for (const ChangeFeed::Change& change : *changes) {
    text += (text.empty() ? "" : " ") + std::string(change.removed ? "-" : "") + change.job;
  }
  return text;
}

TEST(FeedPosition, ReadsBackWhatItWrites) {
  const FeedPosition position{18'446'744'073'709'551'615U, 42};

  EXPECT_EQ(to_string(position), "18446744073709551615.42");
  EXPECT_EQ(feed_position_of(to_string(position)), position);
}

TEST(FeedPosition, TakesNothingElse) {
  for (const std::string_view text : {"", ".", "1", "1.", ".1", "1.-1", "1.2.3", " 1.2", "1.2 ",
                                      "18446744073709551616.1", "a.b"}) {
    EXPECT_EQ(feed_position_of(text), std::nullopt) << text;
  }
}

TEST(ChangeFeed, ReportsChangesSinceAPositionInOrder) {
  ChangeFeed feed(7);
  const FeedPosition begin = feed.now();
  feed.changed("a");
  const FeedPosition middle = feed.now();
  feed.changed("b");
  feed.removed("c", "third", "team", {});

  EXPECT_EQ(words(feed.after(begin, kAll)), "a b -c");
  EXPECT_EQ(words(feed.after(middle, kAll)), "b -c");
  EXPECT_EQ(words(feed.after(feed.now(), kAll)), "");
}

TEST(ChangeFeed, ReportsOnlyTheLastChangeOfAJob) {
  ChangeFeed feed(7);
  const FeedPosition begin = feed.now();
  feed.changed("a");
  feed.changed("b");
  feed.changed("a");

  EXPECT_EQ(words(feed.after(begin, kAll)), "b a");
}

TEST(ChangeFeed, ReportsOnlyTheRemovalOfARemovedJob) {
  ChangeFeed feed(7);
  feed.changed("a");
  const base::Time submitted{std::chrono::seconds(5)};
  feed.removed("a", "first", "team", submitted);

  const auto changes = feed.after({7, 0}, kAll);

  ASSERT_EQ(words(changes), "-a");
  EXPECT_EQ(changes->front().name, "first");
  EXPECT_EQ(changes->front().project, "team");
  EXPECT_EQ(changes->front().submitted, submitted);
}

TEST(ChangeFeed, ContinuesAfterTheLastChangeOfAFullPage) {
  ChangeFeed feed(7);
  for (const char* id : {"a", "b", "c"}) feed.changed(id);
  feed.removed("b", "second", "team", {});

  const auto first = feed.after({7, 0}, 2);
  ASSERT_EQ(words(first), "a c");

  EXPECT_EQ(words(feed.after({7, first->back().number}, 2)), "-b");
}

TEST(ChangeFeed, RefusesNumbersOfAnotherServerAndFutureNumbers) {
  ChangeFeed feed(7);
  feed.changed("a");

  EXPECT_EQ(words(feed.after({8, 0}, kAll)), "unknown");
  EXPECT_EQ(words(feed.after({7, 2}, kAll)), "unknown");
}

TEST(ChangeFeed, DropsOldRemovalsAndReportsThat) {
  ChangeFeed feed(7);
  feed.removed("first", "first", "team", {});
  const FeedPosition after_first = feed.now();
  for (int i = 0; i < 10'000; ++i) feed.removed("x", "x", "team", {});

  EXPECT_EQ(words(feed.after({7, 0}, 1)), "unknown");
  EXPECT_EQ(words(feed.after(after_first, 1)), "-x");
}

TEST(ChangeFeed, NotifiesWatchersWhileTheyKeepTheirHandle) {
  ChangeFeed feed(7);
  int first = 0;
  int second = 0;
  auto first_handle = feed.watch([&] { ++first; });
  const auto second_handle = feed.watch([&] { ++second; });

  feed.call_watchers();
  first_handle.reset();
  feed.call_watchers();

  EXPECT_EQ(first, 1);
  EXPECT_EQ(second, 2);
}

TEST(ChangeFeed, LetsAWatcherRemoveAndAddWatchersInItsCallback) {
  ChangeFeed feed(7);
  int calls = 0;
  std::shared_ptr<void> dropped;
  std::shared_ptr<void> added;
  const auto dropper = feed.watch([&] {
    dropped.reset();
    if (!added) added = feed.watch([&] { calls += 10; });
  });
  dropped = feed.watch([&] { calls += 1; });

  feed.call_watchers();
  EXPECT_EQ(calls, 0);
  feed.call_watchers();
  EXPECT_EQ(calls, 10);
}

// For any division of the reading into pages, a follower of the feed reaches the present state.
TEST(ChangeFeed, LeadsEveryReaderToThePresentState) {
  std::mt19937 random(20'260'101);  // NOLINT: the same each time
  ChangeFeed feed(7);
  std::map<std::string, int> truth;
  std::map<std::string, int> seen;
  FeedPosition at = feed.now();
  for (int step = 0; step < 20'000; ++step) {
    const std::string id = std::to_string(random() % 50);
    const auto found = truth.find(id);
    if (random() % 4 == 0 && found != truth.end()) {
      truth.erase(found);
      feed.removed(id, id, "team", {});
    } else {
      truth[id] = step;
      feed.changed(id);
    }
    if (random() % 10 != 0) continue;
    const auto changes = feed.after(at, 1 + random() % 7);
    ASSERT_TRUE(changes);
    for (const ChangeFeed::Change& change : *changes) {
      if (change.removed) {
        seen.erase(change.job);
      } else {
        seen[change.job] = truth.at(change.job);
      }
      at.number = change.number;
    }
  }
  const auto rest = feed.after(at, kAll);
  ASSERT_TRUE(rest);
  for (const ChangeFeed::Change& change : *rest) {
    if (change.removed) {
      seen.erase(change.job);
    } else {
      seen[change.job] = truth.at(change.job);
    }
  }
  EXPECT_EQ(seen, truth);
}

}  // namespace
}  // namespace muster::control
