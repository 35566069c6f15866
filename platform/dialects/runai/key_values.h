// "key=value,key=value": what some flags of Run:AI take.
//
// Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "cli/command/arguments.h"

namespace muster::dialects::runai {

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
