// The API's document and the server have the same routes, and agree on the routes that require no
// token.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "access/secret_box.h"
#include "api/openapi.h"
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

OpenRoutes routes_of_server() {
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
  OpenRoutes routes;
  for (const Router::RouteName& route : app.router().routes()) {
    routes[route.method + " " + route.path] = route.permission == Permission::kAnybody;
  }
  return routes;
}

TEST(OpenApiDocument, HasTheRoutesOfTheServerAndNoOthers) {
  EXPECT_EQ(routes_of_document(), routes_of_server());
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
