// Slurm's words as slurmrestd has them: lists of states and flags.
//
// Pure; thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace muster::engine::slurm::rest {

/// "CANCELLED+COMPLETING".
std::string joined(const std::vector<std::string>& words, std::string_view between);

/// Of {"down", "DRAIN", "NOT_RESPONDING"}: "DOWN*+DRAIN", as scontrol writes it.
std::string node_state_text(const std::vector<std::string>& words);

}  // namespace muster::engine::slurm::rest
