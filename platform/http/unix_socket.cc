#include "http/unix_socket.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "http/tcp_socket.h"

namespace muster::http {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::Result;
using base::system_error;
using base::UniqueFd;

namespace {

constexpr size_t kLongestPath = sizeof(sockaddr_un::sun_path) - 1;

Result<sockaddr_un> socket_address_of(const fs::path& path) {
  const std::string& text = path.native();
  if (text.empty() || text.size() > kLongestPath) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "socket path '" + text + "' has " + std::to_string(text.size()) +
                         " bytes; a unix socket takes 1 to " + std::to_string(kLongestPath),
                 .advice = "choose a folder with a shorter path"};
  }
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, text.data(), text.size());
  return address;
}

/// 0, or the errno.
int connect_socket(const UniqueFd& fd, const sockaddr_un& address) {
  while (true) {
    const auto* generic = reinterpret_cast<const sockaddr*>(&address);
    if (::connect(fd.get(), generic, sizeof address) == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

Result<UniqueFd> new_unix_socket(int flags) {
  UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
  if (!fd) return system_error("cannot make a socket", errno);
  return fd;
}

/// Removes the file of a server that died without doing so; a refused connection proves it.
Result<void> clear_way(const fs::path& path, const sockaddr_un& address) {
  struct stat status{};
  if (::lstat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return {};
    return system_error("cannot look at socket '" + path.string() + "'", errno);
  }
  if (!S_ISSOCK(status.st_mode)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "'" + path.string() + "' is there already and is no socket",
                 .advice = "move it away, or choose another path for the socket"};
  }
  // Non-blocking: a full queue (EAGAIN) means that somebody lives there, and must not hang us.
  MUSTER_TRY(const UniqueFd probe, new_unix_socket(SOCK_NONBLOCK));
  if (connect_socket(probe, address) != ECONNREFUSED) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "another server answers on '" + path.string() + "'",
                 .advice = "use that one, or end it first"};
  }
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return system_error("cannot remove the dead socket '" + path.string() + "'", errno);
  }
  return {};
}

/// Two servers that start at once would each take the other's new socket for a dead one's and
/// remove it. The folder's lock, which leaves no file behind, makes them take turns.
Result<UniqueFd> lock_folder_of(const fs::path& path) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : ".";
  UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return system_error("cannot open folder '" + folder.string() + "'", errno);
  while (::flock(fd.get(), LOCK_EX) != 0) {
    if (errno != EINTR) return system_error("cannot lock folder '" + folder.string() + "'", errno);
  }
  return fd;
}

/// Linux gives the file the mode of the socket, so setting that first leaves no moment in which
/// the file is open to others; umask() would do it too, but for every thread of the process.
Result<void> bind_private(const UniqueFd& fd, const fs::path& path, const sockaddr_un& address) {
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  if (::fchmod(fd.get(), 0600) != 0 || ::bind(fd.get(), generic, sizeof address) != 0) {
    return system_error("cannot make socket '" + path.string() + "'", errno);
  }
  return {};
}

}  // namespace

Listener& Listener::operator=(Listener&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::move(other.fd_);
    path_ = std::move(other.path_);
    file_ = other.file_;
  }
  return *this;
}

void Listener::close() {
  if (!fd_) return;
  struct stat status{};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_ino == file_) ::unlink(path_.c_str());
  fd_.reset();
}

Result<Listener> listen_on(const fs::path& path) {
  MUSTER_TRY(const sockaddr_un address, socket_address_of(path));
  MUSTER_TRY(const UniqueFd lock, lock_folder_of(path));
  MUSTER_CHECK(clear_way(path, address));

  Listener listener;
  listener.path_ = path;
  MUSTER_TRY(UniqueFd fd, new_unix_socket(SOCK_NONBLOCK));
  MUSTER_CHECK(bind_private(fd, path, address));
  struct stat status{};
  if (::lstat(path.c_str(), &status) == 0) listener.file_ = status.st_ino;
  listener.fd_ = std::move(fd);
  if (::listen(listener.fd(), kListenBacklog) != 0) {
    return system_error("cannot listen on socket '" + path.string() + "'", errno);
  }
  return listener;
}

Result<UniqueFd> connect_to(const fs::path& path) {
  MUSTER_TRY(const sockaddr_un address, socket_address_of(path));
  MUSTER_TRY(UniqueFd fd, new_unix_socket(0));
  if (const int error = connect_socket(fd, address); error == ENOENT || error == ECONNREFUSED) {
    return Error{.code = ErrorCode::kUnavailable,
                 .what = "no server answers on socket '" + path.string() + "'",
                 .advice = "start the server, or name the socket of the one that runs"};
  } else if (error != 0) {
    return system_error("cannot connect to socket '" + path.string() + "'", error);
  }
  MUSTER_TRY(const uid_t peer, peer_of(fd.get()));
  if (!is_trusted(peer, ::geteuid())) {
    return Error{.code = ErrorCode::kRefused,
                 .what = "the server on socket '" + path.string() + "' belongs to user " +
                         std::to_string(peer) + ", not to you",
                 .advice = "choose a folder for the socket that only you can write to"};
  }
  return fd;
}

Result<UniqueFd> try_to_connect_to(const fs::path& path) {
  MUSTER_TRY(const sockaddr_un address, socket_address_of(path));
  MUSTER_TRY(UniqueFd fd, new_unix_socket(SOCK_NONBLOCK));
  switch (const int error = connect_socket(fd, address)) {
    case 0:
      return fd;
    case ENOENT:
    case ENOTDIR:
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "there is no socket '" + path.string() + "'"};
    case ECONNREFUSED:
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "nobody listens on socket '" + path.string() + "'"};
    default:
      return system_error("cannot connect to socket '" + path.string() + "'", error);
  }
}

Result<uid_t> peer_of(int fd) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return system_error("cannot tell who is at the other end of a socket", errno);
  }
  return credentials.uid;
}

bool is_trusted(uid_t peer, uid_t self) {
  return peer == self || peer == 0;
}

}  // namespace muster::http
