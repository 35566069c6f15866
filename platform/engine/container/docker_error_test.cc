#include "engine/container/docker_error.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace muster::engine {

using base::Error;
using base::ErrorCode;

namespace {

constexpr const char* kEngine = "the engine at unix:///run/docker.sock";

TEST(ErrorOf, NamesTheRequestTheEngineAndItsMessage) {
  const Error error = error_of(404, R"({"message":"No such container: x"})",
                               "container 'x' cannot be started", kEngine);
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.what,
            "container 'x' cannot be started: No such container: x (the engine at "
            "unix:///run/docker.sock)");
}

TEST(ErrorOf, HasTheSameCodeForBothEngines) {
  const std::vector<std::tuple<int, std::string, ErrorCode>> cases{
      {400, R"({"message":"bad parameter"})", ErrorCode::kInvalid},
      {401, R"({"message":"who are you"})", ErrorCode::kRefused},
      {403, R"({"message":"no"})", ErrorCode::kRefused},
      {409, R"({"message":"Conflict. The container name \"/x\" is already in use"})",
       ErrorCode::kConflict},
      {500, R"({"message":"oh"})", ErrorCode::kInternal},
      {503, "", ErrorCode::kInternal},
      {500, R"({"cause":"that name is already in use","message":"m"})", ErrorCode::kConflict},
      {500, R"({"cause":"network already exists","message":"m"})", ErrorCode::kConflict},
      {500, R"({"cause":"network is being used","message":"m"})", ErrorCode::kConflict},
      {403, R"({"message":"network x id y has active endpoints"})", ErrorCode::kConflict},
      {500, R"({"cause":"container state improper","message":"m"})", ErrorCode::kConflict},
      {500, R"({"cause":"network not found","message":"m"})", ErrorCode::kNotFound},
      {500, R"({"message":"write /x: no space left on device"})", ErrorCode::kExhausted},
      {500, R"({"message":"could not select device driver \"\" with capabilities: [[gpu]]"})",
       ErrorCode::kInvalid},
      {500, R"({"cause":"unresolvable CDI devices nvidia.com/gpu=7","message":"m"})",
       ErrorCode::kInvalid}};
  for (const auto& [status, body, code] : cases) {
    EXPECT_EQ(error_of(status, body, "it fails", kEngine).code, code) << status << " " << body;
  }
}

