// The commands on sweeps: create (by flags or from a file), list, get, best, stop, pause, resume,
// delete.
//
// read_...() is pure; execute() does I/O.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/spec/send_workspace.h"
#include "sweep/sweep.h"

namespace muster::cli::sweeps {

Command sweep_command();

struct SweepCreateCommand {
  sweep::SweepSpec spec;                   ///< without a file
  std::optional<std::string> file = {};    ///< "-": standard input
  std::vector<std::string> settings = {};  ///< of --set: keys of the job file
  std::string name = {};                   ///< of --name
  /// The flags of the sweep, by their keys in the section `sweep`; they override the file.
  std::vector<std::pair<std::string, std::string>> keys = {};
  std::optional<spec::WorkspaceOptions> workspace = {};
  bool dry_run = false;
  Output output = Output::kTable;
};
struct SweepListCommand {
  std::string project;
  Output output = Output::kTable;
};
struct SweepGetCommand {
  std::string name;
  std::string project;
  bool chart = false;
  Output output = Output::kTable;
};
struct SweepBestCommand {
  std::string name;
  std::string project;
  Output output = Output::kTable;
};
struct SweepChangeCommand {
  std::vector<std::string> names;
  std::string project;
  std::string action;  ///< "stop", "pause", "resume"
};
struct SweepWaitCommand {
  std::string name;
  std::string project;
  std::optional<std::chrono::milliseconds> timeout = {};
};
struct SweepDeleteCommand {
  std::vector<std::string> names;
  std::string project;
  bool ignore_missing = false;
};

Result<int> execute(const SweepCreateCommand& command, const Hooks& hooks);
Result<int> execute(const SweepListCommand& command, const Hooks& hooks);
Result<int> execute(const SweepGetCommand& command, const Hooks& hooks);
Result<int> execute(const SweepBestCommand& command, const Hooks& hooks);
Result<int> execute(const SweepChangeCommand& command, const Hooks& hooks);
/// Exit codes: 0 the sweep succeeded, 1 it failed or was stopped, 124 the timeout was reached.
Result<int> execute(const SweepWaitCommand& command, const Hooks& hooks);
Result<int> execute(const SweepDeleteCommand& command, const Hooks& hooks);

// --- files

struct SweepFile {
  sweep::SweepSpec spec;
  std::optional<spec::WorkspaceKey> workspace;
};

/// A job file with a section `sweep`. `keys` and `overrides` override the file.
///
/// Errors: kInvalid, with every fault of the file and its line.
Result<SweepFile> parse_sweep_file(
    std::string_view text, const std::string& source, const job::JobSpec& defaults,
    const std::vector<std::pair<std::string, std::string>>& keys = {}, const std::string& name = {},
    const std::vector<std::string>& settings = {});

/// Sets keys of the section `sweep` to texts as people write them; a key "parameters.lr" is a
/// parameter. Returns the faults, by key.
std::vector<base::Fault> set_sweep_keys(
    const std::vector<std::pair<std::string, std::string>>& keys, sweep::SweepSpec& spec);

}  // namespace muster::cli::sweeps
