// How a command prints what it found; YAML is the API's JSON with the same names, order and values.
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
