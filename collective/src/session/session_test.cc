// Properties of every session, whichever channel its ranks use.

#include "muster/collective/session.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <latch>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "session/session_fixture.h"

namespace muster::collective::session {
namespace {

using testing::on_threads;

INSTANTIATE_SESSION_TEST(SessionTest);

// Both lists are executed together, since they become complete together.
TEST_P(SessionTest, ARankThatHasJoinedContributesToAnEmptyList) {
  std::latch handed_over(1);
  run(2, [&](Session& session) {
    if (session.rank() == 1) {
      handed_over.wait();
      EXPECT_OK(session.wait(ticket_of(session.join())));
      return;
    }
    std::vector<float> values(3, 1);
    const Ticket empty =
        ticket_of(session.all_reduce("empty", {}, DataType::kFloat32, ReduceOp::kSum));
    const Ticket full = ticket_of(session.all_reduce(
        "full", values.data(), values.data(), values.size(), DataType::kFloat32, ReduceOp::kSum));
    handed_over.count_down();
    EXPECT_OK(session.wait(empty));
    EXPECT_OK(session.wait(full));
    EXPECT_EQ(values, std::vector<float>(3, 1));
    EXPECT_OK(session.wait(ticket_of(session.join())));
  });
}

TEST_P(SessionTest, ReducesOverEveryNumberOfRanks) {
  for (int size = 1; size <= 8; ++size) {
    run(size, [&](Session& session) {
      EXPECT_EQ(session.size(), size);
      for (int step = 0; step < 20; ++step) {
        std::vector<float> values(7, static_cast<float>(session.rank() + step));
        EXPECT_OK(sum(session, "w", values));
        EXPECT_EQ(values[6], sum_of_ranks(size) + static_cast<float>(step * size));
      }
    });
  }
}

TEST_P(SessionTest, AcceptsNamesInAnyOrderOnEachRank) {
  for (const int size : {2, 3, 4}) {
    run(size, [&](Session& session) {
      constexpr int kNames = 60;
      std::mt19937 random(static_cast<unsigned>(session.rank()));
      std::vector<int> order(kNames);
      std::iota(order.begin(), order.end(), 0);
      for (int step = 0; step < 8; ++step) {
        std::ranges::shuffle(order, random);
        std::vector<std::vector<float>> values(kNames);
        std::vector<Ticket> tickets(kNames);
        for (const int i : order) {
          const auto at = static_cast<std::size_t>(i);
          values[at].assign(at * 10 + 1, static_cast<float>(session.rank() + i));
          tickets[at] = ticket_of(session.all_reduce("w" + std::to_string(i), values[at].data(),
                                                     values[at].data(), values[at].size(),
                                                     DataType::kFloat32, ReduceOp::kSum));
        }
        std::ranges::shuffle(order, random);
        for (const int i : order) {
          const auto at = static_cast<std::size_t>(i);
          EXPECT_OK(session.wait(tickets[at]));
          const float expected = sum_of_ranks(size) + static_cast<float>(size * i);
          EXPECT_EQ(values[at].front(), expected);
          EXPECT_EQ(values[at].back(), expected);
        }
      }
    });
  }
}

TEST_P(SessionTest, AnOperationThatWaitsForARankDelaysNoOther) {
  run(2, [&](Session& session) {
    std::vector<float> x(3, static_cast<float>(session.rank() + 1));
    const auto hand_over = [&] {
      return ticket_of(
          session.all_reduce("x", x.data(), x.data(), 3, DataType::kFloat32, ReduceOp::kSum));
    };
    Ticket early;
    if (session.rank() == 0) early = hand_over();
    EXPECT_OK(session.wait(ticket_of(session.barrier("all"))));
    if (session.rank() == 0) {
      EXPECT_FALSE(session.done(early));
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("again"))));
    if (session.rank() == 1) early = hand_over();
    EXPECT_OK(session.wait(early));
    EXPECT_EQ(x[2], 3);
  });
}

