// The requests below ApiClient, Watch and the streams: credentials, the queue, repetitions, and the
// HTTP client.
//
// On the loop's thread. No callback is called after its Call was dropped or the session was closed.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/random.h"
#include "base/result.h"
#include "engine/kubernetes/api_client.h"
#include "http/async_client.h"
#include "http/websocket.h"

namespace muster::engine::kubernetes {

/// Pauses that double, with jitter, so that many clients do not come back at the same moment.
class Backoff {
 public:
  Backoff(std::chrono::milliseconds first, std::chrono::milliseconds longest)
      : first_(first), longest_(longest) {}

  /// Between half of the current pause and all of it.
  std::chrono::milliseconds next();
  void reset() { count_ = 0; }
  int count() const { return count_; }

 private:
  std::chrono::milliseconds first_;
  std::chrono::milliseconds longest_;
  int count_ = 0;
};

/// One request to the API server.
struct ApiAsk {
  std::string verb;      ///< for the counts: "create"
  std::string resource;  ///< "pods", "pods/eviction"
  std::string doing;     ///< for errors: "cannot create pods 'x' in namespace 'y'"
  std::string method = "GET";
  std::string target;  ///< path and query, percent-encoded, without Credentials::path_prefix
  std::string body = {};
  std::string content_type = "application/json";
  /// Whether the request may be repeated after its answer was lost.
  bool is_safe = true;
  /// False: failures are passed on at once, except a 401 that new credentials may cure.
  bool repeats = true;
  bool is_long = false;  ///< a watch or a log that is followed: not limited in number
  std::optional<http::AsyncLimits> limits = {};
  http::OnPiece on_piece = {};  ///< receives the body of a successful answer
  std::function<void()> on_head = {};
};

class ApiSession : public std::enable_shared_from_this<ApiSession> {
 public:
  using Answered = std::function<void(base::Result<http::Response>)>;
  using Opened = std::function<void(base::Result<http::WebSocketAnswer>)>;

  ApiSession(base::EventLoop& loop, std::unique_ptr<Access> access, ApiOptions options);

  /// Answers with a status below 300, or with an error.
  [[nodiscard]] Call ask(ApiAsk ask, Answered answered);
  /// Opens a WebSocket at `ask.target`. Answers with a socket, or with an error.
  [[nodiscard]] Call open_websocket(ApiAsk ask, std::vector<std::string> protocols, Opened opened);
  /// Reports an error later.
  [[nodiscard]] Call fail_later(base::Error error, std::function<void(base::Error)> failed);
  /// Answers nothing any more.
  void close() { is_closed_ = true; }

  base::EventLoop& loop() { return loop_; }
  const AccessFacts& facts() const { return access_->facts(); }
  const ApiOptions& options() const { return options_; }
  const CallCounts& counts() const { return counts_; }
  size_t queued() const { return queue_.size(); }
  size_t in_flight() const { return in_flight_; }
  /// "the API server at https://10.0.0.1:6443"
  const std::string& name() const { return name_; }

 private:
  class Request;
  friend class Request;

  void enqueue(const std::shared_ptr<Request>& request);
  void start_next();
  void release();
  /// The API server is busy: nothing is started for a while.
  void rest_for(std::chrono::milliseconds pause);
  http::AsyncClient& client_for(const Credentials& credentials);
  http::Headers headers_for(const Credentials& credentials) const;
  void count(const ApiAsk& ask) { ++counts_[{ask.verb, ask.resource}]; }

  base::EventLoop& loop_;
  std::unique_ptr<Access> access_;
  const ApiOptions options_;
  const std::string name_;
  CallCounts counts_;
  std::deque<std::weak_ptr<Request>> queue_;
  size_t in_flight_ = 0;
  std::optional<http::AsyncClient> client_;
  uint64_t place_number_ = 0;  ///< of client_
  std::chrono::steady_clock::time_point rests_until_;
  base::EventLoop::Interest rest_;
  bool is_closed_ = false;
};

}  // namespace muster::engine::kubernetes
