// Words that all engines use where files of tasks that run cannot be changed.
//
// Pure.
#pragma once

#include <string>

#include "base/error.h"

namespace muster::engine {

inline base::Error change_error(const std::string& task, base::Error error) {
  error.what = "cannot change the files of " + task + ": " + error.what;
  return error;
}

inline base::Error not_started_yet() {
  return {.code = base::ErrorCode::kConflict, .what = "its start is not done yet"};
}

}  // namespace muster::engine
