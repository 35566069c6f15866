#include "network.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "shard.h"

namespace muster::digits {

template <typename Scalar>
BasicNetwork<Scalar>::BasicNetwork(Shape shape, std::uint64_t seed) : outputs_(kLayers) {
  const int widths[] = {shape.inputs, shape.hidden, shape.hidden, shape.classes};
  std::size_t end = 0;
  for (int i = 0; i < kLayers; ++i) {
    const auto inputs = static_cast<std::size_t>(widths[i]);
    const auto outputs = static_cast<std::size_t>(widths[i + 1]);
    layers_.push_back({widths[i], widths[i + 1], end, end + inputs * outputs});
    end += inputs * outputs + outputs;
  }
  weights_.resize(end);
  gradient_.resize(end);
  Random random(seed);
  for (const Layer& layer : layers_) {
    const double deviation = std::sqrt(2.0 / static_cast<double>(layer.inputs));
    for (std::size_t i = layer.weights; i < layer.biases; ++i) {
      weights_[i] = static_cast<Scalar>(deviation * random.normal());
    }
  }
}

template <typename Scalar>
auto BasicNetwork<Scalar>::weights_of(const Layer& layer, std::vector<Scalar>& buffer) {
  return Eigen::Map<Matrix>(buffer.data() + layer.weights, layer.inputs, layer.outputs);
}

template <typename Scalar>
auto BasicNetwork<Scalar>::biases_of(const Layer& layer, std::vector<Scalar>& buffer) {
  using Row = Eigen::Matrix<Scalar, 1, Eigen::Dynamic>;
  return Eigen::Map<Row>(buffer.data() + layer.biases, layer.outputs);
}

template <typename Scalar>
void BasicNetwork<Scalar>::forward(const Matrix& images) {
  const Matrix* input = &images;
  for (std::size_t i = 0; i < layers_.size(); ++i) {
    Matrix& output = outputs_[i];
    output.noalias() = *input * weights_of(layers_[i], weights_);
    output.rowwise() += biases_of(layers_[i], weights_);
    if (i + 1 < layers_.size()) output = output.cwiseMax(Scalar{0});
    input = &output;
  }
  // Softmax. The largest value of each row is subtracted first, so that exp() cannot overflow.
  Matrix& last = outputs_.back();
  last.colwise() -= last.rowwise().maxCoeff().eval();
  last = last.array().exp().matrix();
  last.array().colwise() /= last.rowwise().sum().array().eval();
}

template <typename Scalar>
Score BasicNetwork<Scalar>::score(std::span<const std::uint8_t> labels) {
  Score score;
  const Matrix& probabilities = outputs_.back();
  for (std::size_t i = 0; i < labels.size(); ++i) {
    const auto row = static_cast<Eigen::Index>(i);
    Eigen::Index taken_for = 0;
    probabilities.row(row).maxCoeff(&taken_for);
    score.correct += taken_for == labels[i];
    // A probability that underflowed to 0 counts as the smallest positive number: the loss stays
    // finite.
    const Scalar probability = probabilities(row, labels[i]);
    score.loss -= std::log(std::max(probability, std::numeric_limits<Scalar>::min()));
  }
  return score;
}

// Back-propagation. `delta` is the derivative of the mean loss with respect to a layer's output
// before ReLU or softmax. For softmax with cross-entropy it is the probability minus the truth.
template <typename Scalar>
void BasicNetwork<Scalar>::backward(const Matrix& images, std::span<const std::uint8_t> labels) {
  Matrix delta = outputs_.back();
  for (std::size_t i = 0; i < labels.size(); ++i)
    delta(static_cast<Eigen::Index>(i), labels[i]) -= 1;
  delta /= static_cast<Scalar>(labels.size());
  for (std::size_t i = layers_.size(); i-- > 0;) {
    const Matrix& input = i == 0 ? images : outputs_[i - 1];
    weights_of(layers_[i], gradient_).noalias() = input.transpose() * delta;
    biases_of(layers_[i], gradient_) = delta.colwise().sum();
    if (i == 0) break;
    const Matrix passed = delta * weights_of(layers_[i], weights_).transpose();
    delta = (input.array() > Scalar{0}).select(passed, Scalar{0});
  }
}

template <typename Scalar>
Score BasicNetwork<Scalar>::learn(const Matrix& images, std::span<const std::uint8_t> labels) {
  forward(images);
  backward(images, labels);
  return score(labels);
}

template <typename Scalar>
Score BasicNetwork<Scalar>::evaluate(const Matrix& images, std::span<const std::uint8_t> labels) {
  forward(images);
  return score(labels);
}

template class BasicNetwork<float>;
template class BasicNetwork<double>;

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
