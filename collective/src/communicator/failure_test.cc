// When one rank fails, all other ranks get the same error, which names the rank at fault, and no
// rank hangs. Ranks that die do so for real: they are processes of their own, ended by a signal.
#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/communicator.h"
#include "muster/collective/session.h"
#include "transport/socket.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using testing::on_threads;
using testing::Placement;
using testing::spawn_ranks;
using testing::world_of;

// The timeout of tests that reach it. It is also the time limit for the ranks to join, and the ranks
// of a busy machine need seconds to join and to enter a call.
constexpr std::chrono::seconds kShortPatience{5};

// Collects one error from each rank.
class RankFailures {
 public:
  void add(const Status& status) {
    const std::lock_guard lock(mutex_);
    ASSERT_FALSE(status) << "the call succeeded";
    errors_.push_back(status.error());
  }

  const std::vector<Error>& all() const { return errors_; }

  void expect_all(ErrorCode code, int rank) const {
    for (const Error& error : errors_) {
      EXPECT_EQ(error.code, code) << error.to_string();
      EXPECT_EQ(error.rank, rank) << error.to_string();
      EXPECT_EQ(error.host, "host-" + std::to_string(rank));
      EXPECT_EQ(error.message.find("rank " + std::to_string(rank) + " on host host-"), 0u)
          << error.message;
    }
  }

 private:
  std::mutex mutex_;
  std::vector<Error> errors_;
};

// One rank as a process. Must be made before the test has threads.
class CommunicatorProcess {
 public:
  CommunicatorProcess(const Options& options, const std::function<void(Communicator&)>& body) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    Result<Communicator> world = Communicator::connect(options);
    if (world) body(*world);
    ::_exit(1);
  }
  ~CommunicatorProcess() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  void signal(int number) const { ::kill(pid_, number); }

  CommunicatorProcess(const CommunicatorProcess&) = delete;
  CommunicatorProcess& operator=(const CommunicatorProcess&) = delete;

 private:
  pid_t pid_;
};

// A call that every rank repeats until it fails.
using Collective = std::function<Status(Communicator&)>;

struct NamedCollective {
  const char* name;
  Collective call;
};

// Each of these collectives makes every rank wait for the victim sooner or later.
std::vector<NamedCollective> collectives() {
  constexpr std::uint64_t kCount = 200'000;
  const auto buffer = [](Communicator& world) {
    return std::vector<float>(kCount * static_cast<std::uint64_t>(world.size()));
  };
  return {
      {"all_reduce",
       [=](Communicator& world) {
         auto in = buffer(world);
         return world.all_reduce(in.data(), in.size(), ReduceOp::kAverage);
       }},
      {"small all_reduce",
       [](Communicator& world) {
         float value = 1;
         return world.all_reduce(&value, 1, ReduceOp::kSum);
       }},
      {"reduce_scatter",
       [=](Communicator& world) {
         auto in = buffer(world);
         std::vector<float> out(kCount);
         return world.reduce_scatter(in.data(), out.data(), kCount, DataType::kFloat32,
                                     ReduceOp::kSum);
       }},
      {"all_gather",
       [=](Communicator& world) {
         auto all = buffer(world);
         const std::vector<float> part(kCount);
         return world.all_gather(part.data(), kCount * sizeof(float), all.data());
       }},
      {"broadcast",
       [=](Communicator& world) {
         // From every rank in turn: a root need not wait for ranks that only receive.
         auto data = buffer(world);
         for (int root = 0; root < world.size(); ++root) {
           Status done = world.broadcast(data.data(), kCount, root);
           if (!done) return done;
         }
         return Status();
       }},
      {"reduce",
       [=](Communicator& world) {
         auto in = buffer(world);
         auto out = in;
         for (int root = 0; root < world.size(); ++root) {
           Status done = world.reduce(in.data(), out.data(), kCount, DataType::kFloat32,
                                      ReduceOp::kSum, root);
           if (!done) return done;
         }
         return Status();
       }},
      {"all_to_all",
       [=](Communicator& world) {
         const auto in = buffer(world);
         auto out = buffer(world);
         return world.all_to_all(in.data(), out.data(), kCount * sizeof(float));
       }},
      {"barrier", [](Communicator& world) { return world.barrier(); }},
      {"send and receive",
       [=](Communicator& world) {
         auto data = buffer(world);
         const int next = (world.rank() + 1) % world.size();
         const int previous = (world.rank() + world.size() - 1) % world.size();
         if (world.rank() == 0) {
           Status sent = world.send(data.data(), kCount, next);
           return sent ? world.receive(data.data(), kCount, previous) : sent;
         }
         Status got = world.receive(data.data(), kCount, previous);
         return got ? world.send(data.data(), kCount, next) : got;
       }},
  };
}

