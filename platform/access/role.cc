#include "access/role.h"

#include <array>

#include "access/account_table.h"

namespace muster::access {

namespace {

constexpr std::array<record::Named<Role>, 4> kRoleNames{{
    {Role::kNone, "none"},
    {Role::kViewer, "viewer"},
    {Role::kMember, "member"},
    {Role::kAdmin, "admin"},
}};

}  // namespace

record::Words<Role> words_of(const Role*) {
  return {.schema = "Role",
          .values = kRoleNames,
          .help =
              "Each role includes the one before it: a viewer reads, a member submits jobs, an "
              "admin sets members, secrets and quotas."};
}

std::string_view to_string(Role role) {
  return record::word_for(role);
}
std::optional<Role> role_of(std::string_view name) {
  return record::meant_by<Role>(name);
}

}  // namespace muster::access
