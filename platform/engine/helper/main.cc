// muster-helper pack PATH: writes a tar of a file or folder to standard output.
// muster-helper unpack PATH: unpacks a tar from standard input to PATH.
// muster-helper connect PORT: connects standard input and output to that port of the task.
//
// An engine runs this program in a task for `muster cp` and `muster port-forward`, because the task
// may lack tar and the like, or have its own versions. Errors are printed as in
// workspace/copy_report.h; the exit code is 0 if everything succeeded.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/unique_fd.h"
#include "base/units.h"
#include "workspace/copy_report.h"
#include "workspace/tar_pack.h"
#include "workspace/tar_unpack.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

struct Address {
  sockaddr_storage bytes{};
  socklen_t size = 0;
};

std::optional<Address> socket_address_of(const std::string& text, int port) {
  Address address;
  auto* const four = reinterpret_cast<sockaddr_in*>(&address.bytes);
  auto* const six = reinterpret_cast<sockaddr_in6*>(&address.bytes);
  if (::inet_pton(AF_INET, text.c_str(), &four->sin_addr) == 1) {
    four->sin_family = AF_INET;
    four->sin_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *four;
    return address;
  }
  if (::inet_pton(AF_INET6, text.c_str(), &six->sin6_addr) == 1) {
    six->sin6_family = AF_INET6;
    six->sin6_port = htons(static_cast<uint16_t>(port));
    address.size = sizeof *six;
    return address;
  }
  return std::nullopt;
}

/// Parses /etc/hosts itself. The system's resolver would also query the network for a missing name,
/// and wait for the answer.
std::vector<std::string> own_addresses() {
  std::array<char, 256> name{};
  const auto hosts = base::read_file("/etc/hosts");
  if (!hosts || ::gethostname(name.data(), name.size() - 1) != 0) return {};
  std::vector<std::string> addresses;
  std::istringstream lines(*hosts);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    for (std::string word; words >> word;) {
      if (word == name.data()) addresses.push_back(address);
    }
  }
  return addresses;
}

/// An empty descriptor, with errno set: no process listens there.
UniqueFd connection_to(const Address& address) {
  UniqueFd socket(::socket(address.bytes.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!socket) return socket;
  const auto* const where = reinterpret_cast<const sockaddr*>(&address.bytes);
  while (::connect(socket.get(), where, address.size) != 0) {
    if (errno == EINTR) continue;
    const int number = errno;
    socket.reset();
    errno = number;
    break;
  }
  return socket;
}

UniqueFd connection_to(int port) {
  std::vector<std::string> places{"127.0.0.1", "::1"};
  for (std::string& own : own_addresses()) places.push_back(std::move(own));
  for (const std::string& place : places) {
    const auto address = socket_address_of(place, port);
    if (!address) continue;
    if (UniqueFd socket = connection_to(*address)) return socket;
  }
  return UniqueFd();
}

/// One direction of the connection.
struct Pump {
  int from;
  int to;
  std::array<char, 64 << 10> buffer{};
  size_t begin = 0;
  size_t end = 0;
  bool no_more = false;  ///< `from` has ended
  bool closed = false;   ///< and so has `to`

  bool is_empty() const { return begin == end; }

  /// False: the connection is broken.
  bool fill() {
    const ssize_t count = ::read(from, buffer.data(), buffer.size());
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    begin = 0;
    end = static_cast<size_t>(count);
    no_more = count == 0;
    return true;
  }

  bool drain() {
    const ssize_t count = ::write(to, buffer.data() + begin, end - begin);
    if (count < 0) return errno == EAGAIN || errno == EINTR;
    begin += static_cast<size_t>(count);
    return true;
  }
};

void close_half(int fd) {
  if (::shutdown(fd, SHUT_WR) != 0) ::close(fd);  // the output is a pipe
}

/// Moves the available bytes. False: both directions have ended.
bool turn(Pump& pump, const pollfd& from, const pollfd& to) {
  if (from.revents != 0 && pump.is_empty() && !pump.no_more && !pump.fill()) return false;
  if (!pump.is_empty() && to.revents != 0 && !pump.drain()) return false;
  if (pump.no_more && pump.is_empty() && !pump.closed) {
    pump.closed = true;
    close_half(pump.to);
  }
  return true;
}

void pump_both_ways(int socket) {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, socket}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
  Pump there{.from = STDIN_FILENO, .to = socket};
  Pump back{.from = socket, .to = STDOUT_FILENO};
  while (!there.closed || !back.closed) {
    const auto can_read = [](const Pump& pump) { return pump.is_empty() && !pump.no_more; };
    // poll() ignores a negative descriptor. A descriptor at its end would always be ready.
    std::array<pollfd, 4> fds{{{can_read(there) ? there.from : -1, POLLIN, 0},
                               {there.is_empty() ? -1 : socket, POLLOUT, 0},
                               {can_read(back) ? socket : -1, POLLIN, 0},
                               {back.is_empty() ? -1 : back.to, POLLOUT, 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0 && errno != EINTR) return;
    if (!turn(there, fds[0], fds[1]) || !turn(back, fds[2], fds[3])) return;
  }
}

}  // namespace

/// Joins standard input and output with a connection to a port of the task. Tries 127.0.0.1, ::1
/// and the addresses that /etc/hosts gives for this host's name, in that order. The end of the
/// input closes that half of the connection; the end of the peer's output closes standard output.
///
/// Returns the exit code. Errors are printed on standard error (workspace/copy_report.h).
int connect_port(int port) {
  ::signal(SIGPIPE, SIG_IGN);
  const UniqueFd socket = connection_to(port);
  if (!socket) {
    const std::string lines =
        workspace::to_lines({.code = base::ErrorCode::kUnavailable,
                             .what = "no program listens on port " + std::to_string(port) + ": " +
                                     std::strerror(errno)});
    static_cast<void>(base::write_all(STDERR_FILENO, lines));
    return 1;
  }
  const int yes = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
  pump_both_ways(socket.get());
  return 0;
}

}  // namespace muster::engine

