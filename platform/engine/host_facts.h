// Who this machine and its user are, for the process engine.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::engine {

std::string host_name();

/// The login name of this process's user; its number where it has no name.
std::string user_name();

/// The home folder of this process's user, as the user database has it; empty where it has none.
std::string account_home();

// GPUs that a machine is said to have, for trying the scheduler out on a machine without any.
//
// Pure.

/// A node has no more of them, found or declared.
inline constexpr int kMaxGpus = 64;

struct DeclaredGpus {
  int count = 0;
  std::string model;         ///< empty: unknown
  int64_t memory_bytes = 0;  ///< of each; 0: unknown

  bool operator==(const DeclaredGpus&) const = default;
};

/// "N[:MODEL[:MEMORY]]": 2, 8:A100, 4:NVIDIA H100 80GB HBM3:80G. 0 hides those that the machine
/// has. kInvalid with every fault of the text.
base::Result<DeclaredGpus> parse_declared_gpus(std::string_view text);

}  // namespace muster::engine
