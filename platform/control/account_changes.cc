#include "control/account_changes.h"

#include <string>

#include "base/text.h"
#include "control/field_changes.h"

namespace muster::control {

using access::FieldChange;

namespace {

FieldTexts account_fields(const access::User& user) {
  FieldTexts texts{{"server_role", std::string(to_string(user.server_role))},
                   {"disabled", user.disabled ? "true" : "false"}};
  for (const auto& [project, role] : user.projects) texts["projects." + project] = to_string(role);
  return texts;
}

FieldTexts account_fields(const access::Token& token) {
  FieldTexts texts{{"user", token.user},
                   {"kind", std::string(to_string(token.kind))},
                   {"description", token.description},
                   {"ceiling", std::string(to_string(token.ceiling))}};
  if (token.expires) texts["expires"] = base::to_rfc3339(*token.expires);
  texts["projects"] = base::joined(token.projects, ",");
  return texts;
}

}  // namespace

std::vector<FieldChange> changes_of(const access::User* before, const access::User* after) {
  return differences(before, after, [](const auto& thing) { return account_fields(thing); });
}

std::vector<FieldChange> changes_of(const access::Token* before, const access::Token* after) {
  return differences(before, after, [](const auto& thing) { return account_fields(thing); });
}

}  // namespace muster::control
