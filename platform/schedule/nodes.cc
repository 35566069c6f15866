#include "schedule/nodes.h"

#include <algorithm>
#include <bit>
#include <set>
#include <tuple>
#include <utility>

#include "schedule/node_index.h"
#include "schedule/placement.h"

namespace muster::schedule {

namespace {

/// Nothing where the minimum has room. The books are as they were.
std::optional<Shortage> shortage_of_minimum(NodeBooks& books, const Gang& gang) {
  std::vector<int> minimum;
  for (const TaskGroup& group : gang.groups) minimum.push_back(group.minimum);
  auto placed = place_gang(books, gang, minimum, {}, {});
  if (!placed) return placed.error();
  for (const Booking& booking : *placed) books.give(booking, FreeWhen::kNow);
  return std::nullopt;
}

bool holds(const NodeRoom& room, const Booking& booking) {
  if (room.task_slots < 1 || room.cpu_milli < booking.cpu_milli ||
      room.memory_bytes < booking.memory_bytes)
    return false;
  for (uint64_t devices = booking.devices; devices != 0; devices &= devices - 1) {
    const auto device = static_cast<size_t>(std::countr_zero(devices));
    if (device >= room.devices.size() || room.devices[device] < booking.share_milli) return false;
  }
  return true;
}

/// Whether more than all is taken of what `booking`, which is in the books, needs.
bool is_overbooked(const NodeRoom& room, const Booking& booking) {
  if (room.task_slots < 0 || room.cpu_milli < 0 || room.memory_bytes < 0) return true;
  if (room.lacks_devices && booking.devices != 0) return true;
  for (uint64_t devices = booking.devices; devices != 0; devices &= devices - 1) {
    const auto device = static_cast<size_t>(std::countr_zero(devices));
    if (device >= room.devices.size() || room.devices[device] < 0) return true;
  }
  return false;
}

}  // namespace

Amounts amounts_of(const Booking& booking) {
  return {int64_t{booking.share_milli} * std::popcount(booking.devices), booking.cpu_milli,
          booking.memory_bytes};
}

ClaimSize size_of(const Claim& claim) {
  return {claim.gpus, claim.gpu_share_milli, claim.gpu_memory_bytes, claim.cpu_milli,
          claim.memory_bytes};
}

struct Nodes::State {
  NodeBooks books;
  /// The same nodes without bookings and cordons, for could_never_hold(); nullptr: not made yet.
  /// Copies make their own.
  std::unique_ptr<NodeBooks> empty;

