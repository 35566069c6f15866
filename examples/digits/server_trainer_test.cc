#include "server_trainer.h"

#include <gtest/gtest.h>

#include <limits>
#include <thread>

#include "muster/parameter_server/server.h"
#include "network.h"
#include "test_digits.h"

namespace muster::digits {
namespace {

using collective::ErrorCode;
using collective::Result;
using parameter_server::Client;
using parameter_server::Optimizer;
using parameter_server::Server;
using parameter_server::ServerOptions;
using parameter_server::Sgd;

constexpr const char* kKey = "000102030405060708090a0b0c0d0e0f";

// More epochs than any test needs: another event ends the training.
constexpr int kEndless = 1'000'000;

Optimizer steps_of(const Settings& settings) {
  return Sgd{.learning_rate = settings.learning_rate, .momentum = kMomentum};
}

class ServerTrainer : public ::testing::Test {
 protected:
  Server& serve(ServerOptions options = {}) {
    options.key = kKey;
    auto server = Server::start(options);
    EXPECT_TRUE(server) << server.error().to_string();
    addresses_.push_back(server->address());
    return *servers_.emplace_back(std::make_unique<Server>(*std::move(server)));
  }

  Client connect(int worker) {
    auto client = Client::connect({.servers = addresses_, .worker = worker, .key = kKey});
    EXPECT_TRUE(client) << client.error().to_string();
    return *std::move(client);
  }

  Result<WorkDone> train(WorkerPlace place, const Settings& settings,
                         const Observer& observer = {}) {
    Client client = connect(place.index);
    return train_with_servers(client, place, digits(), settings, steps_of(settings), observer);
  }

  // Trains each worker on a thread of its own. Returns the results by number.
  std::vector<Result<WorkDone>> train_all(int workers, const Settings& settings) {
    std::vector<std::optional<Result<WorkDone>>> done(static_cast<std::size_t>(workers));
    {
      std::vector<std::jthread> threads;
      for (int i = 0; i < workers; ++i) {
        threads.emplace_back(
            [&, i] { done[static_cast<std::size_t>(i)] = train({i, workers}, settings); });
      }
    }
    std::vector<Result<WorkDone>> all;
    for (auto& one : done) all.push_back(*std::move(one));
    return all;
  }

  // A worker that has declared the model and pulled its parameters, as all workers do before their
  // first step.
  Client joined(int worker, const Settings& settings) {
    Client client = connect(worker);
    Network network(
        {static_cast<int>(digits().train.pixels_per_image()), settings.hidden, kClasses},
        settings.seed);
    const auto size = static_cast<std::int64_t>(network.weights().size());
    EXPECT_TRUE(client.declare({{"weights", {size}, network.weights()}}, steps_of(settings)));
    EXPECT_TRUE(client.pull({{"weights", network.weights()}}));
    return client;
  }

