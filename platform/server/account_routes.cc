// Logging in and out, users, and tokens.
//
// A token can only create tokens with at most its own rights: none above its ceiling or for other
// projects; and a token for programs (kApi) cannot create tokens that outlive it. So a stolen token
// with few rights cannot be turned into a token with more.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "access/audit.h"
#include "api/account_wire.h"
#include "api/wire.h"
#include "control/unknown_name.h"
#include "server/page.h"
#include "server/router.h"
#include "server/routes.h"
#include "server/sight.h"

namespace muster::server {

using access::Identity;
using access::Role;
using access::TokenKind;
using base::Error;
using base::ErrorCode;
using base::Result;
using control::Accounts;
using control::Controller;

namespace {

constexpr std::chrono::seconds kInvitationLifetime = std::chrono::days(7);

bool is_server_admin(const Identity& who) {
  return who.over_server() >= Role::kAdmin;
}

/// Whether the token is restricted to some projects. Such a token reveals nothing about other roles
/// of its user.
bool is_narrow(const Identity& who) {
  return !who.token_projects.empty();
}

std::string new_token_json(const control::IssuedToken& issued) {
  return api::new_token_to_json({.token = issued.token, .text = issued.text});
}

// --- the caller itself

/// The user's roles, as far as this token includes them.
std::map<std::string, Role> roles_of(const Sight& sight, const Identity& who) {
  std::map<std::string, Role> roles;
  for (const auto& [project, role] : who.projects) {
    if (sight.sees_project(project)) roles[project] = std::min(role, who.ceiling);
  }
  for (const std::string& project : who.token_projects) {
    if (sight.sees_project(project)) roles[project] = sight.role_in(project);
  }
  return roles;
}

std::optional<base::Time> expiry_of(const Accounts& accounts, const Identity& who) {
  const auto token = accounts.token(who.token);
  return token ? token->expires : std::nullopt;
}

}  // namespace

http::Response whoami(const Accounts& accounts, const Controller& controller, const Identity& who) {
  return json_answer(200, api::whoami_to_json({.user = who.user,
                                               .server_role = who.over_server(),
                                               .projects = roles_of(Sight(controller, who), who),
                                               .token = who.token,
                                               .ceiling = who.ceiling,
                                               .expires = expiry_of(accounts, who),
                                               .address = who.address}));
}

namespace {

/// The requested lifetime; a token created by a program's token lives no longer than that token.
std::optional<std::chrono::seconds> bounded_lifetime(
    const Accounts& accounts, const base::Clock& clock, const Identity& who,
    std::optional<std::chrono::seconds> requested) {
  if (who.token_kind != TokenKind::kApi) return requested;
  const auto expires = expiry_of(accounts, who);
  if (!expires) return requested;
  const auto left = std::chrono::floor<std::chrono::seconds>(*expires - clock.now());
  return requested ? std::min(*requested, left) : left;
}

/// The request's token may be for programs, a session, or an invitation, which is used up.
RouteAnswer log_in(Accounts& accounts, std::chrono::seconds longest, const ApiCall& call) {
  if (call.who.token.empty()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "a login over the unix socket is not possible",
                 .advice = "log in to the server's address: muster login ADDRESS"};
  }
  MUSTER_TRY(const api::TokenRequest request, api::login_request_from_json(call.request.body));
  const std::chrono::seconds lifetime = std::min(request.lifetime.value_or(longest), longest);
  MUSTER_TRY(const control::IssuedToken issued,
             accounts.log_in(call.who, request.description, lifetime, call.actor()));
  return json_answer(201, new_token_json(issued));
}

RouteAnswer log_out(Accounts& accounts, const ApiCall& call) {
  if (call.who.token.empty()) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "a request over the unix socket has no token to revoke",
                 .advice = "the permissions of the socket's file protect it"};
  }
  MUSTER_CHECK(accounts.revoke(call.who.token, call.actor()));
  http::Response answer = nothing_more();
  if (cookie_of(call.request)) answer.headers["set-cookie"] = cookie_removed(call.request);
  return answer;
}

// --- users

/// The projects of roles must exist.
Result<void> check_projects(const Controller& controller,
                            const std::map<std::string, Role>& roles) {
  for (const auto& [project, role] : roles) {
    if (role == Role::kNone) continue;
    const auto known = controller.projects().status(project);
    if (!known) return known.error();
  }
  return {};
}

