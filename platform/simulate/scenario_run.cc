#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <set>
#include <utility>

#include "schedule/scheduler.h"
#include "simulate/scenarios.h"

namespace muster::simulate {

using schedule::Actions;
using schedule::Eviction;
using schedule::Milliseconds;
using schedule::Plan;
using schedule::PlannedStart;
using schedule::Scheduler;
using schedule::TaskPlace;
using schedule::Time;
using std::chrono::seconds;

namespace {

constexpr Time kNow{seconds{1'700'000'000}};
/// Running gangs started a moment ago; failed gangs failed longer ago than any grace period.
constexpr seconds kRunningFor{1};
constexpr seconds kFailedFor{61};
/// Cycles are a second apart, and after a quiet one as long as no grace or cooldown is.
constexpr seconds kBusyStep{1};
constexpr seconds kQuietStep{61};
constexpr int kQuietCyclesToBeStable = 5;
constexpr int kMostCycles = 100;

constexpr std::string_view kUntilStable = "integration_tests";

struct FolderAction {
  std::string_view folder;
  Actions action;
};

constexpr std::array<FolderAction, 5> kFolderActions{
    {{"allocate", schedule::kAllocate},
     {"consolidation", schedule::kConsolidate},
     {"preempt", schedule::kPreempt},
     {"reclaim", schedule::kReclaim},
     {"stalegangeviction", schedule::kEvictStale}}};

std::string_view folder_of(const Scenario& scenario) {
  return std::string_view(scenario.section).substr(0, scenario.section.find('/'));
}

// Which GPUs the running tasks have is not in the notation: they are dealt out in listing order.
class DeviceDealer {
 public:
  explicit DeviceDealer(const std::vector<schedule::Node>& nodes) {
    for (const schedule::Node& node : nodes)
      free_[node.name].assign(static_cast<size_t>(node.gpus), schedule::kWholeGpu);
  }

  /// Nothing where the node has no such room.
  std::optional<TaskPlace> deal(const std::string& node, const schedule::Claim& claim) {
    TaskPlace place{.node = node};
    const int needed = claim.gpu_share_milli > 0 ? 1 : claim.gpus;
    if (needed == 0) return place;
    place.share_milli = claim.gpu_share_milli > 0 ? claim.gpu_share_milli : schedule::kWholeGpu;
    std::vector<int>& free = free_[node];
    for (size_t device = 0; device < free.size(); ++device) {
      if (static_cast<int>(place.devices.size()) == needed) break;
      if (free[device] >= place.share_milli) place.devices.push_back(static_cast<int>(device));
    }
    if (static_cast<int>(place.devices.size()) < needed) return std::nullopt;
    for (const int device : place.devices) free[static_cast<size_t>(device)] -= place.share_milli;
    return place;
  }

 private:
  std::map<std::string, std::vector<int>> free_;
};

/// A running scenario: the scheduler, and the state of each task.
class Stage {
 public:
  explicit Stage(const Scenario& scenario) : scenario_(scenario), scheduler_(options(scenario)) {}

  /// Empty, or why this cannot be.
  std::string set_up() {
    for (const schedule::Node& node : scenario_.nodes) scheduler_.set_node(node);
    scheduler_.set_projects(scenario_.projects);
    DeviceDealer dealer(scenario_.nodes);
    for (const ScenarioJob& job : scenario_.jobs) {
      views_[job.gang.id] = job.tasks;
      schedule::Gang gang = job.gang;
      gang.submitted = kNow - seconds(60) + Milliseconds(gang.sequence);
      if (waits(job)) {
        scheduler_.submit(std::move(gang));
      } else if (std::string fault = adopt(job, std::move(gang), dealer); !fault.empty()) {
        return fault;
      }
    }
    return {};
  }

  void run_once(unsigned actions) {
    const Plan plan = scheduler_.plan(kNow, actions);
    for (const Eviction& eviction : plan.evictions)
      for (const int task : eviction.tasks) view(eviction.id, task).state = TaskState::kReleasing;
    show(plan.promises, TaskState::kPipelined);
    show(plan.starts, TaskState::kBinding);
  }

  /// Whether it became stable.
  bool run_until_stable() {
    Time now = kNow;
    int quiet = 0;
    for (int cycle = 0; cycle < kMostCycles && quiet < kQuietCyclesToBeStable; ++cycle) {
      const Plan plan = scheduler_.plan(now);
      const bool changed =
          !plan.evictions.empty() || !plan.starts.empty() || !plan.promises.empty();
      for (const Eviction& eviction : plan.evictions) {
        for (const int task : eviction.tasks) view(eviction.id, task) = {};
        scheduler_.released(eviction.id, eviction.tasks);
      }
      show(plan.starts, TaskState::kRunning);
      quiet = changed ? 0 : quiet + 1;
      now += changed ? kBusyStep : kQuietStep;
    }
    return quiet == kQuietCyclesToBeStable;
  }

  const std::vector<TaskView>& views(const std::string& job) const { return views_.at(job); }

 private:
  static schedule::Options options(const Scenario& scenario) {
    schedule::Options options;
    // The notation cannot express how nodes are chosen; the only scenario that spreads is
    // recognized by its name.
    if (scenario.name.find("nodespread") != std::string::npos)
      options.packing = schedule::Packing::kSpread;
    return options;
  }

  static bool waits(const ScenarioJob& job) {
    return std::all_of(job.tasks.begin(), job.tasks.end(),
                       [](const TaskView& task) { return task.state == TaskState::kPending; });
  }

  std::string adopt(const ScenarioJob& job, schedule::Gang gang, DeviceDealer& dealer) {
    std::vector<std::optional<TaskPlace>> places;
    std::vector<int> failed;
    for (const TaskView& task : job.tasks) {
      places.emplace_back();
      if (task.state == TaskState::kPending) continue;
      if (task.state == TaskState::kFailed) failed.push_back(static_cast<int>(places.size()) - 1);
      places.back() = dealer.deal(task.node, gang.groups[0].claim);
      if (!places.back())
        return "'" + gang.name + "' runs on '" + task.node + "', which has no room for it";
    }
    const Time failed_at = kNow - kFailedFor;
    const Time started = failed.empty() ? kNow - kRunningFor : failed_at - kRunningFor;
    scheduler_.adopt(std::move(gang), places, started);
    for (const int task : failed) scheduler_.lost(job.gang.id, task, failed_at);
    return {};
  }

  void show(const std::vector<PlannedStart>& starts, TaskState state) {
    for (const PlannedStart& start : starts)
      for (size_t i = 0; i < start.tasks.size(); ++i)
        view(start.id, start.tasks[i]) = {.state = state, .node = start.places[i].node};
  }

  TaskView& view(const std::string& job, int task) {
    return views_.at(job).at(static_cast<size_t>(task));
  }

  const Scenario& scenario_;
  Scheduler scheduler_;
  std::map<std::string, std::vector<TaskView>> views_;
};

/// Two nodes with equal values are interchangeable: their size, and their jobs at the start.
using NodeKind = std::pair<std::array<int64_t, 3>, std::multiset<std::string>>;

std::map<std::string, NodeKind> kinds_of(const Scenario& scenario) {
  std::map<std::string, NodeKind> kinds;
  for (const schedule::Node& node : scenario.nodes)
    kinds[node.name].first = {node.gpus, node.cpu_milli, node.memory_bytes};
  for (const ScenarioJob& job : scenario.jobs)
    for (const TaskView& task : job.tasks)
      if (!task.node.empty()) kinds[task.node].second.insert(job.gang.name);
  return kinds;
}

/// Holds views against expectations, up to a renaming of equal nodes that is the same for all.
class Comparison {
 public:
  explicit Comparison(const Scenario& scenario) : kinds_(kinds_of(scenario)) {}

  bool matches(const TaskView& expected, const TaskView& got) {
    if (expected.state != got.state) return false;
    if (expected.node.empty()) return true;
    if (const auto known = stands_for_.find(expected.node); known != stands_for_.end())
      return known->second == got.node;
    if (!kinds_.contains(got.node) || kinds_[expected.node] != kinds_[got.node]) return false;
    if (!taken_.insert(got.node).second) return false;
    stands_for_[expected.node] = got.node;
    return true;
  }

 private:
  std::map<std::string, NodeKind> kinds_;
  std::map<std::string, std::string> stands_for_;
  std::set<std::string> taken_;
};

std::string difference(const Scenario& scenario, const Stage& stage) {
  Comparison comparison(scenario);
  std::string expected_text;
  std::string got_text;
  const auto add = [](std::string& text, const std::string& task, const TaskView& view) {
    text += (text.empty() ? "" : ", ") + task + "=" + to_string(view);
  };
  for (const Expectation& expectation : scenario.expected) {
    const std::vector<TaskView>& views = stage.views(expectation.job);
    for (size_t task = 0; task < views.size(); ++task) {
      if (expectation.task && static_cast<size_t>(*expectation.task) != task) continue;
      if (comparison.matches(expectation.view, views[task])) continue;
      const std::string name =
          views.size() == 1 ? expectation.job : expectation.job + "-" + std::to_string(task);
      add(expected_text, name, expectation.view);
      add(got_text, name, views[task]);
    }
  }
  if (expected_text.empty()) return {};
  return "expected " + expected_text + " got " + got_text;
}

std::string run(const Scenario& scenario) {
  if (!scenario.fault.empty()) return "cannot be read: " + scenario.fault;
  const std::string_view folder = folder_of(scenario);
  const auto action = std::find_if(kFolderActions.begin(), kFolderActions.end(),
                                   [&](const FolderAction& one) { return one.folder == folder; });
  if (action == kFolderActions.end() && folder != kUntilStable)
    return "cannot be read: its section '" + scenario.section +
           "' begins with no action's folder, nor with integration_tests/";
  Stage stage(scenario);
  if (std::string fault = stage.set_up(); !fault.empty()) return "cannot be read: " + fault;
  if (action != kFolderActions.end()) {
    stage.run_once(action->action);
  } else if (!stage.run_until_stable()) {
    return "expected a stable state got changes in each of " + std::to_string(kMostCycles) +
           " cycles";
  }
  return difference(scenario, stage);
}

}  // namespace

ScenarioResult run_scenario(const Scenario& scenario) {
  return {scenario.section, scenario.name, run(scenario)};
}

std::vector<ScenarioResult> run_scenarios(const std::vector<Scenario>& scenarios) {
  std::vector<ScenarioResult> verdicts;
  verdicts.reserve(scenarios.size());
  for (const Scenario& scenario : scenarios) verdicts.push_back(run_scenario(scenario));
  return verdicts;
}

std::string report_of(const std::vector<ScenarioResult>& verdicts) {
  std::string report;
  int as_expected = 0;
  for (const ScenarioResult& verdict : verdicts) {
    if (verdict.difference.empty()) {
      ++as_expected;
      report += "ok " + verdict.name + "\n";
    } else {
      report += "differs " + verdict.name + ": " + verdict.difference + "\n";
    }
  }
  return report + std::to_string(as_expected) + " of " + std::to_string(verdicts.size()) + "\n";
}

bool all_as_expected(const std::vector<ScenarioResult>& verdicts) {
  return std::all_of(verdicts.begin(), verdicts.end(),
                     [](const ScenarioResult& verdict) { return verdict.difference.empty(); });
}

}  // namespace muster::simulate
