#include "service/standby.h"

#include <gtest/gtest.h>

namespace muster::service {
namespace {

struct Asked {
  http::Response answer;
  bool left = false;
};

Asked asked(const http::Request& request, const std::optional<std::string>& leader = {}) {
  Asked result;
  bool answered = false;
  const http::Handler handler = standby_handler({.version = "1",
                                                 .state_folder = "/state",
                                                 .leader = [&] { return leader; },
                                                 .leave = [&] { result.left = true; }});
  handler(request, [&](http::Response response) {
    result.answer = std::move(response);
    answered = true;
  });
  EXPECT_TRUE(answered);
  return result;
}

TEST(Standby, LivesButIsNotReady) {
  EXPECT_EQ(asked({.path = "/healthz"}).answer.status, 200);
  EXPECT_EQ(asked({.path = "/readyz"}).answer.status, 503);
}

TEST(Standby, SaysWhoLeads) {
  for (const char* path : {"/readyz", "/v1/jobs", "/metrics", "/anything"}) {
    const http::Response answer = asked({.path = path}, "muster-1:7443").answer;
    EXPECT_EQ(answer.status, 503) << path;
    EXPECT_EQ(answer.content_type, "application/problem+json");
    EXPECT_EQ(answer.headers.at("retry-after"), "1");
    EXPECT_NE(answer.body.find("this server waits; muster-1:7443 leads"), std::string::npos)
        << answer.body;
  }
}

TEST(Standby, SaysThatNobodyLeads) {
  EXPECT_NE(asked({.path = "/v1/jobs"}).answer.body.find("none leads"), std::string::npos);
}

TEST(Standby, IsToldToLeaveByItsOwnerAlone) {
  const http::Request strange{.method = "POST", .path = "/v1/shutdown"};
  EXPECT_FALSE(asked(strange).left);
  http::Request own = strange;
  own.peer.user = 0;
  const Asked told = asked(own);
  EXPECT_TRUE(told.left);
  EXPECT_EQ(told.answer.status, 202);
}

TEST(Standby, SaysWhoItIsToItsOwnerAlone) {
  http::Request request{.path = "/v1/info"};
  EXPECT_EQ(asked(request).answer.status, 503);
  request.peer.user = 0;
  const http::Response answer = asked(request).answer;
  EXPECT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find("/state"), std::string::npos);
}

}  // namespace
}  // namespace muster::service
