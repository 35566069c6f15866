#include "access/identity.h"

#include <algorithm>
#include <utility>

namespace muster::access {

namespace {

bool is_good_for(const std::vector<std::string>& token_projects,
                 const std::vector<std::string>& line) {
  if (token_projects.empty()) return true;
  return std::any_of(line.begin(), line.end(), [&](const std::string& project) {
    return std::find(token_projects.begin(), token_projects.end(), project) != token_projects.end();
  });
}

}  // namespace

Role Identity::over_server() const {
  // What is done to the server touches every project: a token for some of them is not meant for it.
  if (token_kind == TokenKind::kInvitation || !token_projects.empty()) return Role::kNone;
  return std::min(server_role, ceiling);
}

Role Identity::in_project(const std::vector<std::string>& line) const {
  if (token_kind == TokenKind::kInvitation || !is_good_for(token_projects, line)) {
    return Role::kNone;
  }
  Role best = server_role;
  for (const std::string& project : line) {
    const auto found = projects.find(project);
    if (found != projects.end()) best = std::max(best, found->second);
  }
  return std::min(best, ceiling);
}

Identity local_identity(std::string user) {
  return {.user = std::move(user), .server_role = Role::kAdmin, .address = "local"};
}

Identity identity_of(const User& user, const Token& token, std::string address) {
  return {.user = user.name,
          .server_role = user.server_role,
          .projects = user.projects,
          .ceiling = token.ceiling,
          .token_projects = token.projects,
          .token = token.id,
          .token_kind = token.kind,
          .address = std::move(address)};
}

}  // namespace muster::access
