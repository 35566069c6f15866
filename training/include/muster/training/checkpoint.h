// Stores a training on disk, so that it continues after the job has been killed: the model, the
// optimizer, and the progress.
//
//   auto progress = resume(session, folder, *model, sgd);  // without a file: from the start
//   ...
//   Status kept = save(session, folder, *model, sgd, {.epoch = 3, .step = 1200, .samples = 9600});
//
// Only rank 0 accesses the disk, and the other ranks receive the outcome: a folder that only rank 0
// can see is sufficient. All ranks call both functions, which are barriers.
//
// The file is FOLDER/checkpoint, of mode 0600. A new file is written beside it, flushed to disk and
// then renamed over it: whenever the job or the machine dies, the last complete checkpoint remains.
// It contains the model's tensors and the optimizer's state, with a SHA-256 of everything. A file
// that is truncated, damaged, or not a checkpoint is rejected before any of it is used.
//
// State that differs between ranks is stored for rank 0 only, such as the running statistics of a
// plain BatchNorm. The errors of a compression (Compression::kInt8, kPowerSgd) are stored for every
// rank by the functions that take a DistributedOptimizer.
//
// Thread-safety: the model and the optimizer must not be in use on another thread during a call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "muster/collective/session.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace muster::training {

class DistributedOptimizer;

/// The progress of a training: the numbers of completed epochs and steps.
struct Progress {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  // of the whole training
  /// The number of samples of this epoch that all ranks together have used: seek(samples / size).
  std::uint64_t samples = 0;

  bool operator==(const Progress&) const = default;
};

/// Writes FOLDER/checkpoint, and creates the folder (0700) if necessary.
///
/// Errors, equal on all ranks: kSystem with the path and the reason, while the previous checkpoint
/// remains; errors of the session.
collective::Status save(collective::Session& session, const std::string& folder,
                        const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                        const Progress& progress);

/// Restores model and optimizer of all ranks from FOLDER/checkpoint. Returns nullopt and changes
/// nothing if the file does not exist.
///
/// Errors, equal on all ranks: kMismatch for a checkpoint of another model or optimizer, with the
/// differences; kBadArgument for a file that is not a complete checkpoint; kSystem; errors of the
/// session.
collective::Result<std::optional<Progress>> resume(collective::Session& session,
                                                   const std::string& folder,
                                                   torch::nn::Module& model,
                                                   torch::optim::Optimizer& optimizer);

/// The same with what the compression of `distributed`, which wraps `optimizer`, keeps on each rank:
/// training then continues to the same bits. Each rank first writes FOLDER/errors-..., so that all
/// ranks must see the folder; rank 0 then writes FOLDER/checkpoint.
collective::Status save(collective::Session& session, const std::string& folder,
                        const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                        const DistributedOptimizer& distributed, const Progress& progress);

/// Compression residuals start at zero if the checkpoint has none. Errors, equal on all ranks: also
/// kMismatch if the checkpoint is of another number of ranks or another compression, or if only
/// some ranks see their residuals. The rest of the checkpoint is restored even then.
collective::Result<std::optional<Progress>> resume(collective::Session& session,
                                                   const std::string& folder,
                                                   torch::nn::Module& model,
                                                   torch::optim::Optimizer& optimizer,
                                                   DistributedOptimizer& distributed);

}  // namespace muster::training
