#include "engine/kubernetes/api_client.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "base/test_loop.h"
#include "engine/kubernetes/api_paths.h"
#include "engine/kubernetes/test_fake_api_server.h"

namespace muster::engine::kubernetes {
namespace {

using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;

TEST(ApiPaths, AreThoseOfTheApi) {
  EXPECT_EQ(target_of(kPods, "lab", "x", {{"follow", "true"}}, "log"),
            "/api/v1/namespaces/lab/pods/x/log?follow=true");
  EXPECT_EQ(target_of(kPods, "", ""), "/api/v1/pods");
  EXPECT_EQ(target_of(kNodes, "ignored", "n1"), "/api/v1/nodes/n1");
  EXPECT_EQ(target_of(kNetworkPolicies, "lab", ""),
            "/apis/networking.k8s.io/v1/namespaces/lab/networkpolicies");
  EXPECT_EQ(target_of(kPods, "lab", "", {{"labelSelector", "a/b=c,d"}}),
            "/api/v1/namespaces/lab/pods?labelSelector=a%2Fb%3Dc%2Cd");
}

class ApiClientTest : public testing::Test, protected base::TestLoop {
 protected:
  ApiClientTest() { make_client({}); }

  void make_client(ApiOptions options) {
    if (options.first_pause == ApiOptions().first_pause) options.first_pause = milliseconds(1);
    auto access = std::make_unique<FakeAccess>(server_.socket());
    access_ = access.get();
    client_ = std::make_unique<ApiClient>(loop(), std::move(access), std::move(options));
  }

  template <class Value, class Ask>
  Result<Value> ask(Ask ask) {
    Call call;
    return answer<Value>([&](auto then) { call = ask(then); });
  }
  Result<Json> get_pod(const std::string& name = "x") {
    return ask<Json>([&](auto then) { return client_->get({kPods, "lab", name}, then); });
  }

  static http::Response json(const std::string& text) { return {.body = text}; }

