#include "control/failure_detector.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using Indices = std::vector<std::size_t>;

constexpr milliseconds kTick{200};

FailureDetector patrol_of(int peers) {
  std::vector<FailureDetector::Peer> list;
  for (int i = 1; i <= peers; ++i) list.push_back({i, "n" + std::to_string(i), milliseconds(700)});
  return {"rank 0 on host n0", milliseconds(1000), std::move(list)};
}

TEST(FailureDetector, NamesTheRankThatDoesNotAnswer) {
  FailureDetector detector = patrol_of(2);
  EXPECT_EQ(detector.begin(), (Indices{0, 1}));
  detector.heard(0, 3);
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(detector.tick(kTick, kTick));
    detector.heard(0, 3);
    EXPECT_FALSE(detector.silent("call 3 (barrier)"));
  }
  static_cast<void>(detector.tick(kTick, kTick));

  const std::optional<Error> error = detector.silent("call 3 (barrier)");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kTimeout);
  EXPECT_EQ(error->message,
            "rank 2 on host n2 did not answer for 0.8 s while rank 0 on host n0 waited in call 3 "
            "(barrier)");
  EXPECT_EQ(error->rank, 2);
  EXPECT_EQ(error->host, "n2");
}

TEST(FailureDetector, DoesNotBlameOtherRanksForItsOwnPause) {
  FailureDetector detector = patrol_of(1);
  static_cast<void>(detector.begin());
  static_cast<void>(detector.tick(std::chrono::hours(8), kTick));
  EXPECT_FALSE(detector.silent("call 1"));
}

TEST(FailureDetector, ProbesAgainOnlyRanksThatHaveAnswered) {
  FailureDetector detector = patrol_of(2);
  EXPECT_EQ(detector.begin(), (Indices{0, 1}));
  detector.heard(1, 1);
  EXPECT_EQ(detector.tick(kTick, kTick), (Indices{1}));
  detector.end();
  EXPECT_EQ(detector.begin(), (Indices{0, 1}));
}

TEST(FailureDetector, ProbesManyRanksInTurn) {
  FailureDetector detector = patrol_of(40);
  EXPECT_EQ(detector.begin().size(), 40u);
  std::vector<int> asked(40);
  for (int tick = 0; tick < 5; ++tick) {
    for (std::size_t i = 0; i < 40; ++i) detector.heard(i);
    const Indices now = detector.tick(kTick, kTick);
    EXPECT_EQ(now.size(), 16u);
    for (const std::size_t i : now) ++asked[i];
  }
  EXPECT_EQ(asked, std::vector<int>(40, 2));
}

TEST(FailureDetector, ProbesAFewOfVeryManyRanksAtFirstAndNamesALateOneOnceAllHadTheirTurn) {
  FailureDetector detector = patrol_of(200);
  Indices first = detector.begin();
  EXPECT_EQ(first.size(), 64u);
  std::vector<bool> asked(200);
  while (!first.empty()) {
    for (const std::size_t i : first) {
      asked[i] = true;
      detector.heard(i, i == 150 ? 6 : 7);
    }
    if (std::ranges::count(asked, true) == 200) break;
    EXPECT_FALSE(detector.late(7, milliseconds(1000), "call 7"));
    first = detector.tick(kTick, kTick);
  }

  const std::optional<Error> error = detector.late(7, milliseconds(1000), "call 7");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->rank, 151);
}

TEST(FailureDetector, NamesTheRankThatLeftTooEarly) {
  FailureDetector detector = patrol_of(2);
  detector.heard(0, 5);
  detector.departed(0);
  detector.heard(1, 4);
  detector.departed(1);
  EXPECT_FALSE(detector.missing(4, "call 4"));

  const std::optional<Error> error = detector.missing(5, "call 5");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kPeerLost);
  EXPECT_EQ(error->message,
            "rank 2 on host n2 has left, but rank 0 on host n0 still waits for it in call 5");
  EXPECT_TRUE(detector.begin().empty()) << "a rank that has left is not probed";
}

TEST(FailureDetector, NamesTheRanksThatAreFurthestBehind) {
  FailureDetector detector = patrol_of(4);
  detector.heard(0, 7);
  detector.heard(1, 6);  // waits for ranks 3 and 4 itself
  detector.heard(2, 5);
  detector.heard(3, 5);
  EXPECT_FALSE(detector.late(7, milliseconds(999), "call 7"));

  const std::optional<Error> error = detector.late(7, milliseconds(1000), "call 7");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kTimeout);
  EXPECT_EQ(error->message,
            "rank 3 on host n3, rank 4 on host n4 did not enter call 7 within 1 s while rank 0 on "
            "host n0 waited in it");
  EXPECT_EQ(error->rank, 3);
  EXPECT_NE(error->advice.find("MUSTER_COLLECTIVE_TIMEOUT"), std::string::npos);
}

TEST(FailureDetector, BlamesNoRankIfAllHaveEnteredACallWithoutProgress) {
  FailureDetector detector = patrol_of(2);
  detector.heard(0, 7);
  detector.heard(1, 8);
  EXPECT_FALSE(detector.late(7, milliseconds(999), "call 7"));

  const std::optional<Error> error = detector.late(7, milliseconds(1000), "call 7");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kTimeout);
  EXPECT_EQ(
      error->message,
      "call 7 made no progress for 1 s while rank 0 on host n0 waited in it; all ranks answer "
      "and have entered it");
  EXPECT_EQ(error->rank, Error::kNobody);
}

TEST(FailureDetector, WithoutPeersReportsNothing) {
  FailureDetector detector = patrol_of(0);
  EXPECT_TRUE(detector.begin().empty());
  EXPECT_TRUE(detector.tick(kTick, kTick).empty());
  EXPECT_FALSE(detector.silent(""));
  EXPECT_FALSE(detector.late(1, std::chrono::hours(1), ""));
}

}  // namespace
}  // namespace muster::collective
