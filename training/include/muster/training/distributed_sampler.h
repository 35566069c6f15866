// Which samples of a data set a rank trains on. In each epoch all ranks shuffle all samples by the
// same seed, and rank r of n takes those at r, r + n, r + 2n, ... of that order: no rank has to
// tell another, and all have the same number of samples, so all make the same number of steps.
//
// Where the samples do not divide by the ranks, the order either goes on with its own beginning
// until they do (Tail::kPad: every sample is some rank's, a few are two ranks') or ends early
// (Tail::kDrop: no sample is two ranks', a few are nobody's in this epoch).
//
//   auto sampler = DistributedSampler::create({.samples = 50'000, .rank = r, .size = n, .seed =
//   1}); for (std::uint64_t epoch = 0; epoch < 90; ++epoch) {
//     sampler->set_epoch(epoch);
//     for (auto batch = sampler->next(64); !batch.empty(); batch = sampler->next(64)) ...
//   }
//
// Pure. Thread-safety: none needed, each rank has its own.
#pragma once

#include <cstdint>
#include <vector>

#include "muster/collective/result.h"

namespace muster::training {

/// What becomes of samples that cannot be shared out evenly.
enum class Tail { kPad, kDrop };

struct SamplerOptions {
  std::uint64_t samples = 0;  // in the whole data set
  int rank = 0;
  int size = 1;
  bool shuffle = true;  // otherwise the samples come in their own order
  std::uint64_t seed = 0;
  Tail tail = Tail::kPad;
};

class DistributedSampler {
 public:
  /// Stands at the beginning of epoch 0.
  ///
  /// Errors: kBadArgument, naming everything that cannot be: no samples, a rank outside of the
  /// world, with Tail::kDrop fewer samples than ranks.
  static collective::Result<DistributedSampler> create(const SamplerOptions& options);

  /// How many samples this rank has in an epoch; the same on all ranks.
  std::uint64_t size() const { return share_; }

  /// Orders the samples of an epoch and goes to its beginning.
  void set_epoch(std::uint64_t epoch);
  std::uint64_t epoch() const { return epoch_; }

  /// The next `count` samples of this rank; fewer at the end of the epoch, then none.
  std::vector<std::uint64_t> next(std::uint64_t count);

  /// How many of this rank's samples of the epoch have been given out.
  std::uint64_t position() const { return position_; }

  /// Goes on from there, as after a checkpoint; past the end is the end.
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
