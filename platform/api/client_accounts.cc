// The client's requests on users, tokens, members, secrets and the audit log.

#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

namespace {

constexpr std::string_view kMembers = "members";
constexpr std::string_view kSecrets = "secrets";

Result<void> check_user(const std::string& name) {
  return check_segment(name, "user", "list the users: muster user list");
}

Result<void> check_secret(const std::string& project, const std::string& name) {
  MUSTER_CHECK(check_project_name(project));
  return check_segment(name, "secret", "list the secrets: muster secret list");
}

Result<void> check_member(const std::string& project, const std::string& user) {
  MUSTER_CHECK(check_project_name(project));
  return check_user(user);
}

}  // namespace

Result<NewToken> Client::log_in(const TokenRequest& request) {
  MUSTER_TRY(const http::Response response,
             call(request_for("POST", std::string(kLoginPath), token_request_to_json(request))));
  return new_token_from_json(response.body);
}

Result<void> Client::log_out() {
  MUSTER_CHECK(call(request_for("POST", std::string(kLogoutPath))));
  return {};
}

Result<WhoAmI> Client::who_am_i() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kWhoAmIPath))));
  return whoami_from_json(response.body);
}

Result<PageCode> Client::page_code() {
  MUSTER_TRY(const http::Response response, call(request_for("POST", std::string(kPageCodesPath))));
  return page_code_from_json(response.body);
}

Result<void> Client::close_page() {
  MUSTER_CHECK(call(request_for("DELETE", std::string(kPagePortPath))));
  return {};
}

Result<std::vector<access::User>> Client::users() {
  MUSTER_TRY(const http::Response response, call(request_for("GET", std::string(kUsersPath))));
  return users_from_json(response.body);
}

Result<access::User> Client::user(const std::string& name) {
  MUSTER_CHECK(check_user(name));
  MUSTER_TRY(const http::Response response, call(request_for("GET", user_path(name))));
  return user_from_json(response.body);
}

Result<NewUser> Client::create_user(const access::User& user) {
  MUSTER_TRY(const http::Response response,
             call(request_for("POST", std::string(kUsersPath), user_to_json(user))));
  return new_user_from_json(response.body);
}

Result<access::User> Client::patch_user(const std::string& name, const UserChange& change) {
  MUSTER_CHECK(check_user(name));
  MUSTER_TRY(const http::Response response,
             call(request_for("PATCH", user_path(name), user_change_to_json(change))));
  return user_from_json(response.body);
}

Result<void> Client::remove_user(const std::string& name) {
  MUSTER_CHECK(check_user(name));
  MUSTER_CHECK(call(request_for("DELETE", user_path(name))));
  return {};
}

Result<NewToken> Client::invite_user(const std::string& name) {
  MUSTER_CHECK(check_user(name));
  MUSTER_TRY(const http::Response response,
             call(request_for("POST", user_path(name, kInvitationAction))));
  return new_token_from_json(response.body);
}

Result<std::vector<access::Token>> Client::tokens(const std::optional<std::string>& user) {
  http::Request request = request_for("GET", std::string(kTokensPath));
  if (user) request.query["user"] = *user;
  MUSTER_TRY(const http::Response response, call(request));
  return tokens_from_json(response.body);
}

Result<NewToken> Client::create_token(const TokenRequest& request) {
  MUSTER_TRY(const http::Response response,
             with_file_names<TokenRequest>(call(
                 request_for("POST", std::string(kTokensPath), token_request_to_json(request)))));
  return new_token_from_json(response.body);
}

Result<void> Client::revoke_token(const std::string& id) {
  MUSTER_CHECK(check_segment(id, "token", "list your tokens: muster token list"));
  MUSTER_CHECK(call(request_for("DELETE", path_of(kTokensPath, id, {}))));
  return {};
}

Result<std::map<std::string, access::Role>> Client::members(const std::string& project) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", below_project(project, kMembers))));
  return members_from_json(response.body);
}

