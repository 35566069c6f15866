// Buckets of gradients whose reduction is compressed with error feedback: int8 and PowerSGD, as in
// muster.torch (python/muster/torch/compressed_buckets.py), with the same results.
//
// In step t, a rank with gradient g sends C(g + e) and keeps the error e' = g + e - C(g + e) for
// step t + 1. So the sum of all that is ever sent differs from the sum of all gradients by the last
// error only. An error that is not finite is dropped: an infinite gradient spoils one step, as it
// does without compression, and not every later step.
//
// A reduction has two exchanges. launch() begins the first, and proceed() begins the second once the
// first is done: later gradients call it during the backward pass, and finish() at the end.
//
// Thread-safety: one thread at a time.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bucket.h"
#include "describe.h"
#include "muster/collective/session.h"
#include "muster/training/distributed_optimizer.h"

namespace muster::training {

/// What both compressions have in common: the gradients of the bucket as float32, and the marks that
/// show whether any rank has a gradient.
class FeedbackBucket : public GradientBucket {
 public:
  FeedbackBucket(std::string name, std::vector<NamedTensor> parameters, collective::ReduceOp op,
                 int ranks);

  std::size_t size() const override { return parameters_.size(); }

  /// Gradients stay where autograd puts them.
  void adopt(std::size_t /*slot*/) override {}
  void take_over(std::size_t slot) override;

  collective::Status launch(collective::Session& session) override;
  bool is_under_way() const override { return phase_ != Phase::kIdle; }
  collective::Status proceed(collective::Session& session, bool waits) override;
  collective::Status finish(collective::Session& session) override;

 protected:
  using Begun = collective::Result<collective::Ticket>;

  /// Begin the first and the second exchange, of which end() returns the averages of all gradients,
  /// each in any shape with its elements.
  virtual Begun begin(collective::Session& session) = 0;
  virtual Begun go_on(collective::Session& session) = 0;
  virtual std::vector<torch::Tensor> end() = 0;

  /// The gradient of a parameter as float32 with the parameter's shape; an undefined tensor if it has no gradient.
  torch::Tensor gradient_of(std::size_t slot) const;
  std::int64_t length_of(std::size_t slot) const { return parameters_[slot].tensor.numel(); }

  /// At the end of the bucket: keeps the memory of a pending exchange, which the session writes.
  void abandon(const std::vector<torch::Tensor>& buffers);

  std::string name_;
  std::vector<NamedTensor> parameters_;
  int ranks_;
  std::vector<std::uint8_t> some_rank_has_;  // by slot, after the first exchange

 private:
  enum class Phase { kIdle, kFirst, kSecond };

  collective::Status wait(collective::Session& session);
  void give(const std::vector<torch::Tensor>& averages);

  double factor_;  // the compressions compute averages
  Phase phase_ = Phase::kIdle;
  std::optional<collective::Ticket> ticket_;
};

/// Each rank sends every other rank its part of the bucket in 8 bits with a scale for every 512
/// elements, adds what it gets for its own part in float32, and sends the average to all ranks in 8
/// bits. Both conversions have errors that are fed back.
///
///   Tang et al.: 1-bit Adam. ICML 2021, section 3.
class Int8Bucket : public FeedbackBucket {
 public:
  Int8Bucket(std::string name, std::vector<NamedTensor> parameters, collective::ReduceOp op,
             int ranks);
  ~Int8Bucket() override;
  std::vector<NamedTensor> kept() const override;

 private:
  Begun begin(collective::Session& session) override;
  Begun go_on(collective::Session& session) override;
  std::vector<torch::Tensor> end() override;
  void pack(const torch::Tensor& values, torch::Tensor& error, torch::Tensor packed) const;
  torch::Tensor unpacked(const torch::Tensor& packed) const;

  std::int64_t part_;   // elements of each rank's part
  std::int64_t bytes_;  // of a part: its elements, their scales, and the marks
  torch::Tensor values_;
  torch::Tensor error_;             // what this rank has not sent yet
  torch::Tensor error_of_average_;  // of its own part
  torch::Tensor sent_;
  torch::Tensor received_;
};

/// Sends a gradient of a x b as two factors of a x rank and b x rank: one step of the power method
/// with the q of the step before. The first exchange averages all p, and the gradients that are sent
/// unchanged; the second averages all q.
///
///   Vogels et al.: PowerSGD: Practical Low-Rank Gradient Compression for Distributed Optimization.
///   NeurIPS 2019. Algorithms 1 and 2.
class PowerSgdBucket : public FeedbackBucket {
 public:
  PowerSgdBucket(std::string name, std::vector<NamedTensor> parameters, collective::ReduceOp op,
                 int ranks, int rank);
  ~PowerSgdBucket() override;
  std::vector<NamedTensor> kept() const override;
  void restored() override;

 private:
  // A gradient of rows x columns, and its factors p (rows x rank) and q (columns x rank), which are
  // views of the bucket's flat tensors.
  struct Matrix {
    std::size_t slot;
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t rank;
    torch::Tensor values = {};
    torch::Tensor error = {};
    torch::Tensor p = {};
    torch::Tensor q = {};
    torch::Generator random = {};
    torch::Tensor random_state = {};  // of `random`, as it is kept
  };

  Begun begin(collective::Session& session) override;
  Begun go_on(collective::Session& session) override;
  std::vector<torch::Tensor> end() override;
  Begun average(collective::Session& session, const char* part, const torch::Tensor& values);
  static void prepare_q(Matrix& matrix);

  std::vector<Matrix> matrices_;
  std::vector<std::pair<std::size_t, torch::Tensor>> unchanged_;  // a slot, and its part of first_
  torch::Tensor first_;   // all p, the unchanged gradients, and the marks
  torch::Tensor marks_;   // the end of first_
  torch::Tensor second_;  // all q
};

/// The seed of the first q of a parameter, equal on all ranks and in muster.torch.
std::uint64_t seed_of(const std::string& parameter);

}  // namespace muster::training
