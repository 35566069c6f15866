// What the commands of the tree are put together from.
//
// Pure.
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "cli/command_tree.h"

namespace muster::cli {

using Flags = std::vector<Flag>;

/// Of positionals: `most`, where there may be any number.
inline constexpr size_t kAnyNumber = std::numeric_limits<size_t>::max();

Flags operator+(Flags left, Flags right);

/// --output; the first of `formats` is what is printed without it.
Flags output_flag(std::vector<std::string> formats = {"table", "json", "yaml"});
/// The formats of what lists: with the names alone, for scripts and completion.
Flags list_output_flag();

/// --task, where a job has several.
Flags task_flag(const std::string& help);

Positionals new_name();
Positionals one_of(Offer offer);
Positionals some_of(Offer offer);
Positionals maybe_one_of(Offer offer);
Positionals any_of(Offer offer);

/// --ignore-missing; `what`: "a user".
Flags ignore_missing_flag(const std::string& what);
/// --project of a command on jobs that are named.
Flags whose_job_flag();

}  // namespace muster::cli
