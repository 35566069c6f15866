// Batch normalisation over the batches of all ranks: mean and variance are those of the
// concatenated batch, in the forward and in the backward pass, as if one process had processed the
// whole batch. It is meant for small batches per rank, whose own statistics would be too noisy (S.
// Ioffe, C. Szegedy, "Batch normalization", ICML 2015).
//
//   SyncBatchNorm norm(session, "layer1.norm", SyncBatchNormOptions{.features = 64});
//   norm->train();
//   torch::Tensor y = norm->forward(x);       // x: [batch, 64, ...], batches may differ in size
//
// Parameters, buffers and their names are those of torch::nn::BatchNorm2d, so that each module can
// load the other's state. In evaluation, and in a world of one rank, the results are the same as
// well.
//
// Ranks exchange the count, mean and sum of squares of each channel (Chan, Golub, LeVeque,
// "Updating formulae and a pairwise algorithm for computing sample variances", 1979, which keeps
// its precision if the mean is large), all in float64, and two sums of each channel in the backward
// pass.
//
// All ranks run forward, and then backward, the same number of times. A rank may have an empty
// batch. Gradients of weight and bias belong to the rank's own batch; the caller sums or averages
// them over the ranks. The module cannot be differentiated twice.
//
// Errors are thrown by forward() and backward(), like torch's own: CollectiveFailure.
//
// Thread-safety: forward() changes the running statistics, so one thread at a time calls it.
#pragma once

#include <torch/torch.h>

#include <optional>
#include <stdexcept>
#include <string>

#include "muster/collective/result.h"
#include "muster/collective/session.h"

namespace muster::training {

/// The failure of a collective in a function that can only throw.
class CollectiveFailure : public std::runtime_error {
 public:
  explicit CollectiveFailure(collective::Error error)
      : std::runtime_error(error.to_string()), error_(std::move(error)) {}

  const collective::Error& error() const { return error_; }

 private:
  collective::Error error_;
};

struct SyncBatchNormOptions {
  std::int64_t features;  // the size of dimension 1
  double eps = 1e-5;
  std::optional<double> momentum = 0.1;  // of the running statistics; nullopt: a plain average
  bool affine = true;
  bool track_running_stats = true;
};

class SyncBatchNormImpl : public torch::nn::Module {
 public:
  /// `name` identifies the module in its operations: equal on all ranks, different for each module.
  /// The session outlives the module and every graph that contains it.
  SyncBatchNormImpl(collective::Session& session, std::string name,
                    const SyncBatchNormOptions& options);

  /// Normalises an input of shape [batch, features, ...]. In training, all ranks call it together.
  torch::Tensor forward(const torch::Tensor& input);

  void pretty_print(std::ostream& stream) const override;

  torch::Tensor weight, bias;               // undefined unless affine
  torch::Tensor running_mean, running_var;  // undefined unless they are tracked
  torch::Tensor num_batches_tracked;

 private:
  torch::Tensor normalise_alone(const torch::Tensor& input);
  double next_momentum();

  collective::Session& session_;
  const std::string name_;
  const SyncBatchNormOptions options_;
};

TORCH_MODULE(SyncBatchNorm);

}  // namespace muster::training
