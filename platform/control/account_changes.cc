#include "control/account_changes.h"

#include <map>
#include <string>

#include "base/text.h"

namespace muster::control {

using access::FieldChange;

namespace {

using Texts = std::map<std::string, std::string>;

Texts texts_of(const access::User& user) {
  Texts texts{{"server_role", std::string(to_string(user.server_role))},
              {"disabled", user.disabled ? "true" : "false"}};
  for (const auto& [project, role] : user.projects) texts["projects." + project] = to_string(role);
  return texts;
}

Texts texts_of(const access::Token& token) {
  Texts texts{{"user", token.user},
              {"kind", std::string(to_string(token.kind))},
              {"description", token.description},
              {"ceiling", std::string(to_string(token.ceiling))}};
  if (token.expires) texts["expires"] = base::to_rfc3339(*token.expires);
  std::string& projects = texts["projects"];
  for (const std::string& project : token.projects) {
    projects += (projects.empty() ? "" : ",") + project;
  }
  return texts;
}

std::vector<FieldChange> differences(const Texts& before, const Texts& after) {
  std::map<std::string, FieldChange> changes;
  for (const auto& [field, text] : before) changes[field].before = text;
  for (const auto& [field, text] : after) changes[field].after = text;
  std::vector<FieldChange> differing;
  for (auto& [field, change] : changes) {
    if (change.before == change.after) continue;
    change.field = field;
    differing.push_back(std::move(change));
  }
  return differing;
}

template <class Thing>
std::vector<FieldChange> between(const Thing* before, const Thing* after) {
  return differences(before == nullptr ? Texts() : texts_of(*before),
                     after == nullptr ? Texts() : texts_of(*after));
}

}  // namespace

std::vector<FieldChange> changes_of(const access::User* before, const access::User* after) {
  return between(before, after);
}

std::vector<FieldChange> changes_of(const access::Token* before, const access::Token* after) {
  return between(before, after);
}

}  // namespace muster::control
