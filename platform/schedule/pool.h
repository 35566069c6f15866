// One pool: its nodes, its ledger, its running and waiting gangs. Pools are independent of each
// other.
//
// Plain data for the actions of a cycle. gang_books.h updates it when a gang changes. Not
// thread-safe.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "schedule/ledger.h"
#include "schedule/model.h"
#include "schedule/nodes.h"
#include "schedule/plan.h"
#include "schedule/project_ranking.h"

namespace muster::schedule {

struct Pool;
struct WaitClass;
struct GangState;

enum class TaskPhase : uint8_t {
  kOpen,     ///< holds nothing
  kRunning,  ///< holds resources
  kLeaving,  ///< evicted or being stopped; holds its resources until it has ended
};

/// The promise that needs the resources of a leaving task.
struct MakesRoomFor {
  uint64_t gang = 0;  ///< GangState::number; 0: no gang
  uint64_t promise = 0;
};

struct TaskState {
  TaskPhase phase = TaskPhase::kOpen;
  Booking held;                     ///< node -1: its node was removed from the cluster
  Pool* held_in = nullptr;          ///< the pool of that node: mostly the gang's home
  uint64_t seated = 0;              ///< Pool::seatings of that pool when it got `held`
  bool stuck = false;               ///< leaving, but not expected to end soon; see settle_stuck()
  std::optional<Booking> promised;  ///< where the task starts next
  MakesRoomFor leaves_for;
  bool counts_until_end = false;  ///< leaves, but not for another gang: the ledger still counts it
};

/// The order in which gangs of a project are evicted, least key first.
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

/// A gang's data in one of the pools that it may use.
struct PoolEntry {
  Pool* pool = nullptr;
  ProjectIndex leaf = kNoProject;  ///< kNoProject: the project was never added
  std::vector<Amounts> charge;     ///< of one task in the ledger, by group
  bool keeps_charge = false;       ///< `charge` is that of an earlier time, which was lower
  Amounts requested;               ///< as entered in the ledger
  Amounts repeated;                ///< the part of `requested` that another pool counts, too
  WaitClass* waits_in = nullptr;
};

/// What makes a reason another one; its amounts change all the time.
struct ReportedReason {
  Constraint constraint = Constraint::kNone;
  bool none_is_open = false;  ///< every node that the gang may use is closed

