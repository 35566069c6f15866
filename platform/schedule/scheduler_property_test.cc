// Small random clusters under random events, checked against properties that always hold. A failing
// sequence is shortened as long as it still fails. Seeds are fixed.
#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>
#include <sstream>
#include <utility>

#include "schedule/test_words.h"
#include "schedule/testing.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;
using testing::kStart;

enum class Kind {
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

/// The meaning of its numbers depends on the state of the cluster: any sequence is valid.
struct Event {
  Kind kind;
  unsigned a = 0;
  unsigned b = 0;
  unsigned c = 0;
};

/// The entry at this number modulo the size.
template <class Map>
auto& nth(Map& entries, unsigned number) {
  return *std::next(entries.begin(), static_cast<std::ptrdiff_t>(number % entries.size()));
}

struct Held {
  TaskPlace place;
  bool leaves = false;
};

/// The state that a caller of the scheduler keeps, and the faults that it would report.
class SchedulerWorld {
 public:
  explicit SchedulerWorld(Options options) : scheduler(options) {}

  void apply(const Event& event) {
    switch (event.kind) {
      case Kind::kSubmit:
        return submit(event);
      case Kind::kEnd:
        if (const Gang* const gang = pick(event.a)) end(gang->id);
        return;
      case Kind::kLose:
        return lose(event);
      case Kind::kRelease:
        return release(event.a % 2 == 0);
      case Kind::kWait:
        now += seconds(event.a % 90);
        return;
      case Kind::kRemoveNode:
        return remove_node(event.a);
      case Kind::kSetNode:
        return set_node(event);
      case Kind::kSetProjects:
        return set_projects(event.a);
      case Kind::kRequeue:
        if (const Gang* const gang = pick(event.a)) {
          held[gang->id].clear();
          scheduler.requeue(gang->id);
        }
        return;
      case Kind::kPlan:
        carry_out(scheduler.plan(now));
        return;
    }
  }

  void carry_out(const Plan& plan) {
    plans.push_back(plan);
    for (const PlannedStart& start : plan.starts) take_start(start);
    for (const Eviction& eviction : plan.evictions) take_eviction(eviction);
    check_limits(plan);
    check_promises(plan);
  }

  void release(bool all) {
    bool first = true;
    for (auto& [id, tasks] : held) {
      std::vector<int> gone;
      for (const auto& [task, state] : tasks) {
        if (state.leaves && (all || first)) gone.push_back(task);
      }
      if (gone.empty()) continue;
      first = false;
      for (const int task : gone) tasks.erase(task);
      scheduler.released(id, gone);
    }
  }

  /// Plans until five plans in a row are empty.
  bool settle() {
    int quiet = 0;
    for (int i = 0; i < 300 && quiet < 5 && fault.empty(); ++i) {
      release(true);
      const Plan plan = scheduler.plan(now);
      const bool is_empty = plan.starts.empty() && plan.evictions.empty() && plan.promises.empty();
      carry_out(plan);
      quiet = is_empty ? quiet + 1 : 0;
      now += seconds(is_empty ? 61 : 1);
    }
    return quiet == 5;
  }

  void set_projects(unsigned seed) {
    std::mt19937 random(seed);
    std::vector<Project> list;
    const bool departments = random() % 3 == 0;
    if (departments) {
      for (const char* name : {"d0", "d1"}) {
        list.push_back(testing::project(
            name, {.deserved = int(random() % 5), .weight = double(random() % 3)}));
      }
    }
    for (const char* name : {"p0", "p1", "p2"}) {
      testing::Share share{.deserved = int(random() % 4),
                           .weight = double(random() % 3),
                           .limit = random() % 4 == 0 ? int(random() % 5) : -1,
                           .priority = random() % 5 == 0 ? 101 : 100};
      if (departments) share.parent = random() % 2 == 0 ? "d0" : "d1";
      if (random() % 8 != 0) list.push_back(testing::project(name, share));
    }
    projects = testing::projects(std::move(list));
    scheduler.set_projects(projects);
  }

  Scheduler scheduler;
  Time now = kStart;
  std::string fault;
  std::vector<Plan> plans;
  std::map<std::string, Gang> gangs;
  std::map<std::string, std::map<int, Held>> held;
  std::map<std::string, Node> nodes;
  std::vector<Project> projects;

