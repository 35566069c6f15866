// The server's own log: one line an event, to standard error or a file. Not the logs of jobs.
//
// Thread-safe. spdlog stays inside log.cc.
#pragma once

#include <filesystem>
#include <string_view>

namespace muster::base {

/// Sends the log to a file (0600, rotated at 8 MiB, three kept); until then it goes to stderr.
void log_to_file(const std::filesystem::path& path);

void log_info(std::string_view text);
void log_warning(std::string_view text);
void log_error(std::string_view text);

}  // namespace muster::base
