#include "engine/shim/folder_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstdio>

namespace muster::engine {

using base::Result;
using base::UniqueFd;

namespace {

/// An address, and the folder that it goes through: good as long as that is open.
struct Place {
  UniqueFd folder;
  sockaddr_un address{};

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

Place place_in(const std::string& folder, const std::string& name) {
  Place place{.folder = UniqueFd(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  place.address.sun_family = AF_UNIX;
  std::snprintf(place.address.sun_path, sizeof place.address.sun_path, "/proc/self/fd/%d/%s",
                place.folder.get(), name.c_str());
  return place;
}

UniqueFd make_unix_socket(int type = SOCK_SEQPACKET) {
  return UniqueFd(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

Result<UniqueFd> bound_socket(const std::string& folder, const std::string& name, int type) {
  const Place place = place_in(folder, name);
  if (!place.folder) return base::system_error("cannot open '" + folder + "'", errno);
  UniqueFd socket = make_unix_socket(type);
  if (!socket) return base::system_error("cannot make a socket", errno);
  const mode_t before = ::umask(0177);  // bind() makes the file
  const int bound = ::bind(socket.get(), place.get(), sizeof place.address);
  ::umask(before);
  if (bound == 0) return socket;
  return base::system_error("cannot make '" + name + "' in '" + folder + "'", errno);
}

}  // namespace

Result<UniqueFd> listen_in(const std::string& folder, const std::string& name) {
  MUSTER_TRY(UniqueFd socket, bound_socket(folder, name, SOCK_SEQPACKET));
  if (::listen(socket.get(), SOMAXCONN) == 0) return socket;
  return base::system_error("cannot listen in '" + folder + "'", errno);
}

Result<UniqueFd> bind_in(const std::string& folder, const std::string& name) {
  return bound_socket(folder, name, SOCK_DGRAM);
}

Result<UniqueFd> connect_in(const std::string& folder, const std::string& name) {
  const Place place = place_in(folder, name);
  if (!place.folder) return base::system_error("cannot open '" + folder + "'", errno);
  UniqueFd socket = make_unix_socket();
  if (!socket) return base::system_error("cannot make a socket", errno);
  if (::connect(socket.get(), place.get(), sizeof place.address) == 0) return socket;
  base::Error error = base::system_error("cannot reach '" + name + "' in '" + folder + "'", errno);
  error.code = errno == ENOENT ? base::ErrorCode::kNotFound : base::ErrorCode::kUnavailable;
  return error;
}

}  // namespace muster::engine
