#include "config/paths.h"

#include <gtest/gtest.h>

#include "base/files.h"
#include "base/test_folder.h"

namespace muster::config {

namespace {

struct Case {
  Environment environment;
  std::optional<std::filesystem::path> state_folder;
  Paths expected;
};

TEST(Paths, FollowTheEnvironmentInTheDocumentedOrder) {
  const Case cases[] = {
      {{{"HOME", "/home/ada"}},
       {},
       {"/home/ada/.local/state/muster", "/home/ada/.local/state/muster/muster.sock"}},
      {{}, {}, {"/home/user/.local/state/muster", "/home/user/.local/state/muster/muster.sock"}},
      {{{"HOME", "/home/ada"}, {"XDG_RUNTIME_DIR", "/run/own"}},
       {},
       {"/home/ada/.local/state/muster", "/run/own/muster/muster.sock"}},
      {{{"HOME", "/home/ada"}, {"XDG_RUNTIME_DIR", "/run/of-another"}},
       {},
       {"/home/ada/.local/state/muster", "/home/ada/.local/state/muster/muster.sock"}},
      {{{"XDG_STATE_HOME", "/state"}, {"XDG_RUNTIME_DIR", "/run/own"}},
       {},
       {"/state/muster", "/run/own/muster/muster.sock"}},
      {{{"HOME", "/home/ada"}, {"XDG_STATE_HOME", "relative"}},
       {},
       {"/home/ada/.local/state/muster", "/home/ada/.local/state/muster/muster.sock"}},
      {{{"MUSTER_STATE_DIR", "/m"}, {"XDG_RUNTIME_DIR", "/run/own"}}, {}, {"/m", "/m/muster.sock"}},
      {{{"MUSTER_STATE_DIR", "/m"}}, "/said", {"/said", "/said/muster.sock"}},
  };
  for (const Case& each : cases) {
    const auto paths = find_paths(
        {.environment = each.environment,
         .state_folder = each.state_folder,
         .home_of_user = "/home/user",
         .is_own_folder = [](const std::filesystem::path& path) { return path == "/run/own"; }});
    ASSERT_TRUE(paths);
    EXPECT_EQ(paths->state_folder, each.expected.state_folder);
    EXPECT_EQ(paths->socket, each.expected.socket);
  }
}

TEST(ConfigFolder, IsXdgsOrBelowTheHomeFolder) {
  const auto folder = [](Environment environment, const std::string& home_of_user) {
    return find_config_folder({.environment = std::move(environment),
                               .state_folder = "/said",
                               .home_of_user = home_of_user,
                               .is_own_folder = [](const auto&) { return true; }});
  };
  EXPECT_EQ(folder({{"HOME", "/home/ada"}}, "/home/user"), "/home/ada/.config/muster");
  EXPECT_EQ(folder({{"HOME", "/home/ada"}, {"XDG_CONFIG_HOME", "/config"}}, ""), "/config/muster");
  EXPECT_EQ(folder({{"XDG_CONFIG_HOME", "relative"}}, "/home/user"), "/home/user/.config/muster");
  EXPECT_EQ(folder({}, ""), "");
}

TEST(Paths, AStateFolderThatMayServeOthersIsRefusedAndKeepsItsMode) {
  const base::TestFolder folder;
  const auto made = [&](const std::string& name, const std::string& content) {
    const std::filesystem::path state = folder / name;
    std::filesystem::create_directory(state);
    std::filesystem::permissions(state, std::filesystem::perms(0755));
    if (!content.empty()) {
      EXPECT_TRUE(base::write_file(state / content, ""));
    }
    return make_folders({state, state / "muster.sock"});
  };
  EXPECT_TRUE(made("new", ""));
  EXPECT_TRUE(made("disk", "lost+found"));
  EXPECT_TRUE(made("earlier", "muster.db"));

  const auto refused = made("home", "letter.txt");

  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().what.find("is open to other users"), std::string::npos);
  EXPECT_EQ(std::filesystem::status(folder / "home").permissions(), std::filesystem::perms(0755));
  EXPECT_EQ(std::filesystem::status(folder / "new").permissions(), std::filesystem::perms(0700));
}

TEST(Paths, AreRefusedIfTheyAreRelative) {
  const auto paths = find_paths({.environment = {{"HOME", "/home/ada"}, {"MUSTER_STATE_DIR", "m"}},
                                 .state_folder = {},
                                 .home_of_user = "",
                                 .is_own_folder = [](const auto&) { return false; }});

  ASSERT_FALSE(paths);
  EXPECT_EQ(paths.error().what, "MUSTER_STATE_DIR is 'm', which is not an absolute path");
}

TEST(Paths, NeedAHomeFolderOrAnExplicitFolder) {
  const auto paths = find_paths(
      {.environment = {}, .state_folder = {}, .home_of_user = "", .is_own_folder = [](const auto&) {
         return false;
       }});

  ASSERT_FALSE(paths);
  EXPECT_NE(paths.error().advice.find("MUSTER_STATE_DIR"), std::string::npos);
}

}  // namespace

}  // namespace muster::config