// Lengths like those of the gradients of ResNet-50.
std::vector<std::size_t> gradient_lengths() {
  std::vector<std::size_t> lengths = {9408, 64, 64};
  for (int i = 0; i < 48; ++i) {
    lengths.push_back(static_cast<std::size_t>(4096) << (i % 4));
    lengths.push_back(64U << (i % 6));
    lengths.push_back(64U << (i % 6));
  }
  lengths.push_back(100'000);
  return lengths;
}

TEST_P(SessionTest, ReducesAllGradientsOfAModel) {
  for (const std::uint64_t fusion : {1ULL, 100'000ULL, 0ULL}) {
    run(3,
        [&](Session& session) {
          const std::vector<std::size_t> lengths = gradient_lengths();
          ASSERT_EQ(lengths.size(), 148u);
          std::vector<std::vector<float>> gradients;
          for (const std::size_t length : lengths) gradients.emplace_back(length);
          for (int step = 0; step < 3; ++step) {
            std::vector<Ticket> tickets;
            for (std::size_t i = 0; i < gradients.size(); ++i) {
              std::ranges::fill(gradients[i], static_cast<float>(session.rank()));
              tickets.push_back(ticket_of(session.all_reduce(
                  "layer" + std::to_string(i) + ".weight", gradients[i].data(), gradients[i].data(),
                  gradients[i].size(), DataType::kFloat32, ReduceOp::kAverage)));
            }
            for (std::size_t i = 0; i < gradients.size(); ++i) {
              EXPECT_OK(session.wait(tickets[i]));
              EXPECT_EQ(std::ranges::count(gradients[i], 1.F),
                        static_cast<std::ptrdiff_t>(gradients[i].size()));
            }
          }
        },
        {.fusion_bytes = fusion});
  }
}

TEST_P(SessionTest, ExecutesEachKindOfOperation) {
  for (const int size : {1, 2, 4}) {
    run(size, [&](Session& session) {
      const auto rank = static_cast<std::size_t>(session.rank());
      const auto ranks = static_cast<std::size_t>(size);
      for (int step = 0; step < 3; ++step) {
        std::vector<std::int32_t> sent(ranks * 2, session.rank() + 1);
        std::vector<std::int32_t> part(2);
        const std::vector<std::uint64_t> counts(ranks, 2);
        EXPECT_OK(session.wait(ticket_of(session.reduce_scatter(
            "scatter", sent.data(), part.data(), counts, DataType::kInt32, ReduceOp::kMax))));
        EXPECT_EQ(part, std::vector<std::int32_t>(2, size));

        std::int64_t value = session.rank() == size - 1 ? 42 + step : 0;
        EXPECT_OK(session.wait(
            ticket_of(session.broadcast("broadcast", &value, sizeof value, size - 1))));
        EXPECT_EQ(value, 42 + step);

        // Rank r contributes r + step bytes.
        std::vector<char> mine(rank + static_cast<std::size_t>(step),
                               static_cast<char>('a' + session.rank()));
        std::string all;
        EXPECT_OK(session.wait(ticket_of(session.all_gather(
            "gather", mine.data(), mine.size(), [&](std::span<const std::uint64_t> bytes) {
              EXPECT_EQ(bytes.size(), ranks);
              all.resize(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}));
              return all.data();
            }))));
        std::string expected;
        for (std::size_t r = 0; r < ranks; ++r) {
          expected.append(r + static_cast<std::size_t>(step), static_cast<char>('a' + r));
        }
        EXPECT_EQ(all, expected);

        // Rank r sends r + 1 bytes to rank 0, r + 2 to rank 1, ...
        std::vector<std::uint64_t> lengths(ranks);
        std::iota(lengths.begin(), lengths.end(), rank + 1);
        const std::string letters(std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}),
                                  static_cast<char>('a' + session.rank()));
        std::string received;
        EXPECT_OK(session.wait(ticket_of(session.all_to_all(
            "all_to_all", letters.data(), lengths, [&](std::span<const std::uint64_t> bytes) {
              received.resize(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}));
              return received.data();
            }))));
        expected.clear();
        for (std::size_t r = 0; r < ranks; ++r) {
          expected.append(r + 1 + rank, static_cast<char>('a' + r));
        }
        EXPECT_EQ(received, expected);
      }
    });
  }
}

