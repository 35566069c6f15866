// The commands on who works with a server, and what they may do: login, context, user, the members
// of projects, token, secret, audit.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "api/account_wire.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"

namespace muster::cli::accounts {

struct LoginCommand {
  std::string server;       ///< https://HOST:PORT
  std::string name;         ///< of the context; empty: after the host
  std::string ca_file;      ///< absolute; empty: none
  std::string fingerprint;  ///< 64 hexadecimal digits; empty: none
  std::string token_file;   ///< empty: none
  bool token_stdin = false;
};

struct LogoutCommand {
  std::optional<std::string> context;  ///< nothing: the one that commands go to
};

struct WhoAmICommand {
  Output output = Output::kTable;
};

struct ContextShowCommand {};

struct ContextListCommand {
  Output output = Output::kTable;
};

struct ContextUseCommand {
  std::string name;
};

struct ContextRemoveCommand {
  std::vector<std::string> names;
};

struct UserCreateCommand {
  access::User user;
  Output output = Output::kTable;
};

struct UserListCommand {
  Output output = Output::kTable;
};

struct UserGetCommand {
  std::string name;
  Output output = Output::kTable;
};

struct UserSetCommand {
  std::string name;
  api::UserChange change;
  Output output = Output::kTable;
};

struct UserDeleteCommand {
  std::vector<std::string> names;
  bool ignore_missing = false;
};

struct UserInviteCommand {
  std::string name;
  Output output = Output::kTable;
};

struct MemberListCommand {
  std::string project;
  Output output = Output::kTable;
};

struct MemberGrantCommand {
  std::string project;
  std::string user;
  access::Role role = access::Role::kNone;
};

struct MemberRevokeCommand {
  std::string project;
  std::string user;
};

struct TokenCreateCommand {
  api::TokenRequest request;
  Output output = Output::kTable;
};

struct TokenListCommand {
  std::optional<std::string> user;  ///< whose; nothing: the caller's
  bool all = false;                 ///< all that the caller may see
  Output output = Output::kTable;
};

struct TokenRevokeCommand {
  std::vector<std::string> ids;
};

struct SecretSetCommand {
  std::string project;
  std::string name;
  std::string file;  ///< empty: from the terminal, or from standard input
};

struct SecretListCommand {
  std::string project;
  Output output = Output::kTable;
};

struct SecretDeleteCommand {
  std::string project;
  std::vector<std::string> names;
  bool ignore_missing = false;
};

struct AuditCommand {
  access::AuditQuery query;
  Output output = Output::kTable;
};

Result<int> execute(const LoginCommand& command, const Hooks& hooks);
Result<int> execute(const LogoutCommand& command, const Hooks& hooks);
Result<int> execute(const WhoAmICommand& command, const Hooks& hooks);
Result<int> execute(const ContextShowCommand& command, const Hooks& hooks);
Result<int> execute(const ContextListCommand& command, const Hooks& hooks);
Result<int> execute(const ContextUseCommand& command, const Hooks& hooks);
Result<int> execute(const ContextRemoveCommand& command, const Hooks& hooks);
Result<int> execute(const UserCreateCommand& command, const Hooks& hooks);
Result<int> execute(const UserListCommand& command, const Hooks& hooks);
Result<int> execute(const UserGetCommand& command, const Hooks& hooks);
Result<int> execute(const UserSetCommand& command, const Hooks& hooks);
Result<int> execute(const UserDeleteCommand& command, const Hooks& hooks);
Result<int> execute(const UserInviteCommand& command, const Hooks& hooks);
Result<int> execute(const MemberListCommand& command, const Hooks& hooks);
Result<int> execute(const MemberGrantCommand& command, const Hooks& hooks);
Result<int> execute(const MemberRevokeCommand& command, const Hooks& hooks);
Result<int> execute(const TokenCreateCommand& command, const Hooks& hooks);
Result<int> execute(const TokenListCommand& command, const Hooks& hooks);
Result<int> execute(const TokenRevokeCommand& command, const Hooks& hooks);
Result<int> execute(const SecretSetCommand& command, const Hooks& hooks);
Result<int> execute(const SecretListCommand& command, const Hooks& hooks);
Result<int> execute(const SecretDeleteCommand& command, const Hooks& hooks);
Result<int> execute(const AuditCommand& command, const Hooks& hooks);

/// A role that `text` names; a fault of `field` where it names none.
access::Role read_role(Reading& in, const std::string& field, const std::string& text);

/// Says on standard error where a variable keeps the context in use from being used.
void note_what_goes_before();

// login.cc
Command login_command();
Command logout_command();
Command whoami_command();
// contexts_command.cc
Command context_command();
// users.cc
Command user_command();
/// Those of `project`.
std::vector<Command> member_commands();
// tokens.cc
Command token_command();
// secrets.cc
Command secret_command();
Command audit_command();

}  // namespace muster::cli::accounts
