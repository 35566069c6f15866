// What somebody may do: look, work, or decide.
//
// Plain values; thread-safe.
#pragma once

#include <optional>
#include <string_view>

namespace muster::access {

/// Ordered: whoever may do more may do all of the less.
enum class Role {
  kNone,
  kViewer,  ///< reads
  kMember,  ///< submits, stops and deletes jobs, uses secrets
  kAdmin,   ///< sets secrets and members of the project; of the server: everything
};

/// "none", "viewer", "member", "admin".
std::string_view to_string(Role role);
std::optional<Role> role_of(std::string_view name);

}  // namespace muster::access
