#include "schedule/node_room.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace muster::schedule {
namespace {

// A thousand times a number of bytes may not fit 64 bits.
__extension__ using Wide = __int128;

int booked(const NodeUse& use, size_t device) {
  return device < use.devices.size() ? use.devices[device] : 0;
}

template <class Use>
void for_each_device(uint64_t devices, Use&& use) {
  for (; devices != 0; devices &= devices - 1) use(static_cast<size_t>(std::countr_zero(devices)));
}

}  // namespace

void NodeUse::add(const Booking& booking) {
  const auto count = static_cast<size_t>(std::bit_width(booking.devices));
  if (count > devices.size()) devices.resize(count);
  for_each_device(booking.devices, [&](size_t device) { devices[device] += booking.share_milli; });
  cpu_milli += booking.cpu_milli;
  memory_bytes += booking.memory_bytes;
  ++tasks;
}

void NodeUse::remove(const Booking& booking) {
  for_each_device(booking.devices, [&](size_t device) { devices[device] -= booking.share_milli; });
  cpu_milli -= booking.cpu_milli;
  memory_bytes -= booking.memory_bytes;
  --tasks;
}

bool NodeUse::operator==(const NodeUse& other) const {
  const size_t count = std::max(devices.size(), other.devices.size());
  for (size_t device = 0; device < count; ++device)
    if (booked(*this, device) != booked(other, device)) return false;
  return cpu_milli == other.cpu_milli && memory_bytes == other.memory_bytes && tasks == other.tasks;
}

int device_count(const Node& node) {
  return std::clamp(node.gpus, 0, kMaxGpusPerNode);
}

void free_room(const Node& node, const NodeUse& use, NodeRoom& room) {
  free_room(node, use, use, use, room);
}

void free_room(const Node& node, const NodeUse& one, const NodeUse& other, NodeRoom& room) {
  free_room(node, one, other, other, room);
}

void free_room(const Node& node, const NodeUse& one, const NodeUse& other, const NodeUse& third,
               NodeRoom& room) {
  const auto present = static_cast<size_t>(device_count(node));
  room.devices.resize(
      std::max({present, one.devices.size(), other.devices.size(), third.devices.size()}));
  room.gpu_milli = 0;
  for (size_t device = 0; device < room.devices.size(); ++device) {
    const int capacity = device < present ? kWholeGpu : 0;
    const int used = std::max({booked(one, device), booked(other, device), booked(third, device)});
    room.devices[device] = capacity - used;
    room.gpu_milli += room.devices[device];
  }
  while (room.devices.size() > present && room.devices.back() == 0) room.devices.pop_back();
  room.lacks_devices = room.devices.size() > present;
  room.cpu_milli = node.cpu_milli - std::max({one.cpu_milli, other.cpu_milli, third.cpu_milli});
  room.memory_bytes =
      node.memory_bytes - std::max({one.memory_bytes, other.memory_bytes, third.memory_bytes});
  room.task_slots = node.task_slots == 0
                        ? kNoSlotBound
                        : node.task_slots - std::max({one.tasks, other.tasks, third.tasks});
}

bool needs_gpu(const Claim& claim) {
  return claim.gpus > 0 || claim.gpu_share_milli > 0 || claim.gpu_memory_bytes > 0;
}

std::optional<Need> need_on(const Claim& claim, int64_t gpu_memory_bytes) {
  Need need{.cpu_milli = claim.cpu_milli, .memory_bytes = claim.memory_bytes};
  if (claim.gpus > 0) {
    need.gpus = claim.gpus;
  } else if (claim.gpu_share_milli > 0) {
    need.share_milli = claim.gpu_share_milli;
  } else if (claim.gpu_memory_bytes > 0) {
    if (claim.gpu_memory_bytes > gpu_memory_bytes) return std::nullopt;
    const auto thousandfold = static_cast<Wide>(claim.gpu_memory_bytes) * kWholeGpu;
    need.share_milli = static_cast<int>((thousandfold + gpu_memory_bytes - 1) / gpu_memory_bytes);
  }
  return need;
}

int64_t NodeRoom::usable_gpu_milli() const {
  int64_t usable = 0;
  for (const int free : devices) usable += std::max(free, 0);
  return usable;
}

bool gpus_fit(const NodeRoom& room, const Need& need) {
  if (room.lacks_devices && need.gpu_milli() > 0) return false;
  if (need.gpus > 0)
    return std::count(room.devices.begin(), room.devices.end(), kWholeGpu) >= need.gpus;
  if (need.share_milli > 0)
    return std::any_of(room.devices.begin(), room.devices.end(),
                       [&](int free) { return free >= need.share_milli; });
  return true;
}

bool fits(const NodeRoom& room, const Need& need) {
  return need.cpu_milli <= room.cpu_milli && need.memory_bytes <= room.memory_bytes &&
         room.task_slots >= 1 && gpus_fit(room, need);
}

int fitting_tasks(const NodeRoom& room, const Need& need, int most) {
  if (!fits(room, need)) return 0;
  int64_t tasks = std::min(most, room.task_slots);
  if (need.cpu_milli > 0) tasks = std::min(tasks, room.cpu_milli / need.cpu_milli);
  if (need.memory_bytes > 0) tasks = std::min(tasks, room.memory_bytes / need.memory_bytes);
  if (need.gpus > 0) {
    tasks = std::min<int64_t>(
        tasks, std::count(room.devices.begin(), room.devices.end(), kWholeGpu) / need.gpus);
  } else if (need.share_milli > 0) {
    int64_t of_devices = 0;
    for (const int free : room.devices) of_devices += std::max(free, 0) / need.share_milli;
    tasks = std::min(tasks, of_devices);
  }
  return static_cast<int>(tasks);
}

