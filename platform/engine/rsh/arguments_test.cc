#include "engine/rsh/arguments.h"

#include <gtest/gtest.h>

namespace muster::engine::rsh {
namespace {

using Words = std::vector<std::string>;

struct Line {
  Words words;
  Request request;
};

TEST(Arguments, AreReadAsEachMpisLauncherWritesThem) {
  const std::vector<Line> lines{
      // Open MPI, where its agent is no ssh that it knows
      {{"w0", " orted", "-mca", "ess", "\"env\""}, {"w0", " orted -mca ess \"env\""}},
      // PRRTE sets its prefix first
      {{"w0", "PRTE_PREFIX=/opt;export PRTE_PREFIX;/opt/bin/prted", "--prtemca"},
       {"w0", "PRTE_PREFIX=/opt;export PRTE_PREFIX;/opt/bin/prted --prtemca"}},
      // MPICH by its launchers ssh and rsh
      {{"-x", "w0", "\"/usr/bin/hydra_pmi_proxy\"", "--rmk"},
       {"w0", "\"/usr/bin/hydra_pmi_proxy\" --rmk"}},
      {{"w0", "\"/usr/bin/hydra_pmi_proxy\"", "--rmk"},
       {"w0", "\"/usr/bin/hydra_pmi_proxy\" --rmk"}},
      // Intel MPI
      {{"-q", "-x", "w0", "/opt/bin//hydra_bstrap_proxy", "--upstream-host", "vm"},
       {"w0", "/opt/bin//hydra_bstrap_proxy --upstream-host vm"}},
      // rsh and ssh as people write them
      {{"-l", "ada", "-p22", "-o", "BatchMode yes", "w0", "ls", "-l"}, {"w0", "ls -l"}},
      {{"ada@w0", "-n", "date"}, {"w0", "date", true}},
      {{"-nx", "w0", "--", "-odd"}, {"w0", "-odd", true}},
      {{"w0"}, {"w0", ""}},
  };

  for (const Line& line : lines) {
    const auto request = read_arguments(line.words);
    ASSERT_TRUE(request) << line.request.command;
    EXPECT_EQ(*request, line.request) << line.request.command;
  }
}

TEST(Arguments, SayWhatIsWrongWithThem) {
  const std::vector<std::pair<Words, std::string>> faults{
      {{}, "no host is named"},
      {{"-x"}, "no host is named"},
      {{"-l"}, "option -l needs a value"},
      {{"-Z", "w0"}, "'-Z' is an option of neither rsh nor ssh"},
      {{"--rank", "w0"}, "'--rank' is an option of neither rsh nor ssh"},
  };

  for (const auto& [words, what] : faults) {
    const auto request = read_arguments(words);
    ASSERT_FALSE(request) << what;
    EXPECT_EQ(request.error().what, what);
  }
}

}  // namespace
}  // namespace muster::engine::rsh
