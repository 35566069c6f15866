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
// value is text as in a job file; a value that begins with '[' or '{' is a list or a map
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
#include "config/yaml.h"
#include "job/spec.h"

namespace muster::cli::spec {

using base::Result;

/// Settings of the command line that override the file.
struct FileOverrides {
  std::string name = {};                   ///< of --name; empty: the file's
  std::vector<std::string> settings = {};  ///< of --set
};

/// Reads a spec. Missing keys are as in `defaults`; the environment is added to that of `defaults`.
/// `overrides` override the file. `source`: the file's name for errors.
///
/// Errors: kInvalid, with all faults in the order of lines: syntax, unknown and repeated keys, wrong
/// types, and the faults of job::validate().
Result<job::JobSpec> parse_spec_file(std::string_view text, const std::string& source,
                                     const job::JobSpec& defaults,
                                     const FileOverrides& overrides = {});

/// The same, from a document that was parsed.
Result<job::JobSpec> parse_spec_document(const config::YamlValue& document,
                                         const std::string& source, const job::JobSpec& defaults,
                                         const FileOverrides& overrides = {});

struct SettingsRead {
  std::vector<base::Fault> faults;  ///< by key: unknown keys, invalid values, keys set twice
  std::set<std::string> keys;       ///< the keys that were set
};

SettingsRead apply_settings(const std::vector<std::string>& settings, job::JobSpec& spec);

/// Makes the paths of `folder` and volumes absolute.
void resolve_paths(const std::string& folder, job::JobSpec& spec);

}  // namespace muster::cli::spec
