// user, and the members of projects: who may do what.
#include "api/account_wire.h"
#include "cli/account_view.h"
#include "cli/chosen_context.h"
#include "cli/commands.h"
#include "cli/report.h"

namespace muster::cli {

namespace {

/// The address that a new user has to log in to.
std::string server_here(Connection& connection, const Hooks& hooks) {
  const auto context = chosen_context(hooks.context);
  if (context && !context->server.empty()) return context->server;
  const auto info = connection.call([](api::Client& client) { return client.info(); });
  return info && !info->address.empty() ? "https://" + info->address : "";
}

}  // namespace

Result<int> execute(const UserCreateCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks));
  // Not sent twice: where the answer was lost, the second would be told of a conflict.
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
  // Not sent twice: the first would be one that nobody has seen.
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

}  // namespace muster::cli