 private:
  void complain(const std::string& what) {
    if (fault.empty()) fault = what;
  }

  const Gang* pick(unsigned which) const {
    if (gangs.empty()) return nullptr;
    return &nth(gangs, which).second;
  }

  void submit(const Event& event) {
    static constexpr int kPriorities[] = {50, 50, 50, 75, 100, 49};
    const std::string id = "g" + std::to_string(1000 + next_);
    Gang gang = testing::gang(id, "p" + std::to_string(event.a % 3), 1 + int(event.b % 3),
                              1 + int(event.b / 3 % 3), kPriorities[event.c % 6]);
    if (event.c / 6 % 4 == 0) gang = testing::elastic(gang, 1);
    if (event.c / 24 % 4 == 0) gang = testing::limited(gang, seconds(30 + event.a % 200));
    if (event.c / 96 % 5 == 0) {
      gang.groups[0].claim = {.gpu_share_milli = 300 + int(event.b % 5) * 100};
    }
    gang.groups[0].claim.cpu_milli = 1000 * int64_t{event.c / 480 % 3};
    gang.sequence = next_++;
    gang.submitted = now;
    gangs.emplace(id, gang);
    scheduler.submit(gang);
  }

  void end(const std::string& id) {
    scheduler.ended(id);
    held.erase(id);
    gangs.erase(std::string(id));
  }

  void lose(const Event& event) {
    const Gang* const gang = pick(event.a);
    if (gang == nullptr || held[gang->id].empty()) return;
    const int task = nth(held[gang->id], event.b).first;
    held[gang->id].erase(task);
    lost_some_.insert(gang->id);
    scheduler.lost(gang->id, task, now);
  }

  /// The tasks on the node are lost, as the server reports it.
  void remove_node(unsigned which) {
    if (nodes.empty()) return;
    const std::string name = nth(nodes, which).first;
    nodes.erase(name);
    scheduler.remove_node(name);
    std::vector<std::string> hit;
    for (const auto& [id, tasks] : held) {
      for (const auto& [task, state] : tasks) {
        if (state.place.node == name && (hit.empty() || hit.back() != id)) hit.push_back(id);
      }
    }
    for (const std::string& id : hit) {
      held[id].clear();
      scheduler.requeue(id);
    }
  }

  void set_node(const Event& event) {
    Node node = testing::node("n" + std::to_string(event.a % 4), int(event.b % 5));
    node.cpu_milli = 2000 + 1000 * (event.c % 6);
    node.cordoned = event.c / 6 % 8 == 0;
    nodes[node.name] = node;
    scheduler.set_node(node);
  }

  void take_start(const PlannedStart& start) {
    const auto known = gangs.find(start.id);
    if (known == gangs.end()) return complain("start of unknown " + start.id);
    auto& tasks = held[start.id];
    const bool anew = tasks.empty();
    if (anew) lost_some_.erase(start.id);
    for (size_t i = 0; i < start.tasks.size(); ++i) {
      if (!tasks.emplace(start.tasks[i], Held{start.places[i], false}).second) {
        complain("task started twice of " + start.id);
      }
      check_node(start.id, start.places[i]);
    }
    if (anew && static_cast<int>(tasks.size()) < minimum_tasks(known->second)) {
      complain("half a gang started: " + start.id);
    }
  }

  void check_node(const std::string& id, const TaskPlace& place) {
    const auto node = nodes.find(place.node);
    if (node == nodes.end()) return complain(id + " starts on a node that is gone");
    if (node->second.cordoned) complain(id + " starts on a cordoned node");
    std::map<int, int> devices;
    int64_t cpu = 0;
    for (const auto& [other, tasks] : held) {
      for (const auto& [task, state] : tasks) {
        if (state.place.node != place.node) continue;
        for (const int device : state.place.devices) devices[device] += state.place.share_milli;
        cpu += gangs.at(other).groups[0].claim.cpu_milli;
      }
    }
    for (const int device : place.devices) {
      if (devices[device] > kWholeGpu || device >= node->second.gpus) {
        complain("GPU over-committed by " + id + " on " + place.node);
      }
    }
    const int64_t claimed = gangs.at(id).groups[0].claim.cpu_milli;
    if (claimed > 0 && cpu > node->second.cpu_milli) complain("CPU over-committed by " + id);
  }

