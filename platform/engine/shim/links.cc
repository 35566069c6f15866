#include "engine/shim/links.h"

#include <arpa/inet.h>
#include <linux/if_addr.h>
#include <linux/if_bridge.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <vector>

namespace muster::engine {

using base::Result;
using base::UniqueFd;

std::string address_text(Address4 address) {
  std::array<char, INET_ADDRSTRLEN> text{};
  const in_addr raw{.s_addr = htonl(address)};
  ::inet_ntop(AF_INET, &raw, text.data(), text.size());
  return text.data();
}

Result<Address4> read_address(const std::string& text) {
  in_addr raw{};
  if (::inet_pton(AF_INET, text.c_str(), &raw) == 1) return ntohl(raw.s_addr);
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "invalid address '" + text + "': expected one such as 10.0.0.1"};
}

/// A message to the kernel: a header, a struct of its kind, and attributes, some of which hold
/// others.
class Links::Request {
 public:
  template <typename Body>
  Request(uint16_t type, uint16_t flags, const Body& body) {
    nlmsghdr header{};
    header.nlmsg_type = type;
    header.nlmsg_flags = static_cast<uint16_t>(NLM_F_REQUEST | NLM_F_ACK | flags);
    add_bytes(&header, sizeof header);
    add_bytes(&body, sizeof body);
  }

  void add(uint16_t type, const void* data, size_t size) {
    const rtattr attribute{.rta_len = static_cast<uint16_t>(RTA_LENGTH(size)), .rta_type = type};
    add_bytes(&attribute, sizeof attribute);
    if (size > 0) add_bytes(data, size);
  }
  void add(uint16_t type, const std::string& text) { add(type, text.c_str(), text.size() + 1); }
  void add(uint16_t type, uint32_t number) { add(type, &number, sizeof number); }
  void add_flag(uint16_t type, uint8_t value) { add(type, &value, sizeof value); }

  /// Begins an attribute that holds others; end() ends the last one begun.
  void begin(uint16_t type) {
    open_.push_back(bytes_.size());
    add(type, nullptr, 0);
  }
  /// The same, with a struct in front of those others.
  template <typename Body>
  void begin(uint16_t type, const Body& body) {
    begin(type);
    add_bytes(&body, sizeof body);
  }
  void end() {
    const size_t at = open_.back();
    open_.pop_back();
    const auto size = static_cast<uint16_t>(bytes_.size() - at);
    std::memcpy(bytes_.data() + at, &size, sizeof size);
  }

  const std::vector<char>& finish(uint32_t sequence) {
    nlmsghdr header{};
    std::memcpy(&header, bytes_.data(), sizeof header);
    header.nlmsg_len = static_cast<uint32_t>(bytes_.size());
    header.nlmsg_seq = sequence;
    std::memcpy(bytes_.data(), &header, sizeof header);
    return bytes_;
  }

 private:
  void add_bytes(const void* data, size_t size) {
    const auto* const first = static_cast<const char*>(data);
    bytes_.insert(bytes_.end(), first, first + size);
    bytes_.resize(NLMSG_ALIGN(bytes_.size()));
  }

  std::vector<char> bytes_;
  std::vector<size_t> open_;
};

namespace {

ifinfomsg any_link() {
  ifinfomsg link{};
  link.ifi_family = AF_UNSPEC;
  return link;
}

}  // namespace

Result<Links> Links::open() {
  UniqueFd socket(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  if (!socket) return base::system_error("cannot open a socket to the kernel's network", errno);
  return Links(std::move(socket));
}

Result<void> Links::ask(Request& request, const std::string& what, int forgiven) {
  const std::vector<char>& bytes = request.finish(++sequence_);
  if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0) {
    return base::system_error("cannot " + what, errno);
  }
  std::array<char, 8192> buffer{};
  while (true) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return base::system_error("cannot " + what, errno);
    nlmsghdr header{};
    nlmsgerr answer{};
    if (static_cast<size_t>(count) < sizeof header + sizeof answer) continue;
    std::memcpy(&header, buffer.data(), sizeof header);
    if (header.nlmsg_type != NLMSG_ERROR || header.nlmsg_seq != sequence_) continue;
    std::memcpy(&answer, buffer.data() + NLMSG_HDRLEN, sizeof answer);
    if (answer.error == 0 || -answer.error == forgiven) return {};
    return base::system_error("cannot " + what, -answer.error);
  }
}

