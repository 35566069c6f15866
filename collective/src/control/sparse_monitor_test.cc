// Monitors of a world whose control graph is not complete. A rank that dies is a rank without a
// monitor, whose ends of the connections are closed.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <latch>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "control/graph.h"
#include "control/monitor.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;

constexpr int kRanks = 64;
constexpr milliseconds kLongWait{30'000};

std::string name_of_host(int rank) {
  return "n" + std::to_string(rank);
}

std::array<Descriptor, 2> cable() {
  std::array<int, 2> fds = {};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds.data()), 0);
  return {Descriptor(fds[0]), Descriptor(fds[1])};
}

class CableSwitchboard;

// The switchboards of the ranks that can be reached.
struct Hub {
  std::mutex mutex;
  std::map<int, CableSwitchboard*> reachable;
  std::set<std::set<int>> connected;  // later than at the start

  bool has_connected(int a, int b) {
    const std::lock_guard lock(mutex);
    return connected.contains({a, b});
  }
};

class CableSwitchboard final : public Switchboard {
 public:
  CableSwitchboard(Hub& hub, int rank)
      : hub_(hub), rank_(rank), news_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    const std::lock_guard lock(hub_.mutex);
    hub_.reachable[rank_] = this;
  }
  ~CableSwitchboard() override {
    const std::lock_guard lock(hub_.mutex);
    hub_.reachable.erase(rank_);
  }

  int size() const override { return kRanks; }
  std::string host_of(int rank) const override { return name_of_host(rank); }

  void call(int rank) override {
    const std::lock_guard lock(hub_.mutex);
    const auto other = hub_.reachable.find(rank);
    if (other == hub_.reachable.end()) {
      add({.link = {.rank = rank}, .obstacle = Error{ErrorCode::kSystem, "Connection refused"}});
      return;
    }
    hub_.connected.insert({rank_, rank});
    std::array<Descriptor, 2> ends = cable();
    add({.link = {rank, name_of_host(rank), true, std::move(ends[0])}});
    other->second->add({.link = {rank_, name_of_host(rank_), true, std::move(ends[1])}});
  }

  void prepare(std::vector<pollfd>& entries, Deadline& /*wake*/) override {
    entries.push_back({news_.get(), POLLIN, 0});
  }
  Status attend(std::span<const pollfd> /*entries*/) override { return {}; }
  std::vector<Outcome> take() override {
    const std::lock_guard lock(hub_.mutex);
    eventfd_t count = 0;
    ::eventfd_read(news_.get(), &count);
    return std::exchange(outcomes_, {});
  }

 private:
  void add(Outcome outcome) {
    outcomes_.push_back(std::move(outcome));
    ::eventfd_write(news_.get(), 1);
  }

  Hub& hub_;
  int rank_;
  Descriptor news_;
  std::vector<Outcome> outcomes_;
};

struct Rank {
  std::unique_ptr<CableSwitchboard> switchboard;
  std::unique_ptr<Monitor> monitor;  // destroyed first
};

// A world of kRanks ranks. Those in `without` get no monitor: their ends stay in `loose`, and end
// when it is cleared. On a busy machine, so many ranks may be silent for long.
struct SparseWorld {
  Hub hub = {};
  std::map<int, std::vector<Descriptor>> loose = {};
  std::map<int, Rank> ranks = {};

  explicit SparseWorld(const std::set<int>& without = {}, milliseconds timeout = kLongWait,
                       milliseconds silence = kLongWait) {
    std::map<int, std::vector<Link>> links;
    for (int a = 0; a < kRanks; ++a) {
      for (const int b : neighbours_of(a, kRanks)) {
        if (b < a) continue;
        std::array<Descriptor, 2> ends = cable();
        links[a].push_back({b, name_of_host(b), true, std::move(ends[0])});
        links[b].push_back({a, name_of_host(a), true, std::move(ends[1])});
      }
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      if (without.contains(rank)) {
        for (Link& link : links[rank]) loose[rank].push_back(std::move(link.socket));
        continue;
      }
      MonitorOptions options;
      options.rank = rank;
      options.host = name_of_host(rank);
      options.timeout = timeout;
      options.silence_on_host = silence;
      Rank& made = ranks[rank];
      made.switchboard = std::make_unique<CableSwitchboard>(hub, rank);
      made.monitor =
          std::make_unique<Monitor>(options, std::move(links[rank]), made.switchboard.get());
    }
  }
  ~SparseWorld() {
    // At the same time: a rank that leaves waits for its neighbours.
    std::vector<std::jthread> leaving;
    for (auto& [number, rank] : ranks) leaving.emplace_back([&rank] { rank.monitor.reset(); });
  }
  SparseWorld(const SparseWorld&) = delete;
  SparseWorld& operator=(const SparseWorld&) = delete;

