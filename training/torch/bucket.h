// Gradients that are reduced together: the interface of all buckets, the bucket without error
// feedback (others: compressed_bucket.h), and the hooks that report when a gradient is computed.
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

class GradientBucket {
 public:
  GradientBucket() = default;

  /// Abandons the memory of a pending operation.
  virtual ~GradientBucket() = default;
  GradientBucket(const GradientBucket&) = delete;
  GradientBucket& operator=(const GradientBucket&) = delete;

  /// The number of gradients.
  virtual std::size_t size() const = 0;

  /// The gradient of a parameter has been computed, or added to.
  virtual void adopt(std::size_t slot) = 0;

  /// The gradient of a parameter, if there is one, lies in memory of a bucket that ends now.
  virtual void take_over(std::size_t slot) { adopt(slot); }

  /// Begins to reduce the gradients. Missing ones count as zeros.
  virtual collective::Status launch(collective::Session& session) = 0;

  /// Whether a successful launch() has not been followed by finish().
  virtual bool is_under_way() const = 0;

  /// Of a bucket with several exchanges: begins the next one if the previous one is done; with
  /// `waits`, waits for that.
  virtual collective::Status proceed(collective::Session& /*session*/, bool /*waits*/) {
    return {};
  }

  /// Waits, and gives every parameter its reduced gradient, or no gradient if no rank has one.
  /// Requires is_under_way().
  virtual collective::Status finish(collective::Session& session) = 0;

  /// What this rank keeps from step to step, for checkpoints. restored() is called after other
  /// values were copied into these tensors.
  virtual std::vector<NamedTensor> kept() const { return {}; }
  virtual void restored() {}
};

/// Error with the names of the bucket's parameters before its message.
collective::Error explain(const std::vector<NamedTensor>& parameters,
                          const collective::Error& error);

/// The gradients in one flat piece of memory, which one all_reduce reduces. After the gradients
/// there is a mark for each, 1 if this rank has the gradient. The marks are reduced as well, and
/// then show whether any rank has the gradient.
///
///   gradient 0 | gradient 1 | ... | mark 0 | mark 1 | ...
class Bucket : public GradientBucket {
 public:
  /// `parameters` are of one float type, in host memory. `name` is the name of the bucket's
  /// operations.
  Bucket(collective::Session& session, std::string name, std::vector<NamedTensor> parameters,
         collective::ReduceOp op, Compression compression);

  /// Gradients in the bucket's memory become undefined.
  ~Bucket() override;

  std::size_t size() const override { return slots_.size(); }

  /// Moves the gradient of a parameter into the bucket, unless it is already there.
  void adopt(std::size_t slot) override;

  collective::Status launch(collective::Session& session) override;
  bool is_under_way() const override { return ticket_.has_value(); }
  collective::Status finish(collective::Session& session) override;

 private:
  struct Slot {
    NamedTensor parameter;
    torch::Tensor view;  // shaped and strided as the parameter
  };

  collective::Error explained(const collective::Error& error) const;
  bool lies_in_place(const Slot& slot) const;

  std::string name_;
  collective::ReduceOp op_;
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
