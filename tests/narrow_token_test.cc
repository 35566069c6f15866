// A token cannot be used to create a token with more rights, or with a longer lifetime, than its own.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "api/account_wire.h"
#include "velvet_team.h"

namespace muster::server {
namespace {

using access::Role;
using access::TokenKind;

class NarrowToken : public testing::Test {
 protected:
  http::Response request(const std::string& token, const api::TokenRequest& request,
                         const std::string& path = "/v1/tokens") {
    return team_.ask({.method = "POST",
                      .path = path,
                      .body = api::token_request_to_json(request),
                      .token = token});
  }

  access::Token made(const http::Response& answer) {
    const auto token = api::new_token_from_json(answer.body);
    EXPECT_TRUE(token) << answer.body;
    return token ? token->token : access::Token{};
  }

  Team team_;
};

TEST_F(NarrowToken, CreatesOnlyTokensThatAreAsNarrow) {
  const std::string narrow =
      team_.token({.user = "jasper", .ceiling = Role::kMember, .projects = {"velvet"}});

  const access::Token child = made(request(narrow, {.ceiling = Role::kAdmin}));

  EXPECT_EQ(child.ceiling, Role::kMember);
  EXPECT_EQ(child.projects, std::vector<std::string>{"velvet"});
  EXPECT_EQ(request(narrow, {.projects = {"green"}}).status, 404);
  EXPECT_EQ(request(narrow, {.user = "rudi"}).status, 403);
}

TEST_F(NarrowToken, CreatesASessionThatIsAsNarrow) {
  const std::string narrow =
      team_.token({.user = "rudi", .ceiling = Role::kViewer, .projects = {"velvet"}});

  const access::Token session = made(request(narrow, {.ceiling = Role::kAdmin}, "/v1/login"));

  EXPECT_EQ(session.kind, TokenKind::kApi);
  EXPECT_EQ(session.ceiling, Role::kViewer);
  EXPECT_EQ(session.projects, std::vector<std::string>{"velvet"});
}

TEST_F(NarrowToken, CreatesNoTokenThatOutlivesIt) {
  const std::string shortlived =
      team_.token({.user = "sam", .lifetime = std::chrono::seconds(3600)});
  const base::Time end = team_.clock().now() + std::chrono::seconds(3600);

  EXPECT_LE(*made(request(shortlived, {})).expires, end);
  EXPECT_LE(*made(request(shortlived, {.lifetime = std::chrono::hours(9999)})).expires, end);
  const http::Response login = request(shortlived, {}, "/v1/login");
  EXPECT_LE(*made(login).expires, end);
  const std::string session = api::new_token_from_json(login.body)->text;
  const access::Token grandchild = made(request(session, {}));
  ASSERT_TRUE(grandchild.expires) << "a token that was created through a login never expires";
  EXPECT_LE(*grandchild.expires, end);
}

TEST_F(NarrowToken, ListsAndRevokesOnlyItself) {
  const std::string narrow = team_.token({.user = "jasper", .projects = {"green"}});
  const auto id = access::parse_token(narrow)->id;

  const auto seen = api::tokens_from_json(team_.ask({.path = "/v1/tokens", .token = narrow}).body);

  ASSERT_TRUE(seen);
  ASSERT_EQ(seen->size(), 1U);
  EXPECT_EQ(seen->front().id, id);
  const auto other = access::parse_token(team_.token_of("admin"))->id;
  EXPECT_EQ(team_.ask({.method = "DELETE", .path = "/v1/tokens/" + other, .token = narrow}).status,
            404);
  EXPECT_EQ(team_.ask({.method = "DELETE", .path = "/v1/tokens/" + id, .token = narrow}).status,
            204);
  EXPECT_EQ(team_.ask({.path = "/v1/whoami", .token = narrow}).status, 401);
}

TEST_F(NarrowToken, AnInvitationIsGoodForOneLogin) {
  const std::string& invitation = team_.token_of("invited");

  const http::Response first = request(invitation, {}, "/v1/login");
  ASSERT_EQ(first.status, 201);
  const std::string session = api::new_token_from_json(first.body)->text;

  EXPECT_EQ(request(invitation, {}, "/v1/login").status, 401);
  EXPECT_EQ(team_.ask({.path = "/v1/users", .token = session}).status, 200);
}

}  // namespace
}  // namespace muster::server
