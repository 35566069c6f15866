#include "server/router.h"

#include <gtest/gtest.h>

namespace muster::server {
namespace {

/// The status that a request is answered with, and the {name} its handler saw.
struct Answer {
  int status = 0;
  std::string name;
};

Answer ask(const std::string& method, const std::string& path) {
  Answer answer;
  Router router;
  router.add("GET", "/v1/jobs",
             [](const http::Request&, const PathValues&, const http::Respond& respond) {
               respond({.status = 200});
             });
  router.add(
      "DELETE", "/v1/jobs/{name}",
      [&](const http::Request&, const PathValues& path_values, const http::Respond& respond) {
        answer.name = path_values.at("name");
        respond({.status = 204});
      });
  router.handle({.method = method, .path = path},
                [&](const http::Response& response) { answer.status = response.status; });
  return answer;
}

TEST(Router, FindsTheHandlerByMethodAndPath) {
  EXPECT_EQ(ask("GET", "/v1/jobs").status, 200);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/dist").status, 204);
  EXPECT_EQ(ask("DELETE", "/v1/jobs/dist").name, "dist");
}

TEST(Router, TellsAnUnknownPathFromAWrongMethod) {
  EXPECT_EQ(ask("GET", "/v2/jobs").status, 404);
  EXPECT_EQ(ask("GET", "/v1/jobs/a/b").status, 404);
  EXPECT_EQ(ask("PUT", "/v1/jobs").status, 405);
}

}  // namespace
}  // namespace muster::server
