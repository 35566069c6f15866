// --volume, --pvc and their kin as job::Volume. A claim on a persistent volume becomes a folder of
// the project: of the name that was said, or, for a new one without a name, of the job's
// (named_after()). Its size and class are not held to.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "job/spec.h"

namespace muster::dialects::runai {

struct AskedVolume {
  std::string flag;    ///< that asked for it
  job::Volume volume;  ///< kStorage without source: named_after() names it
};

/// Faults go into `reader`; `notes`: what is not as it would be with Run:AI.
std::vector<AskedVolume> read_volumes(cli::FlagReader& reader, std::vector<std::string>& notes);

/// `spec` under this name, with the project's folders that are its own: dist-volume-0 ...
job::JobSpec named_after(job::JobSpec spec, const std::string& name);

/// An absolute path in the one way to write it: "/data//x/" -> "/data/x".
std::string plain_path(const std::string& path);

}  // namespace muster::dialects::runai
