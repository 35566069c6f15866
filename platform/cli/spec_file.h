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
// Every key is a row of the table of fields (job/spec_table.cc).
//
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "job/spec.h"

namespace muster::cli {

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

}  // namespace muster::cli
