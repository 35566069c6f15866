// The part of validate() that is about labels and annotations.
//
// Pure.
#pragma once

#include <string_view>

#include "job/checker.h"
#include "job/spec.h"

namespace muster::job {

/// Text that a line of a table can show: UTF-8 without control characters, those of Latin-1 (which
/// are two bytes, C2 80 to C2 9F) among them.
bool is_shown(std::string_view text);

void check_labels(const JobSpec& spec, Checker& check);

}  // namespace muster::job
