// Who has a role in a project, and the project's secrets.
#include <map>
#include <string>

#include "api/account_wire.h"
#include "server/answers.h"
#include "server/named.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

namespace {

using access::Role;
using base::Error;
using base::ErrorCode;
using base::Result;
using control::Accounts;
using control::Controller;

// --- members

Answer list_members(const Accounts& accounts, const Controller& controller, const Call& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kViewer));
  std::map<std::string, Role> members;
  for (const access::User& user : accounts.users()) {
    const auto role = user.projects.find(project);
    if (role != user.projects.end()) members[user.name] = role->second;
  }
  return json_answer(200, api::members_to_json(members));
}

/// An admin of one project knows who is there by being told: it gets no hint of names.
Result<access::User> user_of(const Accounts& accounts, const std::string& name) {
  auto user = accounts.user(name);
  if (user) return user;
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no user '" + name + "'",
               .advice = "an admin of the server makes users: muster user create"};
}

Answer set_member(Accounts& accounts, const Controller& controller, const Call& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_TRY(const Role role, api::role_from_json(call.request.body));
  if (role == Role::kNone) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "a member has one of the roles viewer, member and admin",
                 .advice = "to take the role away, delete the member"};
  }
  MUSTER_TRY(access::User user, user_of(accounts, call.path.at("user")));
  user.projects[project] = role;
  MUSTER_CHECK(accounts.set_user(std::move(user), call.actor()));
  return nothing_more();
}

Answer remove_member(Accounts& accounts, const Controller& controller, const Call& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  const std::string& name = call.path.at("user");
  auto user = accounts.user(name);
  if (!user || user->projects.erase(project) == 0) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "'" + name + "' has no role of its own in project '" + project + "'",
                 .advice = "a role above it is taken away there"};
  }
  MUSTER_CHECK(accounts.set_user(*std::move(user), call.actor()));
  return nothing_more();
}

// --- secrets

Answer list_secrets(const Accounts& accounts, const Controller& controller, const Call& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kMember));
  return json_answer(200, api::secrets_to_json(accounts.secrets(project)));
}

Answer set_secret(Accounts& accounts, const Controller& controller, const Call& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_TRY(const std::string value, api::secret_value_from_json(call.request.body));
  MUSTER_TRY(const access::Secret secret,
             accounts.set_secret(project, call.path.at("secret"), value, call.actor()));
  return json_answer(200, api::secret_to_json(secret));
}

Answer remove_secret(Accounts& accounts, const Controller& controller, const Call& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_CHECK(accounts.remove_secret(project, call.path.at("secret"), call.actor()));
  return nothing_more();
}

}  // namespace

void add_member_routes(Router& router, Accounts& accounts, Controller& controller) {
  const auto add = [&](const char* method, const char* path, auto answer) {
    router.add(method, path, Permission::kSignedIn,
               at_once([&accounts, &controller, answer](const Call& call) {
                 return answer(accounts, controller, call);
               }));
  };
  add("GET", "/v1/projects/{name}/members", list_members);
  add("PUT", "/v1/projects/{name}/members/{user}", set_member);
  add("DELETE", "/v1/projects/{name}/members/{user}", remove_member);
  add("GET", "/v1/projects/{name}/secrets", list_secrets);
  add("PUT", "/v1/projects/{name}/secrets/{secret}", set_secret);
  add("DELETE", "/v1/projects/{name}/secrets/{secret}", remove_secret);
}

}  // namespace muster::server