  bool operator==(const ReportedReason&) const = default;
};

/// A gang as the scheduler tracks it: the resources that each task holds or was promised.
struct GangState {
  Gang gang;
  uint64_t number = 0;  ///< order of arrival, from 1; breaks ties
  uint64_t shape = 0;   ///< equal for gangs with equal requests; see ShapeTable
  std::vector<TaskState> tasks;
  std::vector<PoolEntry> entries;  ///< in the order in which the pools are tried
  Pool* home = nullptr;            ///< the pool in which it holds or was promised resources
  Amounts counted;                 ///< as entered in the ledger of `home`
  uint64_t promise = 0;            ///< number of promises so far
  int leaving_for_it = 0;          ///< leaving tasks of other gangs that its promise waits for
  std::optional<Time> started;
  std::optional<Time> stale_since;
  std::optional<Time> waits_since;  ///< for its minimum; nothing: it does not, or not yet in a plan
  std::optional<Time> not_before;   ///< does not start before
  std::optional<Time> cools_until;  ///< was evicted, and evicts no gang before
  std::optional<Time> ends_by;      ///< is being stopped, and is expected to have ended by then
  bool overdue = false;             ///< has not ended by then: not expected to end soon
  std::optional<ReportedReason> reported_reason;  ///< what was last reported
  uint64_t started_in = 0;        ///< number of the last plan that started tasks of it
  size_t start_in_plan = 0;       ///< index of that start in the plan
  std::optional<VictimKey> core;  ///< as entered in ProjectQueue::cores
  std::optional<VictimKey> extras;
  std::optional<Time> expected_end;  ///< as entered in Pool::expected_ends
};

/// The group of each task.
std::vector<int> groups_of_tasks(const Gang& gang);

/// Running tasks by group, without the leaving ones.
std::vector<int> running_by_group(const GangState& gang);
int running_tasks(const GangState& gang);
bool holds_anything(const GangState& gang);
bool has_promise(const GangState& gang);
bool is_leaving(const GangState& gang);
/// Some tasks run, but fewer than its minimum.
bool is_below_minimum(const GangState& gang);

/// Whether a gang has its minimum; gangs below it are served first within a project.
enum class ElasticState : uint8_t { kBelowMinimum, kAtMinimum, kAboveMinimum };

/// What a gang requests next: the rest of its minimum, or one more task. Nothing if all its tasks
/// run, or if it has a promise or leaving tasks.
struct NextRequest {
  ElasticState state = ElasticState::kBelowMinimum;
  std::vector<int> counts;  ///< by group
};
std::optional<NextRequest> next_request_of(const GangState& gang);

/// The `counts[g]` open tasks with the lowest numbers of each group, in group order.
std::vector<int> open_tasks(const GangState& gang, const std::vector<int>& counts);

/// The running tasks beyond its minimum, in the order in which they are evicted. The launcher is
/// last.
std::vector<int> extra_tasks(const GangState& gang);

/// What the task holds on the nodes of `pool`; node -1: nothing.
Booking booking_in(const TaskState& task, const Pool& pool);
/// What its running tasks hold on the nodes of its home.
std::vector<Booking> held_bookings(const GangState& gang);
/// Whether one of its tasks holds resources of a node that does not answer.
bool is_on_silent_node(const GangState& gang);

PoolEntry& entry_in(GangState& gang, const Pool& pool);
const PoolEntry& entry_in(const GangState& gang, const Pool& pool);
Amounts charge_of(const PoolEntry& entry, const std::vector<int>& counts);

// Waiting gangs. Gangs of the same project with the same priority and request form a class: they
// share one verdict.

/// A request for resources, independent of the gang. A refusal holds until resources become free on
/// a node that could serve the request.
struct RequestKey {
  uint64_t shape = 0;
  std::vector<int> counts;
  /// The gang's number if the answer depends on where its other tasks run, or the gang keeps an
  /// earlier charge; else 0.
  uint64_t gang = 0;

  auto operator<=>(const RequestKey&) const = default;
};

struct SharedRequest {
  RequestKey key;
  std::vector<Claim> claims;          ///< of its tasks, each once
  std::vector<WaitClass*> classes;    ///< with this request, in the order of their creation
  std::vector<WaitClass*> in_order;   ///< those that were put in order by the latest allocation
  Amounts least_charge = kBoundless;  ///< no class of it, past or present, is charged less
  std::optional<Shortage> shortage;   ///< why it does not fit now; nothing: unknown
  bool only_reserved = false;         ///< it fits, but only on reserved resources
  bool none_is_open = false;          ///< the last shortage: each node it may use is closed
  bool reported_never = false;        ///< the last reason: it fits on no empty nodes
  uint64_t consolidation_failed = 0;  ///< Pool::epoch at that time
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
  RequestKey ask;

  auto operator<=>(const ClassKey&) const = default;
};

/// The place of a class in the ServeOrder that exists at present.
struct Served {
  uint64_t by = 0;    ///< the number of the order; 0 or an earlier number: in none
  uint64_t head = 0;  ///< GangState::number of the gang that is served next, when it was entered
  Waiters::const_iterator gang;
};

struct WaitClass {
  ClassKey key;
  uint64_t number = 0;  ///< order of creation
  ProjectIndex leaf = kNoProject;
  SharedRequest* ask = nullptr;
  Amounts charge;
  Waiters waiters;
  Waiters unexplained;  ///< waiters without a reported Wait
  Constraint constraint = Constraint::kNone;
  std::optional<CapacityRefusal> refusal;
  job::JobRef held_by;             ///< for kReserved: the gang with the reservation
  bool changed = false;            ///< `constraint` changed in this plan
  bool emptied = false;            ///< is in Pool::empty_classes
  bool needs_explanation = false;  ///< is in Pool::to_explain
  bool is_unsure = false;          ///< is in Pool::unsure
  bool has_new_head = false;       ///< is in Pool::new_heads
  uint64_t reclaim_failed = 0;     ///< Pool::epoch at that time
  uint64_t preemption_failed = 0;
  Served served;

