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
//   workspace: .                 # files that are sent; relative to the file. Or {from, ref, ignore}
//
// Every key is a row of the table of fields (job/spec_table.cc). --set KEY=VALUE sets any of them
// from the command line: a key is the path of a field ("scheduling.priority", "environment.LR"), a
// value is text as in a job file; a value that begins with '[' or '{' is a list or a map
// in one line:
// --set 'node_pools=[a100, h100]'.
//
// Pure.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "cli/spec/send_workspace.h"
#include "config/yaml.h"
#include "job/spec.h"
#include "record/difference.h"

namespace muster::cli::spec {

using base::Result;

/// Values of the command line that override the file: flags, and then settings.
struct FileOverrides {
  std::string name = {};                   ///< of --name; empty: the file's
  std::vector<std::string> settings = {};  ///< of --set
  /// Applies flags and returns the fields that they set. Not set: there are no flags.
  std::function<std::set<std::string>(job::JobSpec&)> flags = {};
};

/// A value that the command line changed. `value.left` is that of the file or of the other job.
struct ChangedValue {
  record::Difference value;
  bool by_setting = false;  ///< by --set; false: by a flag
  bool was_given = true;    ///< false: `value.left` is the default
};

/// The values in which `after` differs from `before`. `flagged`: after the flags, before --set.
std::vector<ChangedValue> changed_values(const job::JobSpec& before, const job::JobSpec& flagged,
                                         const job::JobSpec& after);

/// A document of a job file, as the command line changed it.
struct SpecRead {
  job::JobSpec spec;
  std::optional<WorkspaceKey> workspace;
  std::vector<ChangedValue> changes;
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

/// The same, with the keys that are no fields of a spec.
Result<SpecRead> read_spec_document(const config::YamlValue& document, const std::string& source,
                                    const job::JobSpec& defaults,
                                    const FileOverrides& overrides = {});

struct SettingsRead {
  std::vector<base::Fault> faults;  ///< by key: unknown keys, invalid values, keys set twice
  std::set<std::string> keys;       ///< the keys that were set
};

SettingsRead apply_settings(const std::vector<std::string>& settings, job::JobSpec& spec);
/// The fault of a setting for people: "--set: 'workers' is set twice".
base::Fault fault_of_setting(const base::Fault& fault);

/// The fault of `folder`, if the caller's current folder was deleted.
inline constexpr const char* kFolderIsGone =
    "is the current folder, which no longer exists; change to another folder, or give --folder";

/// Makes the paths of `folder` and volumes absolute.
void resolve_paths(const std::string& folder, job::JobSpec& spec);

}  // namespace muster::cli::spec
