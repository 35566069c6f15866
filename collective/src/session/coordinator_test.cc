#include "session/coordinator.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::collective::session {
namespace {

using std::chrono::milliseconds;

Request sum_of(std::uint64_t count, DataType type = DataType::kFloat32) {
  return {
      .call = {
          .kind = CallKind::kAllReduce, .type = type, .reduction = ReduceOp::kSum, .count = count}};
}

const Deadline kStart{std::chrono::seconds(100)};

bool hand_over(Coordinator& coordinator, int rank, std::string_view name,
               const Request& request = sum_of(4), Deadline now = kStart) {
  return coordinator.take(rank, encode_new(name, request), now);
}

// The ids in a batch.
std::vector<std::uint32_t> ids_of(const Record& record) {
  std::vector<std::uint32_t> ids;
  for (const Entry& entry : std::get<Batch>(record).entries) ids.push_back(entry.id);
  return ids;
}

using Ids = std::vector<std::uint32_t>;

TEST(Coordinator, CutsANameOnceAllRanksHaveHandedItOver) {
  Coordinator coordinator({"a", "b"}, 1000);
  EXPECT_TRUE(hand_over(coordinator, 1, "w"));
  EXPECT_FALSE(coordinator.has_record());
  EXPECT_TRUE(coordinator.has_pending());
  EXPECT_TRUE(hand_over(coordinator, 0, "w"));
  ASSERT_TRUE(coordinator.has_record());
  const Record record = coordinator.cut();
  const Entry& entry = std::get<Batch>(record).entries.at(0);
  EXPECT_EQ(entry.last, 0);
  ASSERT_TRUE(entry.news);
  EXPECT_EQ(entry.news->name, "w");
  EXPECT_FALSE(coordinator.has_record());
  EXPECT_FALSE(coordinator.has_pending());
}

TEST(Coordinator, JudgesByTheTimesOfHandOversInWhateverOrderTheyCome) {
  using std::chrono::seconds;
  Coordinator coordinator({"a", "b", "c"}, 1000);
  coordinator.watch_for_stragglers(seconds(10));
  for (const std::string_view name : {"first", "second"}) {
    const Deadline begin = kStart + (name == "first" ? seconds(0) : seconds(4));
    hand_over(coordinator, 1, name, sum_of(4), begin + seconds(2));
    hand_over(coordinator, 2, name, sum_of(4), begin + seconds(1));
    EXPECT_EQ(coordinator.next_stall(seconds(5)), begin + seconds(6));
    hand_over(coordinator, 0, name, sum_of(4), begin);
    EXPECT_EQ(std::get<Batch>(coordinator.cut()).entries.at(0).last, 1);
  }
  const auto slowness = coordinator.judge(kStart + seconds(20));
  ASSERT_TRUE(slowness);
  EXPECT_EQ(slowness->ranks.at(0).rank, 1);
  EXPECT_EQ(slowness->ranks.at(0).operations, 2u);
  EXPECT_EQ(slowness->ranks.at(0).mean, seconds(1));
}

TEST(Coordinator, SendsNoNewsForARepeatedAgreement) {
  Coordinator coordinator({"a", "b"}, 1000);
  for (const int rank : {0, 1}) hand_over(coordinator, rank, "w");
  static_cast<void>(coordinator.cut());
  for (const int rank : {0, 1}) EXPECT_TRUE(coordinator.take(rank, encode(Again{1}), kStart));
  EXPECT_FALSE(std::get<Batch>(coordinator.cut()).entries.at(0).news);
  // One rank changes its request: that is judged anew, and so is the next request.
  hand_over(coordinator, 0, "w", sum_of(5));
  EXPECT_TRUE(coordinator.take(1, encode(Again{1}), kStart));
  EXPECT_TRUE(std::get<Batch>(coordinator.cut()).entries.at(0).news->error);
  hand_over(coordinator, 0, "w", sum_of(4));
  EXPECT_TRUE(coordinator.take(1, encode(Again{1}), kStart));
  const Record record = coordinator.cut();
  ASSERT_TRUE(std::get<Batch>(record).entries.at(0).news);
  EXPECT_FALSE(std::get<Batch>(record).entries.at(0).news->error);
}

TEST(Coordinator, FusesOperationsThatFit) {
  Coordinator coordinator({"a"}, 48);
  hand_over(coordinator, 0, "one", sum_of(4));                           // 16 bytes
  hand_over(coordinator, 0, "other type", sum_of(2, DataType::kInt64));  // 16 bytes
  hand_over(coordinator, 0, "too large", sum_of(20));                    // 80 bytes
  hand_over(coordinator, 0, "barrier", {.call = {.kind = CallKind::kBarrier}});
  hand_over(coordinator, 0, "two", sum_of(8));    // 32 bytes
  hand_over(coordinator, 0, "three", sum_of(1));  // exceeds the limit
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{1, 5}));
  EXPECT_EQ(coordinator.cut_bytes(), 48u);
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{2}));
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{3}));
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{4}));
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{6}));
  EXPECT_FALSE(coordinator.has_record());
}

