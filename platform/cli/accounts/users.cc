// user, and the members of projects.

#include <chrono>
#include <iostream>
#include <map>
#include <optional>

#include "api/account_wire.h"
#include "cli/accounts/accounts.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/connection/connection.h"
#include "cli/connection/contexts.h"
#include "record/input.h"

namespace muster::cli::accounts {

access::Role read_role(Reading& in, const std::string& field, const std::string& text) {
  if (const auto role = access::role_of(text)) return *role;
  in.reader.fault(field, record::not_a_choice(text, {"none", "viewer", "member", "admin"}));
  return access::Role::kNone;
}

namespace {

/// PROJECT=ROLE, repeated.
std::map<std::string, access::Role> read_project_roles(Reading& in) {
  std::map<std::string, access::Role> roles;
  for (const std::string& entry : in.reader.texts("--project")) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos) {
      in.reader.fault("--project", "'" + entry + "' is not PROJECT=ROLE, as in team-a=member");
      continue;
    }
    roles[entry.substr(0, equals)] = read_role(in, "--project", entry.substr(equals + 1));
  }
  return roles;
}

/// "none": the user has no Unix account any more.
std::optional<std::string> read_account(Reading& in) {
  if (!in.reader.has("--account")) return std::nullopt;
  in.refuse_empty("--account");
  const std::string account = in.reader.text("--account");
  return account == "none" ? "" : account;
}

Call read_user_create(Reading& in) {
  UserCreateCommand command{.user = {.name = in.name("user")}, .output = in.output()};
  if (in.reader.has("--role")) {
    command.user.server_role = read_role(in, "--role", in.reader.text("--role"));
  }
  command.user.projects = read_project_roles(in);
  command.user.account = read_account(in).value_or("");
  return command;
}

Call read_user_set(Reading& in) {
  UserSetCommand command{.name = in.name("user"), .change = {}, .output = in.output()};
  if (in.reader.has("--role")) {
    command.change.server_role = read_role(in, "--role", in.reader.text("--role"));
  }
  command.change.projects = read_project_roles(in);
  command.change.account = read_account(in);
  const bool disable = in.reader.has("--disable");
  if (disable && in.reader.has("--enable")) {
    in.reader.fault("--enable", "cannot be used with --disable");
  }
  if (disable || in.reader.has("--enable")) command.change.disabled = disable;
  if (command.change == api::UserChange{} && in.reader.ok()) {
    in.reader.fault(
        "", "give a property to change: --role, --project, --account, --disable or --enable");
  }
  return command;
}

/// The n-th positional word; reports a fault if it is missing.
std::string name_at(Reading& in, size_t index, const std::string& what) {
  if (index < in.arguments.names.size()) return in.arguments.names[index];
  in.reader.fault(what, "is missing");
  return "";
}

Call read_member_grant(Reading& in) {
  MemberGrantCommand command{.project = name_at(in, 0, "NAME"), .user = name_at(in, 1, "USER")};
  const std::string role = name_at(in, 2, "ROLE");
  if (!role.empty()) command.role = read_role(in, "ROLE", role);
  if (role == access::to_string(access::Role::kNone)) {
    in.reader.fault("ROLE", "is 'none'; remove a role with: muster project revoke");
  }
  return command;
}

Call read_user_list(Reading& in) {
  return UserListCommand{in.list_output()};
}

Call read_user_get(Reading& in) {
  return UserGetCommand{.name = in.name("user"), .output = in.output()};
}

Call read_user_delete(Reading& in) {
  return UserDeleteCommand{.names = in.names("user"),
                           .ignore_missing = in.reader.has("--ignore-missing")};
}

Call read_user_invite(Reading& in) {
  return UserInviteCommand{.name = in.name("user"), .output = in.output()};
}

Call read_member_list(Reading& in) {
  return MemberListCommand{.project = in.name("project"), .output = in.list_output()};
}

Call read_member_revoke(Reading& in) {
  return MemberRevokeCommand{.project = name_at(in, 0, "NAME"), .user = name_at(in, 1, "USER")};
}

const std::vector<std::string> kRoles{"none", "viewer", "member", "admin"};

Flags role_flags() {
  return {{.name = "--role",
           .value = "ROLE",
           .help = "role on the whole server: viewer, member, admin or none (default: none)",
           .choices = kRoles,
           .offer = Offer::kChoices},
          {.name = "--project",
           .value = "PROJECT=ROLE",
           .help = "role in a project and its subprojects; none removes the role",
           .repeats = true},
          {.name = "--account",
           .value = "NAME",
           .help = "Unix account that runs the user's jobs, if the server runs as root; none: no "
                   "account"}};
}

}  // namespace

