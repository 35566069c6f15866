// Jobs as Gradient shows experiments and jobs. What was said to `create` or `run` is read from the
// annotations (gradient.h), so it comes back as it was typed; of a job that was submitted
// otherwise, what its spec has of it.
//
// Pure.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "dialects/gradient/ascii_table.h"
#include "job/job.h"
#include "job/machine_type.h"
#include "job/node.h"
#include "job/project.h"

namespace muster::dialects::gradient {

/// What was said with a flag (without its dashes) of create or run; nothing where it was not.
AsciiTable::Cell said(const job::JobSpec& spec, const std::string& flag);

/// As its user called it, which is not always what its job is called.
std::string experiment_name(const job::Job& job);

/// Name, ID, Status.
AsciiTable experiment_table(const std::vector<job::Job>& jobs);

/// One experiment: the rows depend on its type.
AsciiTable experiment_details(const job::Job& job);

/// The tasks of experiments: ID, Name, Project, Cluster, Machine Type, Created.
AsciiTable job_table(const std::vector<job::Job>& jobs);

/// "ID/worker-0", by which `gradient jobs` knows a task of an experiment.
std::string id_of_task(const job::Job& job, const job::Task& task);

AsciiTable project_table(const std::vector<job::ProjectStatus>& projects);
AsciiTable project_details(const job::Project& project);

/// ID, Name, Type. A cluster is a pool of nodes.
AsciiTable cluster_table(const std::vector<std::string>& pools);
/// The pools that the nodes are in, each once, sorted.
std::vector<std::string> pools_of(const std::vector<job::Node>& nodes);

AsciiTable machine_type_table(const job::MachineTypes& types,
                              const std::vector<std::string>& pools);

// The state of an experiment, as Gradient calls it:
//
//   created           it was made, and waits for `gradient experiments start`
//   pending           it waits for room
//   provisioning      its tasks are being started
//   network setup     some run; the others, or the leader, are reached next
//   running
//   network teardown  it ends: it was stopped, or its leader has ended, and the rest is being ended
//   stopped           it ended well, or was stopped while it ran
//   failed            it ran, and failed
//   canceled          it was stopped before it ran
//   error             it could not be started
//
// Pure.

std::string_view state_of(const job::Job& job);

/// Whether it ran, be it only for a moment.
bool has_started(const job::Job& job);

// JSON as Python shows it: Gradient's own program prints dictionaries so.
//
// Pure.

/// {"a": true} -> {'a': True}. Nothing where `json` is none.
std::optional<std::string> python_literal(std::string_view json);

/// Of a dictionary of texts.
std::string python_literal(const std::map<std::string, std::string>& values);

}  // namespace muster::dialects::gradient