TEST(Coordinator, AMismatchIsARecordOfItsOwn) {
  Coordinator coordinator({"a", "b"}, 1000);
  hand_over(coordinator, 0, "good");
  hand_over(coordinator, 1, "good");
  hand_over(coordinator, 0, "bad", sum_of(4));
  hand_over(coordinator, 1, "bad", sum_of(5));
  hand_over(coordinator, 0, "fine");
  hand_over(coordinator, 1, "fine");
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{1, 3}));
  const Record record = coordinator.cut();
  const Entry& bad = std::get<Batch>(record).entries.at(0);
  ASSERT_TRUE(bad.news->error);
  EXPECT_EQ(bad.news->error->message,
            "all_reduce 'bad': rank 0 on host a hands over 4 float32, sum; rank 1 on host b 5 "
            "float32, sum");
}

TEST(Coordinator, GathersLengths) {
  Coordinator coordinator({"a", "b"}, 1000);
  for (const int rank : {1, 0}) {
    hand_over(coordinator, rank, "g",
              {.call = {.kind = CallKind::kAllGather},
               .lengths = {static_cast<std::uint64_t>(10 + rank)}});
  }
  const Record record = coordinator.cut();
  EXPECT_EQ(std::get<Batch>(record).entries.at(0).news->gathered,
            (std::vector<std::uint64_t>{10, 11}));
}

// With the lengths of all pairs, the record of 300 ranks would have 720,000 bytes.
TEST(Coordinator, SendsNoLengthsOfAnAllToAll) {
  constexpr std::size_t kRanks = 300;
  Coordinator coordinator(std::vector<std::string>(kRanks, "a"), 1000);
  const auto splits = [](std::uint64_t first) {
    Request request{.call = {.kind = CallKind::kAllToAll},
                    .lengths = std::vector<std::uint64_t>(kRanks, 8)};
    request.lengths[0] = first;
    request.lengths[1] = 16 - first;
    return request;
  };
  for (const std::uint64_t first : {8, 5}) {
    for (std::size_t rank = 0; rank < kRanks; ++rank) {
      ASSERT_TRUE(hand_over(coordinator, static_cast<int>(rank), "a", splits(first)));
    }
    const Record record = coordinator.cut();
    ASSERT_TRUE(std::get<Batch>(record).entries.at(0).news)
        << "the ranks must exchange the new lengths, although their sum is the same";
    EXPECT_LT(encode(record).size(), 200u);
    EXPECT_EQ(coordinator.cut_bytes(), 8 * kRanks);
  }
  for (std::size_t rank = 0; rank < kRanks; ++rank) {
    ASSERT_TRUE(coordinator.take(static_cast<int>(rank), encode(Again{1}), kStart));
  }
  EXPECT_FALSE(std::get<Batch>(coordinator.cut()).entries.at(0).news);
}

TEST(Coordinator, GivesNoIdTwiceAfterTheLastOne) {
  constexpr std::uint32_t kLast = UINT32_MAX;
  Coordinator coordinator({"a"}, 1000, kMostNames, kLast);
  Ids ids;
  for (const char* name : {"last", "first", "second"}) {
    hand_over(coordinator, 0, name);
    ids.push_back(ids_of(coordinator.cut()).at(0));
  }
  EXPECT_EQ(ids, (Ids{kLast, 1, 2})) << "0 is not an id";
}

