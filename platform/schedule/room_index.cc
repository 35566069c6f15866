#include "schedule/room_index.h"

#include <algorithm>
#include <tuple>

namespace muster::schedule {
namespace {

// So many classes without members are kept beyond as many as there are with some.
constexpr int kSpareClasses = 256;
// Beyond so many different claims, scores are made anew.
constexpr size_t kMostScoredClaims = 256;

void mix(uint64_t& hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  hash ^= hash >> 29U;
}

uint64_t hash_of(int kind, const NodeRoom& room) {
  uint64_t hash = static_cast<uint64_t>(kind) + 1;
  mix(hash, static_cast<uint64_t>(room.cpu_milli));
  mix(hash, static_cast<uint64_t>(room.memory_bytes));
  mix(hash, static_cast<uint64_t>(room.task_slots));
  for (const int device : room.devices) mix(hash, static_cast<uint64_t>(device));
  return hash;
}

void widen(RoomBounds& bounds, const NodeRoom& room) {
  bounds.cpu_milli = std::max(bounds.cpu_milli, room.cpu_milli);
  bounds.memory_bytes = std::max(bounds.memory_bytes, room.memory_bytes);
  int whole = 0;
  for (const int device : room.devices) {
    if (device == kWholeGpu)
      ++whole;
    else
      bounds.largest_partial = std::max(bounds.largest_partial, device);
    bounds.largest_device = std::max(bounds.largest_device, device);
  }
  bounds.whole_gpus = std::max(bounds.whole_gpus, whole);
}

}  // namespace

void RoomIndex::touch(NodeIndex node) {
  if (stale_) return;
  if (static_cast<size_t>(node) >= is_touched_.size()) {
    stale_ = true;
    return;
  }
  if (is_touched_[static_cast<size_t>(node)]) return;
  is_touched_[static_cast<size_t>(node)] = true;
  touched_.push_back(node);
}

void RoomIndex::settle(const NodeTable& table) {
  if (stale_) return rebuild(table);
  for (const NodeIndex node : touched_) {
    is_touched_[static_cast<size_t>(node)] = false;
    update(table, node);
  }
  touched_.clear();
  if (empty_ > kSpareClasses + static_cast<int>(classes_.size() - free_numbers_.size()) / 2)
    drop_empty_classes();
}

void RoomIndex::rebuild(const NodeTable& table) {
  std::vector<NodeIndex> nodes;
  nodes.reserve(table.by_name().size());
  for (const auto& [name, index] : table.by_name()) nodes.push_back(index);
  restrict_to(table, nodes);
}

void RoomIndex::restrict_to(const NodeTable& table, const std::vector<NodeIndex>& nodes) {
  stale_ = false;
  touched_.clear();
  is_touched_.assign(static_cast<size_t>(table.slots()), false);
  class_of_.assign(static_cast<size_t>(table.slots()), -1);
  classes_.clear();
  by_state_.clear();
  free_numbers_.clear();
  empty_ = 0;
  buckets_.clear();
  for (const NodeIndex node : nodes) update(table, node);
}

void RoomIndex::update(const NodeTable& table, NodeIndex node) {
  const NodeEntry& entry = table.at(node);
  if (entry.spec == nullptr || entry.spec->cordoned) {
    leave(table, node);
    return;
  }
  room_for(entry, room_, scratch_);
  std::sort(scratch_.devices.begin(), scratch_.devices.end(), std::greater<>());
  const int number = class_for(entry.kind, scratch_);
  if (number == class_of_[static_cast<size_t>(node)]) return;
  leave(table, node);
  join(table, node, number);
}

int RoomIndex::class_for(int kind, const NodeRoom& room) {
  const uint64_t hash = hash_of(kind, room);
  const auto [begin, end] = by_state_.equal_range(hash);
  for (auto found = begin; found != end; ++found)
    if (at(found->second).kind == kind && at(found->second).room == room) return found->second;
  int number = static_cast<int>(classes_.size());
  if (free_numbers_.empty()) {
    classes_.emplace_back();
  } else {
    number = free_numbers_.back();
    free_numbers_.pop_back();
  }
  at(number) = {.kind = kind, .room = room};
  by_state_.emplace(hash, number);
  ++empty_;
  return number;
}

void RoomIndex::join(const NodeTable& table, NodeIndex node, int number) {
  NodeClass& joined = at(number);
  if (joined.members.empty()) {
    --empty_;
    RoomBucket& bucket = buckets_[{!joined.room.devices.empty(), joined.room.usable_gpu_milli()}];
    bucket.classes.insert(place_in(bucket, number), number);
    widen(bucket.bounds, joined.room);
  }
  const auto later = std::lower_bound(
      joined.members.begin(), joined.members.end(), node,
      [&](NodeIndex left, NodeIndex right) { return table.rank(left) < table.rank(right); });
  joined.members.insert(later, node);
  class_of_[static_cast<size_t>(node)] = number;
}

void RoomIndex::leave(const NodeTable& table, NodeIndex node) {
  const int number = class_of_[static_cast<size_t>(node)];
  if (number < 0) return;
  class_of_[static_cast<size_t>(node)] = -1;
  NodeClass& left = at(number);
  const auto own = std::lower_bound(
      left.members.begin(), left.members.end(), node,
      [&](NodeIndex one, NodeIndex other) { return table.rank(one) < table.rank(other); });
  left.members.erase(own);
  if (!left.members.empty()) return;
  ++empty_;
  const auto bucket = buckets_.find({!left.room.devices.empty(), left.room.usable_gpu_milli()});
  bucket->second.classes.erase(place_in(bucket->second, number));
  if (bucket->second.classes.empty()) buckets_.erase(bucket);
}

std::vector<int>::iterator RoomIndex::place_in(RoomBucket& bucket, int number) {
  const auto key = [&](int one) {
    return std::tuple(at(one).room.cpu_milli, at(one).room.memory_bytes, one);
  };
  return std::lower_bound(bucket.classes.begin(), bucket.classes.end(), number,
                          [&](int left, int right) { return key(left) < key(right); });
}

std::vector<int>::const_iterator RoomIndex::first_with(const RoomBucket& bucket,
                                                       int64_t cpu_milli) const {
  return std::lower_bound(
      bucket.classes.begin(), bucket.classes.end(), cpu_milli,
      [&](int number, int64_t wanted) { return at(number).room.cpu_milli < wanted; });
}

void RoomIndex::drop_empty_classes() {
  for (auto entry = by_state_.begin(); entry != by_state_.end();) {
    NodeClass& dropped = at(entry->second);
    if (!dropped.members.empty()) {
      ++entry;
      continue;
    }
    dropped = NodeClass{};
    free_numbers_.push_back(entry->second);
    entry = by_state_.erase(entry);
  }
  empty_ = 0;
}

void RoomIndex::tighten(RoomBucket& bucket) const {
  bucket.bounds = RoomBounds{};
  for (const int number : bucket.classes) widen(bucket.bounds, at(number).room);
}

size_t RoomIndex::number_of(const Claim& claim) {
  const auto known = std::find(scored_claims_.begin(), scored_claims_.end(), claim);
  if (known != scored_claims_.end()) return static_cast<size_t>(known - scored_claims_.begin());
  if (scored_claims_.size() >= kMostScoredClaims) forget_scores();
  scored_claims_.push_back(claim);
  return scored_claims_.size() - 1;
}

void RoomIndex::forget_scores() {
  scored_claims_.clear();
  for (NodeClass& forgotten : classes_) {
    forgotten.waste.reset();
    forgotten.scores.clear();
  }
}

}  // namespace muster::schedule
