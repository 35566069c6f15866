#include <gtest/gtest.h>

#include "cli/connection/contexts.h"

namespace muster::cli {

namespace {

Result<Contexts> lab_in_use() {
  return Contexts{.in_use = "lab",
                  .known = {{.name = "lab", .server = "https://lab:7443"},
                            {.name = "cloud", .server = "https://cloud:7443"}}};
}

Result<Contexts> damaged() {
  return base::Error{.code = base::ErrorCode::kInvalid, .what = "damaged"};
}

const Environment kFromEnvironment{{"MUSTER_SERVER", "https://ci.example.org"},
                                   {"MUSTER_TOKEN", "t"},
                                   {"MUSTER_CONTEXT", "cloud"}};

TEST(ChosenContext, IsTheFirstThatSaysSo) {
  struct Case {
    std::string flag;
    Environment environment;
    std::string name;
    std::string server;
  };
  const Case cases[] = {
      {"", {}, "lab", "https://lab:7443"},
      {"", {{"MUSTER_CONTEXT", "cloud"}}, "cloud", "https://cloud:7443"},
      {"", {{"MUSTER_CONTEXT", ""}}, "lab", "https://lab:7443"},
      {"", {{"MUSTER_CONTEXT", "local"}}, "local", ""},
      {"", kFromEnvironment, "environment", "https://ci.example.org:7443"},
      {"lab", kFromEnvironment, "lab", "https://lab:7443"},
      {"local", kFromEnvironment, "local", ""},
  };
  for (const Case& each : cases) {
    const auto chosen = choose_context(each.flag, each.environment, lab_in_use);
    ASSERT_TRUE(chosen) << chosen.error().to_string();
    EXPECT_EQ(chosen->name, each.name);
    EXPECT_EQ(chosen->server, each.server);
  }
}

TEST(ChosenContext, NeedsNoFileWhereTheEnvironmentSaysItAll) {
  Environment environment = kFromEnvironment;
  environment["MUSTER_FINGERPRINT"] =
      "AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:AA:"
      "AA:AA";

  const auto chosen = choose_context("", environment, damaged);

  ASSERT_TRUE(chosen) << chosen.error().to_string();
  EXPECT_EQ(chosen->token, "t");
  EXPECT_EQ(chosen->fingerprint, std::string(64, 'a'));
  EXPECT_TRUE(choose_context("local", {}, damaged));
  EXPECT_FALSE(choose_context("", {}, damaged));
}

TEST(ChosenContext, ThatLeadsNowhereSaysWhoSaidSo) {
  const std::pair<Environment, const char*> cases[] = {
      {{{"MUSTER_CONTEXT", "lap"}},
       "MUSTER_CONTEXT: there is no context 'lap'; did you mean 'lab'?"},
      {{{"MUSTER_SERVER", "https://ci"}}, "MUSTER_SERVER is set, but MUSTER_TOKEN is not"},
      {{{"MUSTER_SERVER", "http://ci"}, {"MUSTER_TOKEN", "t"}},
       "MUSTER_SERVER: 'http://ci' is no server's address: it does not begin with https://"},
  };
  for (const auto& [environment, what] : cases) {
    const auto chosen = choose_context("", environment, lab_in_use);
    ASSERT_FALSE(chosen);
    EXPECT_EQ(chosen.error().what, what);
  }
  const auto gone = choose_context(
      "", {}, []() -> Result<Contexts> { return Contexts{.in_use = "gone", .known = {}}; });
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().what, "'muster context use': there is no context 'gone'");
}

TEST(OverridingVariable, IsTheOneThatGoesBefore) {
  EXPECT_EQ(overriding_variable({}), "");
  EXPECT_EQ(overriding_variable({{"MUSTER_CONTEXT", "lab"}}), "MUSTER_CONTEXT");
  EXPECT_EQ(overriding_variable(kFromEnvironment), "MUSTER_SERVER");
}

}  // namespace

}  // namespace muster::cli
