#include "launch/network.h"

#include <gtest/gtest.h>

#include <set>

namespace muster::launch {
namespace {

std::array<uint8_t, 8> bytes(int number) {
  std::array<uint8_t, 8> result{};
  for (size_t i = 0; i < result.size(); ++i) {
    result[i] = static_cast<uint8_t>(number * 37 + static_cast<int>(i) * 101);
  }
  return result;
}

/// So many tasks on one machine.
GangNetwork loopback(const std::array<uint8_t, 8>& random, size_t tasks) {
  return make_network(random, Reach::kLoopback, std::vector<NetworkPlace>(tasks));
}

TEST(Network, GivesEveryTaskAnAddressOfItsOwn) {
  const GangNetwork network = loopback({0, 0, 0, 0, 0, 0, 0, 0}, 3);

  EXPECT_EQ(network.addresses,
            (std::vector<std::string>{"127.16.0.1", "127.16.0.2", "127.16.0.3"}));
}

TEST(Network, StaysInsideTheLoopbackNetAndAwayFromLocalhostForAnyRandomBytes) {
  for (int number = 0; number < 256; ++number) {
    const GangNetwork network = loopback(bytes(number), 1001);
    EXPECT_EQ(std::set(network.addresses.begin(), network.addresses.end()).size(), 1001U);
    for (const std::string& address : network.addresses) {
      EXPECT_TRUE(address.starts_with("127."));
      EXPECT_FALSE(address.starts_with("127.0."));
      EXPECT_EQ(address.find("256"), std::string::npos);
    }
  }
}

TEST(Network, ChoosesTwoPortsBelowTheEphemeralRange) {
  for (int number = 0; number < 256; ++number) {
    const GangNetwork network = loopback(bytes(number), 1);
    for (const int port : {network.shell_ports[0], network.rendezvous_port}) {
      EXPECT_GE(port, 10'000);
      EXPECT_LT(port, 32'768);
    }
    EXPECT_NE(network.shell_ports[0], network.rendezvous_port);
  }
}

TEST(Network, ChoosesAPortForEachTaskThatNobodyElseHas) {
  for (int number = 0; number < 256; ++number) {
    const GangNetwork network = loopback(bytes(number), 1001);
    std::set<int> ports(network.service_ports.begin(), network.service_ports.end());
    EXPECT_EQ(ports.size(), 1001U);
    EXPECT_GE(*ports.begin(), 10'000);
    EXPECT_LT(*ports.rbegin(), 32'768);
    EXPECT_FALSE(ports.contains(network.shell_ports[0]));
    EXPECT_FALSE(ports.contains(network.rendezvous_port));
  }
}

const std::vector<NetworkPlace> kPlaces{
    {"dist-launcher", "10.0.0.1"}, {"dist-worker-0", "10.0.0.1"}, {"dist-worker-1", "10.0.0.2"}};

TEST(Network, HasTheHostNamesForAddressesWhereANetworkOfTheJobKnowsThem) {
  const GangNetwork network = make_network(bytes(1), Reach::kNames, kPlaces);

  EXPECT_EQ(network.addresses,
            (std::vector<std::string>{"dist-launcher", "dist-worker-0", "dist-worker-1"}));
  EXPECT_EQ(network.bind, "0.0.0.0");
  EXPECT_EQ(std::set(network.shell_ports.begin(), network.shell_ports.end()).size(), 1U);
}

TEST(Network, GivesEveryTaskPortsOfItsOwnWhereThoseOfANodeShareItsAddress) {
  for (int number = 0; number < 256; ++number) {
    const GangNetwork network = make_network(bytes(number), Reach::kHosts, kPlaces);
    EXPECT_EQ(network.addresses, (std::vector<std::string>{"10.0.0.1", "10.0.0.1", "10.0.0.2"}));
    std::set<int> ports(network.shell_ports.begin(), network.shell_ports.end());
    ports.insert(network.service_ports.begin(), network.service_ports.end());
    ports.insert(network.rendezvous_port);
    EXPECT_EQ(ports.size(), 7U);
    EXPECT_GE(*ports.begin(), 10'000);
    EXPECT_LT(*ports.rbegin(), 32'768);
  }
}

TEST(CommonNetwork, IsTheSmallestThatHasAllAddresses) {
  EXPECT_EQ(common_network({"10.9.0.1", "10.9.0.2"}), "10.9.0.0/24");
  EXPECT_EQ(common_network({"10.9.0.1"}), "10.9.0.0/24");
  EXPECT_EQ(common_network({"10.9.0.1", "10.9.3.2"}), "10.9.0.0/22");
  EXPECT_EQ(common_network({"10.1.2.3", "10.200.0.1"}), "10.0.0.0/8");
}

TEST(CommonNetwork, IsNoneWhereAddressesHaveNothingInCommonOrAreNames) {
  EXPECT_EQ(common_network({"10.9.0.1", "192.168.0.1"}), "");
  EXPECT_EQ(common_network({"10.9.0.1", "node-2"}), "");
  EXPECT_EQ(common_network({"10.9.0.1", "10.9.0.256"}), "");
  EXPECT_EQ(common_network({}), "");
}

}  // namespace
}  // namespace muster::launch
