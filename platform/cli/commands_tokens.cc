// token: what programs show in their user's place.
#include <iostream>
#include <optional>

#include "api/account_wire.h"
#include "cli/account_view.h"
#include "cli/commands.h"
#include "cli/report.h"

namespace muster::cli {

namespace {

/// Of whom tokens are listed; nothing: of all that the caller may see.
Result<std::optional<std::string>> whose(const TokenListCommand& command, Connection& connection) {
  if (command.all || command.user) return command.user;
  MUSTER_TRY(const api::WhoAmI who,
             connection.call([](api::Client& client) { return client.who_am_i(); }));
  return std::optional(who.user);
}

}  // namespace

Result<int> execute(const TokenCreateCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // Not sent twice: the first would be one that nobody has seen.
  MUSTER_TRY(const api::NewToken created, connection.client().create_token(command.request));
  // Alone on its line, for a script that keeps it; what there is to know goes beside.
  MUSTER_CHECK(show(command.output, created.text + "\n", api::new_token_to_json(created)));
  if (command.output == Output::kTable) {
    std::cerr << "  it is shown this once, and good "
              << (created.token.expires ? "until " + until(created.token.expires) : "for ever")
              << "; to end it: muster token revoke " << created.token.id << std::endl;
  }
  return kExitDone;
}

Result<int> execute(const TokenListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const auto user, whose(command, connection));
  MUSTER_TRY(const std::vector<access::Token> tokens,
             connection.call([&](api::Client& client) { return client.tokens(user); }));
  std::string ids;
  for (const access::Token& token : tokens) ids += token.id + "\n";
  const base::Time now = base::SystemClock().now();
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? ids : token_table(tokens, now),
                    api::tokens_to_json(tokens)));
  return kExitDone;
}

Result<int> execute(const TokenRevokeCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  return for_each_name(command.ids, [&](const std::string& id) -> Result<void> {
    MUSTER_CHECK(connection.client().revoke_token(id));
    return show("revoked " + id + "\n");
  });
}

}  // namespace muster::cli
