#include "muster/training/distributed_optimizer.h"

#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "bucket.h"
#include "bucket_plan.h"
#include "checkpoint_content.h"
#include "compressed_bucket.h"
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
  Implementation(Session& session, const torch::nn::Module& model,
                 torch::optim::Optimizer& optimizer, std::vector<NamedTensor> parameters,
                 OptimizerSettings settings)
      : session_(session),
        model_(model),
        optimizer_(optimizer),
        parameters_(std::move(parameters)),
        settings_(std::move(settings)),
        passes_(parameters_.size()),
        order_(reverse_order(parameters_.size())) {
    for (const NamedTensor& parameter : parameters_) {
      trained_.insert(parameter.tensor.unsafeGetTensorImpl());
    }
    // A world of one rank has nothing to reduce, and leaves the gradients where autograd puts them.
    if (session_.size() == 1) return;
    fill_buckets();
    for (std::uint32_t i = 0; i < parameters_.size(); ++i) {
      hooks_.add(parameters_[i].tensor, [this, i] { ready(i); });
    }
  }

  void zero_grad() override {
    for (const auto& group : optimizer_.param_groups()) reset_gradients(group.params());
    const std::lock_guard lock(mutex_);
    is_reduced_ = false;
  }

  Status synchronize() override {
    const std::lock_guard lock(mutex_);
    Status reduced = fault_ ? Status(*fault_) : check_trained();
    if (reduced) reduced = reduce_all();
    if (!reduced) {
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

  std::string error_bytes() const override {
    const std::vector<NamedTensor> kept = kept_errors();
    std::vector<std::string> lines = describe(kept);
    lines.insert(lines.begin(), {place_line(), order_line()});
    return joined_lines(lines) + '\0' + bytes_of(kept);
  }

  Status restore_errors(const std::string& bytes) override {
    const std::lock_guard lock(mutex_);
    const std::size_t end = bytes.find('\0');
    const std::vector<std::string> lines = split_lines(bytes.substr(0, end));
    if (end == std::string::npos || lines.size() < 2) return damaged_errors();
    if (Status same = check_same("the file of errors", {lines[0]}, {place_line()}, 0); !same) {
      return same;
    }
    std::optional<std::vector<std::uint32_t>> order = order_of(lines[1]);
    if (!order) return damaged_errors();
    if (order->empty()) return {};  // saved before the first step
    order_ = *std::move(order);
    is_ordered_ = true;
    fill_buckets();
    const std::vector<NamedTensor> kept = kept_errors();
    std::vector<std::string> expected = describe(kept);
    expected.insert(expected.begin(), lines.begin(), lines.begin() + 2);
    if (Status same = check_same("the file of errors", lines, expected, 2); !same) return same;
    if (bytes.size() - end - 1 != length_of(kept)) return damaged_errors();
    copy_bytes_into(kept, bytes.substr(end + 1));
    for (const auto& bucket : buckets_) bucket->restored();
    return {};
  }

 private:
  struct Place {
    std::size_t bucket;
    std::size_t slot;
  };

  bool is_reduced() {
    const std::lock_guard lock(mutex_);
    return is_reduced_;
  }

  Status check_trained() const {
    for (std::size_t g = 0; g < optimizer_.param_groups().size(); ++g) {
      const auto& group = optimizer_.param_groups()[g].params();
      if (Status checked = check_group(trained_, model_, group, g); !checked) return checked;
    }
    return {};
  }

  static Error damaged_errors() {
    return {ErrorCode::kBadArgument, "the file of errors is damaged"};
  }

  std::vector<NamedTensor> kept_errors() const {
    std::vector<NamedTensor> kept;
    for (const auto& bucket : buckets_) {
      for (NamedTensor& tensor : bucket->kept()) kept.push_back(std::move(tensor));
    }
    return kept;
  }

  std::string place_line() const {
    return "errors of rank " + std::to_string(session_.rank()) + " of " +
           std::to_string(session_.size()) + " with compression " +
           std::to_string(static_cast<int>(settings_.compression)) + " of rank " +
           std::to_string(settings_.power_sgd_rank);
  }

  // "order 3 2 0 1"; "order" before the first step.
  std::string order_line() const {
    std::string line = "order";
    if (!is_ordered_) return line;
    for (const std::uint32_t parameter : order_) line += " " + std::to_string(parameter);
    return line;
  }

  // Empty or a permutation; nullopt for any other line.
  std::optional<std::vector<std::uint32_t>> order_of(const std::string& line) const {
    std::istringstream text(line);
    std::string word;
    text >> word;
    if (word != "order") return std::nullopt;
    std::vector<std::uint32_t> order;
    for (std::uint32_t parameter = 0; text >> parameter;) order.push_back(parameter);
    std::vector<std::uint32_t> sorted = order;
    std::sort(sorted.begin(), sorted.end());
    for (std::uint32_t i = 0; i < sorted.size(); ++i) {
      if (sorted[i] != i) return std::nullopt;
    }
    if (!text.eof() || (!order.empty() && order.size() != parameters_.size())) return std::nullopt;
    return order;
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
    for (const auto& bucket : buckets_) {
      if (Status proceeded = bucket->proceed(session_, false); !proceeded) {
        fault_ = proceeded.error();
        return;
      }
    }
    Status launched = buckets_[place.bucket]->launch(session_);
    if (!launched) fault_ = launched.error();
  }

  Status reduce_all() {
    if (fault_) return *fault_;
    // Other ranks may have gradients that this rank does not have.
    for (const auto& bucket : buckets_) {
      if (bucket->is_under_way()) continue;
      if (Status launched = bucket->launch(session_); !launched) return launched;
    }
    for (const auto& bucket : buckets_) {
      if (Status proceeded = bucket->proceed(session_, true); !proceeded) return proceeded;
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
    if (order == order_ && !has_feedback(settings_.compression)) return {};
    order_ = std::move(order);
    fill_buckets();
    return {};
  }

  void fill_buckets() {
    ++generation_;
    const auto plan = plan_buckets(shapes_of(parameters_), order_, settings_.bucket_bytes);
    std::vector<std::unique_ptr<GradientBucket>> filled;
    places_.resize(parameters_.size());
    for (const BucketPlan& members : plan) {
      std::vector<NamedTensor> parameters;
      for (const std::uint32_t member : members) {
        places_[member] = {filled.size(), parameters.size()};
        parameters.push_back(parameters_[member]);
      }
      filled.push_back(make_bucket(name_of(filled.size()), std::move(parameters)));
      for (std::size_t i = 0; i < members.size(); ++i) filled.back()->take_over(i);
    }
    buckets_ = std::move(filled);
    missing_.resize(buckets_.size());
    begin_round();
  }

  // The first buckets live for one step only, in which nothing is known of their errors yet.
  std::unique_ptr<GradientBucket> make_bucket(std::string name,
                                              std::vector<NamedTensor> parameters) {
    if (is_ordered_ && settings_.compression == Compression::kInt8) {
      return std::make_unique<Int8Bucket>(std::move(name), std::move(parameters), settings_.op,
                                          session_.size());
    }
    if (is_ordered_ && settings_.compression == Compression::kPowerSgd) {
      return std::make_unique<PowerSgdBucket>(std::move(name), std::move(parameters), settings_.op,
                                              session_.size(), settings_.power_sgd_rank);
    }
    return std::make_unique<Bucket>(session_, std::move(name), std::move(parameters), settings_.op,
                                    settings_.compression);
  }

  std::string name_of(std::size_t bucket) const {
    return settings_.name + "." + std::to_string(generation_) + "." + std::to_string(bucket);
  }

  Session& session_;
  const torch::nn::Module& model_;
  torch::optim::Optimizer& optimizer_;
  std::vector<NamedTensor> parameters_;
  std::set<const void*> trained_;  // parameters_, to recognise others
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
  std::vector<std::unique_ptr<GradientBucket>> buckets_;
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
  return std::unique_ptr<DistributedOptimizer>(std::make_unique<Implementation>(
      session, model, optimizer, *std::move(parameters), settings));
}

}  // namespace muster::training
