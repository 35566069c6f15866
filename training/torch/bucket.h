// The gradients of several parameters in one flat piece of memory, which one all_reduce reduces.
// After the gradients there is a mark for each, 1 if this rank has the gradient. The marks are
// reduced as well, and then show whether any rank has the gradient.
//
//   gradient 0 | gradient 1 | ... | mark 0 | mark 1 | ...
#pragma once

#include <torch/torch.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "bucket_plan.h"
#include "describe.h"
#include "muster/collective/session.h"
#include "muster/training/distributed_optimizer.h"

namespace muster::training {

class Bucket {
 public:
  /// `parameters` are of one float type, in host memory. `name` is the name of the bucket's
  /// operations.
  Bucket(collective::Session& session, std::string name, std::vector<NamedTensor> parameters,
         Compression compression);

  /// Abandons its memory if an operation on it is pending. Gradients in that memory become
  /// undefined.
  ~Bucket();
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  std::size_t size() const { return slots_.size(); }

  /// Moves the gradient of a parameter into the bucket, unless it is already there.
  void adopt(std::size_t slot);

  /// Hands the bucket over: adopts all existing gradients, and writes zeros for missing ones.
  collective::Status launch(collective::Session& session, const collective::Reduction& reduction);

  /// Whether a successful launch() has not been followed by finish().
  bool is_under_way() const { return ticket_.has_value(); }

  /// Waits, and gives every parameter its reduced gradient, or no gradient if no rank has one.
  /// Requires is_under_way().
  collective::Status finish(collective::Session& session);

 private:
  struct Slot {
    NamedTensor parameter;
    torch::Tensor view;  // shaped and strided as the parameter
  };

  collective::Error explain(const collective::Error& error) const;
  bool lies_in_place(const Slot& slot) const;

  std::string name_;
  std::vector<Slot> slots_;
  std::unique_ptr<FlatMemory> memory_;
  std::unique_ptr<FlatMemory> compressed_memory_;  // null without compression
  torch::Tensor flat_;
  torch::Tensor marks_;  // the end of flat_
  torch::Tensor sent_;   // flat_ or its 16-bit form
  collective::DataType sent_type_;
  std::optional<collective::Ticket> ticket_;
};

// Reports when the gradient of a parameter has been computed, by a hook after the node of the
// autograd graph that adds to grad().

class ReadyHooks {
 public:
  ReadyHooks() = default;
  ~ReadyHooks();
  ReadyHooks(const ReadyHooks&) = delete;
  ReadyHooks& operator=(const ReadyHooks&) = delete;

  /// Calls `then` after each backward pass that reaches `parameter`, a leaf that requires a
  /// gradient, on the thread that computed it.
  void add(const torch::Tensor& parameter, std::function<void()> then);

 private:
  struct Hook {
    std::shared_ptr<torch::autograd::Node> node;  // the parameter has only a weak reference
    std::uintptr_t key;
  };

  std::vector<Hook> hooks_;
};

}  // namespace muster::training
