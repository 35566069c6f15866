// How far a job has come.
//
// Plain values; the functions are in job.cc.
#pragma once

#include <optional>
#include <string_view>

namespace muster::job {

enum class Phase { kQueued, kStarting, kRunning, kSucceeded, kFailed, kStopped };

/// "Queued", "Running" ...: the words of the API and of every listing.
std::string_view to_string(Phase phase);
std::optional<Phase> phase_of(std::string_view name);

/// Succeeded, Failed or Stopped: nothing of the job runs and nothing will.
bool is_final(Phase phase);

}  // namespace muster::job
