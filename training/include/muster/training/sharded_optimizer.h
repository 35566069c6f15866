// Divides the state of an optimizer among the ranks: each rank keeps the state of its part of the
// parameters only, and updates that part for all ranks.
//
//   torch::optim::Adam adam(model->parameters(), torch::optim::AdamOptions(0.001));
//   auto optimizer = ShardedOptimizer::over(session, *model, adam);
//   for (...) {
//     (*optimizer)->zero_grad();
//     loss_of(model, batch).backward();     // gradients are reduced during the backward pass
//     if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
//   }
//
//   Rajbhandari et al.: ZeRO: Memory Optimizations Toward Training Trillion Parameter Models.
//   SC 2020. Stages 1 and 2.
//
// Parameters move into flat buckets, of which each rank has a shard. A bucket's gradients are
// reduced and scattered when the last of them is ready; step() updates this rank's shard with the
// given optimizer and gathers the shards of all ranks, bucket by bucket. Stage 1 keeps gradients in
// memory; stage 2 releases them when their reduction begins.
//
// The result is that of DistributedOptimizer to the bit, with at most 8 ranks that are all on one
// host, or each on a host of its own. Other layouts add in another order.
//
// Parameters without a gradient count as in DistributedOptimizer, and as there, this object must be
// created anew after a parameter was unfrozen or added: until then step() fails. After step(), gradients are
// undefined in stage 2 and have no meaningful value in stage 1.
//
// Ownership and thread-safety are those of DistributedOptimizer. The parameters keep their new
// memory when this object ends. The given optimizer must not be stepped by itself or saved with
// save(); its options may be changed between steps.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "muster/collective/session.h"
#include "muster/training/checkpoint.h"
#include "muster/training/distributed_optimizer.h"

namespace muster::training {

class ShardedOptimizer {
 public:
  /// Called by all ranks, before the first step of `optimizer`: SGD, Adam, AdamW or RMSprop, which
  /// treat each element of a parameter by itself.
  ///
  /// Errors: as for DistributedOptimizer::over(); kBadArgument for another optimizer, one with
  /// state, or a stage other than 1 and 2.
  static collective::Result<std::unique_ptr<ShardedOptimizer>> over(
      collective::Session& session, torch::nn::Module& model, torch::optim::Optimizer& optimizer,
      const OptimizerSettings& settings = {.name = "sharded"}, int stage = 2);

  virtual ~ShardedOptimizer() = default;

  /// Makes the gradients of all parameters of the optimizer undefined.
  virtual void zero_grad() = 0;

  /// Errors: as for DistributedOptimizer::step(). Parameters may then be partly updated; continue
  /// from a checkpoint.
  virtual collective::Status step() = 0;

  /// The elements of parameters whose state this rank keeps, and those of all ranks.
  virtual std::size_t own_elements() const = 0;
  virtual std::size_t elements() const = 0;

  /// Writes a checkpoint that any number of ranks can resume: each rank writes its part into
  /// FOLDER/shard-..., and rank 0 then the model and the progress into FOLDER/checkpoint, which
  /// makes the new checkpoint valid. All ranks must see the folder, and all call it.
  ///
  /// Errors, equal on all ranks: kSystem, while the previous checkpoint remains; errors of the
  /// session.
  virtual collective::Status save(const std::string& folder, const Progress& progress) = 0;

  /// Restores model and optimizer. Returns nullopt and changes nothing if there is no checkpoint.
  /// With the same number of ranks, training continues to the same bits.
  ///
  /// Errors, equal on all ranks: kMismatch for a checkpoint of another model or optimizer,
  /// kBadArgument for a damaged one, kSystem; errors of the session. The state may be partly
  /// changed then.
  virtual collective::Result<std::optional<Progress>> resume(const std::string& folder) = 0;
};

}  // namespace muster::training
