// A job as a YAML file:
//
//   name: dist
//   kind: mpi                    # or grpc, torch, or single, the default
//   workers: 2
//   slots_per_worker: 1
//   command: [mpirun, -np, "2", ./train]    # or a text, which sh -c runs
//   resources: {gpus: 1, cpus: 4, memory: 16G}
//   environment: {OMP_NUM_THREADS: 4}
//   folder: .                    # relative to the current folder, which is the default
//   sandbox: bubblewrap
//   start_timeout: 30s
//   grace: 10s
//   project: default
//
// Every key is a row of the table of fields (job/spec_table.cc). --set KEY=VALUE sets any of them
// from the command line: a key is the path of a field ("scheduling.priority", "environment.LR"), a
// value is text as one writes it in a job file; one that begins with '[' or '{' is a list or a map
// in one line:
// --set 'node_pools=[a100, h100]'.
//
// Pure.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "job/spec.h"

namespace muster::cli::spec {

using base::Result;

/// What the command line says over the file.
struct FileOverrides {
  std::string name = {};                   ///< of --name; empty: the file's
  std::vector<std::string> settings = {};  ///< of --set
};

/// Reads a spec; what the file does not say is as in `defaults`, and its environment is added to
/// theirs. `overrides` win over the file. `source` names the file in the
/// error.
///
/// Errors: kInvalid with every fault at once in the order of lines, each with line and field:
/// syntax, unknown and doubled keys, wrong types, and what job::validate says.
Result<job::JobSpec> parse_spec_file(std::string_view text, const std::string& source,
                                     const job::JobSpec& defaults,
                                     const FileOverrides& overrides = {});

struct SettingsRead {
  std::vector<base::Fault> faults;  ///< under the key: not a key, not a value, set twice
  std::set<std::string> keys;       ///< those that were set
};

SettingsRead apply_settings(const std::vector<std::string>& settings, job::JobSpec& spec);

/// Paths that may be relative, of `folder` and of volumes, become absolute.
void resolve_paths(const std::string& folder, job::JobSpec& spec);

}  // namespace muster::cli::spec
