// Keeps a training on disk, so that it goes on where it was after the job has been killed: model,
// optimizer, and how far it is.
//
//   auto progress = resume(session, folder, *model, sgd);  // without a file: from the start
//   ...
//   Status kept = save(session, folder, *model, sgd, {.epoch = 3, .step = 1200, .samples = 9600});
//
// Rank 0 alone touches the disk, all others learn from it how that went: a folder that only rank 0
// sees is enough. Both are called by all ranks, and are barriers.
//
// The file is FOLDER/checkpoint, of mode 0600. A new one is written beside it, brought to the disk
// and then renamed over it: whenever the job or the machine dies, what is there is the last whole
// checkpoint. It holds the model's tensors and optimizer's state under a SHA-256 of all: a file
// that is cut off, damaged, or no checkpoint is refused before anything of it is used.
//
// What a rank has for itself is not in it: running statistics of a plain BatchNorm are rank 0's.
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

/// How far a training is. Counted from 0: epochs and steps that are done.
struct Progress {
  std::uint64_t epoch = 0;
  std::uint64_t step = 0;  // of the whole training
  std::uint64_t samples =
      0;  // of this epoch, given out to all ranks together: seek(samples / size)

  bool operator==(const Progress&) const = default;
};

/// Writes FOLDER/checkpoint, and makes the folder (0700) where there is none.
///
/// Errors, the same on all ranks: kSystem with the path and the reason; the checkpoint from before
/// is then still there. Those of the session.
collective::Status save(collective::Session& session, const std::string& folder,
                        const torch::nn::Module& model, const torch::optim::Optimizer& optimizer,
                        const Progress& progress);

/// Brings model and optimizer of all ranks to what FOLDER/checkpoint holds; nothing where there is
/// none, and then nothing is changed.
///
/// Errors, the same on all ranks: kMismatch for a checkpoint of another model or optimizer, with
/// what differs; kBadArgument for a file that is no whole checkpoint; kSystem. Those of the
/// session.
collective::Result<std::optional<Progress>> resume(collective::Session& session,
                                                   const std::string& folder,
                                                   torch::nn::Module& model,
                                                   torch::optim::Optimizer& optimizer);

}  // namespace muster::training