  FakeApiServer server_;
  FakeAccess* access_ = nullptr;
  std::unique_ptr<ApiClient> client_;
};

const std::string kGetPod = "GET /api/v1/namespaces/lab/pods/x";
const std::string kCreatePod = "POST /api/v1/namespaces/lab/pods";

TEST_F(ApiClientTest, GetsAnObject) {
  make_client({.version = "1.2"});
  server_.on(kGetPod, json(R"({"metadata":{"name":"x"}})"));

  const auto pod = get_pod();

  ASSERT_TRUE(pod) << pod.error().to_string();
  EXPECT_EQ((*pod)["metadata"]["name"], "x");
  const auto headers = server_.asked().front().headers;
  EXPECT_EQ(headers.at("authorization"), "Bearer old");
  EXPECT_EQ(headers.at("user-agent"), "muster/1.2");
  EXPECT_EQ(headers.at("accept"), "application/json");
  EXPECT_EQ(client_->counts().at({"get", "pods"}), 1U);
}

TEST_F(ApiClientTest, OneConnectionServesManyRequests) {
  server_.on(kGetPod, json("{}"));
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(get_pod());
  EXPECT_EQ(server_.connections(), 1U);
}

TEST_F(ApiClientTest, AnObjectThatDoesNotExistIsNamed) {
  server_.on(kGetPod, FakeApiServer::refusal(404, "NotFound", "pods x not found"));
  const auto pod = get_pod();
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kNotFound);
  EXPECT_EQ(pod.error().what,
            "cannot get pods 'x' in namespace 'lab': the API server at https://fake:6443 "
            "answered: pods x not found");
}

TEST_F(ApiClientTest, AnAnswerThatIsNotJsonIsAnError) {
  server_.on(kGetPod, json("<html>"));
  EXPECT_EQ(get_pod().error().code, ErrorCode::kInternal);
  server_.on(kGetPod, json("[]"));
  EXPECT_EQ(get_pod().error().code, ErrorCode::kInternal);
}

TEST_F(ApiClientTest, ABusyServerIsAskedAgainAfterItsDelay) {
  const auto busy = [](const http::Request&) {
    return FakeApiServer::refusal(429, "TooManyRequests", "busy", {{"retry-after", "1"}});
  };
  server_.on(kCreatePod, {busy, [](const http::Request&) { return json(R"({"a":1})"); }});
  const auto begun = std::chrono::steady_clock::now();

  const auto created =
      ask<Json>([&](auto then) { return client_->create(kPods, "lab", Json::object(), then); });

  ASSERT_TRUE(created) << created.error().to_string();
  EXPECT_GE(std::chrono::steady_clock::now() - begun, milliseconds(1000));
  EXPECT_EQ(client_->counts().at({"create", "pods"}), 2U);
}

TEST_F(ApiClientTest, PatienceEnds) {
  make_client({.patience = milliseconds(500)});
  server_.on(kGetPod,
             FakeApiServer::refusal(429, "TooManyRequests", "busy", {{"retry-after", "60"}}));
  const auto pod = get_pod();
  ASSERT_FALSE(pod);
  EXPECT_EQ(pod.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(refusal_of(pod.error())->retry_after, std::chrono::seconds(60));
}

TEST_F(ApiClientTest, ARequestWhoseAnswerIsLostIsRepeatedIfThatIsSafe) {
  const auto lost = [this](const http::Request&) {
    const auto body = server_.watch();
    body->cut();
    return body->cuttable();
  };
  server_.on(kGetPod, {lost, [](const http::Request&) { return json("{}"); }});
  EXPECT_TRUE(get_pod());

  server_.on(kCreatePod, lost);
  const auto created =
      ask<Json>([&](auto then) { return client_->create(kPods, "lab", Json::object(), then); });
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(server_.count(kCreatePod), 1U);
}

TEST_F(ApiClientTest, AnUnreachableServerIsUnavailable) {
  auto access = std::make_unique<FakeAccess>("/no/such/socket");
  ApiClient client(loop(), std::move(access),
                   {.patience = milliseconds(20), .first_pause = milliseconds(1)});
  const auto created =
      ask<Json>([&](auto then) { return client.create(kPods, "lab", Json::object(), then); });
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::kUnavailable);
  EXPECT_GT(client.counts().at({"create", "pods"}), 1U) << "a request that was not sent is safe";
}

TEST_F(ApiClientTest, NewCredentialsFollowARejection) {
  access_->renewed = "new";
  server_.on(kGetPod, [](const http::Request& request) {
    return request.headers.at("authorization") == "Bearer new"
               ? json("{}")
               : FakeApiServer::refusal(401, "Unauthorized", "Unauthorized");
  });
  EXPECT_TRUE(get_pod());
  EXPECT_EQ(access_->rejected, 1);
}

TEST_F(ApiClientTest, ARejectionIsNotRepeatedForEver) {
  access_->renewed = "new";
  server_.on(kGetPod, FakeApiServer::refusal(401, "Unauthorized", "Unauthorized"));
  EXPECT_EQ(get_pod().error().code, ErrorCode::kRefused);
  EXPECT_EQ(server_.count(kGetPod), 2U);
}

TEST_F(ApiClientTest, ListsPageByPage) {
  make_client({.page = 2});
  server_.on("GET /api/v1/namespaces/lab/pods",
             {[](const http::Request& request) {
                EXPECT_EQ(request.query.at("limit"), "2");
                EXPECT_EQ(request.query.at("labelSelector"), "a=b");
                return json(R"({"metadata":{"resourceVersion":"7","continue":"c1"},
                                "items":[{"n":1},{"n":2}]})");
              },
              [](const http::Request& request) {
                EXPECT_EQ(request.query.at("continue"), "c1");
                return json(R"({"metadata":{"resourceVersion":"7"},"items":[{"n":3}]})");
              }});

  const auto pods = ask<ApiClient::Listed>([&](auto then) {
    return client_->list({.resource = kPods, .space = "lab", .labels = "a=b"}, then);
  });

  ASSERT_TRUE(pods) << pods.error().to_string();
  ASSERT_EQ(pods->objects.size(), 3U);
  EXPECT_EQ(pods->objects[2]["n"], 3);
  EXPECT_EQ(pods->resource_version, "7");
}

