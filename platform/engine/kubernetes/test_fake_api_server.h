// For tests: a fake API server with the answers that a test sets, for faults that a real one does
// not produce on demand: outdated positions, cut watches, busy answers, half of an object.
//
// The server has a thread of its own; all members may be called from the test's thread.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/kubernetes/access.h"
#include "engine/kubernetes/api_client.h"
#include "http/message.h"
#include "http/test_server.h"

namespace muster::engine::kubernetes {

/// The body of a watch: what push() gets, as it comes.
class FakeWatch : public std::enable_shared_from_this<FakeWatch> {
 public:
  /// Sends a line.
  void push(std::string line) { put(std::move(line) + "\n"); }
  /// Sends bytes without the end of a line.
  void push_bytes(std::string bytes) { put(std::move(bytes)); }
  /// Ends the body in order, as the API server does at the time limit.
  void end() {
    const std::scoped_lock lock(mutex_);
    has_ended_ = true;
    deliver();
  }
  /// Breaks the connection. REQUIRES: the answer was made by cuttable().
  void cut() { end(); }

  http::Response answer() { return {.stream = std::make_shared<Body>(shared_from_this())}; }
  /// A body whose end is a broken connection.
  http::Response cuttable() {
    http::Response answer = this->answer();
    answer.headers["content-length"] = "100000000";
    return answer;
  }
  /// Whether the client has ended the watch.
  bool is_left() const {
    const std::scoped_lock lock(mutex_);
    return is_left_;
  }
  /// The loop of the server, which delivers. Set by FakeApiServer.
  void use(base::EventLoop* loop) {
    const std::scoped_lock lock(mutex_);
    loop_ = loop;
  }

 private:
  struct Body : http::BodyStream {
    explicit Body(std::shared_ptr<FakeWatch> its_watch) : watch(std::move(its_watch)) {}
    ~Body() override {
      const std::scoped_lock lock(watch->mutex_);
      watch->is_left_ = true;
      watch->deliver_ = nullptr;
    }
    void pull(Deliver deliver) override {
      const std::scoped_lock lock(watch->mutex_);
      watch->deliver_ = std::move(deliver);
      watch->deliver();
    }
    std::shared_ptr<FakeWatch> watch;
  };

  void put(std::string bytes) {
    const std::scoped_lock lock(mutex_);
    waiting_ += bytes;
    deliver();
  }

  /// REQUIRES: the lock.
  void deliver() {
    if (!deliver_ || loop_ == nullptr || (waiting_.empty() && !has_ended_)) return;
    loop_->post([self = shared_from_this()] {
      http::BodyStream::Deliver deliver;
      std::optional<std::string> piece;
      {
        const std::scoped_lock lock(self->mutex_);
        // An earlier callback may have sent these bytes and used up the receiver. Bytes without a
        // receiver would be lost, and an empty piece would end the body.
        if (!self->deliver_ || (self->waiting_.empty() && !self->has_ended_)) return;
        deliver = std::exchange(self->deliver_, nullptr);
        if (!self->waiting_.empty()) piece = std::exchange(self->waiting_, {});
      }
      deliver(std::move(piece));
    });
  }

  mutable std::mutex mutex_;
  base::EventLoop* loop_ = nullptr;
  http::BodyStream::Deliver deliver_;
  std::string waiting_;
  bool has_ended_ = false;
  bool is_left_ = false;
};

class FakeApiServer {
 public:
  using Answer = std::function<http::Response(const http::Request&)>;

  FakeApiServer()
      : server_([this](const http::Request& request, const http::Respond& respond) {
          respond(answer_to(request));
        }) {}

  /// The answers to "GET /api/v1/pods", one after the other; the last one stays.
  void on(const std::string& what, std::vector<Answer> answers) {
    const std::scoped_lock lock(mutex_);
    answers_[what] = {answers.begin(), answers.end()};
  }
  void on(const std::string& what, Answer answer) {
    on(what, std::vector<Answer>{std::move(answer)});
  }
  void on(const std::string& what, http::Response answer) {
    on(what, [answer = std::move(answer)](const http::Request&) { return answer; });
  }

  std::vector<http::Request> asked() const {
    const std::scoped_lock lock(mutex_);
    return asked_;
  }
  /// The number of requests of this kind.
  size_t count(const std::string& what) const {
    size_t found = 0;
    for (const http::Request& request : asked()) found += name_of(request) == what ? 1 : 0;
    return found;
  }

  std::shared_ptr<FakeWatch> watch() {
    auto watch = std::make_shared<FakeWatch>();
    watch->use(&server_.loop());
    return watch;
  }

  std::filesystem::path socket() const { return server_.socket(); }
  size_t connections() { return server_.connections(); }

  /// A refusal in the words of an API server.
  static http::Response refusal(int status, const std::string& reason, const std::string& message,
                                const http::Headers& headers = {}) {
    return {.status = status,
            .body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" +
                    message + R"(","reason":")" + reason + R"(","code":)" + std::to_string(status) +
                    "}",
            .headers = headers};
  }

 private:
  static std::string name_of(const http::Request& request) {
    return request.method + " " + request.path;
  }

  http::Response answer_to(const http::Request& request) {
    Answer answer;
    {
      const std::scoped_lock lock(mutex_);
      asked_.push_back(request);
      const auto found = answers_.find(name_of(request));
      if (found == answers_.end() || found->second.empty()) {
        return refusal(404, "NotFound", "the fake has no answer to " + name_of(request));
      }
      answer = found->second.front();
      if (found->second.size() > 1) found->second.pop_front();
    }
    return answer(request);
  }

  mutable std::mutex mutex_;
  std::map<std::string, std::deque<Answer>> answers_;
  std::vector<http::Request> asked_;
  http::TestServer server_;  ///< last: its thread uses the others
};

/// Access to the fake, whose credentials a test can change.
class FakeAccess : public Access {
 public:
  explicit FakeAccess(std::filesystem::path socket) {
    facts_ = {.server = "https://fake:6443", .source = "a test", .method = "token"};
    now_.place = std::move(socket);
    now_.headers["authorization"] = "Bearer old";
    now_.place_number = 1;
  }

  const AccessFacts& facts() const override { return facts_; }
  void get(Then then) override { then(now_); }
  bool reject(uint64_t number) override {
    ++rejected;
    if (number == now_.number && renewed.empty()) return false;
    now_.headers["authorization"] = "Bearer " + renewed;
    ++now_.number;
    return true;
  }

  std::string renewed;  ///< the token after a rejection; empty: there is no other
  int rejected = 0;

 private:
  AccessFacts facts_;
  Credentials now_;
};

}  // namespace muster::engine::kubernetes