// A world that repeats one call until rank `victim` receives `signal` in the middle of a call.
// Collects the errors of all other ranks, from that call and from a later one.
void run_with_victim(int size, int victim, int signal, const Collective& collective,
                     Placement placement, RankFailures& errors) {
  std::vector<Options> world = world_of(size, testing::kPatience, placement);
  if (signal == SIGSTOP) {
    for (Options& options : world) options.silence = milliseconds(700);
  }
  const int listener = world[0].listener;
  CommunicatorProcess process(world[static_cast<std::size_t>(victim)],
                              [&](Communicator& communicator) {
                                // The victim has a copy of the rendezvous' listener, which must
                                // close when the rendezvous ends.
                                if (victim != 0) Descriptor(listener).close();
                                while (collective(communicator)) {
                                }
                              });
  if (victim == 0) Descriptor(listener).close();
  std::atomic<int> calls = 0;
  on_threads(size, [&](int rank) {
    if (rank == victim) return;
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    Status status;
    while (status) {
      status = collective(*communicator);
      if (++calls == 3 * size) process.signal(signal);
    }
    errors.add(status);
    errors.add(communicator->barrier());
  });
}

struct Victim {
  int signal;
  ErrorCode code;
  Placement placement;
};

class Failures : public ::testing::TestWithParam<Victim> {};

INSTANTIATE_TEST_SUITE_P(
    Failure, Failures,
    ::testing::Values(Victim{SIGKILL, ErrorCode::kPeerLost, Placement::one_host()},
                      Victim{SIGKILL, ErrorCode::kPeerLost, Placement::host_each()},
                      Victim{SIGSTOP, ErrorCode::kTimeout, Placement::one_host()},
                      Victim{SIGSTOP, ErrorCode::kTimeout, Placement::host_each()}),
    [](const auto& victim) {
      return std::string(victim.param.signal == SIGKILL ? "Killed" : "Stopped") +
             (victim.param.placement.ranks_per_host == 1 ? "Elsewhere" : "Here");
    });

TEST_P(Failures, InTheMiddleOfAnyCollectiveNameTheRankOnAllOtherRanks) {
  int victim = 0;
  for (const NamedCollective& collective : collectives()) {
    SCOPED_TRACE(collective.name);
    RankFailures errors;
    run_with_victim(3, victim, GetParam().signal, collective.call, GetParam().placement, errors);
    EXPECT_EQ(errors.all().size(), 4u);
    errors.expect_all(GetParam().code, victim);
    victim = (victim + 1) % 3;
  }
}

// A rank with a child process, such as a worker of a data loader, which outlives the rank.
TEST(Failure, OfAKilledRankIsDetectedAlthoughItsChildLives) {
  for (const Placement placement : {Placement::one_host(), Placement::host_each()}) {
    const std::vector<Options> world = world_of(2, testing::kPatience, placement);
    const int listener = world[0].listener;
    std::array<int, 2> end_of_test = {};
    ASSERT_EQ(::pipe(end_of_test.data()), 0);
    const CommunicatorProcess victim(world[1], [&](Communicator& communicator) {
      Descriptor(listener).close();
      ::close(end_of_test[1]);
      if (::fork() == 0) {
        char nothing = 0;
        ::_exit(::read(end_of_test[0], &nothing, 1) == 0 ? 0 : 1);
      }
      static_cast<void>(communicator.barrier());
      ::pause();
    });
    RankFailures errors;
    on_threads(1, [&](int) {
      Result<Communicator> communicator = Communicator::connect(world[0]);
      ASSERT_TRUE(communicator) << communicator.error().to_string();
      ASSERT_TRUE(communicator->barrier());
      victim.signal(SIGKILL);
      errors.add(communicator->barrier());
    });
    for (const int end : end_of_test) ::close(end);
    ASSERT_EQ(errors.all().size(), 1u);
    errors.expect_all(ErrorCode::kPeerLost, 1);
    EXPECT_TRUE(errors.all()[0].message.starts_with("rank 1 on host host-1 is gone: "))
        << errors.all()[0].message;
  }
}

