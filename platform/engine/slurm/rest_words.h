// Slurm's words as slurmrestd has them: lists of states and flags, and sentences.
//
// Pure; thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine::slurm::rest {

/// `said` on one line, as a sentence of an error needs it, cut to `longest` bytes.
std::string one_line(std::string_view said, size_t longest);

/// Of {"down", "DRAIN", "NOT_RESPONDING"}: "DOWN*+DRAIN", as scontrol writes it.
std::string node_state_text(const std::vector<std::string>& words);

}  // namespace muster::engine::slurm::rest
