// What the processes of a task send and receive over TCP, over loopback and to other machines
// alike.
//
// They share their machine's network, so interfaces tell nothing of them; but the kernel counts the
// bytes of each socket, and tells them to anybody (NETLINK_SOCK_DIAG). Which sockets are a task's
// is told by the descriptors of its processes. What a socket carries between the last look and its
// end is lost. UDP, and what bypasses the kernel (RDMA), are not seen.
//
// Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace muster::engine {

struct TcpSocket {
  uint64_t cookie = 0;  ///< the kernel gives it to one socket only
  uint64_t inode = 0;   ///< 0: it is nobody's yet, or no longer
  uint64_t sent = 0;
  uint64_t received = 0;
};

/// Those of this network namespace that can have carried something. nullopt where the kernel does
/// not tell, or not how much they carried.
std::optional<std::vector<TcpSocket>> tcp_sockets();

/// The inodes of the sockets that these processes hold.
std::set<uint64_t> socket_inodes(const std::vector<pid_t>& processes);

struct Traffic {
  uint64_t sent = 0;
  uint64_t received = 0;

  bool operator==(const Traffic&) const = default;
};

/// Bytes of a task's sockets, from look to look.
class SocketUsage {
 public:
  /// Since the last look, or since the sockets were made. `own`: the inodes of the task's sockets;
  /// asked only where there is a socket that was not there before.
  Traffic look(const std::vector<TcpSocket>& sockets,
               const std::function<std::set<uint64_t>()>& own);

 private:
  struct Known {
    bool is_own = false;
    Traffic counted;
  };
  std::map<uint64_t, Known> known_;  ///< by cookie
};

}  // namespace muster::engine
