// A rank that leaves waits for no other rank, whatever the session's own thread is doing, and
// whether or not the other ranks still exist.
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "communicator/impl.h"
#include "session/engine.h"
#include "session/session_fixture.h"
#include "session/silent_channel.h"
#include "world/join.h"

namespace muster::collective::session {
namespace {

// A channel that stops the session's thread on its first way to the bell, until the bell has rung.
class StillChannel final : public SilentChannel {
 public:
  struct Events {
    std::latch reached_bell{1};
    bool looked_for_records = false;
  };
  explicit StillChannel(Events& events) : events_(events) {}

  Doorbell& bell() override {
    if (std::this_thread::get_id() == maker_ || std::exchange(has_been_stopped_, true)) {
      return bell_;
    }
    events_.reached_bell.count_down();
    bell_.wait(0, std::nullopt);
    return bell_;
  }

  // The last call before the thread sleeps. Rings the bell, since the thread might sleep for ever
  // otherwise.
  bool has_next() override {
    events_.looked_for_records = true;
    bell_.ring();
    return false;
  }

 private:
  Events& events_;
  const std::thread::id maker_ = std::this_thread::get_id();
  bool has_been_stopped_ = false;  // used by the session's thread
};

// leave() rings once, perhaps just before the thread reads how often the bell has rung: the thread
// must not treat that ring as an old one and sleep.
TEST(SessionLeave, IsSeenByAThreadThatIsAboutToReadTheBell) {
  World world{.rank = 1, .size = 2, .hosts = {"a", "b"}};
  world.monitor = std::make_unique<Monitor>(
      MonitorOptions{.rank = 1, .host = "b", .timeout = testing::kPatience}, std::vector<Link>());
  SoloBackend backend;
  StillChannel::Events events;
  Engine engine({.world = world, .backend = &backend}, {},
                [&](const SessionBase& /*base*/, const Channel::Take& /*take*/) {
                  return std::make_unique<StillChannel>(events);
                });
  ASSERT_TRUE(engine.start());
  events.reached_bell.wait();

  engine.leave();

  EXPECT_FALSE(events.looked_for_records) << "the thread continued, and would have slept for ever";
}

class SessionLeaves : public SessionTest {
 protected:
  struct Rank {
    std::unique_ptr<World> world;
    std::unique_ptr<Session> session;  // destroyed first
  };

  // Runs `body` on both ranks of a new world. Remaining objects end with the world.
  static void run_two(const std::function<void(Rank)>& body) {
    const std::vector<Options> options = testing::world_of(2);
    testing::on_threads(2, [&](int rank) {
      Result<std::unique_ptr<World>> world =
          join(options[static_cast<std::size_t>(rank)], session_memory);
      ASSERT_TRUE(world) << world.error().to_string();
      std::unique_ptr<Session> session = session_of(**world, GetParam());
      ASSERT_NE(session, nullptr);
      body({*std::move(world), std::move(session)});
    });
  }
};
INSTANTIATE_SESSION_TEST(SessionLeaves);

constexpr int kLeaveRounds = 40;  // for the many possible interleavings

TEST_P(SessionLeaves, AtTheSameTimeAsTheOtherRank) {
  for (int round = 0; round < kLeaveRounds; ++round) {
    run_two([&](Rank rank) {
      if (round % 2 == 0) EXPECT_OK(rank.session->wait(ticket_of(rank.session->barrier("b"))));
      rank.session->leave();
    });
  }
}

TEST_P(SessionLeaves, AfterTheOtherRankHasGone) {
  for (int round = 0; round < kLeaveRounds; ++round) {
    std::latch gone(1);
    run_two([&](Rank rank) {
      const bool first = rank.world->rank == round % 2;
      if (!first) gone.wait();
      rank.session.reset();
      rank.world.reset();
      if (first) gone.count_down();
    });
  }
}

TEST_P(SessionLeaves, WhileItsThreadsWaitAndTheOtherRankIsNotified) {
  for (int round = 0; round < kLeaveRounds; ++round) {
    run_two([&](Rank rank) {
      if (rank.world->rank != round % 2) {
        EXPECT_FALSE(rank.session->wait(ticket_of(rank.session->barrier("alone"))));
        return;
      }
      std::latch begun(1);
      std::jthread waiting([&] {
        const Ticket ticket = ticket_of(rank.session->barrier("also alone"));
        begun.count_down();
        EXPECT_FALSE(rank.session->wait(ticket));
      });
      begun.wait();
      rank.session->leave();
    });
  }
}

}  // namespace
}  // namespace muster::collective::session