Command user_command() {
  return {
      .name = "user",
      .help = "manage the users of a server: create, list, get, set, delete, invite",
      .commands = {{.name = "create",
                    .help = "create a user and print an invitation for the first login",
                    .read = read_user_create,
                    .positionals = new_name(),
                    .flags = role_flags() + output_flag(),
                    .example = "muster user create ada --project team-a=member"},
                   {.name = "list",
                    .alias = "ls",
                    .help = "list users and their roles",
                    .read = read_user_list,
                    .flags = list_output_flag(),
                    .example = "muster user list"},
                   {.name = "get",
                    .help = "show a user and its role in each project",
                    .read = read_user_get,
                    .positionals = one_of(Offer::kUsers),
                    .flags = output_flag(),
                    .example = "muster user get ada"},
                   {.name = "set",
                    .help = "change the given properties of a user",
                    .read = read_user_set,
                    .positionals = one_of(Offer::kUsers),
                    .flags = role_flags() +
                             Flags{{.name = "--disable", .help = "reject the user's tokens"},
                                   {.name = "--enable", .help = "accept the user's tokens again"}} +
                             output_flag(),
                    .example = "muster user set ada --project team-b=viewer"},
                   {.name = "delete",
                    .alias = "rm",
                    .help = "delete users and their tokens; their jobs remain",
                    .read = read_user_delete,
                    .positionals = some_of(Offer::kUsers),
                    .flags = ignore_missing_flag("a user"),
                    .example = "muster user delete ada"},
                   {.name = "invite",
                    .help = "print a new invitation, if the first was lost or has expired",
                    .read = read_user_invite,
                    .positionals = one_of(Offer::kUsers),
                    .flags = output_flag(),
                    .example = "muster user invite ada"}},
      .example = "muster user create ada --project team-a=member"};
}

std::vector<Command> member_commands() {
  return {
      {.name = "members",
       .help = "list the users that have a role in a project",
       .read = read_member_list,
       .positionals = one_of(Offer::kProjects),
       .flags = list_output_flag(),
       .example = "muster project members team-a"},
      {.name = "grant",
       .help = "give a user a role in a project: viewer, member or admin",
       .read = read_member_grant,
       .positionals = {.name = "NAME USER ROLE", .least = 3, .most = 3, .offer = Offer::kProjects},
       .example = "muster project grant team-a ada member"},
      {.name = "revoke",
       .help = "remove a user's role in a project",
       .read = read_member_revoke,
       .positionals = {.name = "NAME USER", .least = 2, .most = 2, .offer = Offer::kProjects},
       .example = "muster project revoke team-a ada"}};
}

namespace {

/// The address at which a new user logs in.
std::string server_here(Connection& connection, const Hooks& hooks) {
  const auto context = chosen_context(hooks.context);
  if (context && !context->server.empty()) return context->server;
  const auto info = connection.call([](api::Client& client) { return client.info(); });
  return info && !info->address.empty() ? "https://" + info->address : "";
}

}  // namespace

Result<int> execute(const UserCreateCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // Not repeated after a lost reply: the second request would be answered with a conflict.
  MUSTER_TRY(const api::NewUser created, connection.client().create_user(command.user));
  MUSTER_CHECK(show(command.output,
                    "created " + created.user.name + "\n" +
                        invitation_text(created.invitation, server_here(connection, hooks)),
                    api::new_user_to_json(created)));
  return kExitDone;
}

Result<int> execute(const UserListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const std::vector<access::User> users,
             connection.call([](api::Client& client) { return client.users(); }));
  std::string names;
  for (const access::User& user : users) names += user.name + "\n";
  MUSTER_CHECK(show(command.output, command.output == Output::kNames ? names : user_table(users),
                    api::users_to_json(users)));
  return kExitDone;
}

Result<int> execute(const UserGetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const access::User user,
             connection.call([&](api::Client& client) { return client.user(command.name); }));
  MUSTER_CHECK(show(command.output, user_page(user), api::user_to_json(user)));
  return kExitDone;
}

Result<int> execute(const UserSetCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const access::User user, connection.call([&](api::Client& client) {
    return client.patch_user(command.name, command.change);
  }));
  MUSTER_CHECK(show(command.output, "changed " + user.name + "\n", api::user_to_json(user)));
  return kExitDone;
}

Result<int> execute(const UserDeleteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  return delete_each(command.names, command.ignore_missing, [&](const std::string& name) {
    return connection.client().remove_user(name);
  });
}

Result<int> execute(const UserInviteCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // Not repeated after a lost reply: a second request would leave an invitation that no user has
  // seen.
  MUSTER_TRY(const api::NewToken invitation, connection.client().invite_user(command.name));
  MUSTER_CHECK(show(command.output, invitation_text(invitation, server_here(connection, hooks)),
                    api::new_token_to_json(invitation)));
  return kExitDone;
}

