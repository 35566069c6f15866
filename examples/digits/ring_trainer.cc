#include "ring_trainer.h"

#include <array>
#include <chrono>
#include <string>

#include "network.h"
#include "shard.h"
#include "training.h"

namespace muster::digits {
namespace {

using collective::Communicator;
using collective::Error;
using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Status;
using std::chrono::steady_clock;

// Stochastic gradient descent with momentum.
void descend(Network& network, std::vector<float>& velocity, float rate) {
  const std::span<float> weights = network.weights();
  const std::span<float> gradient = network.gradient();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    velocity[i] = static_cast<float>(kMomentum) * velocity[i] + gradient[i];
    weights[i] -= rate * velocity[i];
  }
}

// Each rank scores every size-th test image, and the counts are added up.
Result<double> test_accuracy(Communicator& world, Network& network, const Dataset& data) {
  std::int64_t correct = count_correct(network, data, static_cast<std::size_t>(world.rank()),
                                       static_cast<std::size_t>(world.size()));
  if (Status added = world.all_reduce(&correct, 1, ReduceOp::kSum); !added) return added.error();
  return static_cast<double>(correct) / static_cast<double>(data.test.size());
}

Result<std::uint64_t> agreed_checksum(Communicator& world, std::span<const float> weights) {
  const std::uint64_t mine = checksum_of(weights);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world.size()));
  if (Status gathered = world.all_gather(&mine, sizeof mine, all.data()); !gathered) {
    return gathered.error();
  }
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] == all[0]) continue;
    return Error{ErrorCode::kMismatch,
                 "the ranks have different weights: rank 0 " + checksum_text(all[0]) + ", rank " +
                     std::to_string(rank) + " " + checksum_text(all[rank]),
                 "start all ranks with the same settings and the same binary"};
  }
  return mine;
}

double seconds_since(steady_clock::time_point begin) {
  return std::chrono::duration<double>(steady_clock::now() - begin).count();
}

// One rank's training, epoch by epoch.
class RingTraining {
 public:
  RingTraining(Communicator& world, const Dataset& data, const Settings& settings,
               const Observer& observer)
      : world_(world),
        data_(data),
        settings_(settings),
        observer_(observer),
        shard_(data.train.size(), world.rank(), world.size(), settings.batch),
        network_({static_cast<int>(data.train.pixels_per_image()), settings.hidden, kClasses},
                 settings.seed),
        velocity_(network_.weights().size()) {}

  Result<Outcome> run() {
    const std::span<float> weights = network_.weights();
    if (Status same = world_.broadcast(weights.data(), weights.size_bytes(), 0); !same) {
      return same.error();
    }
    begin_ = steady_clock::now();
    EpochReport last{};
    for (int epoch = 1; epoch <= settings_.epochs; ++epoch) {
      const Result<EpochReport> report = run_epoch(epoch);
      if (!report) return report.error();
      last = *report;
      if (observer_.on_epoch) observer_.on_epoch(last);
    }
    const Result<std::uint64_t> checksum = agreed_checksum(world_, weights);
    if (!checksum) return checksum.error();
    return Outcome{last.test_accuracy,
                   static_cast<double>(images_in(settings_.epochs)) / seconds_,
                   *checksum,
                   {weights.begin(), weights.end()}};
  }

 private:
  Result<EpochReport> run_epoch(int epoch) {
    const steady_clock::time_point begin = steady_clock::now();
    const auto order = permutation(data_.train.size(), settings_.seed, epoch);
    std::array<double, 2> totals = {};  // loss, correct
    for (std::size_t step = 0; step < shard_.steps(); ++step) {
      const Result<Score> score = run_step(order, step);
      if (!score) return score.error();
      totals[0] += score->loss;
      totals[1] += score->correct;
      if (observer_.on_step) observer_.on_step(epoch, step + 1, shard_.steps());
    }
    if (Status added = world_.all_reduce(totals.data(), totals.size(), ReduceOp::kSum); !added) {
      return added.error();
    }
    const double seconds = seconds_since(begin);
    seconds_ += seconds;
    const Result<double> accuracy = test_accuracy(world_, network_, data_);
    if (!accuracy) return accuracy.error();
    const auto images = static_cast<double>(images_in(1));
    return EpochReport{.epoch = epoch,
                       .seconds = seconds_since(begin_),
                       .images = images_in(epoch),
                       .loss = totals[0] / images,
                       .train_accuracy = totals[1] / images,
                       .test_accuracy = *accuracy,
                       .images_per_second = images / seconds};
  }

  Result<Score> run_step(const std::vector<std::uint32_t>& order, std::size_t step) {
    const Batch batch = batch_of(data_.train, shard_.batch(order, step), data_.scale);
    const Score score = network_.learn(batch.images, batch.labels);
    const std::span<float> gradient = network_.gradient();
    if (Status averaged = world_.all_reduce(gradient.data(), gradient.size(), ReduceOp::kAverage);
        !averaged) {
      return averaged.error();
    }
    descend(network_, velocity_, static_cast<float>(settings_.learning_rate));
    return score;
  }

  // How many images all ranks together learn from.
  std::uint64_t images_in(int epochs) const {
    return std::uint64_t{shard_.steps()} * settings_.batch *
           static_cast<std::uint64_t>(world_.size()) * static_cast<std::uint64_t>(epochs);
  }

  Communicator& world_;
  const Dataset& data_;
  const Settings& settings_;
  const Observer& observer_;
  Shard shard_;
  Network network_;
  std::vector<float> velocity_;
  steady_clock::time_point begin_ = {};
  double seconds_ = 0;  // in training, without the tests
};

}  // namespace

Result<Outcome> train_in_ring(Communicator& world, const Dataset& data, const Settings& settings,
                              const Observer& observer) {
  if (data.train.size() < static_cast<std::size_t>(world.size())) {
    return Error{ErrorCode::kBadArgument, std::to_string(data.train.size()) +
                                              " training images are too few for " +
                                              std::to_string(world.size()) + " ranks"};
  }
  return RingTraining(world, data, settings, observer).run();
}

}  // namespace muster::digits
