#include "schedule/placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace muster::schedule {
namespace {

struct Attempt {
  std::vector<Booking> bookings;  ///< taken in the books
  int lacking_group = -1;         ///< whose next task found no node; -1: all have one
};

class GangPlacement {
 public:
  GangPlacement(NodeBooks& books, const Gang& gang, const std::vector<int>& counts,
                const PlaceOptions& options, const std::vector<Booking>& beside)
      : books_(books),
        gang_(gang),
        counts_(counts),
        room_(options.room),
        packing_(gang.packing.value_or(options.packing)),
        with_amounts_(options.with_amounts),
        beside_(beside) {
    if (!gang.node_labels.empty() && books_.table.tell_apart_by(gang.node_labels)) {
      books_.now.touch_all();
      books_.later.touch_all();
    }
    books_.settle(room_);
    eligible_ = eligible_for(books_.table, gang, options.closed);
    for (const TaskGroup& group : gang.groups)
      needs_.push_back(needs_for(books_.table, eligible_, group.claim));
  }

  base::Result<std::vector<Booking>, Shortage> run() {
    if (tasks() == 0) return std::vector<Booking>{};
    if (gang_.required_topology.empty() && gang_.preferred_topology.empty()) return anywhere();
    if (!gang_.preferred_topology.empty()) {
      std::vector<std::string> levels = required_levels();
      levels.push_back(gang_.preferred_topology);
      if (within_one_domain(levels)) return std::move(best_.bookings);
    }
    if (gang_.required_topology.empty()) return anywhere();
    best_ = {};
    if (within_one_domain(required_levels())) return std::move(best_.bookings);
    if (!with_amounts_) return Shortage{};
    return topology_shortage();
  }

 private:
  int tasks() const { return std::accumulate(counts_.begin(), counts_.end(), 0); }

  std::vector<std::string> required_levels() const {
    if (gang_.required_topology.empty()) return {};
    return {gang_.required_topology};
  }

  /// Places each task on the best node of `index`, given the placements of the tasks before it.
  Attempt place_all(RoomIndex& index) {
    Attempt attempt;
    for (size_t group = 0; group < counts_.size(); ++group) {
      for (int task = 0; task < counts_[group]; ++task) {
        const std::optional<Booking> booking = choose_node(
            books_.table, index, books_.fragmentation, eligible_, needs_[group], packing_, room_);
        if (!booking) {
          attempt.lacking_group = static_cast<int>(group);
          return attempt;
        }
        books_.take(*booking, room_);
        index.touch(booking->node);
        index.settle(books_.table);
        attempt.bookings.push_back(*booking);
      }
    }
    return attempt;
  }

  void undo(const Attempt& attempt) {
    for (const Booking& booking : attempt.bookings) books_.give(booking, room_);
  }

  base::Result<std::vector<Booking>, Shortage> anywhere() {
    RoomIndex& index = books_.index(room_);
    index.settle(books_.table);
    Attempt attempt = place_all(index);
    if (attempt.lacking_group < 0) return std::move(attempt.bookings);
    if (!with_amounts_) {
      undo(attempt);
      return Shortage{};
    }
    return shortage_after(attempt);
  }

  /// Whether one domain of these levels holds all. Else best_ is the attempt that came farthest,
  /// and nothing is booked.
  bool within_one_domain(const std::vector<std::string>& levels) {
    for (const Domain* domain : fullest_first(levels)) {
      RoomIndex index(room_);
      index.restrict_to(books_.table, domain->nodes);
      Attempt attempt = place_all(index);
      const bool complete = attempt.lacking_group < 0;
      if (!complete) undo(attempt);
      if (complete || best_.lacking_group < 0 || attempt.bookings.size() > best_.bookings.size())
        best_ = std::move(attempt);
      if (complete) return true;
    }
    return false;
  }

  /// The domains that the gang's other bookings allow and that have enough GPUs and CPUs in total.
  std::vector<const Domain*> fullest_first(const std::vector<std::string>& levels) {
    books_.index(room_).settle(books_.table);
    const Amounts least = least_in_all();
    std::vector<std::pair<Amounts, const Domain*>> domains;
    for (const Domain& domain : books_.topology.domains(books_.table, levels)) {
      if (!is_beside(domain, levels)) continue;
      const Amounts free = free_in(domain);
      if (least.within(free)) domains.emplace_back(free, &domain);
    }
    std::stable_sort(domains.begin(), domains.end(), [](const auto& left, const auto& right) {
      return std::pair(left.first.gpu_milli, left.first.cpu_milli) <
             std::pair(right.first.gpu_milli, right.first.cpu_milli);
    });
    std::vector<const Domain*> sorted;
    for (const auto& [free, domain] : domains) sorted.push_back(domain);
    return sorted;
  }

  Amounts least_in_all() const {
    Amounts least;
    for (size_t group = 0; group < counts_.size(); ++group) {
      const Need& need = needs_[group].least;
      least += Amounts{need.gpu_milli(), need.cpu_milli, need.memory_bytes} * counts_[group];
    }
    return least;
  }

