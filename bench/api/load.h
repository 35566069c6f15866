// The load that bench/api.py puts on a server. Each function does one kind, and prints what it
// measured as JSON.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace bench {

/// Writes `count` jobs that have ended into a new database.
int fill(const std::filesystem::path& database, size_t count);

/// `clients` threads submit `count` jobs in all, each waiting for the answer before its next. They
/// ask for `gpus` each and run `command`.
int submit(const std::filesystem::path& socket, size_t clients, size_t count, int gpus,
           const std::string& command);

/// Asks for pages of the list, and for single jobs of those that fill() made, `count` times each.
int list_and_get(const std::filesystem::path& socket, size_t jobs, size_t count);

/// Prints numbered lines of 100 bytes: `megabytes_a_second` for `seconds`.
int write_log(double megabytes_a_second, double seconds);

/// `readers` connections follow the log of `job` to its end; each must see every line once, in
/// order.
int watch_log(const std::filesystem::path& socket, const std::string& job, size_t readers);

/// Holds `count` streams open, half of them of all jobs' changes and half of one job's log, until
/// standard input ends. Prints "ready" once each has had its first bytes.
int hold_streams(const std::filesystem::path& socket, const std::string& job, size_t count);

}  // namespace bench
