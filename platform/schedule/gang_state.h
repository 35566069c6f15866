// A gang as the scheduler follows it: what each of its tasks holds, and what it has been promised.
//
// Plain data. gang_books.h keeps it in step with the books of its pools.
#pragma once

#include <memory>
#include <optional>
#include <vector>

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

}  // namespace muster::schedule