  void take_eviction(const Eviction& eviction) {
    const auto known = gangs.find(eviction.id);
    if (known == gangs.end()) return complain("eviction of unknown " + eviction.id);
    if (!known->second.preemptible && eviction.cause != EvictionCause::kStale) {
      complain("not preemptible, and evicted: " + eviction.id);
    }
    if (words::sentence(eviction.why).empty())
      complain("eviction without a reason: " + eviction.id);
    int staying = 0;
    for (const int task : eviction.tasks) {
      const auto state = held[eviction.id].find(task);
      if (state == held[eviction.id].end() || state->second.leaves) {
        return complain("eviction of a task that does not run: " + eviction.id);
      }
      state->second.leaves = true;
    }
    for (const auto& [task, state] : held[eviction.id]) staying += !state.leaves;
    if (staying > 0 && staying < minimum_tasks(known->second) &&
        !lost_some_.contains(eviction.id)) {
      complain("half a gang stays of " + eviction.id);
    }
  }

  /// Leaving tasks do not count. A limit that was lowered below the running amount only blocks
  /// starts.
  void check_limits(const Plan& plan) {
    std::set<std::string> above_started;
    for (const PlannedStart& start : plan.starts) {
      if (!gangs.contains(start.id)) continue;
      for (const Project* project = find_project(gangs.at(start.id).project); project != nullptr;
           project = find_project(project->parent)) {
        above_started.insert(project->name);
      }
    }
    for (const Project& project : projects) {
      if (!above_started.contains(project.name)) continue;
      if (used_by(project) > project.quota.limit.gpu_milli) {
        complain("above the limit of " + project.name);
      }
    }
  }

  /// A gang with a promise waits only as long as tasks leave.
  void check_promises(const Plan& plan) {
    for (const PlannedStart& promise : plan.promises) promised_.insert(promise.id);
    for (const auto& [id, tasks] : held) {
      for (const auto& [task, state] : tasks) {
        if (state.leaves) return;
      }
    }
    for (const std::string& id : std::exchange(promised_, {})) {
      if (scheduler.explain(id, now).constraint == Constraint::kReleasing) {
        complain("no task leaves, and this gang waits for one: " + id);
      }
    }
  }

  const Project* find_project(const std::string& name) const {
    for (const Project& project : projects) {
      if (project.name == name) return &project;
    }
    return nullptr;
  }

  int64_t used_by(const Project& project) const {
    int64_t used = 0;
    for (const auto& [id, tasks] : held) {
      const std::string& leaf = gangs.at(id).project;
      const Project* const own = find_project(leaf);
      if (own == nullptr || (own->name != project.name && own->parent != project.name)) continue;
      for (const auto& [task, state] : tasks) {
        if (!state.leaves) {
          used += static_cast<int64_t>(state.place.devices.size()) * state.place.share_milli;
        }
      }
    }
    return used;
  }

