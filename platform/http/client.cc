#include "http/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>
#include <vector>

#include "base/unique_fd.h"
#include "http/head.h"
#include "http/response_reader.h"
#include "http/unix_socket.h"

namespace muster::http {

using base::Result;
using base::system_error;

namespace {

constexpr size_t kPiece = 64 << 10;

/// Whether the other side has closed a connection that ought to be idle.
bool is_dead(int fd) {
  char byte = 0;
  const ssize_t count = ::recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != EINTR);
}

/// Sends until the other side has it or takes no more. That is no error yet: a server that refuses
/// a request (its body is too large) hangs up on the rest of it, having said why.
Result<void> send_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (count >= 0) {
      bytes.remove_prefix(static_cast<size_t>(count));
    } else if (errno == EPIPE || errno == ECONNRESET) {
      return {};
    } else if (errno != EINTR) {
      return system_error("cannot send to the server", errno);
    }
  }
  return {};
}

enum class Ready { kBytes, kLeave };

/// Waits for bytes of the server, serving `wake` meanwhile.
Result<Ready> wait_for_bytes(int fd, const Wake& wake) {
  if (wake.fd < 0) return Ready::kBytes;  // the recv that follows waits as well
  while (true) {
    std::array<pollfd, 2> fds{{{.fd = fd, .events = POLLIN, .revents = 0},
                               {.fd = wake.fd, .events = POLLIN, .revents = 0}}};
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return system_error("cannot wait for the server", errno);
    }
    if (fds[1].revents != 0 && !wake.on_wake()) return Ready::kLeave;
    if (fds[0].revents != 0) return Ready::kBytes;
  }
}

}  // namespace

struct Client::Impl {
  explicit Impl(std::filesystem::path path) : socket(std::move(path)), buffer(kPiece) {}

  Result<Response> exchange(const Request& request, const OnPiece& on_piece, const Wake& wake) {
    MUSTER_CHECK(connect());
    ResponseReader reader(request.method == "HEAD", on_piece);
    // Taken out of the member, where it comes back to only after a whole exchange.
    base::UniqueFd fd = std::move(connection);
    MUSTER_CHECK(send_all(fd.get(), request_head(request) + request.body));
    MUSTER_TRY(const auto progress, receive(fd, reader, wake));
    const bool whole = progress == ResponseReader::Progress::kDone;
    if (whole && reader.keep_alive()) connection = std::move(fd);
    return reader.take();
  }

  Result<void> connect() {
    if (connection && !is_dead(connection.get())) return {};
    MUSTER_TRY(connection, connect_to(socket));
    return {};
  }

  Result<ResponseReader::Progress> receive(const base::UniqueFd& fd, ResponseReader& reader,
                                           const Wake& wake) {
    while (true) {
      MUSTER_TRY(const Ready ready, wait_for_bytes(fd.get(), wake));
      if (ready == Ready::kLeave) return ResponseReader::Progress::kLeft;
      const ssize_t count = ::recv(fd.get(), buffer.data(), buffer.size(), 0);
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) {
        MUSTER_CHECK(reader.put_end());
        return ResponseReader::Progress::kDone;
      }
      MUSTER_TRY(const auto progress, reader.put({buffer.data(), static_cast<size_t>(count)}));
      if (progress != ResponseReader::Progress::kMore) return progress;
    }
  }

  std::filesystem::path socket;
  base::UniqueFd connection;
  std::vector<char> buffer;
};

Client::Client(std::filesystem::path socket) : impl_(std::make_unique<Impl>(std::move(socket))) {}
Client::~Client() = default;

Result<Response> Client::send(const Request& request) {
  return impl_->exchange(request, {}, {});
}

Result<Response> Client::stream(const Request& request,
                                const std::function<bool(std::string_view)>& on_piece,
                                const Wake& wake) {
  return impl_->exchange(request, on_piece, wake);
}

}  // namespace muster::http
