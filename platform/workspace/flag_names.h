// What a program calls the flags that advice about a workspace names.
#pragma once

#include <string>

namespace muster::workspace {

struct FlagNames {
  std::string ref = "--workspace-ref";
  std::string ignore = "--ignore";
  /// How a user gives a name and a password; empty: by git's own helpers alone.
  std::string username;
  std::string password;

  bool takes_password() const { return !password.empty(); }
};

}  // namespace muster::workspace
