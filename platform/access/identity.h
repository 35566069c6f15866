// The caller of one request, and what it may do.
//
// Plain values; pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "access/role.h"
#include "access/token.h"
#include "access/user.h"
#include "base/error.h"

namespace muster::access {

/// Detail of an error: the server does not know the caller, who has to log in.
struct NotLoggedIn : base::ErrorDetail {};

struct Identity {
  std::string user;
  Role server_role = Role::kNone;
  std::map<std::string, Role> projects;
  Role ceiling = Role::kAdmin;              ///< of the token that was shown
  std::vector<std::string> token_projects;  ///< the only ones it is good for; empty: all
  std::string token;                        ///< its id; empty over the unix socket
  TokenKind token_kind = TokenKind::kSession;
  std::string address;  ///< "10.0.0.7", or "local" over the unix socket

  /// May do something over the server itself: nodes, users, other people's tokens.
  Role over_server() const;
  /// `line`: the project, its parent, and so on up to the top. A role holds for what is below.
  Role in_project(const std::vector<std::string>& line) const;
  /// Sees every project there is.
  bool sees_everything() const { return over_server() >= Role::kViewer; }

  bool operator==(const Identity&) const = default;
};

/// Whoever is let in by the unix socket: the owner of the server, who may do everything.
Identity local_identity(std::string user);

Identity identity_of(const User& user, const Token& token, std::string address);

}  // namespace muster::access