  State() = default;
  State(const State& other) : books(other.books) {}
};

Nodes::Nodes() : state_(std::make_unique<State>()) {}
Nodes::~Nodes() = default;
Nodes::Nodes(Nodes&&) noexcept = default;
Nodes& Nodes::operator=(Nodes&&) noexcept = default;
Nodes::Nodes(const Nodes& other) : state_(std::make_unique<State>(*other.state_)) {}
Nodes& Nodes::operator=(const Nodes& other) {
  if (this != &other) state_ = std::make_unique<State>(*other.state_);
  return *this;
}

bool Nodes::operator==(const Nodes& other) const {
  return state_->books.table == other.state_->books.table;
}

NodeIndex Nodes::set(const Node& node) {
  state_->empty.reset();
  return state_->books.set(node);
}

void Nodes::remove(NodeIndex node) {
  state_->empty.reset();
  state_->books.remove(node);
}

std::optional<NodeIndex> Nodes::find(const std::string& name) const {
  return state_->books.table.find(name);
}

const Node& Nodes::node(NodeIndex index) const {
  return state_->books.table.spec(index);
}

std::vector<NodeIndex> Nodes::all() const {
  std::vector<NodeIndex> indices;
  indices.reserve(state_->books.table.by_name().size());
  for (NodeIndex node = 0; node < state_->books.table.slots(); ++node) {
    if (state_->books.table.present(node)) indices.push_back(node);
  }
  return indices;
}

Amounts Nodes::total() const {
  return state_->books.table.total();
}
Amounts Nodes::charge(const Claim& claim) const {
  return state_->books.table.charge(claim);
}
int64_t Nodes::smallest_gpu_memory() const {
  return state_->books.table.smallest_gpu_memory();
}

Amounts Nodes::free(NodeIndex node, FreeWhen room) const {
  NodeRoom free;
  room_for(state_->books.table.at(node), room, free);
  return {free.gpu_milli, free.cpu_milli, free.memory_bytes};
}

std::vector<int> Nodes::free_devices(NodeIndex node, FreeWhen room) const {
  NodeRoom free;
  room_for(state_->books.table.at(node), room, free);
  return free.devices;
}

void Nodes::unused(NodeIndex node, NodeRoom& room) const {
  const NodeEntry& entry = state_->books.table.at(node);
  free_room(*entry.spec, entry.now, room);
}

int Nodes::count() const {
  return static_cast<int>(state_->books.table.by_name().size());
}

void Nodes::each_set(FreeWhen room, const std::function<bool(const NodeSet&)>& visit) {
  state_->books.settle(room);
  const RoomIndex& index = state_->books.index(room);
  const auto key = [&](int number) {
    const NodeClass& same = index.at(number);
    return std::tuple(same.room.cpu_milli, same.room.memory_bytes,
                      state_->books.table.rank(same.members.front()));
  };
  std::vector<int> classes;
  for (auto bucket = index.buckets().rbegin(); bucket != index.buckets().rend(); ++bucket) {
    classes = bucket->second.classes;
    std::sort(classes.begin(), classes.end(),
              [&](int left, int right) { return key(left) < key(right); });
    for (const int number : classes) {
      const NodeClass& same = index.at(number);
      const NodeRoom& free = same.room;
      if (!visit({.free = {free.gpu_milli, free.cpu_milli, free.memory_bytes},
                  .usable_gpu_milli = bucket->first.second,
                  .nodes = same.members})) {
        return;
      }
    }
  }
}

Amounts Nodes::free_in_all(FreeWhen room) {
  state_->books.settle(room);
  const RoomIndex& index = state_->books.index(room);
  Wide gpu_milli = 0;
  Wide cpu_milli = 0;
  Wide memory_bytes = 0;
  for (const auto& [key, bucket] : index.buckets()) {
    for (const int number : bucket.classes) {
      const NodeClass& same = index.at(number);
      const auto nodes = static_cast<int64_t>(same.members.size());
      gpu_milli += Wide{key.second} * nodes;
      cpu_milli += Wide{std::max<int64_t>(same.room.cpu_milli, 0)} * nodes;
      memory_bytes += Wide{std::max<int64_t>(same.room.memory_bytes, 0)} * nodes;
    }
  }
  const auto bounded = [](Wide sum) {
    return static_cast<int64_t>(std::min<Wide>(sum, kUnlimited));
  };
  return {bounded(gpu_milli), bounded(cpu_milli), bounded(memory_bytes)};
}

void Nodes::set_usual_claims(std::vector<UsualClaim> claims) {
  state_->books.fragmentation.set(std::move(claims));
  state_->books.now.forget_scores();
  state_->books.later.forget_scores();
}

void Nodes::book(const Booking& booking) {
  state_->books.take(booking, FreeWhen::kNow);
}
void Nodes::unbook(const Booking& booking) {
  state_->books.give(booking, FreeWhen::kNow);
}
void Nodes::begin_release(const Booking& booking) {
  state_->books.give(booking, FreeWhen::kLater);
}
void Nodes::undo_begin_release(const Booking& booking) {
  state_->books.take(booking, FreeWhen::kLater);
}
void Nodes::end_release(const Booking& booking) {
  state_->books.give_now_only(booking);
}
void Nodes::reserve(const Booking& booking) {
  state_->books.take(booking, FreeWhen::kLater);
}
void Nodes::unreserve(const Booking& booking) {
  state_->books.give(booking, FreeWhen::kLater);
}
void Nodes::claim_reserved(const Booking& booking) {
  state_->books.take_now_only(booking);
}
void Nodes::keep(const Booking& booking) {
  state_->books.take_kept_only(booking);
}
void Nodes::unkeep(const Booking& booking) {
  state_->books.give_kept_only(booking);
}
bool Nodes::has_kept(const Booking& booking) const {
  const NodeEntry& entry = state_->books.table.at(booking.node);
  NodeRoom room;
  free_room(*entry.spec, entry.kept, room);
  return !is_overbooked(room, booking);
}
void Nodes::set_yields(Booking& booking, bool yields) {
  if (booking.yields == yields) return;
  booking.yields = yields;
  yields ? unkeep(booking) : keep(booking);
}

bool Nodes::can_undo_release(const Booking& booking) const {
  const NodeEntry& entry = state_->books.table.at(booking.node);
  NodeRoom room;
  free_room(*entry.spec, entry.later, booking.yields ? entry.later : entry.kept, room);
  return holds(room, booking);
}

bool Nodes::can_claim_reserved(const Booking& booking) const {
  if (!state_->books.table.present(booking.node)) return false;
  const NodeEntry& entry = state_->books.table.at(booking.node);
  if (entry.spec->cordoned) return false;
  NodeRoom room;
  free_room(*entry.spec, entry.now, room);
  const bool lacks_gpus = room.lacks_devices && booking.devices != 0;
  return !lacks_gpus && holds(room, booking);
}

bool Nodes::has_reserved(const Booking& booking) const {
  if (!state_->books.table.present(booking.node)) return false;
  const NodeEntry& entry = state_->books.table.at(booking.node);
  NodeRoom room;
  free_room(*entry.spec, entry.later, room);
  return !entry.spec->cordoned && !is_overbooked(room, booking);
}

base::Result<std::vector<Booking>, Shortage> Nodes::place(const Gang& gang,
                                                          const std::vector<int>& counts,
                                                          const PlaceOptions& options,
                                                          const std::vector<Booking>& beside) {
  return place_gang(state_->books, gang, counts, options, beside);
}

std::optional<bool> Nodes::would_fit_without(const std::vector<Booking>& kept, const Gang& gang,
                                             const std::vector<int>& counts,
                                             const Shortage& shortage) {
  return place_without(state_->books, kept, gang, counts, shortage);
}

std::optional<Shortage> Nodes::could_never_hold(const Gang& gang) const {
  const std::set<NodeIndex>& silent = state_->books.table.silent();
  const bool one_may_hold_it = std::any_of(silent.begin(), silent.end(), [&](NodeIndex index) {
    const auto& excluded = gang.excluded_nodes;
    return has_unknown_size(node(index)) &&
           std::find(excluded.begin(), excluded.end(), node(index).name) == excluded.end();
  });
  if (one_may_hold_it) return std::nullopt;
  if (state_->empty == nullptr) {
    state_->empty = std::make_unique<NodeBooks>();
    for (const auto& [name, index] : state_->books.table.by_name()) {
      Node open = node(index);
      open.cordoned = open.silent = false;
      state_->empty->set(open);
    }
  }
  return shortage_of_minimum(*state_->empty, gang);
}

TaskPlace Nodes::place_of(const Booking& booking) const {
  TaskPlace place{.node = node(booking.node).name, .share_milli = booking.share_milli};
  for (uint64_t devices = booking.devices; devices != 0; devices &= devices - 1)
    place.devices.push_back(std::countr_zero(devices));
  return place;
}

std::optional<Booking> Nodes::booking_of(const TaskPlace& place, const Claim& claim) const {
  const std::optional<NodeIndex> index = find(place.node);
  if (!index) return std::nullopt;
  Booking booking{.node = *index,
                  .share_milli = place.share_milli,
                  .cpu_milli = claim.cpu_milli,
                  .memory_bytes = claim.memory_bytes};
  for (const int device : place.devices) {
    if (device < 0 || device >= kMaxGpusPerNode) return std::nullopt;
    booking.devices |= uint64_t{1} << device;
  }
  return node(*index).anonymous_gpus ? on_free_gpus(booking) : booking;
}

bool Nodes::holds_missing_gpus(NodeIndex node, FreeWhen room) const {
  const NodeEntry& entry = state_->books.table.at(node);
  if (!entry.spec->anonymous_gpus) return false;
  NodeRoom free;
  free_room(*entry.spec, room == FreeWhen::kNow ? entry.now : entry.later, free);
  return free.lacks_devices;
}

Booking Nodes::on_free_gpus(Booking booking, FreeWhen when) const {
  const NodeEntry& entry = state_->books.table.at(booking.node);
  const auto present = static_cast<size_t>(device_count(*entry.spec));
  NodeRoom unused;
  free_room(*entry.spec, when == FreeWhen::kNow ? entry.now : entry.later, unused);
  NodeRoom unreserved;
  room_for(entry, when, unreserved);
  uint64_t chosen = 0;
  int left = std::popcount(booking.devices);
  const auto choose = [&](size_t device) {
    chosen |= uint64_t{1} << device;
    --left;
  };
  for (uint64_t devices = booking.devices; devices != 0; devices &= devices - 1) {
    const auto device = static_cast<size_t>(std::countr_zero(devices));
    if (device < present && unused.devices[device] >= booking.share_milli) choose(device);
  }
  const auto is_chosen = [&](size_t device) { return ((chosen >> device) & 1) != 0; };
  for (const NodeRoom* const room : {&unreserved, &unused}) {
    for (size_t device = 0; device < present && left > 0; ++device) {
      if (!is_chosen(device) && room->devices[device] >= booking.share_milli) choose(device);
    }
  }
  for (size_t device = present; device < kMaxGpusPerNode && left > 0; ++device) {
    const bool is_taken = device < unused.devices.size() && unused.devices[device] != 0;
    if (!is_chosen(device) && !is_taken) choose(device);
  }
  if (left == 0) booking.devices = chosen;
  return booking;
}

namespace {

constexpr size_t kMostClaims = 64;
constexpr double kForgetting = 0.999;  // a gang weighs half after about 700 others
constexpr double kRescaleAt = 1e12;
constexpr int kMostBetweenTakes = 256;

bool asks_the_same(const UsualClaim& usual, const Claim& claim, const Gang& gang) {
  return usual.claim == claim && usual.gpu_models == gang.gpu_models;
}

}  // namespace

void UsualClaims::add(const Gang& gang) {
  // The weight of new claims increases, instead of decreasing the weight of older claims.
  weight_of_next_ /= kForgetting;
  for (const TaskGroup& group : gang.groups) {
    const double weight = weight_of_next_ * std::max(group.count, 1);
    const auto known = std::find_if(claims_.begin(), claims_.end(), [&](const UsualClaim& usual) {
      return asks_the_same(usual, group.claim, gang);
    });
    if (known != claims_.end()) {
      known->weight += weight;
      continue;
    }
    if (claims_.size() >= kMostClaims) {
      claims_.erase(std::min_element(claims_.begin(), claims_.end(),
                                     [](const UsualClaim& left, const UsualClaim& right) {
                                       return left.weight < right.weight;
                                     }));
    }
    claims_.push_back({.claim = group.claim, .gpu_models = gang.gpu_models, .weight = weight});
  }
  ++added_;
  if (weight_of_next_ < kRescaleAt) return;
  for (UsualClaim& usual : claims_) usual.weight /= weight_of_next_;
  weight_of_next_ = 1;
}

bool UsualClaims::has_changed_enough() const {
  return added_ > 0 && added_ >= std::min(taken_ / 8, kMostBetweenTakes);
}

std::vector<UsualClaim> UsualClaims::take() {
  taken_ = std::min(taken_ + added_, kMostBetweenTakes * 8);
  added_ = 0;
  std::vector<UsualClaim> taken = claims_;
  double sum = 0;
  for (const UsualClaim& usual : taken) sum += usual.weight;
  for (UsualClaim& usual : taken) usual.weight /= sum;
  return taken;
}

}  // namespace muster::schedule
