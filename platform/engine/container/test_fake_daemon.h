// For tests: a fake engine that gives scripted answers. It has no containers: the behaviour of real
// engines is tested with real engines (test_real_engine.h). The fake does what real engines do not
// do on request: it hangs, refuses, breaks off, sends invalid answers, or is too old.
//
// A thread of its own for each connection; a script may block.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "http/test_raw_server.h"

namespace muster::engine {

/// An answer with a content-length.
inline std::string answer(int status, const std::string& body, const std::string& headers = "") {
  return "HTTP/1.1 " + std::to_string(status) + " X\r\n" + headers +
         "content-length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
}

class FakeDaemon {
 public:
  using Script = std::function<void(http::RawConnection&)>;

  /// The scripts, by "METHOD /path" without version and query. By default the engine is Docker with
  /// API version 1.41.
  explicit FakeDaemon(std::map<std::string, Script> scripts = {}) : scripts_(std::move(scripts)) {
    scripts_.try_emplace("GET /_ping", sends(answer(200, "OK", "api-version: 1.41\r\n")));
    scripts_.try_emplace("GET /info", sends(answer(200, R"({"OSType":"linux","NCPU":4})")));
    auto listening = http::listen_on(socket());
    EXPECT_TRUE(listening) << listening.error().to_string();
    if (!listening) return;
    listener_ = *std::move(listening);
    accepting_ = std::thread([this] { accept(); });
  }
  FakeDaemon(const FakeDaemon&) = delete;
  FakeDaemon& operator=(const FakeDaemon&) = delete;
  /// Waits for its scripts, which end when their clients have disconnected.
  ~FakeDaemon() {
    ::shutdown(listener_.fd(), SHUT_RDWR);
    if (accepting_.joinable()) accepting_.join();
    for (std::thread& thread : serving_) thread.join();
  }

  /// Sends the text and waits until the client disconnects.
  static Script sends(std::string bytes) {
    return [bytes = std::move(bytes)](http::RawConnection& connection) {
      connection.send(bytes);
      connection.read_to_the_end();
    };
  }
  /// Sends the text and closes the connection.
  static Script sends_and_closes(std::string bytes) {
    return [bytes = std::move(bytes)](http::RawConnection& connection) { connection.send(bytes); };
  }
  static Script hangs() {
    return [](http::RawConnection& connection) { connection.read_to_the_end(); };
  }

  std::filesystem::path socket() const { return folder_ / "docker.sock"; }
  /// The heads of all requests so far.
  std::vector<std::string> heads() {
    const std::scoped_lock lock(mutex_);
    return heads_;
  }
  std::string last_head() {
    const auto all = heads();
    return all.empty() ? "" : all.back();
  }

 private:
  void accept() {
    pollfd waits{.fd = listener_.fd(), .events = POLLIN, .revents = 0};
    while (::poll(&waits, 1, -1) > 0 && (waits.revents & POLLHUP) == 0) {
      base::UniqueFd fd(::accept4(listener_.fd(), nullptr, nullptr, SOCK_CLOEXEC));
      if (!fd) return;
      serving_.emplace_back([this, held = std::make_shared<base::UniqueFd>(std::move(fd))] {
        http::RawConnection connection(std::move(*held));
        serve(connection);
      });
    }
  }

  void serve(http::RawConnection& connection) {
    const std::string head = connection.read_head();
    {
      const std::scoped_lock lock(mutex_);
      heads_.push_back(head);
    }
    const auto script = scripts_.find(what_is_asked(head));
    if (script != scripts_.end()) return script->second(connection);
    connection.send(answer(404, R"({"message":"no script for this"})"));
  }

  /// "GET /v1.41/info?x=1 HTTP/1.1..." -> "GET /info"
  static std::string what_is_asked(const std::string& head) {
    const size_t space = head.find(' ');
    std::string path = head.substr(space + 1, head.find_first_of(" ?", space + 1) - space - 1);
    if (path.starts_with("/v1.")) path.erase(0, path.find('/', 1));
    return head.substr(0, space + 1) + path;
  }

  base::TestFolder folder_;
  std::map<std::string, Script> scripts_;
  std::mutex mutex_;
  std::vector<std::string> heads_;
  http::Listener listener_;
  std::thread accepting_;
  std::list<std::thread> serving_;
};

}  // namespace muster::engine
