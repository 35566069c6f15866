// The errors on other ranks when a rank dies, is stopped or is late, and the cost of an idle
// session.
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
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

// The victim takes part in one operation, and ends by `signal` while the other ranks have a pending
// operation.
void run_with_victim(Over over, int signal, int victim, ErrorCode code) {
  constexpr int kSize = 3;
  const std::vector<Options> options = testing::world_of(kSize);
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
  const std::vector<Options> options = testing::world_of(2);
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

TEST(SessionStall, IsReportedOnceWithTheMissingRanks) {
  for (const Over over : {Over::kSharedMemory, Over::kMessages}) {
    std::promise<std::string> reported;
    const std::shared_future<std::string> report = reported.get_future().share();
    const SessionOptions options{.stall_warning = std::chrono::milliseconds(100),
                                 .on_stall = [&](const std::string& text) {
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
    EXPECT_TRUE(report.get().starts_with("'w1' has waited 0.")) << report.get();
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
    if (looks_++ > 0 && !events_.message.empty()) take_(1, std::exchange(events_.message, {}));
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

class Alone {
 public:
  Alone(std::chrono::milliseconds limit, Engine::MakeChannel make_channel)
      : engine_({.world = world_, .backend = &backend_},
                {.stall_warning = std::chrono::milliseconds(100),
                 .stall_limit = limit,
                 .on_stall = [this](const std::string& text) { add(text); }},
                std::move(make_channel)) {
    EXPECT_TRUE(engine_.start());
  }
  void hand_over(std::string_view name) {
    EXPECT_TRUE(engine_.hand_over({name}, {.kind = CallKind::kBarrier}, {}, {}));
  }
  bool is_reported(const std::string& name) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, testing::kPatience, [&] {
      return std::ranges::any_of(
          reports_, [&](const std::string& text) { return text.starts_with("'" + name + "'"); });
    });
  }

 private:
  static World world_of_two() {
    World world{.rank = 0, .size = 2, .hosts = {"a", "b"}};
    world.monitor = std::make_unique<Monitor>(
        MonitorOptions{.rank = 0, .host = "a", .timeout = testing::kPatience}, std::vector<Link>());
    return world;
  }
  void add(const std::string& text) {
    const std::lock_guard lock(mutex_);
    reports_.push_back(text);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::string> reports_;
  World world_ = world_of_two();
  SoloBackend backend_;
  Engine engine_;
};

// In the time between, the thread counts as awake, so that the hand-over rings no bell.
TEST(SessionStall, IsReportedForAHandOverWhileTheThreadGoesToSleep) {
  for (const int from : {0, 1}) {
    LateRest::Events events;
    Alone alone({}, [&](const SessionBase& /*base*/, Channel::Take take) {
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
  Alone alone(std::chrono::hours(1),
              [](const SessionBase& /*base*/, const Channel::Take& /*take*/) {
                return std::make_unique<SilentChannel>();
              });
  alone.hand_over("w1");
  EXPECT_TRUE(alone.is_reported("w1"));
  alone.hand_over("w2");
  EXPECT_TRUE(alone.is_reported("w2"));
}

}  // namespace
}  // namespace muster::collective::session
