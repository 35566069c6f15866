// Jobs as Gradient shows experiments and jobs. What was said to `create` or `run` is read from the
// annotations (gradient.h), so it comes back as it was typed; of a job that was submitted
// otherwise, what its spec has of it.
//
// Pure.
#pragma once

#include <string>
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

}  // namespace muster::dialects::gradient