uint64_t pick_devices(const NodeRoom& room, const Need& need) {
  if (need.share_milli > 0) {
    size_t best = room.devices.size();
    for (size_t device = 0; device < room.devices.size(); ++device) {
      if (room.devices[device] < need.share_milli) continue;
      if (best == room.devices.size() || room.devices[device] < room.devices[best]) best = device;
    }
    return uint64_t{1} << best;
  }
  uint64_t devices = 0;
  for (size_t device = 0; std::popcount(devices) < need.gpus; ++device)
    if (room.devices[device] == kWholeGpu) devices |= uint64_t{1} << device;
  return devices;
}

namespace {

constexpr double kFillPart = 0.6;
constexpr double kSmallShareExponent = -1.5;

/// The GPUs that are too small for one task of a group, and the number of tasks that the others
/// hold.
struct Devices {
  int64_t too_small = 0;
  int64_t tasks = 0;
};

Devices devices_for(const UsualNeeds::Group& group, const NodeRoom& room) {
  Devices devices;
  const int least = group.gpus > 0 ? kWholeGpu : group.share_milli;
  for (const int free : room.devices) {
    if (free < least)
      devices.too_small += std::max(free, 0);
    else
      devices.tasks += free / least;
  }
  if (group.gpus > 0) devices.tasks /= group.gpus;
  return devices;
}

double wasted_for(const UsualNeeds::Group& group, const NodeRoom& room, int64_t free_milli) {
  const auto all = static_cast<double>(free_milli);
  const Devices devices = devices_for(group, room);
  const int64_t bound = std::min<int64_t>(devices.tasks, room.task_slots);
  if (bound <= 0 || room.cpu_milli < 0 || room.memory_bytes < 0) return group.weight * all;
  const int64_t milli = group.gpus > 0 ? int64_t{group.gpus} * kWholeGpu : group.share_milli;
  // A division is needed only if the claim does not fit `bound` times.
  const int64_t cpu_for_all = room.cpu_milli / bound;
  const int64_t memory_for_all = room.memory_bytes / bound;
  double sum = 0;
  for (const auto& [cpu_milli, memory_bytes, weight] : group.rests) {
    int64_t tasks = bound;
    if (cpu_milli > cpu_for_all) tasks = std::max<int64_t>(room.cpu_milli, 0) / cpu_milli;
    if (memory_bytes > memory_for_all)
      tasks = std::min(tasks, std::max<int64_t>(room.memory_bytes, 0) / memory_bytes);
    const int64_t next = tasks > 0 ? devices.too_small : free_milli;
    const int64_t fill = free_milli - tasks * milli;
    sum += weight *
           ((1 - kFillPart) * static_cast<double>(next) + kFillPart * static_cast<double>(fill));
  }
  return sum;
}

double small_share_factor(const Need& need) {
  if (need.share_milli == 0) return 1;
  return std::pow(static_cast<double>(need.share_milli) / kWholeGpu, kSmallShareExponent);
}

void add(UsualNeeds& usual, const Need& need, double weight) {
  auto group = std::find_if(usual.groups.begin(), usual.groups.end(), [&](const auto& known) {
    return known.gpus == need.gpus && known.share_milli == need.share_milli;
  });
  if (group == usual.groups.end())
    group = usual.groups.insert(group, {.gpus = need.gpus, .share_milli = need.share_milli});
  group->weight += weight;
  group->rests.push_back({need.cpu_milli, need.memory_bytes, weight});
}

UsualNeeds usual_needs(const std::vector<UsualClaim>& claims, const std::string& gpu_model,
                       int64_t gpu_memory_bytes) {
  UsualNeeds usual;
  double sum = 0;
  for (const UsualClaim& claim : claims) {
    const std::optional<Need> need = need_on(claim.claim, gpu_memory_bytes);
    const double weight = claim.weight * (need ? small_share_factor(*need) : 1);
    sum += weight;
    const bool of_model = claim.gpu_models.empty() ||
                          std::find(claim.gpu_models.begin(), claim.gpu_models.end(), gpu_model) !=
                              claim.gpu_models.end();
    if (need && need->gpu_milli() > 0 && of_model)
      add(usual, *need, weight);
    else
      usual.useless += weight;
  }
  if (sum <= 0) return usual;
  usual.useless /= sum;
  for (UsualNeeds::Group& group : usual.groups) {
    group.weight /= sum;
    for (UsualNeeds::Rest& rest : group.rests) rest.weight /= sum;
  }
  return usual;
}

}  // namespace

double waste(const UsualNeeds& usual, const NodeRoom& room) {
  int64_t free_milli = 0;
  for (const int free : room.devices) free_milli += std::max(free, 0);
  if (free_milli == 0) return 0;
  double sum = usual.useless * static_cast<double>(free_milli);
  for (const UsualNeeds::Group& group : usual.groups) sum += wasted_for(group, room, free_milli);
  return sum;
}

void Fragmentation::set(std::vector<UsualClaim> claims) {
  claims_ = std::move(claims);
  by_model_.clear();
}

const UsualNeeds& Fragmentation::usual_for(const std::string& gpu_model,
                                           int64_t gpu_memory_bytes) const {
  const std::pair key{gpu_model, gpu_memory_bytes};
  const auto known = by_model_.find(key);
  if (known != by_model_.end()) return known->second;
  return by_model_.emplace(key, usual_needs(claims_, gpu_model, gpu_memory_bytes)).first->second;
}

}  // namespace muster::schedule
