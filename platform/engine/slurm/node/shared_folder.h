// Whether a node sees the server's folder of jobs.
//
// I/O; may block as long as the file system does.
#pragma once

#include "base/result.h"
#include "engine/slurm/node_brief.h"

namespace muster::engine::slurm {

/// It holds the server's mark, and files can be made in it. Sharing::kYes: why it is not so is an
/// error.
base::Result<bool> shares_folder(const NodeBrief& brief);

}  // namespace muster::engine::slurm