  uint64_t next_ = 0;
  std::set<std::string> lost_some_;
  std::set<std::string> promised_;  ///< gangs that were promised places since no task leaves
};

std::vector<Event> random_events(unsigned seed, int count, unsigned kinds) {
  std::mt19937 random(seed);
  std::vector<Event> events{{Kind::kSetProjects, unsigned(random())}};
  for (int i = 0; i < 1 + int(random() % 3); ++i) {
    events.push_back({Kind::kSetNode, unsigned(i), 1 + unsigned(random() % 4), 5});
  }
  for (int i = 0; i < count; ++i) {
    const auto roll = random() % kinds;
    const Kind kind = roll < 8    ? Kind::kSubmit
                      : roll < 14 ? Kind::kPlan
                      : roll < 18 ? Kind::kRelease
                      : roll < 21 ? Kind::kEnd
                      : roll < 23 ? Kind::kWait
                      : roll < 24 ? Kind::kLose
                      : roll < 25 ? Kind::kRequeue
                      : roll < 26 ? Kind::kSetProjects
                      : roll < 28 ? Kind::kSetNode
                                  : Kind::kRemoveNode;
    events.push_back({kind, unsigned(random()), unsigned(random()), unsigned(random())});
  }
  return events;
}

constexpr unsigned kCalmKinds = 23;
constexpr unsigned kAllKinds = 29;

Options test_options() {
  Options options;
  options.packing = Packing::kPack;
  return options;
}

/// Makes reservations for waiting gangs almost at once.
Options impatient_options() {
  Options options;
  options.patience = seconds(20);
  options.reservations = 2;
  return options;
}

std::string run(const std::vector<Event>& events, bool then_settle,
                const Options& options = test_options()) {
  SchedulerWorld world(options);
  for (const Event& event : events) {
    world.apply(event);
    if (!world.fault.empty()) return world.fault;
  }
  if (then_settle && !world.settle() && world.fault.empty()) return "does not come to rest";
  return world.fault;
}

std::string events_text(const std::vector<Event>& events) {
  std::ostringstream out;
  for (const Event& event : events) {
    out << "{Kind(" << static_cast<int>(event.kind) << "), " << event.a << "u, " << event.b << "u, "
        << event.c << "u},\n";
  }
  return out.str();
}

/// Removes events as long as the remaining sequence still fails.
template <class Fails>
std::vector<Event> shrink(std::vector<Event> events, const Fails& fails) {
  for (size_t length = events.size() / 2; length > 0; length /= 2) {
    for (size_t at = 0; at + length <= events.size();) {
      std::vector<Event> fewer = events;
      const auto begin = fewer.begin() + static_cast<std::ptrdiff_t>(at);
      fewer.erase(begin, begin + static_cast<std::ptrdiff_t>(length));
      if (fails(fewer)) {
        events = std::move(fewer);
      } else {
        at += length;
      }
    }
  }
  return events;
}

template <class Check>
void hold_for_seeds(unsigned first, unsigned last, int count, unsigned kinds, const Check& check) {
  for (unsigned seed = first; seed < last; ++seed) {
    const std::vector<Event> events = random_events(seed, count, kinds);
    const std::string fault = check(events);
    if (fault.empty()) continue;
    const std::vector<Event> least =
        shrink(events, [&](const std::vector<Event>& fewer) { return !check(fewer).empty(); });
    FAIL() << "seed " << seed << ": " << fault << "; least: " << check(least) << "\n"
           << events_text(least);
  }
}

TEST(SchedulerProperty, OverCommitsNothingAndKeepsGangsWholeWhateverHappens) {
  hold_for_seeds(0, 4000, 60, kAllKinds,
                 [](const std::vector<Event>& events) { return run(events, false); });
}

TEST(SchedulerProperty, HoldsWithReservationsForWaitingGangs) {
  hold_for_seeds(40'000, 42'000, 60, kAllKinds, [](const std::vector<Event>& events) {
    return run(events, true, impatient_options());
  });
}

TEST(SchedulerProperty, BooksOnTheNodesWhatTasksPromisesAndReservationsHold) {
  hold_for_seeds(60'000, 61'000, 60, kAllKinds, [](const std::vector<Event>& events) {
    SchedulerWorld world(impatient_options());
    for (const Event& event : events) {
      world.apply(event);
      if (!world.fault.empty()) return world.fault;
      if (world.scheduler.has_wrong_node_books()) return std::string("the books are wrong");
    }
    return std::string();
  });
}

TEST(SchedulerProperty, ComesToRestAndStaysThere) {
  hold_for_seeds(10'000, 12'000, 40, kCalmKinds,
                 [](const std::vector<Event>& events) { return run(events, true); });
}

TEST(SchedulerProperty, MakesTheSamePlansOfTheSameEvents) {
  hold_for_seeds(20'000, 20'300, 60, kAllKinds, [](const std::vector<Event>& events) {
    SchedulerWorld one(test_options());
    SchedulerWorld other(test_options());
    for (const Event& event : events) {
      one.apply(event);
      other.apply(event);
    }
    return one.plans == other.plans ? std::string() : std::string("plans differ");
  });
}

/// A plan of a world in which all leaving tasks have ended: running gangs and promises.
class AfterLeaving {
 public:
  void take(const SchedulerWorld& world, const Plan& plan) {
    std::erase_if(promised_, [&](const auto& one) { return !world.gangs.contains(one.first); });
    for (const PlannedStart& start : plan.starts) promised_.erase(start.id);
    for (const PlannedStart& start : plan.promises) {
      for (size_t i = 0; i < start.tasks.size(); ++i) {
        promised_[start.id][start.tasks[i]] = start.places[i];
      }
    }
  }

