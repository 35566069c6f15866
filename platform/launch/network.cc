#include "launch/network.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "base/text.h"
#include "base/units.h"

namespace muster::launch {

namespace {

constexpr int kFirstPort = 10'000;
constexpr int kPorts = 22'000;

// 127.0.x.y is in use: localhost, Debian's 127.0.1.1, systemd-resolved's 127.0.0.53.
constexpr uint32_t kFirstNet = 16;
constexpr uint32_t kNets = 224;
// In a net: all except x.y.0.0 and x.y.255.255.
constexpr uint32_t kAddresses = 0xfffe;

// Addresses with a shorter common prefix are in different networks.
constexpr int kShortestPrefix = 8;
// PRRTE 3 crashes with a network of a single address.
constexpr int kLongestPrefix = 24;

std::string dotted(uint32_t address) {
  return std::to_string(address >> 24) + "." + std::to_string(address >> 16 & 0xff) + "." +
         std::to_string(address >> 8 & 0xff) + "." + std::to_string(address & 0xff);
}

std::optional<uint32_t> read_dotted(const std::string& text) {
  const std::vector<std::string> parts = base::split(text, '.');
  if (parts.size() != 4) return std::nullopt;
  uint32_t address = 0;
  for (const std::string& part : parts) {
    const auto number = base::number_of<uint8_t>(part);
    if (!number) return std::nullopt;
    address = address << 8 | *number;
  }
  return address;
}

/// Hands out ports. After all ports were used, it starts again with the first: its task has left by
/// then, because new tasks of a running gang only replace others.
class Ports {
 public:
  explicit Ports(int kept) : kept_(kept), taken_{kept} {}

  /// The first unused port from `at` on; `at` moves past it.
  int next(int& at) {
    if (taken_.size() == kPorts) taken_ = {kept_};
    int port = 0;
    do {
      port = kFirstPort + at;
      at = (at + 1) % kPorts;
    } while (!taken_.insert(port).second);
    return port;
  }

 private:
  int kept_;
  std::set<int> taken_;
};

std::vector<std::string> addresses_of(const std::array<uint8_t, 8>& random, Reach reach,
                                      const std::vector<NetworkPlace>& tasks) {
  const uint32_t net = 127U << 24 | (kFirstNet + random[0] % kNets) << 16;
  const uint32_t first = static_cast<uint32_t>(random[1] % 250) << 8;
  std::vector<std::string> addresses;
  for (uint32_t i = 0; i < tasks.size(); ++i) {
    // After the last address, the first is used again, so that a gang stays within one net.
    const uint32_t number = (first + i) % kAddresses + 1;
    addresses.push_back(reach == Reach::kNames   ? tasks[i].hostname
                        : reach == Reach::kHosts ? tasks[i].node_address
                                                 : dotted(net | number));
  }
  return addresses;
}

}  // namespace

GangNetwork make_network(const std::array<uint8_t, 8>& random, Reach reach,
                         const std::vector<NetworkPlace>& tasks) {
  int shell = (random[2] << 8 | random[3]) % kPorts;
  const int kept = (random[4] << 8 | random[5]) % (kPorts - 1);
  int service = ((random[6] << 8 | random[7]) % kPorts + 1) % kPorts;
  GangNetwork network{.addresses = addresses_of(random, reach, tasks),
                      .shell_ports = {},
                      .bind = reach == Reach::kLoopback ? "" : "0.0.0.0",
                      .rendezvous_port = kFirstPort + (kept < shell ? kept : kept + 1),
                      .service_ports = {}};
  // In the order of tasks, so that additional tasks do not change the ports of earlier tasks.
  Ports ports(network.rendezvous_port);
  for (size_t i = 0; i < tasks.size(); ++i) {
    const bool shares = i > 0 && reach != Reach::kHosts;
    network.shell_ports.push_back(shares ? network.shell_ports.front() : ports.next(shell));
    network.service_ports.push_back(ports.next(service));
  }
  return network;
}

std::string common_network(const std::vector<std::string>& addresses) {
  std::optional<uint32_t> first;
  uint32_t differing = 0;
  for (const std::string& text : addresses) {
    const auto address = read_dotted(text);
    if (!address) return "";
    if (!first) first = address;
    differing |= *address ^ *first;
  }
  const int prefix = std::min(std::countl_zero(differing), kLongestPrefix);
  if (!first || prefix < kShortestPrefix) return "";
  const uint32_t mask = ~(~0U >> prefix);
  return dotted(*first & mask) + "/" + std::to_string(prefix);
}

}  // namespace muster::launch
