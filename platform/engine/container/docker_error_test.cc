#include "engine/container/docker_error.h"

#include <gtest/gtest.h>

#include <tuple>
#include <vector>

namespace muster::engine {
namespace {

using base::Error;
using base::ErrorCode;

constexpr const char* kEngine = "the engine at unix:///run/docker.sock";

TEST(ErrorOf, SaysWhatWasAskedWhatTheEngineSaysAndWhichEngineItIs) {
  const Error error = error_of(404, R"({"message":"No such container: x"})",
                               "container 'x' cannot be started", kEngine);
  EXPECT_EQ(error.code, ErrorCode::kNotFound);
  EXPECT_EQ(error.what,
            "container 'x' cannot be started: No such container: x (the engine at "
            "unix:///run/docker.sock)");
}

TEST(ErrorOf, HasTheSameCodeWhicheverEngineRefuses) {
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

TEST(ErrorOf, StaysOneSentenceWhateverTheEngineSays) {
  const Error silent = error_of(502, "", "it fails", "the engine");
  EXPECT_EQ(silent.what, "it fails: it answers with status 502 (the engine)");
  const Error lines = error_of(500, "first\nsecond\x1b[31m\xff", "it fails", "the engine");
  EXPECT_EQ(lines.what, "it fails: first second [31m\xef\xbf\xbd (the engine)");
  const Error page = error_of(500, std::string(100'000, 'x'), "it fails", "the engine");
  EXPECT_LT(page.what.size(), 1100U);
}

TEST(PullError, TellsWhoHasToDoSomethingAboutIt) {
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
      {"something else", ErrorCode::kInternal}};
  for (const auto& [message, code] : cases) {
    const Error error = pull_error(message, "host/x:1", kEngine);
    EXPECT_EQ(error.code, code) << message;
    EXPECT_TRUE(error.what.starts_with("image 'host/x:1' cannot be pulled: ")) << error.what;
    EXPECT_TRUE(error.what.ends_with("(the engine at unix:///run/docker.sock)")) << error.what;
  }
}

}  // namespace
}  // namespace muster::engine
