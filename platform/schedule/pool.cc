#include "schedule/pool.h"

#include <algorithm>

namespace muster::schedule {

bool is_leaf(const Pool& pool, ProjectIndex project) {
  return project != kNoProject && pool.ledger.find(pool.ledger.name(project)) == project &&
         pool.ledger.children(project).empty();
}

void set_projects(Pool& pool, const std::vector<Project>& projects) {
  pool.ledger.set_projects(projects, pool.name);
  for (const Project& project : projects) pool.queue_of(pool.ledger.find(project.name));
  pool.dirty = true;
  ++pool.epoch;
}

void settle_books(Pool& pool) {
  if (pool.all_grew) pool.ledger.set_total(pool.nodes.total());
  pool.ledger.settle_fair_shares();
}

namespace {

bool might_hold(const Amounts& free, const std::vector<int>& devices, const Claim& claim) {
  if (claim.cpu_milli > free.cpu_milli || claim.memory_bytes > free.memory_bytes) return false;
  if (claim.gpus > 0) return std::count(devices.begin(), devices.end(), kWholeGpu) >= claim.gpus;
  if (claim.gpu_share_milli == 0 && claim.gpu_memory_bytes == 0) return true;
  const int share = std::max(claim.gpu_share_milli, 1);
  return std::any_of(devices.begin(), devices.end(), [&](int device) { return device >= share; });
}

}  // namespace

bool might_hold_one(const Nodes& nodes, NodeIndex node, const std::vector<Claim>& claims,
                    Room room) {
  const Amounts free = nodes.free(node, room);
  const std::vector<int> devices = nodes.free_devices(node, room);
  return std::any_of(claims.begin(), claims.end(),
                     [&](const Claim& claim) { return might_hold(free, devices, claim); });
}

bool has_room_in_all(const Pool& pool, const Amounts& charge) {
  return pool.cordoned > 0 || (pool.counted + charge).within(pool.nodes.total());
}

void forget_shortages(Pool& pool) {
  std::sort(pool.grown.begin(), pool.grown.end());
  pool.grown.erase(std::unique(pool.grown.begin(), pool.grown.end()), pool.grown.end());
  for (auto& [key, ask] : pool.asks) {
    if (!ask.shortage) continue;
    // Room that is kept for a gang looks taken to all others, and may be what it has waited for.
    const bool grew = pool.all_grew || ask.only_reserved || !pool.kept.empty() ||
                      std::any_of(pool.grown.begin(), pool.grown.end(), [&](NodeIndex node) {
                        return might_hold_one(pool.nodes, node, ask.claims, Room::kNow);
                      });
    if (grew) ask.shortage.reset();
  }
  for (const Reservation& kept : pool.kept) {
    const WaitClass* const waiting = entry_in(*kept.gang, pool).waits_in;
    const bool grew =
        std::any_of(kept.bookings.begin(), kept.bookings.end(), [&](const Booking& booking) {
          return std::binary_search(pool.grown.begin(), pool.grown.end(), booking.node);
        });
    if (grew && waiting != nullptr) waiting->ask->shortage.reset();
  }
  pool.grown.clear();
  pool.all_grew = false;
}

}  // namespace muster::schedule
