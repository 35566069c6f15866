#include "dialects/gradient/command_tree.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "cli/command/arguments.h"

namespace muster::dialects::gradient {

namespace {

/// Calls `look` with each command that has no subcommands, and its path.
void for_each_leaf(const cli::Command& command, const std::string& path,
                   const std::function<void(const cli::Command&, const std::string&)>& look) {
  for (const cli::Command& child : command.commands) {
    const std::string below = path + (path.empty() ? "" : " ") + child.name;
    if (child.commands.empty()) look(child, below);
    for_each_leaf(child, below, look);
  }
}

std::string faults_in_tree(const std::vector<std::string>& words) {
  std::string text;
  for (const base::Fault& fault : cli::sort_arguments(command_tree(), words).faults) {
    text += fault.field + fault.what + "\n";
  }
  return text;
}

TEST(GradientTree, HasTheCommandsOfGradient) {
  std::set<std::string> paths;
  const auto add = [&](const cli::Command&, const std::string& path) { paths.insert(path); };
  for_each_leaf(command_tree(), "", add);
  for (const char* path : {"experiments create singlenode",
                           "experiments create multinode",
                           "experiments run singlenode",
                           "experiments run multinode",
                           "experiments list",
                           "experiments details",
                           "experiments start",
                           "experiments stop",
                           "experiments delete",
                           "experiments logs",
                           "experiments tags add",
                           "experiments tags remove",
                           "experiments metrics get",
                           "experiments metrics list",
                           "experiments metrics stream",
                           "projects create",
                           "projects list",
                           "projects details",
                           "projects delete",
                           "clusters list",
                           "clusters machineTypes list",
                           "jobs artifacts list",
                           "jobs artifacts get",
                           "jobs artifacts download",
                           "jobs list",
                           "jobs logs",
                           "secrets set",
                           "secrets list",
                           "secrets delete",
                           "apiKey",
                           "logout",
                           "version"}) {
    EXPECT_TRUE(paths.contains(path)) << path;
  }
}

TEST(GradientTree, HasTheCommonFlagsOnEveryCommandThatConnectsToAServer) {
  const std::set<std::string> local{"apiKey", "logout", "version"};
  for_each_leaf(command_tree(), "", [&](const cli::Command& command, const std::string& path) {
    EXPECT_NE(command.find_flag("--help"), nullptr) << path;
    EXPECT_FALSE(command.help.empty()) << path;
    for (const cli::Flag& flag : common_flags()) {
      EXPECT_EQ(command.find_flag(flag.name) != nullptr, !local.contains(path)) << path;
    }
  });
}

TEST(GradientTree, HasNoFlagTwice) {
  for_each_leaf(command_tree(), "", [](const cli::Command& command, const std::string& path) {
    std::set<std::string> names;
    for (const cli::Flag& flag : command.flags) {
      EXPECT_TRUE(names.insert(flag.name).second) << path << " " << flag.name;
    }
  });
}

TEST(GradientTree, AnswersATypoWithTheNearestWord) {
  EXPECT_EQ(faults_in_tree({"experiment", "list"}),
            "unknown command 'experiment'; did you mean 'experiments'?\n");
  EXPECT_EQ(faults_in_tree({"experiments", "lst"}),
            "unknown command 'lst'; did you mean 'list'?\n");
  EXPECT_EQ(faults_in_tree({"experiments", "list", "--projectid", "x"}),
            "unknown flag '--projectid'; did you mean '--projectId'?\n");
  EXPECT_EQ(faults_in_tree({"clusters", "machineType", "list"}),
            "unknown command 'machineType'; did you mean 'machineTypes'?\n");
}

TEST(GradientTree, AcceptsFollowWithAndWithoutAValue) {
  const cli::Arguments bare =
      cli::sort_arguments(command_tree(), {"experiments", "logs", "--id", "a", "--follow"});
  EXPECT_TRUE(bare.has("--follow"));
  EXPECT_TRUE(bare.names.empty());

  const cli::Arguments with =
      cli::sort_arguments(command_tree(), {"experiments", "logs", "--follow", "true", "--id", "a"});
  EXPECT_TRUE(with.has("--follow"));
  EXPECT_EQ(with.names, std::vector<std::string>{"true"});
  EXPECT_EQ(with.flags.at("--id").back(), "a");
  EXPECT_TRUE(with.faults.empty());

  EXPECT_EQ(faults_in_tree({"experiments", "logs", "--id", "a", "--follow=maybe"}),
            "--follow'maybe' is neither true nor false\n");
}

}  // namespace

}  // namespace muster::dialects::gradient
