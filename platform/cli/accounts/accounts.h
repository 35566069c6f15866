// The commands on accounts: ui, login, logout, whoami, context, user, members of projects, token, secret,
// audit.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/identity.h"
#include "access/secret_box.h"
#include "api/account_wire.h"
#include "base/clock.h"
#include "base/result.h"
#include "cli/command/call.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/contexts.h"

namespace muster::cli::accounts {

/// The project in use after a login: the earlier one, or the only project of the user. Pure.
std::optional<std::string> project_after_login(const std::string& in_use,
                                               const std::vector<std::string>& projects);

struct LoginCommand {
  std::string server;       ///< https://HOST:PORT
  std::string name;         ///< of the context; empty: the host
  std::string ca_file;      ///< absolute; empty: none
  std::string fingerprint;  ///< 64 hexadecimal digits; empty: none
  std::string token_file;   ///< empty: none
  bool token_stdin = false;
};

struct LogoutCommand {
  std::optional<std::string> context;  ///< nothing: the current one
};

struct PageCommand {
  bool opens = true;    ///< in a browser
  bool closes = false;  ///< the loopback port
  Output output = Output::kTable;
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
  std::optional<std::string> user;  ///< nothing: the caller
  bool all = false;                 ///< of all users
  Output output = Output::kTable;
};

struct TokenRevokeCommand {
  std::vector<std::string> ids;
};

struct SecretSetCommand {
  std::string project;
  std::string name;
  std::string file;  ///< empty: the terminal or standard input
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
Result<int> execute(const PageCommand& command, const Hooks& hooks);
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

/// The role named `text`. Reports a fault of `field` if it is unknown.
access::Role read_role(Reading& in, const std::string& field, const std::string& text);

/// Prints a note if a variable overrides the current context.
void note_context_override();

// login.cc
Command login_command();
Command logout_command();
Command whoami_command();
// page.cc
Command ui_command();
// contexts_command.cc
Command context_command();
// users.cc
Command user_command();
/// The member commands of `project`.
std::vector<Command> member_commands();
// tokens.cc
Command token_command();
// secrets.cc
Command secret_command();
Command audit_command();

// Users, tokens, secrets, contexts and the audit log as text for people. Pure.

/// 2026-01-31T12:34:56Z, or "never".
std::string until(const std::optional<base::Time>& time);

/// NAME SERVER USER UNTIL; the current one is marked with a star.
std::string context_table(const Contexts& contexts, base::Time now);
/// {"in_use", "contexts": [...]}, without tokens.
std::string context_list_json(const Contexts& contexts);

std::string whoami_page(const api::WhoAmI& who, const Context& context);

std::string user_table(const std::vector<access::User>& users);
std::string user_page(const access::User& user);
/// The invitation and how to use it. `server`: its address, or empty.
std::string invitation_text(const api::NewToken& invitation, const std::string& server);

std::string member_table(const std::map<std::string, access::Role>& members);
std::string token_table(const std::vector<access::Token>& tokens, base::Time now);
std::string secret_table(const std::vector<access::Secret>& secrets);
std::string audit_table(const std::vector<access::AuditRecord>& records);

// The steps of a login before a token is sent: the context, and whether its server is trusted.
//
// Blocking; I/O.

/// The context that a login creates or renews, without a token. Trust comes from the flags, else from
/// an existing context of the same server. Pure.
///
/// Errors: kConflict: the name belongs to a context of another server.
Result<Context> context_to_log_in(const LoginCommand& command, const Contexts& contexts);

/// Verifies the server's certificate. If neither `context` nor the system's authorities verify it,
/// shows its fingerprint, asks the user, and stores it in `context`. False: Ctrl-C.
///
/// Errors: kUnavailable: the server does not answer; kRefused: the certificate cannot be verified, and
/// there is no terminal or the user declined.
Result<bool> settle_trust(Context& context, Interrupts& interrupts);

/// The token: from a file, standard input, or typed without echo. Nothing: Ctrl-C.
///
/// Errors: kInvalid: not a token, or there is no terminal.
Result<std::optional<std::string>> token_to_log_in(const LoginCommand& command,
                                                   Interrupts& interrupts);

}  // namespace muster::cli::accounts
