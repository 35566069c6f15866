// The load that bench/api.py puts on a server. Each function generates one kind of load, and prints
// its measurements as JSON.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

namespace bench {

/// Writes `count` ended jobs into a new database: a file, or the URL of a PostgreSQL.
int fill(const std::string& database, size_t count);

/// `clients` threads submit `count` jobs in total. Each thread waits for an answer before its next
/// submit. The jobs request `gpus` GPUs each and run `command`.
int submit(const std::filesystem::path& socket, size_t clients, size_t count, int gpus,
           const std::string& command);

/// Requests pages of the list, and single jobs that fill() has written, `count` times each.
int list_and_get(const std::filesystem::path& socket, size_t jobs, size_t count);

/// Prints numbered lines of 100 bytes, `megabytes_a_second` for `seconds`.
int write_log(double megabytes_a_second, double seconds);

/// `readers` connections follow the log of `job` to its end. Each must receive every line once, in
/// order.
int watch_log(const std::filesystem::path& socket, const std::string& job, size_t readers);

/// Holds `count` streams open until standard input ends: half of them follow the changes of all
/// jobs, half the log of one job. Prints "ready" once each has received its first bytes.
int hold_streams(const std::filesystem::path& socket, const std::string& job, size_t count);

}  // namespace bench
