// Jobs as Gradient's tables of experiments and jobs. Values of flags of `create` and `run` come from
// the annotations (gradient.h), so they are shown as typed; for other jobs, they come from the spec.
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

/// The value of a flag (without its dashes) of create or run; nothing if it was not given.
AsciiTable::Cell flag_value(const job::JobSpec& spec, const std::string& flag);

/// The name that the user gave; the job's name may differ.
std::string experiment_name(const job::Job& job);

/// Name, ID, Status.
AsciiTable experiment_table(const std::vector<job::Job>& jobs);

/// One experiment; the rows depend on its type.
AsciiTable experiment_details(const job::Job& job);

/// The tasks of experiments: ID, Name, Project, Cluster, Machine Type, Created.
AsciiTable job_table(const std::vector<job::Job>& jobs);

/// "ID/worker-0": the ID of a task in `gradient jobs`.
std::string id_of_task(const job::Job& job, const job::Task& task);

AsciiTable project_table(const std::vector<job::ProjectStatus>& projects);
AsciiTable project_details(const job::Project& project);

/// ID, Name, Type. A cluster is a pool of nodes.
AsciiTable cluster_table(const std::vector<std::string>& pools);
/// The node pools, sorted, without duplicates.
std::vector<std::string> pools_of(const std::vector<job::Node>& nodes);

AsciiTable machine_type_table(const job::MachineTypes& types,
                              const std::vector<std::string>& pools);

/// Gradient's state of an experiment:
///
///   created           waits for `gradient experiments start`
///   pending           waits for resources
///   provisioning      its tasks are being started
///   network setup     some tasks run; the others, or the leader, are not ready yet
///   running
///   network teardown  its tasks are being stopped, or its leader has ended
///   stopped           succeeded, or was stopped while it ran
///   failed            failed while it ran
///   canceled          was stopped before it ran
///   error             could not be started
std::string_view state_of(const job::Job& job);

/// Whether any of its tasks ever ran.
bool has_started(const job::Job& job);

/// JSON as a Python literal, as Gradient's own program prints it: {"a": true} -> {'a': True}. Nothing if
/// `json` is invalid.
std::optional<std::string> python_literal(std::string_view json);

/// The literal of a map of texts.
std::string python_literal(const std::map<std::string, std::string>& values);

}  // namespace muster::dialects::gradient
