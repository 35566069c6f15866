// Scheduler scenarios as text: a cluster, projects, jobs and the state that is expected of them.
// The notation is explained at the head of tests/data/scheduler-scenarios.md and in
// docs/scheduler.md:
//
//   ## preempt/preempt_test.go
//   - **a build job takes the place of a train job**
//     nodes: node0:1G · queues: q(des=1)
//     jobs: old[q,train,1G x1]{1xRunning@node0} | new[q,build,1G x1]{1xPending}
//     expect: old=Releasing@node0, new=Pipelined@node0
//
// Pure: text in, values out. Running them is scenario_run.h's part.
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
  kPipelined,  ///< has a place that others are still leaving
  kReleasing,  ///< has to leave
  kFailed,
};

std::string_view to_string(TaskState state);
std::optional<TaskState> task_state_of(std::string_view name);

/// What a task does, and where. In an expectation an empty node means: anywhere.
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
  std::optional<int> task;  ///< nothing: all of them
  TaskView view;

  bool operator==(const Expectation&) const = default;
};

struct Scenario {
  std::string section;  ///< of the file: its folder says what is run
  std::string name;
  int line = 0;  ///< where it begins
  std::vector<schedule::Node> nodes;
  std::vector<schedule::Project> projects;  ///< queues and departments
  std::vector<ScenarioJob> jobs;
  std::vector<Expectation> expected;
  std::string fault;  ///< why it cannot be read; empty: it can
};

/// Every scenario of a file, in its order. One that cannot be read is among them, with its fault:
/// the others count all the same.
///
/// Errors: kInvalid, where there is no scenario at all.
base::Result<std::vector<Scenario>> parse_scenarios(std::string_view text);

}  // namespace muster::simulate

namespace muster::simulate::notation {

// The small pieces that the notation of scenarios is read with: splitting, prefixes, numbers.
//
// Pure; for scenarios.cc alone.

using base::single_quoted;
using base::trimmed;

base::Error fault(std::string what);

/// The parts of `text` between `separator`s, without blanks around them; none where it is blank.
std::vector<std::string_view> parts_of(std::string_view text, std::string_view separator);
/// As parts_of(), but a separator within brackets does not count.
std::vector<std::string_view> outer_parts_of(std::string_view text, char separator);
/// `text` before and after the first `separator`; nothing where there is none.
std::optional<std::pair<std::string_view, std::string_view>> cut(std::string_view text,
                                                                 std::string_view separator);
/// Takes it off, if it is there.
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

// Runs scenarios over the scheduler and holds what comes of them against what is expected.
//
// In a section whose folder is integration_tests/, cycles are repeated on a virtual clock until
// nothing changes any more; evicted tasks have left before the next cycle. In any other, one plan
// is made with nothing but the action that names the folder (allocate, consolidation, preempt,
// reclaim, stalegangeviction), and seen before anything of it is carried out.
//
// Pure and deterministic.

struct Verdict {
  std::string section;
  std::string name;
  std::string difference;  ///< "expected ... got ..."; empty: all is as expected

  bool operator==(const Verdict&) const = default;
};

/// Which of several equal nodes was taken makes no difference: two nodes are equal where they are
/// of one size and the same jobs run on them at the start.
Verdict run_scenario(const Scenario& scenario);
std::vector<Verdict> run_scenarios(const std::vector<Scenario>& scenarios);

/// A line for each: "ok NAME", or "differs NAME: expected ... got ..."; "N of M" last.
std::string report_of(const std::vector<Verdict>& verdicts);
bool all_as_expected(const std::vector<Verdict>& verdicts);

}  // namespace muster::simulate
