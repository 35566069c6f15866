#include "trainer.h"

#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>

#include "network.h"
#include "shard.h"

namespace muster::digits {
namespace {

using collective::Communicator;
using collective::Error;
using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Status;
using Clock = std::chrono::steady_clock;

constexpr float kMomentum = 0.9F;
constexpr std::size_t kTestBatch = 256;

struct Batch {
  Network::Matrix images;
  std::vector<std::uint8_t> labels;
};

Batch batch_of(const ImageSet& set, const std::vector<std::uint32_t>& indices, float scale) {
  const std::size_t pixels = set.pixels_per_image();
  Batch batch{{static_cast<Eigen::Index>(indices.size()), static_cast<Eigen::Index>(pixels)}, {}};
  float* value = batch.images.data();
  for (const std::uint32_t index : indices) {
    const std::uint8_t* const image = set.pixels.data() + index * pixels;
    for (std::size_t i = 0; i < pixels; ++i) *value++ = static_cast<float>(image[i]) * scale;
    batch.labels.push_back(set.labels[index]);
  }
  return batch;
}

// Stochastic gradient descent with momentum (B. Polyak, 1964).
void descend(Network& network, std::vector<float>& velocity, float rate) {
  const std::span<float> weights = network.weights();
  const std::span<float> gradient = network.gradient();
  for (std::size_t i = 0; i < weights.size(); ++i) {
    velocity[i] = kMomentum * velocity[i] + gradient[i];
    weights[i] -= rate * velocity[i];
  }
}

// Each rank takes every size-th test image; the counts are added up.
Result<double> test_accuracy(Communicator& world, Network& network, const Dataset& data) {
  std::int64_t correct = 0;
  std::vector<std::uint32_t> indices;
  const auto evaluate = [&] {
    if (indices.empty()) return;
    const Batch batch = batch_of(data.test, indices, data.scale);
    correct += network.evaluate(batch.images, batch.labels).correct;
    indices.clear();
  };
  for (auto i = static_cast<std::size_t>(world.rank()); i < data.test.size();
       i += static_cast<std::size_t>(world.size())) {
    indices.push_back(static_cast<std::uint32_t>(i));
    if (indices.size() == kTestBatch) evaluate();
  }
  evaluate();
  if (Status added = world.all_reduce(&correct, 1, ReduceOp::kSum); !added) return added.error();
  return static_cast<double>(correct) / static_cast<double>(data.test.size());
}

// FNV-1a, 64 bits (G. Fowler, L. C. Noll, K.-P. Vo).
std::uint64_t checksum_of(std::span<const float> weights) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const std::byte byte : std::as_bytes(weights)) {
    hash = (hash ^ std::to_integer<std::uint64_t>(byte)) * 0x100000001b3u;
  }
  return hash;
}

std::string hex(std::uint64_t value) {
  std::array<char, 19> text;
  std::snprintf(text.data(), text.size(), "0x%016llx", static_cast<unsigned long long>(value));
  return text.data();
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
                 "the ranks hold different weights: rank 0 " + hex(all[0]) + ", rank " +
                     std::to_string(rank) + " " + hex(all[rank]),
                 "start all ranks with the same settings and the same binary"};
  }
  return mine;
}

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// One rank's training, epoch by epoch.
class Training {
 public:
  Training(Communicator& world, const Dataset& data, const Settings& settings,
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
                   images_in(settings_.epochs) / seconds_,
                   *checksum,
                   {weights.begin(), weights.end()}};
  }

 private:
  Result<EpochReport> run_epoch(int epoch) {
    const Clock::time_point begin = Clock::now();
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
    const double images = images_in(1);
    return EpochReport{epoch, totals[0] / images, totals[1] / images, *accuracy, images / seconds};
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
  double images_in(int epochs) const {
    return static_cast<double>(shard_.steps() * settings_.batch) * world_.size() * epochs;
  }

  Communicator& world_;
  const Dataset& data_;
  const Settings& settings_;
  const Observer& observer_;
  Shard shard_;
  Network network_;
  std::vector<float> velocity_;
  double seconds_ = 0;  // in training, without the tests
};

}  // namespace

Result<Outcome> train(Communicator& world, const Dataset& data, const Settings& settings,
                      const Observer& observer) {
  if (data.train.size() < static_cast<std::size_t>(world.size())) {
    return Error{ErrorCode::kBadArgument, std::to_string(data.train.size()) +
                                              " training images are not enough for " +
                                              std::to_string(world.size()) + " ranks"};
  }
  return Training(world, data, settings, observer).run();
}

}  // namespace muster::digits
