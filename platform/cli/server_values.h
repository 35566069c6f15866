// How the values of the server's keys are read: one function for each kind of value. A value that
// cannot be read leaves what was there, and a fault.
//
// Pure; for server_keys.cc and server_values_slurm.cc alone.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/server_keys.h"

namespace muster::cli {

/// Notes what is wrong with a value, with its line.
void add_fault(const KeyValue& value, std::string what);

void read_text(const KeyValue& value, std::string& target);
void read_filled_text(const KeyValue& value, std::string& target);
void read_path(const KeyValue& value, std::optional<std::filesystem::path>& target);
/// A list, or "a,b".
/// Absolute paths.
void read_folders(const KeyValue& value, std::vector<std::string>& target);
void read_names(const KeyValue& value, std::vector<std::string>& target);
/// A list: a program's path from the root, then its arguments.
void read_command(const KeyValue& value, std::vector<std::string>& target);
/// A file, or the URL of a database; by a flag, one without a password.
void read_store(const KeyValue& value, std::string& target);
/// HOST:PORT.
void read_listen(const KeyValue& value, std::string& target);
void read_switch(const KeyValue& value, bool& target);

void read_time(const KeyValue& value, std::chrono::milliseconds& target);
void read_some_time(const KeyValue& value, std::chrono::milliseconds& target);  ///< not 0
void read_seconds(const KeyValue& value, std::chrono::milliseconds& target);    ///< 1s or more
void read_maybe_time(const KeyValue& value, std::optional<std::chrono::milliseconds>& target);
void read_time_or_never(const KeyValue& value, std::optional<std::chrono::milliseconds>& target);

void read_rate(const KeyValue& value, double& target);   ///< more than 0
void read_decay(const KeyValue& value, double& target);  ///< 0 or more
void read_positive(const KeyValue& value, int& target);
void read_size(const KeyValue& value, int64_t& target);          ///< 1Ki to 1Gi
void read_large_size(const KeyValue& value, int64_t& target);    ///< 1Ki or more
void read_size_or_none(const KeyValue& value, int64_t& target);  ///< 0, or 1Ki or more

// Limits that need not be: "forever", "all".
void read_time_or_forever(const KeyValue& value, std::optional<std::chrono::milliseconds>& target);
void read_count_or_all(const KeyValue& value, std::optional<int>& target);
void read_size_or_all(const KeyValue& value, std::optional<int64_t>& target);

void read_log_format(const KeyValue& value, std::string& target);
void read_packing(const KeyValue& value, std::string& target);
void read_engine(const KeyValue& value, std::string& target);
/// A map of levels, or "rack=r1,block=b1".
void read_topology(const KeyValue& value, std::map<std::string, std::string>& target);
/// A map from names to URLs, or "gpu-1=ssh://gpu-1,gpu-2=ssh://gpu-2". What stands in a URL is the
/// engine's to judge.
void read_container_hosts(const KeyValue& value, std::map<std::string, std::string>& target);

}  // namespace muster::cli
