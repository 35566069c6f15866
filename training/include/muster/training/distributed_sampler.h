// Selects the samples of a data set on which a rank trains. In each epoch all ranks shuffle all
// samples with the same seed, and rank r of n takes the samples at r, r + n, r + 2n, ... of that
// order. No messages are needed, and all ranks have the same number of samples and therefore of
// steps.
//
// If the number of samples is not a multiple of the number of ranks, the order is either extended
// by its own beginning (Tail::kPad: every sample is used, a few of them twice) or cut off
// (Tail::kDrop: no sample is used twice, a few are not used in this epoch).
//
//   auto sampler = DistributedSampler::create(
//       {.samples = 50'000, .rank = r, .size = n, .seed = 1});
//   for (std::uint64_t epoch = 0; epoch < 90; ++epoch) {
//     sampler->set_epoch(epoch);
//     for (auto batch = sampler->next(64); !batch.empty(); batch = sampler->next(64)) ...
//   }
//
// Pure. Thread-safety: none needed, since each rank has a sampler of its own.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/collective/result.h"

namespace muster::training {

/// The treatment of samples that cannot be divided evenly among the ranks.
enum class Tail { kPad, kDrop };

struct SamplerOptions {
  std::uint64_t samples = 0;  // in the whole data set
  int rank = 0;
  int size = 1;
  bool shuffle = true;  // false: the samples keep their order
  std::uint64_t seed = 0;
  Tail tail = Tail::kPad;
};

class DistributedSampler {
 public:
  /// The sampler is at the beginning of epoch 0.
  ///
  /// Errors: kBadArgument, naming every fault: no samples, a rank outside of the world, or fewer
  /// samples than ranks with Tail::kDrop.
  static collective::Result<DistributedSampler> create(const SamplerOptions& options);

  /// The number of samples of a rank in an epoch, equal on all ranks.
  std::uint64_t size() const { return share_; }

  /// Orders the samples of an epoch and moves to its beginning.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const { return epoch_; }

  /// The next `count` samples of this rank; fewer at the end of the epoch; empty after it.
  std::vector<std::uint64_t> next(std::uint64_t count);

  /// The number of this rank's samples of the epoch that next() has returned.
  std::uint64_t position() const { return position_; }

  /// Continues at `position`, for example after a checkpoint. A position past the end means the
  /// end.
  void seek(std::uint64_t position);

 private:
  explicit DistributedSampler(const SamplerOptions& options);

  SamplerOptions options_;
  std::uint64_t share_;
  std::uint64_t epoch_ = 0;
  std::uint64_t position_ = 0;
  std::vector<std::uint64_t> order_;  // of all samples, in this epoch
};

}  // namespace muster::training
