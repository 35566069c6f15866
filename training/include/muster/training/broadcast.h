// Brings all ranks to the state of one of them, before the first step and after a checkpoint was
// read.
//
// Called by all ranks. Ranks that hold something else than the root (another layer, another shape,
// another optimizer) are kMismatch on all ranks, with the first line that differs, and nothing is
// changed. Thread-safety: none needed; not while a backward pass or a step is under way.
#pragma once

#include "muster/collective/result.h"
#include "muster/collective/session.h"

namespace torch::nn {
class Module;
}
namespace torch::optim {
class Optimizer;
}

namespace muster::training {

/// Copies the root's parameters and buffers over everyone's.
collective::Status broadcast_parameters(collective::Session& session, torch::nn::Module& model,
                                        int root = 0);

/// Copies what the root's optimizer remembers (momentum, Adam's moments and step counts) and its
/// options, learning rates included. What a rank remembers and the root does not, is forgotten. For
/// all optimizers of libtorch, and those of one's own that implement save() and load().
collective::Status broadcast_optimizer_state(collective::Session& session,
                                             torch::optim::Optimizer& optimizer, int root = 0);

}  // namespace muster::training
