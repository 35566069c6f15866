#include "session/stragglers.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <fstream>
#include <sstream>
#include <thread>

#include "session/coordinator.h"
#include "session/session_fixture.h"
#include "tcp/tcp_backend.h"
#include "tcp/test_world.h"

namespace muster::collective::session {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

const Deadline kZero{std::chrono::minutes(2)};
const std::vector<std::string> kHosts{"a", "b", "c"};

// 100 operations in ten seconds, for each of which the others wait for `rank`.
void wait_for(Stragglers& stragglers, int rank, milliseconds each, Deadline begin = kZero) {
  stragglers.completed((rank + 1) % 3, begin, begin);
  for (int i = 1; i <= 100; ++i) {
    const Deadline now = begin + i * milliseconds(100);
    stragglers.completed(rank, now - each, now);
  }
}

LinkReport report_of(std::vector<LinkUse> links) {
  return {.window = seconds(10), .links = std::move(links)};
}

LinkUse use(int to, int megabytes, milliseconds busy) {
  return {.to = to, .bytes = static_cast<std::uint64_t>(megabytes) * 1'000'000, .busy = busy};
}

TEST(Stragglers, NameARankThatTheOthersWaitFor) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 2, milliseconds(46));
  EXPECT_FALSE(stragglers.judge(kZero + milliseconds(9'999)));
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness && slowness->slow_rank);
  EXPECT_TRUE(slowness->slow_rank_is_new);
  const std::vector<Finding> found = findings(*slowness, kHosts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_STREQ(found[0].what, "SLOW_RANK");
  EXPECT_EQ(found[0].sentence,
            "rank 2 on host c is slow: the other ranks waited for it in 46 % of the last 10 s; it "
            "was the last rank of 100 of 101 operations, 46 ms after the others on average");
  EXPECT_EQ(metrics(*slowness), (std::vector<std::string>{"rank=2 waited_for_percent=46.0",
                                                          "rank=0 waited_for_percent=0.0"}));
}

TEST(Stragglers, CountOverlappingWaitsOnce) {
  Stragglers stragglers(2, seconds(10));
  for (int i = 0; i < 50; ++i) {
    const Deadline now = kZero + milliseconds(i);
    stragglers.completed(1, now - seconds(3), now);
  }
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness);
  EXPECT_NEAR(slowness->ranks.at(0).share, 0.0049, 0.0001);  // the window began at kZero
}

TEST(Stragglers, DoNotNameRanksThatTakeTurns) {
  Stragglers stragglers(2, seconds(10));
  for (int i = 0; i < 100; ++i) {
    const Deadline now = kZero + i * milliseconds(100);
    stragglers.completed(i % 2, now - milliseconds(90), now);
  }
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness);
  EXPECT_FALSE(slowness->slow_rank);
  EXPECT_NEAR(slowness->ranks.at(0).share, 0.45, 0.02);
}

// A loop of barriers does nothing but wait for the rank with the longest way.
TEST(Stragglers, DoNotNameARankThatIsLastByLittle) {
  Stragglers stragglers(2, seconds(1));
  for (int i = 0; i < 10'000; ++i) {
    const Deadline now = kZero + i * microseconds(100);
    stragglers.completed(1, now - microseconds(80), now);
  }
  const auto slowness = stragglers.judge(kZero + seconds(1));
  ASSERT_TRUE(slowness);
  EXPECT_GT(slowness->ranks.at(0).share, 0.5);
  EXPECT_FALSE(slowness->slow_rank);
}

TEST(Stragglers, NameARankAgainOnlyAfterAWindowWithoutIt) {
  Stragglers stragglers(3, seconds(10));
  const auto judge = [&](int window, int rank, int waited) {
    const Deadline begin = kZero + window * seconds(10);
    wait_for(stragglers, rank, milliseconds(waited), begin);
    return *stragglers.judge(begin + seconds(10));
  };
  EXPECT_TRUE(judge(0, 2, 50).slow_rank_is_new);
  EXPECT_FALSE(judge(1, 2, 50).slow_rank_is_new);
  EXPECT_TRUE(judge(2, 1, 50).slow_rank_is_new);
  EXPECT_FALSE(judge(3, 1, 5).slow_rank);
  EXPECT_TRUE(judge(4, 1, 50).slow_rank_is_new);
}

TEST(Stragglers, NeverJudgeWithoutAWindow) {
  Stragglers stragglers(3, milliseconds(0));
  wait_for(stragglers, 2, milliseconds(50));
  EXPECT_FALSE(stragglers.judge(kZero + seconds(100)));
}

