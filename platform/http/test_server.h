// For tests: a server on a thread of its own, in a folder of its own, and a client that sends bytes
// as they are.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <chrono>
#include <filesystem>
#include <future>
#include <string>
#include <thread>

#include "base/event_loop.h"
#include "base/test_folder.h"
#include "base/unique_fd.h"
#include "http/server.h"
#include "http/sockets.h"

namespace muster::http {

/// Long enough for a loaded machine; only a test that fails waits so long.
inline constexpr std::chrono::seconds kPatience{20};

inline std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\r'));
}

class TestServer {
 public:
  explicit TestServer(Handler handler, const Limits& limits = {})
      : server_(loop_, std::move(handler), limits) {
    const auto listening = server_.listen(socket());
    EXPECT_TRUE(listening) << listening.error().to_string();
    thread_ = std::thread([this] { loop_.run(); });
  }
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;
  ~TestServer() {
    on_loop([this] { server_.close(); });
    loop_.stop();
    thread_.join();
  }

  /// Runs `action` on the server's thread and waits for it.
  void on_loop(const std::function<void()>& action) {
    std::promise<void> done;
    loop_.post([&] {
      action();
      done.set_value();
    });
    done.get_future().wait();
  }

  size_t connections() {
    size_t count = 0;
    on_loop([&] { count = server_.connections(); });
    return count;
  }

  std::filesystem::path socket() const { return folder_ / "socket"; }
  base::EventLoop& loop() { return loop_; }
  Server& server() { return server_; }

 private:
  base::TestFolder folder_;
  base::EventLoop loop_;
  Server server_;
  std::thread thread_;
};

/// A connection that may break the protocol.
class RawClient {
 public:
  explicit RawClient(const std::filesystem::path& socket) {
    auto connected = connect_to(socket);
    EXPECT_TRUE(connected);
    if (connected) fd_ = *std::move(connected);
  }
  explicit RawClient(base::UniqueFd fd) : fd_(std::move(fd)) {}

  void send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return;  // the server has closed the connection; its answer is still unread
      bytes.remove_prefix(static_cast<size_t>(count));
    }
  }

  /// Reads until `end` has arrived, or the connection has ended, and returns the bytes before it.
  std::string read_to(std::string_view end) {
    std::string text;
    char letter = 0;
    while (!text.ends_with(end) && ::recv(fd_.get(), &letter, 1, 0) == 1) text += letter;
    return text;
  }

  /// Waits for bytes and returns at most `most` of them.
  std::string read_some(size_t most) {
    std::string buffer(most, '\0');
    const ssize_t count = ::recv(fd_.get(), buffer.data(), buffer.size(), 0);
    buffer.resize(count > 0 ? static_cast<size_t>(count) : 0);
    return buffer;
  }

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
  void leave() { fd_.reset(); }

 private:
  base::UniqueFd fd_;
};

}  // namespace muster::http
