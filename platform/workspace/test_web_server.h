// A web server for tests of git: serves the files of a folder, requires a password on request, and
// records the requests. On the loopback; one request for each connection.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::workspace {

class TestWebServer {
 public:
  struct Options {
    std::filesystem::path folder;
    std::string authorization;  ///< "Basic ..."; empty: every request is admitted
    std::string redirect;       ///< "http://host:port": every request is redirected there
  };

  explicit TestWebServer(Options options) : options_(std::move(options)) {
    listening_.reset(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    auto* const name = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(listening_.get(), name, sizeof address), 0);
    EXPECT_EQ(::listen(listening_.get(), 16), 0);
    socklen_t length = sizeof address;
    EXPECT_EQ(::getsockname(listening_.get(), name, &length), 0);
    port_ = ntohs(address.sin_port);
    leave_.reset(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { serve(); });
  }
  TestWebServer(const TestWebServer&) = delete;
  TestWebServer& operator=(const TestWebServer&) = delete;
  ~TestWebServer() {
    const uint64_t one = 1;
    EXPECT_EQ(::write(leave_.get(), &one, sizeof one), static_cast<ssize_t>(sizeof one));
    thread_.join();
  }

  std::string url(const std::string& path = {}) const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }
  /// The heads of all requests.
  std::vector<std::string> heads() const {
    const std::scoped_lock lock(mutex_);
    return heads_;
  }

 private:
  void serve() {
    while (true) {
      std::array<pollfd, 2> waited{pollfd{.fd = listening_.get(), .events = POLLIN, .revents = 0},
                                   pollfd{.fd = leave_.get(), .events = POLLIN, .revents = 0}};
      if (::poll(waited.data(), waited.size(), -1) < 0) continue;
      if (waited[1].revents != 0) return;
      const base::UniqueFd client(::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (client) answer(client.get());
    }
  }

  void answer(int client) {
    std::string head;
    std::array<char, 4096> buffer{};
    while (head.find("\r\n\r\n") == std::string::npos) {
      const ssize_t count = ::read(client, buffer.data(), buffer.size());
      if (count <= 0) return;
      head.append(buffer.data(), static_cast<size_t>(count));
    }
    {
      const std::scoped_lock lock(mutex_);
      heads_.push_back(head);
    }
    static_cast<void>(base::write_all(client, answer_to(head)));
  }

  std::string answer_to(const std::string& head) const {
    const size_t begin = head.find(' ') + 1;
    const std::string target = head.substr(begin, head.find(' ', begin) - begin);
    if (!options_.redirect.empty()) {
      return response("302 Found", "", "location: " + options_.redirect + target + "\r\n");
    }
    if (head.find("Authorization: " + options_.authorization) == std::string::npos &&
        !options_.authorization.empty()) {
      return response("401 Unauthorized", "", "www-authenticate: Basic realm=\"test\"\r\n");
    }
    const std::string path = target.substr(0, target.find('?'));
    const auto content = base::read_file(options_.folder / path.substr(1));
    return content ? response("200 OK", *content, "") : response("404 Not Found", "", "");
  }

  static std::string response(const std::string& status, const std::string& body,
                              const std::string& headers) {
    return "HTTP/1.1 " + status + "\r\n" + headers + "content-type: text/plain\r\n" +
           "connection: close\r\ncontent-length: " + std::to_string(body.size()) + "\r\n\r\n" +
           body;
  }

  Options options_;
  base::UniqueFd listening_;
  base::UniqueFd leave_;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::vector<std::string> heads_;
  std::thread thread_;
};

}  // namespace muster::workspace
