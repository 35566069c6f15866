// Mean and variance of channels, of parts put together. Pure.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace muster::training {

struct ChannelStatistics {
  double count = 0;             // of values in a channel, the same in all
  std::vector<double> mean;     // of each channel
  std::vector<double> squares;  // sum of the squared deviations from it
};

/// Of all values, from those of the parts, each of `channels` channels and laid out as
/// count, means, squares. Parts without values count nothing.
ChannelStatistics combine(std::span<const double> parts, std::size_t channels);

}  // namespace muster::training
