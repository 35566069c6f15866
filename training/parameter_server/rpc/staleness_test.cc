// Which workers wait for which, over real connections.
#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "parameter_server/rpc/test_job.h"

namespace muster::parameter_server {
namespace {

using testing::Job;
using testing::until_it_waits;
using testing::until_there_are;
using testing::Values;

// Workers of a model with one number, which begins at 0: the pulled value is the sum of all pushes.
class Staleness : public ::testing::Test {
 protected:
  void start(std::optional<std::uint64_t> bound, int count) {
    job_.emplace(2, ServerOptions{.staleness = bound, .workers = count});
    for (int worker = 0; worker < count; ++worker) add(worker);
  }

  void add(int worker) {
    workers_.emplace_back(job_->join(worker));
    ASSERT_TRUE(workers_.back()->declare({{"w", {2}, Values(2)}}, Sgd{.learning_rate = 1}));
  }

  bool push(std::size_t worker) {
    return static_cast<bool>(workers_[worker]->push({{"w", Values(2, -1)}}));
  }

  // The sum that the worker pulls, or -1 for an error.
  std::future<float> pull(std::size_t worker) {
    return std::async(std::launch::async, [this, worker] {
      Values w(2);
      return workers_[worker]->pull({{"w", w}}) ? w[0] : -1;
    });
  }

  std::optional<Job> job_;
  std::vector<std::optional<Client>> workers_;
};

TEST_F(Staleness, OfZeroMakesAllWorkersTakeEachStepTogether) {
  start(0, 3);
  ASSERT_TRUE(push(0));
  std::future<float> fast = pull(0);
  until_it_waits(job_->servers[0], 0);
  ASSERT_TRUE(push(1));
  until_it_waits(job_->servers[0], 0);
  ASSERT_TRUE(push(2));
  EXPECT_EQ(fast.get(), 3);
}

TEST_F(Staleness, LetsAWorkerBeAheadByTheBound) {
  start(2, 3);
  for (int step = 0; step < 2; ++step) {
    ASSERT_TRUE(push(0));
    EXPECT_EQ(pull(0).get(), step + 1);
  }
  ASSERT_TRUE(push(0));
  std::future<float> fourth = pull(0);
  until_it_waits(job_->servers[1], 0);
  ASSERT_TRUE(push(1));
  until_it_waits(job_->servers[1], 0);
  ASSERT_TRUE(push(2));
  EXPECT_EQ(fourth.get(), 5);
}

TEST_F(Staleness, DelaysPushesToo) {
  start(0, 2);
  ASSERT_TRUE(push(0));
  std::future<bool> second = std::async(std::launch::async, [this] { return push(0); });
  until_it_waits(job_->servers[0], 0);
  ASSERT_TRUE(push(1));
  EXPECT_TRUE(second.get());
}

TEST_F(Staleness, WithoutABoundNoWorkerWaits) {
  start({}, 2);
  for (int step = 0; step < 10; ++step) ASSERT_TRUE(push(0));
  EXPECT_EQ(pull(0).get(), 10);
}

TEST_F(Staleness, AWorkerThatLeavesOrIsLostDelaysNoOther) {
  start(0, 3);
  ASSERT_TRUE(push(0));
  std::future<float> fast = pull(0);
  until_it_waits(job_->servers[0], 0);
  ASSERT_TRUE(workers_[1]->leave());
  until_it_waits(job_->servers[0], 0);
  workers_[2].reset();  // without a goodbye
  EXPECT_EQ(fast.get(), 1);
  EXPECT_EQ(job_->servers[0].status().left, 1U);
  EXPECT_EQ(job_->servers[0].status().lost, 1U);
}

TEST_F(Staleness, ALateWorkerBeginsAtTheStepOfTheSlowest) {
  start(1, 2);
  for (int step = 0; step < 3; ++step) {
    ASSERT_TRUE(push(0));
    ASSERT_TRUE(push(1));
  }
  ASSERT_TRUE(push(0));
  add(2);
  until_there_are(job_->servers[0], 3);
  EXPECT_EQ(job_->servers[0].status().workers[2].clock, 3U);
  EXPECT_EQ(pull(2).get(), 7);
  // The other workers wait for this one from now on.
  ASSERT_TRUE(push(0));
  ASSERT_TRUE(push(1));
  std::future<float> fast = pull(0);
  until_it_waits(job_->servers[0], 0);
  ASSERT_TRUE(push(2));
  EXPECT_EQ(fast.get(), 10);
}

TEST_F(Staleness, ALateWorkerBeginsAtTheSameStepOnAllServers) {
  job_.emplace(2, ServerOptions{.staleness = 0});
  const auto join = [this](int worker, const std::vector<std::string>& servers) {
    ClientOptions options = job_->options(worker);
    options.servers = servers;
    options.timeout = std::chrono::seconds(60);  // workers that wait for each other
    auto client = Client::connect(options);
    if (!client) throw std::runtime_error(client.error().to_string());
    return *std::move(client);
  };
  const Values w(2);
  const Values gradient(2, -1);
  const std::vector<Gradient> gradients = {{"w", gradient}};
  Client early = join(0, job_->addresses);
  ASSERT_TRUE(early.declare({{"w", {2}, w}}, Sgd{.learning_rate = 1}));
  // Delays the others on the second server only, where they are then in an earlier step.
  Client brake = join(2, {job_->addresses[1]});
  std::vector<std::future<collective::Status>> pushes(6);
  for (auto& push : pushes) push = early.push_async(gradients);
  while (job_->servers[0].status().pushes != pushes.size()) std::this_thread::yield();
  until_it_waits(job_->servers[1], 0);
  Client late = join(1, job_->addresses);
  ASSERT_TRUE(late.declare({{"w", {2}, w}}, Sgd{.learning_rate = 1}));
  for (const Server& server : job_->servers) {
    EXPECT_EQ(server.status().workers[1].clock, pushes.size()) << server.address();
  }

  ASSERT_TRUE(brake.leave());
  std::future<bool> of_late = std::async(std::launch::async, [&] {
    for (int step = 0; step < 4; ++step) {
      if (!late.push(gradients)) return false;
    }
    return true;
  });
  for (auto& push : pushes) EXPECT_TRUE(push.get());
  for (int step = 0; step < 4; ++step) EXPECT_TRUE(early.push(gradients));
  EXPECT_TRUE(of_late.get());
}

TEST_F(Staleness, NoWorkerBeginsBeforeAllHaveJoined) {
  job_.emplace(1, ServerOptions{.workers = 2});
  add(0);
  std::future<float> early = pull(0);
  until_it_waits(job_->servers[0], 0);
  add(1);
  EXPECT_EQ(early.get(), 0);
}

}  // namespace
}  // namespace muster::parameter_server
