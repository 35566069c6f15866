// Node lists as Slurm writes them: "n[1-3,07],gpu-a2".
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace muster::engine::slurm {

/// More than any cluster has; a longer list is none.
inline constexpr size_t kMostNodes = 200'000;

/// Each name in order, numbers with the zeros that stand before them: n1, n2, n3, n07, gpu-a2. A
/// name may have several brackets. None for "", "(null)", "None assigned". kInvalid: it is none.
base::Result<std::vector<std::string>> expand_nodes(std::string_view list);

}  // namespace muster::engine::slurm
