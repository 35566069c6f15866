// Limits that several tables of a job's spec name (spec_table.h).
#pragma once

#include <cstdint>

namespace muster::job {

inline constexpr int64_t kDayInMs = int64_t{24} * 3600 * 1000;

/// Of a schema: a word of 1 to 100 printable ASCII characters, with no blank at either end.
inline constexpr const char* kWordPattern = "^[!-~]([ -~]{0,98}[!-~])?$";

}  // namespace muster::job
