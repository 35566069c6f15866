// Facts of this machine: its name, the user of this process, and the GPUs that an administrator
// declares for it instead of the detected GPUs. Declared GPUs let the scheduler be tried on a
// machine without GPUs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace muster::engine {

std::string host_name();

/// The login name of this process's user; the user's id if it has no name.
std::string user_name();

/// The home folder of this process's user in the user database; empty: unknown.
std::string account_home();

/// The most GPUs of a node, found or declared.
inline constexpr int kMaxGpus = 64;

struct DeclaredGpus {
  int count = 0;
  std::string model;         ///< empty: unknown
  int64_t memory_bytes = 0;  ///< of each; 0: unknown

  bool operator==(const DeclaredGpus&) const = default;
};

/// "N[:MODEL[:MEMORY]]": 2, 8:A100, 4:NVIDIA H100 80GB HBM3:80G. 0 hides the machine's GPUs.
/// kInvalid: lists every fault of the text. Pure.
base::Result<DeclaredGpus> parse_declared_gpus(std::string_view text);

}  // namespace muster::engine
