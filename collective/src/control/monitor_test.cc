#include "control/monitor.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <mutex>
#include <thread>

#include "control/frame.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kPatience{30'000};

// The connections of a world, made before any monitor: cables[a][b] is a's end of its connection to
// b.
using Cables = std::vector<std::vector<Descriptor>>;

Cables cables_of(std::size_t size) {
  Cables cables(size);
  for (auto& ends : cables) ends.resize(size);
  for (std::size_t a = 0; a < size; ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      std::array<int, 2> fds = {};
      EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()),
                0);
      cables[a][b] = Descriptor(fds[0]);
      cables[b][a] = Descriptor(fds[1]);
    }
  }
  return cables;
}

std::string host_of(std::size_t rank) {
  return "n" + std::to_string(rank);
}

std::unique_ptr<Monitor> monitor_of(Cables& cables, std::size_t rank,
                                    milliseconds timeout = kPatience,
                                    milliseconds silence = MonitorOptions().silence_on_host) {
  std::vector<Link> links;
  for (std::size_t other = 0; other < cables.size(); ++other) {
    if (other == rank) continue;
    links.push_back(
        {static_cast<int>(other), host_of(other), true, std::move(cables[rank][other])});
  }
  MonitorOptions options;
  options.rank = static_cast<int>(rank);
  options.host = host_of(rank);
  options.timeout = timeout;
  options.silence_on_host = silence;
  return std::make_unique<Monitor>(std::move(options), std::move(links));
}

// All of these ranks are alive, but on a busy machine they may be silent for long.
std::vector<std::unique_ptr<Monitor>> world_of(std::size_t size, milliseconds timeout = kPatience) {
  Cables cables = cables_of(size);
  std::vector<std::unique_ptr<Monitor>> monitors;
  for (std::size_t rank = 0; rank < size; ++rank) {
    monitors.push_back(monitor_of(cables, rank, timeout, kPatience));
  }
  return monitors;
}

Error failure_of(Monitor& monitor) {
  pollfd entry = {monitor.failure_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, static_cast<int>(kPatience.count())), 1) << "the world did not fail";
  EXPECT_TRUE(monitor.failed());
  return monitor.failure();
}

TEST(Monitor, SendsTheFirstFailureToAllRanksAndKeepsIt) {
  auto world = world_of(3);
  const Error first{ErrorCode::kMismatch, "the first", "do better", 1, "n1"};
  EXPECT_FALSE(world[0]->failed());

  EXPECT_EQ(world[1]->fail(first).message, "the first");
  EXPECT_EQ(world[1]->fail({ErrorCode::kSystem, "the second"}).message, "the first");

  for (const auto& monitor : world) {
    const Error error = failure_of(*monitor);
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_EQ(error.to_string(), "the first; do better");
    EXPECT_EQ(error.rank, 1);
    EXPECT_EQ(error.host, "n1");
  }
}

TEST(Monitor, NamesTheRankWhoseConnectionEndsWithoutAGoodbye) {
  Cables cables = cables_of(3);
  auto zero = monitor_of(cables, 0);
  auto two = monitor_of(cables, 2);
  cables[1].clear();
  for (Monitor* const monitor : {zero.get(), two.get()}) {
    const Error error = failure_of(*monitor);
    EXPECT_EQ(error.code, ErrorCode::kPeerLost);
    EXPECT_TRUE(error.message.starts_with("rank 1 on host n1 is gone: its connection to rank "))
        << error.message;
    EXPECT_EQ(error.rank, 1);
    EXPECT_EQ(error.host, "n1");
  }
}

TEST(Monitor, NamesTheCallInWhichARankWasLost) {
  Cables cables = cables_of(2);
  auto zero = monitor_of(cables, 0);
  zero->entered(3);
  const Monitor::Watch watch(*zero, "call 3 (barrier)");
  cables[1].clear();
  const std::string message = failure_of(*zero).message;
  EXPECT_TRUE(message.ends_with(") in call 3 (barrier)")) << message;
}

TEST(Monitor, FailsOnBytesThatAreNotAFrame) {
  Cables cables = cables_of(2);
  auto zero = monitor_of(cables, 0);
  ASSERT_EQ(send_some(cables[1][0], view_of("GET / HTTP/1.1\r\n")).bytes, 16u);
  EXPECT_EQ(failure_of(*zero).rank, 1);
}

TEST(Monitor, DoesNotTreatAGoodbyeAsAFailure) {
  auto world = world_of(3);
  for (const auto& monitor : world) monitor->entered(5);
  const Monitor::Watch watch(*world[0], "call 5 (barrier)");
  for (const std::size_t leaving : {1, 2}) {
    world[leaving].reset();
    while (world[0]->departed().size() < leaving) std::this_thread::yield();
  }
  EXPECT_EQ(world[0]->departed(), (std::vector<int>{1, 2}));
  EXPECT_FALSE(world[0]->failed());
}

