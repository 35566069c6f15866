// How a command prints what it found.
#pragma once

namespace muster::cli {

enum class Output { kTable, kJson, kYaml, kNames };

}  // namespace muster::cli