Error no_such_user(const std::string& name) {
  return {.code = ErrorCode::kNotFound, .what = "there is no user '" + name + "'"};
}

RouteAnswer get_user(const Accounts& accounts, const Controller& controller, const ApiCall& call) {
  const std::string& name = call.path.at("name");
  const Identity& who = call.who;
  if (who.over_server() < Role::kViewer && name != who.user) return no_such_user(name);
  MUSTER_TRY(access::User user, accounts.user(name));
  if (is_narrow(who)) user.projects = roles_of(Sight(controller, who), who);
  return json_answer(200, api::user_to_json(user));
}

control::TokenRequest invitation_for(const std::string& user) {
  return {.user = user,
          .kind = TokenKind::kInvitation,
          .description = "invitation",
          .lifetime = kInvitationLifetime};
}

RouteAnswer create_user(Accounts& accounts, const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(access::User user, api::user_request_from_json(call.request.body));
  MUSTER_CHECK(check_projects(controller, user.projects));
  MUSTER_TRY(const access::User created, accounts.create_user(std::move(user), call.actor()));
  MUSTER_TRY(const control::IssuedToken invitation,
             accounts.issue(invitation_for(created.name), call.actor()));
  return json_answer(
      201,
      api::new_user_to_json(
          {.user = created, .invitation = {.token = invitation.token, .text = invitation.text}}));
}

RouteAnswer change_user(Accounts& accounts, const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(access::User user, accounts.user(call.path.at("name")));
  MUSTER_TRY(const api::UserChange change, api::user_change_from_json(call.request.body));
  MUSTER_CHECK(check_projects(controller, change.projects));
  MUSTER_TRY(const access::User changed,
             accounts.set_user(api::changed(std::move(user), change), call.actor()));
  return json_answer(200, api::user_to_json(changed));
}

RouteAnswer remove_user(Accounts& accounts, const ApiCall& call) {
  MUSTER_CHECK(accounts.remove_user(call.path.at("name"), call.actor()));
  return nothing_more();
}

RouteAnswer invite(Accounts& accounts, const ApiCall& call) {
  MUSTER_TRY(const control::IssuedToken issued,
             accounts.issue(invitation_for(call.path.at("name")), call.actor()));
  return json_answer(201, new_token_json(issued));
}

// --- tokens

/// Whether the caller may see and revoke it.
bool is_own(const Identity& who, const access::Token& token) {
  if (is_server_admin(who)) return true;
  return token.user == who.user && (!is_narrow(who) || token.id == who.token);
}

Error others_tokens() {
  return {.code = ErrorCode::kRefused,
          .what = "the tokens of other users require the server role 'admin'",
          .advice = "muster whoami shows what you may do"};
}

RouteAnswer list_tokens(const Accounts& accounts, const ApiCall& call) {
  const Identity& who = call.who;
  const std::string user = parameter(call.request, "user");
  if (!user.empty() && user != who.user && !is_server_admin(who)) return others_tokens();
  std::vector<access::Token> tokens =
      accounts.tokens(user.empty() ? std::nullopt : std::optional(user));
  std::erase_if(tokens, [&](const access::Token& token) { return !is_own(who, token); });
  return json_answer(200, api::tokens_to_json(tokens));
}

/// `projects`; each of them must be covered by the caller's own token.
Result<std::vector<std::string>> projects_for(const Controller& controller, const Identity& who,
                                              const std::vector<std::string>& projects) {
  if (projects.empty()) return who.token_projects;
  const Sight sight(controller, who);
  for (const std::string& project : projects) {
    MUSTER_CHECK(sight.project(project, Role::kViewer));
  }
  return projects;
}

std::vector<base::Fault> faults_of_request(const api::TokenRequest& request) {
  return control::faults_of_token({.description = request.description,
                                   .ceiling = request.ceiling,
                                   .projects = request.projects,
                                   .lifetime = request.lifetime});
}

