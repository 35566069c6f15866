// What is wrong with a job that was read, said of the flags that it came from.
//
// Pure.
#pragma once

#include <string>
#include <vector>

#include "cli/command/arguments.h"
#include "dialects/runai/submission.h"
#include "dialects/runai/volumes.h"

namespace muster::dialects::runai {

/// A name, or what numbered names begin with.
void check_name(const std::string& name, bool is_prefix, cli::FlagReader& reader);

/// Adds what job::validate() finds, but for flags that are at fault already: what stands in for
/// their values is nobody's fault. `volumes` are those of the spec from `own_volumes` on.
void check_submission(const Submission& submission, const std::vector<std::string>& path,
                      const std::vector<AskedVolume>& volumes, size_t own_volumes,
                      cli::FlagReader& reader);

}  // namespace muster::dialects::runai
