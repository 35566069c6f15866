// The server's own log: one line an event, to standard error. Not the logs of jobs.
//
// Thread-safe. spdlog stays inside log.cc.
#pragma once

#include <string_view>

namespace muster::base {

void log_info(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);

}  // namespace muster::base
