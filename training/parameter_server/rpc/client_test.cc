// Workers and parameter servers together, through the public interface only.
#include "muster/parameter_server/client.h"

#include <gtest/gtest.h>

#include <limits>
#include <numeric>

#include "parameter_server/rpc/test_job.h"

namespace muster::parameter_server {
namespace {

using collective::ErrorCode;
using collective::Status;
using testing::Job;
using testing::Values;

constexpr Sgd kUnitSteps{.learning_rate = 1};

TEST(Client, PushesStepsAndPullsTheirResult) {
  const Job job(1);
  Client client = job.join(0);
  const Values w = {1, 2, 3, 4, 5, 6};
  const Values b = {7};
  const auto declared = client.declare({{"w", {2, 3}, w}, {"b", {}, b}}, Sgd{.learning_rate = 0.5});
  ASSERT_TRUE(declared) << declared.error().to_string();
  EXPECT_TRUE(declared->was_first);

  const Values gradient = {2, 2, 2, 2, 2, 4};
  const Status pushed = client.push({{"w", gradient}});
  ASSERT_TRUE(pushed) << pushed.error().to_string();
  Values pulled_w(6);
  Values pulled_b(1);
  const auto pulled = client.pull({{"b", pulled_b}, {"w", pulled_w}});
  ASSERT_TRUE(pulled) << pulled.error().to_string();
  EXPECT_EQ(pulled->pushes, 1U);
  EXPECT_EQ(pulled_w, (Values{0, 1, 2, 3, 4, 4}));
  EXPECT_EQ(pulled_b, b);
  EXPECT_TRUE(client.leave());
  EXPECT_EQ(client.push({{"w", gradient}}).error().code, ErrorCode::kBadArgument);
}

TEST(Client, AModelLargerThanAGrpcMessageIsSpreadOverSeveralServers) {
  Job job(3);
  Client client = job.join(0);
  constexpr std::size_t kLarge = 5'000'003;  // 20 MB
  Values large(kLarge);
  std::iota(large.begin(), large.end(), 0.0F);
  Values small = {1, 2, 3};
  ASSERT_TRUE(client.declare({{"small", {3}, small}, {"large", {kLarge}, large}}, kUnitSteps));
  ASSERT_TRUE(client.push({{"large", Values(kLarge, -1)}}));

  Values pulled(kLarge);
  ASSERT_TRUE(client.pull({{"large", pulled}, {"small", small}}));
  for (std::size_t i = 0; i < kLarge; ++i) ASSERT_EQ(pulled[i], large[i] + 1) << i;
  EXPECT_EQ(small, (Values{1, 2, 3}));
  const auto statuses = client.status();
  ASSERT_TRUE(statuses);
  std::uint64_t bytes = 0;
  for (const ServerStatus& status : *statuses) bytes += status.bytes;
  EXPECT_EQ(bytes, (kLarge + 3) * sizeof(float));
  EXPECT_EQ(statuses->at(1).address, job.addresses[1]);
  EXPECT_EQ(statuses->at(1).pushes, 1U);
  EXPECT_EQ(statuses->at(1).bytes_in, statuses->at(1).bytes);
}

TEST(Client, TheFirstDeclarationCountsAndLaterWorkersGetTheCurrentValues) {
  const Job job(2);
  Client first = job.join(0);
  Client second = job.join(1);
  ASSERT_TRUE(first.declare({{"w", {3}, Values{1, 2, 3}}}, kUnitSteps));
  ASSERT_TRUE(first.push({{"w", Values{1, 1, 1}}}));
  const auto declared = second.declare({{"w", {3}, Values{7, 7, 7}}}, kUnitSteps);
  ASSERT_TRUE(declared) << declared.error().to_string();
  EXPECT_FALSE(declared->was_first);
  Values w(3);
  ASSERT_TRUE(second.pull({{"w", w}}));
  EXPECT_EQ(w, (Values{0, 1, 2}));
}

TEST(Client, AWorkerThatStartsAgainIsNotTheFirst) {
  const Job job(2);
  Client first = job.join(0);
  ASSERT_TRUE(first.declare({{"w", {3}, Values{1, 2, 3}}}, kUnitSteps));
  Client again = job.join(0);
  const auto declared = again.declare({{"w", {3}, Values{7, 7, 7}}}, kUnitSteps);
  ASSERT_TRUE(declared) << declared.error().to_string();
  EXPECT_FALSE(declared->was_first);
  Values w(3);
  ASSERT_TRUE(again.pull({{"w", w}}));
  EXPECT_EQ(w, (Values{1, 2, 3}));
}

TEST(Client, AServerWithTheModelOfAnEarlierStartIsRejected) {
  const Job before(2);
  ASSERT_TRUE(before.join(0).declare({{"w", {2}, Values(2)}}, kUnitSteps));
  const Job after(1);
  auto client = Client::connect(
      {.servers = {after.addresses[0], before.addresses[1]}, .worker = 0, .key = testing::kKey});
  ASSERT_TRUE(client) << client.error().to_string();
  const auto declared = client->declare({{"w", {2}, Values(2)}}, kUnitSteps);
  ASSERT_FALSE(declared);
  EXPECT_EQ(declared.error().code, ErrorCode::kMismatch);
  EXPECT_EQ(declared.error().message, "parameter server 1 (" + before.addresses[1] +
                                          ") has a model already, and parameter server 0 had none");
}

// The server answers while the worker still sends, before it has read all of the values.
TEST(Client, ALateDeclarationOfALargeModelIsAnswered) {
  const Job job(2);
  const Values large(2'000'000, 1);  // 8 MB
  const auto size = static_cast<std::int64_t>(large.size());
  Client first = job.join(0);
  ASSERT_TRUE(first.declare({{"w", {size}, large}}, kUnitSteps));
  for (int worker = 1; worker <= 3; ++worker) {
    Client late = job.join(worker);
    const auto declared = late.declare({{"w", {size}, large}}, kUnitSteps);
    ASSERT_TRUE(declared) << declared.error().to_string();
    EXPECT_FALSE(declared->was_first);
    ASSERT_TRUE(late.push({{"w", large}}));
  }
  EXPECT_EQ(job.servers[0].status().pushes, 3U);
}

TEST(Client, WorkersThatDeclareAtTheSameTimeBeginWithOneWorkersValues) {
  const Job job(3, {.workers = 4});
  std::vector<Values> seen(4, Values(64));
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 4; ++worker) {
    workers.emplace_back([&, worker] {
      Client client = job.join(worker);
      const Values own(64, static_cast<float>(worker));
      ASSERT_TRUE(client.declare({{"w", {64}, own}}, kUnitSteps));
      ASSERT_TRUE(client.pull({{"w", seen[static_cast<std::size_t>(worker)]}}));
      ASSERT_TRUE(client.leave());
    });
  }
  for (std::thread& worker : workers) worker.join();
  for (const Values& values : seen) EXPECT_EQ(values, Values(64, seen[0][0]));
}

TEST(Client, AnotherShapeOrOptimizerIsRejectedNamingBoth) {
  const Job job(1);
  Client first = job.join(0);
  ASSERT_TRUE(first.declare({{"w", {2, 3}, Values(6)}}, kUnitSteps));
  const auto shape = job.join(1).declare({{"w", {3, 2}, Values(6)}}, kUnitSteps);
  ASSERT_FALSE(shape);
  EXPECT_EQ(shape.error().code, ErrorCode::kMismatch);
  EXPECT_NE(
      shape.error().message.find("'w' was declared as 2x3 by the first worker, and now as 3x2"),
      std::string::npos);
  const auto optimizer = job.join(2).declare({{"w", {2, 3}, Values(6)}}, Adam{});
  ASSERT_FALSE(optimizer);
  EXPECT_EQ(optimizer.error().code, ErrorCode::kMismatch);
}

TEST(Client, RejectsInvalidArgumentsAndStaysUsable) {
  const Job job(1);
  Client client = job.join(4);
  Values w = {1, 2};
  EXPECT_EQ(client.pull({{"w", w}}).error().message,
            "declare() the model before pull() and push()");
  EXPECT_EQ(client.declare({{"w", {3}, w}}, kUnitSteps).error().message,
            "'w' has the shape 3, but 2 values");
  EXPECT_EQ(client.declare({{"w", {2}, w}}, Sgd{.learning_rate = -1}).error().code,
            ErrorCode::kBadArgument);
  ASSERT_TRUE(client.declare({{"w", {2}, w}}, kUnitSteps));
  EXPECT_FALSE(client.declare({{"w", {2}, w}}, kUnitSteps));
  EXPECT_EQ(client.push({{"v", w}}).error().message, "parameter 'v' was not declared");
  EXPECT_EQ(client.push({{"w", Values{1}}}).error().message, "'w' has 2 elements (2), not 1");
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Status not_finite = client.push({{"w", Values{1, nan}}});
  EXPECT_EQ(not_finite.error().rank, 4);
  EXPECT_NE(
      not_finite.error().message.find("the gradient of worker 4 has a NaN as element 1 of 'w'"),
      std::string::npos);

  const auto pulled = client.pull({{"w", w}});
  ASSERT_TRUE(pulled) << pulled.error().to_string();
  EXPECT_EQ(pulled->pushes, 0U);
  EXPECT_EQ(w, (Values{1, 2}));
}

TEST(Client, AsynchronousCallsTakeEffectInOrder) {
  const Job job(2);
  Client client = job.join(0);
  Values w(1'000);
  ASSERT_TRUE(client.declare({{"w", {1'000}, w}}, kUnitSteps));
  const Values gradient(1'000, -1);
  std::vector<std::future<Status>> pushes;
  for (int i = 0; i < 20; ++i)
    pushes.push_back(client.push_async(std::vector<Gradient>{{"w", gradient}}));
  auto pull = client.pull_async(std::vector<Destination>{{"w", w}});
  const auto pulled = pull.get();
  ASSERT_TRUE(pulled) << pulled.error().to_string();
  EXPECT_EQ(pulled->pushes, 20U);
  EXPECT_EQ(w, Values(1'000, 20));
  for (auto& push : pushes) EXPECT_TRUE(push.get());
}

TEST(Client, CountsAllPushesOfManyWorkers) {
  constexpr int kWorkers = 4;
  constexpr int kSteps = 10;
  Job job(2, {.workers = kWorkers});
  std::vector<std::thread> workers;
  for (int worker = 0; worker < kWorkers; ++worker) {
    workers.emplace_back([&, worker] {
      Client client = job.join(worker);
      ASSERT_TRUE(client.declare({{"w", {3'000}, Values(3'000)}}, kUnitSteps));
      for (int step = 0; step < kSteps; ++step) {
        ASSERT_TRUE(client.push({{"w", Values(3'000, -1)}}));
      }
      ASSERT_TRUE(client.leave());
    });
  }
  for (std::thread& worker : workers) worker.join();
  Client reader = job.join(kWorkers);
  ASSERT_TRUE(reader.declare({{"w", {3'000}, Values(3'000)}}, kUnitSteps));
  Values w(3'000);
  ASSERT_TRUE(reader.pull({{"w", w}}));
  EXPECT_EQ(w, Values(3'000, kWorkers * kSteps));
}

// Least squares: y = 2 x0 - 3 x1 + 0.5. Each worker has a third of the samples.
void learn(Client client, int worker) {
  Values w(3);
  ASSERT_TRUE(client.declare({{"w", {3}, w}}, Sgd{.learning_rate = 0.05}));
  for (int step = 0; step < 100; ++step) {
    ASSERT_TRUE(client.pull({{"w", w}}));
    Values gradient(3);
    for (int i = worker; i < 12; i += 3) {
      const float x0 = static_cast<float>(i % 4) - 1.5F;
      const float x1 = static_cast<float>(i % 5) - 2;
      const float error = w[0] * x0 + w[1] * x1 + w[2] - (2 * x0 - 3 * x1 + 0.5F);
      gradient[0] += error * x0 / 4;
      gradient[1] += error * x1 / 4;
      gradient[2] += error / 4;
    }
    ASSERT_TRUE(client.push({{"w", gradient}}));
  }
}

TEST(Client, ThreeAsynchronousWorkersSolveAProblemTogether) {
  const Job job(2, {.workers = 3});
  std::vector<Client> clients;
  for (int worker = 0; worker < 3; ++worker) clients.push_back(job.join(worker));
  Client reader = job.join(3);
  std::vector<std::thread> workers;
  for (int worker = 0; worker < 3; ++worker) {
    workers.emplace_back(
        [&, worker] { learn(std::move(clients[static_cast<std::size_t>(worker)]), worker); });
  }
  for (std::thread& worker : workers) worker.join();
  Values w(3);
  ASSERT_TRUE(reader.declare({{"w", {3}, w}}, Sgd{.learning_rate = 0.05}));
  ASSERT_TRUE(reader.pull({{"w", w}}));
  EXPECT_NEAR(w[0], 2, 1e-3);
  EXPECT_NEAR(w[1], -3, 1e-3);
  EXPECT_NEAR(w[2], 0.5, 1e-3);
}

}  // namespace
}  // namespace muster::parameter_server
