// Data-parallel training: each rank learns from its shard, the gradients of all ranks are averaged
// by one all-reduce a step, and so all make the same step from the same weights. They begin with
// rank 0's, and prove at the end that they still hold the same.
//
// On machines of one kind the result depends on the settings, the data and the world size only, to
// the bit.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "idx.h"
#include "muster/collective/communicator.h"
#include "muster/collective/result.h"

namespace muster::digits {

struct Settings {
  int epochs = 40;
  std::size_t batch = 16;  // images of a step on each rank
  double learning_rate = 0.03;
  int hidden = 128;
  std::uint64_t seed = 1;
};

/// Over all ranks, and so the same on each of them, but for the time.
struct EpochReport {
  int epoch;  // from 1
  double loss;
  double train_accuracy;  // 0 .. 1, of the batches as they were learned from
  double test_accuracy;
  double images_per_second;
};

/// What the trainer tells on its way; called on the thread of train().
struct Observer {
  std::function<void(int epoch, std::size_t step, std::size_t steps)> on_step = {};
  std::function<void(const EpochReport&)> on_epoch = {};
};

struct Outcome {
  double test_accuracy;
  double images_per_second;  // learned from by all ranks, while they trained
  std::uint64_t checksum;    // FNV-1a over the bytes of the weights, equal on all ranks
  std::vector<float> weights;
};

/// Called by every rank, with equal settings and data.
///
/// Errors: those of the collectives; kMismatch where the ranks end with different weights;
/// kBadArgument where there are fewer training images than ranks.
collective::Result<Outcome> train(collective::Communicator& world, const Dataset& data,
                                  const Settings& settings, const Observer& observer);

}  // namespace muster::digits
