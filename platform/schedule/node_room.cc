#include "schedule/node_room.h"

#include <algorithm>
#include <bit>

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
  free_room(node, use, use, room);
}

void free_room(const Node& node, const NodeUse& one, const NodeUse& other, NodeRoom& room) {
  const auto present = static_cast<size_t>(device_count(node));
  room.devices.resize(std::max({present, one.devices.size(), other.devices.size()}));
  room.gpu_milli = 0;
  for (size_t device = 0; device < room.devices.size(); ++device) {
    const int capacity = device < present ? kWholeGpu : 0;
    room.devices[device] = capacity - std::max(booked(one, device), booked(other, device));
    room.gpu_milli += room.devices[device];
  }
  while (room.devices.size() > present && room.devices.back() == 0) room.devices.pop_back();
  room.lacks_devices = room.devices.size() > present;
  room.cpu_milli = node.cpu_milli - std::max(one.cpu_milli, other.cpu_milli);
  room.memory_bytes = node.memory_bytes - std::max(one.memory_bytes, other.memory_bytes);
  room.task_slots =
      node.task_slots == 0 ? kNoSlotBound : node.task_slots - std::max(one.tasks, other.tasks);
}

bool wants_gpu(const Claim& claim) {
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

}  // namespace muster::schedule
