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

// 127.0.x.y is where others live: localhost, Debian's 127.0.1.1, systemd-resolved's 127.0.0.53.
constexpr uint32_t kFirstNet = 16;
constexpr uint32_t kNets = 224;
// Of a net: all but x.y.0.0 and x.y.255.255.
constexpr uint32_t kAddresses = 0xfffe;

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

/// Gives ports away, each once until all are given away. Whoever had the first of them has then
/// long left: a gang that keeps running gets more tasks only in the place of others.
class Ports {
 public:
  explicit Ports(int kept) : kept_(kept), taken_{kept} {}

  /// The first that is free from `at` on, which moves behind it.
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
    // Behind the last comes the first again, so that no gang has addresses of another net.
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
  // Task by task, so that more tasks change nothing for those before them.
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
