// What the other ranks learn when one fails: always the same, always whose fault it is, never a
// hang. Ranks that die do so for real: they are processes of their own, ended by a signal.
#include <gtest/gtest.h>
#include <muster/collective/testing/spawn_ranks.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <mutex>
#include <vector>

#include "muster/collective/communicator.h"
#include "transport/deadline.h"
#include "transport/descriptor.h"

namespace muster::collective {
namespace {

using std::chrono::milliseconds;
using testing::on_threads;
using testing::spawn_ranks;
using testing::world_of;

// Collects one error a rank.
class Errors {
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
class Process {
 public:
  Process(const Options& options, const std::function<void(Communicator&)>& body) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    Result<Communicator> world = Communicator::connect(options);
    if (world) body(*world);
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

// A world in which rank `victim` makes one barrier and then ends by `signal`, and all others go on
// to an all-reduce of `count` values. Gives back their errors.
void run_with_victim(int size, int victim, int signal, std::size_t count, milliseconds timeout,
                     Errors& errors) {
  std::vector<Options> world = world_of(size, timeout);
  const int listener = world[0].listener;
  Process process(world[static_cast<std::size_t>(victim)], [&](Communicator& communicator) {
    // The victim has a copy of the rendezvous' listener, which has to end with the rendezvous.
    if (victim != 0) Descriptor(listener).close();
    static_cast<void>(communicator.barrier());
    ::raise(signal);
  });
  if (victim == 0) Descriptor(listener).close();
  on_threads(size, [&](int rank) {
    if (rank == victim) return;
    Result<Communicator> communicator =
        Communicator::connect(world[static_cast<std::size_t>(rank)]);
    ASSERT_TRUE(communicator) << communicator.error().to_string();
    std::vector<float> values(count, 1);
    // The victim may die before all others are out of the barrier that it was in itself, and its
    // last bytes may be enough for a call more.
    Status status = communicator->barrier();
    while (status) status = communicator->all_reduce(values.data(), count, ReduceOp::kAverage);
    errors.add(status);
    errors.add(communicator->barrier());
  });
}

TEST(Failure, OfAKilledRankIsNamedByAllOthersAtOnce) {
  for (int victim = 0; victim < 4; ++victim) {
    for (const std::size_t count : {1, 1'000'000}) {
      Errors errors;
      const Deadline begin = Clock::now();
      run_with_victim(4, victim, SIGKILL, count, testing::kPatience, errors);
      EXPECT_LT(Clock::now() - begin, std::chrono::seconds(10)) << "long before the timeout";
      EXPECT_EQ(errors.all().size(), 6u);
      errors.expect_all(ErrorCode::kPeerLost, victim);
    }
  }
}

TEST(Failure, OfAStoppedRankIsNamedByAllOthersAfterTheTimeout) {
  for (int victim = 0; victim < 4; ++victim) {
    Errors errors;
    run_with_victim(4, victim, SIGSTOP, 1000, milliseconds(500), errors);
    EXPECT_EQ(errors.all().size(), 6u);
    errors.expect_all(ErrorCode::kTimeout, victim);
  }
}

TEST(Failure, InAWorldOfTwoNamesTheOther) {
  Errors errors;
  run_with_victim(2, 1, SIGKILL, 1000, testing::kPatience, errors);
  errors.expect_all(ErrorCode::kPeerLost, 1);
}

TEST(Failure, OfARankThatLeavesEarlyNamesItOnAllOthers) {
  Errors errors;
  spawn_ranks(4, [&](Communicator& world) {
    Status status = world.barrier();
    if (world.rank() == 2) return;
    // A rank that is quick to find out may fail the others in the barrier that all have entered.
    while (status) status = world.barrier();
    errors.add(status);
  });
  EXPECT_EQ(errors.all().size(), 3u);
  errors.expect_all(ErrorCode::kPeerLost, 2);
  for (const Error& error : errors.all()) {
    EXPECT_TRUE(error.message.starts_with("rank 2 on host host-2 has left, but rank "))
        << error.message;
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
  Errors errors;
  std::atomic<int> failed = 0;
  spawn_ranks(
      4,
      [&](Communicator& world) {
        if (world.rank() == 1) {
          // Busy with something else until the others have given up.
          while (failed < 3) failed.wait(failed);
        }
        errors.add(world.barrier());
        ++failed;
        failed.notify_all();
      },
      milliseconds(300));
  EXPECT_EQ(errors.all().size(), 4u) << "the slow one is told as well";
  errors.expect_all(ErrorCode::kTimeout, 1);
}

TEST(Failure, OfCallsThatDifferSaysWhoAskedForWhat) {
  Errors errors;
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
    Errors errors;
    spawn_ranks(4, [&](Communicator& world) {
      errors.add(world.rank() == 3 ? other(world) : common(world));
    });
    EXPECT_EQ(errors.all().size(), 4u);
    for (const Error& error : errors.all()) EXPECT_EQ(error.code, ErrorCode::kMismatch);
  }
}

}  // namespace
}  // namespace muster::collective
