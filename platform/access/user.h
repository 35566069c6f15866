// Who works with a server: a name, and a role in each project.
//
// Plain values. There are no passwords: who a caller is, is shown by a token (token.h).
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "access/role.h"
#include "base/clock.h"
#include "base/error.h"

namespace muster::access {

struct User {
  std::string name;
  Role server_role = Role::kNone;        ///< in every project; kAdmin: and over the server itself
  std::map<std::string, Role> projects;  ///< in this project and those below it
  bool disabled = false;                 ///< none of its tokens is taken
  base::Time created;

  bool operator==(const User&) const = default;
};

/// Empty when the user can be kept: a name of 1 to 64 of a-z, 0-9, '.', '_', '-', '@', beginning
/// with a letter or digit. (Whether its projects exist is the controller's question.)
std::vector<base::Fault> validate_user(const User& user);

}  // namespace muster::access
