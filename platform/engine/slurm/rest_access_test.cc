// Tokens: when a token is created and replaced, and where it is never sent.

#include "engine/slurm/rest_access.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "engine/slurm/test_rest_client.h"

namespace muster::engine::slurm {
namespace {

using base::ErrorCode;

using RestTokenTest = RestClientTest;

TEST(RestTokenText, IsTheOutputOfTheCommand) {
  EXPECT_EQ(*token_of("SLURM_JWT=a.b.c\n"), "a.b.c");
  EXPECT_EQ(*token_of("a.b-_c\r\n"), "a.b-_c");
  EXPECT_EQ(*token_of("some words\nSLURM_JWT=a.b.c\n"), "a.b.c");
  for (const std::string printed : {"", "\n", "SLURM_JWT=", "SLURM_JWT=a b", "a\nb", "a\x01z"}) {
    const auto token = token_of(printed);
    ASSERT_FALSE(token) << printed;
    EXPECT_EQ(token.error().code, ErrorCode::kInternal);
  }
  EXPECT_FALSE(token_of(std::string(20'000, 'x')));
}

TEST(RestTokenText, ContainsItsExpiry) {
  // {"exp":1700000000,"iat":1,"sun":"root"}: a token of Slurm 22.05.8 with another time.
  EXPECT_EQ(end_of_token("x.eyJleHAiOjE3MDAwMDAwMDAsImlhdCI6MSwic3VuIjoicm9vdCJ9.y"),
            base::Time(std::chrono::seconds(1700000000)));
  for (const std::string token : {"", "a", "a.b", "a.b.c", "a..c", "x.e30.y", "x.bnVsbA.y"}) {
    EXPECT_EQ(end_of_token(token), std::nullopt) << token;
  }
}

/// A program that prints numbered tokens and counts them.
class TokenProgram {
 public:
  explicit TokenProgram(std::chrono::seconds life = std::chrono::hours(1)) {
    const auto end = std::chrono::system_clock::now() + life;
    std::string claims = base::to_base64_for_urls(
        R"({"exp":)" + std::to_string(std::chrono::system_clock::to_time_t(end)) + "}");
    while (claims.ends_with('=')) claims.pop_back();
    script_ = "echo x >> \"$0\"; echo SLURM_JWT=head." + claims + ".$(wc -l < \"$0\")";
  }
  std::vector<std::string> command() const {
    return {"/bin/sh", "-c", script_, (folder_ / "count").string()};
  }
  size_t made() const {
    const auto lines = base::read_file(folder_ / "count", 1 << 20);
    return lines ? lines->size() / 2 : 0;
  }

 private:
  base::TestFolder folder_;
  std::string script_;
};

http::Response unauthorized() {
  http::Response answer{.status = 401, .content_type = "text/plain"};
  answer.body = "Authentication failure";
  return answer;
}

TEST_F(RestTokenTest, ATokenIsCreatedOnDemandAndKeptWhileItIsValid) {
  const TokenProgram program;
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurm/v0.0.40/jobs/", [](const Asked& asked) {
    return asked.headers.contains("x-slurm-user-token") ? response(R"({"jobs":[]})")
                                                        : unauthorized();
  });
  RestOptions with_token = options(server.socket());
  with_token.token_command = program.command();
  RestClient client(loop(), with_token);
  ASSERT_TRUE(jobs(client));
  ASSERT_TRUE(jobs(client));
  EXPECT_EQ(program.made(), 1U);
  EXPECT_EQ(server.last().headers.at("x-slurm-user-name"), "ann");
  EXPECT_TRUE(server.last().headers.at("x-slurm-user-token").starts_with("head."));
}

TEST_F(RestTokenTest, ARefusedTokenIsReplacedOnceAndTheRequestRepeated) {
  const TokenProgram program;
  for (const bool is_by_controller : {false, true}) {
    ScriptedSlurmrestd server;
    server.serve({"v0.0.40"});
    std::string good;  // the first token is not accepted
    server.answer("GET /slurm/v0.0.40/jobs/", [&](const Asked& asked) {
      const auto found = asked.headers.find("x-slurm-user-token");
      if (found == asked.headers.end()) return unauthorized();
      if (good.empty()) good = found->second;
      if (found->second != good) return response(R"({"jobs":[]})");
      // The controller gives no reason.
      return is_by_controller
                 ? response(R"({"errors":[{"error_number":-1,"error":"Unspecified error"}]})", 500)
                 : unauthorized();
    });
    RestOptions with_token = options(server.socket());
    with_token.token_command = program.command();
    RestClient client(loop(), with_token);
    const auto first = jobs(client);
    // The first answer requires a token: no second token is created within the same request.
    const auto second = first ? first : jobs(client);
    ASSERT_TRUE(second) << second.error().to_string();
  }
}

TEST_F(RestTokenTest, ATokenIsReplacedBeforeItExpires) {
  const TokenProgram program(std::chrono::seconds(0));
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurm/v0.0.40/jobs/", [](const Asked& asked) {
    return asked.headers.contains("x-slurm-user-token") ? response(R"({"jobs":[]})")
                                                        : unauthorized();
  });
  RestOptions with_token = options(server.socket());
  with_token.token_command = program.command();
  RestClient client(loop(), with_token);
  ASSERT_TRUE(jobs(client));
  ASSERT_TRUE(jobs(client));
  EXPECT_GE(program.made(), 2U);
}

TEST_F(RestTokenTest, AnErrorAfterARefusedTokenContainsNoToken) {
  const TokenProgram program;
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurm/v0.0.40/jobs/", [](const Asked&) { return unauthorized(); });
  RestOptions with_token = options(server.socket());
  with_token.token_command = program.command();
  RestClient client(loop(), with_token);
  const auto listed = jobs(client);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kRefused);
  EXPECT_EQ(listed.error().to_string().find("head."), std::string::npos);
  EXPECT_LE(server.count("GET /slurm/v0.0.40/jobs/"), 2U);
}

TEST_F(RestTokenTest, ATokenCommandThatFailsIsQuoted) {
  ScriptedSlurmrestd server;
  server.serve({"v0.0.40"});
  server.answer("GET /slurm/v0.0.40/jobs/", [](const Asked&) { return unauthorized(); });
  for (const auto& [command, what] : std::vector<std::pair<std::string, std::string>>{
           {"echo 'no key' >&2; exit 3", "no key"},
           {"exit 3", "it ends with code 3"},
           {"echo", "the token command has not printed a token"},
           {"echo 'SLURM_JWT=a b'", "the token command has not printed a token"}}) {
    RestOptions with_token = options(server.socket());
    with_token.token_command = {"/bin/sh", "-c", command};
    RestClient client(loop(), with_token);
    const auto listed = jobs(client);
    ASSERT_FALSE(listed);
    EXPECT_NE(listed.error().what.find(what), std::string::npos) << listed.error().to_string();
  }
}

TEST_F(RestTokenTest, NoTokenIsSentOverAnOpenNetwork) {
  const TokenProgram program;
  RestOptions far = options("/unused");
  far.endpoint.where = RestHost{.host = "192.0.2.1", .port = 6820, .has_tls = false};
  far.token_command = program.command();
  RestClient client(loop(), far);
  const auto listed = jobs(client);
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::kRefused);
  EXPECT_FALSE(listed.error().advice.empty());
  EXPECT_EQ(program.made(), 0U) << "a token was created that must not be sent";
}

}  // namespace
}  // namespace muster::engine::slurm