RouteAnswer create_token(Accounts& accounts, const Controller& controller, const base::Clock& clock,
                         const ApiCall& call) {
  const Identity& who = call.who;
  MUSTER_TRY(const api::TokenRequest request,
             api::token_request_from_json(call.request.body, faults_of_request));
  const std::string user = request.user.empty() ? who.user : request.user;
  if (user != who.user && !is_server_admin(who)) return others_tokens();
  if (who.ceiling < Role::kMember) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "this token has only the role viewer, and cannot create tokens",
                 .advice = "use a token whose ceiling is member or admin"};
  }
  MUSTER_TRY(std::vector<std::string> projects, projects_for(controller, who, request.projects));
  const auto issued =
      accounts.issue({.user = user,
                      .kind = TokenKind::kApi,
                      .description = request.description,
                      .ceiling = std::min(request.ceiling, who.ceiling),
                      .projects = std::move(projects),
                      .lifetime = bounded_lifetime(accounts, clock, who, request.lifetime)},
                     call.actor());
  if (!issued) return api::with_api_names<api::TokenRequest>(issued.error());
  return json_answer(201, new_token_json(*issued));
}

RouteAnswer revoke(Accounts& accounts, const ApiCall& call) {
  const std::string& id = call.path.at("id");
  const auto token = accounts.token(id);
  if (!token || !is_own(call.who, *token)) {
    return Error{.code = ErrorCode::kNotFound,
                 .what = "there is no token '" + id + "'",
                 .advice = "list your tokens: muster token list"};
  }
  if (call.who.ceiling < Role::kMember && id != call.who.token) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "this token has only the role viewer, and can revoke only itself",
                 .advice = "use a token whose ceiling is member or admin"};
  }
  MUSTER_CHECK(accounts.revoke(id, call.actor()));
  return nothing_more();
}

void add_user_routes(Router& router, Accounts& accounts, Controller& controller) {
  router.add("GET", "/v1/users", Permission::kServerViewer,
             at_once([&accounts](const ApiCall&) -> RouteAnswer {
               return json_answer(200, api::users_to_json(accounts.users()));
             }));
  router.add("POST", "/v1/users", Permission::kServerAdmin,
             at_once([&](const ApiCall& call) { return create_user(accounts, controller, call); }));
  router.add("GET", "/v1/users/{name}", Permission::kSignedIn,
             at_once([&](const ApiCall& call) { return get_user(accounts, controller, call); }));
  router.add("PATCH", "/v1/users/{name}", Permission::kServerAdmin,
             at_once([&](const ApiCall& call) { return change_user(accounts, controller, call); }));
  router.add("DELETE", "/v1/users/{name}", Permission::kServerAdmin,
             at_once([&accounts](const ApiCall& call) { return remove_user(accounts, call); }));
  router.add("POST", "/v1/users/{name}/invitation", Permission::kServerAdmin,
             at_once([&accounts](const ApiCall& call) { return invite(accounts, call); }));
}

}  // namespace

void add_account_routes(Router& router, Accounts& accounts, Controller& controller,
                        const base::Clock& clock, const std::chrono::seconds& session_lifetime) {
  router.add("POST", "/v1/login", Permission::kInvited, at_once([&](const ApiCall& call) {
               return log_in(accounts, session_lifetime, call);
             }));
  router.add("POST", "/v1/logout", Permission::kSignedIn,
             at_once([&accounts](const ApiCall& call) { return log_out(accounts, call); }));
  router.add("GET", "/v1/whoami", Permission::kSignedIn,
             at_once([&](const ApiCall& call) -> RouteAnswer {
               return whoami(accounts, controller, call.who);
             }));
  add_user_routes(router, accounts, controller);
  router.add("GET", "/v1/tokens", Permission::kSignedIn,
             at_once([&accounts](const ApiCall& call) { return list_tokens(accounts, call); }));
  router.add("POST", "/v1/tokens", Permission::kSignedIn, at_once([&](const ApiCall& call) {
               return create_token(accounts, controller, clock, call);
             }));
  router.add("DELETE", "/v1/tokens/{id}", Permission::kSignedIn,
             at_once([&accounts](const ApiCall& call) { return revoke(accounts, call); }));
}

// The members of a project, and the project's secrets.

