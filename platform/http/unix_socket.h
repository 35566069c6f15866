// Unix sockets as Muster uses them: mode 0600, close-on-exec, and at both ends a look at who is at
// the other. The look is what counts: a file's mode protects only where the folder cannot be
// swapped, the kernel's word on the peer protects always.
//
// Thread-safe (no state); listen_on() and connect_to() block for a moment at most.
#pragma once

#include <sys/types.h>

#include <filesystem>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::http {

/// A listening socket and the file it listens on, which goes with it.
class Listener {
 public:
  Listener() = default;
  Listener(Listener&&) noexcept = default;
  Listener& operator=(Listener&& other) noexcept;
  ~Listener() { close(); }

  int fd() const { return fd_.get(); }
  /// Also removes the file, unless another server's stands there by now.
  void close();

 private:
  friend base::Result<Listener> listen_on(const std::filesystem::path& path);
  base::UniqueFd fd_;
  std::filesystem::path path_;
  ino_t file_ = 0;
};

/// Listens without blocking. A socket file that nobody answers on is replaced.
/// kInvalid: the path is too long. kConflict: somebody answers there, or it is no socket.
base::Result<Listener> listen_on(const std::filesystem::path& path);

/// Connects, and hangs up with kRefused where the server is a stranger's.
/// kUnavailable: nobody answers.
base::Result<base::UniqueFd> connect_to(const std::filesystem::path& path);

/// Connects without waiting, to whomever: that is for the caller to judge. The socket does not
/// block. kInvalid: the path is too long. kUnavailable: nobody listens there. kRefused: this user
/// may not. kExhausted: too many wait already; it may be tried again.
base::Result<base::UniqueFd> try_to_connect_to(const std::filesystem::path& path);

/// The user at the other end of a connected socket.
base::Result<uid_t> peer_of(int fd);

/// Whether `self` talks to `peer`: itself and root, who could do everything anyway.
bool is_trusted(uid_t peer, uid_t self);

}  // namespace muster::http
