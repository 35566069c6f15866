#include "engine/rsh/hosts.h"

#include <gtest/gtest.h>

#include "launch/ssh_files.h"

namespace muster::engine::rsh {
namespace {

TEST(Hosts, AreThoseThatALaunchWrites) {
  const auto hosts = read_hosts(
      launch::rsh_hosts({{.name = "dist-worker-0", .address = "127.16.0.2", .port = 10022},
                         {.name = "dist-worker-1", .address = "dist-worker-1", .port = 10023}}));

  ASSERT_TRUE(hosts);
  EXPECT_EQ(*hosts, (std::vector<Host>{{"dist-worker-0", "127.16.0.2", 10022},
                                       {"dist-worker-1", "dist-worker-1", 10023}}));
}

TEST(Hosts, SayWhichLineIsNone) {
  for (const char* text : {"a 1.2.3.4", "a 1.2.3.4 0", "a 1.2.3.4 65536", "a 1.2.3.4 22x",
                           " 1.2.3.4 22", "a 1.2.3.4 22 more"}) {
    const auto hosts = read_hosts("good 1.2.3.4 22\n" + std::string(text) + "\n");
    ASSERT_FALSE(hosts) << text;
    EXPECT_NE(hosts.error().what.find(text), std::string::npos);
  }
}

TEST(Hosts, AreNamedToWhoeverAsksForAnotherOne) {
  const std::vector<Host> hosts{{"dist-worker-0", "127.16.0.2", 1}, {"dist-worker-1", "x", 2}};

  EXPECT_EQ(find_host(hosts, "dist-worker-1")->port, 2);
  const auto found = find_host(hosts, "dist-worker-2");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().to_string(),
            "this job has no host 'dist-worker-2'\n  its hosts are dist-worker-0, dist-worker-1");
}

}  // namespace
}  // namespace muster::engine::rsh
