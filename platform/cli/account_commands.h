// The commands on who may do what: what was asked for, typed. Part of invocation.h.
//
// Plain values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "access/role.h"
#include "access/user.h"
#include "api/account_wire.h"
#include "cli/output.h"

namespace muster::cli {

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

}  // namespace muster::cli
