// apiKey, logout, version: what asks no server.
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "cli/gradient/api_key.h"
#include "cli/gradient/command_parts.h"
#include "cli/interrupts.h"
#include "cli/report.h"
#include "cli/typed_input.h"

namespace muster::cli::gradient {

namespace {

/// Given with the command, or typed unseen, or the first line of a pipe. Nothing: Ctrl-C.
Result<std::optional<std::string>> read_key(const Asked& asked) {
  constexpr size_t kMostBytes = 4096;
  if (!asked.arguments.names.empty()) return std::optional(asked.arguments.names.front());
  if (::isatty(STDIN_FILENO) == 1) {
    Interrupts interrupts;
    return ask(STDIN_FILENO, "Enter your API Key (it is not shown): ", Echo::kOff, interrupts);
  }
  MUSTER_TRY(const std::string text, read_to_end(STDIN_FILENO, kMostBytes));
  const size_t newline = text.find('\n');
  return std::optional(
      without_last_newline(text.substr(0, newline == std::string::npos ? newline : newline + 1)));
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
  if (!key) return kExitInterrupted;
  if (key->empty()) {
    note("API Key cannot be empty.");
    return kExitUsage;
  }
  if (!is_key(*key)) asked.reader.fault("KEY", "has blanks, or letters that are not ASCII");
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_TRY(const std::filesystem::path file, config_file(asked.caller.environment));
  MUSTER_CHECK(keep_api_key(file, *key));
  return kExitDone;
}

Result<int> log_out(Asked& asked) {
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_TRY(const std::filesystem::path file, config_file(asked.caller.environment));
  MUSTER_CHECK(forget_api_key(file));
  return kExitDone;
}

Result<int> show_version(Asked& asked) {
  if (!asked.reader.ok()) return faults_of(asked);
  MUSTER_CHECK(say(asked.hooks.version));
  return kExitDone;
}

}  // namespace muster::cli::gradient
