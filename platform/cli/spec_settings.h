// --set KEY=VALUE: any key of a job file, from the command line.
//
// A key is the path of a field ("scheduling.priority", "environment.LR"). A value is text as one
// writes it in a job file; one that begins with '[' or '{' is a list or a map as YAML writes them
// in one line: --set 'node_pools=[a100, h100]'. Pure.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "job/spec.h"

namespace muster::cli {

struct SettingsRead {
  std::vector<base::Fault> faults;  ///< under the key: not a key, not a value, set twice
  std::set<std::string> keys;       ///< those that were set
};

SettingsRead apply_settings(const std::vector<std::string>& settings, job::JobSpec& spec);

/// Paths that may be relative, of `folder` and of volumes, become absolute.
void resolve_paths(const std::string& folder, job::JobSpec& spec);

}  // namespace muster::cli
