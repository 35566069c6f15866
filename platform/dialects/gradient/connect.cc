#include <utility>

#include "access/identity.h"
#include "cli/connection/contexts.h"
#include "config/paths.h"
#include "dialects/gradient/api_key.h"
#include "dialects/gradient/commands.h"

namespace muster::dialects::gradient {

namespace {

constexpr const char* kVariable = "PAPERSPACE_API_KEY";

/// Empty where none is known.
Result<std::string> api_key(const Asked& asked) {
  const cli::Environment& environment = asked.caller.environment;
  if (asked.reader.has("--apiKey")) return asked.reader.text("--apiKey");
  const auto variable = environment.find(kVariable);
  if (variable != environment.end() && !variable->second.empty()) return variable->second;
  const auto file = config_file(environment);
  if (!file) return std::string();
  MUSTER_TRY(std::string kept, kept_api_key(*file));
  // Who has worked with Paperspace has a key of theirs there, which no server here knows: it must
  // not stand in the way of a login.
  return access::parse_token(kept) ? kept : std::string();
}

}  // namespace

Result<cli::Connection> connect(const Asked& asked) {
  auto key = api_key(asked);
  cli::Environment environment = asked.caller.environment;
  // $MUSTER_SERVER wants a token beside it; a key is one.
  if (key && !key->empty()) environment.try_emplace("MUSTER_TOKEN", *key);
  MUSTER_TRY(cli::Context context, cli::choose_context(asked.hooks.context, environment, [] {
               return cli::read_contexts(config::config_folder_here());
             }));
  if (!context.is_local()) {
    MUSTER_TRY(std::string token, std::move(key));
    if (!token.empty()) context.token = std::move(token);
  }
  return cli::Connection::open(context, asked.hooks.version);
}

}  // namespace muster::dialects::gradient
