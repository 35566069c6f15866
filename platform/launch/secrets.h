// Where the tasks of a job find its secrets: as variables, and as files below /generated/secrets.
// Both lie on disk only in what is 0600 and goes with the gang, and stand in no command line.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "job/spec.h"
#include "launch/task_plan.h"

namespace muster::launch {

using Texts = std::map<std::string, std::string>;

/// kNotFound: `values` lacks one; kInvalid: one that should be a variable contains a NUL byte.
base::Result<void> check_secrets(const std::vector<job::SecretUse>& uses, const Texts& values);

// REQUIRES: check_secrets() is content.
void add_secret_variables(const std::vector<job::SecretUse>& uses, const Texts& values,
                          Texts& environment);
void add_secret_files(const std::vector<job::SecretUse>& uses, const Texts& values, TaskPlan& plan);

}  // namespace muster::launch
