#include "engine/process/egress.h"

#include <gtest/gtest.h>
#include <net/if.h>
#include <sched.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>

#include "base/event_loop.h"
#include "base/files.h"
#include "base/test_folder.h"
#include "engine/process/process_engine.h"
#include "engine/process/process_networks.h"
#include "engine/process/process_tasks.h"
#include "engine/shim/links.h"

namespace muster::engine {
namespace {

Network4 network(const std::string& text) {
  const auto read = read_network(text);
  EXPECT_TRUE(read) << text;
  return read ? *read : Network4{};
}

TEST(Network4, IsReadWithoutTheBitsOfItsHosts) {
  EXPECT_EQ(network_text(network("10.213.7.9/16")), "10.213.0.0/16");
  EXPECT_EQ(network_text(network("10.0.0.1")), "10.0.0.1/32");
  EXPECT_EQ(network_text(network("0.0.0.0/0")), "0.0.0.0/0");
  for (const char* wrong : {"", "10.0.0", "10.0.0.0/33", "10.0.0.0/", "10.0.0.0/x", "fe80::/10"}) {
    EXPECT_FALSE(read_network(wrong)) << wrong;
  }
}

TEST(Network4, OverlapsNetworksWithACommonAddress) {
  EXPECT_TRUE(overlap(network("10.0.0.0/8"), network("10.213.0.0/16")));
  EXPECT_TRUE(overlap(network("10.213.0.0/16"), network("10.0.0.0/8")));
  EXPECT_FALSE(overlap(network("10.213.0.0/22"), network("10.213.4.0/22")));
  EXPECT_TRUE(overlap(network("0.0.0.0/0"), network("255.255.255.255")));
}

class ResolverOfJobs : public testing::Test {
 protected:
  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path().string() + path;
    std::filesystem::create_directories(file.parent_path());
    ASSERT_TRUE(base::write_file(file, text));
  }
  Resolver resolver(const std::vector<std::string>& configured = {}) {
    return resolver_for_jobs(configured, folder_.path().string());
  }

  base::TestFolder folder_;
};

TEST_F(ResolverOfJobs, KeepsTheServersThatJobsCanReach) {
  write("/etc/resolv.conf",
        "# made by hand\nsearch lab.example\nnameserver 127.0.0.1\nnameserver 10.0.0.53\n"
        "nameserver fe80::1\noptions edns0\n");
  EXPECT_EQ(resolver().text, "search lab.example\noptions edns0\nnameserver 10.0.0.53\n");
  EXPECT_EQ(resolver().nameservers, std::vector<std::string>{"10.0.0.53"});
}

TEST_F(ResolverOfJobs, AsksTheServersOfALocalResolver) {
  write("/etc/resolv.conf", "nameserver 127.0.0.53\noptions trust-ad\n");
  write("/run/systemd/resolve/resolv.conf", "nameserver 192.168.1.1\n");
  EXPECT_EQ(resolver().text, "options trust-ad\nnameserver 192.168.1.1\n");
}

TEST_F(ResolverOfJobs, AsksThoseThatAreConfigured) {
  write("/etc/resolv.conf", "nameserver 10.0.0.53\n");
  EXPECT_EQ(resolver({"9.9.9.9"}).text, "nameserver 9.9.9.9\n");
}

TEST_F(ResolverOfJobs, HasNoServerIfNoServerIsReachable) {
  write("/etc/resolv.conf", "nameserver 127.0.0.1\n");
  EXPECT_TRUE(resolver().nameservers.empty());
  EXPECT_EQ(resolver().text, "");
}

TEST(RulesOfAServer, AllowNameserversBeforeTheyRefuseNetworks) {
  const std::string rules = rules_text("3fa9c1", network("10.213.4.0/22"),
                                       {network("169.254.0.0/16")}, {"169.254.169.254"});
  const size_t servers =
      rules.find("ip daddr { 169.254.169.254 } meta l4proto { tcp, udp } th dport 53");
  const size_t refused = rules.find("ip daddr 169.254.0.0/16 reject");
  EXPECT_NE(servers, std::string::npos);
  EXPECT_LT(servers, refused);
  EXPECT_NE(refused, std::string::npos);
  EXPECT_NE(rules.find("iifname \"muster-3fa9c1\" oifname \"muster-*\" reject"), std::string::npos);
  EXPECT_NE(rules.find("ip saddr 10.213.4.0/22 oifname != \"muster-*\" masquerade"),
            std::string::npos);
}

TEST(RulesWithPasta, RefuseTheMachineItself) {
  const std::string rules =
      rules_for_pasta({network("169.254.0.0/16")}, {*read_address("172.17.0.1")}, {"10.0.0.53"});
  EXPECT_NE(rules.find("ip daddr 172.17.0.1 reject"), std::string::npos);
  EXPECT_LT(rules.find("ip daddr 10.0.0.53 meta"), rules.find("ip daddr 169.254.0.0/16 reject"));
}

TEST(Egress, OfAnOrdinaryAccountIsRefusedWithTheReason) {
  constexpr uid_t kNobody = 65534;
  EXPECT_EXIT(
      {
        if (::geteuid() == 0 && ::setuid(kNobody) != 0) ::_exit(2);
        const auto checked = Egress::check({});
        if (!checked) std::fputs(checked.error().what.c_str(), stderr);
        ::_exit(checked ? 1 : 0);
      },
      testing::ExitedWithCode(0),
      "^jobs have no way to the Internet: the server does not run as root$");
}

/// In a network of its own. 0: as it should be, or this account may not create an egress.
int outcome_of_a_kill(const std::filesystem::path& jobs) {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0) return 0;
  const EgressOptions options{
      .jobs_folder = jobs.string(), .range = network("10.213.0.0/16"), .refused = {}};
  if (!Egress::check(options)) return 0;
  auto killed = Egress::open(options);
  if (!killed) return 2;
  const auto is_there = [&] { return ::if_nametoindex(killed->bridge().c_str()) != 0; };
  if (!is_there()) return 3;
  if (!Egress::remove_left(jobs.string() + "-of-others") || !is_there()) return 4;

