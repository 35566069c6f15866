// Amounts of several resources at once, as people read them.
//
// Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "job/spec.h"

namespace muster::cli {

/// "2 GPU, 16 CPU, 64Gi". GPUs always, the others where they are said.
std::string amounts_words(std::optional<int64_t> gpu_milli, std::optional<int64_t> cpu_milli,
                          std::optional<int64_t> memory_bytes);

/// How many workers it runs with: "4", "2-4" of an elastic one.
std::string worker_range(const job::JobSpec& spec);

/// What a job asks for: "2 x 1 GPU, 4 CPU", "2-4 x 1 GPU", "0.5 GPU", "1 x 1 GPU + 1 GPU (chief)";
/// "-" where it claims nothing.
std::string needs_words(const job::JobSpec& spec);

}  // namespace muster::cli
