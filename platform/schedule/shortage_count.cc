#include "schedule/shortage_count.h"

#include <algorithm>

namespace muster::schedule {
namespace {

int open_members(const NodeClass& counted, const Eligible& eligible) {
  if (!eligible.kinds[static_cast<size_t>(counted.kind)]) return 0;
  if (eligible.shuts_none()) return static_cast<int>(counted.members.size());
  return static_cast<int>(std::count_if(counted.members.begin(), counted.members.end(),
                                        [&](NodeIndex node) { return !eligible.is_shut(node); }));
}

template <class Count>
void for_each_class(const RoomIndex& index, const Eligible& eligible, Count&& count) {
  for (const auto& [key, bucket] : index.buckets()) {
    for (const int number : bucket.classes) {
      const int nodes = open_members(index.at(number), eligible);
      if (nodes > 0) count(index.at(number), nodes);
    }
  }
}

int cordoned_nodes(const NodeTable& table, const Eligible& eligible) {
  int cordoned = 0;
  const auto counts = [&](NodeIndex node) {
    return table.spec(node).cordoned && eligible.has_labels(node) &&
           eligible.kinds[static_cast<size_t>(table.at(node).kind)];
  };
  if (eligible.labels.empty()) {
    for (size_t kind = 0; kind < eligible.kinds.size(); ++kind)
      if (eligible.kinds[kind]) cordoned += table.kinds()[kind].cordoned;
  } else {
    for (const auto& [name, node] : table.by_name()) cordoned += counts(node);
  }
  for (const NodeIndex node : eligible.excluded) cordoned -= counts(node);
  return cordoned;
}

}  // namespace

void count_free(const NodeBooks& books, const RoomIndex& index, const Eligible& eligible,
                Shortage& shortage) {
  shortage.cordoned = cordoned_nodes(books.table, eligible);
  for_each_class(index, eligible, [&](const NodeClass& counted, int nodes) {
    const NodeRoom& room = counted.room;
    shortage.nodes += nodes;
    shortage.free_gpu_milli += std::max<int64_t>(room.gpu_milli, 0) * nodes;
    shortage.largest_free_gpu_milli = std::max(shortage.largest_free_gpu_milli, room.gpu_milli);
    shortage.largest_free_cpu_milli = std::max(shortage.largest_free_cpu_milli, room.cpu_milli);
    shortage.largest_free_memory_bytes =
        std::max(shortage.largest_free_memory_bytes, room.memory_bytes);
  });
}

void count_lacks(const RoomIndex& index, const Eligible& eligible, const TaskNeeds& needs,
                 Shortage& shortage) {
  for_each_class(index, eligible, [&](const NodeClass& counted, int nodes) {
    const NodeRoom& room = counted.room;
    const std::optional<Need>& need = needs.by_kind[static_cast<size_t>(counted.kind)];
    if (!need || !gpus_fit(room, *need)) shortage.lack_gpu += nodes;
    if (needs.claim.cpu_milli > room.cpu_milli) shortage.lack_cpu += nodes;
    if (needs.claim.memory_bytes > room.memory_bytes) shortage.lack_memory += nodes;
    if (room.task_slots < 1) shortage.lack_task_slots += nodes;
  });
}

}  // namespace muster::schedule
