// Which gradients travel together. Gradients become ready one after the other during the backward
// pass; those that are ready at about the same time share a bucket, which is reduced as one flat
// piece as soon as its last gradient is there.
//
// Pure.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace muster::training
