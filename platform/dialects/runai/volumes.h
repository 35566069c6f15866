// --volume, --pvc and their kin as job::Volume. A claim on a persistent volume becomes a folder of
// the project: of the name that was said, or, for a new one without a name, of the job's
// (named_after()). Its size and class are not held to.
//
// Pure.
#pragma once

#include <map>
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

// "key=value,key=value": what some flags of Run:AI take.
//
// Pure.

using KeyValues = std::map<std::string, std::string>;

struct KnownKeys {
  std::vector<std::string> with_value;
  std::vector<std::string> alone = {};  ///< {"ro"}: stand for themselves; their value is "true"
};

/// Faults go to `flag`: unknown keys, with the nearest one; those given twice; those with a value
/// too many or too few. A value is in no fault: it may be a password.
KeyValues read_key_values(const std::string& flag, const std::string& text, const KnownKeys& known,
                          cli::FlagReader& reader);

/// The value of a key, or empty.
std::string value_of(const KeyValues& values, const std::string& key);

/// "NAME=VALUE" of each time that `flag` is given, cut at the first '='. Without a '=' it is a
/// fault, with `advice`.
std::map<std::string, std::string> read_pairs(const std::string& flag, const std::string& advice,
                                              cli::FlagReader& reader);

}  // namespace muster::dialects::runai