TEST(Monitor, NamesARankThatHasLeftBeforeTheCall) {
  auto world = world_of(2);
  world[1]->entered(4);
  world[1].reset();
  world[0]->entered(5);
  const Monitor::Watch watch(*world[0], "call 5 (barrier)");

  const Error error = failure_of(*world[0]);

  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_EQ(error.message,
            "rank 1 on host n1 has left, but rank 0 on host n0 still waits for it in call 5 "
            "(barrier)");
}

TEST(Monitor, NamesLateRanksAfterTheTimeout) {
  auto world = world_of(4, milliseconds(300));
  world[0]->entered(2);
  world[1]->entered(1);
  world[2]->entered(2);
  world[3]->entered(1);
  const Monitor::Watch watch(*world[0], "call 2 (barrier)");
  for (const auto& monitor : world) {
    const Error error = failure_of(*monitor);
    EXPECT_EQ(error.code, ErrorCode::kTimeout);
    EXPECT_EQ(error.message,
              "rank 1 on host n1, rank 3 on host n3 did not enter call 2 (barrier) within 0.3 s "
              "while rank 0 on host n0 waited in it");
    EXPECT_EQ(error.rank, 1);
  }
}

TEST(Monitor, EndsACallThatAllHaveEnteredButThatMakesNoProgress) {
  auto world = world_of(2, milliseconds(300));
  world[0]->entered(2);
  world[1]->entered(2);
  const Monitor::Watch watch(*world[0], "call 2 (barrier)");
  for (const auto& monitor : world) {
    const Error error = failure_of(*monitor);
    EXPECT_EQ(error.code, ErrorCode::kTimeout);
    EXPECT_TRUE(error.message.starts_with("call 2 (barrier) made no progress for 0.3 s"))
        << error.message;
  }
}

// A renewed watch, of calls that end and begin, does not hide a call that makes no progress.
TEST(Monitor, EndsACallWithoutProgressBesideAWatchThatIsRenewed) {
  auto world = world_of(2, milliseconds(300));
  Monitor::Watch renewed(*world[0], "other calls");
  const Monitor::Watch watch(*world[0], "call 2 (barrier)");
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!world[0]->failed() && std::chrono::steady_clock::now() < limit) {
    renewed.renew();
    std::this_thread::yield();
  }
  EXPECT_EQ(failure_of(*world[0]).code, ErrorCode::kTimeout);
}

// A rank that is a process of its own. Made before the test has threads.
class MonitorProcess {
 public:
  MonitorProcess(Cables& cables, std::size_t rank) {
    pid_ = ::fork();
    if (pid_ == 0) {
      [[maybe_unused]] const auto monitor = monitor_of(cables, rank);
      cables.clear();
      ::pause();
      ::_exit(1);
    }
    cables[rank].clear();
  }
  ~MonitorProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  MonitorProcess(const MonitorProcess&) = delete;
  MonitorProcess& operator=(const MonitorProcess&) = delete;
  void signal(int number) const { ::kill(pid_, number); }
  void wait_until_stopped() const { ::waitpid(pid_, nullptr, WUNTRACED); }

 private:
  pid_t pid_;
};

TEST(Monitor, SoonNamesAStoppedRankOfItsHost) {
  Cables cables = cables_of(3);
  const MonitorProcess victim(cables, 1);
  auto zero = monitor_of(cables, 0);
  auto two = monitor_of(cables, 2);
  victim.signal(SIGSTOP);
  victim.wait_until_stopped();
  zero->entered(1);
  const Monitor::Watch watch(*zero, "call 1 (barrier)");

  const Error error = failure_of(*zero);

  EXPECT_EQ(error.code, ErrorCode::kTimeout);
  EXPECT_TRUE(error.message.starts_with("rank 1 on host n1 did not answer for ")) << error.message;
  EXPECT_EQ(failure_of(*two).message, error.message);
}

TEST(Monitor, NamesAKilledRank) {
  Cables cables = cables_of(2);
  const MonitorProcess victim(cables, 1);
  auto zero = monitor_of(cables, 0);
  victim.signal(SIGKILL);
  EXPECT_EQ(failure_of(*zero).rank, 1);
}

TEST(Monitor, CarriesMessagesInTheOrderOfEachSender) {
  constexpr int kMessages = 1000;
  auto world = world_of(3);
  std::array<int, 3> next = {};
  std::atomic<int> came = 0;
  world[0]->handle(Topic::kSession, [&](int from, Bytes payload) {
    ByteReader reader(payload);
    EXPECT_EQ(reader.number<int>(), next[static_cast<std::size_t>(from)]++);
    if (++came == 2 * kMessages) came.notify_all();
  });
  std::vector<std::jthread> senders;
  for (const std::size_t sender : {1, 2}) {
    senders.emplace_back([&, sender] {
      for (int i = 0; i < kMessages; ++i) {
        world[sender]->send(0, Topic::kSession, ByteWriter().number(i).take());
      }
    });
  }
  for (int now = came; now < 2 * kMessages; now = came) came.wait(now);
  senders.clear();
  world[0]->handle(Topic::kSession, {});
}

