// A small network that tells digits apart: two hidden layers with ReLU, and softmax with
// cross-entropy at its end. Weights and gradient lie in one flat buffer each, so that a
// data-parallel step is one collective.
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

/// What a network makes of some images.
struct Score {
  double loss = 0;  // the sum of the cross-entropies, in nats
  int correct = 0;  // how many images it takes for what they are
};

template <typename Scalar>
class BasicNetwork {
 public:
  /// A row for each image.
  using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

  /// Weights after K. He et al., "Delving Deep into Rectifiers", 2015: normal, with a variance of
  /// 2 / inputs; biases 0.
  BasicNetwork(Shape shape, std::uint64_t seed);

  /// For each layer its weights (a row for each input), then its biases.
  std::span<Scalar> weights() { return weights_; }

  /// Laid out like the weights: the derivatives of the mean loss of the last learn().
  std::span<Scalar> gradient() { return gradient_; }

  /// Computes the gradient; leaves the weights alone. `labels` has one entry for each image.
  Score learn(const Matrix& images, std::span<const std::uint8_t> labels);

  /// Scores the images only.
  Score evaluate(const Matrix& images, std::span<const std::uint8_t> labels);

 private:
  static constexpr int kLayers = 3;

  struct Layer {
    Eigen::Index inputs;
    Eigen::Index outputs;
    std::size_t weights;  // where they begin in the flat buffer
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
  // What each layer puts out, after ReLU or softmax, for the images at hand.
  std::vector<Matrix> outputs_;
};

using Network = BasicNetwork<float>;

// Images the way the network takes them, and how many of the test images it tells right.
//
// Thread-safety: as the network's.

struct Batch {
  Network::Matrix images;
  std::vector<std::uint8_t> labels;
};

/// The images of these numbers, their pixels multiplied by `scale`.
Batch batch_of(const ImageSet& set, std::span<const std::uint32_t> indices, float scale);

/// How many of the test images `first`, `first + stride`, `first + 2 * stride`, ... the network
/// takes for what they are.
int count_correct(Network& network, const Dataset& data, std::size_t first, std::size_t stride);

}  // namespace muster::digits
