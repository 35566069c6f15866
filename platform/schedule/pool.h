// One pool: its nodes, its books, who waits and who runs there. Pools know nothing of each other.
//
// Plain data for the actions of a cycle, each in a file of its own; gang_books.h changes it where a
// gang changes.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "schedule/ledger.h"
#include "schedule/nodes.h"
#include "schedule/usual_claims.h"
#include "schedule/waiting.h"

namespace muster::schedule {

struct Tenant {
  GangState* gang = nullptr;
  int task = 0;
};

struct OlderGang {
  bool operator()(const GangState* left, const GangState* right) const {
    return left->number < right->number;
  }
};
using GangSet = std::set<GangState*, OlderGang>;

/// Room that is kept for a gang that waits. Its bookings are reserved in the nodes: what is free
/// of them goes to nobody else, and neither does what becomes free.
struct Reservation {
  GangState* gang = nullptr;
  std::vector<Booking> bookings;
  std::optional<Time> start;  ///< by when they are free; nothing: nobody knows
  bool within_quota = false;  ///< of the gang's project, with it
};

struct Pool {
  std::string name;
  Nodes nodes;
  Ledger ledger;
  UsualClaims usual;

  std::vector<std::vector<Tenant>> tenants;  ///< by node
  std::vector<ProjectQueue> queues;          ///< by project, those above others included
  std::map<AskKey, Ask> asks;
  std::vector<WaitClass*> empty_classes;  ///< to be thrown away when the plan is made

  GangSet promised;
  GangSet homeless;  ///< waiting, and their project is unknown or has projects below it
  GangSet stale;
  GangSet just_started;  ///< in the plan being made: nobody's victims in it
  Amounts counted;       ///< of all gangs in the books
  int cordoned = 0;      ///< nodes
  std::set<std::tuple<Time, uint64_t, GangState*>> expected_ends;
  std::vector<Reservation> kept;  ///< past the patience: until they start

  // What has changed since the last plan.
  bool dirty = true;
  bool all_grew = true;          ///< nodes were set, or removed
  std::vector<NodeIndex> grown;  ///< on these, room became free
  uint64_t epoch = 1;            ///< counts changes of what is booked
  uint64_t plan = 0;             ///< number of the one being made; 0: none
  uint64_t allocated_in = 0;     ///< number of the plan in which allocate has been through
  bool deferred = false;         ///< a gang was left for after other pools had their turn
  bool unfinished = false;       ///< trials are left for the next plan
  std::optional<Time> again_at;

  ProjectQueue& queue_of(ProjectIndex leaf) {
    if (static_cast<size_t>(leaf) >= queues.size()) queues.resize(static_cast<size_t>(leaf) + 1);
    return queues[static_cast<size_t>(leaf)];
  }
  std::vector<Tenant>& tenants_of(NodeIndex node) {
    if (static_cast<size_t>(node) >= tenants.size()) tenants.resize(static_cast<size_t>(node) + 1);
    return tenants[static_cast<size_t>(node)];
  }
  void look_again_at(Time time) {
    if (!again_at || time < *again_at) again_at = time;
  }
};

/// Gangs may wait in this project: it is known, and has none below it.
bool is_leaf(const Pool& pool, ProjectIndex project);

void set_projects(Pool& pool, const std::vector<Project>& projects);

/// The total and the fair shares are as nodes and requests have it.
void settle_books(Pool& pool);

/// Whether one task of some claim of `ask` could go on `node`: coarse, for skipping what is
/// hopeless. Never false where it could.
bool might_hold_one(const Nodes& nodes, NodeIndex node, const std::vector<Claim>& claims,
                    Room room);

/// Whether so much is free in all: who moves others for it moves them somewhere. What is on
/// cordoned nodes is in the books, and the nodes are not in the total: then it is not known, and
/// true.
bool has_room_in_all(const Pool& pool, const Amounts& charge);

/// Forgets the refusals that the room grown since cannot stand behind any more.
void forget_shortages(Pool& pool);

}  // namespace muster::schedule
