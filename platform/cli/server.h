// The commands on a server of this machine: server, store, doctor.
#pragma once

#include <string>

#include "base/result.h"
#include "cli/call.h"
#include "cli/command_tree.h"
#include "cli/output.h"
#include "cli/server_config.h"

namespace muster::cli {

struct ServerCommand {
  enum class What { kServe, kStop, kShowFingerprint };
  What what = What::kServe;
  ServeOptions options;  ///< as far as flags and environment say
  ServerSource source;   ///< from which all of them are read
};

struct StoreCommand {
  enum class What { kBackup, kRestore, kCheck, kSetAside };
  What what = What::kCheck;
  std::string file;    ///< of the backup
  std::string record;  ///< to set aside
  ServerSource source;
  Output output = Output::kTable;
};

struct DoctorCommand {
  ServerSource source;       ///< of the options of the server that would run here
  bool only_chosen = false;  ///< look at the engine alone that it would have
  Output output = Output::kTable;
};

Result<int> execute(const ServerCommand& command, const Hooks& hooks);
Result<int> execute(const StoreCommand& command, const Hooks& hooks);
Result<int> execute(const DoctorCommand& command, const Hooks& hooks);

// server.cc
Command server_command();
// store.cc
Command store_command();
// doctor.cc
Command doctor_command();

}  // namespace muster::cli
