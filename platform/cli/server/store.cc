// store: back it up, put a backup into it, look whether it is whole, set unreadable records aside.
#include <nlohmann/json.hpp>

#include "cli/command/command.h"
#include "cli/common/report.h"
#include "cli/common/table.h"
#include "cli/connection/commands.h"
#include "cli/server/server.h"
#include "config/server_keys.h"

namespace muster::cli::server {

namespace {

template <StoreCommand::What what>
Call read_store_words(Reading& in) {
  StoreCommand command{
      .what = what, .source = read_server_source(in.caller, in.reader), .output = in.output()};
  read_server_flags(command.source, in.reader);
  if (what == StoreCommand::What::kCheck) return command;
  if (what == StoreCommand::What::kSetAside) {
    if (in.arguments.names.empty()) {
      in.reader.fault("NAME", "is missing; `muster store check` names the unreadable records");
    } else {
      command.record = in.arguments.names.front();
    }
    return command;
  }
  if (in.arguments.names.empty()) {
    in.reader.fault("FILE", "is missing; name the backup");
  } else {
    // A backup belongs where its caller is, whatever the server's folder.
    command.file = (command.source.folder / in.arguments.names.front()).lexically_normal();
  }
  return command;
}

/// Which store is meant: named, or that of a configuration.
Flags store_flags() {
  Flags flags = {{.name = "--config",
                  .value = "FILE",
                  .help = "the configuration of the server whose store it is",
                  .offer = Offer::kFiles}};
  for (const config::ServerKey& key : config::server_keys()) {
    const bool names_a_store =
        key.name == "store" || key.name == "store_password_file" || key.name == "state_dir";
    if (names_a_store) flags.push_back(flag_of(key));
  }
  return flags;
}

Positionals backup_file() {
  return {.name = "FILE", .least = 1, .most = 1, .offer = Offer::kFiles};
}

}  // namespace

Command store_command() {
  return {.name = "store",
          .help = "back up, restore, check and mend the database of a server",
          .commands = {{.name = "backup",
                        .help = "write all of it into a file, also while a server runs",
                        .read = read_store_words<StoreCommand::What::kBackup>,
                        .positionals = backup_file(),
                        .flags = store_flags() + output_flag(),
                        .example = "muster store backup muster-backup.db"},
                       {.name = "restore",
                        .help = "put a backup into an empty database",
                        .read = read_store_words<StoreCommand::What::kRestore>,
                        .positionals = backup_file(),
                        .flags = store_flags() + output_flag(),
                        .example = "muster store restore muster-backup.db"},
                       {.name = "check",
                        .help = "read every byte of it and say what is damaged",
                        .read = read_store_words<StoreCommand::What::kCheck>,
                        .flags = store_flags() + output_flag(),
                        .example = "muster store check"},
                       {.name = "set-aside",
                        .help = "move a record that cannot be read out of the way of the server",
                        .read = read_store_words<StoreCommand::What::kSetAside>,
                        .positionals = {.name = "NAME", .least = 1, .most = 1},
                        .flags = store_flags() + output_flag(),
                        .example = "muster store set-aside default/train"}}};
}

namespace {

using nlohmann::ordered_json;

std::string report_text(const StoreReport& report) {
  std::vector<std::pair<std::string, std::string>> lines{
      {"SCHEMA", std::to_string(report.schema_version)}};
  for (const auto& [what, count] : report.counts) lines.emplace_back(what, std::to_string(count));
  std::string text = fields(lines);
  if (!report.faults.empty()) text += "\ndamaged:\n";
  for (const std::string& fault : report.faults) text += "  " + fault + "\n";
  if (!report.set_aside.empty()) text += "\nset aside:\n";
  for (const std::string& record : report.set_aside) text += "  " + record + "\n";
  return text;
}

std::string json_of(const StoreReport& report) {
  ordered_json counts = ordered_json::object();
  for (const auto& [what, count] : report.counts) counts[what] = count;
  const ordered_json json = {{"schema_version", report.schema_version},
                             {"counts", std::move(counts)},
                             {"faults", report.faults},
                             {"set_aside", report.set_aside}};
  return json.dump(-1, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

Result<StoreReport> report_of(const StoreCommand& command, const config::ServeOptions& options,
                              const Hooks& hooks) {
  switch (command.what) {
    case StoreCommand::What::kBackup:
      return hooks.backup_store(options, command.file);
    case StoreCommand::What::kRestore:
      return hooks.restore_store(options, command.file);
    case StoreCommand::What::kSetAside:
      return hooks.set_record_aside(options, command.record);
    case StoreCommand::What::kCheck:
      break;
  }
  return hooks.check_store(options);
}

}  // namespace

Result<int> execute(const StoreCommand& command, const Hooks& hooks) {
  MUSTER_TRY(const config::ServeOptions options,
             config::read_server_options(config::with_usual_file(command.source)));
  MUSTER_TRY(const StoreReport report, report_of(command, options, hooks));
  MUSTER_CHECK(show(command.output, report_text(report), json_of(report)));
  return report.faults.empty() ? kExitDone : kExitFailed;
}

}  // namespace muster::cli::server
