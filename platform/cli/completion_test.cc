#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>

#include "cli/cli.h"
#include "cli/command/command.h"

namespace muster::cli {

namespace {

TEST(Completion, OfEveryShellContainsEveryCommandAndVisibleFlag) {
  const Command root = command_tree();
  const std::string bash = bash_completion(root);
  const std::string zsh = zsh_completion(root);
  const std::string fish = fish_completion(root);
  for (const auto& [at, command] : places_in(root)) {
    for (const Flag& flag : command->flags) {
      const bool shown = !flag.hidden;
      EXPECT_EQ(bash.find(flag.name) != std::string::npos, shown) << flag.name;
      EXPECT_EQ(zsh.find(flag.name) != std::string::npos, shown) << flag.name;
      EXPECT_EQ(fish.find("-l " + flag.name.substr(2)) != std::string::npos, shown) << flag.name;
    }
    for (const std::string& script : {bash, zsh, fish}) {
      EXPECT_NE(script.find(command->name), std::string::npos) << at;
    }
  }
}

TEST(Completion, OffersABoundedNumberOfJobs) {
  const Command root = command_tree();
  for (const std::string& script :
       {bash_completion(root), zsh_completion(root), fish_completion(root)}) {
    EXPECT_NE(script.find("list --limit 1000 --output names"), std::string::npos);
  }
}

/// The words that bash would offer for the last of `words`, one in each line. A fake muster lists
/// two jobs, a project and a node.
std::string offered_by_bash(const std::string& words) {
  std::array<char, 32> path{"/tmp/muster-completion-XXXXXX"};
  const int fd = ::mkstemp(path.data());
  if (fd < 0) return "no temporary file";
  ::close(fd);
  std::ofstream(path.data())
      << "muster() {\n  case $1 in project) echo team-a ;; node) echo gpu-7 ;; context) echo lab "
         ";; user) echo ada ;; *) echo dist; echo "
         "other ;; "
         "esac\n}\n"
      << bash_completion(command_tree()) << "COMP_WORDS=(" << words
      << ")\nCOMP_CWORD=$((${#COMP_WORDS[@]} - 1))\n_muster muster 2>/dev/null\n"
      << "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const std::string command = std::string("bash --norc ") + path.data();
  std::string offered;
  std::FILE* const pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return "no bash";
  std::array<char, 4096> bytes{};
  size_t count = 0;
  while ((count = std::fread(bytes.data(), 1, bytes.size(), pipe)) > 0) {
    offered.append(bytes.data(), count);
  }
  ::pclose(pipe);
  ::unlink(path.data());
  return offered;
}

TEST(BashCompletion, OffersTheWordsAllowedAtTheCursor) {
  const std::pair<std::string, std::string> cases[] = {
      {"muster sub", "submit\n"},
      {"muster submit m", "mpi\n"},
      {"muster submit mpi dist --worke", "--workers\n"},
      {"muster submit mpi dist --sandbox n", "none\n"},
      {"muster ls --output j", "json\n"},
      {"muster ls -o n", "names\n"},
      {"muster logs ''", "dist\nother\n"},
      {"muster stop dist o", "other\n"},
      {"muster completion f", "fish\n"},
      {"muster pro", "project\n"},
      {"muster project se", "set\n"},
      {"muster project set t", "team-a\n"},
      {"muster project create x --parent t", "team-a\n"},
      {"muster node drain g", "gpu-7\n"},
      {"muster explain d", "dist\n"},
      {"muster logs dist --tail 1", "\n"},
      {"muster context use l", "lab\n"},
      {"muster list --context l", "lab\n"},
      {"muster user set a", "ada\n"},
      {"muster user create x --role v", "viewer\n"},
  };
  for (const auto& [words, expected] : cases) EXPECT_EQ(offered_by_bash(words), expected) << words;
}

}  // namespace

}  // namespace muster::cli
