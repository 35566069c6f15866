// The commands on a local server: server, store, doctor; and the flags and variables of its
// configuration. A server that another command starts reads the same variables.
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
  enum class What { kServe, kStop, kRestart, kShowFingerprint };
  What what = What::kServe;
  config::ServeOptions options;  ///< from flags and environment only
  config::ServerSource source;   ///< of the complete options
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
  config::ServerSource source;  ///< of the options of the server to check
  bool only_chosen = false;     ///< check only the configured engine
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

/// The file of --config, and the settings that override it.
config::ServerSource read_server_source(const Caller& caller, const FlagReader& reader);
/// The settings of variables only, as a server that a command starts has them.
config::ServerSource read_server_variables(const Caller& caller);

/// The options from flags and environment. Reports invalid values, named after the flag or variable.
config::ServeOptions read_server_flags(const config::ServerSource& source, FlagReader& reader);

/// A section for each engine: whether it can run jobs, then each finding with its advice. `chosen`: the
/// configured engine.
std::string doctor_page(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen,
                        bool colour);

/// {"version": ..., "chosen": "process", "engines": [{"engine", "can_run", "findings": [{"subject",
/// "verdict", "text", "advice"}]}]}
std::string doctor_json(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen,
                        const std::string& version);

/// Whether the engine `chosen` can run jobs.
bool is_well(const std::vector<job::Diagnosis>& diagnoses, const std::string& chosen);

}  // namespace muster::cli::server