// The world of the parent is not affected.
TEST(Failure, DoesNotAriseWhenAChildOfARankDestroysItsObjects) {
  for (const bool in_session : {false, true}) {
    const std::vector<Options> world = world_of(2);
    const int listener = world[0].listener;
    const CommunicatorProcess parent(world[1], [&](Communicator& communicator) {
      Descriptor(listener).close();
      std::optional<Communicator> own(std::move(communicator));
      std::optional<Session> session;
      if (in_session) {
        Result<Session> started = Session::start(*std::move(own));
        if (!started) ::_exit(1);
        session.emplace(*std::move(started));
      }
      const pid_t child = ::fork();
      if (child == 0) {
        session.reset();
        own.reset();
        ::_exit(0);
      }
      int status = 0;
      ::waitpid(child, &status, 0);
      if (status != 0) ::_exit(1);
      if (session) {
        const Result<Ticket> ticket = session->barrier("b");
        if (ticket) static_cast<void>(session->wait(*ticket));
      } else {
        static_cast<void>(own->barrier());
      }
      ::pause();
    });
    on_threads(1, [&](int) {
      Result<Communicator> communicator = Communicator::connect(world[0]);
      ASSERT_TRUE(communicator) << communicator.error().to_string();
      if (!in_session) {
        const Status met = communicator->barrier();
        EXPECT_TRUE(met) << met.error().to_string();
        return;
      }
      Result<Session> session = Session::start(*std::move(communicator));
      ASSERT_TRUE(session) << session.error().to_string();
      const Result<Ticket> ticket = session->barrier("b");
      ASSERT_TRUE(ticket) << ticket.error().to_string();
      const Status met = session->wait(*ticket);
      EXPECT_TRUE(met) << met.error().to_string();
    });
  }
}

TEST(Failure, InAWorldOfTwoNamesTheOther) {
  RankFailures errors;
  run_with_victim(2, 1, SIGKILL, collectives().front().call, Placement::one_host(), errors);
  errors.expect_all(ErrorCode::kPeerLost, 1);
}

TEST(Failure, OfARankThatLeavesEarlyNamesItOnAllOtherRanks) {
  RankFailures errors;
  spawn_ranks(4, [&](Communicator& world) {
    Status status = world.barrier();
    if (world.rank() == 2) return;
    // A rank that detects the failure early may fail the others in the barrier that all have
    // entered.
    while (status) status = world.barrier();
    errors.add(status);
  });
  EXPECT_EQ(errors.all().size(), 3u);
  errors.expect_all(ErrorCode::kPeerLost, 2);
  for (const Error& error : errors.all()) {
    EXPECT_TRUE(error.message.starts_with("rank 2 on host host-2 has left, but rank "))
        << error.message;
    EXPECT_EQ(error.advice, "every rank must make the same number of calls");
  }
}

// Messages are not counted as calls, so both ranks have made the same number of calls. 64 MB fit
// neither in the ring between two ranks nor in the buffers of their sockets.
TEST(Failure, OfARankThatLeavesBeforeAMessageNamesIt) {
  const std::vector<NamedCollective> messages = {
      {"receive",
       [](Communicator& world) {
         int value = 0;
         return world.receive(&value, sizeof value, 1);
       }},
      {"send",
       [](Communicator& world) {
         const std::vector<char> data(64'000'000);
         return world.send(data.data(), data.size(), 1);
       }},
  };
  for (const bool shares_memory : {true, false}) {
    const Placement placement = shares_memory ? Placement::one_host() : Placement::host_each();
    for (const NamedCollective& message : messages) {
      SCOPED_TRACE(message.name);
      RankFailures errors;
      spawn_ranks(
          2,
          [&](Communicator& world) {
            if (world.rank() == 0) errors.add(message.call(world));
          },
          testing::kPatience, placement);
      EXPECT_EQ(errors.all().size(), 1u);
      errors.expect_all(ErrorCode::kPeerLost, 1);
      for (const Error& error : errors.all()) {
        EXPECT_TRUE(error.message.starts_with("rank 1 on host host-1 has left")) << error.message;
        if (shares_memory) {
          EXPECT_EQ(error.advice,
                    "a rank must not leave before it has sent and received all messages");
        }
      }
    }
  }
}

