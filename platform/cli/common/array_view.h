// Arrays as text for people: the page of `get`, and the line that shows how far an array is.
//
// Pure.
#pragma once

#include <string>

#include "base/clock.h"
#include "job/array.h"

namespace muster::cli {

/// "40 of 100 done: 38 succeeded, 2 failed; 8 run, 52 wait".
std::string array_counts(const job::Array& array);

/// Fields, the number of members in each phase, and the first members that failed.
std::string array_page(const job::Array& array, base::Time now);

}  // namespace muster::cli
