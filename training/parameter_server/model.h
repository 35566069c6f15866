// The part of a model that one server holds: slices, each with its values, its optimizer and its
// lock. Independent of the network.
//
// Thread-safety: all functions may be called from any thread. A slice is read and stepped under its
// own lock, so two pushes exclude each other only on a slice that both use at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/optimizer.h"
#include "parameter_server/layout.h"
#include "parameter_server/slice_optimizer.h"

namespace muster::parameter_server {

/// The declaration of a model, which must be equal on all workers.
struct Declaration {
  std::vector<Tensor> tensors;
  Optimizer optimizer;
  std::size_t server = 0;  // the index of this server among the job's servers
  std::size_t servers = 1;
};

/// Compares the declarations of two workers. Errors: kMismatch, naming the difference.
collective::Status compare(const Declaration& first, const Declaration& later);

class Model {
 public:
  /// `values` are those of this server's part, slice after slice. check() must have accepted the
  /// tensors and the optimizer of the declaration.
  Model(Declaration declaration, std::vector<float> values);

  const Declaration& declaration() const { return declaration_; }

  /// The number of tensors of which this server has a slice.
  std::uint64_t tensors_here() const;

  std::uint64_t bytes() const { return values_.size() * sizeof(float); }

  /// The number of applied pushes.
  std::uint64_t pushes() const { return pushes_.load(); }

  /// This server's slices of some tensors, in the order of the requested tensors and of their
  /// elements.
  class Selection;

  /// Errors: kBadArgument, as for Catalogue::look_up().
  collective::Result<Selection> select(std::span<const NamedTensor> tensors) const;

  /// Copies the values of slice `i` of the selection. `to` holds Selection::count(i) floats and may
  /// be unaligned.
  void read(const Selection& selection, std::size_t i, std::byte* to) const;

  /// Steps every slice of the selection. `gradient` has their gradients, one after the other, all
  /// finite.
  void apply(const Selection& selection, std::span<const float> gradient);

 private:
  struct Held {
    Held(const Slice& where, std::span<float> of, const Optimizer& by)
        : slice(where), values(of), optimizer(by, of.size()) {}

    Slice slice;
    std::span<float> values;
    SliceOptimizer optimizer;
    mutable std::mutex mutex = {};
  };

  Declaration declaration_;
  Catalogue catalogue_;
  std::vector<float> values_;
  std::vector<std::unique_ptr<Held>> held_;          // in the order of the line
  std::vector<std::vector<std::size_t>> of_tensor_;  // which of held_
  std::atomic<std::uint64_t> pushes_ = 0;
};

class Model::Selection {
 public:
  std::size_t size() const { return held_.size(); }
  std::uint64_t count(std::size_t i) const { return held_[i]->slice.count; }
  std::uint64_t elements() const { return elements_; }

  /// "element 7 of 'w'", for element `index` of the selection's gradient.
  std::string name_of(std::uint64_t index) const;

 private:
  friend class Model;
  const Model* model_ = nullptr;
  std::vector<Held*> held_;
  std::uint64_t elements_ = 0;
};

/// Calls `work(0)` .. `work(parts - 1)`, each once, on up to `threads` threads including this one.
/// `work` may run on several threads at once and must not throw.
void share(std::size_t parts, std::size_t threads, const std::function<void(std::size_t)>& work);

}  // namespace muster::parameter_server