TEST_F(ApiClientTest, AListWhosePagesExpireBeginsAgain) {
  server_.on("GET /api/v1/pods",
             {[](const http::Request&) {
                return json(R"({"metadata":{"resourceVersion":"7","continue":"c1"},
                                "items":[{"n":1}]})");
              },
              [](const http::Request&) {
                return FakeApiServer::refusal(410, "Expired", "the continue token expired");
              },
              [](const http::Request& request) {
                EXPECT_FALSE(request.query.contains("continue"));
                return json(R"({"metadata":{"resourceVersion":"9"},"items":[{"n":2}]})");
              }});

  const auto pods =
      ask<ApiClient::Listed>([&](auto then) { return client_->list({.resource = kPods}, then); });

  ASSERT_TRUE(pods) << pods.error().to_string();
  ASSERT_EQ(pods->objects.size(), 1U);
  EXPECT_EQ(pods->objects[0]["n"], 2);
  EXPECT_EQ(pods->resource_version, "9");
}

TEST_F(ApiClientTest, AppliesOnTheServersSide) {
  server_.on("PATCH /api/v1/namespaces/lab/services/s", [](const http::Request& request) {
    EXPECT_EQ(request.query.at("fieldManager"), "muster");
    EXPECT_EQ(request.query.at("force"), "true");
    EXPECT_EQ(request.headers.at("content-type"), "application/apply-patch+yaml");
    return json(request.body);
  });
  const auto applied = ask<Json>([&](auto then) {
    return client_->apply({kServices, "lab", "s"}, Json{{"kind", "Service"}}, {}, then);
  });
  ASSERT_TRUE(applied);
  EXPECT_EQ((*applied)["kind"], "Service");
}

TEST_F(ApiClientTest, DeletesWithConditions) {
  const std::string what = "DELETE /api/v1/namespaces/lab/pods/x";
  server_.on(what, [](const http::Request& request) {
    const Json body = Json::parse(request.body);
    EXPECT_EQ(body["preconditions"]["uid"], "u1");
    EXPECT_EQ(body["gracePeriodSeconds"], 3);
    EXPECT_EQ(body["propagationPolicy"], "Background");
    return json("{}");
  });
  const DeleteOptions options{
      .uid = "u1", .grace = std::chrono::seconds(3), .propagation = "Background"};
  const auto remove = [&] {
    return ask<void>(
        [&](auto then) { return client_->remove({kPods, "lab", "x"}, options, then); });
  };
  EXPECT_TRUE(remove());
  server_.on(what, FakeApiServer::refusal(404, "NotFound", "gone"));
  EXPECT_TRUE(remove());
  server_.on(what, FakeApiServer::refusal(409, "Conflict", "the UID in the precondition differs"));
  EXPECT_EQ(remove().error().code, ErrorCode::kConflict);
}

TEST_F(ApiClientTest, BindsAndEvicts) {
  server_.on("POST /api/v1/namespaces/lab/pods/x/binding", [](const http::Request& request) {
    EXPECT_EQ(Json::parse(request.body)["target"]["name"], "n1");
    return json("{}");
  });
  EXPECT_TRUE(ask<void>([&](auto then) { return client_->bind("lab", "x", "u1", "n1", then); }));
  server_.on("POST /api/v1/namespaces/lab/pods/x/eviction",
             http::Response{.status = 429, .body = R"({"kind":"Status","code":429,
               "message":"would violate the budget","reason":"TooManyRequests",
               "details":{"causes":[{"reason":"DisruptionBudget"}]}})"});
  const auto evicted = ask<void>([&](auto then) { return client_->evict("lab", "x", {}, then); });
  EXPECT_EQ(evicted.error().code, ErrorCode::kExhausted);
}

TEST_F(ApiClientTest, ReadsVersionsAndRights) {
  server_.on("GET /version", json(R"({"major":"1","minor":"37+","gitVersion":"v1.37.2-gke.1",
                                      "platform":"linux/amd64"})"));
  const auto version = ask<ServerVersion>([&](auto then) { return client_->version(then); });
  ASSERT_TRUE(version);
  EXPECT_EQ(version->minor, 37);

  server_.on("POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews",
             [](const http::Request& request) {
               const Json asked = Json::parse(request.body)["spec"]["resourceAttributes"];
               const bool allowed = asked["verb"] == "get";
               return json(Json{{"status", {{"allowed", allowed}, {"reason", "RBAC"}}}}.dump());
             });
  const auto may = [&](const std::string& verb) {
    return ask<AccessAnswer>([&](auto then) {
      return client_->may_i({.verb = verb, .resource = kPods, .space = "lab"}, then);
    });
  };
  EXPECT_TRUE(may("get")->allowed);
  EXPECT_FALSE(may("delete")->allowed);
}

