#include "schedule/placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace muster::schedule {
namespace {

int64_t amount_in(const NodeRoom& room, Resource resource) {
  return resource == Resource::kGpu   ? room.gpu_milli
         : resource == Resource::kCpu ? room.cpu_milli
                                      : room.memory_bytes;
}

struct Attempt {
  std::vector<Booking> bookings;  ///< taken in the books
  int lacking_group = -1;         ///< whose next task found no node; -1: all have one
};

/// The order in which the groups are placed, and the packing.
struct PlaceOrder {
  std::vector<size_t> groups;
  Packing packing = Packing::kPack;

  bool operator==(const PlaceOrder&) const = default;
};

class GangPlacement {
 public:
  GangPlacement(NodeBooks& books, const Gang& gang, const std::vector<int>& counts,
                const PlaceOptions& options, const std::vector<Booking>& beside)
      : books_(books),
        gang_(gang),
        counts_(counts),
        room_(options.room),
        order_{.groups = std::vector<size_t>(counts.size()),
               .packing = gang.packing.value_or(options.packing)},
        with_amounts_(options.with_amounts),
        beside_(beside) {
    std::iota(order_.groups.begin(), order_.groups.end(), size_t{0});
    const bool packs = order_.packing == Packing::kFragmentation && books_.fragmentation.is_empty();
    if (packs) order_.packing = Packing::kPack;
    if (!gang.node_labels.empty() && books_.table.distinguish_by(gang.node_labels)) {
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
  Attempt place_all(RoomIndex& index, const PlaceOrder& order) {
    Attempt attempt;
    for (const size_t group : order.groups) {
      for (int task = 0; task < counts_[group]; ++task) {
        const std::optional<Booking> booking =
            choose_node(books_.table, index, books_.fragmentation, eligible_, needs_[group],
                        order.packing, room_);
        if (!booking) {
          attempt.lacking_group = static_cast<int>(group);
          return attempt;
        }
        take(*booking, index);
        attempt.bookings.push_back(*booking);
      }
    }
    return attempt;
  }

  void take(const Booking& booking, RoomIndex& index) {
    books_.take(booking, room_);
    index.touch(booking.node);
    index.settle(books_.table);
  }

  // The tasks of one group may take the only nodes that the tasks of another group can use. So a
  // gang with different claims that finds no room is tried again in other_orders(). Equal tasks
  // need no second try: the nodes hold the same number of them in any order. Two counts rule out
  // most gangs first.

  /// Places all tasks in the order of the groups, or else in another order. If that fails, the
  /// result is the first attempt; its bookings are taken if the shortage is reported with amounts.
  Attempt place_in_any_order(RoomIndex& index) {
    Attempt first = place_all(index, order_);
    if (first.lacking_group < 0 || !has_different_claims()) return first;
    if (!has_enough_in_all(index, first)) return first;
    undo(first, index);
    if (each_group_fits_alone(index)) {
      for (const PlaceOrder& order : other_orders()) {
        Attempt attempt = place_all(index, order);
        if (attempt.lacking_group < 0) return in_group_order(std::move(attempt), order);
        undo(attempt, index);
      }
    }
    if (!with_amounts_) first.bookings.clear();
    for (const Booking& booking : first.bookings) take(booking, index);
    return first;
  }

  /// Calls with each class of nodes of the index whose kind the gang may use, until `visit` returns
  /// false. Single nodes of it may be excluded.
  template <class Visit>
  void for_each_usable_class(const RoomIndex& index, const Visit& visit) const {
    // The classes with the most free GPUs come first: they mostly suffice.
    for (auto bucket = index.buckets().rbegin(); bucket != index.buckets().rend(); ++bucket) {
      for (const int number : bucket->second.classes) {
        const NodeClass& same = index.at(number);
        if (eligible_.kinds[static_cast<size_t>(same.kind)] && !visit(same)) return;
      }
    }
  }

  bool has_different_claims() const {
    const Claim* claim = nullptr;
    for (size_t group = 0; group < counts_.size(); ++group) {
      if (counts_[group] == 0) continue;
      if (claim != nullptr && !(*claim == needs_[group].claim)) return true;
      claim = &needs_[group].claim;
    }
    return false;
  }

  /// Whether the nodes of the index had enough free in total before the attempt.
  bool has_enough_in_all(const RoomIndex& index, const Attempt& attempt) const {
    const Amounts least = least_in_all();
    WideAmounts free;
    for (const Booking& booking : attempt.bookings) free += amounts_of(booking);
    const auto suffices = [&] {
      return std::all_of(kResources.begin(), kResources.end(),
                         [&](Resource resource) { return free[resource] >= least[resource]; });
    };
    for_each_usable_class(index, [&](const NodeClass& same) {
      const auto nodes = static_cast<int64_t>(same.members.size());
      for (const Resource resource : kResources) {
        free.add(resource, Wide{std::max<int64_t>(amount_in(same.room, resource), 0)} * nodes);
      }
      return !suffices();
    });
    return suffices();
  }

  /// Whether the tasks of each group fit if there were no others.
  bool each_group_fits_alone(const RoomIndex& index) const {
    for (size_t group = 0; group < counts_.size(); ++group) {
      const int most = counts_[group];
      int64_t fitting = 0;
      if (most == 0) continue;
      for_each_usable_class(index, [&](const NodeClass& same) {
        const std::optional<Need>& need = needs_[group].by_kind[static_cast<size_t>(same.kind)];
        const auto nodes = static_cast<int64_t>(same.members.size());
        if (need) fitting += fitting_tasks(same.room, *need, most) * nodes;
        return fitting < most;
      });
      if (fitting < most) return false;
    }
    return true;
  }

  /// Without that of the first attempt.
  std::vector<PlaceOrder> other_orders() const {
    std::vector<size_t> largest_first = order_.groups;
    std::stable_sort(largest_first.begin(), largest_first.end(), [&](size_t one, size_t other) {
      return size_of(needs_[one].claim) > size_of(needs_[other].claim);
    });
    std::vector<PlaceOrder> orders{{order_.groups, Packing::kPack},
                                   {largest_first, Packing::kPack},
                                   {largest_first, Packing::kSpread}};
    if (largest_first == order_.groups) orders.erase(orders.begin());
    std::erase(orders, order_);
    return orders;
  }

  Attempt in_group_order(Attempt attempt, const PlaceOrder& order) const {
    std::vector<std::vector<Booking>> by_group(counts_.size());
    auto booking = attempt.bookings.begin();
    for (const size_t group : order.groups) {
      by_group[group].assign(booking, booking + counts_[group]);
      booking += counts_[group];
    }
    attempt.bookings.clear();
    for (const std::vector<Booking>& bookings : by_group) {
      attempt.bookings.insert(attempt.bookings.end(), bookings.begin(), bookings.end());
    }
    return attempt;
  }

  void undo(const Attempt& attempt, RoomIndex& index) {
    undo(attempt);
    for (const Booking& booking : attempt.bookings) index.touch(booking.node);
    index.settle(books_.table);
  }

  void undo(const Attempt& attempt) {
    for (const Booking& booking : attempt.bookings) books_.give(booking, room_);
  }

  base::Result<std::vector<Booking>, Shortage> anywhere() {
    RoomIndex& index = books_.index(room_);
    index.settle(books_.table);
    Attempt attempt = place_in_any_order(index);
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
      Attempt attempt = place_in_any_order(index);
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
        const int64_t on_node = amount_in(equal.room, resource);
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
    const Attempt attempt = place_in_any_order(index);
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
  PlaceOrder order_;  ///< of the groups, with the packing that was asked for
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
    entry.kept.remove(*lifted);
    placed += hold(entry, lifted->node);
  }
  while (lifted != reserved.begin()) {
    --lifted;
    books.table.at(lifted->node).kept.add(*lifted);
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
void separate_silent(const NodeTable& table, const Eligible& eligible, Shortage& shortage) {
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
  separate_silent(books.table, eligible, shortage);
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