  /// Whether tasks of the gang would start if no other gang waited.
  bool has_room_for(const SchedulerWorld& world, const std::string& id) const {
    Scheduler fresh(test_options());
    for (const auto& [name, node] : world.nodes) fresh.set_node(node);
    fresh.set_projects(world.projects);
    for (const auto& [other, gang] : world.gangs) {
      const std::map<int, TaskPlace> places = places_of(world, other);
      if (other == id) {
        enter_whole(fresh, gang, places);
      } else if (!places.empty()) {
        enter_as_it_runs(fresh, gang, places);
      }
    }
    return !fresh.plan(world.now, kAllocate).starts.empty();
  }

  const std::map<int, TaskPlace>& promised_to(const std::string& id) { return promised_[id]; }

 private:
  std::map<int, TaskPlace> places_of(const SchedulerWorld& world, const std::string& id) const {
    std::map<int, TaskPlace> places;
    if (const auto promised = promised_.find(id); promised != promised_.end()) {
      places = promised->second;
    }
    if (const auto held = world.held.find(id); held != world.held.end()) {
      for (const auto& [task, state] : held->second) {
        if (!state.leaves) places[task] = state.place;
      }
    }
    return places;
  }

  static void enter_whole(Scheduler& fresh, const Gang& gang,
                          const std::map<int, TaskPlace>& places) {
    if (places.empty()) return fresh.submit(gang);
    std::vector<std::optional<TaskPlace>> by_task(static_cast<size_t>(task_count(gang)));
    for (const auto& [task, place] : places) by_task[static_cast<size_t>(task)] = place;
    fresh.adopt(gang, by_task, kStart);
  }

  /// It requests no further tasks.
  static void enter_as_it_runs(Scheduler& fresh, Gang gang,
                               const std::map<int, TaskPlace>& places) {
    std::vector<std::optional<TaskPlace>> in_a_row;
    for (const auto& [task, place] : places) in_a_row.emplace_back(place);
    gang.groups[0].count = gang.groups[0].minimum = static_cast<int>(in_a_row.size());
    fresh.adopt(gang, in_a_row, kStart);
  }