// A ring: all links carry the same, and the slow one alone is busy all the time.
TEST(Stragglers, NameALinkThatTheOthersWaitFor) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 0, milliseconds(0));
  stragglers.take(0, report_of({use(1, 118, milliseconds(1'000))}));
  stragglers.take(1, report_of({use(2, 118, milliseconds(9'800))}));
  stragglers.take(2, report_of({use(0, 118, milliseconds(1'000))}));
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness);
  const std::vector<Finding> found = findings(*slowness, kHosts);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_STREQ(found[0].what, "SLOW_LINK");
  EXPECT_EQ(found[0].sentence,
            "the link from rank 1 on host b to rank 2 on host c is slow: 12 MB/s in the last 10 s, "
            "while other links reach 118 MB/s; it was busy for 98 % of the time");
  EXPECT_EQ(metrics(*slowness).back(),
            "rank=2 slowest_link_to_rank=0 slowest_link_bytes_per_second=118000000");
}

TEST(Stragglers, DoNotNameTheReceiverOfASlowLink) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 2, milliseconds(50));
  stragglers.take(0, report_of({use(1, 118, milliseconds(1'000))}));
  stragglers.take(1, report_of({use(2, 118, milliseconds(9'800))}));
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness);
  EXPECT_TRUE(slowness->slow_link);
  EXPECT_FALSE(slowness->slow_rank);
}

TEST(Stragglers, CompareALinkOnlyWithLinksThatCarryAsMuch) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 0, milliseconds(0));
  // Few bytes, with a pause after each: the time on the way is that of acknowledgements.
  stragglers.take(0, report_of({use(1, 2, milliseconds(100))}));
  stragglers.take(1, report_of({use(2, 900, milliseconds(9'000))}));
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness);
  EXPECT_FALSE(slowness->slow_link);
}

// Measured between namespaces: the port of rank 1 sends at a tenth of the others' speed, and the
// acknowledgements that it sends are late.
TEST(Stragglers, NameALinkOfASlowPortThatDelaysTheOtherDirection) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 0, milliseconds(0));
  const auto links = [](int to, double speed, int other, double others_speed) {
    const auto busy = [](double megabytes_per_second) {
      return milliseconds(static_cast<int>(20'000 / megabytes_per_second));
    };
    return report_of({use(to, 20, busy(speed)), use(other, 20, busy(others_speed))});
  };
  stragglers.take(0, links(1, 4.2, 2, 48));
  stragglers.take(1, links(0, 2.34, 2, 2.35));
  stragglers.take(2, links(1, 4.5, 0, 49));
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness && slowness->slow_link);
  EXPECT_EQ(slowness->slow_link->from, 1);
  EXPECT_NEAR(slowness->usual_bytes_per_second, 49e6, 1e6);
}

TEST(Stragglers, DoNotNameALinkThatIsIdle) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 0, milliseconds(0));
  stragglers.take(0, report_of({use(1, 10, milliseconds(4'000)), use(2, 10, milliseconds(10))}));
  const auto slowness = stragglers.judge(kZero + seconds(10));
  ASSERT_TRUE(slowness);
  EXPECT_FALSE(slowness->slow_link);
}

TEST(Stragglers, IgnoreLinksToRanksThatDoNotExist) {
  Stragglers stragglers(3, seconds(10));
  wait_for(stragglers, 0, milliseconds(0));
  stragglers.take(0, report_of({use(3, 10, seconds(9)), use(-1, 10, seconds(9))}));
  EXPECT_TRUE(stragglers.judge(kZero + seconds(10))->links.empty());
}

TEST(Stragglers, ReceiveLinksFromTheCoordinator) {
  Coordinator coordinator({"a", "b"}, 1000);
  coordinator.watch_for_stragglers(seconds(10));
  const Request barrier{.call = {.kind = CallKind::kBarrier}};
  EXPECT_TRUE(coordinator.take(0, encode_new("b", barrier), kZero));
  EXPECT_TRUE(coordinator.take(1, encode_new("b", barrier), kZero + seconds(4)));
  EXPECT_TRUE(coordinator.take(1, encode(report_of({use(0, 10, milliseconds(100))})), kZero));
  EXPECT_FALSE(coordinator.take(1, ByteView(encode(report_of({use(0, 1, {})}))).first(20), kZero));
  const auto slowness = coordinator.judge(kZero + seconds(14));
  ASSERT_TRUE(slowness);
  EXPECT_EQ(slowness->ranks.at(0).rank, 1);
  EXPECT_EQ(slowness->ranks.at(0).mean, seconds(4));
  EXPECT_EQ(slowness->links.at(0).from, 1);
}

// The report of rank 0 that begins with `expected`, and how the other ranks learn that it has come:
// the result of the last operation of each round. On a busy machine, other reports may come before.
struct Report {
  std::string expected;
  std::string text = {};  // of the last report
  std::atomic<bool> has_come{false};
  const Deadline limit = Clock::now() + 2 * testing::kPatience;
};

SessionOptions reporting_to(Report& report) {
  SessionOptions options;
  options.slow_window = milliseconds(200);
  options.on_slow = [&report](const std::string& sentence) {
    if (report.has_come) return;
    report.text = sentence;
    report.has_come = sentence.starts_with(report.expected);
  };
  return options;
}

bool is_over(Session& session, const Report& report) {
  const bool ends = session.rank() == 0 && (report.has_come || Clock::now() > report.limit);
  std::vector<float> over{ends ? 1.F : 0.F};
  EXPECT_OK(sum(session, "over", over));
  return over[0] > 0;
}

class StragglersTest : public SessionTest {};

TEST_P(StragglersTest, ASlowRankIsReported) {
  Report report{.expected = "rank 1 on host host-1 is slow: the other ranks waited for it"};
  run(
      3,
      [&](Session& session) {
        do {
          for (int i = 0; i < 10; ++i) {
            // What makes the rank slow.
            if (session.rank() == 1) std::this_thread::sleep_for(milliseconds(5));
            EXPECT_OK(session.wait(ticket_of(session.barrier("b"))));
          }
        } while (!is_over(session, report));
      },
      reporting_to(report));
  EXPECT_TRUE(report.has_come) << report.text;
}

// In shared memory the hand-overs of the other ranks lie in the rings until rank 0 executes the
// operation, which is when its own hand-over comes.
TEST_P(StragglersTest, ReportsASlowRank0ThatHandsOverAndExecutesInOneCall) {
  Report report{.expected = "rank 0 on host host-0 is slow: the other ranks waited for it"};
  run(
      3,
      [&](Session& session) {
        do {
          for (int i = 0; i < 10; ++i) {
            // What makes the rank slow.
            if (session.rank() == 0) std::this_thread::sleep_for(milliseconds(5));
            Ticket pending;
            const auto outcome =
                session.run([&] { return session.barrier("b"); }, std::nullopt, pending);
            ASSERT_TRUE(outcome);
            EXPECT_OK(*outcome);
          }
        } while (!is_over(session, report));
      },
      reporting_to(report));
  EXPECT_TRUE(report.has_come) << report.text;
}
INSTANTIATE_SESSION_TEST(StragglersTest);

// The kernel sends at most 8 MB a second over this link.
void slow_down(const testing::Worlds& worlds, std::size_t from, std::size_t to) {
  const std::uint64_t rate = 8'000'000;
  for (const Descriptor& socket : worlds[from]->streams[to].sockets) {
    ASSERT_EQ(::setsockopt(socket.get(), SOL_SOCKET, SO_MAX_PACING_RATE, &rate, sizeof rate), 0);
  }
}

class StragglersOverTcp : public ::testing::TestWithParam<int> {};

TEST_P(StragglersOverTcp, ASlowLinkIsReportedAndMarkedInTheTimeline) {
  const int size = GetParam();
  const testing::Worlds worlds =
      testing::make_worlds({.size = size, .streams = 1, .algorithm = "ring"});
  slow_down(worlds, static_cast<std::size_t>(size) - 2, static_cast<std::size_t>(size) - 1);
  const std::string path = ::testing::TempDir() + "slow-link-" + std::to_string(::getpid());
  const std::string from = std::to_string(size - 2);
  const std::string to = std::to_string(size - 1);
  Report report{.expected = "the link from rank " + from + " on host host-" + from + " to rank " +
                            to + " on host host-" + to + " is slow: "};
  testing::on_all(worlds, [&](World& world) {
    tcp::TcpBackend backend(world, tcp::TcpBackend::Probing::kNever);
    SessionOptions options = reporting_to(report);
    if (world.rank == 0) options.timeline = path;
    Result<Session> session = start_session({.world = world, .backend = &backend}, options);
    ASSERT_TRUE(session) << session.error().to_string();
    std::vector<float> values(1 << 16);
    do {
      EXPECT_OK(sum(*session, "w", values));
    } while (!is_over(*session, report));
  });
  EXPECT_TRUE(report.has_come) << report.text;
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  EXPECT_NE(text.str().find(R"("name":"SLOW_LINK")"), std::string::npos);
  ::unlink(path.c_str());
}
INSTANTIATE_TEST_SUITE_P(Sizes, StragglersOverTcp, ::testing::Values(2, 3));

}  // namespace
}  // namespace muster::collective::session
