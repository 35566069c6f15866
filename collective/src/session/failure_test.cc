// The errors on other ranks when a rank dies, is stopped or is late, and the cost of an idle
// session.
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <csignal>
#include <future>
#include <latch>
#include <mutex>
#include <thread>
#include <utility>

#include "session/engine.h"
#include "session/session_world.h"
#include "session/silent_channel.h"
#include "transport/socket.h"
#include "world/join.h"

namespace muster::collective::session {
namespace {

using testing::on_threads;

// One rank as a process. Must be made before the test has threads.
class Process {
 public:
  Process(const Options& options, const std::function<void(World&)>& body) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    Result<std::unique_ptr<World>> world = join(options, session_memory);
    if (world) body(**world);
    ::_exit(1);
  }
  ~Process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

 private:
  pid_t pid_;
};

// A world whose silent ranks are detected soon.
std::vector<Options> hasty_world(int size) {
  std::vector<Options> options = testing::world_of(size);
  for (Options& each : options) each.silence.reset();
  return options;
}

// The victim takes part in one operation, and ends by `signal` while the other ranks have a pending
// operation.
void run_with_victim(Over over, int signal, int victim, ErrorCode code) {
  constexpr int kSize = 3;
  const std::vector<Options> options =
      signal == SIGSTOP ? hasty_world(kSize) : testing::world_of(kSize);
  Process process(options[static_cast<std::size_t>(victim)], [&](World& world) {
    const std::unique_ptr<Session> session = session_of(world, over);
    if (session) static_cast<void>(session->wait(*session->barrier("first")));
    ::raise(signal);
  });
  if (victim == 0) Descriptor(options[0].listener).close();
  std::atomic<int> failed = 0;
  on_threads(kSize, [&](int rank) {
    if (rank == victim) return;
    Result<std::unique_ptr<World>> world =
        join(options[static_cast<std::size_t>(rank)], session_memory);
    ASSERT_TRUE(world) << world.error().to_string();
    {
      const std::unique_ptr<Session> session = session_of(**world, over);
      ASSERT_NE(session, nullptr);
      static_cast<void>(session->wait(*session->barrier("first")));
      for (const char* name : {"x", "later"}) {
        const Status status = session->wait(*session->barrier(name));
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, code) << status.error().to_string();
        EXPECT_EQ(status.error().rank, victim) << status.error().to_string();
        ++failed;
      }
      // A callback gets the error as well.
      std::promise<bool> called;
      session->when_done(*session->barrier("callback"), [&](const Status& status) {
        called.set_value(static_cast<bool>(status));
      });
      EXPECT_FALSE(called.get_future().get());
    }
  });
  EXPECT_EQ(failed, 4);
}

TEST(SessionFailure, OfAKilledRankIsNamedByAllOtherRanks) {
  for (const Over over : {Over::kSharedMemory, Over::kMessages}) {
    for (const int victim : {0, 2}) run_with_victim(over, SIGKILL, victim, ErrorCode::kPeerLost);
  }
}

TEST(SessionFailure, OfAStoppedRankIsNamedByAllOtherRanks) {
  for (const Over over : {Over::kSharedMemory, Over::kMessages}) {
    for (const int victim : {0, 2}) run_with_victim(over, SIGSTOP, victim, ErrorCode::kTimeout);
  }
}

TEST(SessionFailure, OfAStoppedRankReachesACallback) {
  const std::vector<Options> options = hasty_world(2);
  Process process(options[1], [&](World& world) {
    const std::unique_ptr<Session> session = session_of(world, Over::kSharedMemory);
    if (session) static_cast<void>(session->wait(*session->barrier("first")));
    ::raise(SIGSTOP);
  });
  Result<std::unique_ptr<World>> world = join(options[0], session_memory);
  ASSERT_TRUE(world);
  const std::unique_ptr<Session> session = session_of(**world, Over::kSharedMemory);
  ASSERT_NE(session, nullptr);
  static_cast<void>(session->wait(*session->barrier("first")));
  std::promise<bool> called;
  session->when_done(*session->barrier("x"),
                     [&](const Status& status) { called.set_value(static_cast<bool>(status)); });
  EXPECT_FALSE(called.get_future().get());
}

