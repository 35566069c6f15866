#include "server_trainer.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string>

#include "network.h"
#include "shard.h"
#include "training.h"

namespace muster::digits {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;
using parameter_server::Client;
using parameter_server::Optimizer;
using parameter_server::ServerStatus;
using std::chrono::steady_clock;

constexpr int kChief = 0;
constexpr const char* kWeights = "weights";

// The batches of one worker, pass after pass, without end.
class Batches {
 public:
  Batches(const Dataset& data, const WorkerPlace& place, const Settings& settings)
      : data_(data),
        seed_(settings.seed),
        shard_(data.train.size(), place.index, place.workers, settings.batch) {}

  Batch next() {
    if (step_ == shard_.steps() || pass_ == 0) {
      order_ = permutation(data_.train.size(), seed_, ++pass_);
      step_ = 0;
    }
    return batch_of(data_.train, shard_.batch(order_, step_++), data_.scale);
  }

 private:
  const Dataset& data_;
  std::uint64_t seed_;
  Shard shard_;
  std::vector<std::uint32_t> order_;
  int pass_ = 0;
  std::size_t step_ = 0;
};

// The chief's progress since its last report, and the time of that report.
struct Since {
  std::uint64_t pushes = 0;
  steady_clock::time_point time = {};
  Score score = {};
  std::uint64_t images = 0;
};

double seconds_between(steady_clock::time_point begin, steady_clock::time_point end) {
  return std::chrono::duration<double>(end - begin).count();
}

// nullopt: nothing was measured.
std::optional<double> per_second(std::uint64_t images, double seconds) {
  if (images == 0 || seconds <= 0) return std::nullopt;
  return static_cast<double>(images) / seconds;
}

// `sum` divided by the number of images; nullopt without images.
std::optional<double> mean_of(double sum, std::uint64_t images) {
  if (images == 0) return std::nullopt;
  return sum / static_cast<double>(images);
}

// The training of one worker, push by push.
class ServerTraining {
 public:
  ServerTraining(Client& client, const WorkerPlace& place, const Dataset& data,
                 const Settings& settings, const Observer& observer)
      : client_(client),
        is_chief_(place.index == kChief),
        data_(data),
        settings_(settings),
        observer_(observer),
        pushes_per_epoch_((data.train.size() + settings.batch - 1) / settings.batch),
        pushes_in_all_(pushes_per_epoch_ * static_cast<std::uint64_t>(settings.epochs)),
        batches_(data, place, settings),
        network_({static_cast<int>(data.train.pixels_per_image()), settings.hidden, kClasses},
                 settings.seed) {}

  Result<WorkDone> run(const Optimizer& optimizer) {
    const std::span<float> weights = network_.weights();
    const auto size = static_cast<std::int64_t>(weights.size());
    if (auto declared = client_.declare({{kWeights, {size}, weights}}, optimizer); !declared) {
      return declared.error();
    }
    if (Status trained = train(); !trained) return trained.error();
    if (Status left = client_.leave(); !left) return left.error();
    WorkDone done{.images = images_};
    if (is_chief_) {
      done.outcome = Outcome{last_.test_accuracy,
                             per_second(images_since(begin_), last_.seconds),
                             checksum_of(weights),
                             {weights.begin(), weights.end()}};
    }
    return done;
  }

 private:
  Status train() {
    const auto first = client_.pull({{kWeights, network_.weights()}});
    if (!first) return first.error();
    begin_ = pushes_ = first->pushes;
    since_ = {.pushes = pushes_, .time = steady_clock::now()};
    began_at_ = since_.time;
    if (Status led = is_chief_ ? Status() : look_for_chief(); !led) return led;
    Batch batch = batches_.next();
    while (pushes_ < pushes_in_all_) {
      learn(batch);
      if (Status exchanged = exchange(batch); !exchanged) return exchanged;
      if (Status told = tell(); !told) return told;
    }
    // A chief that joins after the last step still has the result.
    if (is_chief_ && last_.epoch < settings_.epochs) report();
    return {};
  }

  void learn(const Batch& batch) {
    const Score score = network_.learn(batch.images, batch.labels);
    since_.score.loss += score.loss;
    since_.score.correct += score.correct;
    since_.images += batch.labels.size();
    images_ += batch.labels.size();
  }

