#include "control/failure_detector.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using Ranks = std::vector<int>;

constexpr milliseconds kTick{200};

// Of rank 0, with connections to the ranks from 1 on; of a world of that size, or larger.
FailureDetector patrol_of(int peers, int size = 0) {
  std::vector<FailureDetector::Peer> list;
  for (int i = 1; i <= peers; ++i) list.push_back({i, "n" + std::to_string(i), milliseconds(700)});
  return {"rank 0 on host n0", size == 0 ? peers + 1 : size, milliseconds(1000), std::move(list)};
}

Ranks sorted(Ranks ranks) {
  std::ranges::sort(ranks);
  return ranks;
}

TEST(FailureDetector, NamesTheRankThatDoesNotAnswer) {
  FailureDetector detector = patrol_of(2);
  EXPECT_EQ(sorted(detector.begin()), (Ranks{1, 2}));
  detector.note_alive(1, 3);
  for (int i = 0; i < 3; ++i) {
    static_cast<void>(detector.tick(kTick, kTick));
    detector.note_alive(1, 3);
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

TEST(FailureDetector, WaitsLongerOnACrowdedHost) {
  FailureDetector detector = patrol_of(1);
  static_cast<void>(detector.begin());
  for (int i = 0; i < 4; ++i) static_cast<void>(detector.tick(kTick, kTick));
  EXPECT_TRUE(detector.silent("call 1"));
  EXPECT_FALSE(detector.silent("call 1", milliseconds(200)));
}

// Its probes went out late, and the answers come late for the same reason.
TEST(FailureDetector, CountsLessOfAPauseTheLaterItWakes) {
  FailureDetector detector = patrol_of(1);
  static_cast<void>(detector.begin());
  for (int i = 0; i < 6; ++i) static_cast<void>(detector.tick(2 * kTick, kTick));
  EXPECT_FALSE(detector.silent("call 1"));
  static_cast<void>(detector.tick(2 * kTick, kTick));
  EXPECT_TRUE(detector.silent("call 1"));
}

TEST(FailureDetector, DoesNotBlameOtherRanksForItsOwnPause) {
  FailureDetector detector = patrol_of(1);
  static_cast<void>(detector.begin());
  static_cast<void>(detector.tick(std::chrono::hours(8), kTick));
  EXPECT_FALSE(detector.silent("call 1"));
}

TEST(FailureDetector, ProbesAgainOnlyRanksThatHaveAnswered) {
  FailureDetector detector = patrol_of(2);
  EXPECT_EQ(sorted(detector.begin()), (Ranks{1, 2}));
  detector.note_alive(2, 1);
  EXPECT_EQ(detector.tick(kTick, kTick), (Ranks{2}));
  detector.end();
  EXPECT_EQ(sorted(detector.begin()), (Ranks{1, 2}));
}

TEST(FailureDetector, ProbesTheNeighboursInALargeWorldInTurn) {
  FailureDetector detector = patrol_of(20, 1024);
  std::vector<int> asked(20);
  Ranks now = detector.begin();
  for (int tick = 0; tick < 10; ++tick) {
    EXPECT_EQ(now.size(), 4u);
    for (const int rank : now) {
      ++asked[static_cast<std::size_t>(rank) - 1];
      detector.note_alive(rank);
    }
    now = detector.tick(kTick, kTick);
  }
  EXPECT_EQ(asked, std::vector<int>(20, 2));
}

TEST(FailureDetector, NamesALateRankOfALargeWorldOnceAllHaveAnswered) {
  FailureDetector detector = patrol_of(20, 201);
  for (int rank = 1; rank <= 20; ++rank) detector.note_alive(rank, 7);
  EXPECT_FALSE(detector.late(7, milliseconds(1000), "call 7")) << "not connected to all";
  for (int rank = 21; rank <= 200; ++rank) {
    EXPECT_FALSE(detector.has_peer(rank));
    detector.add({rank, "n" + std::to_string(rank), milliseconds(700)});
  }
  detector.ask_anew();
  int answered = 0;
  for (Ranks now = detector.ask_for_answers(); !now.empty(); now = detector.ask_for_answers()) {
    EXPECT_LE(now.size(), 16u);
    EXPECT_FALSE(detector.late(7, milliseconds(1000), "call 7"));
    answered += static_cast<int>(now.size());
    for (const int rank : now) detector.note_alive(rank, rank == 151 ? 6 : 7);
  }
  EXPECT_EQ(answered, 200);

  const std::optional<Error> error = detector.late(7, milliseconds(1000), "call 7");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->rank, 151);
}

TEST(FailureDetector, FindsARankThatHasLeftWithoutAConnection) {
  FailureDetector detector = patrol_of(20, 201);
  detector.departed(100, "n100", 4);

  const std::optional<Error> error = detector.missing(5, "call 5");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->rank, 100);
  EXPECT_EQ(error->host, "n100");
}

// Its neighbours may have left before its goodbye came, and the call may not need it.
TEST(FailureDetector, NamesARankThatIsGoneWithoutAGoodbyeOnlyAtTheTimeout) {
  FailureDetector detector = patrol_of(2);
  detector.note_alive(1, 5);
  detector.departed(2, "n2", std::nullopt);
  EXPECT_FALSE(detector.missing(5, "call 5"));
  EXPECT_FALSE(detector.late(5, milliseconds(999), "call 5"));

  const std::optional<Error> error = detector.late(5, milliseconds(1000), "call 5");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->message,
            "call 5 made no progress for 1 s while rank 0 on host n0 waited in it; rank 2 on host "
            "n2 is gone, and how many calls it had made is unknown");
  EXPECT_EQ(error->rank, 2);

  detector.departed(2, "n2", 4);  // its goodbye has arrived after all
  ASSERT_TRUE(detector.missing(5, "call 5"));
}

TEST(FailureDetector, NamesTheRankThatLeftTooEarly) {
  FailureDetector detector = patrol_of(2);
  detector.note_alive(1, 5);
  detector.departed(1);
  detector.note_alive(2, 4);
  detector.departed(2);
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
  detector.note_alive(1, 7);
  detector.note_alive(2, 6);  // waits for ranks 3 and 4 itself
  detector.note_alive(3, 5);
  detector.note_alive(4, 5);
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
  detector.note_alive(1, 7);
  detector.note_alive(2, 8);
  EXPECT_FALSE(detector.late(7, milliseconds(999), "call 7"));

  const std::optional<Error> error = detector.late(7, milliseconds(1000), "call 7");

  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kTimeout);
  EXPECT_EQ(
      error->message,
      "call 7 made no progress for 1 s while rank 0 on host n0 waited in it; all ranks answer "
      "and have begun as many calls");
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