TEST(Coordinator, AJoinedRankCountsAsReady) {
  Coordinator coordinator({"a", "b", "c"}, 1000);
  hand_over(coordinator, 0, "w");
  hand_over(coordinator, 1, "w");
  coordinator.take(2, encode(Join{}), kStart);
  ASSERT_TRUE(coordinator.has_record());
  EXPECT_FALSE(std::get<Batch>(coordinator.cut()).entries.at(0).news->error);
  coordinator.take(0, encode(Join{}), kStart);
  EXPECT_FALSE(coordinator.has_record());
  coordinator.take(1, encode(Join{}), kStart);
  EXPECT_EQ(std::get<AllJoined>(coordinator.cut()).last, 1);
  hand_over(coordinator, 0, "w");
  EXPECT_FALSE(coordinator.has_record()) << "no rank is in the joined state any more";
}

TEST(Coordinator, NothingFollowsARankThatLeaves) {
  Coordinator coordinator({"a", "b"}, 1000);
  hand_over(coordinator, 0, "w");
  coordinator.take(1, encode(Leave{}), kStart);
  hand_over(coordinator, 1, "w");
  EXPECT_EQ(std::get<Left>(coordinator.cut()).rank, 1);
  EXPECT_FALSE(coordinator.has_record());
}

TEST(Coordinator, FailsANameAtTheStallLimitAndAcceptsItAgain) {
  Coordinator coordinator({"a", "b"}, 1000);
  hand_over(coordinator, 0, "w1");
  hand_over(coordinator, 0, "w2");
  const milliseconds limit(9'000);
  EXPECT_EQ(coordinator.next_give_up(limit), kStart + limit);
  coordinator.give_up(kStart + limit - milliseconds(1), limit);
  EXPECT_FALSE(coordinator.has_record());
  coordinator.give_up(kStart + limit, limit);
  EXPECT_FALSE(coordinator.next_give_up(limit));
  hand_over(coordinator, 1, "w1");  // at the last moment
  const Batch came = std::get<Batch>(coordinator.cut());
  ASSERT_EQ(came.entries.size(), 1u);
  EXPECT_FALSE(came.entries[0].news->error);
  const Batch given_up = std::get<Batch>(coordinator.cut());
  ASSERT_EQ(given_up.entries.size(), 1u);
  const auto& news = given_up.entries[0].news;
  ASSERT_TRUE(news && news->error);
  EXPECT_EQ(news->name, "w2");
  EXPECT_EQ(news->error->code, ErrorCode::kTimeout);
  EXPECT_EQ(news->error->message, "'w2' has waited 9 s for rank 1 (on host b) and failed");
  EXPECT_EQ(news->error->rank, 1);
  EXPECT_FALSE(coordinator.has_record());
  hand_over(coordinator, 1, "w2");
  EXPECT_FALSE(coordinator.has_record())
      << "it is a new operation, which rank 0 has not handed over";
  hand_over(coordinator, 0, "w2");
  const Batch again = std::get<Batch>(coordinator.cut());
  ASSERT_EQ(again.entries.size(), 1u);
  EXPECT_FALSE(again.entries[0].news && again.entries[0].news->error);
}

TEST(Coordinator, ReportsTheMissingRanksOnce) {
  Coordinator coordinator({"a", "b", "x", "y"}, 1000);
  hand_over(coordinator, 0, "w1");
  hand_over(coordinator, 1, "w1");
  const milliseconds patience(60'000);
  ASSERT_TRUE(coordinator.next_stall(patience));
  EXPECT_EQ(*coordinator.next_stall(patience), kStart + patience);
  EXPECT_TRUE(coordinator.stalled(kStart + milliseconds(59'999), patience).empty());
  EXPECT_EQ(coordinator.stalled(kStart + milliseconds(60'001), patience),
            (std::vector<std::string>{"'w1' has waited 60 s for ranks 2, 3 (on hosts x, y)"}));
  EXPECT_TRUE(coordinator.stalled(kStart + 2 * patience, patience).empty());
  EXPECT_FALSE(coordinator.next_stall(patience));
}

TEST(Coordinator, ForgetsTheLeastRecentlyUsedNames) {
  Coordinator coordinator({"a"}, 1000, 4);
  for (const char* name : {"1", "2", "3", "4"}) {
    hand_over(coordinator, 0, name);
    static_cast<void>(coordinator.cut());
  }
  EXPECT_TRUE(coordinator.take(0, encode(Again{1}), kStart));
  static_cast<void>(coordinator.cut());
  hand_over(coordinator, 0, "5");
  EXPECT_EQ(std::get<Forget>(coordinator.cut()).ids, (Ids{2, 3}));
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{5}));
  EXPECT_TRUE(coordinator.take(0, encode(Again{2}), kStart))
      << "the rank has not received the Forget record yet";
  EXPECT_FALSE(coordinator.has_record());
  hand_over(coordinator, 0, "2");
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{6}));
}

TEST(Coordinator, RejectsInvalidMessages) {
  Coordinator coordinator({"a", "b"}, 1000);
  EXPECT_FALSE(coordinator.take(1, {}, kStart));
  EXPECT_FALSE(coordinator.take(1, Bytes(3, std::byte{77}), kStart));
  EXPECT_FALSE(hand_over(coordinator, 1, "x", {.call = {.kind = CallKind::kAllToAll}}))
      << "without a length for each rank";
}

// Hands a name over on the only rank and takes its batch. Appends ids that were forgotten to
// `forgotten`.
void carry_out(Coordinator& coordinator, const std::string& name, Ids& forgotten) {
  ASSERT_TRUE(hand_over(coordinator, 0, name));
  while (coordinator.has_record()) {
    const Record record = coordinator.cut();
    if (const auto* forget = std::get_if<Forget>(&record)) {
      forgotten.insert(forgotten.end(), forget->ids.begin(), forget->ids.end());
    }
  }
}

TEST(Coordinator, ForgetsNamesUsedOnceAndKeepsRepeatedNames) {
  Coordinator coordinator({"a"}, 1000);
  Ids forgotten;
  carry_out(coordinator, "w1", forgotten);  // id 1
  carry_out(coordinator, "w2", forgotten);  // id 2
  carry_out(coordinator, "w1", forgotten);
  for (std::size_t i = 0; i < 3 * kMostOnce; ++i) {
    carry_out(coordinator, "once" + std::to_string(i), forgotten);
  }
  // The oldest names come first, and w1 is kept.
  ASSERT_GE(forgotten.size(), kMostOnce);
  EXPECT_LE(forgotten.size(), 2 * kMostOnce + kMostOnce / 2);
  for (std::size_t i = 0; i < forgotten.size(); ++i) EXPECT_EQ(forgotten[i], i + 2);
  EXPECT_TRUE(coordinator.take(0, encode(Again{1}), kStart));
  EXPECT_FALSE(std::get<Batch>(coordinator.cut()).entries.at(0).news);
}

TEST(Coordinator, ForgetsNoNameThatIsInFlight) {
  Coordinator coordinator({"a", "b"}, 1000);
  ASSERT_TRUE(hand_over(coordinator, 0, "waits"));  // id 1
  for (std::size_t i = 0; i < 2 * kMostOnce; ++i) {
    const std::string name = "once" + std::to_string(i);
    for (const int rank : {0, 1}) ASSERT_TRUE(hand_over(coordinator, rank, name));
    while (coordinator.has_record()) {
      const Record record = coordinator.cut();
      const auto* const forget = std::get_if<Forget>(&record);
      EXPECT_TRUE(forget == nullptr || std::ranges::find(forget->ids, 1u) == forget->ids.end());
    }
  }
  ASSERT_TRUE(hand_over(coordinator, 1, "waits"));
  EXPECT_EQ(ids_of(coordinator.cut()), (Ids{1}));
}

}  // namespace
}  // namespace muster::collective::session
