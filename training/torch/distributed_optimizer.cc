#include "muster/training/distributed_optimizer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "bucket.h"
#include "bucket_plan.h"
#include "describe.h"
#include "exchange.h"
#include "parameters.h"

namespace muster::training {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::ReduceOp;
using collective::Result;
using collective::Session;
using collective::Status;

// The gradient of the last layer is ready first.
std::vector<std::uint32_t> reverse_order(std::size_t count) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.rbegin(), order.rend(), std::uint32_t{0});
  return order;
}

class Implementation : public DistributedOptimizer {
 public:
  Implementation(Session& session, torch::optim::Optimizer& optimizer,
                 std::vector<NamedTensor> parameters, OptimizerSettings settings)
      : session_(session),
        optimizer_(optimizer),
        parameters_(std::move(parameters)),
        settings_(std::move(settings)),
        passes_(parameters_.size()),
        order_(reverse_order(parameters_.size())) {
    // A world of one rank has nothing to reduce, and leaves the gradients where autograd puts them.
    if (session_.size() == 1) return;
    fill_buckets();
    for (std::uint32_t i = 0; i < parameters_.size(); ++i) {
      hooks_.add(parameters_[i].tensor, [this, i] { ready(i); });
    }
  }

  void zero_grad() override {
    for (NamedTensor& parameter : parameters_) parameter.tensor.mutable_grad().reset();
    const std::lock_guard lock(mutex_);
    is_reduced_ = false;
  }

  Status synchronize() override {
    const std::lock_guard lock(mutex_);
    if (Status reduced = reduce_all(); !reduced) {
      fault_ = reduced.error();
      return reduced;
    }
    is_reduced_ = true;
    return {};
  }

  Status step() override {
    if (!is_reduced()) {
      if (Status reduced = synchronize(); !reduced) return reduced;
    }
    {
      const std::lock_guard lock(mutex_);
      is_reduced_ = false;
    }
    try {
      optimizer_.step();
    } catch (const std::exception& thrown) {
      return Error{ErrorCode::kBadArgument,
                   std::string("the optimizer's step failed: ") + thrown.what()};
    }
    return {};
  }

  std::size_t buckets() const override { return buckets_.size(); }

 private:
  struct Place {
    std::size_t bucket;
    std::size_t slot;
  };

  bool is_reduced() {
    const std::lock_guard lock(mutex_);
    return is_reduced_;
  }

  // Called on a thread of the autograd engine when a pass has added to a gradient.
  void ready(std::uint32_t parameter) {
    const std::lock_guard lock(mutex_);
    is_reduced_ = false;
    if (fault_) return;
    const Place place = places_[parameter];
    const int passes = ++passes_[parameter];
    if (passes > settings_.passes_per_step) {
      fault_ =
          Error{ErrorCode::kBadArgument,
                "'" + parameters_[parameter].name + "' got gradients of " + std::to_string(passes) +
                    " passes since the last step, but passes_per_step is " +
                    std::to_string(settings_.passes_per_step),
                "call step() after each " + std::to_string(settings_.passes_per_step) +
                    " backward passes, or set passes_per_step"};
      return;
    }
    buckets_[place.bucket]->adopt(place.slot);
    if (passes < settings_.passes_per_step) return;
    if (!is_ordered_) ready_.push_back(parameter);
    if (--missing_[place.bucket] > 0) return;
    if (Status launched = launch(place.bucket); !launched) fault_ = launched.error();
  }

  Status launch(std::size_t bucket) {
    return buckets_[bucket]->launch(session_, collective::Reduction(settings_.op));
  }

  Status reduce_all() {
    if (fault_) return *fault_;
    // Other ranks may have gradients that this rank does not have.
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      if (buckets_[i]->is_under_way()) continue;
      if (Status launched = launch(i); !launched) return launched;
    }
    for (const auto& bucket : buckets_) {
      if (Status finished = bucket->finish(session_); !finished) return finished;
    }
    begin_round();
    return is_ordered_ ? Status() : take_order();
  }

  void begin_round() {
    std::fill(passes_.begin(), passes_.end(), 0);
    for (std::size_t i = 0; i < buckets_.size(); ++i) missing_[i] = buckets_[i]->size();
  }

  // After the first step all ranks use the order in which rank 0's gradients became ready.
  Status take_order() {
    if (session_.size() == 1) return {};
    std::vector<std::uint32_t> order = completed_order(ready_, order_);
    const std::size_t bytes = order.size() * sizeof order.front();
    std::string sent(bytes, '\0');
    std::memcpy(sent.data(), order.data(), bytes);
    const Result<std::string> got =
        broadcast_bytes(session_, settings_.name + ".order", std::move(sent), 0);
    if (!got) return got.error();
    std::memcpy(order.data(), got->data(), bytes);
    is_ordered_ = true;
    ready_ = {};
    if (order == order_) return {};
    order_ = std::move(order);
    fill_buckets();
    return {};
  }

  void fill_buckets() {
    ++generation_;
    const auto plan = plan_buckets(shapes_of(parameters_), order_, settings_.bucket_bytes);
    std::vector<std::unique_ptr<Bucket>> filled;
    places_.resize(parameters_.size());
    for (const BucketPlan& members : plan) {
      std::vector<NamedTensor> parameters;
      for (const std::uint32_t member : members) {
        places_[member] = {filled.size(), parameters.size()};
        parameters.push_back(parameters_[member]);
      }
      filled.push_back(std::make_unique<Bucket>(session_, name_of(filled.size()),
                                                std::move(parameters), settings_.compression));
      for (std::size_t i = 0; i < members.size(); ++i) filled.back()->adopt(i);
    }
    buckets_ = std::move(filled);
    missing_.resize(buckets_.size());
    begin_round();
  }

  std::string name_of(std::size_t bucket) const {
    return settings_.name + "." + std::to_string(generation_) + "." + std::to_string(bucket);
  }

  Session& session_;
  torch::optim::Optimizer& optimizer_;
  std::vector<NamedTensor> parameters_;
  const OptimizerSettings settings_;

  std::mutex mutex_;
  std::vector<int> passes_;           // of each parameter, since the last step
  std::vector<std::uint32_t> order_;  // in which the buckets were filled
  std::vector<std::uint32_t> ready_;  // the order of the first step so far
  bool is_ordered_ = false;
  bool is_reduced_ = false;
  std::optional<Error> fault_;
  int generation_ = 0;
  std::vector<Place> places_;  // of each parameter
  std::vector<std::unique_ptr<Bucket>> buckets_;
  std::vector<std::size_t> missing_;  // gradients that each bucket still waits for
  ReadyHooks hooks_;  // last, so that it is destroyed before the members that the hooks use
};

}  // namespace

Result<std::unique_ptr<DistributedOptimizer>> DistributedOptimizer::over(
    Session& session, const torch::nn::Module& model, torch::optim::Optimizer& optimizer,
    const OptimizerSettings& settings) {
  if (Status checked = check(settings); !checked) return checked.error();
  Result<std::vector<NamedTensor>> parameters = parameters_of(model, optimizer);
  if (!parameters) return parameters.error();
  if (Status agreed = agree(session, settings.name + ".agree", "parameters or settings",
                            description(*parameters, settings));
      !agreed) {
    return agreed.error();
  }
  return std::unique_ptr<DistributedOptimizer>(
      std::make_unique<Implementation>(session, optimizer, *std::move(parameters), settings));
}

}  // namespace muster::training
