// Which of Slurm's accounts a project's jobs are charged to: one answer for whoever submits them
// and for whoever says what jobs may name beside it.
//
// Pure.
#pragma once

#include <map>
#include <string>

namespace muster::job {

/// That of the project in `accounts`, else `fallback`, in which "%p" is the project's name. Empty:
/// Slurm's own for the user.
std::string slurm_account_of(const std::string& project,
                             const std::map<std::string, std::string>& accounts,
                             const std::string& fallback);

}  // namespace muster::job
