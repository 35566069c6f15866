// --volume, --pvc and related flags as job::Volume. A persistent volume claim becomes a folder of the
// project, with the claim's name, or named after the job if it has none (named_after()). Its size and
// class are not enforced. On a server that runs jobs on Kubernetes, an existing claim is mounted.
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
  std::string flag;    ///< the flag with the volume
  job::Volume volume;  ///< named_after() sets the source of kStorage if it is empty
};

/// An existing volume claim of the cluster.
struct AskedClaim {
  std::string flag;
  std::string claim;  ///< of KubernetesSpec::claims: "NAME:PATH[:ro]"
};

struct AskedMounts {
  std::vector<AskedVolume> volumes;
  std::vector<AskedClaim> claims;  ///< only on Kubernetes
};

/// Reports faults to `reader`. `notes`: differences from Run:AI. `on_kubernetes`: as in
/// cli::is_for_kubernetes().
AskedMounts read_volumes(cli::FlagReader& reader, bool on_kubernetes,
                         std::vector<std::string>& notes);

/// Sets the name, and names folders of the project after it: dist-volume-0 ...
job::JobSpec named_after(job::JobSpec spec, const std::string& name);

/// The normal form of an absolute path: "/data//x/" -> "/data/x".
std::string plain_path(const std::string& path);

/// The value of flags such as "key=value,key=value".
using KeyValues = std::map<std::string, std::string>;

struct KnownKeys {
  std::vector<std::string> with_value;
  std::vector<std::string> alone =
      {};  ///< keys without a value, such as "ro"; their value is "true"
};

/// Reports faults of `flag`: unknown keys, repeated keys, missing or unexpected values. Faults never
/// contain a value, which may be a password.
KeyValues read_key_values(const std::string& flag, const std::string& text, const KnownKeys& known,
                          cli::FlagReader& reader);

/// The value of a key, or empty.
std::string value_of(const KeyValues& values, const std::string& key);

/// The "NAME=VALUE" values of a flag that repeats. Reports a value without '=', with `advice`.
std::map<std::string, std::string> read_pairs(const std::string& flag, const std::string& advice,
                                              cli::FlagReader& reader);

}  // namespace muster::dialects::runai
