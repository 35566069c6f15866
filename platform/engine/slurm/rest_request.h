// What slurmrestd is asked, as text.
//
// Pure; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/slurm/rest_versions.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// The body of a submission. It holds the script, and with it perhaps a key.
std::string rest_submit_body(const Submission& submission, const RestDialect& dialect);

/// The body of DELETE /jobs/, of versions that end many at once.
std::string rest_cancel_body(const std::vector<uint64_t>& ids);

}  // namespace muster::engine::slurm
