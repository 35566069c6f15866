// Which gradients travel together. Gradients become ready one after the other during the backward
// pass; those that are ready at about the same time share a bucket, which is reduced as one flat
// piece as soon as its last gradient is there.
//
// Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/collective/session.h"
#include "muster/collective/types.h"

namespace muster::training {

/// What a plan has to know of a gradient.
struct GradientShape {
  std::uint64_t elements;
  collective::DataType type;
};

/// The gradients of a bucket, all of one type, by their place in the list that was planned for, in
/// the order in which they lie in the bucket.
using BucketPlan = std::vector<std::uint32_t>;

/// Fills buckets in the order given until one would exceed `bucket_bytes`; a larger gradient has
/// one for itself. The bucket whose first gradient comes first is the first.
///
/// `order` has every place in `gradients` once.
std::vector<BucketPlan> plan_buckets(const std::vector<GradientShape>& gradients,
                                     const std::vector<std::uint32_t>& order,
                                     std::uint64_t bucket_bytes);

/// `ready` completed: what never became ready goes last, as it stood in `before`, which has every
/// place once.
std::vector<std::uint32_t> completed_order(const std::vector<std::uint32_t>& ready,
                                           const std::vector<std::uint32_t>& before);

// Memory for flat gradients: of the session's shared arena, where ranks of one host reduce each
// other's gradients without copying them, and of this process where the arena has no more.

class FlatMemory {
 public:
  /// `bytes` bytes of zeros, aligned to 64. The session outlives it.
  FlatMemory(collective::Session& session, std::uint64_t bytes);
  ~FlatMemory();
  FlatMemory(const FlatMemory&) = delete;
  FlatMemory& operator=(const FlatMemory&) = delete;

  void* data() const { return data_; }

  /// Gives the memory up while operations on it are under way: the session keeps its arena until it
  /// ends, and memory of the process stays allocated.
  void abandon() { abandoned_ = true; }

 private:
  collective::Session& session_;
  void* data_;
  bool shared_;
  bool abandoned_ = false;
};

}  // namespace muster::training
