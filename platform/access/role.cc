#include "access/role.h"

#include <array>
#include <utility>

namespace muster::access {

namespace {

constexpr std::array<std::pair<Role, std::string_view>, 4> kRoleNames{{
    {Role::kNone, "none"},
    {Role::kViewer, "viewer"},
    {Role::kMember, "member"},
    {Role::kAdmin, "admin"},
}};

}  // namespace

std::string_view to_string(Role role) {
  for (const auto& [candidate, name] : kRoleNames) {
    if (candidate == role) return name;
  }
  return "none";
}

std::optional<Role> role_of(std::string_view name) {
  for (const auto& [role, candidate] : kRoleNames) {
    if (candidate == name) return role;
  }
  return std::nullopt;
}

}  // namespace muster::access
