// The parameters and the settings of a distributed optimizer: their checks, and the description by
// which the ranks compare them.
#pragma once

#include <torch/torch.h>

#include <set>
#include <string>
#include <vector>

#include "bucket_plan.h"
#include "describe.h"
#include "muster/collective/result.h"
#include "muster/training/distributed_optimizer.h"

namespace muster::training {

/// Errors: kBadArgument with every invalid setting.
collective::Status check(const OptimizerSettings& settings);

/// The optimizer's trained parameters, in its order, with their names in the model.
///
/// Errors: kBadArgument with every invalid parameter.
collective::Result<std::vector<NamedTensor>> parameters_of(
    const torch::nn::Module& model, const torch::optim::Optimizer& optimizer);

/// What distinguishes parameters, whatever their values are.
std::set<const void*> identities_of(const std::vector<torch::Tensor>& parameters);

/// Checks the parameters of group `number` of the optimizer. A parameter that was unfrozen or added
/// after the distributed optimizer was created is in none of its buckets, and the ranks would diverge.
///
/// Errors: kBadArgument, naming a parameter that requires a gradient and is not in `trained`.
collective::Status check_group(const std::set<const void*>& trained, const torch::nn::Module& model,
                               const std::vector<torch::Tensor>& group, std::size_t number);

void reset_gradients(const std::vector<torch::Tensor>& parameters);

/// Everything that must be equal on all ranks, including strides: a bucket is reduced as it is in
/// memory.
std::vector<std::string> description(const std::vector<NamedTensor>& parameters,
                                     const OptimizerSettings& settings);

std::vector<GradientShape> shapes_of(const std::vector<NamedTensor>& parameters);

}  // namespace muster::training