TEST(ErrorOf, IsOneSentence) {
  const Error silent = error_of(502, "", "it fails", "the engine");
  EXPECT_EQ(silent.what, "it fails: it answers with status 502 (the engine)");
  const Error lines = error_of(500, "first\nsecond\x1b[31m\xff", "it fails", "the engine");
  EXPECT_EQ(lines.what, "it fails: first second [31m\xef\xbf\xbd (the engine)");
  const Error page = error_of(500, std::string(100'000, 'x'), "it fails", "the engine");
  EXPECT_LT(page.what.size(), 1100U);
}

TEST(PullError, AdvisesByTheCauseOfTheFailure) {
  const std::vector<std::pair<std::string, ErrorCode>> cases{
      {"reading manifest 1 in host/x: unauthorized: authentication required", ErrorCode::kRefused},
      {"pull access denied for x, repository does not exist or may require 'docker login'",
       ErrorCode::kRefused},
      {"manifest for x:9 not found: manifest unknown: manifest unknown", ErrorCode::kNotFound},
      {"no matching manifest for linux/arm64 in the manifest list entries", ErrorCode::kNotFound},
      {"Get \"https://host/v2/\": dial tcp: lookup host on 1.1.1.1:53: no such host",
       ErrorCode::kUnavailable},
      {"dial tcp 127.0.0.1:1: connect: connection refused", ErrorCode::kUnavailable},
      {"context deadline exceeded (Client.Timeout exceeded while awaiting headers)",
       ErrorCode::kUnavailable},
      {"toomanyrequests: You have reached your pull rate limit", ErrorCode::kUnavailable},
      {"writing blob: write /var/lib/x: no space left on device", ErrorCode::kExhausted},
      {"invalid reference format", ErrorCode::kInvalid},
      {"received unexpected HTTP status: 503 Service Unavailable", ErrorCode::kUnavailable},
      {"received unexpected HTTP status: 502 Bad Gateway", ErrorCode::kUnavailable},
      {"error parsing HTTP 502 response body: <h1>502 Bad Gateway</h1>", ErrorCode::kUnavailable},
      {"Get \"https://host/v2/\": unexpected EOF", ErrorCode::kUnavailable},
      {"Get \"https://host/v2/\": context deadline exceeded", ErrorCode::kUnavailable},
      {"dial tcp 10.0.0.1:443: connect: no route to host", ErrorCode::kUnavailable},
      {"write tcp 10.0.0.2->10.0.0.1:443: write: broken pipe", ErrorCode::kUnavailable},
      {"denied: Permission denied for \"1\" from request \"/v2/x\"", ErrorCode::kRefused},
      {"open /etc/containers/policy.json: permission denied", ErrorCode::kInternal},
      {"something else", ErrorCode::kInternal}};
  for (const auto& [message, code] : cases) {
    const Error error = pull_error(message, "host/x:1", kEngine);
    EXPECT_EQ(error.code, code) << message;
    EXPECT_TRUE(error.what.starts_with("image 'host/x:1' cannot be pulled: ")) << error.what;
    EXPECT_TRUE(error.what.ends_with("(the engine at unix:///run/docker.sock)")) << error.what;
  }
}

}  // namespace
namespace {

ImageRequest image_request(const std::string& username = "") {
  return {.node = "gpu-1", .image = "reg.example.org/team/train:1", .username = username};
}

TEST(PullFault, NamesTheNodeAndARemedy) {
  const std::pair<ErrorCode, std::string> cases[] = {
      {ErrorCode::kRefused, "--registry-username USER --registry-secret NAME"},
      {ErrorCode::kNotFound, "podman save and load"},
      {ErrorCode::kExhausted, "podman image prune"},
      {ErrorCode::kInvalid, "registry.example.org/team/train:v7"},
      {ErrorCode::kUnavailable, "see to it; to copy an image from another machine"},
      {ErrorCode::kInternal, "see to it"},
  };
  for (const auto& [code, advice] : cases) {
    const Error fault =
        pull_fault(image_request(), {.code = code, .what = "it failed", .advice = "see to it"});
    EXPECT_EQ(fault.code, code);
    EXPECT_TRUE(fault.what.starts_with("node 'gpu-1': it failed")) << fault.what;
    EXPECT_NE(fault.advice.find(advice), std::string::npos) << fault.advice;
  }
}

TEST(PullFault, NamesTheUserThatTheRegistryRefused) {
  const Error refusal{.code = ErrorCode::kRefused, .what = "unauthorized"};
  EXPECT_EQ(pull_fault(image_request(), refusal).what,
            "node 'gpu-1': unauthorized; without a login");

  const Error ada = pull_fault(image_request("ada"), refusal);
  EXPECT_EQ(ada.what, "node 'gpu-1': unauthorized; user 'ada' logged in there");
  EXPECT_NE(ada.advice.find("the password of that user"), std::string::npos) << ada.advice;
}

TEST(ImageIsMissing, NamesThePullPolicy) {
  const Error error = image_is_missing(image_request());
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.what,
            "node 'gpu-1' has no image 'reg.example.org/team/train:1', and --image-pull-policy "
            "never forbids fetching it");
}

TEST(LocalName, BelongsToNoRegistry) {
  EXPECT_TRUE(is_local_name("localhost/train:1"));
  EXPECT_FALSE(is_local_name("localhost:5000/train:1"));
  EXPECT_FALSE(is_local_name("train:1"));
  ImageRequest local = image_request();
  local.image = "localhost/train:1";
  EXPECT_EQ(local_image_is_missing(local).what,
            "node 'gpu-1' has no image 'localhost/train:1', and names that begin with localhost/ "
            "belong to no registry");
}

TEST(WrongProcessor, NamesBoth) {
  EXPECT_EQ(wrong_processor(image_request(), "arm64", "amd64").what,
            "image 'reg.example.org/team/train:1' is for arm64; node 'gpu-1' is amd64");
}

}  // namespace
}  // namespace muster::engine
