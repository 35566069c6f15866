#include "schedule/shape.h"

namespace muster::schedule {

namespace {

class Writer {
 public:
  void add(int64_t value) { text_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add(const std::string& value) {
    add(static_cast<int64_t>(value.size()));
    text_ += value;
  }
  void add(const std::vector<std::string>& values) {
    add(static_cast<int64_t>(values.size()));
    for (const std::string& value : values) add(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string text_;
};

/// Equal for equal shapes, and for no others.
std::string signature(const Gang& gang) {
  Writer out;
  out.add(static_cast<int64_t>(gang.groups.size()));
  for (const TaskGroup& group : gang.groups) {
    const Claim& claim = group.claim;
    for (const int64_t value :
         {int64_t{claim.gpus}, int64_t{claim.gpu_share_milli}, claim.gpu_memory_bytes,
          claim.cpu_milli, claim.memory_bytes, int64_t{group.count}, int64_t{group.minimum},
          int64_t{group.launcher}}) {
      out.add(value);
    }
  }
  out.add(gang.pools);
  out.add(gang.gpu_models);
  out.add(gang.excluded_nodes);
  out.add(static_cast<int64_t>(gang.node_labels.size()));
  for (const auto& [label, value] : gang.node_labels) {
    out.add(label);
    out.add(value);
  }
  out.add(gang.required_topology);
  out.add(gang.preferred_topology);
  out.add(gang.packing ? static_cast<int64_t>(*gang.packing) : -1);
  return out.take();
}

}  // namespace

uint64_t ShapeTable::take(const Gang& gang) {
  const auto [entry, is_new] = shapes_.try_emplace(signature(gang));
  if (is_new) {
    entry->second.number = next_++;
    names_.emplace(entry->second.number, entry->first);
  }
  ++entry->second.gangs;
  return entry->second.number;
}

void ShapeTable::drop(uint64_t shape) {
  const auto name = names_.find(shape);
  if (name == names_.end()) return;
  const auto entry = shapes_.find(name->second);
  if (--entry->second.gangs > 0) return;
  shapes_.erase(entry);
  names_.erase(name);
}

}  // namespace muster::schedule