  base::EventLoop loop;
  ProcessEngine engine(loop, {.folder = jobs}, Node{});
  engine.listen([](const TaskReport&) {});

  if (is_there()) return 5;
  return std::system("PATH=$PATH:/usr/sbin:/sbin; ! nft list tables | grep -q muster") == 0 ? 0 : 6;
}

TEST(Egress, OfAKilledServerIsRemovedByTheNextServerIfThatHasNone) {
  const base::TestFolder jobs;
  EXPECT_EXIT(::_exit(outcome_of_a_kill(jobs)), testing::ExitedWithCode(0), "");
}

/// Likewise, while a gang is connected. A device with the name of its cable stands for the gang.
int outcome_of_a_kill_with_a_gang(const std::filesystem::path& jobs) {
  if (::geteuid() != 0 || ::unshare(CLONE_NEWNET) != 0) return 0;
  const EgressOptions options{
      .jobs_folder = jobs.string(), .range = network("10.213.0.0/16"), .refused = {}};
  if (!Egress::check(options)) return 0;
  auto killed = Egress::open(options);
  if (!killed) return 2;
  const auto cable = killed->next_cable();
  auto links = Links::open();
  if (!cable || !links || !links->make_bridge(cable->port)) return 3;
  const auto is_there = [&] { return ::if_nametoindex(killed->bridge().c_str()) != 0; };

  base::EventLoop loop;
  const ProcessTasks tasks(loop, jobs);
  const ProcessEngineOptions folder_only{.folder = jobs};
  ProcessNetworks networks(loop, tasks, folder_only);
  networks.remove_left_egress();
  if (!is_there()) return 4;
  networks.leave({.job_id = "j1", .attempt = 1});
  if (!is_there()) return 5;  // the gang's last process is gone, and its network not yet
  if (!links->remove(cable->port)) return 6;
  base::EventLoop::Interest look;
  const std::function<void()> look_again = [&] {
    if (!is_there()) return loop.stop();
    look = loop.after(std::chrono::milliseconds(10), look_again);
  };
  look_again();
  loop.run();
  return 0;
}

TEST(Egress, OfAKilledServerIsRemovedOnceItsLastGangHasEnded) {
  const base::TestFolder jobs;
  EXPECT_EXIT(::_exit(outcome_of_a_kill_with_a_gang(jobs)), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace muster::engine
