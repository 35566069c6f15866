#include "launch/network.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "base/number.h"
#include "base/text.h"

namespace muster::launch {

namespace {

constexpr int kFirstPort = 10'000;
constexpr int kPorts = 22'000;

// 127.0.x.y is where others live: localhost, Debian's 127.0.1.1, systemd-resolved's 127.0.0.53.
constexpr uint32_t kFirstNet = 16;
constexpr uint32_t kNets = 224;

// Addresses with less than this in common are of different networks.
constexpr int kShortestPrefix = 8;
// PRRTE 3 crashes over a network of one address.
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

/// Ports from one on, without those that are given away.
class Ports {
 public:
  void keep(int port) { taken_.insert(port); }

  std::vector<int> from(int first, size_t count) {
    std::vector<int> ports;
    for (int at = first; ports.size() < count; at = (at + 1) % kPorts) {
      if (taken_.insert(kFirstPort + at).second) ports.push_back(kFirstPort + at);
    }
    return ports;
  }

 private:
  std::set<int> taken_;
};

std::vector<std::string> addresses_of(const std::array<uint8_t, 8>& random, Reach reach,
                                      const std::vector<NetworkPlace>& tasks) {
  const uint32_t net = 127U << 24 | (kFirstNet + random[0] % kNets) << 16;
  // The third byte stops short of 255 so that the tasks of a wide gang stay within the net.
  const uint32_t base = net | static_cast<uint32_t>(random[1] % 250) << 8;
  std::vector<std::string> addresses;
  for (size_t i = 0; i < tasks.size(); ++i) {
    addresses.push_back(reach == Reach::kNames   ? tasks[i].hostname
                        : reach == Reach::kHosts ? tasks[i].node_address
                                                 : dotted(base + static_cast<uint32_t>(i) + 1));
  }
  return addresses;
}

}  // namespace

GangNetwork make_network(const std::array<uint8_t, 8>& random, Reach reach,
                         const std::vector<NetworkPlace>& tasks) {
  const int first = (random[2] << 8 | random[3]) % kPorts;
  const int second = (random[4] << 8 | random[5]) % (kPorts - 1);
  const int third = (random[6] << 8 | random[7]) % kPorts;
  const int rendezvous = kFirstPort + (second < first ? second : second + 1);
  Ports ports;
  ports.keep(rendezvous);
  const bool share_addresses = reach == Reach::kHosts;
  GangNetwork network{.addresses = addresses_of(random, reach, tasks),
                      .shell_ports = ports.from(first, share_addresses ? tasks.size() : 1),
                      .bind = reach == Reach::kLoopback ? "" : "0.0.0.0",
                      .rendezvous_port = rendezvous,
                      .service_ports = {}};
  network.shell_ports.resize(tasks.size(), network.shell_ports.front());
  network.service_ports = ports.from((third + 1) % kPorts, tasks.size());
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
