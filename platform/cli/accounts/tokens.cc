// token: what programs show in their user's place.
#include <chrono>
#include <iostream>
#include <optional>

#include "api/account_wire.h"
#include "cli/accounts/account_view.h"
#include "cli/accounts/accounts.h"
#include "cli/command/command.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"

namespace muster::cli::accounts {

namespace {

std::optional<std::chrono::seconds> read_lifetime(Reading& in) {
  constexpr std::chrono::hours kUsual{90 * 24};
  if (in.reader.text("--expires") == "never") return std::nullopt;
  const auto lifetime = in.reader.duration("--expires", kUsual);
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(lifetime);
  if (whole.count() < 1) in.reader.fault("--expires", "is below a second");
  return whole;
}

Call read_token_create(Reading& in) {
  TokenCreateCommand command{.request = {}, .output = in.output()};
  command.request.user = in.reader.text("--user");
  command.request.description = in.reader.text("--description");
  if (in.reader.has("--ceiling")) {
    command.request.ceiling = read_role(in, "--ceiling", in.reader.text("--ceiling"));
  }
  command.request.projects = in.reader.texts("--project");
  command.request.lifetime = read_lifetime(in);
  return command;
}

Call read_token_list(Reading& in) {
  TokenListCommand command{
      .user = std::nullopt, .all = in.reader.has("--all"), .output = in.list_output()};
  if (in.reader.has("--user")) command.user = in.reader.text("--user");
  if (command.all && command.user) in.reader.fault("--user", "does not go with --all");
  return command;
}

Call read_token_revoke(Reading& in) {
  if (in.arguments.names.empty()) {
    in.reader.fault("ID", "is missing; see which there are: muster token list");
  }
  return TokenRevokeCommand{.ids = in.arguments.names};
}

}  // namespace

Command token_command() {
  return {.name = "token",
          .help = "what programs show in your place: create, list, revoke",
          .commands = {
              {.name = "create",
               .help = "make a token; prints it, once",
               .read = read_token_create,
               .flags = Flags{{.name = "--description",
                               .value = "TEXT",
                               .help = "what it is for, as token list shows it"},
                              {.name = "--ceiling",
                               .value = "ROLE",
                               .help = "it can do no more than this (default: all that you may)",
                               .choices = {"viewer", "member", "admin"},
                               .offer = Offer::kChoices},
                              {.name = "--project",
                               .value = "PROJECT",
                               .help = "it is good for this project and those below it alone",
                               .offer = Offer::kProjects,
                               .repeats = true},
                              {.name = "--expires",
                               .value = "TIME",
                               .help = "how long it is good: 12h, 30d, or never (default: 90d)"},
                              {.name = "--user",
                               .value = "USER",
                               .help = "whose it is; an admin's to say (default: you)",
                               .offer = Offer::kUsers}} +
                        output_flag(),
               .example = "muster token create --description nightly --ceiling member",
               .see_also = "muster token revoke"},
              {.name = "list",
               .alias = "ls",
               .help = "your tokens and sessions: until when, and when last used",
               .read = read_token_list,
               .flags = Flags{{.name = "--all", .help = "those of every user; an admin's to ask"},
                              {.name = "--user",
                               .value = "USER",
                               .help = "those of this user",
                               .offer = Offer::kUsers}} +
                        list_output_flag(),
               .example = "muster token list"},
              {.name = "revoke",
               .help = "let tokens be good for nothing from now on",
               .read = read_token_revoke,
               .positionals = {.name = "ID",
                               .least = 1,
                               .most = some_of(Offer::kTokens).most,
                               .offer = Offer::kTokens},
               .example = "muster token revoke k3v5xq2nab7d"},
          }};
}

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

}  // namespace muster::cli::accounts
