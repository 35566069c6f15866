// One server's part of a model: its slices, each with its values, its optimizer and its lock. Knows
// nothing of networks.
//
// Thread-safety: all functions may be called from any thread. A slice is read and stepped under its
// own lock, so two pushes meet only where both have the same slice at the same time.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/optimizer.h"
#include "parameter_server/catalogue.h"
#include "parameter_server/layout.h"
#include "parameter_server/slice_optimizer.h"

namespace muster::parameter_server {

/// What all workers have to say alike.
struct Declaration {
  std::vector<Tensor> tensors;
  Optimizer optimizer;
  std::size_t server = 0;  // the place of this one among the job's
  std::size_t servers = 1;
};

/// Nothing where `later` says the same as `first`; or else where they differ, naming what each
/// says. Errors: kMismatch.
collective::Status compare(const Declaration& first, const Declaration& later);

class Model {
 public:
  /// `values`: of this server's part, slice after slice. A declaration that check() of its tensors
  /// and of its optimizer has passed.
  Model(Declaration declaration, std::vector<float> values);

  const Declaration& declaration() const { return declaration_; }

  /// Tensors that this server has a slice of.
  std::uint64_t tensors_here() const;

  std::uint64_t bytes() const { return values_.size() * sizeof(float); }

  /// Pushes that have been applied.
  std::uint64_t pushes() const { return pushes_.load(); }

  /// Some tensors' slices here, in the order of the tensors asked for and of their elements.
  class Selection;

  /// Errors: kBadArgument, as of Catalogue::look_up().
  collective::Result<Selection> select(std::span<const NamedTensor> tensors) const;

  /// Copies the values of the selection's slice `i` as bytes; `to` has room for Selection::count(i)
  /// floats, and need not be aligned for them.
  void read(const Selection& selection, std::size_t i, std::byte* to) const;

  /// One step of every slice of the selection. `gradient`: theirs, one after the other, all finite.
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

  /// "element 7 of 'w'", for the element of a gradient that lies at `index` of the selection's.
  std::string name_of(std::uint64_t index) const;

 private:
  friend class Model;
  const Model* model_ = nullptr;
  std::vector<Held*> held_;
  std::uint64_t elements_ = 0;
};

}  // namespace muster::parameter_server
