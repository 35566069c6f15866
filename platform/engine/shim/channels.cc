#include "engine/shim/channels.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "base/files.h"
#include "engine/pipe.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

// --- pipes and socket pairs

namespace {

/// A program opens its own ends again: as /dev/stderr. It may have another account than this process.
/// The pipe has no name by which others could reach it.
void open_to_all(const UniqueFd& pipe) {
  constexpr mode_t kAll = 0666;
  ::fchmod(pipe.get(), kAll);
}

}  // namespace

Result<Pair> make_output_pipe() {
  MUSTER_TRY(Pipe pipe, make_pipe());
  open_to_all(pipe.writer);
  ::fcntl(pipe.reader.get(), F_SETFL, O_NONBLOCK);
  return Pair{.here = std::move(pipe.reader), .there = std::move(pipe.writer)};
}

Result<Pair> make_input_pipe() {
  MUSTER_TRY(Pipe pipe, make_pipe());
  open_to_all(pipe.reader);
  ::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK);
  return Pair{.here = std::move(pipe.writer), .there = std::move(pipe.reader)};
}

Result<Pair> make_control() {
  std::array<int, 2> ends{-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return base::system_error("cannot make a socket", errno);
  }
  return Pair{.here = UniqueFd(ends[0]), .there = UniqueFd(ends[1])};
}

int64_t bytes_in(const UniqueFd& pipe) {
  int held = 0;
  return ::ioctl(pipe.get(), FIONREAD, &held) == 0 ? held : 0;
}

Result<UniqueFd> in_memory_file(std::string_view content) {
  UniqueFd file(::memfd_create("plan", MFD_CLOEXEC));
  if (!file) return base::system_error("cannot make a file in memory", errno);
  MUSTER_CHECK(base::write_all(file.get(), content));
  ::lseek(file.get(), 0, SEEK_SET);
  return file;
}

// --- sockets in a folder

namespace {

/// The address of a socket, by way of an open folder: /proc/self/fd/N/NAME. Valid while that
/// descriptor is open.
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
  const mode_t before = ::umask(0177);  // for the file that bind() creates
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

// --- terminals

namespace {

/// The program's end by its descriptor: its name is another one in another sandbox.
Result<PseudoTerminal> with_slave(UniqueFd master) {
  const int unlocked = 0;
  if (!master || ::ioctl(master.get(), TIOCSPTLCK, &unlocked) != 0) {
    return base::system_error("cannot make a terminal", errno);
  }
  PseudoTerminal terminal{.master = std::move(master), .slave = {}};
  terminal.slave =
      UniqueFd(::ioctl(terminal.master.get(), TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!terminal.slave || ::tcgetattr(terminal.slave.get(), &settings) != 0) {
    return base::system_error("cannot make a terminal", errno);
  }
  settings.c_iflag |= IUTF8;  // a backspace erases a whole character, not one of its bytes
  ::tcsetattr(terminal.slave.get(), TCSANOW, &settings);
  return terminal;
}

}  // namespace

Result<PseudoTerminal> open_terminal() {
  return with_slave(UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)));
}

Result<PseudoTerminal> open_terminal_of(pid_t inner) {
  const std::string path = "/proc/" + std::to_string(inner) + "/root/dev/pts/ptmx";
  return with_slave(UniqueFd(::open(path.c_str(), O_RDWR | O_NOCTTY | O_CLOEXEC | O_NOFOLLOW)));
}

void set_terminal_size(const UniqueFd& terminal, int rows, int columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  ::ioctl(terminal.get(), TIOCSWINSZ, &size);
}

}  // namespace muster::engine
