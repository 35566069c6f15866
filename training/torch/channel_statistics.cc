#include "channel_statistics.h"

namespace muster::training {

ChannelStatistics combine(std::span<const double> parts, std::size_t channels) {
  ChannelStatistics whole{0, std::vector<double>(channels), std::vector<double>(channels)};
  const std::size_t stride = 1 + 2 * channels;
  for (std::size_t begin = 0; begin + stride <= parts.size(); begin += stride) {
    const double count = parts[begin];
    if (count == 0) continue;
    const std::span<const double> mean = parts.subspan(begin + 1, channels);
    const std::span<const double> squares = parts.subspan(begin + 1 + channels, channels);
    const double total = whole.count + count;
    for (std::size_t c = 0; c < channels; ++c) {
      const double apart = mean[c] - whole.mean[c];
      whole.mean[c] += apart * (count / total);
      whole.squares[c] += squares[c] + apart * apart * (whole.count * (count / total));
    }
    whole.count = total;
  }
  return whole;
}

}  // namespace muster::training
