// The commands on a server of this machine: server, store, doctor; and the flags and variables that
// they read into its configuration. A server that a command starts by itself reads the same
// variables.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "cli/command/arguments.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/contexts.h"
#include "config/server_config.h"
#include "config/server_keys.h"
#include "job/diagnosis.h"

namespace muster::cli::server {

struct ServerCommand {
  enum class What { kServe, kStop, kShowFingerprint };
  What what = What::kServe;
  config::ServeOptions options;  ///< as far as flags and environment say
  config::ServerSource source;   ///< from which all of them are read
};

struct StoreCommand {
  enum class What { kBackup, kRestore, kCheck, kSetAside };
  What what = What::kCheck;
  std::string file;    ///< of the backup
  std::string record;  ///< to set aside
  config::ServerSource source;
  Output output = Output::kTable;
};

struct DoctorCommand {
  config::ServerSource source;  ///< of the options of the server that would run here
  bool only_chosen = false;     ///< look at the engine alone that it would have
  Output output = Output::kTable;
};

Result<int> execute(const ServerCommand& command, const Hooks& hooks);
Result<int> execute(const StoreCommand& command, const Hooks& hooks);
Result<int> execute(const DoctorCommand& command, const Hooks& hooks);

// server.cc
Command server_command();
/// The flag of a key of the configuration.
Flag flag_of(const config::ServerKey& key);
// store.cc
Command store_command();
// doctor.cc
Command doctor_command();

/// Which file was named, and what stands above it.
config::ServerSource read_server_source(const Caller& caller, const FlagReader& reader);

/// The options as far as flags and environment say. Notes a fault, named after its flag or
/// variable, for each value that cannot be read.
config::ServeOptions read_server_flags(const config::ServerSource& source, FlagReader& reader);

/// A section for each engine: whether it can run jobs, then a line for each finding, and below it
/// what to do. `chosen`: the engine that the server would have.
std::string doctor_page(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen,
                        bool colour);

/// {"version": ..., "chosen": "process", "engines": [{"engine", "can_run", "findings": [{"subject",
/// "verdict", "text", "advice"}]}]}
std::string doctor_json(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen,
                        const std::string& version);

/// Whether `chosen` is among them and can run jobs.
bool is_well(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen);

}  // namespace muster::cli::server