Result<void> Client::set_member(const std::string& project, const std::string& user,
                                access::Role role) {
  MUSTER_CHECK(check_member(project, user));
  MUSTER_CHECK(
      call(request_for("PUT", below_project(project, kMembers, user), role_to_json(role))));
  return {};
}

Result<void> Client::remove_member(const std::string& project, const std::string& user) {
  MUSTER_CHECK(check_member(project, user));
  MUSTER_CHECK(call(request_for("DELETE", below_project(project, kMembers, user))));
  return {};
}

Result<std::vector<access::Secret>> Client::secrets(const std::string& project) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", below_project(project, kSecrets))));
  return secrets_from_json(response.body);
}

Result<access::Secret> Client::set_secret(const std::string& project, const std::string& name,
                                          std::string_view value) {
  MUSTER_CHECK(check_secret(project, name));
  MUSTER_TRY(const http::Response response,
             call(request_for("PUT", below_project(project, kSecrets, name),
                              secret_value_to_json(value))));
  return secret_from_json(response.body);
}

Result<void> Client::remove_secret(const std::string& project, const std::string& name) {
  MUSTER_CHECK(check_secret(project, name));
  MUSTER_CHECK(call(request_for("DELETE", below_project(project, kSecrets, name))));
  return {};
}

Result<std::vector<access::AuditRecord>> Client::audit(const access::AuditQuery& query) {
  http::Request request = request_for("GET", std::string(kAuditPath));
  request.query = audit_query_parameters(query);
  MUSTER_TRY(const http::Response response, call(request));
  return audit_from_json(response.body);
}

// The client's requests on notifications.

namespace {

constexpr std::string_view kNotifications = "notifications";
constexpr std::string_view kDeadLetters = "dead-letters";

Result<std::string> subscription_path(const std::string& project, const std::string& id,
                                      std::string_view action) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_CHECK(check_segment(id, "subscription", "list the subscriptions: muster notify list"));
  std::string path = below_project(project, kNotifications, id);
  if (!action.empty()) path += "/" + std::string(action);
  return path;
}

}  // namespace

Result<std::vector<job::Subscription>> Client::subscriptions(const std::string& project) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", below_project(project, kNotifications))));
  return subscriptions_from_json(response.body);
}

Result<KeyedSubscription> Client::subscribe(const std::string& project,
                                            const SubscriptionRequest& request) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_TRY(const http::Response response,
             call(request_for("POST", below_project(project, kNotifications),
                              subscription_request_to_json(request))));
  return keyed_subscription_from_json(response.body);
}

Result<void> Client::unsubscribe(const std::string& project, const std::string& id) {
  MUSTER_TRY(const std::string path, subscription_path(project, id, {}));
  MUSTER_CHECK(call(request_for("DELETE", path)));
  return {};
}

Result<KeyedSubscription> Client::rotate_subscription(const std::string& project,
                                                      const std::string& id) {
  MUSTER_TRY(const std::string path, subscription_path(project, id, "rotate"));
  MUSTER_TRY(const http::Response response, call(request_for("POST", path)));
  return keyed_subscription_from_json(response.body);
}

Result<PingResult> Client::ping_subscription(const std::string& project, const std::string& id) {
  MUSTER_TRY(const std::string path, subscription_path(project, id, "test"));
  MUSTER_TRY(const http::Response response, call(request_for("POST", path)));
  return ping_result_from_json(response.body);
}

Result<std::vector<job::Delivery>> Client::dead_letters(const std::string& project) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_TRY(const http::Response response,
             call(request_for("GET", below_project(project, kDeadLetters))));
  return dead_letters_from_json(response.body);
}

Result<int> Client::retry_dead_letters(const std::string& project,
                                       const std::vector<std::string>& ids) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_TRY(const http::Response response,
             call(request_for("POST", below_project(project, kDeadLetters, "retry"),
                              retry_ids_to_json(ids))));
  return retried_from_json(response.body);
}

}  // namespace muster::api
