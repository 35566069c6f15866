// apiKey, logout, version: what asks no server.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/common/typed_input.h"
#include "dialects/gradient/api_key.h"
#include "dialects/gradient/command_parts.h"

namespace muster::dialects::gradient {

namespace {

/// Given with the command, or typed unseen, or the first line of a pipe. Nothing: Ctrl-C.
Result<std::optional<std::string>> read_key(const Asked& asked) {
  constexpr size_t kMostBytes = 4096;
  if (!asked.arguments.names.empty()) return std::optional(asked.arguments.names.front());
  if (::isatty(STDIN_FILENO) == 1) {
    cli::Interrupts interrupts;
    return cli::ask(STDIN_FILENO, "Enter your API Key (it is not shown): ", cli::Echo::kOff,
                    interrupts);
  }
  MUSTER_TRY(const std::string text, cli::read_to_end(STDIN_FILENO, kMostBytes));
  const size_t newline = text.find('\n');
  return std::optional(cli::without_last_newline(
      text.substr(0, newline == std::string::npos ? newline : newline + 1)));
}

/// A key goes into a header of HTTP.
bool is_key(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char letter) { return letter > ' ' && letter < '\x7f'; });
}

}  // namespace

Result<int> keep_key(Asked& asked) {
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_TRY(const auto key, read_key(asked));
  if (!key) return cli::kExitInterrupted;
  if (key->empty()) {
    note("API Key cannot be empty.");
    return cli::kExitUsage;
  }
  if (!is_key(*key)) asked.reader.fault("KEY", "has blanks, or letters that are not ASCII");
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_TRY(const std::filesystem::path file, config_file(asked.caller.environment));
  MUSTER_CHECK(keep_api_key(file, *key));
  return cli::kExitDone;
}

Result<int> log_out(Asked& asked) {
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_TRY(const std::filesystem::path file, config_file(asked.caller.environment));
  MUSTER_CHECK(forget_api_key(file));
  return cli::kExitDone;
}

Result<int> show_version(Asked& asked) {
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_CHECK(say(asked.hooks.version));
  return cli::kExitDone;
}

}  // namespace muster::dialects::gradient
