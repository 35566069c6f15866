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

TEST(Network, GivesEveryTaskAnAddressOfItsOwn) {
  const GangNetwork network = make_network({0, 0, 0, 0, 0, 0, 0, 0}, 3);

  EXPECT_EQ(network.addresses,
            (std::vector<std::string>{"127.16.0.1", "127.16.0.2", "127.16.0.3"}));
}

TEST(Network, StaysInsideTheLoopbackNetAndAwayFromLocalhostForAnyRandomBytes) {
  for (int number = 0; number < 256; ++number) {
    const GangNetwork network = make_network(bytes(number), 1001);
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
    const GangNetwork network = make_network(bytes(number), 1);
    for (const int port : {network.ssh_port, network.rendezvous_port}) {
      EXPECT_GE(port, 10'000);
      EXPECT_LT(port, 32'768);
    }
    EXPECT_NE(network.ssh_port, network.rendezvous_port);
  }
}

TEST(Network, ChoosesAPortForEachTaskThatNobodyElseHas) {
  for (int number = 0; number < 256; ++number) {
    const GangNetwork network = make_network(bytes(number), 1001);
    std::set<int> ports(network.service_ports.begin(), network.service_ports.end());
    EXPECT_EQ(ports.size(), 1001U);
    EXPECT_GE(*ports.begin(), 10'000);
    EXPECT_LT(*ports.rbegin(), 32'768);
    EXPECT_FALSE(ports.contains(network.ssh_port));
    EXPECT_FALSE(ports.contains(network.rendezvous_port));
  }
}

}  // namespace
}  // namespace muster::launch
