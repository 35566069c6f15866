#include "bucket_plan.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>

namespace muster::training {

std::vector<BucketPlan> plan_buckets(const std::vector<GradientShape>& gradients,
                                     const std::vector<std::uint32_t>& order,
                                     std::uint64_t bucket_bytes) {
  struct Open {
    std::size_t bucket;
    std::uint64_t bytes;
  };
  std::vector<BucketPlan> plan;
  std::map<collective::DataType, Open> open;  // the bucket that is being filled, of each type
  for (const std::uint32_t place : order) {
    const GradientShape& gradient = gradients[place];
    const std::uint64_t bytes = gradient.elements * collective::size_of(gradient.type);
    auto found = open.find(gradient.type);
    if (found == open.end() || found->second.bytes + bytes > bucket_bytes) {
      found = open.insert_or_assign(gradient.type, Open{plan.size(), 0}).first;
      plan.emplace_back();
    }
    plan[found->second.bucket].push_back(place);
    found->second.bytes += bytes;
  }
  return plan;
}

std::vector<std::uint32_t> completed_order(const std::vector<std::uint32_t>& ready,
                                           const std::vector<std::uint32_t>& before) {
  std::vector<std::uint32_t> order;
  std::vector<bool> placed(before.size(), false);
  for (const std::vector<std::uint32_t>* const source : {&ready, &before}) {
    for (const std::uint32_t place : *source) {
      if (place >= placed.size() || placed[place]) continue;
      placed[place] = true;
      order.push_back(place);
    }
  }
  return order;
}

namespace {

constexpr std::uint64_t kAlignment = 64;

}  // namespace

FlatMemory::FlatMemory(collective::Session& session, std::uint64_t bytes)
    : session_(session), data_(session.allocate_shared(bytes)), shared_(data_ != nullptr) {
  if (!shared_) {
    const std::uint64_t whole = std::max(bytes, kAlignment) + kAlignment - 1;
    data_ = std::aligned_alloc(kAlignment, whole / kAlignment * kAlignment);
    if (data_ == nullptr) throw std::bad_alloc();
  }
  std::memset(data_, 0, bytes);
}

FlatMemory::~FlatMemory() {
  if (abandoned_) return;
  if (shared_) {
    session_.free_shared(data_);
  } else {
    std::free(data_);
  }
}

}  // namespace muster::training
