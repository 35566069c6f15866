// Jobs as Run:AI's `list` and `describe job` print them: columns padded with two blanks, without
// borders.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "job/job.h"

namespace muster::dialects::runai {

/// "2 (2)": allocated and requested; "- (2)" of a job that has ended; "0.5 (0.5)"; "0 (8Gi)" where
/// GPU memory is asked for.
std::string gpus_of(const job::Job& job);

std::string job_list(const std::vector<job::Job>& jobs, base::Time now);

/// What it is, why it waits or failed, its pods and its events. `wide`: the pods with their GPUs
/// and how they ended.
std::string job_description(const job::Job& job, base::Time now, bool wide);

/// The same, as programs read it: name, namespace, duration, status, trainer, chiefName, priority,
/// commandLine, instances [{status, name, age, node, chief}].
std::string job_description_json(const job::Job& job, base::Time now);

}  // namespace muster::dialects::runai
