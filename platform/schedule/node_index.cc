#include "schedule/node_index.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <tuple>

namespace muster::schedule {
namespace {

// A label with more values than this is looked up node by node.
constexpr size_t kMostValuesOfAKind = 64;

Amounts capacity(const Node& node) {
  return {int64_t{device_count(node)} * kWholeGpu, node.cpu_milli, node.memory_bytes};
}

bool has_known_gpus(const Node& node) {
  return node.gpus > 0 && node.gpu_memory_bytes > 0;
}

}  // namespace

bool has_unknown_size(const Node& node) {
  return node.silent && node.gpus == 0 && node.cpu_milli == 0 && node.memory_bytes == 0;
}

bool NodeTable::present(NodeIndex node) const {
  return node >= 0 && node < slots() && at(node).spec != nullptr;
}

std::optional<NodeIndex> NodeTable::find(const std::string& name) const {
  const auto found = names_->by_name.find(name);
  if (found == names_->by_name.end()) return std::nullopt;
  return found->second;
}

NodeNames& NodeTable::names_to_change() {
  if (names_.use_count() > 1) names_ = std::make_shared<NodeNames>(*names_);
  return *names_;
}

void NodeTable::settle_ranks() {
  if (names_->ranked) return;
  NodeNames& names = names_to_change();
  names.rank.assign(entries_.size(), -1);
  int rank = 0;
  for (const auto& [name, index] : names.by_name) names.rank[static_cast<size_t>(index)] = rank++;
  names.ranked = true;
}

NodeIndex NodeTable::fresh_index() {
  if (unused_.empty()) {
    entries_.emplace_back();
    return slots() - 1;
  }
  const NodeIndex index = unused_.back();
  unused_.pop_back();
  return index;
}

NodeIndex NodeTable::set(const Node& node) {
  const std::optional<NodeIndex> known = find(node.name);
  const NodeIndex index = known ? *known : fresh_index();
  NodeEntry& entry = at(index);
  if (known) {
    leave_kind(entry);
    count_out(*entry.spec);
  } else {
    NodeNames& names = names_to_change();
    names.by_name.emplace(node.name, index);
    names.ranked = false;
  }
  entry.spec = std::make_shared<const Node>(node);
  count_in(node);
  enter_kind(entry);
  if (node.silent) {
    silent_.insert(index);
  } else {
    silent_.erase(index);
  }
  return index;
}

void NodeTable::remove(NodeIndex node) {
  NodeEntry& entry = at(node);
  leave_kind(entry);
  count_out(*entry.spec);
  silent_.erase(node);
  NodeNames& names = names_to_change();
  names.by_name.erase(entry.spec->name);
  names.ranked = false;
  entry = NodeEntry{};
  unused_.push_back(node);
}

void NodeTable::count_in(const Node& node) {
  if (!node.cordoned) total_ += capacity(node);
  if (has_known_gpus(node)) ++gpu_memories_[node.gpu_memory_bytes];
}

void NodeTable::count_out(const Node& node) {
  if (!node.cordoned) total_ -= capacity(node);
  if (!has_known_gpus(node)) return;
  const auto found = gpu_memories_.find(node.gpu_memory_bytes);
  if (--found->second == 0) gpu_memories_.erase(found);
}

void NodeTable::enter_kind(NodeEntry& entry) {
  const Node& node = *entry.spec;
  NodeKind kind{.gpus = device_count(node),
                .gpu_model = node.gpu_model,
                .gpu_memory_bytes = node.gpu_memory_bytes,
                .labels = {},
                .taints = node.taints};
  for (const auto& [label, distinguishes] : asked_labels_)
    if (const auto found = node.labels.find(label); distinguishes && found != node.labels.end())
      kind.labels.insert(*found);
  const auto [known, is_new] = kind_numbers_.try_emplace(kind, static_cast<int>(kinds_.size()));
  if (is_new) kinds_.push_back({.kind = std::move(kind)});
  entry.kind = known->second;
  KindEntry& counted = kinds_[static_cast<size_t>(entry.kind)];
  ++(node.cordoned ? counted.cordoned : counted.open);
}

void NodeTable::leave_kind(NodeEntry& entry) {
  KindEntry& counted = kinds_[static_cast<size_t>(entry.kind)];
  --(entry.spec->cordoned ? counted.cordoned : counted.open);
}

bool NodeTable::has_few_values(const std::string& label) const {
  std::set<std::string_view> values;
  for (const NodeEntry& entry : entries_) {
    if (entry.spec == nullptr) continue;
    const auto found = entry.spec->labels.find(label);
    if (found != entry.spec->labels.end()) values.insert(found->second);
    if (values.size() > kMostValuesOfAKind) return false;
  }
  return true;
}

bool NodeTable::distinguish_by(const std::map<std::string, std::string>& labels) {
  bool changed = false;
  for (const auto& [label, value] : labels) {
    const auto [asked, is_new] = asked_labels_.try_emplace(label, false);
    if (is_new) asked->second = has_few_values(label);
    changed |= is_new && asked->second;
  }
  if (!changed) return false;
  kinds_.clear();
  kind_numbers_.clear();
  for (NodeEntry& entry : entries_)
    if (entry.spec != nullptr) enter_kind(entry);
  return true;
}

Amounts NodeTable::charge(const Claim& claim) const {
  const std::optional<Need> need = need_on(claim, smallest_gpu_memory());
  const int64_t gpu_milli = need ? need->gpu_milli() : kWholeGpu;
  return {gpu_milli, claim.cpu_milli, claim.memory_bytes};
}

bool NodeTable::operator==(const NodeTable& other) const {
  const auto same = [&](const auto& named) {
    const std::optional<NodeIndex> index = other.find(named.first);
    if (!index) return false;
    const NodeEntry& one = at(named.second);
    const NodeEntry& two = other.at(*index);
    return *one.spec == *two.spec && one.now == two.now && one.later == two.later &&
           one.kept == two.kept;
  };
  return by_name().size() == other.by_name().size() &&
         std::all_of(by_name().begin(), by_name().end(), same);
}

void room_for(const NodeEntry& entry, FreeWhen room, NodeRoom& out) {
  if (room == FreeWhen::kNow)
    free_room(*entry.spec, entry.now, entry.later, entry.kept, out);
  else
    free_room(*entry.spec, entry.later, entry.kept, out);
}

namespace {

// The number of empty classes that are kept in addition to as many as there are non-empty classes.
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
      [&](int number, int64_t needed) { return at(number).room.cpu_milli < needed; });
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

std::vector<std::string> path_of(const Node& node, const std::vector<std::string>& levels) {
  std::vector<std::string> path;
  for (const std::string& level : levels) {
    const auto found = node.topology.find(level);
    if (found == node.topology.end()) return {};
    path.push_back(found->second);
  }
  return path;
}

const std::vector<Domain>& TopologyMemory::domains(const NodeTable& table,
                                                   const std::vector<std::string>& levels) {
  const auto known = known_.find(levels);
  if (known != known_.end()) return known->second;
  std::map<std::vector<std::string>, std::vector<NodeIndex>> by_path;
  for (const auto& [name, index] : table.by_name()) {
    std::vector<std::string> path = path_of(table.spec(index), levels);
    if (!path.empty()) by_path[std::move(path)].push_back(index);
  }
  std::vector<Domain>& domains = known_[levels];
  for (auto& [path, nodes] : by_path) domains.push_back({path, std::move(nodes)});
  return domains;
}

void NodeBooks::take(const Booking& booking, FreeWhen room) {
  NodeEntry& entry = table.at(booking.node);
  if (room == FreeWhen::kNow) entry.now.add(booking);
  entry.later.add(booking);
  if (!booking.yields) entry.kept.add(booking);
  touch(booking.node);
}

void NodeBooks::give(const Booking& booking, FreeWhen room) {
  NodeEntry& entry = table.at(booking.node);
  if (room == FreeWhen::kNow) entry.now.remove(booking);
  entry.later.remove(booking);
  if (!booking.yields) entry.kept.remove(booking);
  touch(booking.node);
}

void NodeBooks::take_now_only(const Booking& booking) {
  table.at(booking.node).now.add(booking);
  now.touch(booking.node);
}

void NodeBooks::give_now_only(const Booking& booking) {
  table.at(booking.node).now.remove(booking);
  now.touch(booking.node);
}

void NodeBooks::take_kept_only(const Booking& booking) {
  table.at(booking.node).kept.add(booking);
  touch(booking.node);
}

void NodeBooks::give_kept_only(const Booking& booking) {
  table.at(booking.node).kept.remove(booking);
  touch(booking.node);
}

NodeIndex NodeBooks::set(const Node& node) {
  const auto known = table.find(node.name);
  const NodeIndex index = table.set(node);
  topology.forget();
  if (known) {
    touch(index);
  } else {  // the order of names has changed
    now.touch_all();
    later.touch_all();
  }
  return index;
}

void NodeBooks::remove(NodeIndex node) {
  table.remove(node);
  topology.forget();
  now.touch_all();
  later.touch_all();
}

void NodeBooks::settle(FreeWhen room) {
  table.settle_ranks();
  index(room).settle(table);
}

}  // namespace muster::schedule