// Each wait is over before the waiting thread itself would have the other ranks probed, so the
// session's thread has to.
TEST(SessionFailure, OfAStoppedRankReachesAThreadThatWaitsInSlices) {
  const std::vector<Options> options = hasty_world(2);
  Process process(options[0], [&](World& world) {
    const std::unique_ptr<Session> session = session_of(world, Over::kSharedMemory);
    if (session) static_cast<void>(session->wait(*session->barrier("first")));
    ::raise(SIGSTOP);
  });
  Descriptor(options[0].listener).close();
  Result<std::unique_ptr<World>> world = join(options[1], session_memory);
  ASSERT_TRUE(world);
  const std::unique_ptr<Session> session = session_of(**world, Over::kSharedMemory);
  ASSERT_NE(session, nullptr);
  static_cast<void>(session->wait(*session->barrier("first")));
  const Ticket ticket = *session->barrier("x");
  const Deadline limit = Clock::now() + testing::kPatience;
  std::optional<Status> outcome;
  while (!outcome && Clock::now() < limit) {
    outcome = session->wait_for(ticket, std::chrono::milliseconds(100));
  }
  ASSERT_TRUE(outcome) << "the stopped rank was not detected";
  ASSERT_FALSE(*outcome);
  EXPECT_EQ(outcome->error().code, ErrorCode::kTimeout) << outcome->error().to_string();
  EXPECT_EQ(outcome->error().rank, 0) << outcome->error().to_string();
}

TEST(SessionStall, IsReportedOnceWithTheMissingRanks) {
  for (const Over over : {Over::kSharedMemory, Over::kMessages}) {
    std::promise<std::string> reported;
    const std::shared_future<std::string> report = reported.get_future().share();
    // Long enough for the other ranks of a busy machine to hand over "w1".
    const SessionOptions options{.stall_warning = std::chrono::seconds(3),
                                 .on_stall = [&](const std::string& text) {
                                   if (!text.starts_with("'w1'")) return;  // a late "fine"
                                   reported.set_value(text);  // throws when called twice
                                 }};
    with_sessions(
        3, over,
        [&](Session& session) {
          EXPECT_TRUE(session.wait(*session.barrier("fine")));
          if (session.rank() == 0) report.wait();
          EXPECT_TRUE(session.wait(*session.barrier("w1")));
        },
        options);
    EXPECT_TRUE(report.get().starts_with("'w1' has waited ")) << report.get();
    EXPECT_TRUE(report.get().ends_with(" s for rank 0 (on host host-0)")) << report.get();
  }
}

// There is no second operation: on a busy machine it could reach the limit, too.
TEST(SessionStall, EndsAtTheLimitOnAllRanksThatHaveHandedOver) {
  for (const Over over : {Over::kSharedMemory, Over::kMessages}) {
    const SessionOptions options{.stall_limit = std::chrono::milliseconds(100)};
    std::latch given_up(2);
    with_sessions(
        3, over,
        [&](Session& session) {
          if (session.rank() == 1) {
            given_up.wait();
            return;
          }
          const Status waited = session.wait(*session.barrier("w1"));
          given_up.arrive_and_wait();  // the other one may hand over after this one's limit
          ASSERT_FALSE(waited);
          EXPECT_EQ(waited.error().code, ErrorCode::kTimeout);
          EXPECT_TRUE(waited.error().message.starts_with("'w1' has waited "));
          EXPECT_TRUE(waited.error().message.ends_with(" and failed")) << waited.error().message;
        },
        options);
  }
}

// The channel of rank 0. It stops the session's thread when that thread has looked for work, has
// planned how long to sleep, and is about to rest, until an operation has been handed over.
class LateRest final : public SilentChannel {
 public:
  struct Events {
    std::latch is_late{1};
    std::latch handed_over{1};
    Bytes message = {};  // of rank 1; the thread finds it once it rests
  };
  LateRest(Events& events, Take take) : events_(events), take_(std::move(take)) {}

