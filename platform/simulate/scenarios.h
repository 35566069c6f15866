// Scheduler scenarios as text: a cluster, projects, jobs and their expected states. The notation is
// described in tests/data/scheduler-scenarios.md and docs/scheduler.md:
//
//   ## preempt/preempt_test.go
//   - **a build job takes the place of a train job**
//     nodes: node0:1G · queues: q(des=1)
//     jobs: old[q,train,1G x1]{1xRunning@node0} | new[q,build,1G x1]{1xPending}
//     expect: old=Releasing@node0, new=Pipelined@node0
//
// Pure: text in, values out.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/text.h"
#include "schedule/model.h"

namespace muster::simulate {

enum class TaskState {
  kPending,
  kRunning,
  kBinding,    ///< starts now
  kPipelined,  ///< has a promised placement that other tasks are leaving
  kReleasing,  ///< is being evicted
  kFailed,
};

std::string_view to_string(TaskState state);
std::optional<TaskState> task_state_of(std::string_view name);

/// A task's state and node. In an expectation, an empty node means any node.
struct TaskView {
  TaskState state = TaskState::kPending;
  std::string node;

  bool operator==(const TaskView&) const = default;
};

/// "Running@node0", "Pending".
std::string to_string(const TaskView& view);

struct ScenarioJob {
  schedule::Gang gang;          ///< its id is its name
  std::vector<TaskView> tasks;  ///< at the start

  bool operator==(const ScenarioJob&) const = default;
};

struct Expectation {
  std::string job;
  std::optional<int> task;  ///< nothing: all tasks
  TaskView view;

  bool operator==(const Expectation&) const = default;
};

struct Scenario {
  std::string section;  ///< of the file; its folder determines the action
  std::string name;
  int line = 0;  ///< of the file
  std::vector<schedule::Node> nodes;
  std::vector<schedule::Project> projects;  ///< queues and departments
  std::vector<ScenarioJob> jobs;
  std::vector<Expectation> expected;
  std::string fault;  ///< why it is invalid; empty: valid
};

/// All scenarios of a file, in order, including invalid ones with their faults.
///
/// Errors: kInvalid: the file contains no scenario.
base::Result<std::vector<Scenario>> parse_scenarios(std::string_view text);

}  // namespace muster::simulate

namespace muster::simulate::notation {

// Helpers for parsing the notation: splitting, prefixes, numbers.

using base::single_quoted;
using base::trimmed;

base::Error fault(std::string what);

/// The trimmed parts of `text` between `separator`s; none if it is blank.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator);
/// As parts_of(), but separators within brackets do not split.
std::vector<std::string_view> outer_parts_of(std::string_view text, char separator);
/// `text` before and after the first `separator`; nothing if there is none.
std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view text,
                                                                 std::string_view separator);
/// Removes the prefix if it is there.
bool take_prefix(std::string_view& text, std::string_view prefix);
bool take_suffix(std::string_view& text, std::string_view suffix);

/// "12": from 0 to `most`.
base::Result<int64_t> whole(std::string_view text, int64_t most);
/// "2" or "0.5", in thousandths.
base::Result<int64_t> thousandths(std::string_view text);
/// "100", "100+1", "50-1".
base::Result<int> sum(std::string_view text);

}  // namespace muster::simulate::notation

namespace muster::simulate {

// Running scenarios with the scheduler, and comparing the result with the expected one.
//
// In the folder integration_tests/, cycles are repeated on a virtual clock until nothing changes;
// evicted tasks have left before the next cycle. In other folders, one plan is made with only the
// action of the folder's name (allocate, consolidation, preempt, reclaim, stalegangeviction), and
// compared before it is carried out.
//
// Pure and deterministic.

struct ScenarioResult {
  std::string section;
  std::string name;
  std::string difference;  ///< "expected ... got ..."; empty: as expected

  bool operator==(const ScenarioResult&) const = default;
};

/// The choice between equal nodes does not matter: two nodes are equal if they have the same size
/// and the same jobs at the start.
ScenarioResult run_scenario(const Scenario& scenario);
std::vector<ScenarioResult> run_scenarios(const std::vector<Scenario>& scenarios);

/// A line for each scenario: "ok NAME" or "differs NAME: expected ... got ..."; the last line is "N
/// of M".
std::string report_of(const std::vector<ScenarioResult>& verdicts);
bool all_as_expected(const std::vector<ScenarioResult>& verdicts);

}  // namespace muster::simulate
