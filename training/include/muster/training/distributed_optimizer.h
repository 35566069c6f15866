// Makes any optimizer of libtorch a distributed one: each rank computes gradients of its own batch,
// and all make the same step with their average.
//
//   auto optimizer = DistributedOptimizer::over(session, *model, sgd);
//   for (...) {
//     (*optimizer)->zero_grad();
//     loss_of(model, batch).backward();          // gradients are reduced while this goes on
//     if (Status stepped = (*optimizer)->step(); !stepped) return report(stepped.error());
//   }
//
// A hook on each parameter sees when its gradient is there. Gradients lie one after the other in
// flat buckets in the session's shared arena, each a view of its place (`parameter.grad()` as
// ever), and a bucket is handed over when its last gradient has come, while the backward pass
// computes the next. The first step fills buckets in the reverse order of registration; from the
// second on they follow the order in which rank 0's gradients became ready in the first.
//
// Parameters without a gradient. Where some ranks have one for a parameter and others do not, the
// others count as zeros. Where no rank has one, grad() is undefined after synchronize(), and the
// optimizer leaves the parameter alone, as it does on a single process. That costs no message: each
// gradient takes a mark along in its bucket.
//
// Accumulation. With `passes_per_step` n, gradients of n backward passes are added up before they
// are reduced; divide the loss by n for their mean. A step may come early, as after the last
// batches of an epoch, if it does on all ranks.
//
// Between a backward pass and synchronize() gradients may be on their way already: nobody else
// reads or writes them then.
//
// Every rank has the same parameters and the same settings (over() compares them), and makes the
// same calls of synchronize() and step().
//
// Errors: a collective that failed names the parameters of its bucket and, where a rank is to
// blame, that rank; the parameters have then not been changed, and the optimizer is of no further
// use.
//
// Ownership: session, model and optimizer belong to the caller and outlive this. Gradients are
// views of memory of this object: with it they become undefined, and an alias of one must not be
// used on. Thread-safety: one thread at a time; backward passes may run on threads of the autograd
// engine.
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

/// Gradients of 32 and 64 bits can be sent as 16: half the bytes and less precision. All ranks'
/// values are added in float32 and rounded once. float16 has 11 bits from 6e-5 up to 65504, past
/// which a gradient is infinite; bfloat16 has 8 bits and float32's range.
enum class Compression { kNone, kFloat16, kBFloat16 };

struct OptimizerSettings {
  collective::ReduceOp op = collective::ReduceOp::kAverage;  // or kSum
  Compression compression = Compression::kNone;
  int passes_per_step = 1;

  /// Most bytes of a bucket; a larger gradient has one for itself. Small buckets begin early and
  /// leave little for the end; large ones cost fewer messages, which tells between hosts.
  std::uint64_t bucket_bytes = std::uint64_t{1} << 20;

  /// Tells the operations of two optimizers of one session apart.
  std::string name = "gradients";
};

class DistributedOptimizer {
 public:
  /// Called by all ranks. Parameters are those of `optimizer`, under their names in `model`.
  ///
  /// Errors: kBadArgument, naming every setting or parameter that cannot be (one that `model` does
  /// not have, on a device other than the processor, of a type that is not a float); kMismatch
  /// where ranks differ; those of the session.
  static collective::Result<std::unique_ptr<DistributedOptimizer>> over(
      collective::Session& session, const torch::nn::Module& model,
      torch::optim::Optimizer& optimizer, const OptimizerSettings& settings = {});

  virtual ~DistributedOptimizer() = default;

  /// Makes all gradients undefined, as zero_grad(set_to_none=True) of PyTorch does.
  virtual void zero_grad() = 0;

  /// Waits until all gradients are reduced: for what looks at them before the step, as clipping
  /// does.
  ///
  /// Errors: those of the session; kBadArgument where a parameter got gradients of more passes than
  /// passes_per_step.
  virtual collective::Status synchronize() = 0;

  /// synchronize(), unless it has been called since the last backward pass, then the optimizer's
  /// step.
  ///
  /// Errors: those of synchronize(); kBadArgument with what the optimizer threw.
  virtual collective::Status step() = 0;

  /// How many buckets the gradients lie in, for people and tests.
  virtual std::size_t buckets() const = 0;
};

}  // namespace muster::training
