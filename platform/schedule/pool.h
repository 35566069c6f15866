// A gang as the scheduler follows it: what each of its tasks holds, and what it has been promised.
//
// Plain data. gang_books.h keeps it in step with the books of its pools.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "schedule/ledger.h"
#include "schedule/model.h"
#include "schedule/nodes.h"
#include "schedule/plan.h"

namespace muster::schedule {

struct Pool;
struct WaitClass;
struct GangState;

enum class TaskPhase : uint8_t {
  kOpen,     ///< holds nothing
  kRunning,  ///< holds its room
  kLeaving,  ///< evicted; holds its room until it is gone
};

/// Which promise a task makes room for.
struct MakesRoomFor {
  uint64_t gang = 0;  ///< its number; 0: none
  uint64_t promise = 0;
};

struct TaskState {
  TaskPhase phase = TaskPhase::kOpen;
  Booking held;                     ///< node -1: its node is gone from the cluster
  std::optional<Booking> promised;  ///< where it starts next
  MakesRoomFor leaves_for;
};

/// The order of victims: less goes first.
struct VictimKey {
  int priority = 0;
  bool below_minimum = false;
  uint64_t sequence = 0;
  uint64_t number = 0;
  GangState* gang = nullptr;

  bool operator<(const VictimKey& other) const {
    return std::tie(priority, below_minimum, other.sequence, other.number) <
           std::tie(other.priority, other.below_minimum, sequence, number);
  }
};

/// The part of a gang in one of the pools that it may use.
struct Entry {
  Pool* pool = nullptr;
  ProjectIndex leaf = kNoProject;  ///< kNoProject: the project was never known
  std::vector<Amounts> charge;     ///< of one task, by group
  Amounts requested;               ///< of it in the books
  WaitClass* waits_in = nullptr;
};

struct GangState {
  Gang gang;
  uint64_t number = 0;  ///< in order of arrival, from 1: what ties are broken by
  uint64_t shape = 0;   ///< equal for gangs that ask for the same; see shape.h
  std::vector<TaskState> tasks;
  std::vector<Entry> entries;  ///< in the order in which its pools are tried
  Pool* home = nullptr;        ///< where it holds or was promised room
  Amounts counted;             ///< of it in the books of its home
  uint64_t promise = 0;        ///< counts its promises
  int leaving_for_it = 0;      ///< tasks of others that are still leaving for its promise
  std::optional<Time> started;
  std::optional<Time> stale_since;
  std::optional<Time> not_before;   ///< waits until then
  std::optional<Time> cools_until;  ///< was evicted: evicts nobody until then
  std::optional<Constraint> told;   ///< the constraint of the last Wait
  uint64_t started_in = 0;          ///< number of the plan in which it last started anything
  size_t start_in_plan = 0;         ///< and which of its starts that is
  std::optional<VictimKey> core;    ///< as entered in the victims of its project
  std::optional<VictimKey> extras;
  std::optional<Time> expected_end;  ///< as entered in its pool
};

/// The group of each task: tasks are numbered through the groups.
std::vector<int> groups_of_tasks(const Gang& gang);

/// Tasks that run and stay, by group.
std::vector<int> running_by_group(const GangState& gang);
int running_tasks(const GangState& gang);
bool holds_anything(const GangState& gang);
bool has_promise(const GangState& gang);
bool is_leaving(const GangState& gang);
/// Something of it runs, and less than its minimum.
bool is_below_minimum(const GangState& gang);

/// How much of its minimum a gang has: the order within a project.
enum class ElasticState : uint8_t { kBelowMinimum, kAtMinimum, kAboveMinimum };

/// What it asks for next: its minimum, what it lacks of that, or one task more. Nothing where it
/// has all, or is promised or leaving something.
struct Want {
  ElasticState state = ElasticState::kBelowMinimum;
  std::vector<int> counts;  ///< by group
};
std::optional<Want> want_of(const GangState& gang);

/// The open tasks that `counts` stands for, the lowest numbers of each group, in group order.
std::vector<int> open_tasks(const GangState& gang, const std::vector<int>& counts);

/// The running tasks of which it may lose one without falling below its minimum; the one to go
/// first is first. The launcher goes last.
std::vector<int> extra_tasks(const GangState& gang);

std::vector<Booking> held_bookings(const GangState& gang);

Entry& entry_in(GangState& gang, const Pool& pool);
const Entry& entry_in(const GangState& gang, const Pool& pool);
Amounts charge_of(const Entry& entry, const std::vector<int>& counts);

// Those that wait in one pool, by project, gathered into classes that share one verdict: same
// project, same priority, same room asked for.
//
// Plain data with its order; no I/O. Not thread-safe.

/// Room that is asked for, whoever asks. What it was refused last holds until room on a node that
/// could serve it has grown.
struct AskKey {
  uint64_t shape = 0;
  std::vector<int> counts;
  uint64_t gang = 0;  ///< its number, where the answer depends on where the rest of it runs; else 0

  auto operator<=>(const AskKey&) const = default;
};

struct Ask {
  AskKey key;
  std::vector<Claim> claims;          ///< that it has at least one task of
  std::vector<WaitClass*> classes;    ///< that ask for it
  std::optional<Shortage> shortage;   ///< no room now; nothing: not known
  bool only_reserved = false;         ///< there is room, but it is kept for others
  uint64_t consolidation_failed = 0;  ///< the pool's epoch then
};

struct FirstInOrder {
  bool operator()(const GangState* left, const GangState* right) const {
    return std::tie(left->gang.sequence, left->number) <
           std::tie(right->gang.sequence, right->number);
  }
};
using Waiters = std::set<GangState*, FirstInOrder>;

struct ClassKey {
  int priority = 0;
  ElasticState state = ElasticState::kBelowMinimum;
  bool preemptible = true;
  AskKey ask;

  auto operator<=>(const ClassKey&) const = default;
};

struct WaitClass {
  ClassKey key;
  ProjectIndex leaf = kNoProject;
  Ask* ask = nullptr;
  Amounts charge;
  Waiters waiters;
  Waiters untold;  ///< those of which no Wait has been reported since they came
  Constraint constraint = Constraint::kNone;
  std::optional<CapacityRefusal> refusal;
  job::JobRef held_by;          ///< kReserved: the gang that the room is kept for
  bool changed = false;         ///< its constraint, in this plan
  bool emptied = false;         ///< stands among its pool's empty_classes
  uint64_t reclaim_failed = 0;  ///< the pool's epoch then
  uint64_t preemption_failed = 0;

  GangState& head() const { return **waiters.begin(); }

  /// One task more for gangs that run with their minimum. They take what is free, or theirs by
  /// right; nobody is moved for it, and no room is kept.
  bool only_grows() const { return key.state != ElasticState::kBelowMinimum; }
};

/// What of one project waits and runs in one pool.
struct ProjectQueue {
  std::map<ClassKey, std::unique_ptr<WaitClass>> classes;
  std::set<VictimKey> cores;  ///< gangs that may be evicted, the first to go first
  /// In this allocation, what is less important than this takes no room.
  std::optional<int> held_for;
  std::set<VictimKey> extras;  ///< those that can lose a task without falling below their minimum
};

// One pool: its nodes, its books, who waits and who runs there. Pools know nothing of each other.
//
// Plain data for the actions of a cycle, each in a file of its own; gang_books.h changes it where a
// gang changes.

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
