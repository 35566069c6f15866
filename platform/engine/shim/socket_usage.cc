#include "engine/shim/socket_usage.h"

#include <dirent.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "base/unique_fd.h"
#include "base/units.h"

namespace muster::engine {

namespace {

// As the kernel numbers them (include/net/tcp_states.h): bits of those that are of no use here.
constexpr uint32_t kTimeWait = 1U << 6;
constexpr uint32_t kClosed = 1U << 7;
constexpr uint32_t kListening = 1U << 10;
constexpr uint32_t kNewRequest = 1U << 12;
constexpr uint32_t kStates = 0xfffU & ~(kTimeWait | kClosed | kListening | kNewRequest);

struct Question {
  nlmsghdr header{};
  inet_diag_req_v2 what{};
};

bool request_sockets(int netlink, uint8_t family) {
  Question question{.header = {.nlmsg_len = sizeof question,
                               .nlmsg_type = SOCK_DIAG_BY_FAMILY,
                               .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
                    .what = {.sdiag_family = family,
                             .sdiag_protocol = IPPROTO_TCP,
                             .idiag_ext = 1U << (INET_DIAG_INFO - 1),
                             .idiag_states = kStates}};
  return ::send(netlink, &question, sizeof question, 0) == sizeof question;
}

/// The counters of an older kernel's tcp_info are missing.
bool read_tcp_info(const rtattr* attribute, TcpSocket& socket) {
  constexpr size_t kEnd = offsetof(tcp_info, tcpi_bytes_received) + sizeof(uint64_t);
  static_assert(offsetof(tcp_info, tcpi_bytes_acked) < kEnd);
  if (RTA_PAYLOAD(attribute) < kEnd) return false;
  tcp_info info{};
  std::memcpy(&info, RTA_DATA(attribute), kEnd);
  socket.sent = info.tcpi_bytes_acked;
  socket.received = info.tcpi_bytes_received;
  return true;
}

bool read_socket(const nlmsghdr* message, std::vector<TcpSocket>& sockets) {
  const auto* told =
      reinterpret_cast<const inet_diag_msg*>(reinterpret_cast<const char*>(message) + NLMSG_HDRLEN);
  TcpSocket socket{.cookie = uint64_t{told->id.idiag_cookie[1]} << 32 | told->id.idiag_cookie[0],
                   .inode = told->idiag_inode};
  auto room = static_cast<int>(message->nlmsg_len - NLMSG_LENGTH(sizeof *told));
  const auto* attribute = reinterpret_cast<const rtattr*>(told + 1);
  for (; RTA_OK(attribute, room); attribute = RTA_NEXT(attribute, room)) {
    if (attribute->rta_type != INET_DIAG_INFO) continue;
    if (!read_tcp_info(attribute, socket)) return false;
    sockets.push_back(socket);
  }
  return true;
}

enum class Answer { kMore, kDone, kRefused };

Answer read_answer(const char* bytes, size_t length, std::vector<TcpSocket>& sockets) {
  auto rest = static_cast<unsigned>(length);
  const auto* message = reinterpret_cast<const nlmsghdr*>(bytes);
  for (; NLMSG_OK(message, rest); message = NLMSG_NEXT(message, rest)) {
    if (message->nlmsg_type == NLMSG_DONE) return Answer::kDone;
    if (message->nlmsg_type == NLMSG_ERROR) return Answer::kRefused;
    if (!read_socket(message, sockets)) return Answer::kRefused;
  }
  return Answer::kMore;
}

/// Adds those of a family; false where the kernel does not tell.
bool add_sockets(int netlink, uint8_t family, std::vector<TcpSocket>& sockets) {
  if (!request_sockets(netlink, family)) return false;
  alignas(nlmsghdr) std::array<char, 32 << 10> buffer;
  while (true) {
    const ssize_t count = ::recv(netlink, buffer.data(), buffer.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    const Answer answer = read_answer(buffer.data(), static_cast<size_t>(count), sockets);
    if (answer != Answer::kMore) return answer == Answer::kDone;
  }
}

}  // namespace

std::optional<std::vector<TcpSocket>> tcp_sockets() {
  const base::UniqueFd netlink(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG));
  std::vector<TcpSocket> sockets;
  if (!netlink || !add_sockets(netlink.get(), AF_INET, sockets)) return std::nullopt;
  // A machine may be without IPv6.
  const size_t of_ipv4 = sockets.size();
  if (!add_sockets(netlink.get(), AF_INET6, sockets)) sockets.resize(of_ipv4);
  return sockets;
}

std::set<uint64_t> socket_inodes(const std::vector<pid_t>& processes) {
  constexpr std::string_view kPrefix = "socket:[";
  std::set<uint64_t> inodes;
  std::array<char, 64> target{};
  for (const pid_t pid : processes) {
    const std::string path = "/proc/" + std::to_string(pid) + "/fd";
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (folder == nullptr) continue;
    while (const dirent* entry = ::readdir(folder.get())) {
      const ssize_t length =
          ::readlinkat(::dirfd(folder.get()), entry->d_name, target.data(), target.size());
      std::string_view name(target.data(), static_cast<size_t>(std::max<ssize_t>(length, 0)));
      if (!name.starts_with(kPrefix)) continue;
      name.remove_prefix(kPrefix.size());
      if (const auto inode = base::number_of<uint64_t>(name.substr(0, name.find(']')))) {
        inodes.insert(*inode);
      }
    }
  }
  return inodes;
}

Traffic SocketUsage::look(const std::vector<TcpSocket>& sockets,
                          const std::function<std::set<uint64_t>()>& own) {
  Traffic traffic;
  std::optional<std::set<uint64_t>> inodes;
  std::map<uint64_t, Known> now;
  for (const TcpSocket& socket : sockets) {
    const auto found = known_.find(socket.cookie);
    Known known;
    if (found != known_.end()) {
      known = found->second;
    } else {
      if (socket.inode == 0) continue;  // nobody has accepted it yet
      if (!inodes) inodes = own();
      known.is_own = inodes->count(socket.inode) > 0;
    }
    if (known.is_own) {
      traffic.sent += socket.sent - std::min(socket.sent, known.counted.sent);
      traffic.received += socket.received - std::min(socket.received, known.counted.received);
      known.counted = {.sent = socket.sent, .received = socket.received};
    }
    now.emplace(socket.cookie, known);
  }
  known_ = std::move(now);
  return traffic;
}

}  // namespace muster::engine
