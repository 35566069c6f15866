#include <algorithm>
#include <chrono>

#include "api/routes.h"
#include "base/text.h"
#include "cli/fake_server.h"

namespace muster::cli {

namespace {

using access::Role;
using access::TokenKind;

http::Response unauthorized() {
  http::Response response = problem_answer(base::ErrorCode::kRefused, "the token is not taken");
  response.status = 401;
  return response;
}

base::Time now() {
  return base::FakeClock().now();
}

std::string part(const std::vector<std::string>& parts, size_t index) {
  return index < parts.size() ? parts[index] : "";
}

}  // namespace

FakeAccounts::FakeAccounts() {
  users_["root"] = {.name = "root", .server_role = Role::kAdmin, .created = now()};
  issue("root", TokenKind::kApi, {});
}

const api::NewToken* FakeAccounts::shown_by(const http::Request& request) const {
  const auto header = request.headers.find("authorization");
  const auto found = std::find_if(tokens_.begin(), tokens_.end(), [&](const api::NewToken& token) {
    return header != request.headers.end() && header->second == "Bearer " + token.text;
  });
  return found == tokens_.end() ? nullptr : &*found;
}

std::optional<http::Response> FakeAccounts::refuse(const http::Request& request) const {
  const bool is_local = request.peer.user.has_value();
  const bool is_public = request.path == api::kHealthPath;
  if (is_local || is_public || shown_by(request) != nullptr) return std::nullopt;
  return unauthorized();
}

std::optional<http::Response> FakeAccounts::answer(const http::Request& request) {
  if (request.path == api::kHealthPath) return http::Response{.body = "{}"};
  if (request.path == api::kLoginPath) return log_in(request);
  if (request.path == api::kLogoutPath) return log_out(request);
  if (request.path == api::kWhoAmIPath) return who_am_i(request);
  if (request.path == api::kAuditPath) return audit(request);
  // "", "v1", "users", NAME, ACTION
  const std::vector<std::string> parts = base::split(request.path, '/');
  const std::string kind = part(parts, 2);
  const std::string name = part(parts, 3);
  if (kind == "users") return answer_user(request, name, part(parts, 4));
  if (kind == "tokens") return answer_token(request, name);
  if (kind != "projects") return std::nullopt;
  if (part(parts, 4) == "members") return answer_member(request, name, part(parts, 5));
  if (part(parts, 4) == "secrets") return answer_secret(request, name, part(parts, 5));
  return std::nullopt;
}

api::NewToken& FakeAccounts::issue(const std::string& user, TokenKind kind,
                                   const api::TokenRequest& request) {
  const access::NewToken made = access::make_token(random_);
  api::NewToken token{.token = {.id = made.id,
                                .user = user,
                                .kind = kind,
                                .description = request.description,
                                .ceiling = request.ceiling,
                                .projects = request.projects,
                                .created = now()},
                      .text = made.text};
  if (request.lifetime) token.token.expires = now() + *request.lifetime;
  return tokens_.emplace_back(std::move(token));
}

http::Response FakeAccounts::log_in(const http::Request& request) {
  const auto token_request = api::token_request_from_json(request.body);
  if (!token_request) return problem_answer(base::ErrorCode::kInvalid, token_request.error().what);
  const api::NewToken shown = *shown_by(request);
  if (shown.token.kind == TokenKind::kInvitation) {
    std::erase_if(tokens_, [&](const api::NewToken& token) { return token.text == shown.text; });
  }
  api::TokenRequest session = *token_request;
  session.lifetime = std::chrono::hours(30 * 24);
  return {.status = 201,
          .body = api::new_token_to_json(issue(shown.token.user, TokenKind::kSession, session))};
}

http::Response FakeAccounts::log_out(const http::Request& request) {
  const std::string text = shown_by(request)->text;
  std::erase_if(tokens_, [&](const api::NewToken& token) { return token.text == text; });
  return {.status = 204};
}

http::Response FakeAccounts::who_am_i(const http::Request& request) const {
  api::WhoAmI who{.user = "local", .server_role = Role::kAdmin, .address = request.peer.address};
  if (const api::NewToken* const shown = shown_by(request)) {
    const access::User& user = users_.at(shown->token.user);
    who = {.user = user.name,
           .server_role = user.server_role,
           .projects = user.projects,
           .token = shown->token.id,
           .ceiling = shown->token.ceiling,
           .expires = shown->token.expires,
           .address = request.peer.address};
  }
  return {.body = api::whoami_to_json(who)};
}

http::Response FakeAccounts::create_user(const http::Request& request) {
  auto user = api::user_from_json(request.body);
  if (!user) return problem_answer(base::ErrorCode::kInvalid, user.error().what);
  if (users_.contains(user->name)) {
    return problem_answer(base::ErrorCode::kConflict, "user '" + user->name + "' exists already");
  }
  user->created = now();
  users_[user->name] = *user;
  note(request, "user.create", user->name);
  return {.status = 201,
          .body = api::new_user_to_json(
              {.user = *user,
               .invitation = issue(user->name, TokenKind::kInvitation,
                                   {.lifetime = std::chrono::hours(7 * 24)})})};
}

http::Response FakeAccounts::answer_user(const http::Request& request, const std::string& name,
                                         const std::string& action) {
  if (name.empty() && request.method == "POST") return create_user(request);
  if (name.empty()) {
    std::vector<access::User> all;
    for (const auto& [known, user] : users_) all.push_back(user);
    return {.body = api::users_to_json(all)};
  }
  if (!users_.contains(name)) return not_found_answer("user '" + name + "'");
  if (action == api::kInvitationAction) {
    return {.status = 201,
            .body = api::new_token_to_json(
                issue(name, TokenKind::kInvitation, {.lifetime = std::chrono::hours(7 * 24)}))};
  }
  if (request.method == "DELETE") {
    users_.erase(name);
    note(request, "user.delete", name);
    return {.status = 204};
  }
  if (request.method == "PATCH") {
    const auto change = api::user_change_from_json(request.body);
    if (!change) return problem_answer(base::ErrorCode::kInvalid, change.error().what);
    users_[name] = api::changed(users_[name], *change);
    note(request, "user.set", name);
  }
  return {.body = api::user_to_json(users_[name])};
}

http::Response FakeAccounts::answer_token(const http::Request& request, const std::string& id) {
  const api::NewToken* const shown = shown_by(request);
  const std::string caller = shown == nullptr ? "root" : shown->token.user;
  if (request.method == "POST") {
    const auto token_request = api::token_request_from_json(request.body);
    if (!token_request)
      return problem_answer(base::ErrorCode::kInvalid, token_request.error().what);
    const std::string user = token_request->user.empty() ? caller : token_request->user;
    return {.status = 201,
            .body = api::new_token_to_json(issue(user, TokenKind::kApi, *token_request))};
  }
  if (request.method == "DELETE") {
    const size_t count =
        std::erase_if(tokens_, [&](const api::NewToken& token) { return token.token.id == id; });
    return count == 0 ? not_found_answer("token '" + id + "'") : http::Response{.status = 204};
  }
  const auto asked = request.query.find("user");
  std::vector<access::Token> list;
  for (const api::NewToken& token : tokens_) {
    const bool is_meant = asked == request.query.end() || token.token.user == asked->second;
    const bool may_see = caller == "root" || token.token.user == caller;
    if (is_meant && may_see) list.push_back(token.token);
  }
  return {.body = api::tokens_to_json(list)};
}

http::Response FakeAccounts::answer_member(const http::Request& request, const std::string& project,
                                           const std::string& user) {
  if (user.empty()) {
    std::map<std::string, Role> members;
    for (const auto& [name, each] : users_) {
      if (each.projects.contains(project)) members[name] = each.projects.at(project);
    }
    return {.body = api::members_to_json(members)};
  }
  if (!users_.contains(user)) return not_found_answer("user '" + user + "'");
  if (request.method == "DELETE") {
    users_[user].projects.erase(project);
    return {.status = 204};
  }
  const auto role = api::role_from_json(request.body);
  if (!role) return problem_answer(base::ErrorCode::kInvalid, role.error().what);
  users_[user].projects[project] = *role;
  return {.status = 204};
}

http::Response FakeAccounts::answer_secret(const http::Request& request, const std::string& project,
                                           const std::string& name) {
  auto& secrets = secrets_[project];
  const auto as_listed = [&](const std::string& called) {
    return access::Secret{.project = project,
                          .name = called,
                          .created = now(),
                          .changed = now(),
                          .changed_by = "root"};
  };
  if (name.empty()) {
    std::vector<access::Secret> list;
    for (const auto& [known, value] : secrets) list.push_back(as_listed(known));
    return {.body = api::secrets_to_json(list)};
  }
  if (request.method == "DELETE") {
    return secrets.erase(name) == 0 ? not_found_answer("secret '" + name + "'")
                                    : http::Response{.status = 204};
  }
  const auto value = api::secret_value_from_json(request.body);
  if (!value) return problem_answer(base::ErrorCode::kInvalid, value.error().what);
  secrets[name] = *value;
  // A real server records no value; the fake records it for the test.
  note(request, "secret.set", name + "=" + *value);
  return {.body = api::secret_to_json(as_listed(name))};
}

http::Response FakeAccounts::audit(const http::Request& request) const {
  const auto query = api::audit_query_from_parameters(request.query);
  if (!query) return problem_answer(base::ErrorCode::kInvalid, query.error().what);
  std::vector<access::AuditRecord> found;
  for (auto record = records_.rbegin(); record != records_.rend(); ++record) {
    if (std::cmp_equal(found.size(), query->limit)) break;
    if (!query->before || record->number < *query->before) found.push_back(*record);
  }
  return {.body = api::audit_to_json(found)};
}

void FakeAccounts::note(const http::Request& request, const std::string& action,
                        const std::string& target) {
  const api::NewToken* const shown = shown_by(request);
  records_.push_back({.number = records_.size() + 1,
                      .time = now(),
                      .actor = {.user = shown == nullptr ? "local" : shown->token.user,
                                .address = request.peer.address},
                      .action = action,
                      .target = target});
}

}  // namespace muster::cli