  void collect() override {
    if (looks_++ > 0 && !events_.message.empty())
      take_(1, std::exchange(events_.message, {}), Clock::now());
  }
  Doorbell& bell() override {
    if (std::this_thread::get_id() == maker_ || looks_ != 1) return bell_;
    events_.is_late.count_down();
    events_.handed_over.wait();
    return bell_;
  }

 private:
  Events& events_;
  Take take_;
  const std::thread::id maker_ = std::this_thread::get_id();
  int looks_ = 0;  // used by the session's thread
};

std::unique_ptr<Monitor> monitor_without_links() {
  return std::make_unique<Monitor>(
      MonitorOptions{.rank = 0, .host = "a", .timeout = testing::kPatience}, std::vector<Link>());
}

// Rank 0 of a world of two, without rank 1.
class Alone {
 public:
  Alone(SessionOptions options, Engine::MakeChannel make_channel,
        std::unique_ptr<Monitor> monitor = monitor_without_links())
      : world_{.rank = 0, .size = 2, .hosts = {"a", "b"}, .monitor = std::move(monitor)},
        engine_({.world = world_, .backend = &backend_}, with_reports(std::move(options)),
                std::move(make_channel)) {
    EXPECT_TRUE(engine_.start());
  }
  Engine& engine() { return engine_; }

  Ticket hand_over(std::string_view name) {
    const Result<Ticket> ticket = engine_.hand_over({name}, {.kind = CallKind::kBarrier}, {}, {});
    EXPECT_TRUE(ticket);
    return ticket ? *ticket : Ticket{};
  }
  void hand_over(std::string_view name, std::function<void(const Status&)> then) {
    engine_.when_done(hand_over(name), std::move(then));
  }

  // Waits until the session's thread has the other ranks probed, or has ended that.
  bool comes_to_watch(bool watches) {
    const Deadline limit = Clock::now() + testing::kPatience;
    while (engine_.watches() != watches && Clock::now() < limit) std::this_thread::yield();
    return engine_.watches() == watches;
  }
  bool is_reported(const std::string& name) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, testing::kPatience, [&] {
      return std::ranges::any_of(
          reports_, [&](const std::string& text) { return text.starts_with("'" + name + "'"); });
    });
  }

 private:
  SessionOptions with_reports(SessionOptions options) {
    options.on_stall = [this](const std::string& text) { add(text); };
    return options;
  }
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(text);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> reports_;
  World world_;
  SoloBackend backend_;
  Engine engine_;
};

// In the time between, the thread counts as awake, so that the hand-over rings no bell.
TEST(SessionStall, IsReportedForAHandOverWhileTheThreadGoesToSleep) {
  for (const int from : {0, 1}) {
    LateRest::Events events;
    Alone alone({.stall_warning = std::chrono::milliseconds(100)},
                [&](const SessionBase& /*base*/, Channel::Take take) {
                  return std::make_unique<LateRest>(events, std::move(take));
                });
    events.is_late.wait();
    if (from == 0) alone.hand_over("w1");
    if (from == 1) events.message = encode_new("w1", {.call = {.kind = CallKind::kBarrier}});
    events.handed_over.count_down();
    EXPECT_TRUE(alone.is_reported("w1")) << "handed over by rank " << from;
  }
}

// The thread then sleeps until the limit of the first operation, which is far away.
TEST(SessionStall, IsReportedForAHandOverAfterAnotherReport) {
  Alone alone(
      {.stall_warning = std::chrono::milliseconds(100), .stall_limit = std::chrono::hours(1)},
      [](const SessionBase& /*base*/, const Channel::Take& /*take*/) {
        return std::make_unique<SilentChannel>();
      });
  alone.hand_over("w1");
  EXPECT_TRUE(alone.is_reported("w1"));
  alone.hand_over("w2");
  EXPECT_TRUE(alone.is_reported("w2"));
}

// The channel of rank 0, whose test plays rank 1. It counts how often the session's thread uses the
// bell: in each round once at the beginning, twice on duty, and once to sleep.
class CountedBell final : public SilentChannel {
 public:
  static constexpr int kRoundOnDuty = 4;
  static constexpr int kRoundWithoutDuty = 2;

