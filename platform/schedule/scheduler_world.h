// Small random worlds for scheduler_property_test.cc: a cluster, its projects and its gangs, under
// random events that are carried out as a caller of the scheduler would.
//
//   SchedulerWorld world(options);
//   for (const WorldEvent& event : random_events(seed, 60, kAllKinds)) world.apply(event);
//   EXPECT_EQ(world.fault, "");
//
// The features of a node follow from its name, as those of a machine that leaves the cluster and
// comes back. Deterministic: equal seeds make equal worlds. Not thread-safe.
#pragma once

#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "schedule/testing.h"

namespace muster::schedule::testing {

enum class WorldEventKind {
  kSubmit,
  kEnd,
  kLose,
  kRelease,
  kWait,
  kRemoveNode,
  kSetNode,
  kSetProjects,
  kRequeue,
  kPlan,
};

/// The meaning of its numbers depends on the state of the world: any sequence is valid.
struct WorldEvent {
  WorldEventKind kind;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
};

inline constexpr unsigned kSubmitsAndPlans = 14;
inline constexpr unsigned kCalmKinds = 23;  ///< nodes, projects and started gangs stay
inline constexpr unsigned kAllKinds = 29;

/// Projects, nodes, and then `count` events of the first `kinds` kinds.
std::vector<WorldEvent> random_events(unsigned seed, int count, unsigned kinds);

/// As C++, to be pasted into a test.
std::string events_text(const std::vector<WorldEvent>& events);

/// The entry at this number modulo the size.
template <class Map>
auto& nth(Map& entries, unsigned number) {
  return *std::next(entries.begin(), static_cast<std::ptrdiff_t>(number % entries.size()));
}

/// A task that runs.
struct HeldPlace {
  TaskPlace place;
  bool leaves = false;
};
using HeldTasks = std::map<int, HeldPlace>;

/// The state that a caller of the scheduler keeps, and the faults that it would report.
class SchedulerWorld {
 public:
  explicit SchedulerWorld(Options options) : scheduler(options) {}

  void apply(const WorldEvent& event);
  void carry_out(const Plan& plan);
  /// Evicted tasks end: all of them, or those of one gang.
  void release(bool all);
  /// Plans until five plans in a row are empty; false: they do not become empty.
  bool settle();
  void set_projects(unsigned seed);

  Scheduler scheduler;
  Time now = kStart;
  std::string fault;  ///< the first one; empty: none
  std::vector<Plan> plans;
  std::map<std::string, Gang> gangs;
  std::map<std::string, HeldTasks> held;
  std::map<std::string, Node> nodes;
  std::vector<Project> projects;

 private:
  void complain(const std::string& what) {
    if (fault.empty()) fault = what;
  }
  const Gang* pick(unsigned which) const;
  void submit(const WorldEvent& event);
  void end(const std::string& id);
  void lose(const WorldEvent& event);
  void remove_node(unsigned which);
  void set_node(const WorldEvent& event);
  void take_start(const PlannedStart& start);
  void take_eviction(const Eviction& eviction);
  void check_node(const std::string& id, int task);
  void check_gpus(const std::string& id, const TaskPlace& place);
  void check_limits(const Plan& plan);
  void check_promises(const Plan& plan);
  const Project* find_project(const std::string& name) const;
  int64_t used_by(const Project& project) const;

  uint64_t next_ = 0;
  std::set<std::string> lost_some_;
  std::set<std::string> promised_;  ///< gangs that were promised places since no task leaves
};

/// Gangs, many of them elastic, whose tasks are scattered over the nodes with gaps between them, as
/// after the end of other gangs.
class ScatteredWorld {
 public:
  ScatteredWorld(unsigned seed, const Options& options);

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }
  Gang next_gang();
  /// Places each task on a random node; if one of them does not fit, places no task.
  void run(const Gang& gang);

  std::mt19937 random_;
  std::map<std::string, int> taken_;
  uint64_t number_ = 0;

 public:
  SchedulerWorld world;
};

/// Projects with more one-GPU gangs than free GPUs, submitted in random order. Their quotas add up
/// to no more than the GPUs.
struct Crowd {
  Stage stage;
  int gpus = 0;
  std::vector<std::string> names;
};
Crowd crowd_of(unsigned seed);

}  // namespace muster::schedule::testing
