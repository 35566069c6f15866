// Prints the help of every command, to be read from top to bottom, and checks its form.
#include <gtest/gtest.h>

#include <functional>
#include <iostream>

#include "cli/cli.h"
#include "cli/test_call.h"

namespace muster::cli {

namespace {

using Visit = std::function<void(const Command&, const Words& path)>;

void for_each_command(const Command& command, const Words& path, const Visit& visit) {
  visit(command, path);
  for (const Command& child : command.commands) {
    Words longer = path;
    longer.push_back(child.name);
    for_each_command(child, longer, visit);
  }
}

bool is_plain(const std::string& help) {
  // Words that refer to a noun that the line does not contain.
  for (const char* const riddle : {"whoever", "somebody", "nobody", "those that", "one that",
                                   "is told", "said", "from now on", "any more"}) {
    if (help.find(riddle) != std::string::npos) return false;
  }
  return !help.empty() && (help.ends_with(" ...") || !help.ends_with('.'));
}

TEST(HelpTable, IsPrintedForEveryCommand) {
  const Command root = command_tree();
  int commands = 0;
  for_each_command(root, {}, [&](const Command& command, const Words& path) {
    ++commands;
    const std::string text = help_text(root, path);
    std::cout << text << "\n----\n";
    EXPECT_NE(text.find("usage: muster"), std::string::npos);
    EXPECT_FALSE(command.help.empty()) << text;
    EXPECT_FALSE(command.example.empty() && command.commands.empty()) << text;
  });
  EXPECT_GT(commands, 60);
}

TEST(HelpTable, NamesThings) {
  for_each_command(command_tree(), {}, [](const Command& command, const Words& path) {
    EXPECT_TRUE(path.empty() || is_plain(command.help)) << command.help;
    for (const Flag& flag : command.flags) {
      EXPECT_FALSE(flag.help.ends_with('.')) << flag.name << ": " << flag.help;
    }
  });
}

TEST(MessageTable, OfBadCommandLinesIsPrinted) {
  const Words lines[] = {
      {"lst"},
      {"frobnicate"},
      {"logs", "a", "--folow"},
      {"logs", "a", "--tail"},
      {"logs", "a", "--tail", "many"},
      {"logs", "a", "--since", "soon"},
      {"logs", "a", "-o", "yaml"},
      {"logs", "a", "-o", "json", "--timestamps"},
      {"get"},
      {"get", "a", "b"},
      {"run"},
      {"run", "echo", "hi"},
      {"submit"},
      {"submit", "x", "--", "true"},
      {"submit", "mpi", "a", "--", "x"},
      {"submit", "single", "a", "--env", "NOWHERE", "--", "x"},
      {"submit", "single", "a", "--priority", "high", "--", "x"},
      {"submit", "-f", "a", "single", "b", "--", "x"},
      {"list", "--", "x"},
      {"delete"},
      {"project", "set", "a"},
      {"project", "create", "a", "--gpus", "many"},
      {"user", "set", "a"},
      {"token", "revoke"},
      {"notify", "remove"},
      {"cp", "a", "b"},
      {"cp", "a:x", "b:y"},
      {"port-forward", "a"},
      {"exec", "a"},
      {"attach", "a", "--detach-keys", "ctrl"},
      {"convert", "a", "--line", "1", "--list"},
      {"simulate"},
      {"completion", "tcsh"},
  };
  for (const Words& line : lines) {
    const std::string text = refusal(line);
    std::cout << "$ muster";
    for (const std::string& word : line) std::cout << " " << word;
    std::cout << "\n" << text << "\n";
    EXPECT_FALSE(text.empty());
  }
}

}  // namespace

}  // namespace muster::cli
