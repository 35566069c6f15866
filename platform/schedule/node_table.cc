#include "schedule/node_table.h"

#include <algorithm>
#include <set>
#include <string_view>

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
  return index;
}

void NodeTable::remove(NodeIndex node) {
  NodeEntry& entry = at(node);
  leave_kind(entry);
  count_out(*entry.spec);
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
                .gpu_memory_bytes = node.gpu_memory_bytes};
  for (const auto& [label, tells_apart] : asked_labels_)
    if (const auto found = node.labels.find(label); tells_apart && found != node.labels.end())
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

bool NodeTable::tell_apart_by(const std::map<std::string, std::string>& labels) {
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
  const int64_t smallest = gpu_memories_.empty() ? 0 : gpu_memories_.begin()->first;
  const std::optional<Need> need = need_on(claim, smallest);
  const int64_t gpu_milli = need ? need->gpu_milli() : kWholeGpu;
  return {gpu_milli, claim.cpu_milli, claim.memory_bytes};
}

bool NodeTable::operator==(const NodeTable& other) const {
  const auto same = [&](const auto& named) {
    const std::optional<NodeIndex> index = other.find(named.first);
    if (!index) return false;
    const NodeEntry& one = at(named.second);
    const NodeEntry& two = other.at(*index);
    return *one.spec == *two.spec && one.now == two.now && one.later == two.later;
  };
  return by_name().size() == other.by_name().size() &&
         std::all_of(by_name().begin(), by_name().end(), same);
}

void room_for(const NodeEntry& entry, Room room, NodeRoom& out) {
  if (room == Room::kNow)
    free_room(*entry.spec, entry.now, entry.later, out);
  else
    free_room(*entry.spec, entry.later, out);
}

}  // namespace muster::schedule