// In turn no rank has changed its lengths, one rank has, and all have. The sums stay the same.
TEST_P(SessionTest, ExchangesChangingLengthsUnderOneName) {
  constexpr int kSize = 3;
  run(kSize, [](Session& session) {
    const auto length = [](int step, int from, int to) -> std::uint64_t {
      const bool is_changed = (step >= 1 && from == 1) || (step >= 3 && step < 5);
      if (!is_changed || to == 2) return 4;
      return to == 0 ? 7 : 1;
    };
    const auto letter = [](int from, int to) { return static_cast<char>('a' + kSize * from + to); };
    const int rank = session.rank();
    for (int step = 0; step < 7; ++step) {
      std::vector<std::uint64_t> lengths;
      std::string sent;
      std::string expected;
      std::vector<std::uint64_t> expected_lengths;
      for (int other = 0; other < kSize; ++other) {
        lengths.push_back(length(step, rank, other));
        sent.append(lengths.back(), letter(rank, other));
        expected_lengths.push_back(length(step, other, rank));
        expected.append(expected_lengths.back(), letter(other, rank));
      }
      std::string received;
      EXPECT_OK(session.wait(ticket_of(session.all_to_all(
          "all_to_all", sent.data(), lengths, [&](std::span<const std::uint64_t> bytes) {
            EXPECT_TRUE(std::ranges::equal(bytes, expected_lengths));
            received.resize(std::accumulate(bytes.begin(), bytes.end(), std::uint64_t{0}));
            return received.data();
          }))));
      EXPECT_EQ(received, expected) << "step " << step;
    }
  });
}

TEST_P(SessionTest, ExecutesAGroupTogether) {
  run(3, [&](Session& session) {
    for (int step = 0; step < 3; ++step) {
      std::vector<double> a(5, session.rank());
      std::vector<double> b(1000, session.rank() + 1);
      std::vector<double> c(1000);
      const std::vector<Tensor> tensors = {{a.data(), a.data(), 5}, {b.data(), c.data(), 1000}};
      EXPECT_OK(session.wait(ticket_of(
          session.all_reduce("group", tensors, DataType::kFloat64, {ReduceOp::kSum, 0.5, 2}))));
      EXPECT_EQ(a[4], 3);
      EXPECT_EQ(b[999], session.rank() + 1);
      EXPECT_EQ(c[999], 6);
    }
  });
}

TEST_P(SessionTest, AcceptsANameAgainWithAnotherShape) {
  run(2, [&](Session& session) {
    for (const std::size_t length : {4U, 9U, 9U, 1U, 0U, 4U}) {
      std::vector<float> values(length, 1);
      EXPECT_OK(sum(session, "w", values));
      EXPECT_EQ(values, std::vector<float>(length, 2));
    }
    std::int32_t number = session.rank();
    EXPECT_OK(session.wait(ticket_of(session.broadcast("w", &number, 4, 1))));
    EXPECT_EQ(number, 1);
  });
}

TEST_P(SessionTest, AcceptsOperationsFromSeveralThreads) {
  run(2, [&](Session& session) {
    on_threads(4, [&](int thread) {
      for (int step = 0; step < 200; ++step) {
        std::vector<float> values(16, static_cast<float>(thread));
        EXPECT_OK(sum(session, "thread" + std::to_string(thread), values));
        EXPECT_EQ(values[15], static_cast<float>(2 * thread));
      }
    });
  });
}

TEST_P(SessionTest, CallsBackWhenAnOperationIsDone) {
  run(3, [&](Session& session) {
    std::atomic<int> called = 0;
    std::vector<std::vector<float>> values(20, std::vector<float>(10, 1));
    for (int i = 0; i < 20; ++i) {
      auto& mine = values[static_cast<std::size_t>(i)];
      const Ticket ticket =
          ticket_of(session.all_reduce("w" + std::to_string(i), mine.data(), mine.data(), 10,
                                       DataType::kFloat32, ReduceOp::kSum));
      session.when_done(ticket, [&](const Status& status) {
        EXPECT_TRUE(status);
        EXPECT_EQ(mine[9], 3);
        if (++called == 20) called.notify_all();
      });
      EXPECT_FALSE(session.wait(ticket)) << "its outcome belongs to the callback";
    }
    for (int now = called; now < 20; now = called) called.wait(now);
  });
}

