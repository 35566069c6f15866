// What a training is told and what it tells, whichever strategy brings the gradients together.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace muster::digits {

/// Of the gradients before (B. Polyak, 1964).
inline constexpr double kMomentum = 0.9;

struct Settings {
  int epochs = 40;
  std::size_t batch = 16;  // images of a step on each process that trains
  double learning_rate = 0.03;
  int hidden = 128;
  std::uint64_t seed = 1;
};

/// After as many images as the training set has, over all who train.
struct EpochReport {
  int epoch;             // from 1
  double seconds;        // since the training began, tests included
  std::uint64_t images;  // learned from since then, each as often as it was
  double loss;
  double train_accuracy;  // 0 .. 1, of the batches as they were learned from
  double test_accuracy;
  double images_per_second;  // of this epoch
};

/// What a trainer tells on its way; called on the thread that trains.
struct Observer {
  std::function<void(int epoch, std::size_t step, std::size_t steps)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
};

struct Outcome {
  double test_accuracy;
  double images_per_second;  // learned from by all, while they trained
  std::uint64_t checksum;    // of the weights
  std::vector<float> weights;
};

}  // namespace muster::digits
