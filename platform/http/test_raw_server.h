// For tests: a server that may break the protocol, on a thread of its own. A script over the
// descriptor serves each connection, one after the other: it may hang, send garbage, or close
// early.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <functional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/test_folder.h"
#include "base/unique_fd.h"
#include "http/sockets.h"

namespace muster::http {

/// The server's end of a connection, blocking.
class RawConnection {
 public:
  explicit RawConnection(base::UniqueFd fd) : fd_(std::move(fd)) {}

  /// False: the client has closed the connection.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<size_t>(count));
    }
    return true;
  }

  /// Reads until the received bytes end with `end`, and returns all of them.
  std::string read_to(std::string_view end) {
    char letter = 0;
    while (!read_.ends_with(end) && ::recv(fd_.get(), &letter, 1, 0) == 1) read_ += letter;
    return read_;
  }
  std::string read_head() { return read_to("\r\n\r\n"); }

  /// Reads until the client closes its output or the connection.
  std::string read_to_the_end() {
    std::string text;
    std::string buffer(1 << 16, '\0');
    ssize_t count = 0;
    while ((count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0)) > 0) {
      text.append(buffer, 0, static_cast<size_t>(count));
    }
    return text;
  }

  void stop_sending() { ::shutdown(fd_.get(), SHUT_WR); }

 private:
  base::UniqueFd fd_;
  std::string read_;
};

class RawServer {
 public:
  using Script = std::function<void(RawConnection&)>;

  /// One script for each connection. After the last one, the server accepts no connection.
  explicit RawServer(std::vector<Script> scripts) : scripts_(std::move(scripts)) {
    auto listening = listen_on(path());
    EXPECT_TRUE(listening) << listening.error().to_string();
    if (!listening) return;
    listener_ = *std::move(listening);
    thread_ = std::thread([this] { serve(); });
  }
  explicit RawServer(Script script) : RawServer(std::vector<Script>{std::move(script)}) {}
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;
  /// Waits for the scripts, which end when their client disconnects.
  ~RawServer() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
  }

  std::filesystem::path path() const { return folder_ / "socket"; }

 private:
  void serve() {
    for (const Script& script : scripts_) {
      pollfd waits{.fd = listener_.fd(), .events = POLLIN, .revents = 0};
      if (::poll(&waits, 1, -1) < 0) return;
      base::UniqueFd fd(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      RawConnection connection(std::move(fd));
      script(connection);
    }
  }

  base::TestFolder folder_;
  std::vector<Script> scripts_;
  Listener listener_;
  std::thread thread_;
};

}  // namespace muster::http
