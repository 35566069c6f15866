// How a command prints what it found.
//
// The API's JSON written as YAML, for --output yaml: same names, same order, same values.
//
// Pure.
#pragma once

#include <string>
#include <string_view>

namespace muster::cli {

enum class Output { kTable, kJson, kYaml, kNames };

/// `json` must be valid JSON; text that is not comes back as one YAML string.
std::string json_to_yaml(std::string_view json);

}  // namespace muster::cli
