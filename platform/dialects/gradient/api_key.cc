#include "dialects/gradient/api_key.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "access/identity.h"
#include "base/files.h"
#include "base/json_text.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/common/typed_input.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"
#include "dialects/gradient/commands.h"

namespace muster::dialects::gradient {

namespace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;
using nlohmann::ordered_json;

constexpr const char* kApiKey = "apiKey";

/// The content of the file; an empty object if the file does not exist.
Result<ordered_json> read(const fs::path& file) {
  constexpr size_t kMostBytes = 1 << 20;
  auto text = base::read_file(file, kMostBytes);
  if (!text) {
    if (text.error().code == ErrorCode::kNotFound) return ordered_json::object();
    return std::move(text).error();
  }
  ordered_json json = base::parse_ordered_json(*text);
  if (json.is_object()) return json;
  return Error{.code = ErrorCode::kInvalid,
               .what = file.string() + " is not a JSON object",
               .advice = "repair it, or remove it and run: gradient apiKey"};
}

Result<void> write(const fs::path& file, const ordered_json& json) {
  MUSTER_CHECK(base::make_private_folder(file.parent_path()));
  return base::write_file(file, base::indented_json_text(json) + "\n");
}

}  // namespace

Result<fs::path> config_file(const cli::Environment& environment) {
  const auto home = environment.find("HOME");
  if (home == environment.end() || !home->second.starts_with('/')) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "cannot store the key: there is no home folder",
                 .advice = "set PAPERSPACE_API_KEY instead"};
  }
  return fs::path(home->second) / ".paperspace" / "config.json";
}

Result<std::string> kept_api_key(const fs::path& file) {
  MUSTER_TRY(const ordered_json json, read(file));
  const auto found = json.find(kApiKey);
  if (found == json.end() || found->is_null()) return std::string();
  if (found->is_string()) return found->get<std::string>();
  return Error{.code = ErrorCode::kInvalid,
               .what = file.string() + ": apiKey is not a string",
               .advice = "store the key again: gradient apiKey"};
}

Result<void> keep_api_key(const fs::path& file, const std::string& key) {
  MUSTER_TRY(ordered_json json, read(file));
  json[kApiKey] = key;
  return write(file, json);
}

Result<void> forget_api_key(const fs::path& file) {
  MUSTER_TRY(ordered_json json, read(file));
  if (json.erase(kApiKey) == 0) return {};
  if (!json.empty()) return write(file, json);
  std::error_code failure;
  fs::remove(file, failure);
  if (failure) return base::system_error("cannot remove " + file.string(), failure.value());
  return {};
}

namespace {

constexpr const char* kVariable = "PAPERSPACE_API_KEY";

/// The key that was given to this command. It replaces every other token. Empty: no key was given.
std::string given_key(const Invocation& invocation) {
  if (invocation.reader.has("--apiKey")) return invocation.reader.text("--apiKey");
  const auto variable = invocation.caller.environment.find(kVariable);
  return variable == invocation.caller.environment.end() ? "" : variable->second;
}

/// The key that `gradient apiKey` stored. Empty if no key is stored.
Result<std::string> stored_token(const cli::Environment& environment) {
  const auto file = config_file(environment);
  if (!file) return std::string();
  MUSTER_TRY(std::string kept, kept_api_key(*file));
  // A user of Paperspace has a Paperspace key in this file, which no server of Muster accepts. It
  // must not prevent a login.
  return access::parse_token(kept) ? kept : std::string();
}

}  // namespace

// The stored key was meant for one server, which the file does not name. It is sent only to a
// server for which there is no other token: neither of a login nor in $MUSTER_TOKEN.
Result<cli::Connection> connect(const Invocation& invocation) {
  const std::string given = given_key(invocation);
  cli::Environment environment = invocation.caller.environment;
  const Result<std::string> stored = stored_token(environment);
  // $MUSTER_SERVER requires a token; the key is used as the token.
  std::string& token = environment["MUSTER_TOKEN"];
  if (token.empty()) token = given;
  if (token.empty() && stored) token = *stored;
  MUSTER_TRY(cli::Context context, cli::choose_context(invocation.hooks.context, environment, [] {
               return cli::read_contexts(config::config_folder_here());
             }));
  if (!given.empty()) {
    context.token = given;
  } else if (!context.is_local() && context.token.empty()) {
    MUSTER_TRY(context.token, stored);
  }
  return cli::Connection::open(context, invocation.hooks.version);
}

// apiKey, logout, version: commands that need no server.

namespace {

/// From the command line, typed without echo, or the first line of a pipe. Nothing: Ctrl-C.
Result<std::optional<std::string>> read_key(const Invocation& invocation) {
  constexpr size_t kMostBytes = 4096;
  if (!invocation.arguments.names.empty()) return std::optional(invocation.arguments.names.front());
  if (::isatty(STDIN_FILENO) == 1) {
    cli::Interrupts interrupts;
    return cli::ask(STDIN_FILENO, "Enter your API Key (not shown): ", cli::Echo::kOff, interrupts);
  }
  MUSTER_TRY(const std::string text, cli::read_to_end(STDIN_FILENO, kMostBytes));
  const size_t newline = text.find('\n');
  return std::optional(cli::without_last_newline(
      text.substr(0, newline == std::string::npos ? newline : newline + 1)));
}

/// Whether the text can be sent in an HTTP header.
bool is_key(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char letter) { return letter > ' ' && letter < '\x7f'; });
}

}  // namespace

Result<int> keep_key(Invocation& invocation) {
  if (!invocation.reader.ok()) return faults_of(invocation);
  MUSTER_TRY(const auto key, read_key(invocation));
  if (!key) return cli::kExitInterrupted;
  if (key->empty()) {
    note("API Key cannot be empty.");
    return cli::kExitUsage;
  }
  if (!is_key(*key)) invocation.reader.fault("KEY", "contains blanks or non-ASCII characters");
  if (!invocation.reader.ok()) return faults_of(invocation);
  MUSTER_TRY(const std::filesystem::path file, config_file(invocation.caller.environment));
  MUSTER_CHECK(keep_api_key(file, *key));
  return cli::kExitDone;
}

Result<int> log_out(Invocation& invocation) {
  if (!invocation.reader.ok()) return faults_of(invocation);
  MUSTER_TRY(const std::filesystem::path file, config_file(invocation.caller.environment));
  MUSTER_CHECK(forget_api_key(file));
  return cli::kExitDone;
}

Result<int> show_version(Invocation& invocation) {
  if (!invocation.reader.ok()) return faults_of(invocation);
  MUSTER_CHECK(print_line(invocation.hooks.version));
  return cli::kExitDone;
}

}  // namespace muster::dialects::gradient