  std::vector<std::unique_ptr<Server>> servers_;
  std::vector<std::string> addresses_;
};

class ServersAndWorkers : public ServerTrainer,
                          public ::testing::WithParamInterface<std::pair<int, int>> {};
std::string count_name(const ::testing::TestParamInfo<std::pair<int, int>>& info) {
  return std::to_string(info.param.first) + "And" + std::to_string(info.param.second);
}

INSTANTIATE_TEST_SUITE_P(Of, ServersAndWorkers,
                         ::testing::Values(std::pair{1, 1}, std::pair{1, 2}, std::pair{2, 3}),
                         count_name);

TEST_P(ServersAndWorkers, LearnDigits) {
  const auto [servers, workers] = GetParam();
  for (int i = 0; i < servers; ++i) serve({.workers = workers});

  const auto done = train_all(workers, {.epochs = 20});

  std::uint64_t images = 0;
  for (const auto& one : done) {
    ASSERT_TRUE(one) << one.error().to_string();
    EXPECT_EQ(one->outcome.has_value(), &one == done.data()) << "the chief has the result";
    images += one->images;
  }
  EXPECT_GE(done[0]->outcome->test_accuracy, 0.93);
  const auto status = servers_[0]->status();
  EXPECT_EQ(images, status.pushes * Settings{}.batch);
  EXPECT_EQ(status.left, static_cast<std::uint64_t>(workers));
}

TEST_F(ServerTrainer, HasTheSameBitsInEveryRunOfASingleWorker) {
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    addresses_.clear();
    serve();
    const auto done = train({0, 1}, {.epochs = 2});
    ASSERT_TRUE(done) << done.error().to_string();
    weights.push_back(done->outcome->weights);
  }
  EXPECT_EQ(weights[0], weights[1]);
}

TEST_F(ServerTrainer, ReportsEachEpochToTheChiefsObserver) {
  serve();
  std::vector<EpochReport> reports;
  const Observer observer{
      .on_epoch = [&](const EpochReport& report) { reports.push_back(report); }};

  ASSERT_TRUE(train({0, 1}, {.epochs = 3, .batch = 100}, observer));

  ASSERT_EQ(reports.size(), 3u);
  for (std::size_t i = 0; i < reports.size(); ++i) {
    EXPECT_EQ(reports[i].epoch, static_cast<int>(i) + 1);
    EXPECT_EQ(reports[i].images, (i + 1) * 1500) << "15 batches cover the 1437 images";
    EXPECT_GT(reports[i].seconds, i == 0 ? 0 : reports[i - 1].seconds);
  }
  EXPECT_GT(reports[0].loss, reports[2].loss);
}

TEST_F(ServerTrainer, IsNotDelayedByALostWorker) {
  serve({.staleness = 0, .workers = 2});
  const Settings settings{.epochs = 2};
  std::thread loser([&] { joined(1, settings); });

  const auto done = train({0, 2}, settings);

  loser.join();
  ASSERT_TRUE(done) << done.error().to_string();
  EXPECT_EQ(done->images, servers_[0]->status().pushes * settings.batch)
      << "this worker made every step";
  EXPECT_EQ(servers_[0]->status().lost, 1u);
}

TEST_F(ServerTrainer, GivesALateWorkerItsShareOfTheRemainingSteps) {
  serve();
  const Settings settings{.epochs = 10};
  std::optional<Result<WorkDone>> late;
  const Observer observer{.on_epoch = [&](const EpochReport& report) {
    if (report.epoch == 1) late = train({1, 2}, settings);
  }};

  const auto chief = train({0, 2}, settings, observer);

  ASSERT_TRUE(chief) << chief.error().to_string();
  ASSERT_TRUE(late && *late) << late->error().to_string();
  EXPECT_GT((*late)->images, chief->images) << "nine of ten epochs remained when it joined";
  EXPECT_GE(chief->outcome->test_accuracy, 0.9);
}

TEST_F(ServerTrainer, GivesTheResultToAChiefThatJoinsAfterTheLastStep) {
  serve();
  const Settings settings{.epochs = 10};
  const auto worker = train({1, 2}, settings);
  ASSERT_TRUE(worker) << worker.error().to_string();
  std::vector<EpochReport> reports;
  const Observer observer{
      .on_epoch = [&](const EpochReport& report) { reports.push_back(report); }};

  const auto chief = train({0, 2}, settings, observer);

  ASSERT_TRUE(chief) << chief.error().to_string();
  EXPECT_EQ(chief->images, 0u);
  EXPECT_GE(chief->outcome->test_accuracy, 0.9);
  EXPECT_EQ(chief->outcome->images_per_second, std::nullopt);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].images, worker->images) << "the worker used all images";
  EXPECT_EQ(reports[0].loss, std::nullopt);
  EXPECT_EQ(reports[0].train_accuracy, std::nullopt);
  EXPECT_EQ(reports[0].images_per_second, std::nullopt);
}

TEST_F(ServerTrainer, EndsIfTheChiefIsLost) {
  Server& server = serve({.workers = 2});
  const Settings settings{.epochs = kEndless};
  std::thread chief([&] {
    const Client client = joined(0, settings);
    while (server.status().pushes == 0) std::this_thread::yield();
  });

  const auto done = train({1, 2}, settings);

  chief.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kPeerLost);
  EXPECT_TRUE(done.error().message.starts_with("the chief was lost after "))
      << done.error().message;
}

TEST_F(ServerTrainer, EndsIfAServerIsLostAndNamesIt) {
  serve();
  Server& second = serve();
  const Observer observer{.on_epoch = [&](const EpochReport&) { second.stop(); }};

  const auto done = train({0, 1}, {.epochs = kEndless}, observer);

  ASSERT_FALSE(done);
  EXPECT_NE(done.error().to_string().find(addresses_[1]), std::string::npos)
      << done.error().to_string();
}

TEST_F(ServerTrainer, EndsIfAGradientIsNotFiniteAndNamesTheWorker) {
  serve();
  Dataset data = digits();
  data.scale = std::numeric_limits<float>::quiet_NaN();
  Client client = connect(0);

  const auto done = train_with_servers(client, {0, 1}, data, {.epochs = 1}, steps_of({}), {});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kBadArgument);
  EXPECT_NE(done.error().message.find("weights"), std::string::npos) << done.error().message;
  EXPECT_EQ(servers_[0]->status().pushes, 0u);
}

TEST_F(ServerTrainer, RejectsFewerImagesThanWorkers) {
  serve();
  Dataset data = digits();
  data.train.labels.resize(1);
  Client client = connect(0);

  const auto done = train_with_servers(client, {0, 2}, data, {}, steps_of({}), {});

  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "1 training images are too few for 2 workers");
}

}  // namespace
}  // namespace muster::digits