TEST_P(SessionTest, WorksWithoutAWaitingThread) {
  run(2, [&](Session& session) {
    std::vector<float> values(10, 1);
    const Ticket ticket = ticket_of(session.all_reduce("w", values.data(), values.data(), 10,
                                                       DataType::kFloat32, ReduceOp::kSum));
    // This thread does not help, so the session's own thread must execute the operation.
    while (!session.done(ticket)) std::this_thread::yield();
    EXPECT_EQ(values[9], 2);
    EXPECT_OK(session.wait(ticket));
    EXPECT_TRUE(session.done(ticket));
  });
}

TEST_P(SessionTest, WaitsForALimitedTime) {
  run(2, [&](Session& session) {
    constexpr std::chrono::milliseconds kShort{2};
    std::vector<float> values(10, 1);
    Ticket ticket;
    if (session.rank() == 0) {
      ticket = ticket_of(session.all_reduce("w", values.data(), values.data(), 10,
                                            DataType::kFloat32, ReduceOp::kSum));
      for (const auto limit : {kShort, std::chrono::milliseconds(0), -kShort}) {
        EXPECT_FALSE(session.wait_for(ticket, limit).has_value());
      }
      EXPECT_FALSE(session.done(ticket));
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("tried"))));
    if (session.rank() == 1) {
      ticket = ticket_of(session.all_reduce("w", values.data(), values.data(), 10,
                                            DataType::kFloat32, ReduceOp::kSum));
    }
    // Waits in short slices, as many as necessary.
    std::optional<Status> outcome;
    while (!outcome) outcome = session.wait_for(ticket, kShort);
    EXPECT_OK(*outcome);
    EXPECT_EQ(values[9], 2);
    outcome = session.wait_for(ticket, std::chrono::milliseconds::max());
    ASSERT_TRUE(outcome);
    EXPECT_EQ(outcome->error().code, ErrorCode::kBadArgument);
  });
}

TEST_P(SessionTest, ReducesTensorsInTheSharedArena) {
  run(2, [&](Session& session) {
    constexpr std::uint64_t kCount = 100'000;
    auto* const values = static_cast<float*>(session.allocate_shared(kCount * sizeof(float)));
    ASSERT_NE(values, nullptr);
    std::fill_n(values, kCount, 2.F);
    EXPECT_OK(session.wait(ticket_of(
        session.all_reduce("w", values, values, kCount, DataType::kFloat32, ReduceOp::kSum))));
    EXPECT_EQ(std::count(values, values + kCount, 4.F), static_cast<std::ptrdiff_t>(kCount));
    EXPECT_OK(session.wait(ticket_of(session.barrier("read"))));
    session.free_shared(values);
  });
}

TEST_P(SessionTest, TunesItselfAndLogsItsTries) {
  const std::string path = ::testing::TempDir() + "autotune-" + std::to_string(::getpid());
  run(2,
      [&](Session& session) {
        for (int step = 0; step < 100; ++step) {
          std::vector<float> values(1000, 1);
          EXPECT_OK(sum(session, "w", values));
          EXPECT_EQ(values[999], 2);
        }
      },
      {.autotune = true, .autotune_log = path});
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  std::remove(path.c_str());
  EXPECT_TRUE(text.str().ends_with(",1\n")) << text.str();
}

TEST_P(SessionTest, CanBeMovedToItself) {
  run(2, [](Session& session) {
    Session& same = session;
    session = std::move(same);
    EXPECT_OK(session.wait(ticket_of(session.barrier("b"))));
  });
}

TEST_P(SessionTest, StartsAndEndsManyTimes) {
  for (int round = 0; round < 30; ++round) {
    run(2, [&](Session& session) {
      std::vector<float> values(4, 1);
      EXPECT_OK(sum(session, "w", values));
    });
  }
}

