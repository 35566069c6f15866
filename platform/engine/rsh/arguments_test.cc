#include "engine/rsh/arguments.h"

#include <gtest/gtest.h>

#include "launch/ssh_files.h"

namespace muster::engine::rsh {
namespace {

using Words = std::vector<std::string>;

struct Line {
  Words words;
  Request request;
};

TEST(Arguments, AreReadInTheFormOfEachMpi) {
  const std::vector<Line> lines{
      // Open MPI, with an agent that it does not recognise as ssh
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
      // rsh and ssh, as users call them
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

TEST(Arguments, ReportTheFault) {
  const std::vector<std::pair<Words, std::string>> faults{
      {{}, "the host is missing"},
      {{"-x"}, "the host is missing"},
      {{"-l"}, "option -l requires a value"},
      {{"-Z", "w0"}, "'-Z' is not an option of rsh or ssh"},
      {{"--rank", "w0"}, "'--rank' is not an option of rsh or ssh"},
  };

  for (const auto& [words, what] : faults) {
    const auto request = read_arguments(words);
    ASSERT_FALSE(request) << what;
    EXPECT_EQ(request.error().what, what);
  }
}

}  // namespace
namespace {

TEST(Hosts, AreReadAsLaunchWritesThem) {
  const auto hosts = read_hosts(
      launch::rsh_hosts({{.name = "dist-worker-0", .address = "127.16.0.2", .port = 10022},
                         {.name = "dist-worker-1", .address = "dist-worker-1", .port = 10023}}));

  ASSERT_TRUE(hosts);
  EXPECT_EQ(*hosts, (std::vector<Host>{{"dist-worker-0", "127.16.0.2", 10022},
                                       {"dist-worker-1", "dist-worker-1", 10023}}));
}

TEST(Hosts, NameAMalformedLine) {
  for (const char* text : {"a 1.2.3.4", "a 1.2.3.4 0", "a 1.2.3.4 65536", "a 1.2.3.4 22x",
                           " 1.2.3.4 22", "a 1.2.3.4 22 more"}) {
    const auto hosts = read_hosts("good 1.2.3.4 22\n" + std::string(text) + "\n");
    ASSERT_FALSE(hosts) << text;
    EXPECT_NE(hosts.error().what.find(text), std::string::npos);
  }
}

TEST(Hosts, AreListedForAnUnknownHost) {
  const std::vector<Host> hosts{{"dist-worker-0", "127.16.0.2", 1}, {"dist-worker-1", "x", 2}};

  EXPECT_EQ(find_host(hosts, "dist-worker-1")->port, 2);
  const auto found = find_host(hosts, "dist-worker-2");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().to_string(),
            "this job has no host 'dist-worker-2'\n  its hosts are dist-worker-0, dist-worker-1");
}

}  // namespace
}  // namespace muster::engine::rsh
