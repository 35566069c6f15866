// The gradients of several parameters as one flat piece of memory, and their way through one
// all_reduce. Behind the gradients lies a mark for each, 1 where this rank has a gradient: reduced
// with them, it says whether any rank has.
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
  /// `parameters` are all of one float type on the processor. `name` is that of its operations.
  Bucket(collective::Session& session, std::string name, std::vector<NamedTensor> parameters,
         Compression compression);

  /// Gives its memory up where an operation is still under way on it. Gradients that lie in it
  /// become undefined.
  ~Bucket();
  Bucket(const Bucket&) = delete;
  Bucket& operator=(const Bucket&) = delete;

  std::size_t size() const { return slots_.size(); }

  /// Brings the gradient of a parameter to its place, where it is not there already.
  void adopt(std::size_t slot);

  /// Hands the bucket over: adopts what is there, and puts zeros where there is no gradient.
  collective::Status launch(collective::Session& session, const collective::Reduction& reduction);

  /// Between a launch that went well and finish().
  bool is_under_way() const { return ticket_.has_value(); }

  /// Waits, and gives every parameter its reduced gradient, or none where no rank has one. Only
  /// where it is under way.
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

// Tells when the gradient of a parameter has been computed: a hook behind the node of the autograd
// graph that adds to grad().

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
    std::shared_ptr<torch::autograd::Node> node;  // the parameter itself holds it only weakly
    std::uintptr_t key;
  };

  std::vector<Hook> hooks_;
};

}  // namespace muster::training
