#include "server/router.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>

namespace muster::server {
namespace {

using access::Identity;
using access::Role;
using access::TokenKind;

/// The status of an answer, and the {name} that its handler got.
struct GivenAnswer {
  int status = 0;
  std::string name;
  std::string body;
};

GivenAnswer ask(const std::string& method, const std::string& path,
                const Identity& who = access::local_identity("ada"),
                const http::Query& query = {}) {
  GivenAnswer answer;
  Router router;
  const auto ok = [&](const ApiCall& call, const http::Respond& respond) {
    if (call.path.contains("name")) answer.name = call.path.at("name");
    respond({.status = 200});
  };
  router.add("GET", "/healthz", Permission::kAnybody, ok);
  router.add("POST", "/v1/login", Permission::kInvited, ok);
  router.add("GET", "/v1/jobs", Permission::kSignedIn, ok);
  router.add("DELETE", "/v1/jobs/{name}", Permission::kSignedIn, ok);
  router.add("GET", "/v1/users", Permission::kServerViewer, ok);
  router.add("POST", "/v1/users", Permission::kServerAdmin, ok);
  router.handle({.request = {.method = method, .path = path, .query = query}, .who = who},
                [&](const http::Response& response) {
                  answer.status = response.status;
                  answer.body = response.body;
                });
  return answer;
}

TEST(Router, FindsTheHandlerByMethodAndPath) {
  EXPECT_EQ(ask("GET", "/v1/jobs").status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/dist").status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/dist").name, "dist");
}

TEST(Router, DistinguishesAnUnknownPathFromAWrongMethod) {
  EXPECT_EQ(ask("GET", "/v2/jobs").status, 404);
  EXPECT_EQ(ask("GET", "/v1/jobs/a/b").status, 404);
  EXPECT_EQ(ask("PUT", "/v1/jobs").status, 405);
}

TEST(Router, AdmitsEachCallerToTheRoutesOfItsRole) {
  const Identity anonymous;
  const Identity member{.user = "mia", .projects = {{"p", Role::kMember}}};
  const Identity viewer{.user = "vic", .server_role = Role::kViewer};
  const Identity admin{.user = "ann", .server_role = Role::kAdmin};
  Identity reading_admin = admin;
  reading_admin.ceiling = Role::kViewer;
  Identity invited = admin;
  invited.token_kind = TokenKind::kInvitation;
  struct Case {
    const char* method;
    const char* path;
    Identity who;
    int status;
  };
  for (const Case& each :
       {Case{"GET", "/healthz", anonymous, 200}, Case{"POST", "/v1/login", invited, 200},
        Case{"GET", "/v1/jobs", invited, 403}, Case{"POST", "/v1/users", invited, 403},
        Case{"GET", "/v1/jobs", member, 200}, Case{"GET", "/v1/users", member, 403},
        Case{"GET", "/v1/users", viewer, 200}, Case{"POST", "/v1/users", viewer, 403},
        Case{"POST", "/v1/users", admin, 200}, Case{"GET", "/v1/users", reading_admin, 200},
        Case{"POST", "/v1/users", reading_admin, 403}}) {
    EXPECT_EQ(ask(each.method, each.path, each.who).status, each.status)
        << each.method << " " << each.path << " " << each.who.user;
  }
}

TEST(Router, RefusesUnknownAndRepeatedParametersAtOnce) {
  const Identity ada = access::local_identity("ada");

  const GivenAnswer refused =
      ask("DELETE", "/v1/jobs/dist", ada, {{"projct", "a"}, {"project", "a"}, {"project", "b"}});

  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(refused.name, "") << "the handler was called";
  EXPECT_NE(refused.body.find("is not a parameter; did you mean 'project'?"), std::string::npos)
      << refused.body;
  EXPECT_NE(refused.body.find("is given 2 times; give it once"), std::string::npos) << refused.body;
  EXPECT_EQ(ask("DELETE", "/v1/jobs/dist", ada, {{"project", "a"}}).status, 200);
  EXPECT_EQ(ask("GET", "/v1/jobs", ada, {{"label", "a"}, {"label", "b"}}).status, 200);
}

TEST(Router, NamesTheMissingRole) {
  const GivenAnswer refused =
      ask("POST", "/v1/users", {.user = "vic", .server_role = Role::kViewer});

  EXPECT_NE(refused.body.find("requires the server role 'admin'"), std::string::npos)
      << refused.body;
}

TEST(Router, ListsItsRoutesWithTheirPermissions) {
  Router router;
  router.add("GET", "/v1/jobs/{name}", Permission::kSignedIn, nullptr);

  const auto routes = router.routes();

  ASSERT_EQ(routes.size(), 1U);
  EXPECT_EQ(routes[0].method, "GET");
  EXPECT_EQ(routes[0].path, "/v1/jobs/{name}");
  EXPECT_EQ(routes[0].permission, Permission::kSignedIn);
}

}  // namespace
}  // namespace muster::server
