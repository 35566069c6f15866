// Small random clusters under random events (scheduler_world.h), checked against properties that
// always hold. A failing sequence is shortened as long as it still fails. Seeds are fixed.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "schedule/scheduler_world.h"

namespace muster::schedule {
namespace {

using std::chrono::seconds;
using testing::Crowd;
using testing::crowd_of;
using testing::kAllKinds;
using testing::kCalmKinds;
using testing::kStart;
using testing::kSubmitsAndPlans;
using testing::random_events;
using testing::ScatteredWorld;
using testing::SchedulerWorld;
using testing::WorldEvent;
using testing::WorldEventKind;

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

std::string run(const std::vector<WorldEvent>& events, bool then_settle,
                const Options& options = test_options()) {
  SchedulerWorld world(options);
  for (const WorldEvent& event : events) {
    world.apply(event);
    if (!world.fault.empty()) return world.fault;
  }
  if (then_settle && !world.settle() && world.fault.empty()) return "does not come to rest";
  return world.fault;
}

/// Removes events as long as the remaining sequence still fails.
template <class Fails>
std::vector<WorldEvent> shrink(std::vector<WorldEvent> events, const Fails& fails) {
  for (size_t length = events.size() / 2; length > 0; length /= 2) {
    for (size_t at = 0; at + length <= events.size();) {
      std::vector<WorldEvent> fewer = events;
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
    const std::vector<WorldEvent> events = random_events(seed, count, kinds);
    const std::string fault = check(events);
    if (fault.empty()) continue;
    const std::vector<WorldEvent> least =
        shrink(events, [&](const std::vector<WorldEvent>& fewer) { return !check(fewer).empty(); });
    FAIL() << "seed " << seed << ": " << fault << "; least: " << check(least) << "\n"
           << testing::events_text(least);
  }
}

TEST(SchedulerProperty, OverCommitsNothingAndKeepsGangsWholeWhateverHappens) {
  hold_for_seeds(0, 4000, 60, kAllKinds,
                 [](const std::vector<WorldEvent>& events) { return run(events, false); });
}

TEST(SchedulerProperty, HoldsWithReservationsForWaitingGangs) {
  hold_for_seeds(40'000, 42'000, 60, kAllKinds, [](const std::vector<WorldEvent>& events) {
    return run(events, true, impatient_options());
  });
}

TEST(SchedulerProperty, BooksOnTheNodesWhatTasksPromisesAndReservationsHold) {
  hold_for_seeds(60'000, 61'000, 60, kAllKinds, [](const std::vector<WorldEvent>& events) {
    SchedulerWorld world(impatient_options());
    for (const WorldEvent& event : events) {
      world.apply(event);
      if (!world.fault.empty()) return world.fault;
      if (world.scheduler.has_wrong_node_books()) return std::string("the books are wrong");
    }
    return std::string();
  });
}

TEST(SchedulerProperty, ComesToRestAndStaysThere) {
  hold_for_seeds(10'000, 12'000, 40, kCalmKinds,
                 [](const std::vector<WorldEvent>& events) { return run(events, true); });
}

// A node has 4 GPUs and 2 CPUs; p0 has a quota of no GPU and p1 of one. A gang of p0 needs the CPUs
// of both gangs of p1, which is then below its quota of GPUs.
TEST(SchedulerProperty, TakesNothingThatTheVictimCouldReclaimAtOnce) {
  using Kind = testing::WorldEventKind;
  EXPECT_EQ(run({{Kind::kSetProjects, 1308098712U},
                 {Kind::kSetNode, 1709417167U, 3444040354U, 4001859852U},
                 {Kind::kSetNode, 3396856949U, 1470991962U, 1748692511U},
                 {Kind::kSubmit, 1337307016U, 1124395480U, 2704267416U},
                 {Kind::kSubmit, 3463177546U, 3478973112U, 1974758822U},
                 {Kind::kRemoveNode, 2058707408U, 2656748185U, 1645573738U},
                 {Kind::kSubmit, 2307925077U, 2131006477U, 3211346028U}},
                true, impatient_options()),
            "");
}

TEST(SchedulerProperty, MakesTheSamePlansOfTheSameEvents) {
  hold_for_seeds(20'000, 20'300, 60, kAllKinds, [](const std::vector<WorldEvent>& events) {
    SchedulerWorld one(test_options());
    SchedulerWorld other(test_options());
    for (const WorldEvent& event : events) {
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
    std::vector<TaskGroup> groups = gang.groups;
    for (TaskGroup& group : groups) group.count = group.minimum = 0;
    for (const auto& [task, place] : places) {
      in_a_row.emplace_back(place);
      TaskGroup& group = groups[static_cast<size_t>(&group_of(gang, task) - gang.groups.data())];
      group.minimum = ++group.count;
    }
    gang.groups = groups;
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
  hold_for_seeds(50'000, 52'000, 60, kCalmKinds, [&](const std::vector<WorldEvent>& events) {
    SchedulerWorld world(patient_options());
    AfterLeaving after;
    for (const WorldEvent& event : events) {
      std::string fault;
      if (event.kind == WorldEventKind::kPlan) {
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

TEST(SchedulerProperty, EndsNoTaskOfScatteredGangsThatHasAPlaceElsewhere) {
  for (const Actions actions : {kConsolidate, kReclaim, kPreempt, kAllActions}) {
    for (unsigned seed = 0; seed < 1500; ++seed) {
      ScatteredWorld scattered(seed, patient_options());
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
  hold_for_seeds(30'000, 31'000, 25, kSubmitsAndPlans, [](std::vector<WorldEvent> events) {
    SchedulerWorld world(test_options());
    for (WorldEvent& event : events) {
      if (event.kind == WorldEventKind::kSubmit) event.c = event.c / 96 * 96 + 24 + event.c % 24;
      if (event.kind == WorldEventKind::kPlan) {
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

TEST(SchedulerProperty, GivesEveryProjectItsQuotaInTheEnd) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Crowd crowd = crowd_of(seed);
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
    Crowd crowd = crowd_of(seed);
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
