// The API's document and the server have the same routes, and agree on the routes that require no
// token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "access/secret_box.h"
#include "api/openapi.h"
#include "api/routes.h"
#include "base/fake_random.h"
#include "control/accounts.h"
#include "control/controller.h"
#include "engine/fake_engine.h"
#include "notify/notifications.h"
#include "server/app.h"
#include "store/memory_store.h"
#include "workspace/tree_store.h"

namespace muster::server {
namespace {

using Json = nlohmann::json;

/// A route such as "GET /v1/jobs/{name}" -> whether it is open to callers without a token.
using OpenRoutes = std::map<std::string, bool>;

std::string in_capitals(std::string word) {
  std::transform(word.begin(), word.end(), word.begin(),
                 [](unsigned char letter) { return std::toupper(letter); });
  return word;
}

Json document() {
  return Json::parse(api::openapi_document());
}

OpenRoutes routes_of_document() {
  OpenRoutes routes;
  const Json whole = document();  // items() is a view
  for (const auto& [path, methods] : whole["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      const bool anybody = operation.contains("security") && operation["security"].empty();
      routes[in_capitals(method) + " " + path] = anybody;
    }
  }
  return routes;
}

/// Calls `look` with a server's router.
void with_router(const std::function<void(const Router& router)>& look) {
  base::EventLoop loop;
  store::MemoryStore store;
  engine::FakeEngine engine(loop);
  base::FakeClock clock;
  base::FakeRandom random;
  workspace::TreeStore trees("/nowhere");
  const access::SecretBox box(access::SecretBox::Key{});
  control::Accounts accounts(
      {.loop = loop, .store = store, .clock = clock, .random = random, .box = box});
  control::Controller controller(
      {.loop = loop, .store = store, .engine = engine, .clock = clock, .random = random}, {});
  notify::Notifications notifications({.loop = loop, .clock = clock, .random = random, .box = box});
  const App app({.loop = loop,
                 .controller = controller,
                 .accounts = accounts,
                 .clock = clock,
                 .random = random,
                 .owner = "ada",
                 .trees = trees,
                 .notifications = notifications},
                {}, [] {});
  look(app.router());
}

OpenRoutes routes_of_server() {
  OpenRoutes routes;
  with_router([&](const Router& router) {
    for (const Router::RouteName& route : router.routes()) {
      routes[route.method + " " + route.path] = route.permission == Permission::kAnybody;
    }
  });
  return routes;
}

/// The fault of `field` in the answer to a request with a query; empty if there is none.
std::string fault_in_answer(const Router& router, const Router::RouteName& route,
                            const http::Query& query, const std::string& field) {
  std::string path = route.path;
  for (size_t at = path.find('{'); at != std::string::npos; at = path.find('{')) {
    path.replace(at, path.find('}') + 1 - at, "x");
  }
  std::string fault;
  router.handle({.request = {.method = route.method, .path = path, .query = query},
                 .who = access::local_identity("ada"),
                 .id = "r1"},
                [&](const http::Response& response) {
                  const Json problem = Json::parse(response.body, nullptr, false);
                  if (response.status != 400 || !problem.contains("faults")) return;
                  for (const Json& each : problem["faults"]) {
                    if (each["field"] == field) fault = each["what"].get<std::string>();
                  }
                });
  return fault;
}

TEST(OpenApiDocument, HasTheRoutesOfTheServerAndNoOthers) {
  EXPECT_EQ(routes_of_document(), routes_of_server());
}

TEST(OpenApiDocument, DeclaresAllParametersThatTheServerAccepts) {
  with_router([](const Router& router) {
    for (const Router::RouteName& route : router.routes()) {
      const bool is_for_monitors = route.path == api::kHealthPath ||
                                   route.path == api::kReadyPath || route.path == api::kMetricsPath;
      if (is_for_monitors) continue;
      EXPECT_EQ(fault_in_answer(router, route, {{"qqqqqqqqqqqq", "1"}}, "qqqqqqqqqqqq"),
                "is not a parameter")
          << route.method << " " << route.path;
    }
  });
}

TEST(OpenApiDocument, DeclaresTheParametersThatMayBeRepeated) {
  const Json whole = document();
  size_t checked = 0;
  with_router([&](const Router& router) {
    for (const Router::RouteName& route : router.routes()) {
      std::string method = route.method;
      for (char& letter : method) letter = static_cast<char>(std::tolower(letter));
      for (Json each : whole["paths"][route.path][method].value("parameters", Json::array())) {
        if (each.contains("$ref")) {
          each = whole[Json::json_pointer(each["$ref"].get<std::string>().substr(1))];
        }
        if (each["in"] != "query" || each["schema"].value("type", "") == "array") continue;
        const std::string name = each["name"];
        // The undeclared parameter keeps the request from taking effect.
        http::Query query{{"qqqqqqqqqqqq", "1"}};
        query.add(name, "1");
        query.add(name, "2");
        EXPECT_EQ(fault_in_answer(router, route, query, name), "is given 2 times; give it once")
            << route.method << " " << route.path;
        ++checked;
      }
    }
  });
  EXPECT_GT(checked, 50U);
}

TEST(OpenApiDocument, NamesEachOperationOnce) {
  std::set<std::string> names;
  const Json whole = document();
  for (const auto& [path, methods] : whole["paths"].items()) {
    for (const auto& [method, operation] : methods.items()) {
      EXPECT_TRUE(names.insert(operation["operationId"]).second) << path << " " << method;
    }
  }
  EXPECT_EQ(names.size(), routes_of_server().size());
}

TEST(OpenApiDocument, ContainsTheTargetOfEachReference) {
  const Json whole = document();
  const Json flat = whole.flatten();
  for (const auto& [pointer, value] : flat.items()) {
    if (!pointer.ends_with("/$ref")) continue;
    const std::string target = value.get<std::string>().substr(1);
    EXPECT_TRUE(whole.contains(Json::json_pointer(target))) << pointer << ": " << target;
  }
}

}  // namespace
}  // namespace muster::server
