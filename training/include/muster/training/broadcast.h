// Copies the state of one rank to all ranks, before the first step and after a checkpoint was read.
//
// Called by all ranks. If a rank's model or optimizer differs from the root's (another layer, shape
// or kind of optimizer), all ranks return kMismatch with the first line that differs, and nothing
// is changed. Must not be called during a backward pass or a step. Thread-safety: none needed.
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

/// Copies the root's parameters and buffers to all other ranks.
collective::Status broadcast_parameters(collective::Session& session, torch::nn::Module& model,
                                        int root = 0);

/// Copies the state of the root's optimizer (momentum, Adam's moments and step counts) and its
/// options, including learning rates. State that only another rank has is deleted. Works for all
/// optimizers of libtorch, and for custom ones that implement save() and load().
collective::Status broadcast_optimizer_state(collective::Session& session,
                                             torch::optim::Optimizer& optimizer, int root = 0);

}  // namespace muster::training
