// store: back it up, put a backup into it, look whether it is whole, set unreadable records aside.
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/fields.h"
#include "cli/report.h"

namespace muster::cli {

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

Result<StoreReport> report_of(const StoreCommand& command, const ServeOptions& options,
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
  MUSTER_TRY(const ServeOptions options, read_server_options(with_usual_file(command.source)));
  MUSTER_TRY(const StoreReport report, report_of(command, options, hooks));
  MUSTER_CHECK(show(command.output, report_text(report), json_of(report)));
  return report.faults.empty() ? kExitDone : kExitFailed;
}

}  // namespace muster::cli
