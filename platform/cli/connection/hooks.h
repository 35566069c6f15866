// What the command line cannot do by itself, for it sees neither the server nor its engines:
// main.cc hands it in.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "config/server_config.h"
#include "job/diagnosis.h"

namespace muster::cli {

/// What a look at a store, or a copy of it, has found.
struct StoreReport {
  int schema_version = 0;
  std::vector<std::pair<std::string, uint64_t>> counts;  ///< "jobs", 12
  std::vector<std::string> faults;                       ///< of `check`: sentences
  std::vector<std::string> set_aside;                    ///< the same: the records set aside
};

/// What `muster doctor` looks at.
struct DoctorWish {
  std::vector<std::string> engines;  ///< "process" ...
  config::ServeOptions options;      ///< of the server that would run here
  std::filesystem::path jobs_folder;
  bool server_runs = false;  ///< with this folder
};

/// What the command line cannot do by itself, for it sees neither the server nor its engines.
struct Hooks {
  /// Runs the server until it ends; the exit code.
  std::function<int(const config::ServeOptions&, const config::ReadAgain&)> serve;
  std::string version;
  std::string context = {};  ///< what --context says; filled in by run()
  std::string engine = {};   ///< what --engine says, of commands that start jobs; empty: nothing

  // Of the store that a server with these options would use.
  using StoreTool = std::function<base::Result<StoreReport>(const config::ServeOptions&,
                                                            const std::string& file)>;
  StoreTool backup_store = {};
  StoreTool restore_store = {};
  std::function<base::Result<StoreReport>(const config::ServeOptions&)> check_store = {};
  StoreTool set_record_aside = {};  ///< its second argument is the name of the record
  /// What was found of each of the engines, in their order, within some seconds.
  std::function<std::vector<job::Diagnosis>(const DoctorWish&)> examine = {};
};

}  // namespace muster::cli
