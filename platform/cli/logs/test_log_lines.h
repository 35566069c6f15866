// Log records for tests.
#pragma once

#include <string>

#include "job/log_record.h"

namespace muster::cli::logs {

/// A line of a task on its own host, without a time.
inline job::LogRecord log_line(const std::string& task, const std::string& text,
                               bool continues = false) {
  return {.time = {}, .task = task, .host = task, .text = text, .continues = continues};
}

}  // namespace muster::cli::logs
