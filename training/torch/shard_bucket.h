// Parameters in one flat tensor, of which each rank has a shard, and the exchanges of their
// gradients and values.
//
//   parameters | weight 1              | bias 1 | weight 2                     |
//   shards     | rank 0           | rank 1           | rank 2                  |
//
// A piece is the part of a parameter in a rank's shard. It begins at a multiple of 64 elements of
// its parameter, so that vector instructions work on the same groups of elements as in the whole
// parameter: the optimizer computes the same bits.
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "describe.h"
#include "muster/collective/session.h"
#include "muster/training/distributed_optimizer.h"

namespace muster::training {

/// Where parameters begin in a bucket, and the length of each rank's shard, in elements.
struct ShardLayout {
  std::vector<std::int64_t> offsets;
  std::vector<std::uint64_t> counts;
};

ShardLayout layout_of(const std::vector<std::int64_t>& lengths, int ranks);

/// This rank's part of a parameter, by elements in the order of the parameter's memory.
struct ShardPiece {
  NamedTensor parameter;
  std::size_t number = 0;  // of the parameter, among all of the optimizer
  std::int64_t begin = 0;
  std::int64_t length = 0;  // may be 0
  torch::Tensor values;
  torch::Tensor gradient;
};

class ShardBucket {
 public:
  struct Member {
    NamedTensor parameter;
    std::size_t number;
  };

  /// Moves the parameters into the bucket. `keeps`: stage 1.
  ShardBucket(const collective::Session& session, std::string name, std::vector<Member> members,
              Compression compression, bool keeps);

  /// Leaves the memory of pending operations to the session.
  ~ShardBucket();
  ShardBucket(const ShardBucket&) = delete;
  ShardBucket& operator=(const ShardBucket&) = delete;

  std::vector<ShardPiece>& pieces() { return pieces_; }
  std::size_t size() const { return members_.size(); }
  bool is_under_way() const { return scattering_.has_value(); }

  /// Begins to reduce the gradients; missing ones count as zeros. `has_gradient` gets a 1 at the
  /// number of each parameter that has one.
  collective::Status launch(collective::Session& session, const collective::Reduction& reduction,
                            std::vector<std::uint8_t>& has_gradient);

  /// Waits; then each piece of a parameter with a 1 in `some_rank_has` has its gradient.
  collective::Status finish(collective::Session& session,
                            const std::vector<std::uint8_t>& some_rank_has);

  collective::Status begin_gather(collective::Session& session);
  collective::Status end_gather(collective::Session& session);

 private:
  std::string name_;
  std::vector<Member> members_;
  ShardLayout layout_;
  std::int64_t total_ = 0;
  std::int64_t begin_ = 0;  // of this rank's shard
  bool keeps_;
  std::vector<ShardPiece> pieces_;
  torch::Tensor flat_;      // the parameters
  torch::Tensor kept_;      // stage 1: the gradients
  torch::Tensor wire_;      // the gradients on their way
  torch::Tensor received_;  // this rank's part of the reduced gradients, in the type of the wire
  torch::Tensor reduced_;   // the same in the type of the parameters
  std::optional<collective::Ticket> scattering_;
  std::optional<collective::Ticket> gathering_;
};

/// A view of a flat tensor with the parameter's shape and strides.
torch::Tensor view_in(const torch::Tensor& flat, std::int64_t begin,
                      const torch::Tensor& parameter);

// The state that an optimizer of libtorch keeps for one tensor, as values: so that the parts of one
// number of ranks become those of another.

struct TensorState {
  bool exists = false;
  std::int64_t step = 0;
  /// By name: tensors with the elements of the parameter.
  std::vector<std::pair<std::string, torch::Tensor>> values;
};

/// Whether the optimizer is SGD, Adam, AdamW or RMSprop: they treat each element by itself.
bool is_divisible(const torch::optim::Optimizer& optimizer);

TensorState state_of(const torch::optim::Optimizer& optimizer, const torch::Tensor& tensor);

/// Replaces the state. Unknown names are ignored. Requires is_divisible().
void set_state(torch::optim::Optimizer& optimizer, const torch::Tensor& tensor,
               const TensorState& state);

}  // namespace muster::training