  // Pushes the gradient and then pulls the weights, without a pause in between. Meanwhile the next
  // batch is prepared.
  Status exchange(Batch& batch) {
    const parameter_server::Gradient gradient{kWeights, network_.gradient()};
    const parameter_server::Destination weights{kWeights, network_.weights()};
    auto pushing = client_.push_async({&gradient, 1});
    auto pulling = client_.pull_async({&weights, 1});
    batch = batches_.next();
    // Waits for both calls, since the client uses the buffers until they end.
    Status pushed = pushing.get();
    const auto pulled = pulling.get();
    if (!pushed) return pushed;
    if (!pulled) return pulled.error();
    pushes_ = pulled->pushes;
    return {};
  }

  // After each epoch, whichever workers made its steps, the chief tests and reports, and the other
  // workers check that the chief still exists.
  Status tell() {
    if (is_chief_ && observer_.on_step) {
      observer_.on_step(static_cast<int>(std::min(epochs_passed() + 1, all_epochs())),
                        pushes_ % pushes_per_epoch_, pushes_per_epoch_);
    }
    if (epochs_passed() == since_.pushes / pushes_per_epoch_) return {};
    if (is_chief_) {
      report();
    } else if (Status led = look_for_chief(); !led) {
      return led;
    }
    since_ = {.pushes = pushes_, .time = steady_clock::now()};
    return {};
  }

  void report() {
    const steady_clock::time_point now = steady_clock::now();
    const int correct = count_correct(network_, data_, 0, 1);
    last_ = {.epoch = static_cast<int>(std::min(epochs_passed(), all_epochs())),
             .seconds = seconds_between(began_at_, now),
             .images = images_since(0),
             .loss = mean_of(since_.score.loss, since_.images),
             .train_accuracy = mean_of(since_.score.correct, since_.images),
             .test_accuracy = correct / static_cast<double>(data_.test.size()),
             .images_per_second =
                 per_second(images_since(since_.pushes), seconds_between(since_.time, now))};
    if (observer_.on_epoch) observer_.on_epoch(last_);
  }

  // A chief that has left has seen the last push. A chief that ended earlier was lost, and no
  // process would have the result.
  Status look_for_chief() {
    const auto servers = client_.status();
    if (!servers) return servers.error();
    const ServerStatus& server = servers->front();
    const bool is_there = std::any_of(server.workers.begin(), server.workers.end(),
                                      [](const auto& worker) { return worker.worker == kChief; });
    chief_was_there_ |= is_there;
    if (is_there || !chief_was_there_ || server.pushes >= pushes_in_all_) return {};
    return Error{ErrorCode::kPeerLost,
                 "the chief was lost after " + std::to_string(server.pushes) + " of " +
                     std::to_string(pushes_in_all_) + " steps, and only the chief has the result",
                 "see the last output of the chief"};
  }

  // Used by all workers since the servers had `pushes`.
  std::uint64_t images_since(std::uint64_t pushes) const {
    return (pushes_ - pushes) * settings_.batch;
  }

  std::uint64_t epochs_passed() const { return pushes_ / pushes_per_epoch_; }
  std::uint64_t all_epochs() const { return static_cast<std::uint64_t>(settings_.epochs); }

  Client& client_;
  const bool is_chief_;
  const Dataset& data_;
  const Settings& settings_;
  const Observer& observer_;
  const std::uint64_t pushes_per_epoch_;
  const std::uint64_t pushes_in_all_;
  Batches batches_;
  Network network_;
  std::uint64_t pushes_ = 0;  // of all workers, at the last pull
  std::uint64_t begin_ = 0;   // pushes before this worker joined
  std::uint64_t images_ = 0;
  steady_clock::time_point began_at_ = {};
  Since since_;
  EpochReport last_ = {};
  bool chief_was_there_ = false;
};

}  // namespace

Result<WorkDone> train_with_servers(Client& client, const WorkerPlace& place, const Dataset& data,
                                    const Settings& settings, const Optimizer& optimizer,
                                    const Observer& observer) {
  if (data.train.size() < static_cast<std::size_t>(place.workers)) {
    return Error{ErrorCode::kBadArgument, std::to_string(data.train.size()) +
                                              " training images are too few for " +
                                              std::to_string(place.workers) + " workers"};
  }
  return ServerTraining(client, place, data, settings, observer).run(optimizer);
}

}  // namespace muster::digits