  Monitor& operator[](int rank) { return *ranks[rank].monitor; }

  void leave(int rank) {
    ranks[rank].monitor.reset();
    ranks.erase(rank);
  }
};

Error failure_in(Monitor& monitor) {
  pollfd entry = {monitor.failure_descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&entry, 1, static_cast<int>(kLongWait.count())), 1) << "the world did not fail";
  return monitor.failed() ? monitor.failure() : Error{};
}

void expect_all_to_name(SparseWorld& world, const std::set<int>& dead) {
  for (auto& [number, rank] : world.ranks) {
    const Error error = failure_in(*rank.monitor);
    EXPECT_EQ(error.code, ErrorCode::kPeerLost) << error.message;
    EXPECT_TRUE(dead.contains(error.rank)) << error.message;
    EXPECT_EQ(error.host, name_of_host(error.rank));
  }
}

TEST(SparseMonitor, NamesADeadRankOnAllRanks) {
  SparseWorld world({23});
  world.loose.clear();
  expect_all_to_name(world, {23});
}

TEST(SparseMonitor, NamesOneOfTwoRanksThatDieAtOnce) {
  SparseWorld world({10, 42});
  world.loose.clear();
  expect_all_to_name(world, {10, 42});
}

TEST(SparseMonitor, OfARankWhoseNeighboursAllDieNamesOneOfThem) {
  const std::vector<int> list = neighbours_of(5, kRanks);
  const std::set<int> neighbours(list.begin(), list.end());
  SparseWorld world(neighbours);
  world.loose.clear();
  expect_all_to_name(world, neighbours);
}

TEST(SparseMonitor, SendsTheFirstFailureToAllRanks) {
  SparseWorld world;
  world[7].fail({ErrorCode::kMismatch, "not like this", "do better", 7, "n7"});
  for (auto& [number, rank] : world.ranks) {
    EXPECT_EQ(failure_in(*rank.monitor).to_string(), "not like this; do better");
  }
}

TEST(SparseMonitor, ReportsToAllRanksWhoHasLeftAndDoesNotFail) {
  SparseWorld world;
  for (auto& [number, rank] : world.ranks) rank.monitor->entered(5);
  const Monitor::Watch watch(world[0], "call 5 (barrier)");
  const std::vector<int> leaving = {1, 2, 3, 4, 31, 32, 33, 63};
  for (const int rank : leaving) world.leave(rank);
  for (auto& [number, rank] : world.ranks) {
    while (rank.monitor->departed() != leaving) std::this_thread::sleep_for(milliseconds(1));
    EXPECT_FALSE(rank.monitor->failed());
  }
}

