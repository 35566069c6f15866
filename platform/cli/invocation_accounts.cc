// The commands on contexts, users, tokens, secrets and the audit log.
#include <array>
#include <filesystem>

#include "api/server_url.h"
#include "cli/contexts.h"
#include "cli/invocation_reading.h"
#include "http/tls.h"

namespace muster::cli {

namespace {

/// A role that `text` names; a fault of `field` where it names none.
access::Role read_role(Reading& in, const std::string& field, const std::string& text) {
  if (const auto role = access::role_of(text)) return *role;
  in.reader.fault(field, "'" + text + "' is none of none viewer member admin");
  return access::Role::kNone;
}

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

std::string absolute_path(const Reading& in, const std::string& flag) {
  if (!in.reader.has(flag)) return "";
  return (std::filesystem::path(in.caller.folder) / in.reader.text(flag)).lexically_normal();
}

std::string read_server_url(Reading& in) {
  if (in.arguments.names.empty()) {
    in.reader.fault("https://HOST[:PORT]", "is missing; name the server");
    return "";
  }
  const auto address = api::parse_server_url(in.arguments.names.front());
  if (address) return api::server_url(address->host, address->port);
  in.reader.fault("", address.error().what + "; " + address.error().advice);
  return "";
}

std::string read_fingerprint(Reading& in) {
  if (!in.reader.has("--fingerprint")) return "";
  const auto fingerprint = http::parse_fingerprint(in.reader.text("--fingerprint"));
  if (fingerprint) return *fingerprint;
  in.reader.fault("--fingerprint", "is none: " + fingerprint.error().what);
  return "";
}

Invocation read_login_command(Reading& in) {
  LoginCommand command{.server = read_server_url(in),
                       .name = in.reader.text("--name"),
                       .ca_file = absolute_path(in, "--ca"),
                       .fingerprint = read_fingerprint(in),
                       .token_file = absolute_path(in, "--token-file"),
                       .token_stdin = in.reader.has("--token-stdin")};
  if (const auto valid = check_context_name(command.name); in.reader.has("--name") && !valid) {
    in.reader.fault("--name", valid.error().what + ": " + valid.error().advice);
  }
  if (in.reader.has("--ca") && in.reader.has("--fingerprint")) {
    in.reader.fault("--ca", "does not go with --fingerprint, which trusts one certificate alone");
  }
  if (command.token_stdin && in.reader.has("--token-file")) {
    in.reader.fault("--token-stdin", "does not go with --token-file");
  }
  return command;
}

Invocation read_user_create(Reading& in) {
  UserCreateCommand command{.user = {.name = in.name("user")}, .output = in.output()};
  if (in.reader.has("--role")) {
    command.user.server_role = read_role(in, "--role", in.reader.text("--role"));
  }
  command.user.projects = read_project_roles(in);
  return command;
}

Invocation read_user_set(Reading& in) {
  UserSetCommand command{.name = in.name("user"), .change = {}, .output = in.output()};
  if (in.reader.has("--role")) {
    command.change.server_role = read_role(in, "--role", in.reader.text("--role"));
  }
  command.change.projects = read_project_roles(in);
  const bool disable = in.reader.has("--disable");
  if (disable && in.reader.has("--enable")) {
    in.reader.fault("--enable", "does not go with --disable");
  }
  if (disable || in.reader.has("--enable")) command.change.disabled = disable;
  if (command.change == api::UserChange{} && in.reader.ok()) {
    in.reader.fault("", "say what to change: --role, --project, --disable or --enable");
  }
  return command;
}

/// The n-th of the names that stand behind a command; a fault where it is missing.
std::string name_at(Reading& in, size_t index, const std::string& what) {
  if (index < in.arguments.names.size()) return in.arguments.names[index];
  in.reader.fault(what, "is missing");
  return "";
}

Invocation read_grant(Reading& in) {
  MemberGrantCommand command{.project = name_at(in, 0, "NAME"), .user = name_at(in, 1, "USER")};
  const std::string role = name_at(in, 2, "ROLE");
  if (!role.empty()) command.role = read_role(in, "ROLE", role);
  if (role == access::to_string(access::Role::kNone)) {
    in.reader.fault("ROLE", "is none: 'muster project revoke' takes a role away");
  }
  return command;
}

std::optional<std::chrono::seconds> read_lifetime(Reading& in) {
  constexpr std::chrono::hours kUsual{90 * 24};
  if (in.reader.text("--expires") == "never") return std::nullopt;
  const auto lifetime = in.reader.duration("--expires", kUsual);
  const auto whole = std::chrono::duration_cast<std::chrono::seconds>(lifetime);
  if (whole.count() < 1) in.reader.fault("--expires", "is below a second");
  return whole;
}

Invocation read_token_create(Reading& in) {
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

Invocation read_token_list(Reading& in) {
  TokenListCommand command{
      .user = std::nullopt, .all = in.reader.has("--all"), .output = in.list_output()};
  if (in.reader.has("--user")) command.user = in.reader.text("--user");
  if (command.all && command.user) in.reader.fault("--user", "does not go with --all");
  return command;
}

Invocation read_token_revoke(Reading& in) {
  if (in.arguments.names.empty()) {
    in.reader.fault("ID", "is missing; see which there are: muster token list");
  }
  return TokenRevokeCommand{.ids = in.arguments.names};
}

Invocation read_audit(Reading& in) {
  AuditCommand command{.query = {}, .output = in.output()};
  if (in.reader.has("--user")) command.query.user = in.reader.text("--user");
  if (in.reader.has("--project")) command.query.project = in.reader.text("--project");
  if (in.reader.has("--action")) command.query.action = in.reader.text("--action");
  command.query.since = in.reader.moment("--since", in.caller.now);
  command.query.limit = in.reader.number("--limit", command.query.limit);
  if (command.query.limit < 1) in.reader.fault("--limit", "is below 1");
  return command;
}

constexpr std::array<InvocationReader, 23> kAccountReaders{{
    {"login", read_login_command},
    {"logout",
     [](Reading& in) -> Invocation { return LogoutCommand{.context = in.optional_name()}; }},
    {"whoami", [](Reading& in) -> Invocation { return WhoAmICommand{in.output()}; }},
    {"context", [](Reading&) -> Invocation { return ContextShowCommand{}; }},
    {"context list",
     [](Reading& in) -> Invocation { return ContextListCommand{in.list_output()}; }},
    {"context use",
     [](Reading& in) -> Invocation { return ContextUseCommand{in.name("context")}; }},
    {"context remove",
     [](Reading& in) -> Invocation { return ContextRemoveCommand{in.names("context")}; }},
    {"user create", read_user_create},
    {"user list", [](Reading& in) -> Invocation { return UserListCommand{in.list_output()}; }},
    {"user get",
     [](Reading& in) -> Invocation {
       return UserGetCommand{.name = in.name("user"), .output = in.output()};
     }},
    {"user set", read_user_set},
    {"user delete",
     [](Reading& in) -> Invocation {
       return UserDeleteCommand{.names = in.names("user"),
                                .ignore_missing = in.reader.has("--ignore-missing")};
     }},
    {"user invite",
     [](Reading& in) -> Invocation {
       return UserInviteCommand{.name = in.name("user"), .output = in.output()};
     }},
    {"project members",
     [](Reading& in) -> Invocation {
       return MemberListCommand{.project = in.name("project"), .output = in.list_output()};
     }},
    {"project grant", read_grant},
    {"project revoke",
     [](Reading& in) -> Invocation {
       return MemberRevokeCommand{.project = name_at(in, 0, "NAME"),
                                  .user = name_at(in, 1, "USER")};
     }},
    {"token create", read_token_create},
    {"token list", read_token_list},
    {"token revoke", read_token_revoke},
    {"secret set",
     [](Reading& in) -> Invocation {
       return SecretSetCommand{.project = in.project_meant(),
                               .name = in.name("secret"),
                               .file = absolute_path(in, "--from-file")};
     }},
    {"secret list",
     [](Reading& in) -> Invocation {
       return SecretListCommand{.project = in.project_meant(), .output = in.list_output()};
     }},
    {"secret delete",
     [](Reading& in) -> Invocation {
       return SecretDeleteCommand{.project = in.project_meant(),
                                  .names = in.names("secret"),
                                  .ignore_missing = in.reader.has("--ignore-missing")};
     }},
    {"audit", read_audit},
}};

}  // namespace

std::span<const InvocationReader> account_readers() {
  return kAccountReaders;
}

}  // namespace muster::cli