// The news of these names exceed the size of the channel.
TEST_P(SessionTest, AcceptsManyLongNamesAtOnce) {
  run(2, [&](Session& session) {
    constexpr std::size_t kNames = 1'500;
    std::vector<std::int32_t> values(kNames, 1);
    std::vector<Ticket> tickets;
    for (std::size_t i = 0; i < kNames; ++i) {
      const std::string name = std::to_string(i) + std::string(4'000, 'n');
      tickets.push_back(ticket_of(
          session.all_reduce(name, &values[i], &values[i], 1, DataType::kInt32, ReduceOp::kSum)));
    }
    for (const Ticket ticket : tickets) EXPECT_OK(session.wait(ticket));
    EXPECT_EQ(std::ranges::count(values, 2), static_cast<std::ptrdiff_t>(kNames));
  });
}

// Shared memory in which an access to a part that is not reserved ends the test with SIGSEGV.
class GuardedMemory {
 public:
  explicit GuardedMemory(std::uint64_t bytes) : bytes_(bytes) {
    base_ = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(base_, MAP_FAILED);
  }
  ~GuardedMemory() { ::munmap(base_, bytes_); }
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  std::byte* base() const { return static_cast<std::byte*>(base_); }

  static bool reserve(const std::byte* begin, std::uint64_t bytes) {
    constexpr std::uintptr_t kPage = 4096;
    const auto first = reinterpret_cast<std::uintptr_t>(begin) / kPage * kPage;
    const auto end = reinterpret_cast<std::uintptr_t>(begin) + bytes;
    return ::mprotect(reinterpret_cast<void*>(first), end - first, PROT_READ | PROT_WRITE) == 0;
  }

 private:
  std::uint64_t bytes_;
  void* base_;
};

// Runs `body` on the session of each rank, whose memory `reserve` reserves; it gets the number of the
// reservation, from 0.
void with_guarded_sessions(int size, const std::function<bool(World&, int number)>& reserve,
                           const std::function<void(Result<Session>)>& body) {
  const shm::Layout layout = shm::layout_of(size, 0);
  const GuardedMemory shared(layout.session_bytes);
  const GuardedMemory mail(layout.mail_bytes);
  testing::spawn_worlds(
      size, testing::Placement::one_host(),
      [&](World& world) {
        const shm::Layout own = shm::layout_of(size, world.options.arena_bytes.value_or(0));
        const std::unique_ptr<Backend> backend = backend_of(world, own);
        ASSERT_NE(backend, nullptr);
        std::atomic<int> number = 0;
        SessionBase base{.world = world,
                         .backend = backend.get(),
                         .shared = shared.base(),
                         .shared_bytes = layout.session_bytes,
                         .mail = mail.base(),
                         .mail_bytes = layout.mail_bytes};
        base.reserve = [&](const std::byte* begin, std::uint64_t bytes) {
          return reserve(world, number++) && GuardedMemory::reserve(begin, bytes);
        };
        body(start_session(std::move(base), {}));
      },
      testing::kPatience, session_memory);
}

TEST(SessionMemory, IsReservedBeforeItIsUsed) {
  static constexpr int kSize = 3;
  with_guarded_sessions(
      kSize, [](World&, int) { return true; },
      [](Result<Session> session) {
        ASSERT_TRUE(session) << session.error().to_string();
        for (int step = 0; step < 3; ++step) {
          std::vector<float> values(100, 1);
          EXPECT_OK(sum(*session, "w" + std::string(2'000, 'n') + std::to_string(step), values));
          EXPECT_EQ(values[99], kSize);
        }
        const int next = (session->rank() + 1) % kSize;
        const int previous = (session->rank() + kSize - 1) % kSize;
        for (const std::size_t bytes : {1UL, 1'000'000UL}) {
          const std::vector<char> out(bytes, 'x');
          std::vector<char> in(bytes);
          const Ticket sending = ticket_of(session->send(out.data(), bytes, next));
          EXPECT_OK(session->wait(ticket_of(session->receive(in.data(), bytes, previous))));
          EXPECT_OK(session->wait(sending));
          EXPECT_EQ(in, out);
        }
      });
}

// Rank 1 cannot reserve the first part, its ring to rank 0, or the positions of its mail.
TEST(SessionMemory, ThatIsNotAvailableIsAnErrorOnAllRanks) {
  for (const int last : {0, 1, 2}) {
    with_guarded_sessions(
        2,
        [last](World& world, int number) {
          if (world.rank != 1 || number < last) return true;
          world.monitor->fail({.code = ErrorCode::kSystem, .message = "no memory", .rank = 1});
          return false;
        },
        [last](Result<Session> session) {
          if (last == 0 && !session) {
            EXPECT_EQ(session.error().message, "no memory");
            return;
          }
          ASSERT_TRUE(session) << session.error().to_string();
          std::vector<float> values(10, 1);
          Status status = sum(*session, "w", values);
          int number = 1;
          if (status && session->rank() == 1) {
            status = session->wait(ticket_of(session->send(&number, sizeof number, 0)));
          }
          if (status) {
            status = session->wait(
                ticket_of(session->receive(&number, sizeof number, 1 - session->rank())));
          }
          ASSERT_FALSE(status);
          EXPECT_TRUE(status.error().message.starts_with("no memory")) << status.error().message;
        });
  }
}

TEST_P(SessionTest, ForgetsManyNamesAndAcceptsThemAgain) {
  run(2, [&](Session& session) {
    constexpr int kNames = 40'000;  // more than are kept
    constexpr int kAtOnce = 500;
    std::vector<Ticket> tickets;
    std::vector<std::int32_t> values(kAtOnce);
    for (int round = 0; round < kNames; round += kAtOnce) {
      tickets.clear();
      const auto hand_over = [&](const std::string& name, std::size_t at) {
        values[at] = 1;
        tickets.push_back(ticket_of(session.all_reduce(name, &values[at], &values[at], 1,
                                                       DataType::kInt32, ReduceOp::kSum)));
      };
      for (int i = 0; i + 1 < kAtOnce; ++i) {
        hand_over("once" + std::to_string(round + i), static_cast<std::size_t>(i));
      }
      // A name that is used rarely enough to be forgotten, and again after that.
      hand_over("seldom" + std::to_string(round / 10'000), kAtOnce - 1);
      for (const Ticket ticket : tickets) EXPECT_OK(session.wait(ticket));
      EXPECT_EQ(std::ranges::count(values, 2), kAtOnce);
    }
    for (int i = 0; i < 4; ++i) {
      std::vector<float> one(1, 1);
      EXPECT_OK(sum(session, "seldom" + std::to_string(i), one));
      EXPECT_EQ(one[0], 2);
    }
  });
}

}  // namespace
}  // namespace muster::collective::session

namespace muster::collective {
namespace {

class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Variable() { ::unsetenv(name_); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
};

TEST(SessionOptions, AreCompletedFromTheEnvironment) {
  const Variable timeline("MUSTER_COLLECTIVE_TIMELINE", "/tmp/t%r.json");
  const Variable stall("MUSTER_COLLECTIVE_STALL_SECONDS", "1.5");
  const Variable slow("MUSTER_COLLECTIVE_SLOW_SECONDS", "0");
  const Variable limit("MUSTER_COLLECTIVE_STALL_LIMIT_SECONDS", "9");
  const Variable fusion("MUSTER_COLLECTIVE_FUSION_BYTES", "1000");
  const Variable autotune("MUSTER_COLLECTIVE_AUTOTUNE", "1");
  const Variable log("MUSTER_COLLECTIVE_AUTOTUNE_LOG", "/tmp/log");
  const auto options = session_options_from_environment({.fusion_bytes = 7});
  ASSERT_TRUE(options);
  EXPECT_EQ(options->timeline, "/tmp/t%r.json");
  EXPECT_EQ(options->stall_warning.count(), 1500);
  EXPECT_EQ(options->stall_limit.count(), 9000);
  EXPECT_EQ(options->fusion_bytes, 7u) << "given options take precedence";
  EXPECT_TRUE(options->autotune);
  EXPECT_EQ(options->autotune_log, "/tmp/log");
  EXPECT_EQ(options->slow_window.count(), 0);
}

TEST(SessionOptions, NameTheVariableThatIsNotANumber) {
  for (const char* value : {"soon", "-1", "1s", "nan"}) {
    const Variable stall("MUSTER_COLLECTIVE_STALL_SECONDS", value);
    const auto options = session_options_from_environment();
    ASSERT_FALSE(options);
    EXPECT_EQ(options.error().code, ErrorCode::kConfiguration);
    EXPECT_EQ(options.error().message, "MUSTER_COLLECTIVE_STALL_SECONDS is '" + std::string(value) +
                                           "', not a number of 0 or more");
  }
}

}  // namespace
}  // namespace muster::collective