TEST(Monitor, KeepsMessagesUntilTheirHandlerIsSet) {
  auto world = world_of(2);
  world[1]->send(0, Topic::kGroup, Bytes(3, std::byte{1}));
  world[1]->send(0, Topic::kSession, Bytes(4, std::byte{2}));
  std::atomic<std::size_t> group = 0;
  std::atomic<std::size_t> session = 0;
  world[0]->handle(Topic::kSession, [&](int, const Bytes& payload) {
    session = payload.size();
    session.notify_all();
  });
  session.wait(0);
  EXPECT_EQ(group, 0u);
  world[0]->handle(Topic::kGroup, [&](int, const Bytes& payload) {
    group = payload.size();
    group.notify_all();
  });
  group.wait(0);
  EXPECT_EQ(group, 3u);
  EXPECT_EQ(session, 4u);
  world[0]->handle(Topic::kGroup, {});
  world[0]->handle(Topic::kSession, {});
}

TEST(Monitor, CarriesMessagesLargerThanSocketBuffersInBothDirections) {
  constexpr std::size_t kEach = 3;
  auto world = world_of(2);
  std::atomic<std::size_t> came = 0;
  for (const std::size_t rank : {0, 1}) {
    world[rank]->handle(Topic::kSession, [&](int, const Bytes& payload) {
      EXPECT_EQ(payload, Bytes(kLargestPayload, std::byte{9}));
      ++came;
      came.notify_all();
    });
  }
  for (std::size_t i = 0; i < kEach; ++i) {
    for (const std::size_t rank : {0, 1}) {
      world[rank]->send(1 - static_cast<int>(rank), Topic::kSession,
                        Bytes(kLargestPayload, std::byte{9}));
    }
  }
  for (std::size_t now = came; now < 2 * kEach; now = came) came.wait(now);
  for (const auto& monitor : world) monitor->handle(Topic::kSession, {});
}

TEST(Monitor, FailsOnAMessageThatIsTooLong) {
  auto world = world_of(2);
  world[0]->send(1, Topic::kSession, Bytes(kLargestPayload + 1));
  EXPECT_EQ(failure_of(*world[1]).message,
            "a message of 16777217 bytes is too long to be sent between ranks");
}

TEST(Monitor, WakesEachSubscriberOnceAndNotAfterUnsubscribing) {
  auto world = world_of(2);
  std::atomic<int> woken = 0;
  std::atomic<int> not_woken = 0;
  const auto wake = [&] {
    ++woken;
    woken.notify_all();
  };
  static_cast<void>(world[0]->on_failure(wake));
  const auto gone = world[0]->on_failure([&] { ++not_woken; });
  world[0]->unsubscribe(gone);
  world[1]->fail({ErrorCode::kSystem, "no more"});
  woken.wait(0);
  // Late subscribers are woken as well. A second failure wakes no subscriber.
  static_cast<void>(world[0]->on_failure(wake));
  woken.wait(1);
  world[0]->fail({ErrorCode::kSystem, "again"});
  world[0].reset();
  EXPECT_EQ(woken, 2);
  EXPECT_EQ(not_woken, 0);
}

TEST(Monitor, UnsubscribingWaitsForARunningWake) {
  for (int round = 0; round < 100; ++round) {
    auto world = world_of(2);
    auto flag = std::make_unique<std::atomic<int>>(0);
    const auto id = world[0]->on_failure([&flag] { ++*flag; });
    std::jthread other([&] { world[0]->fail({ErrorCode::kSystem, "now"}); });
    world[0]->unsubscribe(id);
    flag.reset();  // a wake after this point would touch freed memory
  }
}

TEST(Monitor, AnswersAndForwardsAfterItHasFailed) {
  Cables cables = cables_of(2);
  auto zero = monitor_of(cables, 0);
  zero->fail({ErrorCode::kSystem, "no more"});
  ASSERT_TRUE(
      send_all(cables[1][0], encode(Frame{.kind = FrameKind::kProbe}), Clock::now() + kPatience));
  FrameReader reader;
  bool answered = false;
  while (!answered) {
    std::array<std::byte, 12> bytes;
    ASSERT_TRUE(receive_all(cables[1][0], std::span(bytes).first(1), Clock::now() + kPatience));
    reader.feed(std::span(bytes).first(1));
    if (const auto frame = reader.next()) answered = frame->kind == FrameKind::kAlive;
  }
}

TEST(Monitor, OfManyRanksInOneProcessKeepsOneFailureOnEachRank) {
  auto world = world_of(16);
  std::vector<std::jthread> ranks;
  for (std::size_t rank = 0; rank < world.size(); ++rank) {
    ranks.emplace_back([&, rank] {
      world[rank]->entered(1);
      const Monitor::Watch watch(*world[rank], "call 1");
      if (rank % 5 == 0) world[rank]->fail({ErrorCode::kSystem, "failed at " + host_of(rank)});
      EXPECT_TRUE(failure_of(*world[rank]).message.starts_with("failed at n"));
    });
  }
}

}  // namespace
}  // namespace muster::collective
