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

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
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
