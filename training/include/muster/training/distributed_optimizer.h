// Makes any optimizer of libtorch a distributed one: each rank computes gradients of its own batch,
// and all ranks take the same step with the average of the gradients.
//
//   auto optimizer = DistributedOptimizer::over(session, *model, sgd);
//   for (...) {
//     (*optimizer)->zero_grad();
//     loss_of(model, batch).backward();          // gradients are reduced during the backward pass
//     if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
//   }
//
// Buckets. Gradients are stored contiguously in flat buckets in the session's shared arena, and
// each `parameter.grad()` is a view of its part. A hook on each parameter detects when its gradient
// is complete. A bucket is handed over when its last gradient is complete, while the backward pass
// computes the next gradients. In the first step buckets are filled in the reverse order of
// registration; later they follow the order in which rank 0's gradients became ready in the first
// step.
//
// Parameters without a gradient. If only some ranks have a gradient for a parameter, the other
// ranks contribute zeros. If no rank has one, grad() is undefined after synchronize(), and the
// optimizer skips the parameter, as it does in a single process. That needs no message: each
// gradient has a mark in its bucket.
//
// Changes. The optimizer's parameters that require a gradient when this object is created are those
// that it averages. After a parameter was unfrozen, or added with add_param_group(), create the object
// anew; until then synchronize() and step() fail.
//
// Accumulation. With `passes_per_step` n, the gradients of n backward passes are added up before
// they are reduced; divide the loss by n for their mean. A step may follow fewer passes, for
// example after the last batches of an epoch, if it does so on all ranks.
//
// Between a backward pass and synchronize() gradients may already be in transit, and must not be
// read or written.
//
// Every rank has the same parameters and the same settings (over() compares them), and makes the
// same calls of synchronize() and step().
//
// Errors: the error of a failed collective names the parameters of its bucket and the rank at
// fault, if any. The parameters have not been changed, and the optimizer cannot be used further.
//
// Ownership: session, model and optimizer belong to the caller and outlive this object. Gradients
// are views of memory of this object: they become undefined with it, and copies of such a view must
// not be used afterwards. Thread-safety: one thread at a time; backward passes may run on threads
// of the autograd engine.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "muster/collective/result.h"
#include "muster/collective/session.h"
#include "muster/collective/types.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace muster::training {

/// kFloat16, kBFloat16: gradients of 32 and 64 bits are sent with 16 bits: half the bytes and less
/// precision. The values of all ranks are added in float32 and rounded once. float16 has 11
/// significant bits from 6e-5 to 65504, and larger gradients become infinite; bfloat16 has 8 bits
/// and float32's range.
///
/// kInt8: a quarter of the bytes of float32. Gradients are sent with 8 bits for each element and a
/// scale for every 512, before and after the sum.
/// kPowerSgd: a gradient of a x b is sent as two factors of a x rank and b x rank (Vogels et al.,
/// NeurIPS 2019). Gradients of fewer than two dimensions, and those that would not become smaller,
/// are sent unchanged.
///
/// The last two keep what a step did not send and add it to the next gradient (error feedback),
/// which takes memory of the size of the gradients. The first step, which determines the buckets,
/// is not compressed.
enum class Compression { kNone, kFloat16, kBFloat16, kInt8, kPowerSgd };

inline bool has_feedback(Compression compression) {
  return compression == Compression::kInt8 || compression == Compression::kPowerSgd;
}

struct OptimizerSettings {
  collective::ReduceOp op = collective::ReduceOp::kAverage;  // or kSum
  Compression compression = Compression::kNone;
  int power_sgd_rank = 4;  // of kPowerSgd
  int passes_per_step = 1;

  /// The maximum bytes of a bucket; a larger gradient has a bucket of its own. Small buckets begin
  /// early and leave little work for the end; large buckets need fewer messages, which matters
  /// between hosts.
  std::uint64_t bucket_bytes = std::uint64_t{1} << 20;

  /// Distinguishes the operations of several optimizers in one session.
  std::string name = "gradients";
};

class DistributedOptimizer {
 public:
  /// Called by all ranks. The parameters are those of `optimizer`, with their names in `model`.
  ///
  /// Errors: kBadArgument, naming every invalid setting and parameter (missing in `model`, not in
  /// host memory, not of a float type); kMismatch if ranks differ; errors of the session.
  static collective::Result<std::unique_ptr<DistributedOptimizer>> over(
      collective::Session& session, const torch::nn::Module& model,
      torch::optim::Optimizer& optimizer, const OptimizerSettings& settings = {});

  virtual ~DistributedOptimizer() = default;

  /// Makes the gradients of all parameters of the optimizer undefined, as zero_grad(set_to_none=True) of PyTorch does.
  virtual void zero_grad() = 0;

  /// Waits until all gradients are reduced, for code that uses them before the step, such as
  /// clipping.
  ///
  /// Errors: errors of the session; kBadArgument if a parameter got gradients of more passes than
  /// passes_per_step, or was unfrozen or added after this object was created.
  virtual collective::Status synchronize() = 0;

  /// Calls synchronize(), unless it was called after the last backward pass, and then the
  /// optimizer's step.
  ///
  /// Errors: as for synchronize(); kBadArgument with the message of an exception of the optimizer.
  virtual collective::Status step() = 0;

  /// The number of buckets, for people and tests.
  virtual std::size_t buckets() const = 0;

  /// What error feedback keeps on this rank, as bytes, for checkpoints; it differs between the
  /// ranks. Call it between steps. save() and resume() in checkpoint.h use it.
  virtual std::string error_bytes() const = 0;

  /// Continues with the errors that error_bytes() has returned on this rank in another run. All
  /// ranks call it, before the first step or between steps.
  ///
  /// Errors: kMismatch for errors of another rank, number of ranks, compression, or of other
  /// parameters; kBadArgument for damaged bytes.
  virtual collective::Status restore_errors(const std::string& bytes) = 0;
};

}  // namespace muster::training