TEST_F(ApiClientTest, OnlySomeRequestsAreSentAtOnce) {
  make_client({.at_once = 2});
  std::vector<std::shared_ptr<FakeWatch>> held;
  std::mutex mutex;
  server_.on("GET /slow", [&](const http::Request&) {
    const std::scoped_lock lock(mutex);
    held.push_back(server_.watch());
    return held.back()->answer();
  });
  const auto arrived = [&] {
    const std::scoped_lock lock(mutex);
    return held.size();
  };
  int answers = 0;
  std::vector<Call> calls;
  for (int i = 0; i < 5; ++i) {
    calls.push_back(client_->get_path("/slow", [&](const Result<std::string>&) {
      ++answers;
      look();
    }));
  }
  EXPECT_EQ(client_->in_flight(), 2U);
  EXPECT_EQ(client_->queued(), 3U);
  calls[3].reset();  // leaves the queue
  for (int done = 1; done <= 4; ++done) {
    // The test's loop has to run for requests to be sent.
    while (arrived() < static_cast<size_t>(done)) {
      bool passed = false;
      const auto timer = loop().after(milliseconds(2), [&] {
        passed = true;
        look();
      });
      ASSERT_TRUE(run_until([&] { return passed; }));
    }
    EXPECT_LE(client_->in_flight(), 2U);
    {
      const std::scoped_lock lock(mutex);
      held[static_cast<size_t>(done - 1)]->end();
    }
    ASSERT_TRUE(run_until([&] { return answers == done; }));
  }
  EXPECT_EQ(server_.count("GET /slow"), 4U);
  EXPECT_EQ(client_->in_flight(), 0U);
}

TEST_F(ApiClientTest, ADroppedCallAndADestroyedClientAnswerNothing) {
  server_.on(kGetPod, json("{}"));
  Call dropped = client_->get({kPods, "lab", "x"}, [](const auto&) { ADD_FAILURE(); });
  Call orphan = client_->get({kPods, "lab", "x"}, [](const auto&) { ADD_FAILURE(); });
  dropped.reset();
  client_.reset();
  make_client({});
  EXPECT_TRUE(get_pod());
}

TEST_F(ApiClientTest, ACallbackMayDestroyTheClient) {
  server_.on(kGetPod, json("{}"));
  bool done = false;
  Call call = client_->get({kPods, "lab", "x"}, [&](const auto&) {
    client_.reset();
    call.reset();
    done = true;
    look();
  });
  EXPECT_TRUE(run_until([&] { return done; }));
}

TEST_F(ApiClientTest, ATextThatIsNotUtf8IsRefused) {
  const auto created = ask<Json>([&](auto then) {
    return client_->create(kPods, "lab", Json{{"metadata", {{"name", "\xFF"}}}}, then);
  });
  EXPECT_EQ(created.error().code, ErrorCode::kInvalid);
}

TEST_F(ApiClientTest, ALogIsHandedOnAsItComes) {
  const auto log = server_.watch();
  server_.on("GET /api/v1/namespaces/lab/pods/x/log",
             [&](const http::Request&) { return log->answer(); });
  std::string text;
  std::optional<Result<void>> end;
  const Call call = client_->logs(
      "lab", "x", {.follow = true},
      [&](std::string_view bytes) {
        text += bytes;
        look();
        return true;
      },
      into(end));
  log->push("one");
  EXPECT_TRUE(run_until([&] { return text == "one\n"; }));
  log->push("two");
  log->end();
  EXPECT_TRUE(run_until([&] { return end.has_value(); }));
  EXPECT_TRUE(*end);
  EXPECT_EQ(text, "one\ntwo\n");
}

}  // namespace
}  // namespace muster::engine::kubernetes
