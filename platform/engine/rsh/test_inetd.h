// For tests: does what the shim of a task does with the port of the remote shell. It runs one
// `muster-rsh --serve` for each connection; a folder of the test stands in for /generated.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"

namespace muster::engine::rsh {

/// A listening socket of this machine, on a free port.
inline base::UniqueFd listen_anywhere(int& port) {
  base::UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof where;
  EXPECT_EQ(::bind(socket.get(), reinterpret_cast<sockaddr*>(&where), length), 0);
  EXPECT_EQ(::listen(socket.get(), SOMAXCONN), 0);
  ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&where), &length);
  port = ntohs(where.sin_port);
  return socket;
}

class TestInetd {
 public:
  TestInetd() {
    std::string pattern = testing::TempDir() + "rshXXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    listener_ = listen_anywhere(port_);
    write("rsh/key", std::string(64, 'a') + "\n");
    write("rsh/hosts", "w0 127.0.0.1 " + std::to_string(port_) + "\nw1 localhost " +
                           std::to_string(port_) + "\n");
    thread_ = std::thread([this] { answer(); });
  }
  TestInetd(const TestInetd&) = delete;
  TestInetd& operator=(const TestInetd&) = delete;
  ~TestInetd() {
    stop();
    std::filesystem::remove_all(folder_);
  }

  const std::filesystem::path& folder() const { return folder_; }
  int port() const { return port_; }

  void write(const std::filesystem::path& path, const std::string& content) const {
    std::filesystem::create_directories((folder_ / path).parent_path());
    EXPECT_TRUE(base::write_file(folder_ / path, content));
  }

  /// Kills the serving processes, as if the task had ended.
  void kill_all() {
    const std::lock_guard lock(mutex_);
    for (const base::Child& child : children_) {
      static_cast<void>(base::send_signal(child.pidfd, SIGKILL));
    }
  }

 private:
  void answer() {
    while (true) {
      std::array<pollfd, 2> watched{{{listener_.get(), POLLIN, 0}, {stopping_.get(), POLLIN, 0}}};
      if (::poll(watched.data(), watched.size(), -1) < 0) continue;
      if (watched[1].revents != 0) return;
      const base::UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      auto child = base::spawn({.argv = {MUSTER_RSH, "--serve", folder_ / "rsh", folder_},
                                .environment = {"PATH=/usr/bin:/bin", "GREETING=it's me"},
                                .descriptors = {{connection.get(), STDIN_FILENO},
                                                {connection.get(), STDOUT_FILENO},
                                                {STDERR_FILENO, STDERR_FILENO}},
                                .new_session = true});
      ASSERT_TRUE(child);
      const std::lock_guard lock(mutex_);
      children_.push_back(*std::move(child));
    }
  }

  void stop() {
    ::eventfd_write(stopping_.get(), 1);
    thread_.join();
    // Each process ends by itself when its client disconnects.
    for (const base::Child& child : children_) static_cast<void>(base::wait_for(child));
  }

  std::filesystem::path folder_;
  int port_ = 0;
  base::UniqueFd listener_;
  base::UniqueFd stopping_{::eventfd(0, EFD_CLOEXEC)};
  std::mutex mutex_;
  std::vector<base::Child> children_;
  std::thread thread_;
};

}  // namespace muster::engine::rsh
