// The client's requests on notifications.

#include "api/client.h"
#include "api/requests.h"
#include "api/routes.h"

namespace muster::api {

namespace {

constexpr std::string_view kNotifications = "notifications";
constexpr std::string_view kDeadLetters = "dead-letters";

Result<std::string> subscription_path(const std::string& project, const std::string& id,
                                      std::string_view action) {
  MUSTER_CHECK(check_project_name(project));
  MUSTER_CHECK(check_segment(id, "subscription", "see their ids: muster notify list"));
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
