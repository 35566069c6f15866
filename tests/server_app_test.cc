// The steps that precede the route of every request: authentication, rate limits, the request id,
// checks of the body, and the log.
#include <gtest/gtest.h>

#include <chrono>
#include <string>

#include "api/wire.h"
#include "team_server.h"

namespace muster::server {
namespace {

using access::Role;

class AppTest : public testing::Test {
 protected:
  AppTest() {
    server_.add_project("green", "", 1);
    server_.add_user("sam", {{"green", Role::kMember}});
    server_.add_user("rudi", {}, Role::kAdmin);
    sam_ = server_.token({.user = "sam"});
    rudi_ = server_.token({.user = "rudi"});
  }

  http::Response ask(const TeamServer::Ask& ask) { return server_.ask(ask); }
  int status_of(const std::string& token, const std::string& path = "/v1/whoami") {
    return ask({.path = path, .token = token}).status;
  }

  TeamServer server_;
  std::string sam_;
  std::string rudi_;
};

TEST_F(AppTest, AMissingTokenIsReportedAndEveryInvalidTokenGetsTheSameAnswer) {
  std::string wrong_secret = sam_;
  wrong_secret.back() = wrong_secret.back() == 'a' ? 'b' : 'a';
  std::string unknown_id = sam_;
  unknown_id[7] = unknown_id[7] == 'a' ? 'b' : 'a';

  const http::Response none = ask({.path = "/v1/whoami"});
  const http::Response forged = ask({.path = "/v1/whoami", .token = wrong_secret});
  const http::Response unknown = ask({.path = "/v1/whoami", .token = unknown_id});
  const http::Response nonsense = ask({.path = "/v1/whoami", .token = "x"});

  EXPECT_EQ(none.status, 401);
  EXPECT_EQ(none.headers.at("www-authenticate"), R"(Bearer realm="muster")");
  EXPECT_EQ(forged.status, 401);
  EXPECT_EQ(forged.headers.at("www-authenticate"),
            R"(Bearer realm="muster", error="invalid_token")");
  EXPECT_EQ(unknown.body, forged.body);
  EXPECT_EQ(nonsense.body, forged.body);
}

TEST_F(AppTest, TheSchemeIsBearerInUpperOrLowerCase) {
  const auto status = [&](const std::string& header) {
    return ask({.path = "/v1/whoami", .headers = {{"authorization", header}}}).status;
  };

  EXPECT_EQ(status("bearer " + sam_), 200);
  EXPECT_EQ(status("BEARER   " + sam_ + " "), 200);
  EXPECT_EQ(status("Basic " + sam_), 401);
  EXPECT_EQ(status("Bearer"), 401);
  EXPECT_EQ(status("Bearer "), 401);
  EXPECT_EQ(status(sam_), 401);
}

TEST_F(AppTest, ACallerOnTheUnixSocketIsTheOwnerAndAdmin) {
  const http::Response answer = ask({.path = "/v1/whoami", .over_unix_socket = true});

  ASSERT_EQ(answer.status, 200);
  EXPECT_NE(answer.body.find(R"("user":"ada")"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find(R"("server_role":"admin")"), std::string::npos) << answer.body;
}

TEST_F(AppTest, AnAddressThatGuessesTokensIsBlockedExceptForValidTokens) {
  for (int guess = 0; guess < 20; ++guess) status_of("muster_guess");

  const http::Response blocked = ask({.path = "/v1/whoami", .token = "muster_guess"});
  EXPECT_EQ(blocked.status, 429);
  EXPECT_GT(std::stoi(blocked.headers.at("retry-after")), 0);
  EXPECT_EQ(status_of(sam_), 200);
  EXPECT_EQ(status_of("", "/healthz"), 200) << "a route without a token stays open";
  EXPECT_EQ(ask({.path = "/v1/whoami", .over_unix_socket = true}).status, 200);

  server_.clock().advance(std::chrono::hours(1));
  EXPECT_EQ(status_of("muster_guess"), 401);
}

TEST_F(AppTest, RequestsWithoutATokenDoNotCountAsGuesses) {
  for (int i = 0; i < 50; ++i) ASSERT_EQ(status_of(""), 401);

  EXPECT_EQ(status_of(sam_), 200);
}

TEST_F(AppTest, TheRateLimitAppliesToOneToken) {
  http::Response answer = ask({.path = "/v1/whoami", .token = sam_});
  for (int i = 0; i < 1000 && answer.status == 200; ++i) {
    answer = ask({.path = "/v1/whoami", .token = sam_});
  }

  ASSERT_EQ(answer.status, 429);
  EXPECT_EQ(answer.headers.at("retry-after"), "1");
  EXPECT_EQ(status_of(rudi_), 200);
  EXPECT_EQ(ask({.path = "/v1/whoami", .over_unix_socket = true}).status, 200);
  server_.clock().advance(std::chrono::seconds(1));
  EXPECT_EQ(status_of(sam_), 200);
}

TEST_F(AppTest, MethodsThatAClientInventsHaveOneCounterAndTheRateOfTheirAddress) {
  int refused = 0;
  testing::internal::CaptureStderr();
  for (int i = 0; i < 5000; ++i) {
    const http::Response answer =
        ask({.method = std::string(1000, 'X') + std::to_string(i), .path = "/ui/"});
    EXPECT_EQ(answer.status, i < 4000 ? 405 : 429);
    refused += answer.status == 429 ? 1 : 0;
  }
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_EQ(refused, 1000);
  EXPECT_EQ(log.find(std::string(17, 'X')), std::string::npos);
  EXPECT_EQ(ask({.path = "/ui/"}).status, 429);
  EXPECT_EQ(ask({.path = "/ui/", .from = "10.0.0.8"}).status, 200);
  EXPECT_EQ(ask({.path = "/", .from = "loopback"}).status, 421);
  const std::string metrics = ask({.path = "/metrics", .over_unix_socket = true}).body;
  size_t counters = 0;
  for (size_t at = 0; (at = metrics.find("muster_http_requests_total{", at)) != std::string::npos;
       ++at) {
    ++counters;
  }
  EXPECT_EQ(counters, 3U) << metrics;  // none 4xx, GET /ui 2xx and 4xx
  EXPECT_EQ(status_of("", "/healthz"), 200) << "requests for the page leave others alone";
}

TEST_F(AppTest, AnAnswerHasTheIdOfItsRequestOrANewIdIfThatIsInvalid) {
  const auto id = [&](const std::string& given) {
    return ask({.path = "/v1/whoami", .token = sam_, .headers = {{"x-request-id", given}}})
        .headers.at("x-request-id");
  };

  EXPECT_EQ(id("run-7"), "run-7");
  EXPECT_NE(id("a b\r\nset-cookie: x"), "a b\r\nset-cookie: x");
  EXPECT_EQ(id("").size(), 20U);
  EXPECT_EQ(ask({.path = "/v1/nowhere", .token = sam_}).headers.at("x-request-id"), "r1");
}

TEST_F(AppTest, ABodyMustHaveTheContentTypeOfJson) {
  const auto status = [&](const std::string& type) {
    return ask({.method = "POST",
                .path = "/v1/jobs",
                .body = api::spec_to_json(single_job("one", "green", 0)),
                .token = sam_,
                .headers = {{"content-type", type}}})
        .status;
  };

  EXPECT_EQ(status("text/plain"), 415);
  EXPECT_EQ(status("application/x-www-form-urlencoded"), 415);
  EXPECT_EQ(status("application/json; charset=latin1"), 415);
  EXPECT_EQ(status("Application/JSON ; Charset=\"UTF-8\""), 201);
  EXPECT_EQ(status("application/json; charset=utf-8"), 409);
}

TEST_F(AppTest, ACompressedBodyIsRefused) {
  const auto answer = [&](const std::string& coding) {
    return ask({.method = "POST",
                .path = "/v1/jobs",
                .body = api::spec_to_json(single_job("one", "green", 0)),
                .token = sam_,
                .headers = {{"content-encoding", coding}}});
  };

  EXPECT_EQ(answer("gzip").status, 415);
  EXPECT_EQ(answer("gzip").headers.at("accept-encoding"), "identity");
  EXPECT_EQ(answer("identity").status, 201);
}

TEST_F(AppTest, ASpecWithoutAProjectIsAnsweredWithTheProjectsOfTheCaller) {
  const http::Response answer = ask({.method = "POST",
                                     .path = "/v1/jobs",
                                     .body = R"({"name":"one","command":["x"],"folder":"/"})",
                                     .token = sam_});

  EXPECT_EQ(answer.status, 404);
  EXPECT_NE(answer.body.find("which is the project of a spec that names none"), std::string::npos)
      << answer.body;
  EXPECT_NE(answer.body.find("(--project): green\""), std::string::npos) << answer.body;
}

TEST_F(AppTest, AnIdempotencyKeyHasAtMost200Bytes) {
  const auto status = [&](size_t length) {
    return ask({.method = "POST",
                .path = "/v1/jobs",
                .body = api::spec_to_json(single_job("one", "green", 0)),
                .token = sam_,
                .headers = {{"idempotency-key", std::string(length, 'k')}}})
        .status;
  };

  EXPECT_EQ(status(201), 400);
  EXPECT_EQ(status(200), 201);
  EXPECT_EQ(status(200), 201) << "the same job again";
}

TEST_F(AppTest, AServerIsShutDownOnlyOverItsUnixSocket) {
  EXPECT_EQ(ask({.method = "POST", .path = "/v1/shutdown", .token = rudi_}).status, 403);
  EXPECT_FALSE(server_.left);

  EXPECT_EQ(ask({.method = "POST", .path = "/v1/shutdown", .over_unix_socket = true}).status, 202);
  EXPECT_TRUE(server_.left);
}

TEST_F(AppTest, OnlyAdminsSeeTheStateFolderOfTheServer) {
  const auto sams = api::info_from_json(ask({.path = "/v1/info", .token = sam_}).body);
  const auto rudis = api::info_from_json(ask({.path = "/v1/info", .token = rudi_}).body);

  ASSERT_TRUE(sams && rudis);
  EXPECT_EQ(sams->version, "1.2.3");
  EXPECT_EQ(sams->pid, 0);
  EXPECT_EQ(sams->state_folder, "");
  EXPECT_EQ(rudis->state_folder, "/porphyry/state");
}

TEST_F(AppTest, TheLogNamesTheUserAndTheRequestAndNeverTheToken) {
  testing::internal::CaptureStderr();
  ask({.path = "/v1/jobs/a\nb", .query = {{"project", "pearl"}}, .token = sam_});
  ask({.path = "/v1/whoami", .token = "muster_guess"});
  ask({.path = "/v1/whoami", .over_unix_socket = true});
  const std::string log = testing::internal::GetCapturedStderr();

  EXPECT_NE(log.find(R"(request method=GET path="/v1/jobs/a\nb" status=404 ms=0.000 user=sam )"
                     R"(request=r1 address=10.0.0.7)"),
            std::string::npos)
      << log;
  EXPECT_NE(log.find(R"(status=401 ms=0.000 user="" )"), std::string::npos) << log;
  EXPECT_EQ(log.find("address=local"), std::string::npos) << log;
  for (const std::string& secret : {sam_, std::string("muster_"), std::string("pearl")}) {
    EXPECT_EQ(log.find(secret), std::string::npos) << log;
  }
}

TEST(IdleServer, StaysUntilItsAnswersAreSent) {
  TeamServer server(std::chrono::milliseconds(1));
  server.may_leave = false;
  server.add_project("green", "", 4);
  server.submit(single_job("one", "green", 1), "ada");
  server.end("one");
  server.ask({.path = "/v1/jobs/one/log-file", .over_unix_socket = true});  // keeps its stream

  server.may_leave = true;
  const int looks = server.idle_looks;
  while (server.idle_looks < looks + 3) server.settle();
  EXPECT_FALSE(server.left);

  const int looks_before_the_end = server.idle_looks;
  server.drop_streams();
  while (!server.left) server.settle();
  EXPECT_EQ(server.idle_looks, looks_before_the_end + 2) << "the time counts from the end";
}

TEST(IdleServer, DoesNotWaitForTheEndOfAStreamOfEvents) {
  TeamServer server(std::chrono::milliseconds(1));
  server.may_leave = false;
  server.ask({.path = "/v1/watch/events", .over_unix_socket = true});  // keeps its stream

  server.may_leave = true;
  while (!server.left) server.settle();
}

TEST_F(AppTest, ARevokedTokenIsRefused) {
  ASSERT_EQ(status_of(sam_), 200);

  ASSERT_EQ(ask({.method = "POST", .path = "/v1/logout", .token = sam_}).status, 204);

  EXPECT_EQ(status_of(sam_), 401);
}

}  // namespace
}  // namespace muster::server
