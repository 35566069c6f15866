// A small network that classifies digits: two hidden layers with ReLU, and softmax with
// cross-entropy at the end. The weights are in one flat buffer, and so is the gradient, so that a
// data-parallel step needs one collective.
//
// Scalar is float for training; the gradient is checked in double, where differences are exact
// enough. Both are instantiated in network.cc.
//
// Thread-safety: one thread at a time; networks share nothing. Each call computes on one thread, so
// the same input gives the same bits.
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "idx.h"

namespace muster::digits {

struct Shape {
  int inputs;
  int hidden;  // units of each of the two hidden layers
  int classes;
};

/// The result of a network on some images.
struct Score {
  double loss = 0;  // the sum of the cross-entropies, in nats
  int correct = 0;  // the number of correctly classified images
};

template <typename Scalar>
class BasicNetwork {
 public:
  /// One row for each image.
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// Weights after K. He et al., "Delving Deep into Rectifiers", 2015: normal, with a variance of
  /// 2 / inputs; biases 0.
  BasicNetwork(Shape shape, std::uint64_t seed);

  /// For each layer its weights (one row for each input), then its biases.
  std::span<Scalar> weights() { return weights_; }

  /// The derivatives of the mean loss of the last learn(), in the order of the weights.
  std::span<Scalar> gradient() { return gradient_; }

  /// Computes the gradient and does not change the weights. `labels` has one entry for each image.
  Score learn(const Matrix& images, std::span<const std::uint8_t> labels);

  /// Scores the images only.
  Score evaluate(const Matrix& images, std::span<const std::uint8_t> labels);

 private:
  static constexpr int kLayers = 3;

  struct Layer {
    Eigen::Index inputs;
    Eigen::Index outputs;
    std::size_t weights;  // their offset in the flat buffer
    std::size_t biases;
  };

  auto weights_of(const Layer& layer, std::vector<Scalar>& buffer);
  auto biases_of(const Layer& layer, std::vector<Scalar>& buffer);
  void forward(const Matrix& images);
  Score score(std::span<const std::uint8_t> labels);
  void backward(const Matrix& images, std::span<const std::uint8_t> labels);

  std::vector<Layer> layers_;
  std::vector<Scalar> weights_;
  std::vector<Scalar> gradient_;
  // The output of each layer for the current images, after ReLU or softmax.
  std::vector<Matrix> outputs_;
};

using Network = BasicNetwork<float>;

// Batches of images as input of the network, and its accuracy on the test images.
//
// Thread-safety: as the network's.

struct Batch {
  Network::Matrix images;
  std::vector<std::uint8_t> labels;
};

/// The images with these indices. Their pixels are multiplied by `scale`.
Batch batch_of(const ImageSet& set, std::span<const std::uint32_t> indices, float scale);

/// The number of correctly classified images among the test images `first`, `first + stride`,
/// `first + 2 * stride`, ...
int count_correct(Network& network, const Dataset& data, std::size_t first, std::size_t stride);

}  // namespace muster::digits