namespace {

using muster::base::Error;
using muster::base::Result;
using namespace muster::workspace;  // NOLINT(google-build-using-namespace): this is its program

void print(const std::string& lines) {
  static_cast<void>(muster::base::write_all(STDERR_FILENO, lines));
}

void print_note(const CopyNote& note) {
  print(to_line(note));
}

int report_result(const Result<size_t>& failed) {
  if (!failed) print(to_lines(failed.error()));
  return failed && *failed == 0 ? 0 : 1;
}

/// Returns the number of entries that were not copied.
Result<size_t> pack(const std::string& path) {
  MUSTER_TRY(TarPacker packer, TarPacker::open(path, print_note));
  while (true) {
    MUSTER_TRY(const std::string_view piece, packer.next());
    if (piece.empty()) return packer.totals().failed;
    MUSTER_CHECK(muster::base::write_all(STDOUT_FILENO, piece));
  }
}

Result<size_t> unpack(const std::string& path) {
  // A hang-up also closes the input, and the half-written file must then be removed.
  ::signal(SIGHUP, SIG_IGN);
  std::array<char, 64 << 10> buffer;
  const ReadTar read = [&buffer]() -> Result<std::string_view> {
    ssize_t count = 0;
    do {
      count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
    } while (count < 0 && errno == EINTR);
    if (count < 0) return muster::base::system_error("cannot read the sent content", errno);
    return std::string_view(buffer.data(), static_cast<size_t>(count));
  };
  MUSTER_TRY(const CopyTotals totals, unpack_tar(read, {.target = path}, {.on_note = print_note}));
  return totals.failed;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc == 3 ? argv[1] : "";
  if (what == "pack") return report_result(pack(argv[2]));
  if (what == "unpack") return report_result(unpack(argv[2]));
  const auto port = muster::base::number_of<int>(argc == 3 ? argv[2] : "");
  if (what == "connect" && port) return muster::engine::connect_port(*port);
  print("error: invalid: muster-helper is run by muster; see muster --help\n");
  return 2;
}