TEST(SparseMonitor, ReportsWhetherARankThatHasLeftHadEnteredMoreCalls) {
  SparseWorld world;
  world[0].entered(5);
  world[21].entered(6);
  world.leave(21);
  while (world[0].departed().empty()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_TRUE(world[0].departed_in_step().empty());
  world[0].entered(6);
  EXPECT_EQ(world[0].departed_in_step(), std::vector<int>{21});
}

// Rank 0 reads the message and the goodbye of rank 1 together, once it has processed that of rank 2.
TEST(SparseMonitor, ReportsWhetherTheMessagesOfARankThatHasLeftWereProcessed) {
  SparseWorld world;
  std::map<int, std::latch> processing;
  std::map<int, std::latch> may_end;
  for (const int rank : {1, 2}) {
    processing.try_emplace(rank, 1);
    may_end.try_emplace(rank, 1);
  }
  world[0].handle(Topic::kMail, [&](int from, const Bytes&) {
    processing.at(from).count_down();
    may_end.at(from).wait();
  });
  world[2].send(0, Topic::kMail, Bytes(1));
  processing.at(2).wait();
  world[1].send(0, Topic::kMail, Bytes(1));
  world.leave(1);
  may_end.at(2).count_down();
  processing.at(1).wait();
  EXPECT_EQ(world[0].departed(), std::vector<int>{1});
  EXPECT_TRUE(world[0].departed_in_step().empty());
  may_end.at(1).count_down();
  while (world[0].departed_in_step().empty()) std::this_thread::sleep_for(milliseconds(1));
  world[0].handle(Topic::kMail, {});
}

TEST(SparseMonitor, NamesARankThatHasLeftBeforeTheCall) {
  SparseWorld world;
  world[21].entered(4);
  world.leave(21);
  world[0].entered(5);
  const Monitor::Watch watch(world[0], "call 5 (barrier)");
  const Error error = failure_in(world[0]);
  EXPECT_EQ(error.code, ErrorCode::kPeerLost);
  EXPECT_EQ(error.message,
            "rank 21 on host n21 has left, but rank 0 on host n0 still waits for it in call 5 "
            "(barrier)");
}

// Rank 30 leaves after its neighbours, so nobody passes its goodbye on. Rank 27 would connect to it,
// but cannot reach it, and waits in a call that rank 30 had entered, too.
TEST(SparseMonitor, DoesNotBlameARankWhoseGoodbyeDidNotArrive) {
  SparseWorld world;
  for (auto& [number, rank] : world.ranks) rank.monitor->entered(5);
  const Monitor::Watch watch(world[27], "call 5 (barrier)");
  const std::vector<int> neighbours = neighbours_of(30, kRanks);
  EXPECT_FALSE(std::ranges::binary_search(neighbours, 27));
  {
    std::vector<std::jthread> leaving;
    for (const int rank : neighbours) {
      leaving.emplace_back([&monitor = world.ranks[rank].monitor] { monitor.reset(); });
    }
  }
  for (const int rank : neighbours) world.ranks.erase(rank);
  world.leave(30);
  const auto has_noticed = [&] {
    return std::ranges::binary_search(world[27].departed(), 30) || world[27].failed();
  };
  while (!has_noticed()) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_FALSE(world[27].failed()) << world[27].failure().message;
}

// The two ranks that stay are no neighbours.
TEST(SparseMonitor, ConnectsTheRanksThatStay) {
  SparseWorld world;
  std::vector<int> leaving;
  for (int rank = 0; rank < kRanks; ++rank) {
    if (rank != 5 && rank != 30) leaving.push_back(rank);
  }
  {
    std::vector<std::jthread> threads;
    for (const int rank : leaving) {
      threads.emplace_back([&monitor = world.ranks[rank].monitor] { monitor.reset(); });
    }
  }
  for (const int rank : leaving) world.ranks.erase(rank);
  while (!world.hub.has_connected(5, 30)) std::this_thread::sleep_for(milliseconds(1));
  world[5].fail({ErrorCode::kSystem, "no more", {}, 5, "n5"});
  EXPECT_EQ(failure_in(world[30]).message, "no more");
}

TEST(SparseMonitor, CarriesMessagesBetweenAnyRanksInTheOrderOfEachSender) {
  constexpr int kMessages = 500;
  SparseWorld world;
  // Pairs that are not neighbours; both send at once.
  const std::vector<std::pair<int, int>> pairs = {{0, 3}, {7, 50}, {20, 45}};
  std::map<int, int> next;
  std::atomic<int> came = 0;
  for (const auto& [a, b] : pairs) {
    EXPECT_FALSE(std::ranges::binary_search(neighbours_of(a, kRanks), b));
    next[a] = next[b] = 0;
  }
  for (auto& [rank, expected] : next) {
    world[rank].handle(Topic::kSession, [&expected = expected, &came](int, const Bytes& payload) {
      ByteReader reader(payload);
      EXPECT_EQ(reader.number<int>(), expected++);
      ++came;
      came.notify_all();
    });
  }
  std::vector<std::jthread> senders;
  for (const auto& [a, b] : pairs) {
    for (const auto& [from, to] : {std::pair{a, b}, std::pair{b, a}}) {
      senders.emplace_back([&world, from = from, to = to] {
        for (int i = 0; i < kMessages; ++i) {
          world[from].send(to, Topic::kSession, ByteWriter().number(i).take());
        }
      });
    }
  }
  const int all = static_cast<int>(2 * pairs.size()) * kMessages;
  for (int now = came; now < all; now = came) came.wait(now);
  senders.clear();
  for (const auto& [rank, expected] : next) world[rank].handle(Topic::kSession, {});
}

TEST(SparseMonitor, CarriesAMessageToAllRanksOnce) {
  SparseWorld world;
  std::atomic<int> came = 0;
  std::array<std::atomic<int>, kRanks> last = {};
  for (auto& [number, rank] : world.ranks) {
    rank.monitor->handle(Topic::kMail, [&, number = number](int from, const Bytes& payload) {
      EXPECT_EQ(from, 9);
      EXPECT_EQ(static_cast<int>(payload.size()), ++last[static_cast<std::size_t>(number)]);
      ++came;
      came.notify_all();
    });
  }
  for (std::size_t length = 1; length <= 3; ++length) {
    world[9].send_to_all(Topic::kMail, Bytes(length));
  }
  for (int now = came; now < 3 * (kRanks - 1); now = came) came.wait(now);
  for (auto& [number, rank] : world.ranks) {
    rank.monitor->handle(Topic::kMail, {});
    EXPECT_EQ(last[static_cast<std::size_t>(number)], number == 9 ? 0 : 3);
  }
}

TEST(SparseMonitor, SettlesOnceItsMessagesHaveArrived) {
  SparseWorld world;
  std::vector<std::string> received;
  std::mutex mutex;
  world[50].handle(Topic::kMail, [&](int from, const Bytes& payload) {
    const std::lock_guard lock(mutex);
    received.push_back(std::to_string(from) + (payload.size() == 1 ? " leaves" : " writes"));
  });
  world[7].send(50, Topic::kMail, Bytes(2));
  world[7].settle();
  world[7].send_to_all(Topic::kMail, Bytes(1));
  for (std::size_t count = 0; count < 2;) {
    std::this_thread::sleep_for(milliseconds(1));
    const std::lock_guard lock(mutex);
    count = received.size();
  }
  EXPECT_EQ(received, (std::vector<std::string>{"7 writes", "7 leaves"}));
  world[50].handle(Topic::kMail, {});
}

TEST(SparseMonitor, NamesARankThatCannotBeReachedForAMessage) {
  SparseWorld world({50});
  world[7].send(50, Topic::kMail, Bytes(2));
  const Error error = failure_in(world[7]);
  EXPECT_EQ(error.message,
            "rank 50 on host n50 and rank 7 on host n7 did not connect: Connection refused");
  EXPECT_EQ(error.rank, 50);
}

// The rank that waits is no neighbour of the silent one: its neighbours probe on its behalf.
TEST(SparseMonitor, NamesASilentRankThatIsFarFromTheOneThatWaits) {
  SparseWorld world({21}, kLongWait, MonitorOptions().silence_on_host);
  const std::vector<int> neighbours = neighbours_of(0, kRanks);
  ASSERT_FALSE(std::ranges::binary_search(neighbours, 21));
  world[0].entered(1);
  const Monitor::Watch watch(world[0], "call 1 (barrier)");
  for (auto& [number, rank] : world.ranks) {
    const Error error = failure_in(*rank.monitor);
    EXPECT_EQ(error.code, ErrorCode::kTimeout);
    EXPECT_TRUE(error.message.starts_with("rank 21 on host n21 did not answer for "))
        << error.message;
  }
}

TEST(SparseMonitor, NamesLateRanksAfterTheTimeout) {
  SparseWorld world({}, milliseconds(300));
  for (auto& [number, rank] : world.ranks)
    rank.monitor->entered(number == 21 || number == 50 ? 1 : 2);
  const Monitor::Watch watch(world[0], "call 2 (barrier)");
  for (auto& [number, rank] : world.ranks) {
    const Error error = failure_in(*rank.monitor);
    EXPECT_EQ(error.code, ErrorCode::kTimeout);
    EXPECT_EQ(
        error.message,
        "rank 21 on host n21, rank 50 on host n50 did not enter call 2 (barrier) within 0.3 s "
        "while rank 0 on host n0 waited in it");
    EXPECT_EQ(error.rank, 21);
  }
}

}  // namespace
}  // namespace muster::collective