  GangState& head() const { return **waiters.begin(); }

  /// The gangs have their minimum and request one more task. It gets free resources or resources
  /// within the quota; no gang is moved for it, and nothing is reserved.
  bool only_grows() const { return key.state != ElasticState::kBelowMinimum; }
};

/// A class at its place among the classes of its project: by priority, elastic state and age. Has
/// what most plans need of a class, so that they do not touch the class itself.
struct QueuedClass {
  int negative_priority = 0;
  ElasticState state = ElasticState::kBelowMinimum;
  uint64_t sequence = 0;  ///< of its first gang
  uint64_t number = 0;    ///< GangState::number of that gang
  WaitClass* waiting = nullptr;
  SharedRequest* ask = nullptr;

  auto operator<=>(const QueuedClass&) const = default;
};

/// The waiting and running gangs of one project in one pool.
struct ProjectQueue {
  std::map<ClassKey, std::unique_ptr<WaitClass>> classes;
  /// The classes with waiting gangs, in order, if `is_in_order`. Read it by classes_in_order().
  std::vector<QueuedClass> in_order;
  bool is_in_order = false;           ///< false: a class, or the first gang of a class, has changed
  Amounts least_charge = kBoundless;  ///< no class of it, past or present, is charged less
  std::set<VictimKey> cores;          ///< gangs that may be evicted, in that order
  /// What the first eviction takes from it, unless a gang may lose a single task first.
  Amounts first_lost;
  std::set<VictimKey> extras;  ///< gangs that may lose a task and keep their minimum
};

/// A task on a node.
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

/// Resources reserved for a waiting gang. The bookings are kept in the nodes: no other gang gets
/// these resources, now or when they become free.
struct Reservation {
  GangState* gang = nullptr;
  ProjectIndex leaf = kNoProject;  ///< the project of the gang
  std::vector<Booking> bookings;
  std::vector<NodeIndex> nodes;  ///< of the bookings, ascending
  std::optional<Time> start;     ///< when all of them are free; nothing: unknown
  bool within_quota = false;     ///< the project stays within its quota with this gang
  bool lifted = false;           ///< the bookings are not in the books at present
  // Without a start: the gang starts when the tasks that ran on these nodes have ended.
  std::vector<NodeIndex> emptied;  ///< ascending
  uint64_t seatings = 0;           ///< Pool::seatings when it was made
};

struct Pool {
  std::string name;
  Nodes nodes;
  Ledger ledger;
  UsualClaims usual;

  std::vector<std::vector<Tenant>> tenants;  ///< by node
  std::vector<ProjectQueue> queues;          ///< by project, parents included
  std::map<RequestKey, SharedRequest> asks;
  std::vector<WaitClass*> empty_classes;  ///< deleted at the end of the plan

  // Classes that a plan looks at one by one. There may be a hundred thousand classes, of which an
  // event concerns a few. Each list may hold more than its condition requires, for example empty
  // classes: a walk through it drops these.
  std::vector<WaitClass*> to_explain;  ///< have unexplained gangs, or a changed constraint
  std::vector<WaitClass*> unsure;      ///< their constraint is neither kRoom nor kTopology
  std::vector<WaitClass*> new_heads;   ///< their first gang may be within Options::forbearance

  GangSet entered;  ///< began to wait for their minimum, and lose_patience() has not seen them yet
  GangSet promised;
  GangSet homeless;  ///< waiting gangs whose project is unknown or has subprojects
  GangSet stale;
  GangSet ending;        ///< with tasks that leave, but not for another gang
  GangSet just_started;  ///< in this plan; not evicted in the same plan
  Amounts counted;       ///< of all gangs in the ledger
  /// By project: the sums of PoolEntry::repeated.
  std::map<ProjectIndex, WideAmounts> repeated_requests;
  /// Projects with a class that is more important than one of their gangs that may be evicted.
  std::set<ProjectIndex> contested;
  ProjectRankings rankings;
  Amounts least_charge = kBoundless;  ///< no class, past or present, is charged less
  /// The Nodes::smallest_gpu_memory() under which the gangs are charged.
  int64_t charged_by_memory = 0;
  int cordoned = 0;        ///< number of cordoned nodes
  int elsewhere = 0;       ///< number of tasks in `counted` that hold resources of another pool
  int gangs = 0;           ///< number of gangs that may use it
  bool had_nodes = false;  ///< and so may have a history of usage
  std::set<std::tuple<Time, uint64_t, GangState*>> expected_ends;
  std::vector<Reservation> kept;   ///< of gangs past Options::patience, until they start
  std::vector<Reservation> timed;  ///< with a start; exist only as long as a Reservations object
  uint64_t seatings = 0;           ///< number of tasks that got a place so far

