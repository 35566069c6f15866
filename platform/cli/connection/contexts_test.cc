#include "cli/connection/contexts.h"

#include <gtest/gtest.h>

namespace muster::cli {

namespace {

Contexts two() {
  return {.in_use = "lab",
          .known = {{.name = "lab",
                     .server = "https://lab.example.org:7443",
                     .fingerprint = std::string(64, 'a'),
                     .user = "ada",
                     .token = "muster_secret",
                     .expires = base::FakeClock().now(),
                     .project = "team-a"},
                    {.name = "cloud", .server = "https://10.0.0.7:443", .ca_file = "/etc/ca.pem"}}};
}

TEST(Contexts, ComeBackFromTheirFileAsTheyWere) {
  const auto read = contexts_from_json(contexts_to_json(two()));

  ASSERT_TRUE(read) << read.error().to_string();
  EXPECT_EQ(*read, two());
}

TEST(Contexts, OfAFileWithoutAnyAreTheLocalOne) {
  const auto read = contexts_from_json(R"({"version": 1})");

  ASSERT_TRUE(read);
  EXPECT_EQ(read->in_use, "local");
  EXPECT_EQ(read->names(), std::vector<std::string>{"local"});
}

TEST(Contexts, OfADamagedFileAreAnErrorThatSaysWhere) {
  const std::pair<const char*, const char*> cases[] = {
      {"", "it is no JSON object"},
      {"[]", "it is no JSON object"},
      {R"({"version": 1, "contexts": [)", "it is no JSON object"},
      {R"({})", "its 'version' is not 1"},
      {R"({"version": 2})", "its 'version' is not 1"},
      {R"({"version": 1, "in_use": 7})", "it.in_use is no text"},
      {R"({"version": 1, "contexts": {}})", "'contexts' is no list"},
      {R"({"version": 1, "contexts": [7]})", "contexts[0] is no object"},
      {R"({"version": 1, "contexts": [{"name": "a"}]})", "contexts[0].server is no address"},
      {R"({"version": 1, "contexts": [{"name": "local", "server": "https://a"}]})",
       "contexts[0].name cannot be one"},
      {R"({"version": 1, "contexts": [{"name": "a", "server": "https://a", "token": 1}]})",
       "contexts[0].token is no text"},
      {R"({"version": 1, "contexts": [{"name": "a", "server": "https://a", "expires": "soon"}]})",
       "contexts[0].expires is no time"},
      {R"({"version": 1, "contexts": [{"name": "a", "server": "https://a"},
                                      {"name": "a", "server": "https://b"}]})",
       "contexts[1].name is there twice"},
  };
  for (const auto& [text, where] : cases) {
    const auto read = contexts_from_json(text);
    ASSERT_FALSE(read) << text;
    EXPECT_EQ(read.error().what, where) << text;
  }
}

TEST(ContextOf, KnowsTheLocalOneAndThoseOfTheFile) {
  EXPECT_TRUE(context_of(two(), "local")->is_local());
  EXPECT_EQ(context_of(two(), "lab")->user, "ada");

  const auto missing = context_of(two(), "lap");
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(missing.error().what, "there is no context 'lap'; did you mean 'lab'?");
}

TEST(ContextName, IsMadeOfWhatAShellNeedNotQuote) {
  for (const char* good : {"lab", "lab.example.org", "a_b-C9", "127.0.0.1-40000"}) {
    EXPECT_TRUE(check_context_name(good)) << good;
  }
  for (const char* bad : {"", "-lab", "a b", "a/b", "local", "environment", "\xc3\xa4"}) {
    EXPECT_FALSE(check_context_name(bad)) << bad;
  }
  EXPECT_FALSE(check_context_name(std::string(65, 'a')));
}

TEST(ContextName, OfAServerThatNobodyNamedIsItsHost) {
  EXPECT_EQ(context_name_for("lab.example.org", 7443), "lab.example.org");
  EXPECT_EQ(context_name_for("10.0.0.7", 443), "10.0.0.7-443");
  EXPECT_EQ(context_name_for("local", 7443), "at-local");
  EXPECT_EQ(context_name_for("::1", 7443), "at---1");
}

}  // namespace

}  // namespace muster::cli
