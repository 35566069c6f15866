#include "launch/network.h"

#include <gtest/gtest.h>

#include <algorithm>
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

/// This number of tasks on one machine.
GangNetwork loopback(const std::array<uint8_t, 8>& random, size_t tasks) {
  return make_network(random, Reach::kLoopback, std::vector<NetworkPlace>(tasks));
}

TEST(Network, GivesEveryTaskItsOwnAddress) {
  const GangNetwork network = loopback({}, 3);

  EXPECT_EQ(network.addresses,
            (std::vector<std::string>{"127.16.0.1", "127.16.0.2", "127.16.0.3"}));
}

TEST(Network, StaysInTheLoopbackNetAndAvoidsLocalhostForAnyRandomBytes) {
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

TEST(Network, ChoosesAUniquePortForEachTask) {
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

/// The network of the first `count` tasks of a wider one.
GangNetwork first_of(GangNetwork network, size_t count) {
  network.addresses.resize(count);
  network.shell_ports.resize(count);
  network.service_ports.resize(count);
  return network;
}

std::vector<NetworkPlace> places(size_t count) {
  std::vector<NetworkPlace> all;
  for (size_t i = 0; i < count; ++i) {
    const std::string number = std::to_string(i);
    all.push_back({.hostname = "w-" + number, .node_address = "10.0.0." + number});
  }
  return all;
}

TEST(Network, GivesLaterTasksNoAddressOrPortOfEarlierTasks) {
  // Random bytes with which the ports of remote shells run into those of services and the
  // rendezvous.
  const std::array<uint8_t, 8> close{9, 9, 0, 7, 0, 9, 0, 7};
  for (const Reach reach : {Reach::kLoopback, Reach::kNames, Reach::kHosts}) {
    for (int number = -1; number < 64; ++number) {
      const auto random = number < 0 ? close : bytes(number);
      const GangNetwork wide = make_network(random, reach, places(600));
      for (const size_t count : {1, 2, 3, 100, 254, 255, 256, 599}) {
        EXPECT_EQ(make_network(random, reach, places(count)), first_of(wide, count));
      }
    }
  }
}

TEST(Network, ContinuesWithTheNextBlockOfAddresses) {
  const GangNetwork network = loopback({}, 514);

  EXPECT_EQ(network.addresses[254], "127.16.0.255");
  EXPECT_EQ(network.addresses[255], "127.16.1.0");
  EXPECT_EQ(network.addresses[513], "127.16.2.2");
}

TEST(Network, StaysWithinTheNetForMoreTasksThanAddresses) {
  // The last block of the second to last net, for a very large number of tasks.
  const GangNetwork network = loopback({222, 249}, 70'000);

  EXPECT_EQ(network.addresses[1789], "127.238.255.254");
  EXPECT_EQ(network.addresses[1790], "127.238.0.1");
  for (const std::string& address : network.addresses) {
    EXPECT_TRUE(address.starts_with("127.238.")) << address;
  }
}

TEST(Network, ReusesPortsOnlyAfterAllWereUsed) {
  const GangNetwork network = make_network(bytes(5), Reach::kHosts, places(25'000));

  std::set<int> first_half;
  for (size_t i = 0; i < 10'999; ++i) {
    EXPECT_TRUE(first_half.insert(network.shell_ports[i]).second);
    EXPECT_TRUE(first_half.insert(network.service_ports[i]).second);
  }
  EXPECT_EQ(
      std::count(network.shell_ports.begin(), network.shell_ports.end(), network.rendezvous_port),
      0);
}

const std::vector<NetworkPlace> kPlaces{
    {"dist-launcher", "10.0.0.1"}, {"dist-worker-0", "10.0.0.1"}, {"dist-worker-1", "10.0.0.2"}};

TEST(Network, UsesHostNamesOnANetworkOfTheJob) {
  const GangNetwork network = make_network(bytes(1), Reach::kNames, kPlaces);

  EXPECT_EQ(network.addresses,
            (std::vector<std::string>{"dist-launcher", "dist-worker-0", "dist-worker-1"}));
  EXPECT_EQ(network.bind, "0.0.0.0");
  EXPECT_EQ(std::set(network.shell_ports.begin(), network.shell_ports.end()).size(), 1U);
}

TEST(Network, GivesEveryTaskItsOwnPortsIfTasksShareAnAddress) {
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

TEST(CommonNetwork, IsTheSmallestThatContainsAllAddresses) {
  EXPECT_EQ(common_network({"10.9.0.1", "10.9.0.2"}), "10.9.0.0/24");
  EXPECT_EQ(common_network({"10.9.0.1"}), "10.9.0.0/24");
  EXPECT_EQ(common_network({"10.9.0.1", "10.9.3.2"}), "10.9.0.0/22");
  EXPECT_EQ(common_network({"10.1.2.3", "10.200.0.1"}), "10.0.0.0/8");
}

TEST(CommonNetwork, IsEmptyForUnrelatedAddressesAndForNames) {
  EXPECT_EQ(common_network({"10.9.0.1", "192.168.0.1"}), "");
  EXPECT_EQ(common_network({"10.9.0.1", "node-2"}), "");
  EXPECT_EQ(common_network({"10.9.0.1", "10.9.0.256"}), "");
  EXPECT_EQ(common_network({}), "");
}

}  // namespace
}  // namespace muster::launch