  struct Events {
    std::atomic<int> uses = 0;  // of the bell
    CountedBell* channel = nullptr;

    void await(int count) const {
      for (int seen = uses; seen < count; seen = uses) uses.wait(seen);
    }
    // The thread sleeps, and is not on duty. Until then no other thread may have been on duty.
    void await_sleep() const {
      for (int seen = uses; seen == 0 || seen % kRoundOnDuty != 0; seen = uses) uses.wait(seen);
    }
    // Rank 1 hands over a barrier.
    void hand_over(std::string_view name) const {
      channel->bell_.notify(channel->take_(
          1, encode_new(name, {.call = {.kind = CallKind::kBarrier}}), Clock::now()));
    }
  };
  CountedBell(Events& events, Take take) : events_(events), take_(std::move(take)) {
    events_.channel = this;
  }

  Doorbell& bell() override {
    if (std::this_thread::get_id() == maker_) return bell_;
    ++events_.uses;
    events_.uses.notify_all();
    return bell_;
  }

 private:
  Events& events_;
  Take take_;
  const std::thread::id maker_ = std::this_thread::get_id();
};

Engine::MakeChannel counted_bell(CountedBell::Events& events) {
  return [&](const SessionBase& /*base*/, Channel::Take take) {
    return std::make_unique<CountedBell>(events, std::move(take));
  };
}

SessionOptions without_reports() {
  return {.stall_warning = std::chrono::milliseconds::zero(),
          .slow_window = std::chrono::milliseconds::zero()};
}

// The only ring for the operation wakes the thread while another thread is on duty.
TEST(SessionWatch, BeginsAlthoughTheThreadFoundTheDutyTaken) {
  CountedBell::Events events;
  Alone alone(without_reports(), counted_bell(events));
  events.await_sleep();
  const int before = events.uses;
  Ticket pending;
  const auto outcome = alone.engine().run(
      [&]() -> Result<Ticket> {
        alone.hand_over("x", [](const Status&) {});
        events.await(before + CountedBell::kRoundWithoutDuty);
        return Error{ErrorCode::kBadArgument, "nothing to wait for"};
      },
      std::nullopt, pending);
  EXPECT_FALSE(*outcome);
  EXPECT_TRUE(alone.comes_to_watch(true));
}

TEST(SessionWatch, EndsAlthoughTheThreadFoundTheDutyTaken) {
  CountedBell::Events events;
  Alone alone(without_reports(), counted_bell(events));
  const std::thread::id this_thread = std::this_thread::get_id();
  int before = 0;
  alone.hand_over("x", [&](const Status& status) {
    EXPECT_TRUE(status);
    // This thread is on duty. The end of the operation has rung for the session's thread.
    if (std::this_thread::get_id() == this_thread) {
      events.await(before + CountedBell::kRoundWithoutDuty);
    }
  });
  ASSERT_TRUE(alone.comes_to_watch(true));
  events.await_sleep();
  Ticket pending;
  const auto outcome = alone.engine().run(
      [&]() -> Result<Ticket> {
        before = events.uses;
        events.hand_over("x");
        events.hand_over("y");
        return alone.hand_over("y");
      },
      std::nullopt, pending);
  EXPECT_TRUE(*outcome);
  EXPECT_TRUE(alone.comes_to_watch(false));
}

// Monitors of a world of two. That of rank 1 answers.
struct TwoMonitors {
  explicit TwoMonitors(std::chrono::milliseconds timeout) {
    std::array<int, 2> ends = {};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    zero = monitor_of(0, timeout, Descriptor(ends[0]));
    one = monitor_of(1, testing::kPatience, Descriptor(ends[1]));
  }

  // The monitor counts at most a millisecond in each round of its thread. So on a machine that is too
  // busy to run the threads of this test, the timeout takes longer, too.
  static std::unique_ptr<Monitor> monitor_of(int rank, std::chrono::milliseconds timeout,
                                             Descriptor connection) {
    std::vector<Link> links;
    links.push_back({.rank = 1 - rank,
                     .host = rank == 0 ? "b" : "a",
                     .is_local = true,
                     .socket = std::move(connection)});
    return std::make_unique<Monitor>(MonitorOptions{.rank = rank,
                                                    .host = rank == 0 ? "a" : "b",
                                                    .timeout = timeout,
                                                    .probe_interval = std::chrono::milliseconds(1),
                                                    .silence_on_host = testing::kPatience},
                                     std::move(links));
  }