TEST(Failure, DoesNotAriseWhenRanksLeaveAfterTheirLastCall) {
  for (int round = 0; round < 20; ++round) {
    spawn_ranks(4, [](Communicator& world) {
      std::vector<float> values(50'000, 1);
      const Status done = world.all_reduce(values.data(), values.size(), ReduceOp::kSum);
      ASSERT_TRUE(done) << done.error().to_string();
    });
  }
}

TEST(Failure, OfARankThatWorksTooLongIsATimeoutThatNamesIt) {
  RankFailures errors;
  std::atomic<int> failed = 0;
  spawn_ranks(
      4,
      [&](Communicator& world) {
        if (world.rank() == 1) {
          // Busy with other work until the other ranks have failed.
          while (failed < 3) failed.wait(failed);
        }
        errors.add(world.barrier());
        ++failed;
        failed.notify_all();
      },
      kShortPatience);
  EXPECT_EQ(errors.all().size(), 4u) << "the late rank gets the error as well";
  errors.expect_all(ErrorCode::kTimeout, 1);
}

TEST(Failure, OfTwoRanksThatWaitForEachOthersMessagesEndsBoth) {
  for (const Placement placement : {Placement::one_host(), Placement::host_each()}) {
    RankFailures errors;
    spawn_ranks(
        2,
        [&](Communicator& world) {
          int value = 0;
          errors.add(world.receive(&value, sizeof value, 1 - world.rank()));
        },
        kShortPatience, placement);
    EXPECT_EQ(errors.all().size(), 2u);
    for (const Error& error : errors.all()) {
      EXPECT_EQ(error.code, ErrorCode::kTimeout);
      EXPECT_NE(error.message.find(" made no progress for 5 s "), std::string::npos)
          << error.message;
    }
  }
}

TEST(Failure, OfCallsThatDifferNamesBothCalls) {
  RankFailures errors;
  spawn_ranks(2, [&](Communicator& world) {
    ASSERT_TRUE(world.barrier());
    std::vector<float> values(6);
    errors.add(world.all_reduce(values.data(), world.rank() == 0 ? 5 : 6, ReduceOp::kSum));
  });
  for (const Error& error : errors.all()) {
    EXPECT_EQ(error.code, ErrorCode::kMismatch);
    EXPECT_EQ(error.message,
              "rank 0 on host host-0 makes call 2 (all_reduce of 5 float32, sum), but rank 1 on "
              "host host-1 makes call 2 (all_reduce of 6 float32, sum)");
  }
}

// Equal lengths: the total is the same. In shared memory the lists are reduced in place.
TEST(Failure, OfListsThatDivideTheTotalDifferentlyNamesBothCalls) {
  constexpr std::uint64_t kTotal = 32'768;
  const std::vector<std::pair<std::uint64_t, std::uint64_t>> numbers_of_tensors = {{2, 4}, {1, 2}};
  for (const auto& [first, second] : numbers_of_tensors) {
    RankFailures errors;
    spawn_ranks(2, [&](Communicator& world) {
      auto* const memory = static_cast<float*>(world.allocate_shared(kTotal * sizeof(float)));
      ASSERT_NE(memory, nullptr);
      const std::uint64_t tensors = world.rank() == 0 ? first : second;
      const std::uint64_t each = kTotal / tensors;
      std::vector<Tensor> list;
      for (std::uint64_t i = 0; i < tensors; ++i) {
        list.push_back({memory + i * each, memory + i * each, each});
      }
      errors.add(world.all_reduce(list, DataType::kFloat32, ReduceOp::kSum));
    });
    EXPECT_EQ(errors.all().size(), 2u);
    for (const Error& error : errors.all()) {
      EXPECT_EQ(error.code, ErrorCode::kMismatch);
      EXPECT_EQ(error.message.find("rank 0 on host host-0 makes call 1 (all_reduce of 32768 "), 0u)
          << error.message;
      EXPECT_NE(
          error.message.find(", but rank 1 on host host-1 makes call 1 (all_reduce of 32768 "),
          std::string::npos)
          << error.message;
    }
  }
}

TEST(Failure, OfCallsThatDifferReachesEveryRank) {
  using Calls = std::function<Status(Communicator&)>;
  const auto reduce = [](DataType type, ReduceOp op, std::uint64_t count) {
    return [=](Communicator& world) {
      std::vector<double> buffer(count + 1);
      return world.all_reduce(buffer.data(), count, type, op);
    };
  };
  const Calls common = reduce(DataType::kFloat64, ReduceOp::kSum, 10'000);
  const std::vector<Calls> others = {
      reduce(DataType::kFloat64, ReduceOp::kSum, 10'001),
      reduce(DataType::kInt64, ReduceOp::kSum, 10'000),
      reduce(DataType::kFloat64, ReduceOp::kMax, 10'000),
      [](Communicator& world) { return world.barrier(); },
  };
  for (const Calls& other : others) {
    RankFailures errors;
    spawn_ranks(4, [&](Communicator& world) {
      errors.add(world.rank() == 3 ? other(world) : common(world));
    });
    EXPECT_EQ(errors.all().size(), 4u);
    for (const Error& error : errors.all()) EXPECT_EQ(error.code, ErrorCode::kMismatch);
  }
}

}  // namespace
}  // namespace muster::collective