Result<int> execute(const MemberListCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_TRY(const auto members,
             connection.call([&](api::Client& client) { return client.members(command.project); }));
  std::string names;
  for (const auto& [user, role] : members) names += user + "\n";
  MUSTER_CHECK(show(command.output,
                    command.output == Output::kNames ? names : member_table(members),
                    api::members_to_json(members)));
  return kExitDone;
}

Result<int> execute(const MemberGrantCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_CHECK(connection.call([&](api::Client& client) {
    return client.set_member(command.project, command.user, command.role);
  }));
  MUSTER_CHECK(show(command.user + " is " + std::string(to_string(command.role)) + " of " +
                    command.project + "\n"));
  return kExitDone;
}

Result<int> execute(const MemberRevokeCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  MUSTER_CHECK(connection.client().remove_member(command.project, command.user));
  MUSTER_CHECK(show(command.user + " has no role of its own in " + command.project + "\n"));
  return kExitDone;
}

// token: programs authenticate with tokens in the name of a user.

namespace {

std::optional<std::chrono::seconds> read_lifetime(Reading& in) {
  constexpr std::chrono::hours kUsual{90 * 24};
  if (in.reader.text("--expires") == "never") return std::nullopt;
  const auto lifetime = in.reader.duration("--expires", kUsual);
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(lifetime);
  if (whole.count() < 1) in.reader.fault("--expires", "is shorter than a second");
  return whole;
}

Call read_token_create(Reading& in) {
  TokenCreateCommand command{.request = {}, .output = in.output()};
  in.refuse_empty("--user");
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
  in.refuse_empty("--user");
  if (in.reader.has("--user")) command.user = in.reader.text("--user");
  if (command.all && command.user) in.reader.fault("--user", "cannot be used with --all");
  return command;
}

Call read_token_revoke(Reading& in) {
  if (in.arguments.names.empty()) {
    in.reader.fault("ID", "is missing; list the tokens with: muster token list");
  }
  return TokenRevokeCommand{.ids = in.arguments.names};
}

}  // namespace

Command token_command() {
  return {
      .name = "token",
      .help = "manage tokens, with which programs act for you: create, list, revoke",
      .commands = {
          {.name = "create",
           .help = "create a token and print it once",
           .read = read_token_create,
           .flags = Flags{{.name = "--description",
                           .value = "TEXT",
                           .help = "purpose of the token, shown by 'muster token list'"},
                          {.name = "--ceiling",
                           .value = "ROLE",
                           .help = "highest role that the token can use (default: all your roles)",
                           .choices = {"viewer", "member", "admin"},
                           .offer = Offer::kChoices},
                          {.name = "--project",
                           .value = "PROJECT",
                           .help = "restrict the token to this project and its subprojects",
                           .offer = Offer::kProjects,
                           .repeats = true},
                          {.name = "--expires",
                           .value = "TIME",
                           .help = "lifetime: 12h, 30d, or never (default: 90d)"},
                          {.name = "--user",
                           .value = "USER",
                           .help = "user that the token belongs to; admins only (default: you)",
                           .offer = Offer::kUsers}} +
                    output_flag(),
           .example = "muster token create --description nightly --ceiling member",
           .see_also = "muster token revoke"},
          {.name = "list",
           .alias = "ls",
           .help = "list your tokens and sessions, when they expire and when they were last used",
           .read = read_token_list,
           .flags = Flags{{.name = "--all", .help = "list the tokens of every user; admins only"},
                          {.name = "--user",
                           .value = "USER",
                           .help = "list the tokens of this user; admins only",
                           .offer = Offer::kUsers}} +
                    list_output_flag(),
           .example = "muster token list"},
          {.name = "revoke",
           .help = "invalidate tokens",
           .read = read_token_revoke,
           .positionals = {.name = "ID",
                           .least = 1,
                           .most = some_of(Offer::kTokens).most,
                           .offer = Offer::kTokens},
           .example = "muster token revoke k3v5xq2nab7d"},
      }};
}

namespace {

/// The user whose tokens are listed; nothing: all users that the caller may see.
Result<std::optional<std::string>> whose(const TokenListCommand& command, Connection& connection) {
  if (command.all || command.user) return command.user;
  MUSTER_TRY(const api::WhoAmI who,
             connection.call([](api::Client& client) { return client.who_am_i(); }));
  return std::optional(who.user);
}

}  // namespace

Result<int> execute(const TokenCreateCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // Not repeated after a lost reply: a second request would leave a token that no user has seen.
  MUSTER_TRY(const api::NewToken created, connection.client().create_token(command.request));
  // The token is alone on standard output, so that a script can store it; notes go to standard
  // error.
  MUSTER_CHECK(show(command.output, created.text + "\n", api::new_token_to_json(created)));
  if (command.output == Output::kTable) {
    std::cerr << "  It is shown only once, and is valid "
              << (created.token.expires ? "until " + until(created.token.expires) : "for ever")
              << "; invalidate it with: muster token revoke " << created.token.id << std::endl;
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