  std::map<std::string, std::map<int, TaskPlace>> promised_;
};

/// Leaves out plans in which several gangs evict: one may free resources that another cannot use.
bool evicts_for_one(const Plan& plan) {
  return !plan.evictions.empty() &&
         std::all_of(plan.evictions.begin(), plan.evictions.end(), [&](const Eviction& one) {
           return one.cause != EvictionCause::kStale && one.by == plan.evictions.front().by;
         });
}

std::string check_moves(SchedulerWorld& world, AfterLeaving& after, const Plan& plan) {
  after.take(world, plan);
  world.carry_out(plan);
  if (!world.fault.empty() || !evicts_for_one(plan)) return world.fault;
  for (const Eviction& eviction : plan.evictions) {
    const std::map<int, TaskPlace>& promised = after.promised_to(eviction.id);
    if (promised.size() < eviction.tasks.size() && after.has_room_for(world, eviction.id)) {
      return "evicted although it has a place elsewhere: " + eviction.id;
    }
    const bool changes_place =
        std::any_of(eviction.tasks.begin(), eviction.tasks.end(), [&](int task) {
          const auto place = promised.find(task);
          return place == promised.end() || place->second != world.held[eviction.id][task].place;
        });
    if (!changes_place) return "moved to the place that it has: " + eviction.id;
  }
  return {};
}

Options patient_options() {
  Options options = test_options();
  options.patience = std::chrono::hours(100'000);
  return options;
}

TEST(SchedulerProperty, EvictsNoTaskThatFitsElsewhereAndMovesNoTaskToItsOwnNode) {
  hold_for_seeds(50'000, 52'000, 60, kCalmKinds, [&](const std::vector<Event>& events) {
    SchedulerWorld world(patient_options());
    AfterLeaving after;
    for (const Event& event : events) {
      std::string fault;
      if (event.kind == Kind::kPlan) {
        fault = check_moves(world, after, world.scheduler.plan(world.now));
      } else {
        world.apply(event);
        fault = world.fault;
      }
      if (!fault.empty()) return fault;
    }
    return std::string();
  });
}

/// Gangs, many of them elastic, whose tasks are scattered over the nodes with gaps between them, as
/// after the end of other gangs.
class ScatteredWorld {
 public:
  explicit ScatteredWorld(unsigned seed) : random_(seed), world(patient_options()) {
    for (int i = 0; i < 2 + below(3); ++i) {
      const Node node = testing::node("n" + std::to_string(i), 2 + below(3));
      world.nodes[node.name] = node;
      world.scheduler.set_node(node);
    }
    world.set_projects(random_());
    for (int i = 0; i < 2 + below(5); ++i) run(next_gang());
    for (int i = 0; i < 1 + below(2); ++i) {
      const Gang gang = next_gang();
      world.gangs.emplace(gang.id, gang);
      world.scheduler.submit(gang);
    }
  }

 private:
  int below(int bound) { return static_cast<int>(random_() % static_cast<unsigned>(bound)); }

  Gang next_gang() {
    static constexpr int kPriorities[] = {49, 50, 50, 75, 100};
    Gang gang = testing::gang("g" + std::to_string(1000 + number_), "p" + std::to_string(below(3)),
                              1 + below(2) * below(3), 1 + below(4), kPriorities[below(5)]);
    gang.groups[0].minimum = 1 + below(gang.groups[0].count);
    gang.sequence = number_++;
    return gang;
  }

  /// Places each task on a random node; if one of them does not fit, places no task.
  void run(const Gang& gang) {
    std::map<std::string, int> taken = taken_;
    std::vector<std::optional<TaskPlace>> places;
    for (int task = 0; task < gang.groups[0].count; ++task) {
      const Node& node = nth(world.nodes, random_()).second;
      TaskPlace place{.node = node.name, .share_milli = kWholeGpu};
      for (int i = 0; i < gang.groups[0].claim.gpus; ++i) {
        place.devices.push_back(taken[node.name]++);
      }
      if (taken[node.name] > node.gpus) return;
      places.emplace_back(place);
    }
    taken_ = taken;
    for (int task = 0; task < gang.groups[0].count; ++task) {
      world.held[gang.id][task] = {*places[static_cast<size_t>(task)], false};
    }
    world.gangs.emplace(gang.id, gang);
    world.scheduler.adopt(gang, places, kStart);
  }

  std::mt19937 random_;
  std::map<std::string, int> taken_;
  uint64_t number_ = 0;

 public:
  SchedulerWorld world;
};

TEST(SchedulerProperty, EndsNoTaskOfScatteredGangsThatHasAPlaceElsewhere) {
  for (const Actions actions : {kConsolidate, kReclaim, kPreempt, kAllActions}) {
    for (unsigned seed = 0; seed < 1500; ++seed) {
      ScatteredWorld scattered(seed);
      AfterLeaving after;
      const Plan plan = scattered.world.scheduler.plan(kStart, actions);
      ASSERT_EQ(check_moves(scattered.world, after, plan), "") << actions << ", seed " << seed;
    }
  }
}

/// The plan of a new scheduler that gets the whole state at once.
Plan plan_from_scratch(const SchedulerWorld& world) {
  Scheduler fresh(test_options());
  for (const auto& [name, node] : world.nodes) fresh.set_node(node);
  fresh.set_projects(world.projects);
  std::vector<Gang> in_order;
  for (const auto& [id, gang] : world.gangs) in_order.push_back(gang);
  for (const Gang& gang : in_order) {
    const auto tasks = world.held.find(gang.id);
    if (tasks == world.held.end() || tasks->second.empty()) {
      fresh.submit(gang);
      continue;
    }
    std::vector<std::optional<TaskPlace>> places(static_cast<size_t>(task_count(gang)));
    for (const auto& [task, state] : tasks->second) {
      places[static_cast<size_t>(task)] = state.place;
    }
    fresh.adopt(gang, places, kStart);
  }
  return fresh.plan(world.now);
}

// Except for cooldowns and time limits, whose beginning only one of the two schedulers has seen.
TEST(SchedulerProperty, PlansTheSameAsASchedulerThatGetsTheWholeStateAtOnce) {
  hold_for_seeds(30'000, 31'000, 25, 14, [](std::vector<Event> events) {
    SchedulerWorld world(test_options());
    for (Event& event : events) {
      if (event.kind == Kind::kSubmit) event.c = event.c / 96 * 96 + 24 + event.c % 24;
      if (event.kind == Kind::kPlan) {
        world.release(true);
        if (!world.settle()) return std::string("does not come to rest");
        world.now += seconds(61);
        continue;
      }
      world.apply(event);
      const Plan scratch = plan_from_scratch(world);
      const Plan plan = world.scheduler.plan(world.now);
      world.carry_out(plan);
      if (testing::started(scratch) != testing::started(plan))
        return "starts differ" + std::string();
      if (testing::evicted(scratch) != testing::evicted(plan)) {
        return "evictions differ" + std::string();
      }
      if (!plan.evictions.empty() && !world.settle()) return std::string("does not come to rest");
      if (!plan.starts.empty() && !world.settle()) return std::string("does not come to rest");
      world.now += seconds(61);
    }
    return world.fault;
  });
}

/// Projects with more one-GPU gangs than free GPUs, submitted in random order.
struct Crowd {
  testing::Stage stage;
  int gpus = 0;
  std::vector<std::string> names;
};

Crowd crowd_of(unsigned seed, bool quotas_fit) {
  std::mt19937 random(seed);
  Crowd crowd;
  const int nodes = 1 + int(random() % 3);
  for (int i = 0; i < nodes; ++i) {
    const int gpus = 2 + int(random() % 4);
    crowd.gpus += gpus;
    crowd.stage.scheduler.set_node(testing::node("n" + std::to_string(i), gpus));
  }
  std::vector<Project> list;
  int left = crowd.gpus;
  for (int i = 0; i < 2 + int(random() % 3); ++i) {
    const int most = quotas_fit ? left : crowd.gpus;
    const int deserved = int(random() % unsigned(most + 1));
    left -= quotas_fit ? deserved : 0;
    crowd.names.push_back("p" + std::to_string(i));
    list.push_back(testing::project(crowd.names.back(),
                                    {.deserved = deserved, .weight = double(random() % 4)}));
  }
  crowd.stage.scheduler.set_projects(testing::projects(std::move(list)));
  std::vector<std::string> arrivals;
  for (const std::string& name : crowd.names) {
    arrivals.insert(arrivals.end(), size_t(crowd.gpus), name);
  }
  std::shuffle(arrivals.begin(), arrivals.end(), random);
  int number = 0;
  for (const std::string& name : arrivals) {
    crowd.stage.wait(testing::gang("g" + std::to_string(number++), name, 1));
    if (random() % 4 == 0) crowd.stage.leave(crowd.stage.plan());
  }
  return crowd;
}

TEST(SchedulerProperty, GivesEveryProjectItsQuotaInTheEnd) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Crowd crowd = crowd_of(seed, true);
    ASSERT_NE(crowd.stage.settle(seconds(31)), -1) << "seed " << seed;
    for (const std::string& name : crowd.names) {
      const Standing standing = crowd.stage.scheduler.standing(name);
      EXPECT_GE(standing.allocated.gpu_milli, standing.deserved.gpu_milli)
          << name << " of seed " << seed;
    }
  }
}

TEST(SchedulerProperty, BringsEveryProjectToItsFairShare) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Crowd crowd = crowd_of(seed, true);
    ASSERT_NE(crowd.stage.settle(seconds(31)), -1) << "seed " << seed;
    int64_t beyond = 0;
    int64_t shares = 0;
    for (const std::string& name : crowd.names) {
      const Standing standing = crowd.stage.scheduler.standing(name);
      // Resources that no weight claims go to any gang; else no project exceeds its fair share.
      beyond += std::max<int64_t>(standing.allocated.gpu_milli - standing.fair_share.gpu_milli, 0);
      shares += standing.fair_share.gpu_milli;
      EXPECT_GE(standing.allocated.gpu_milli, standing.fair_share.gpu_milli)
          << name << " of seed " << seed;
    }
    EXPECT_LE(beyond, int64_t{crowd.gpus} * kWholeGpu - shares) << "seed " << seed;
  }
}

}  // namespace
}  // namespace muster::schedule
