#include "muster/training/distributed_sampler.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

namespace muster::training {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;

// SplitMix64 (G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014).
// The distributions of the standard library are not used, since they may differ between ranks'
// libraries.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    state_ += 0x9e3779b97f4a7c15;
    std::uint64_t mixed = state_;
    mixed = (mixed ^ mixed >> 30) * 0xbf58476d1ce4e5b9;
    mixed = (mixed ^ mixed >> 27) * 0x94d049bb133111eb;
    return mixed ^ mixed >> 31;
  }

  // A uniform number from 0 .. bound - 1: values that would make the first remainders more likely
  // are rejected.
  std::uint64_t below(std::uint64_t bound) {
    const std::uint64_t uneven = (0 - bound) % bound;
    std::uint64_t drawn = next();
    while (drawn < uneven) drawn = next();
    return drawn % bound;
  }

 private:
  std::uint64_t state_;
};

// R. Fisher, F. Yates, 1938.
void shuffle(std::vector<std::uint64_t>& order, std::uint64_t seed, std::uint64_t epoch) {
  // The epoch passes through the generator, so that seed 1 in epoch 0 differs from seed 0 in epoch 1.
  Random random(seed ^ Random(epoch).next());
  for (std::size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.below(left)]);
  }
}

std::string fault_of(const SamplerOptions& options) {
  std::string fault;
  const auto add = [&fault](const std::string& sentence) {
    fault += (fault.empty() ? "" : "; ") + sentence;
  };
  if (options.samples == 0) add("the data set has no samples");
  if (options.size < 1) add("a world of " + std::to_string(options.size) + " ranks is invalid");
  if (options.size >= 1 && (options.rank < 0 || options.rank >= options.size)) {
    add("rank " + std::to_string(options.rank) + " is not in a world of " +
        std::to_string(options.size));
  }
  if (options.size >= 1 && options.tail == Tail::kDrop && options.samples > 0 &&
      options.samples < static_cast<std::uint64_t>(options.size)) {
    add(std::to_string(options.samples) + " samples are too few for " +
        std::to_string(options.size) + " ranks if the tail is dropped");
  }
  return fault;
}

}  // namespace

Result<DistributedSampler> DistributedSampler::create(const SamplerOptions& options) {
  if (const std::string fault = fault_of(options); !fault.empty()) {
    return Error{ErrorCode::kBadArgument, fault};
  }
  return DistributedSampler(options);
}

DistributedSampler::DistributedSampler(const SamplerOptions& options)
    : options_(options), order_(options.samples) {
  const auto ranks = static_cast<std::uint64_t>(options.size);
  const bool one_more = options.tail == Tail::kPad && options.samples % ranks != 0;
  share_ = options.samples / ranks + (one_more ? 1 : 0);
  set_epoch(0);
}

void DistributedSampler::set_epoch(std::uint64_t epoch) {
  epoch_ = epoch;
  position_ = 0;
  std::iota(order_.begin(), order_.end(), std::uint64_t{0});
  if (options_.shuffle) shuffle(order_, options_.seed, epoch);
}

std::vector<std::uint64_t> DistributedSampler::next(std::uint64_t count) {
  std::vector<std::uint64_t> batch(std::min(count, share_ - position_));
  for (std::uint64_t& sample : batch) {
    const std::uint64_t place = position_++ * static_cast<std::uint64_t>(options_.size) +
                                static_cast<std::uint64_t>(options_.rank);
    sample = order_[place % order_.size()];
  }
  return batch;
}

void DistributedSampler::seek(std::uint64_t position) {
  position_ = std::min(position, share_);
}

}  // namespace muster::training
