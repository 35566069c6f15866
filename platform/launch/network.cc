#include "launch/network.h"

namespace muster::launch {

namespace {

constexpr int kFirstPort = 10'000;
constexpr int kPorts = 22'000;

// 127.0.x.y is where others live: localhost, Debian's 127.0.1.1, systemd-resolved's 127.0.0.53.
constexpr uint32_t kFirstNet = 16;
constexpr uint32_t kNets = 224;

std::string dotted(uint32_t host) {
  return "127." + std::to_string(host >> 16 & 0xff) + "." + std::to_string(host >> 8 & 0xff) + "." +
         std::to_string(host & 0xff);
}

}  // namespace

GangNetwork make_network(const std::array<uint8_t, 8>& random, size_t tasks) {
  const uint32_t net = kFirstNet + random[0] % kNets;
  // The third byte stops short of 255 so that the tasks of a wide gang stay within the net.
  const uint32_t base = net << 16 | static_cast<uint32_t>(random[1] % 250) << 8;
  GangNetwork network;
  for (size_t i = 0; i < tasks; ++i) {
    network.addresses.push_back(dotted(base + static_cast<uint32_t>(i) + 1));
  }
  const int first = (random[2] << 8 | random[3]) % kPorts;
  const int second = (random[4] << 8 | random[5]) % (kPorts - 1);
  network.ssh_port = kFirstPort + first;
  network.rendezvous_port = kFirstPort + (second < first ? second : second + 1);
  int port = (random[6] << 8 | random[7]) % kPorts;
  while (network.service_ports.size() < tasks) {
    port = (port + 1) % kPorts;
    const int candidate = kFirstPort + port;
    if (candidate == network.ssh_port || candidate == network.rendezvous_port) continue;
    network.service_ports.push_back(candidate);
  }
  return network;
}

}  // namespace muster::launch
