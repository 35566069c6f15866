#include "batch.h"

namespace muster::digits {
namespace {

constexpr std::size_t kTestBatch = 256;

}  // namespace

Batch batch_of(const ImageSet& set, std::span<const std::uint32_t> indices, float scale) {
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

int count_correct(Network& network, const Dataset& data, std::size_t first, std::size_t stride) {
  int correct = 0;
  std::vector<std::uint32_t> indices;
  const auto evaluate = [&] {
    if (indices.empty()) return;
    const Batch batch = batch_of(data.test, indices, data.scale);
    correct += network.evaluate(batch.images, batch.labels).correct;
    indices.clear();
  };
  for (std::size_t i = first; i < data.test.size(); i += stride) {
    indices.push_back(static_cast<std::uint32_t>(i));
    if (indices.size() == kTestBatch) evaluate();
  }
  evaluate();
  return correct;
}

}  // namespace muster::digits
