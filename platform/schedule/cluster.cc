#include "schedule/cluster.h"

#include <algorithm>

#include "schedule/gang_books.h"
#include "schedule/reservation.h"

namespace muster::schedule {

bool is_listed(const GangState& gang, const Pool& pool) {
  return std::any_of(gang.entries.begin(), gang.entries.end(),
                     [&](const Entry& entry) { return entry.pool == &pool; });
}

Pool& Cluster::pool_of(const std::string& name) {
  std::unique_ptr<Pool>& pool = pools[name];
  if (pool == nullptr) {
    pool = std::make_unique<Pool>();
    pool->name = name;
    pool->ledger.set_decay(options.decay);
    set_projects(*pool, projects);
  }
  return *pool;
}

GangState* Cluster::find(const std::string& id) const {
  const auto entry = gangs.find(id);
  return entry == gangs.end() ? nullptr : entry->second.get();
}

std::unique_ptr<GangState> Cluster::make_guest(Gang gang) {
  auto guest = std::make_unique<GangState>();
  guest->number = next_number;
  guest->shape = shapes.take(gang);
  guest->gang = std::move(gang);
  guest->tasks.resize(static_cast<size_t>(std::max(task_count(guest->gang), 0)));
  std::vector<std::string> names = guest->gang.pools;
  if (names.empty()) names.emplace_back(kDefaultPool);
  for (const std::string& name : names) {
    Pool& pool = pool_of(name);
    if (!is_listed(*guest, pool)) enter(*guest, pool);
  }
  return guest;
}

GangState& Cluster::enter_gang(Gang gang) {
  if (GangState* const known = find(gang.id); known != nullptr) forget_gang(*known);
  std::unique_ptr<GangState> guest = make_guest(std::move(gang));
  GangState& entered = *guest;
  ++next_number;
  for (const Entry& entry : entered.entries) entry.pool->usual.add(entered.gang);
  by_number.emplace(entered.number, &entered);
  gangs.emplace(entered.gang.id, std::move(guest));
  return entered;
}

void Cluster::vacate_all(GangState& gang) {
  if (gang.home != nullptr) {
    for (size_t task = 0; task < gang.tasks.size(); ++task) {
      has_left(vacate(gang, static_cast<int>(task)));
    }
    drop_promise(gang);
  }
  for (const Entry& entry : gang.entries) drop_reservation(*entry.pool, gang);
  if (gang.not_before) delayed.erase({*gang.not_before, gang.number, &gang});
  gang.not_before.reset();
}

void Cluster::forget_gang(GangState& gang) {
  vacate_all(gang);
  refresh(gang);
  withdraw(gang);
  for (const Entry& entry : gang.entries) entry.pool->just_started.erase(&gang);
  shapes.drop(gang.shape);
  by_number.erase(gang.number);
  gangs.erase(std::string(gang.gang.id));
}

void Cluster::has_left(const MakesRoomFor& whom) {
  const auto entry = by_number.find(whom.gang);
  if (entry == by_number.end() || entry->second->promise != whom.promise) return;
  --entry->second->leaving_for_it;
}

}  // namespace muster::schedule