  // Changes since the last plan.
  bool dirty = true;
  bool all_grew = true;          ///< nodes were set or removed
  std::vector<NodeIndex> grown;  ///< nodes on which resources became free
  uint64_t epoch = 1;            ///< number of changes of bookings
  uint64_t plan = 0;             ///< number of the plan that is being made; 0: no plan
  uint64_t allocated_in = 0;     ///< number of the last plan in which allocate() ran
  uint64_t orders = 0;           ///< number of ServeOrders that were made
  uint64_t classes = 0;          ///< number of classes that were made
  bool deferred = false;         ///< a gang waits for the second round of allocate()
  bool unfinished = false;       ///< the next plan continues with trials
  std::optional<Time> again_at;
  std::optional<Time> planned_at;  ///< the time of the latest plan

  void explain_later(WaitClass& waiting) {
    if (!std::exchange(waiting.needs_explanation, true)) to_explain.push_back(&waiting);
  }
  void doubt(WaitClass& waiting) {
    if (!std::exchange(waiting.is_unsure, true)) unsure.push_back(&waiting);
  }
  void note_new_head(WaitClass& waiting) {
    if (!std::exchange(waiting.has_new_head, true)) new_heads.push_back(&waiting);
  }

  /// Call when a class comes or goes, or gets another first gang.
  void classes_changed(ProjectIndex leaf) {
    queue_of(leaf).is_in_order = false;
    ledger.note_change(leaf);
  }

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

/// The classes of a project that have waiting gangs, in the order in which the project is served.
/// Kept until a class or its first gang changes.
const std::vector<QueuedClass>& classes_in_order(ProjectQueue& queue);

/// Whether Pool::contested has to contain the project of this queue.
bool is_contested(const ProjectQueue& queue);

/// Updates Pool::contested. Call after a change of the classes of the project, or of its gangs that
/// may be evicted.
void index_contested(Pool& pool, ProjectIndex leaf);

/// The smaller of both in each resource.
Amounts least_of(const Amounts& one, const Amounts& other);

/// Whether the refusal of its request is the reason for which a class waits.
inline bool waits_for_room(const WaitClass& waiting) {
  return waiting.constraint == Constraint::kRoom || waiting.constraint == Constraint::kTopology;
}

/// Whether gangs may wait in this project: it exists and has no subprojects.
bool is_leaf(const Pool& pool, ProjectIndex project);

void set_projects(Pool& pool, const std::vector<Project>& projects);

/// Whether anything that the pool keeps from plan to plan differs from the same made anew from
/// classes, gangs and books. For tests. REQUIRES: called after settle_books().
bool is_stale(Pool& pool);

/// Updates the ledger's total and fair shares from nodes and requests.
void settle_books(Pool& pool);

/// Whether a task with one of `claims` may fit on `node`. A quick filter: never false if one fits.
bool might_hold_one(const Nodes& nodes, NodeIndex node, const std::vector<Claim>& claims,
                    FreeWhen room);

/// Whether a task with one of `claims` may fit on `node` now if nothing were reserved there. As
/// might_hold_one().
bool might_hold_one_unreserved(const Nodes& nodes, NodeIndex node,
                               const std::vector<Claim>& claims);

/// Whether the pool has `charge` free in total; moving gangs cannot help otherwise. True if nodes
/// are cordoned, or tasks hold resources of another pool: the ledger counts these tasks but not the
/// resources of their nodes.
bool has_room_in_all(const Pool& pool, const Amounts& charge);

/// Forgets refusals that may no longer hold, because resources became free.
void forget_shortages(Pool& pool);

}  // namespace muster::schedule
