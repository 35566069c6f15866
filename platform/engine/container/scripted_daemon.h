// A scripted engine for tests. It gives scripted answers on a unix socket, on the loop of the test.
// It can hang, die and come back.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/event_loop.h"
#include "http/server.h"

namespace muster::engine {

class ScriptedDaemon {
 public:
  using Answer = std::function<http::Response(const http::Request&)>;

  ScriptedDaemon(base::EventLoop& loop, std::filesystem::path socket)
      : loop_(loop), socket_(std::move(socket)) {
    answer("GET /_ping", [](const http::Request&) {
      http::Response response{.content_type = "text/plain"};
      response.headers = {{"api-version", "1.41"}, {"libpod-api-version", "4.3.1"}};
      response.body = "OK";
      return response;
    });
    answer("GET /info", R"({"NCPU":8,"MemTotal":17179869184,"OSType":"linux",
        "Architecture":"amd64","Name":"gpu-1","ServerVersion":"4.3.1"})");
    start();
  }

  void start() {
    server_ =
        std::make_unique<http::Server>(loop_, [this](http::Request request, http::Respond respond) {
          handle(request, std::move(respond));
        });
    ASSERT_TRUE(server_->listen(socket_));
  }
  /// Closes all connections. Waiting requests get no answer.
  void die() {
    const auto unanswered = std::exchange(held_, {});
    server_->close();
    server_.reset();
  }
  /// Answers no request until it is resumed.
  void hang(bool hangs = true) { hangs_ = hangs; }

  /// Resumes; waiting requests get their answers.
  void go_on() {
    hangs_ = false;
    for (const auto& [request, respond] : std::exchange(held_, {})) answer_to(request, respond);
  }

  /// `what`: "GET /containers/json", without the version and the query. The last answer for a path
  /// counts.
  void answer(const std::string& what, Answer answer) { answers_[what] = std::move(answer); }
  void answer(const std::string& what, std::string body, int status = 200) {
    answer(what, [body = std::move(body), status](const http::Request&) {
      http::Response response{.status = status};
      response.body = body;
      return response;
    });
  }
  void refuse(const std::string& what, int status, const std::string& message) {
    answer(what, R"({"message":")" + message + R"("})", status);
  }

  /// The requests so far, each followed by its query value `path`: "GET /containers/c1/archive
  /// /etc/passwd".
  const std::vector<std::string>& asked() const { return asked_; }
  int count(const std::string& what) const {
    return static_cast<int>(std::count(asked_.begin(), asked_.end(), what));
  }
  /// Called for each request.
  std::function<void(const std::string&)> on_asked;

 private:
  static std::string without_version(const std::string& path) {
    const size_t slash = path.find('/', 1);
    const bool has_version = path.starts_with("/v1.") && slash != std::string::npos;
    return has_version ? path.substr(slash) : path;
  }

  static std::string name_of(const http::Request& request) {
    return request.method + " " + without_version(request.path);
  }

  void handle(const http::Request& request, http::Respond respond) {
    std::string what = name_of(request);
    const auto path = request.query.find("path");
    if (path != request.query.end()) what += " " + path->second;
    asked_.push_back(what);
    if (on_asked) on_asked(what);
    if (hangs_) {
      held_.emplace_back(request, std::move(respond));
      return;
    }
    answer_to(request, respond);
  }

  void answer_to(const http::Request& request, const http::Respond& respond) {
    const auto found = answers_.find(name_of(request));
    if (found != answers_.end()) return respond(found->second(request));
    http::Response unknown{.status = 404};
    unknown.body = R"({"message":"no such thing"})";
    respond(std::move(unknown));
  }

  base::EventLoop& loop_;
  std::filesystem::path socket_;
  std::map<std::string, Answer> answers_;
  std::vector<std::string> asked_;
  std::vector<std::pair<http::Request, http::Respond>> held_;
  bool hangs_ = false;
  std::unique_ptr<http::Server> server_;
};

/// Runs the loop until `holds` is true; the limit allows for a slow machine.
template <class Condition>
bool run_until(base::EventLoop& loop, Condition holds) {
  bool late = false;
  const auto bound = loop.after(std::chrono::seconds(60), [&] { late = true; });
  std::function<void()> look;
  base::EventLoop::Interest again;
  look = [&] {
    if (holds() || late) return loop.stop();
    again = loop.after(std::chrono::milliseconds(1), look);
  };
  look();
  loop.run();
  return holds();
}

}  // namespace muster::engine
