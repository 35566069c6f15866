// Properties that hold for any sequence of requests: random clusters, gangs, releases and promises,
// compared with a scan over all nodes without an index. Seeds are fixed; a failure prints its seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <random>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/node_room.h"
#include "schedule/test_nodes.h"

namespace muster::schedule {
namespace {

constexpr int kSeeds = 60;
constexpr int kSteps = 250;

enum class Stage { kBooked, kReleasing, kReserved, kKept };

/// A cluster, and the history of its changes.
struct NodesWorld {
  explicit NodesWorld(unsigned seed) : dice(seed) {}

  size_t below(size_t bound) { return dice() % bound; }
  int one_of(std::initializer_list<int> values) { return values.begin()[below(values.size())]; }

  std::mt19937 dice;
  Nodes nodes;
  std::vector<Node> specs;
  std::vector<UsualClaim> usual;
  std::vector<std::pair<Booking, Stage>> bookings;
};

Node random_node(NodesWorld& world, int number) {
  Node node = node_of("n" + std::to_string(number), world.one_of({0, 1, 2, 2, 4, 8}),
                      world.one_of({4, 8, 8, 16}), world.one_of({8, 16, 16}));
  node.gpu_model = world.one_of({0, 0, 1}) == 0 ? "A100" : "T4";
  node.gpu_memory_bytes = node.gpu_model == "A100" ? 80 * kGib : 16 * kGib;
  node.task_slots = world.one_of({0, 0, 0, 3});
  node.cordoned = world.below(12) == 0;
  if (world.below(5) != 0) node.topology["rack"] = "r" + std::to_string(world.below(3));
  if (world.below(3) == 0) node.labels["disk"] = world.below(2) == 0 ? "ssd" : "hdd";
  return node;
}

Claim random_claim(NodesWorld& world) {
  Claim claim;
  switch (world.below(5)) {
    case 0:
    case 1:
      claim.gpus = world.one_of({1, 1, 2, 4, 8});
      break;
    case 2:
      claim.gpu_share_milli = world.one_of({100, 250, 500, 700, 999});
      break;
    case 3:
      claim.gpu_memory_bytes = world.one_of({1, 5, 16, 20}) * kGib;
      break;
    default:
      break;
  }
  claim.cpu_milli = world.one_of({0, 500, 1000, 4000});
  claim.memory_bytes = world.one_of({0, 1, 2, 8}) * kGib;
  return claim;
}

Gang random_gang(NodesWorld& world) {
  Gang gang;
  const size_t groups = world.below(6) == 0 ? 2 : 1;
  for (size_t group = 0; group < groups; ++group)
    gang.groups.push_back(
        {.claim = random_claim(world), .count = world.one_of({1, 1, 1, 2, 3, 6})});
  if (world.below(6) == 0) gang.gpu_models = {"T4"};
  if (world.below(6) == 0) gang.node_labels = {{"disk", "ssd"}};
  if (world.below(6) == 0) gang.excluded_nodes = {"n1", "n2"};
  if (world.below(6) == 0) gang.required_topology = "rack";
  if (world.below(6) == 0) gang.preferred_topology = "rack";
  return gang;
}

NodesWorld random_world(unsigned seed) {
  NodesWorld world(seed);
  const size_t count = 3 + world.below(12);
  for (size_t number = 0; number < count; ++number)
    world.specs.push_back(random_node(world, static_cast<int>(number)));
  world.nodes = nodes_of(world.specs);
  if (world.below(3) != 0)
    world.usual = {{.claim = gpus(1, 1), .weight = 3},
                   {.claim = share(250)},
                   {.claim = gpus(4, 4), .gpu_models = {"A100"}}};
  world.nodes.set_usual_claims(world.usual);
  return world;
}

// --- The scan. ---

/// The state, rebuilt from the bookings alone.
NodeRoom scanned_room(const NodesWorld& world, NodeIndex node, FreeWhen room) {
  NodeUse now;
  NodeUse later;
  NodeUse kept;
  for (const auto& [booking, stage] : world.bookings) {
    if (booking.node != node) continue;
    if (stage == Stage::kBooked || stage == Stage::kReleasing) now.add(booking);
    if (stage == Stage::kBooked || stage == Stage::kReserved) later.add(booking);
    if (stage != Stage::kReleasing && !booking.yields) kept.add(booking);
  }
  NodeRoom free;
  if (room == FreeWhen::kNow)
    free_room(world.nodes.node(node), now, later, kept, free);
  else
    free_room(world.nodes.node(node), later, kept, free);
  return free;
}

bool scan_allows(const Node& node, const Gang& gang) {
  const auto among = [](const std::vector<std::string>& names, const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (!gang.gpu_models.empty() && !among(gang.gpu_models, node.gpu_model)) return false;
  if (among(gang.excluded_nodes, node.name)) return false;
  for (const auto& [label, value] : gang.node_labels) {
    const auto found = node.labels.find(label);
    if (found == node.labels.end() || found->second != value) return false;
  }
  return true;
}

/// The shortage of one task, found by a scan over all nodes.
Shortage scanned(const NodesWorld& world, const Gang& gang, FreeWhen room, bool& feasible) {
  const Claim& claim = gang.groups[0].claim;
  Shortage shortage{.tasks = 1, .claim = claim};
  feasible = false;
  for (const NodeIndex index : world.nodes.all()) {
    const Node& node = world.nodes.node(index);
    if (!scan_allows(node, gang)) continue;
    if (node.cordoned) {
      ++shortage.cordoned;
      continue;
    }
    const NodeRoom free = scanned_room(world, index, room);
    const auto need = need_on(claim, node.gpu_memory_bytes);
    feasible |= need && fits(free, *need);
    ++shortage.nodes;
    shortage.free_gpu_milli += free.gpu_milli;
    shortage.largest_free_gpu_milli = std::max(shortage.largest_free_gpu_milli, free.gpu_milli);
    shortage.largest_free_cpu_milli = std::max(shortage.largest_free_cpu_milli, free.cpu_milli);
    shortage.largest_free_memory_bytes =
        std::max(shortage.largest_free_memory_bytes, free.memory_bytes);
    shortage.lack_gpu += !need || !gpus_fit(free, *need);
    shortage.lack_cpu += free.cpu_milli < claim.cpu_milli;
    shortage.lack_memory += free.memory_bytes < claim.memory_bytes;
    shortage.lack_task_slots += free.task_slots < 1;
  }
  return shortage;
}

/// The criteria of a placement, less is better; names break ties.
using Rank = std::tuple<bool, double, int64_t, int64_t, int64_t, std::string>;

double least_waste(const UsualNeeds& usual, NodeRoom room, const Need& need) {
  const double before = waste(usual, room);
  room.cpu_milli -= need.cpu_milli;
  room.memory_bytes -= need.memory_bytes;
  if (room.task_slots != kNoSlotBound) --room.task_slots;
  if (need.share_milli == 0) {
    int left = need.gpus;
    for (int& device : room.devices)
      if (device == kWholeGpu && left-- > 0) device = 0;
    return waste(usual, room) - before;
  }
  std::optional<double> least;
  for (int& device : room.devices) {
    if (device < need.share_milli) continue;
    device -= need.share_milli;
    const double more = waste(usual, room) - before;
    device += need.share_milli;
    if (!least || more < *least) least = more;
  }
  return *least;
}

Rank scanned_rank(const NodesWorld& world, const Node& node, NodeRoom room, const Need& need,
                  Packing packing) {
  const bool needs_gpu = need.gpu_milli() > 0;
  std::sort(room.devices.begin(), room.devices.end(), std::greater<>());
  double most_waste = 0;
  bool avoided = !needs_gpu && node.gpus > 0;
  if (packing == Packing::kFragmentation && !world.usual.empty()) {
    Fragmentation fragmentation;
    fragmentation.set(world.usual);
    most_waste =
        least_waste(fragmentation.usual_for(node.gpu_model, node.gpu_memory_bytes), room, need);
  } else if (packing != Packing::kSpread && need.share_milli > 0) {
    avoided = std::none_of(room.devices.begin(), room.devices.end(),
                           [&](int free) { return free >= need.share_milli && free < kWholeGpu; });
  }
  const int64_t sign = packing == Packing::kSpread ? -1 : 1;
  return {avoided,
          most_waste,
          (needs_gpu ? sign : 1) * room.gpu_milli,
          sign * room.cpu_milli,
          sign * room.memory_bytes,
          node.name};
}

/// The node that a single task should get, found by a scan over all nodes; empty: no node.
std::string scanned_choice(const NodesWorld& world, const Gang& gang, const PlaceOptions& options) {
  std::optional<Rank> best;
  for (const NodeIndex index : world.nodes.all()) {
    const Node& node = world.nodes.node(index);
    const auto need = need_on(gang.groups[0].claim, node.gpu_memory_bytes);
    const NodeRoom free = scanned_room(world, index, options.room);
    if (!scan_allows(node, gang) || node.cordoned || !need || !fits(free, *need)) continue;
    const Rank rank = scanned_rank(world, node, free, *need, options.packing);
    if (!best || rank < *best) best = rank;
  }
  return best ? std::get<std::string>(*best) : "";
}

std::string shortage_numbers(const Shortage& s) {
  std::string text;
  for (const int64_t number :
       {int64_t{s.tasks}, int64_t{s.placed}, int64_t{s.nodes}, int64_t{s.cordoned},
        s.free_gpu_milli, s.largest_free_gpu_milli, s.largest_free_cpu_milli,
        s.largest_free_memory_bytes, int64_t{s.lack_gpu}, int64_t{s.lack_cpu},
        int64_t{s.lack_memory}, int64_t{s.lack_task_slots}})
    text += std::to_string(number) + " ";
  return text + s.topology;
}

// --- Checks after every step. ---

void expect_books_are_right(const NodesWorld& world) {
  for (const NodeIndex node : world.nodes.all()) {
    for (const FreeWhen room : {FreeWhen::kNow, FreeWhen::kLater}) {
      const NodeRoom free = scanned_room(world, node, room);
      EXPECT_EQ(world.nodes.free_devices(node, room), free.devices);
      EXPECT_EQ(world.nodes.free(node, room),
                (Amounts{free.gpu_milli, free.cpu_milli, free.memory_bytes}));
      EXPECT_TRUE(std::all_of(free.devices.begin(), free.devices.end(),
                              [](int device) { return device >= 0; }));
      EXPECT_GE(free.cpu_milli, 0);
      EXPECT_GE(free.memory_bytes, 0);
      EXPECT_GE(free.task_slots, 0);
    }
  }
}

void expect_placed_as_asked(const NodesWorld& world, const Gang& gang,
                            const std::vector<Booking>& bookings) {
  size_t next = 0;
  std::vector<std::string> racks;
  for (const TaskGroup& group : gang.groups) {
    for (int task = 0; task < group.count; ++task) {
      const Booking& booking = bookings.at(next++);
      const Node& node = world.nodes.node(booking.node);
      EXPECT_TRUE(scan_allows(node, gang) && !node.cordoned);
      EXPECT_EQ(world.nodes.booking_of(world.nodes.place_of(booking), group.claim), booking);
      const auto rack = node.topology.find("rack");
      racks.push_back(rack == node.topology.end() ? "" : rack->second);
    }
  }
  EXPECT_EQ(next, bookings.size());
  if (gang.required_topology.empty()) return;
  EXPECT_NE(racks.front(), "");
  EXPECT_EQ(std::count(racks.begin(), racks.end(), racks.front()),
            static_cast<std::ptrdiff_t>(racks.size()));
}

/// After a refusal now: the answer for some of the reservations is that of an attempt without them.
void expect_counted_as_placed(NodesWorld& world, const Gang& gang, const PlaceOptions& options,
                              const Shortage& shortage) {
  std::vector<Booking> lifted;
  for (const auto& [booking, stage] : world.bookings) {
    if (stage == Stage::kKept && world.below(3) != 0) lifted.push_back(booking);
  }
  const Nodes before = world.nodes;
  const std::optional<bool> counted =
      world.nodes.would_fit_without(lifted, gang, counts_of(gang), shortage);
  EXPECT_TRUE(world.nodes == before);
  EXPECT_EQ(counted.has_value(), gang.groups.size() == 1 && gang.required_topology.empty());
  Nodes without = world.nodes;
  for (const Booking& booking : lifted) without.unkeep(booking);
  const bool fits = without.place(gang, counts_of(gang), options).ok();
  EXPECT_EQ(counted.value_or(fits), fits);
}

void place_one(NodesWorld& world) {
  const Gang gang = random_gang(world);
  const FreeWhen room = world.below(3) == 0 ? FreeWhen::kLater : FreeWhen::kNow;
  const PlaceOptions options{.room = room,
                             .packing = std::array{Packing::kFragmentation, Packing::kPack,
                                                   Packing::kSpread}[world.below(3)]};
  const Nodes before = world.nodes;
  Nodes twin = world.nodes;
  // The same cluster without a history: entered in reverse order, with new indexes.
  Nodes newcomer = nodes_of({world.specs.rbegin(), world.specs.rend()});

  const auto placed = world.nodes.place(gang, counts_of(gang), options);

  bool feasible = false;
  const bool simple = counts_of(gang) == std::vector<int>{1} && gang.required_topology.empty();
  if (simple) {
    NodesWorld past = world;
    past.nodes = before;
    const Shortage expected = scanned(past, gang, room, feasible);
    EXPECT_EQ(bool{placed}, feasible);
    if (placed && gang.preferred_topology.empty()) {
      EXPECT_EQ(world.nodes.node(placed->front().node).name, scanned_choice(past, gang, options));
    }
    if (!placed) {
      EXPECT_EQ(shortage_numbers(placed.error()), shortage_numbers(expected));
    }
  }
  const auto again = twin.place(gang, counts_of(gang), options);
  ASSERT_EQ(bool{placed}, bool{again});
  EXPECT_TRUE(world.nodes == twin);
  EXPECT_FALSE(placed && newcomer.could_never_hold(gang)) << "it holds it now";
  if (!placed) {
    EXPECT_TRUE(world.nodes == before);
    if (room == FreeWhen::kNow) expect_counted_as_placed(world, gang, options, placed.error());
    return;
  }
  EXPECT_EQ(*placed, *again);
  expect_placed_as_asked(world, gang, *placed);
  const bool is_kept = room == FreeWhen::kLater && world.below(2) == 0;
  for (const Booking& booking : *placed) {
    if (is_kept) {
      world.nodes.unreserve(booking);
      world.nodes.keep(booking);
    }
    world.bookings.emplace_back(booking, room == FreeWhen::kNow ? Stage::kBooked
                                         : is_kept              ? Stage::kKept
                                                                : Stage::kReserved);
  }
}

/// Moves one booking to its next stage, after a move there and back.
void move_one(NodesWorld& world) {
  if (world.bookings.empty()) return;
  const size_t chosen = world.below(world.bookings.size());
  auto& [booking, stage] = world.bookings[chosen];
  const Nodes before = world.nodes;
  const auto leave = [&] {
    world.bookings.erase(world.bookings.begin() + static_cast<std::ptrdiff_t>(chosen));
  };
  switch (stage) {
    case Stage::kBooked:
      world.nodes.unbook(booking);
      world.nodes.book(booking);
      EXPECT_TRUE(world.nodes == before);
      world.nodes.begin_release(booking);
      world.nodes.undo_begin_release(booking);
      EXPECT_TRUE(world.nodes == before);
      if (!booking.yields) {
        world.nodes.set_yields(booking, true);
        if (world.below(4) == 0) return;
        world.nodes.set_yields(booking, false);
        EXPECT_TRUE(world.nodes == before);
      }
      world.nodes.begin_release(booking);
      stage = Stage::kReleasing;
      return;
    case Stage::kReleasing:
      world.nodes.end_release(booking);
      return leave();
    case Stage::kReserved:
      world.nodes.unreserve(booking);
      world.nodes.reserve(booking);
      EXPECT_TRUE(world.nodes == before);
      if (!world.nodes.can_claim_reserved(booking)) {
        world.nodes.unreserve(booking);
        return leave();
      }
      EXPECT_TRUE(world.nodes.has_reserved(booking));
      world.nodes.claim_reserved(booking);
      stage = Stage::kBooked;
      return;
    case Stage::kKept:
      world.nodes.unkeep(booking);
      world.nodes.keep(booking);
      EXPECT_TRUE(world.nodes == before);
      world.nodes.unkeep(booking);
      return leave();
  }
}

/// A node is cordoned or uncordoned, or an empty node is removed and added again.
void change_a_node(NodesWorld& world) {
  const size_t chosen = world.below(world.specs.size());
  Node& node = world.specs[chosen];
  const NodeIndex index = *world.nodes.find(node.name);
  const bool empty = std::none_of(world.bookings.begin(), world.bookings.end(),
                                  [&](const auto& held) { return held.first.node == index; });
  if (empty && world.below(2) == 0) {
    world.nodes.remove(index);
    node = random_node(world, static_cast<int>(chosen));
  } else {
    node.cordoned = !node.cordoned;
  }
  world.nodes.set(node);
}

/// The usual claims change, too.
void change_usual_claims(NodesWorld& world) {
  world.usual = {{.claim = random_claim(world), .weight = 2}, {.claim = random_claim(world)}};
  world.nodes.set_usual_claims(world.usual);
}

TEST(NodesProperty, HoldUnderEverySequenceOfChanges) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    NodesWorld world = random_world(seed);
    for (int step = 0; step < kSteps && !testing::Test::HasFailure(); ++step) {
      SCOPED_TRACE("step " + std::to_string(step));
      const size_t what = world.below(20);
      if (what < 11)
        place_one(world);
      else if (what < 19)
        move_one(world);
      else if (world.below(2) == 0)
        change_a_node(world);
      else
        change_usual_claims(world);
      expect_books_are_right(world);
    }
    ASSERT_FALSE(testing::Test::HasFailure());
  }
}

/// The placements of all gangs, in a cluster whose nodes were entered in the given order.
std::string story(const std::vector<Node>& list, const std::vector<Gang>& gangs, Packing packing) {
  Nodes nodes = nodes_of(list);
  nodes.set_usual_claims({{.claim = gpus(1, 1)}, {.claim = share(300)}});
  std::string text;
  for (const Gang& gang : gangs) text += where(nodes, gang, packing) + "\n";
  return text;
}

TEST(NodesProperty, TheOrderInWhichNodesCameDoesNotMatter) {
  for (unsigned seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    NodesWorld world = random_world(seed);
    std::vector<Gang> gangs;
    for (int count = 0; count < 30; ++count) gangs.push_back(random_gang(world));
    const std::vector<Node> backwards(world.specs.rbegin(), world.specs.rend());
    for (const Packing packing : {Packing::kFragmentation, Packing::kPack, Packing::kSpread})
      EXPECT_EQ(story(world.specs, gangs, packing), story(backwards, gangs, packing));
  }
}

}  // namespace
}  // namespace muster::schedule