namespace {

// --- members

RouteAnswer list_members(const Accounts& accounts, const Controller& controller,
                         const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kViewer));
  std::map<std::string, Role> members;
  for (const access::User& user : accounts.users()) {
    const auto role = user.projects.find(project);
    if (role != user.projects.end()) members[user.name] = role->second;
  }
  return json_answer(200, api::members_to_json(members));
}

/// The error suggests no similar names: an admin of a single project learns only whether the name
/// that it gives is a user's.
Result<access::User> user_of(const Accounts& accounts, const std::string& name) {
  auto user = accounts.user(name);
  if (user) return user;
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no user '" + name + "'",
               .advice = "an admin of the server creates users: muster user create"};
}

RouteAnswer set_member(Accounts& accounts, const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_TRY(const Role role, api::role_from_json(call.request.body));
  if (role == Role::kNone) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "invalid role of a member: expected one of viewer, member, admin",
                 .advice = "to remove the role, delete the member"};
  }
  MUSTER_TRY(access::User user, user_of(accounts, call.path.at("user")));
  user.projects[project] = role;
  MUSTER_CHECK(accounts.set_user(std::move(user), call.actor()));
  return nothing_more();
}

RouteAnswer remove_member(Accounts& accounts, const Controller& controller, const ApiCall& call) {
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

RouteAnswer list_secrets(const Accounts& accounts, const Controller& controller,
                         const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kMember));
  return json_answer(200, api::secrets_to_json(accounts.secrets(project)));
}

RouteAnswer set_secret(Accounts& accounts, const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_TRY(const std::string value, api::secret_value_from_json(call.request.body));
  MUSTER_TRY(const access::Secret secret,
             accounts.set_secret(project, call.path.at("secret"), value, call.actor()));
  return json_answer(200, api::secret_to_json(secret));
}

RouteAnswer remove_secret(Accounts& accounts, const Controller& controller, const ApiCall& call) {
  MUSTER_TRY(const std::string project, project_in_path(controller, call, Role::kAdmin));
  MUSTER_CHECK(accounts.remove_secret(project, call.path.at("secret"), call.actor()));
  return nothing_more();
}

}  // namespace

void add_member_routes(Router& router, Accounts& accounts, Controller& controller) {
  const auto add = [&](const char* method, const char* path, auto answer) {
    router.add(method, path, Permission::kSignedIn,
               at_once([&accounts, &controller, answer](const ApiCall& call) {
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

// The audit log: callers who may see the server get all records; admins of a project get those of
// the project.

namespace {

base::Result<void> may_read(const control::Controller& controller, const ApiCall& call,
                            const access::AuditQuery& query) {
  if (call.who.over_server() >= Role::kViewer) return {};
  if (query.project) return Sight(controller, call.who).project(*query.project, Role::kAdmin);
  return Error{
      .code = ErrorCode::kRefused,
      .what = "the whole audit log requires the server role 'viewer'; " +
              access::server_role_text(call.who),
      .advice =
          "an admin of a project can read the project's records: --project NAME, or ?project=NAME"};
}

/// Records from before the project's creation belong to another project of the same name.
base::Result<void> leave_out_namesakes(const control::Controller& controller,
                                       access::AuditQuery& query) {
  if (*query.project == job::kDefaultProject) return {};  // the default project always exists
  MUSTER_TRY(const job::ProjectStatus status, controller.projects().status(*query.project));
  const base::Time since = status.project.created;
  query.since = std::max(query.since.value_or(since), since);
  return {};
}

}  // namespace

void add_audit_routes(Router& router, control::Accounts& accounts,
                      control::Controller& controller) {
  router.add("GET", "/v1/audit", Permission::kSignedIn,
             at_once([&accounts, &controller](const ApiCall& call) -> RouteAnswer {
               MUSTER_TRY(access::AuditQuery query,
                          api::audit_query_from_parameters(call.request.query));
               MUSTER_CHECK(may_read(controller, call, query));
               if (!call.who.sees_everything()) {
                 MUSTER_CHECK(leave_out_namesakes(controller, query));
               }
               MUSTER_TRY(std::vector<access::AuditRecord> records, accounts.audit(query));
               const Sight sight(controller, call.who);
               for (access::AuditRecord& record : records) {
                 record = sight.redacted(std::move(record));
               }
               return json_answer(200, api::audit_to_json(records));
             }));
}

}  // namespace muster::server
