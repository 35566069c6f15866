// Operations that a session rejects or fails.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <numeric>
#include <random>
#include <sstream>
#include <thread>

#include "session/engine.h"
#include "session/session_fixture.h"

namespace muster::collective::session {
namespace {

using testing::on_threads;

using SessionRefusal = SessionTest;
INSTANTIATE_SESSION_TEST(SessionRefusal);

TEST_P(SessionRefusal, RejectsANameThatIsInFlight) {
  run(2, [&](Session& session) {
    std::vector<float> values(2, 1);
    const auto hand_over = [&] {
      return session.all_reduce("w", values.data(), values.data(), 2, DataType::kFloat32,
                                ReduceOp::kSum);
    };
    Ticket first;
    if (session.rank() == 0) {
      first = ticket_of(hand_over());
      const Result<Ticket> second = hand_over();
      ASSERT_FALSE(second);
      EXPECT_EQ(second.error().code, ErrorCode::kBadArgument);
      EXPECT_EQ(second.error().message,
                "'w': an operation of this name is in flight; wait for it, or use another name");
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("b"))));
    if (session.rank() == 1) first = ticket_of(hand_over());
    EXPECT_OK(session.wait(first));
    EXPECT_EQ(values[0], 2);
  });
}

TEST_P(SessionRefusal, RejectsInvalidArguments) {
  run(2, [&](Session& session) {
    std::vector<float> values(8);
    float* const data = values.data();
    const auto is_refused = [](const Result<Ticket>& result) {
      return !result && result.error().code == ErrorCode::kBadArgument;
    };
    const std::vector<std::uint64_t> one_length = {1};
    EXPECT_TRUE(is_refused(session.barrier("")));
    EXPECT_TRUE(is_refused(session.barrier(std::string(5000, 'x'))));
    EXPECT_TRUE(is_refused(session.broadcast("x", data, 4, 2)));
    EXPECT_TRUE(is_refused(session.broadcast("x", nullptr, 4, 0)));
    EXPECT_TRUE(
        is_refused(session.all_reduce("x", data, data + 1, 4, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_TRUE(is_refused(session.all_reduce("x", data, data, 4, DataType{99}, ReduceOp::kSum)));
    EXPECT_TRUE(
        is_refused(session.all_reduce("x", data, data, 4, DataType::kInt32, ReduceOp::kAdasum)));
    EXPECT_TRUE(is_refused(
        session.all_reduce("x", data, data, UINT64_MAX / 2, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_TRUE(is_refused(
        session.reduce_scatter("x", data, data, one_length, DataType::kFloat32, ReduceOp::kSum)));
    EXPECT_TRUE(is_refused(session.all_gather("x", data, 4, {})));
    EXPECT_FALSE(session.wait(Ticket{}));
    EXPECT_FALSE(session.wait(Ticket{12345}));
    EXPECT_OK(session.wait(ticket_of(session.barrier("x"))));
  });
}

TEST_P(SessionRefusal, RejectsAListOfTensorsThatOverlap) {
  run(2, [&](Session& session) {
    std::vector<float> values(100, 1);
    std::vector<float> results(100);
    float* const in = values.data();
    float* const out = results.data();
    const auto reduce = [&](const std::vector<Tensor>& tensors) {
      return session.all_reduce("x", tensors, DataType::kFloat32, ReduceOp::kSum);
    };
    struct Case {
      std::vector<Tensor> tensors;
      const char* names;
    };
    for (const Case& c : {
             Case{{{in, in, 10}, {in, in, 10}}, "tensors 0 and 1"},
             Case{{{in + 20, in + 20, 10}, {in, in, 5}, {in + 29, in + 29, 1}}, "tensors 0 and 2"},
             Case{{{in, out, 10}, {in + 50, out + 9, 10}}, "tensors 0 and 1"},
             Case{{{in, out, 10}, {out + 5, in + 50, 1}}, "tensors 0 and 1"},
             Case{{{in, in, 40}, {out, out, 40}, {in + 39, in + 80, 20}}, "tensors 0 and 2"},
         }) {
      const Result<Ticket> begun = reduce(c.tensors);
      ASSERT_FALSE(begun) << c.names;
      EXPECT_EQ(begun.error().code, ErrorCode::kBadArgument);
      EXPECT_NE(begun.error().message.find(c.names), std::string::npos) << begun.error().message;
    }
    // Neighbours, inputs in common, empty tensors.
    EXPECT_OK(session.wait(ticket_of(reduce({{in, out, 10}, {in, out + 10, 10}}))));
    EXPECT_OK(session.wait(ticket_of(reduce({{in + 10, in + 10, 10}, {in, in, 10}, {in, in, 0}}))));
    EXPECT_EQ(results[19], 2);
    EXPECT_EQ(values[19], 2);
  });
}

TEST_P(SessionRefusal, RefusesMemoryThatAnOperationInFlightWrites) {
  run(2, [&](Session& session) {
    std::vector<float> values(20, 1);
    std::vector<float> others(40, 1);
    float* const used = values.data() + 5;  // 10 elements, in place
    const int other = 1 - session.rank();
    const auto reduce = [&](std::string_view name, const float* in, float* out,
                            std::uint64_t count) {
      return session.all_reduce(name, in, out, count, DataType::kFloat32, ReduceOp::kSum);
    };
    Ticket first;
    if (session.rank() == 0) {
      first = ticket_of(reduce("first", used, used, 10));
      const std::vector<std::uint64_t> halves = {5, 5};
      const std::vector<std::uint64_t> four_each = {4, 4};
      float* const apart = others.data();
      const auto allocate = [&](auto) { return values.data(); };
      const KnownResult result(reinterpret_cast<const std::byte*>(values.data()), 80);
      const std::vector<std::pair<const char*, Result<Ticket>>> attempts = {
          {"in place", reduce("x", used, used, 10)},
          {"in place, in part", reduce("x", values.data(), values.data(), 6)},
          {"output", reduce("x", apart, used + 9, 1)},
          {"input", reduce("x", used, apart, 1)},
          {"a list",
           session.all_reduce("x", std::vector<Tensor>{{apart, apart, 3}, {used, used, 1}},
                              DataType::kFloat32, ReduceOp::kSum)},
          {"reduce_scatter",
           session.reduce_scatter("x", apart, used, halves, DataType::kFloat32, ReduceOp::kSum)},
          {"reduce", session.reduce("x", used, nullptr, 10, DataType::kFloat32, ReduceOp::kSum, 1)},
          {"broadcast from here", session.broadcast("x", used, 4, 0)},
          {"broadcast to here", session.broadcast("x", used, 4, 1)},
          {"all_gather of it", session.all_gather("x", used, 4, allocate)},
          {"all_gather into it", session.all_gather("x", apart, 4, allocate, result)},
          {"all_to_all", session.all_to_all("x", apart, four_each, allocate, result)},
          {"gather", session.gather("x", apart, 4, 0, allocate, result)},
          {"scatter", session.scatter("x", apart, four_each, 0, allocate, result)},
          {"send", session.send(used, 4, other)},
          {"receive", session.receive(used, 4, other)},
      };
      for (const auto& [what, attempt] : attempts) {
        ASSERT_FALSE(attempt) << what;
        EXPECT_EQ(attempt.error().code, ErrorCode::kBadArgument);
        EXPECT_NE(attempt.error().message.find(
                      ": its memory is in use by 'first', which is in flight; wait for"),
                  std::string::npos)
            << attempt.error().message;
      }
      // Neighbours.
      EXPECT_OK(session.wait(ticket_of(session.send(values.data(), 20, other))));
      EXPECT_OK(session.wait(ticket_of(session.send(used + 10, 20, other))));
    } else {
      EXPECT_OK(session.wait(ticket_of(session.receive(others.data(), 20, other))));
      EXPECT_OK(session.wait(ticket_of(session.receive(others.data(), 20, other))));
      first = ticket_of(reduce("first", used, used, 10));
    }
    EXPECT_OK(session.wait(first));
    EXPECT_OK(session.wait(ticket_of(reduce("x", used, used, 10))));
    EXPECT_EQ(used[9], 4);
  });
}

TEST_P(SessionRefusal, AllowsSeveralOperationsToReadTheSameMemory) {
  run(2, [&](Session& session) {
    const std::vector<float> in(10, 1);
    std::vector<std::vector<float>> out(3, std::vector<float>(10));
    std::vector<Ticket> tickets;
    if (session.rank() == 1) EXPECT_OK(session.wait(ticket_of(session.barrier("handed over"))));
    for (std::size_t i = 0; i < out.size(); ++i) {
      tickets.push_back(
          ticket_of(session.all_reduce("r" + std::to_string(i), in.data(), out[i].data(), 10,
                                       DataType::kFloat32, ReduceOp::kSum)));
    }
    if (session.rank() == 0) {
      const Result<Ticket> writes =
          session.broadcast("x", const_cast<float*>(in.data()) + 9, sizeof(float), 1);
      ASSERT_FALSE(writes);
      EXPECT_NE(writes.error().message.find("in use by 'r"), std::string::npos);
      EXPECT_OK(session.wait(ticket_of(session.barrier("handed over"))));
    }
    for (const Ticket ticket : tickets) EXPECT_OK(session.wait(ticket));
    EXPECT_EQ(out[2][9], 2);
  });
}

TEST_P(SessionRefusal, NamesBothRequestsOfAMismatchOnEveryRank) {
  run(3, [&](Session& session) {
    for (int step = 0; step < 3; ++step) {
      std::vector<float> values(6, 1);
      values.resize(session.rank() == 0 ? 5 : 6);
      const Status length = sum(session, "w1", values);
      ASSERT_FALSE(length);
      EXPECT_EQ(length.error().code, ErrorCode::kMismatch);
      EXPECT_EQ(length.error().message,
                "all_reduce 'w1': rank 0 on host host-0 hands over 5 float32, sum; rank 1 on host "
                "host-1 6 float32, sum");
      std::int32_t number = 0;
      const Status kind = session.rank() == 2
                              ? session.wait(ticket_of(session.broadcast("w1", &number, 4, 1)))
                              : session.wait(ticket_of(session.barrier("w1")));
      ASSERT_FALSE(kind);
      EXPECT_EQ(kind.error().code, ErrorCode::kMismatch);
      EXPECT_EQ(
          kind.error().message,
          "'w1': rank 0 on host host-0 hands over barrier; rank 2 on host host-2 broadcast of "
          "4 bytes from rank 1");
      // The session still works.
      std::vector<float> good(4, 1);
      EXPECT_OK(sum(session, "w1", good));
      EXPECT_EQ(good[3], 3);
    }
  });
}

TEST_P(SessionRefusal, ShowsBothShapesWhereTheyDiffer) {
  struct Case {
    std::string zero;
    std::string one;
    std::uint64_t count_of_one;
    std::string message;
  };
  const std::string alike(3000, 'x');
  const std::string too_long(10'000, 'y');
  const std::vector<Case> cases = {
      {"float32[4]", "float32[2, 2]", 4,
       "rank 0 on host host-0 hands over float32[4]; rank 1 on host host-1 float32[2, 2]"},
      {"float32[4]", "float32[3]", 3,
       "rank 0 on host host-0 hands over float32[4] (4 float32, sum); rank 1 on host host-1 "
       "float32[3] (3 float32, sum)"},
      {"float32[4]", "", 4,
       "rank 0 on host host-0 hands over float32[4]; rank 1 on host host-1 4 float32, sum without "
       "a shape"},
      {"same", "same", 3,
       "rank 0 on host host-0 hands over 4 float32, sum; rank 1 on host host-1 3 float32, sum"},
      {alike + "[1]" + alike, alike + "[2]" + alike, 4,
       "rank 0 on host host-0 hands over ..." + std::string(59, 'x') + "[1]"},
      {too_long + "1", too_long + "2", 4, " and 6001 more bytes, "},
  };
  run(2, [&](Session& session) {
    for (const Case& one : cases) {
      const bool first = session.rank() == 0;
      std::vector<float> values(first ? 4 : one.count_of_one, 1);
      const Status outcome = session.wait(ticket_of(
          session.all_reduce({"w", first ? one.zero : one.one}, values.data(), values.data(),
                             values.size(), DataType::kFloat32, ReduceOp::kSum)));
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, ErrorCode::kMismatch);
      EXPECT_NE(outcome.error().message.find(one.message), std::string::npos)
          << outcome.error().message;
    }
    // With equal shapes, lengths that ranks choose for themselves are not a mismatch.
    std::vector<char> all(3);
    const auto mine = static_cast<std::uint64_t>(session.rank()) + 1;
    for (const std::string_view shape : {"float32[?, 3]", "float32[?, 4]"}) {
      EXPECT_OK(session.wait(ticket_of(
          session.all_gather({"g", shape}, "ab", mine, [&](auto) { return all.data(); }))));
    }
    const Status gathered = session.wait(ticket_of(session.all_gather(
        {"g", session.rank() == 0 ? "a" : "b"}, "ab", mine, [&](auto) { return all.data(); })));
    ASSERT_FALSE(gathered);
    EXPECT_EQ(gathered.error().message,
              "all_gather 'g': rank 0 on host host-0 hands over a; rank 1 on host host-1 b");
    // Equal shapes match, whatever their length.
    for (const std::size_t length : {0U, 1U, 4096U, 4097U, 100'000U}) {
      EXPECT_OK(session.wait(ticket_of(session.barrier({"b", std::string(length, 's')}))));
    }
  });
}

TEST_P(SessionRefusal, DetectsAMismatchOfEachField) {
  using HandOver = std::function<Result<Ticket>(Session&)>;
  const auto reduce = [](DataType type, ReduceOp op, double scale) {
    return [=](Session& session) {
      static thread_local std::vector<double> values(10);
      return session.all_reduce("x", values.data(), values.data(), 10, type, {op, scale});
    };
  };
  const auto broadcast = [](int root) {
    return [=](Session& session) {
      static thread_local double value = 0;
      return session.broadcast("x", &value, 8, root);
    };
  };
  const auto scatter = [](std::uint64_t first) {
    return [=](Session& session) {
      static thread_local std::vector<double> in(10);
      static thread_local std::vector<double> out(10);
      const std::vector<std::uint64_t> counts = {first, 10 - first};
      return session.reduce_scatter("x", in.data(), out.data(), counts, DataType::kFloat64,
                                    ReduceOp::kSum);
    };
  };
  const std::vector<std::pair<HandOver, HandOver>> pairs = {
      {reduce(DataType::kFloat64, ReduceOp::kSum, 1), reduce(DataType::kInt64, ReduceOp::kSum, 1)},
      {reduce(DataType::kFloat64, ReduceOp::kSum, 1),
       reduce(DataType::kFloat64, ReduceOp::kMax, 1)},
      {reduce(DataType::kFloat64, ReduceOp::kSum, 1),
       reduce(DataType::kFloat64, ReduceOp::kSum, 0.5)},
      {broadcast(0), broadcast(1)},
      {scatter(3), scatter(4)},
  };
  run(2, [&](Session& session) {
    for (const auto& [zero, one] : pairs) {
      const Status outcome =
          session.wait(ticket_of(session.rank() == 0 ? zero(session) : one(session)));
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, ErrorCode::kMismatch) << outcome.error().to_string();
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("end"))));
  });
}

TEST_P(SessionRefusal, ARankThatJoinedContributesZeros) {
  run(3, [&](Session& session) {
    for (int epoch = 0; epoch < 3; ++epoch) {
      // Rank r has r + 1 steps of data.
      for (int step = 0; step <= session.rank(); ++step) {
        std::vector<float> a(5, 3);
        std::vector<float> b(50, 6);
        const std::vector<Tensor> group = {{a.data(), a.data(), 5}, {b.data(), b.data(), 50}};
        const Ticket grouped =
            ticket_of(session.all_reduce("group", group, DataType::kFloat32, ReduceOp::kAverage));
        std::vector<float> w(7, 3);
        EXPECT_OK(sum(session, "w", w));
        EXPECT_OK(session.wait(grouped));
        const auto with_data = static_cast<float>(3 - step);
        EXPECT_EQ(w[6], 3 * with_data);
        EXPECT_EQ(a[4], with_data);
        EXPECT_EQ(b[49], 2 * with_data);
      }
      const Ticket joined = ticket_of(session.join());
      EXPECT_OK(session.wait(joined));
      EXPECT_EQ(session.last_joined(), 2);
    }
  });
}

TEST_P(SessionRefusal, OtherOperationsFailWhileARankHasJoined) {
  run(2, [&](Session& session) {
    if (session.rank() == 0) {
      const Ticket joined = ticket_of(session.join());
      EXPECT_FALSE(session.barrier("late"));
      EXPECT_OK(session.wait(joined));
    } else {
      // This rank cannot detect when the other rank has joined.
      Status outcome;
      int number = 0;
      const Ticket ticket = ticket_of(session.broadcast("x", &number, 4, 1));
      outcome = session.wait(ticket);
      ASSERT_FALSE(outcome);
      EXPECT_EQ(outcome.error().code, ErrorCode::kMismatch);
      EXPECT_EQ(outcome.error().message, "broadcast 'x' while rank 0 on host host-0 has joined");
      EXPECT_OK(session.wait(ticket_of(session.join())));
    }
    EXPECT_EQ(session.last_joined(), 1);
    EXPECT_OK(session.wait(ticket_of(session.barrier("after"))));
  });
}

TEST_P(SessionRefusal, FailsOnlyTheOperationThatGetsNoMemory) {
  run(2, [&](Session& session) {
    std::vector<char> part(100, 'x');
    std::vector<char> all(200);
    const Status gathered = session.wait(ticket_of(
        session.all_gather("g", part.data(), 100, [&](std::span<const std::uint64_t>) -> void* {
          return session.rank() == 0 ? nullptr : all.data();
        })));
    if (session.rank() == 0) {
      ASSERT_FALSE(gathered);
      EXPECT_EQ(gathered.error().message, "no memory for the 200 bytes of 'g'");
    } else {
      EXPECT_OK(gathered);
      EXPECT_EQ(all[199], 'x');
    }
    EXPECT_OK(session.wait(ticket_of(session.barrier("b"))));
  });
}

// The zeros of a rank that has joined, for an operation of a rank with more memory.
TEST(Executor, FailsTheWorldIfThereIsNoMemoryForZeros) {
  std::vector<std::uint64_t> counts = {std::uint64_t{1} << 60};  // longer than any vector
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  counts.push_back(std::uint64_t{1} << 59);  // a sanitizer ends the process
#endif
  for (const std::uint64_t count : counts) {
    World world{.rank = 1, .size = 2, .hosts = {"a", "b"}};
    world.monitor = std::make_unique<Monitor>(
        MonitorOptions{.rank = 1, .host = "b", .timeout = testing::kPatience}, std::vector<Link>());
    SoloBackend backend;
    SessionBase base{.world = world, .backend = &backend};
    Executor executor(base);
    const Call call{.kind = CallKind::kAllReduce,
                    .type = DataType::kFloat64,
                    .reduction = ReduceOp::kSum,
                    .count = count};
    const Agreed agreed{.name = "w", .request = {.call = call, .lengths = {}}, .gathered = {}};
    Item item{.agreed = &agreed};

    executor.carry_out({&item, 1});

    ASSERT_FALSE(item.outcome);
    EXPECT_EQ(item.outcome.error().code, ErrorCode::kSystem);
    EXPECT_EQ(item.outcome.error().message, "rank 1 on host b has no memory for the " +
                                                std::to_string(8 * count) +
                                                " bytes of zeros that it contributes to 'w'");
    EXPECT_EQ(item.outcome.error().rank, 1);
    EXPECT_TRUE(world.monitor->failed());
  }
}

// A world of one rank, whose operation is in flight while it asks for the memory of its result.
TEST(Engine, StoresNoNameOfAnOperationThatItRefused) {
  World world{.hosts = {"a"}};
  SoloBackend backend;
  Engine engine({.world = world, .backend = &backend}, {});
  ASSERT_TRUE(engine.start());
  std::vector<float> values(4);
  std::vector<float> all(4);
  const std::uint64_t bytes = values.size() * sizeof(float);
  const auto reduce = [&](const std::string& name) {
    const Tensor tensor{values.data(), values.data(), values.size()};
    return engine.hand_over(name,
                            {.kind = CallKind::kAllReduce,
                             .type = DataType::kFloat32,
                             .reduction = ReduceOp::kSum,
                             .count = values.size()},
                            {}, {.tensors = {&tensor, 1}});
  };
  const auto allocate = [&](std::span<const std::uint64_t>) {
    const std::size_t before = engine.known_names();
    for (int i = 0; i < 10; ++i) EXPECT_FALSE(reduce("refused " + std::to_string(i)));
    EXPECT_EQ(engine.known_names(), before);
    return all.data();
  };
  const Result<Ticket> gathered = engine.hand_over("g", {.kind = CallKind::kAllGather}, {&bytes, 1},
                                                   {.in = values.data(), .allocate = allocate});
  EXPECT_OK(engine.wait(ticket_of(gathered), std::nullopt).value());
  EXPECT_OK(engine.wait(ticket_of(reduce("r")), std::nullopt).value());
  engine.leave();
  EXPECT_FALSE(engine.wait(ticket_of(reduce("late")), std::nullopt).value());
  EXPECT_EQ(engine.known_names(), 0u);
}

TEST_P(SessionRefusal, FailsPendingOperationsWhenARankLeaves) {
  for (int leaver = 0; leaver < 3; ++leaver) {
    std::barrier<> pending(3);
    testing::spawn_worlds(
        3, testing::Placement::one_host(),
        [&](World& world) {
          std::unique_ptr<Session> session = session_of(world, GetParam());
          ASSERT_NE(session, nullptr);
          EXPECT_OK(session->wait(ticket_of(session->barrier("b"))));
          std::vector<float> values(4);
          if (world.rank == leaver) {
            std::atomic<bool> failed = false;
            session->when_done(ticket_of(session->barrier("mine alone")),
                               [&](const Status& status) {
                                 EXPECT_FALSE(status);
                                 failed = true;
                               });
            pending.arrive_and_wait();
            session.reset();
            EXPECT_TRUE(failed);
            return;
          }
          const Ticket ticket = ticket_of(session->all_reduce("x", values.data(), values.data(), 4,
                                                              DataType::kFloat32, ReduceOp::kSum));
          pending.arrive_and_wait();
          const auto expect_lost = [&](const Status& status) {
            ASSERT_FALSE(status);
            EXPECT_EQ(status.error().code, ErrorCode::kPeerLost);
            EXPECT_EQ(status.error().rank, leaver) << status.error().to_string();
            EXPECT_EQ(status.error().host, "host-" + std::to_string(leaver));
          };
          expect_lost(session->wait(ticket));
          // Another rank may have left in the meantime, but the first departure counts.
          expect_lost(session->wait(ticket_of(session->barrier("later"))));
        },
        testing::kPatience, session_memory);
  }
}

TEST_P(SessionRefusal, LeavingEndsTheWaitsOfOtherThreads) {
  run(2, [&](Session& session) {
    EXPECT_OK(session.wait(ticket_of(session.barrier("b"))));
    if (session.rank() == 1) {
      // This wait ends when rank 0 leaves.
      EXPECT_FALSE(session.wait(ticket_of(session.barrier("of rank 1"))));
      return;
    }
    std::atomic<int> failed = 0;
    std::barrier<> waiting(4);
    on_threads(4, [&](int thread) {
      if (thread == 0) {
        waiting.arrive_and_wait();
        session.leave();
        session.leave();
        return;
      }
      const Ticket ticket = ticket_of(session.barrier("of thread " + std::to_string(thread)));
      waiting.arrive_and_wait();
      std::optional<Status> outcome;
      if (thread == 1) outcome = session.wait(ticket);
      if (thread == 2) outcome = session.wait_for(ticket, std::chrono::minutes(10));
      while (!outcome) outcome = session.wait_for(ticket, std::chrono::milliseconds(1));
      EXPECT_FALSE(*outcome);
      EXPECT_EQ(outcome->error().code, ErrorCode::kPeerLost);
      ++failed;
    });
    EXPECT_EQ(failed, 3);
    EXPECT_FALSE(session.wait(ticket_of(session.barrier("later"))));
  });
}

TEST_P(SessionRefusal, FailsPendingOperationsWhenARankHasNoSession) {
  testing::spawn_worlds(
      3, testing::Placement::one_host(),
      [&](World& world) {
        // The rank cannot write its timeline, or does not start a session at all.
        const std::unique_ptr<Session> session =
            session_of(world, GetParam(), {.timeline = world.rank == 1 ? "/no/such/file" : ""});
        if (world.rank == 1) {
          EXPECT_EQ(session, nullptr);
          return;
        }
        ASSERT_NE(session, nullptr);
        const Status status = session->wait(ticket_of(session->barrier("b")));
        ASSERT_FALSE(status);
        EXPECT_EQ(status.error().code, ErrorCode::kPeerLost);
        EXPECT_EQ(status.error().rank, 1) << status.error().to_string();
      },
      testing::kPatience, session_memory);
  std::atomic<int> ended = 0;
  testing::spawn_worlds(
      2, testing::Placement::one_host(),
      [&](World& world) {
        if (world.rank == 1) {
          // Takes part in the creation of the backend, and leaves.
          shm::Layout layout = shm::layout_of(2, world.options.arena_bytes.value_or(0));
          EXPECT_NE(backend_of(world, layout), nullptr);
          return;
        }
        const std::unique_ptr<Session> session = session_of(world, GetParam());
        ASSERT_NE(session, nullptr);
        EXPECT_FALSE(session->wait(ticket_of(session->barrier("b"))));
        ++ended;
      },
      testing::kPatience, session_memory);
  EXPECT_EQ(ended, 1);
}

}  // namespace
}  // namespace muster::collective::session