  std::unique_ptr<Monitor> zero;
  std::unique_ptr<Monitor> one;
};

TEST(SessionTimeout, OfAnOperationThatARankDoesNotHandOverBlamesNoRank) {
  TwoMonitors monitors(std::chrono::milliseconds(300));
  CountedBell::Events events;
  Alone alone(without_reports(), counted_bell(events), std::move(monitors.zero));
  const std::optional<Status> outcome =
      alone.engine().wait(alone.hand_over("x"), testing::kPatience);
  ASSERT_TRUE(outcome);
  ASSERT_FALSE(*outcome);
  EXPECT_EQ(outcome->error().code, ErrorCode::kTimeout);
  EXPECT_EQ(outcome->error().rank, Error::kNobody);
  EXPECT_TRUE(
      outcome->error().message.starts_with("barrier 'x' made no progress for 0.3 s while rank 0 on "
                                           "host a waited in it; all ranks answer "
                                           "and have begun as many calls"))
      << outcome->error().message;
}

// Counts operations that have ended.
class Ends {
 public:
  std::function<void(const Status&)> counter() {
    return [this](const Status& status) {
      const std::lock_guard lock(mutex_);
      ++count_;
      if (!status && !failure_) failure_ = status.error();
      changed_.notify_all();
    };
  }

  // False if it takes too long.
  bool await(int count) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, testing::kPatience, [&] { return count_ >= count; });
  }
  std::optional<Error> failure() {
    const std::lock_guard lock(mutex_);
    return failure_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int count_ = 0;
  std::optional<Error> failure_;
};

// At every moment an operation is in flight for which no thread waits.
TEST(SessionTimeout, DoesNotComeWhileOperationsEnd) {
  constexpr std::chrono::milliseconds kTimeout{500};
  TwoMonitors monitors(kTimeout);
  CountedBell::Events events;
  Ends ends;
  Alone alone(without_reports(), counted_bell(events), std::move(monitors.zero));
  const auto begin = [&](int number) {
    alone.hand_over(number % 2 == 0 ? "even" : "odd", ends.counter());
  };
  begin(0);
  const Deadline end = Clock::now() + 3 * kTimeout;
  for (int number = 0; !ends.failure() && Clock::now() < end; ++number) {
    begin(number + 1);
    events.hand_over(number % 2 == 0 ? "even" : "odd");
    ASSERT_TRUE(ends.await(number + 1));
  }
  EXPECT_FALSE(ends.failure());
  EXPECT_TRUE(alone.engine().watches());
}

// Rank 1 hands over all operations but one.
TEST(SessionTimeout, ComesForAnOperationThatStaysWhileOthersEnd) {
  TwoMonitors monitors(std::chrono::milliseconds(500));
  CountedBell::Events events;
  Ends of_the_one;
  Ends of_others;
  Alone alone(without_reports(), counted_bell(events), std::move(monitors.zero));
  alone.hand_over("stays", of_the_one.counter());
  const Deadline limit = Clock::now() + testing::kPatience;
  for (int number = 1; !of_the_one.failure() && Clock::now() < limit; ++number) {
    const Result<Ticket> ticket =
        alone.engine().hand_over({"ends"}, {.kind = CallKind::kBarrier}, {}, {});
    if (!ticket) break;  // the timeout has come
    alone.engine().when_done(*ticket, of_others.counter());
    events.hand_over("ends");
    ASSERT_TRUE(of_others.await(number));
  }
  ASSERT_TRUE(of_the_one.await(1));
  ASSERT_TRUE(of_the_one.failure());
  EXPECT_EQ(of_the_one.failure()->code, ErrorCode::kTimeout);
}

}  // namespace
}  // namespace muster::collective::session
