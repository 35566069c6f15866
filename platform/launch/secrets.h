// The secrets of a job in its tasks: as variables, and as files below /generated/secrets. On disk,
// both exist only in files with mode 0600 that are removed with the gang; they appear in no command
// line.
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

/// kNotFound: `values` lacks a secret; kInvalid: the value for a variable contains a NUL byte.
base::Result<void> check_secrets(const std::vector<job::SecretUse>& uses, const Texts& values);

// REQUIRES: check_secrets() succeeded.
void add_secret_variables(const std::vector<job::SecretUse>& uses, const Texts& values,
                          Texts& environment);
void add_secret_files(const std::vector<job::SecretUse>& uses, const Texts& values, TaskPlan& plan);

}  // namespace muster::launch