  Amounts free_in(const Domain& domain) const {
    Amounts free;
    for (const NodeIndex node : domain.nodes) {
      const RoomIndex& index = books_.index(room_);
      const int number = index.class_of(node);
      if (number < 0) continue;
      const NodeClass& equal = index.at(number);
      if (!eligible_.kinds[static_cast<size_t>(equal.kind)] || eligible_.is_shut(node)) continue;
      for (const Resource resource : kResources) {
        const int64_t on_node = resource == Resource::kGpu   ? equal.room.gpu_milli
                                : resource == Resource::kCpu ? equal.room.cpu_milli
                                                             : equal.room.memory_bytes;
        if (on_node > 0) free[resource] = std::min(free[resource] + on_node, 2 * kUnlimited);
      }
    }
    return free;
  }

  bool is_beside(const Domain& domain, const std::vector<std::string>& levels) const {
    return std::all_of(beside_.begin(), beside_.end(), [&](const Booking& booking) {
      return books_.table.present(booking.node) &&
             path_of(books_.table.spec(booking.node), levels) == domain.path;
    });
  }

  /// No domain holds the gang: because of the level, or would it find no room anywhere?
  Shortage topology_shortage() {
    RoomIndex& index = books_.index(room_);
    index.settle(books_.table);
    const Attempt attempt = place_all(index);
    if (attempt.lacking_group >= 0) return shortage_after(attempt);
    undo(attempt);
    for (const Booking& booking : best_.bookings) books_.take(booking, room_);
    best_.lacking_group = std::max(best_.lacking_group, 0);
    Shortage shortage = shortage_after(best_);
    shortage.topology = gang_.required_topology;
    return shortage;
  }

  /// Also undoes the bookings.
  Shortage shortage_after(const Attempt& attempt) {
    const TaskNeeds& needs = needs_[static_cast<size_t>(attempt.lacking_group)];
    Shortage shortage{.tasks = tasks(),
                      .placed = static_cast<int>(attempt.bookings.size()),
                      .claim = needs.claim};
    RoomIndex& index = books_.index(room_);
    index.settle(books_.table);
    count_lacks(index, eligible_, needs, shortage);
    undo(attempt);
    index.settle(books_.table);
    count_free(books_, index, eligible_, shortage);
    return shortage;
  }

  NodeBooks& books_;
  const Gang& gang_;
  const std::vector<int>& counts_;
  FreeWhen room_;
  Packing packing_;
  bool with_amounts_;
  const std::vector<Booking>& beside_;
  Eligible eligible_;
  std::vector<TaskNeeds> needs_;
  Attempt best_;
};

}  // namespace

base::Result<std::vector<Booking>, Shortage> place_gang(NodeBooks& books, const Gang& gang,
                                                        const std::vector<int>& counts,
                                                        const PlaceOptions& options,
                                                        const std::vector<Booking>& beside) {
  return GangPlacement(books, gang, counts, options, beside).run();
}

// Equal tasks are placed until no node has room for one more, whatever the order of the nodes. So
// the gang fits if the nodes hold as many more tasks as the refusal lacked. To count them changes no
// index, whereas an attempt changes it for each reserved node, twice.
std::optional<bool> place_without(NodeBooks& books, const std::vector<Booking>& reserved,
                                  const Gang& gang, const std::vector<int>& counts,
                                  const Shortage& shortage) {
  const auto asks = [](int count) { return count > 0; };
  const auto group = std::find_if(counts.begin(), counts.end(), asks);
  const bool are_equal = std::count_if(counts.begin(), counts.end(), asks) == 1;
  if (!are_equal || !gang.required_topology.empty()) return std::nullopt;
  const Eligible eligible = eligible_for(books.table, gang, nullptr);
  const TaskNeeds needs = needs_for(books.table, eligible,
                                    gang.groups[static_cast<size_t>(group - counts.begin())].claim);
  NodeRoom room;
  const auto hold = [&](const NodeEntry& entry, NodeIndex node) {
    const std::optional<Need>& need = needs.by_kind[static_cast<size_t>(entry.kind)];
    if (!need || entry.spec->cordoned || eligible.is_shut(node)) return 0;
    room_for(entry, FreeWhen::kNow, room);
    return fitting_tasks(room, *need, *group);
  };
  int placed = shortage.placed;
  auto lifted = reserved.begin();
  for (; lifted != reserved.end() && placed < *group; ++lifted) {
    NodeEntry& entry = books.table.at(lifted->node);
    placed -= hold(entry, lifted->node);
    entry.later.remove(*lifted);
    placed += hold(entry, lifted->node);
  }
  while (lifted != reserved.begin()) {
    --lifted;
    books.table.at(lifted->node).later.add(*lifted);
  }
  return placed >= *group;
}

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

/// Moves the silent nodes from the number of cordoned nodes to their own list.
void tell_silent_apart(const NodeTable& table, const Eligible& eligible, Shortage& shortage) {
  for (const NodeIndex node : table.silent()) {
    if (std::binary_search(eligible.excluded.begin(), eligible.excluded.end(), node)) continue;
    const bool is_counted =
        eligible.has_labels(node) && eligible.kinds[static_cast<size_t>(table.at(node).kind)];
    if (is_counted) --shortage.cordoned;
    if (is_counted || has_unknown_size(table.spec(node))) {
      shortage.silent.push_back(table.at(node).spec);
    }
  }
  std::sort(shortage.silent.begin(), shortage.silent.end(),
            [](const auto& one, const auto& other) { return one->name < other->name; });
}

}  // namespace

void count_free(const NodeBooks& books, const RoomIndex& index, const Eligible& eligible,
                Shortage& shortage) {
  shortage.cordoned = cordoned_nodes(books.table, eligible);
  tell_silent_apart(books.table, eligible, shortage);
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
