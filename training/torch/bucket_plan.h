// Determines which gradients share a bucket. Gradients become ready one after the other during the
// backward pass. Gradients that become ready at about the same time share a bucket, which is
// reduced as one flat piece as soon as its last gradient is ready.
//
// Pure.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "muster/collective/session.h"
#include "muster/collective/types.h"

namespace muster::training {

/// The properties of a gradient that a plan depends on.
struct GradientShape {
  std::uint64_t elements;
  collective::DataType type;
};

/// The gradients of a bucket, all of one type, as indices in the planned list, in the order in
/// which they are stored in the bucket.
using BucketPlan = std::vector<std::uint32_t>;

/// Fills buckets in the given order until one would exceed `bucket_bytes`; a larger gradient has a
/// bucket of its own. Buckets are in the order of their first gradients.
///
/// `order` has every index of `gradients` once.
std::vector<BucketPlan> plan_buckets(const std::vector<GradientShape>& gradients,
                                     const std::vector<std::uint32_t>& order,
                                     std::uint64_t bucket_bytes);

/// Completes `ready`: indices that are missing in it follow in the order of `before`, which has
/// every index once.
std::vector<std::uint32_t> completed_order(const std::vector<std::uint32_t>& ready,
                                           const std::vector<std::uint32_t>& before);

// Memory for flat gradients: from the session's shared arena, in which ranks of one host reduce
// gradients without copying them, or ordinary memory of this process if the arena is full.

class FlatMemory {
 public:
  /// `bytes` bytes of zeros, aligned to 64. The session outlives it.
  FlatMemory(collective::Session& session, std::uint64_t bytes);
  ~FlatMemory();
  FlatMemory(const FlatMemory&) = delete;
  FlatMemory& operator=(const FlatMemory&) = delete;

  void* data() const { return data_; }

  /// Abandons the memory if operations on it are pending: the session keeps its arena until it
  /// ends, and memory of the process stays allocated.
  void abandon() { abandoned_ = true; }

 private:
  collective::Session& session_;
  void* data_;
  bool shared_;
  bool abandoned_ = false;
};

}  // namespace muster::training
