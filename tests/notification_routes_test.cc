// The routes of a project's notifications: admins of the project manage them, and other members see
// neither the whole URL nor the key.
#include <gtest/gtest.h>

#include "api/notification_wire.h"
#include "team_server.h"

namespace muster::server {
namespace {

using access::Role;

constexpr const char* kNotifications = "/v1/projects/lab/notifications";

class NotificationRoutes : public testing::Test {
 protected:
  NotificationRoutes() {
    team_.add_project("lab", "", 1);
    for (const auto& [user, role] :
         {std::pair("eve", Role::kViewer), {"bob", Role::kMember}, {"ada", Role::kAdmin}}) {
      team_.add_user(user, {{"lab", role}});
      tokens_[user] = team_.token({.user = user, .kind = access::TokenKind::kSession});
    }
  }

  http::Response ask(const std::string& user, const std::string& method, const std::string& path,
                     const std::string& body = {}) {
    return team_.ask({.method = method, .path = path, .body = body, .token = tokens_.at(user)});
  }

  api::KeyedSubscription subscribe() {
    const http::Response answer =
        ask("ada", "POST", kNotifications,
            api::subscription_request_to_json({.url = "https://hooks.example.com:443/confidential",
                                               .on = {job::Happening::kFailed}}));
    EXPECT_EQ(answer.status, 201) << answer.body;
    const auto keyed = api::keyed_subscription_from_json(answer.body);
    EXPECT_TRUE(keyed);
    return keyed ? *keyed : api::KeyedSubscription();
  }

  TeamServer team_;
  std::map<std::string, std::string> tokens_;
};

TEST_F(NotificationRoutes, ShowTheWholeUrlToAdminsAlone) {
  const api::KeyedSubscription keyed = subscribe();

  EXPECT_NE(ask("ada", "GET", kNotifications).body.find("confidential"), std::string::npos);
  for (const char* user : {"eve", "bob"}) {
    const http::Response answer = ask(user, "GET", kNotifications);
    EXPECT_EQ(answer.status, 200);
    EXPECT_EQ(answer.body.find("confidential"), std::string::npos) << answer.body;
    EXPECT_NE(answer.body.find("https://hooks.example.com:443\""), std::string::npos);
  }
}

TEST_F(NotificationRoutes, ShowAKeyOnlyInTheAnswerToItsCreation) {
  const api::KeyedSubscription keyed = subscribe();
  const std::string one = std::string(kNotifications) + "/" + keyed.subscription.id;

  EXPECT_EQ(ask("ada", "GET", kNotifications).body.find(keyed.key), std::string::npos);
  const auto rotated = api::keyed_subscription_from_json(ask("ada", "POST", one + "/rotate").body);
  ASSERT_TRUE(rotated);
  EXPECT_NE(rotated->key, keyed.key);
  const auto ping = api::ping_result_from_json(ask("ada", "POST", one + "/test").body);
  ASSERT_TRUE(ping);
  EXPECT_TRUE(ping->arrived);
  EXPECT_EQ(ping->status, 204);
}

TEST_F(NotificationRoutes, ReportEveryFaultOfASubscription) {
  const http::Response answer =
      ask("ada", "POST", kNotifications, R"({"url": "ftp://h", "on": [], "job": "A b"})");

  EXPECT_EQ(answer.status, 400);
  for (const char* field : {"\"url\"", "\"on\"", "\"job\""}) {
    EXPECT_NE(answer.body.find(field), std::string::npos) << answer.body;
  }
}

TEST_F(NotificationRoutes, FindASubscriptionOnlyInItsOwnProject) {
  const api::KeyedSubscription keyed = subscribe();
  team_.add_project("other", "", 1);
  access::User ada = *team_.accounts().user("ada");
  ada.projects["other"] = Role::kAdmin;
  ASSERT_TRUE(team_.accounts().set_user(ada, {}));

  const std::string there = "/v1/projects/other/notifications/" + keyed.subscription.id;
  EXPECT_EQ(ask("ada", "DELETE", there).status, 404);
  EXPECT_EQ(ask("ada", "POST", there + "/rotate").status, 404);
  EXPECT_EQ(ask("ada", "POST", there + "/test").status, 404);
  EXPECT_EQ(ask("ada", "GET", "/v1/projects/other/notifications").body, R"({"subscriptions":[]})");
}

}  // namespace
}  // namespace muster::server