Result<int> Links::index_of(const std::string& name) {
  Request request(RTM_GETLINK, 0, any_link());
  request.add(IFLA_IFNAME, name);
  const std::vector<char>& bytes = request.finish(++sequence_);
  if (::send(socket_.get(), bytes.data(), bytes.size(), 0) < 0) {
    return base::system_error("cannot look for the network device " + name, errno);
  }
  std::array<char, 16384> buffer{};
  int found = 0;
  while (true) {
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < static_cast<ssize_t>(sizeof(nlmsghdr))) {
      return base::system_error("cannot look for the network device " + name, errno);
    }
    nlmsghdr header{};
    std::memcpy(&header, buffer.data(), sizeof header);
    if (header.nlmsg_seq != sequence_) continue;
    if (header.nlmsg_type == RTM_NEWLINK) {
      ifinfomsg link{};
      std::memcpy(&link, buffer.data() + NLMSG_HDRLEN, sizeof link);
      found = link.ifi_index;
    } else if (header.nlmsg_type == NLMSG_ERROR) {
      nlmsgerr answer{};
      std::memcpy(&answer, buffer.data() + NLMSG_HDRLEN, sizeof answer);
      if (answer.error != 0) {
        return base::system_error("cannot find the network device " + name, -answer.error);
      }
      return found;
    }
  }
}

Result<void> Links::make_bridge(const std::string& name) {
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, any_link());
  request.add(IFLA_IFNAME, name);
  request.begin(IFLA_LINKINFO);
  request.add(IFLA_INFO_KIND, "bridge");
  request.end();
  return ask(request, "make the bridge " + name, EEXIST);
}

Result<void> Links::make_cable(const Cable& cable, const std::string& inner, pid_t pid) {
  MUSTER_TRY(const int bridge, index_of(cable.bridge));
  Request request(RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, any_link());
  request.add(IFLA_IFNAME, cable.port);
  request.begin(IFLA_LINKINFO);
  request.add(IFLA_INFO_KIND, "veth");
  request.begin(IFLA_INFO_DATA);
  request.begin(VETH_INFO_PEER, any_link());
  request.add(IFLA_IFNAME, inner);
  request.add(IFLA_NET_NS_PID, static_cast<uint32_t>(pid));
  request.end();
  request.end();
  request.end();
  MUSTER_CHECK(ask(request, "make the network device " + cable.port));
  // A port is isolated before it is switched on.
  MUSTER_TRY(const int port, index_of(cable.port));
  ifinfomsg link = any_link();
  link.ifi_index = port;
  Request joins(RTM_NEWLINK, 0, link);
  joins.add(IFLA_MASTER, static_cast<uint32_t>(bridge));
  auto done = ask(joins, "connect " + cable.port + " to the bridge " + cable.bridge);
  if (done) {
    link.ifi_family = AF_BRIDGE;
    Request isolates(RTM_SETLINK, 0, link);
    isolates.begin(IFLA_PROTINFO | NLA_F_NESTED);
    isolates.add_flag(IFLA_BRPORT_ISOLATED, 1);
    isolates.end();
    done = ask(isolates, "isolate " + cable.port);
  }
  if (done) done = switch_on(cable.port);
  if (done) return {};
  [[maybe_unused]] const auto removed = remove(cable.port);
  return done;
}

Result<void> Links::add_address(const std::string& name, Address4 address, int prefix) {
  MUSTER_TRY(const int index, index_of(name));
  ifaddrmsg body{};
  body.ifa_family = AF_INET;
  body.ifa_prefixlen = static_cast<uint8_t>(prefix);
  body.ifa_index = static_cast<uint32_t>(index);
  Request request(RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, body);
  const uint32_t raw = htonl(address);
  request.add(IFA_LOCAL, raw);
  request.add(IFA_ADDRESS, raw);
  return ask(request, "give " + name + " the address " + address_text(address), EEXIST);
}

Result<void> Links::switch_on(const std::string& name) {
  MUSTER_TRY(const int index, index_of(name));
  ifinfomsg link = any_link();
  link.ifi_index = index;
  link.ifi_flags = IFF_UP;
  link.ifi_change = IFF_UP;
  Request request(RTM_NEWLINK, 0, link);
  return ask(request, "switch " + name + " on");
}

Result<void> Links::add_default_route(Address4 gateway) {
  rtmsg body{};
  body.rtm_family = AF_INET;
  body.rtm_table = RT_TABLE_MAIN;
  body.rtm_protocol = RTPROT_BOOT;
  body.rtm_scope = RT_SCOPE_UNIVERSE;
  body.rtm_type = RTN_UNICAST;
  Request request(RTM_NEWROUTE, NLM_F_CREATE | NLM_F_EXCL, body);
  request.add(RTA_GATEWAY, htonl(gateway));
  return ask(request, "add a route to " + address_text(gateway));
}

Result<void> Links::remove(const std::string& name) {
  Request request(RTM_DELLINK, 0, any_link());
  request.add(IFLA_IFNAME, name);
  return ask(request, "remove the network device " + name, ENODEV);
}

}  // namespace muster::engine
