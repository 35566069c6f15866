#include "engine/kubernetes/api_session.h"

#include <algorithm>
#include <utility>

#include "engine/kubernetes/api_error.h"

namespace muster::engine::kubernetes {

using base::Error;
using base::ErrorCode;
using base::Result;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

milliseconds Backoff::next() {
  milliseconds pause = first_;
  for (int i = 0; i < count_ && pause < longest_; ++i) pause *= 2;
  pause = std::min(pause, longest_);
  ++count_;
  const auto random = base::SystemRandom().bytes<1>();
  return pause / 2 + pause * random[0] / 512;
}

/// One request, from the queue to its answer, with its repetitions. Held by its Call alone.
class ApiSession::Request : public std::enable_shared_from_this<Request> {
 public:
  Request(const std::shared_ptr<ApiSession>& session, ApiAsk ask, Answered answered)
      : session_(session),
        ask_(std::move(ask)),
        answered_(std::move(answered)),
        backoff_(session->options().first_pause, session->options().longest_pause) {}
  ~Request() { give_back(); }
  Request(const Request&) = delete;
  Request& operator=(const Request&) = delete;

  void upgrade(std::vector<std::string> protocols, Opened opened) {
    protocols_ = std::move(protocols);
    opened_ = std::move(opened);
  }

  bool is_long() const { return ask_.is_long || opened_; }

  /// Called when its turn has come.
  void start(bool holds_place) {
    holds_place_ = holds_place;
    const auto session = session_.lock();
    if (session == nullptr || session->is_closed_) return;
    session->access_->get([weak = weak_from_this()](const Result<Credentials>& credentials) {
      if (const auto self = weak.lock()) self->send(credentials);
    });
  }

 private:
  void send(const Result<Credentials>& credentials) {
    const auto session = session_.lock();
    if (session == nullptr || session->is_closed_) return;
    if (!credentials) {
      Error error = credentials.error();
      error.what = ask_.doing + ": " + error.what;
      return fail_soon(std::move(error));
    }
    credentials_number_ = credentials->number;
    was_sent_ = false;
    session->count(ask_);
    const std::string target = credentials->path_prefix + ask_.target;
    if (opened_) return open(*session, *credentials, target);
    http::AsyncRequest request{.method = ask_.method,
                               .target = target,
                               .headers = session->headers_for(*credentials),
                               .body = ask_.body,
                               .on_sending = [this] { was_sent_ = true; }};
    if (!ask_.body.empty()) request.headers["content-type"] = ask_.content_type;
    const http::AsyncLimits limits = ask_.limits.value_or(http::AsyncLimits{
        .connect = session->options().connect, .answer = session->options().answer});
    call_ = session->client_for(*credentials)
                .stream(
                    std::move(request), limits, ask_.on_piece,
                    [this](Result<http::Response> answer) { on_answer(std::move(answer)); },
                    ask_.on_head);
  }

  void open(ApiSession& session, const Credentials& credentials, const std::string& target) {
    http::WebSocketRequest request{
        .target = target, .headers = session.headers_for(credentials), .protocols = protocols_};
    request.headers.erase("accept");
    opening_ = http::open_websocket(
        session.loop(), credentials.place, session.name(), std::move(request),
        {.connect = session.options().connect, .answer = session.options().answer},
        [this](Result<http::WebSocketAnswer> answer) {
          const auto self = shared_from_this();
          if (!answer) return on_answer(std::move(answer).error());
          if (answer->socket == nullptr) return on_answer(std::move(answer->answer));
          socket_ = *std::move(answer);
          on_answer(http::Response{.status = 101});
        });
  }

  void on_answer(Result<http::Response> answer) {
    const auto self = shared_from_this();
    const auto session = session_.lock();
    if (session == nullptr || session->is_closed_) return;
    if (answer && answer->status < 300) return finish(std::move(answer));
    if (answer && answer->status == 401 && !std::exchange(has_renewed_, true) &&
        session->access_->reject(credentials_number_)) {
      return start(holds_place_);
    }
    if (answer) return refused(*session, *answer);
    Error error = std::move(answer).error();
    const bool is_unreachable = error.code == ErrorCode::kUnavailable;
    error.what = ask_.doing + ": " + error.what;
    if (is_unreachable && was_sent_ && !ask_.is_safe) {
      error.code = ErrorCode::kTimeout;
      error.advice = "the request may have been carried out: look at the object";
      return finish(std::move(error));
    }
    if (!is_unreachable || !repeat_after(backoff_.next())) finish(std::move(error));
  }

  void refused(ApiSession& session, const http::Response& answer) {
    const ApiRefusal refusal = read_refusal(answer);
    Error error = error_of(refusal, ask_.doing, session.name());
    // 429: nothing was done, and 503 with Retry-After likewise. A disruption budget lasts longer.
    const bool is_busy = error.code == ErrorCode::kUnavailable &&
                         (answer.status == 429 || refusal.retry_after || ask_.is_safe);
    if (!is_busy) return finish(std::move(error));
    milliseconds pause = backoff_.next();
    if (refusal.retry_after) {
      pause = std::max<milliseconds>(pause, *refusal.retry_after);
      if (answer.status == 429) session.rest_for(*refusal.retry_after);
    }
    if (!repeat_after(pause)) finish(std::move(error));
  }

  /// False: that would be too late.
  bool repeat_after(milliseconds pause) {
    const auto session = session_.lock();
    if (!ask_.repeats || session == nullptr) return false;
    const auto now = steady_clock::now();
    if (!first_failure_) first_failure_ = now;
    if (now + pause - *first_failure_ > session->options().patience) return false;
    give_back();
    timer_ = session->loop().after(pause, [this] {
      const auto self = shared_from_this();
      if (const auto here = session_.lock()) here->enqueue(self);
    });
    return true;
  }

  /// Later: a callback is never called from within the call that received it.
  void fail_soon(Error error) {
    const auto session = session_.lock();
    timer_ = session->loop().after({}, [this, error = std::move(error)] {
      const auto self = shared_from_this();
      finish(error);
    });
  }

  void finish(Result<http::Response> answer) {
    give_back();
    // The callback may drop this request.
    const auto opened = std::exchange(opened_, nullptr);
    const auto answered = std::exchange(answered_, nullptr);
    if (opened) {
      answer ? opened(std::move(socket_)) : opened(std::move(answer).error());
    } else if (answered) {
      answered(std::move(answer));
    }
  }

  void give_back() {
    if (!std::exchange(holds_place_, false)) return;
    if (const auto session = session_.lock()) session->release();
  }

  const std::weak_ptr<ApiSession> session_;
  const ApiAsk ask_;
  Answered answered_;
  std::vector<std::string> protocols_;
  Opened opened_;  ///< set: the request opens a WebSocket
  http::WebSocketAnswer socket_;
  Backoff backoff_;
  uint64_t credentials_number_ = 0;
  bool holds_place_ = false;  ///< it counts against the most requests at once
  bool was_sent_ = false;
  bool has_renewed_ = false;  ///< credentials, after a 401
  std::optional<steady_clock::time_point> first_failure_;
  http::AsyncCall call_;
  std::shared_ptr<void> opening_;
  base::EventLoop::Interest timer_;
};

ApiSession::ApiSession(base::EventLoop& loop, std::unique_ptr<Access> access, ApiOptions options)
    : loop_(loop),
      access_(std::move(access)),
      options_(std::move(options)),
      name_("the API server at " + access_->facts().server) {}

Call ApiSession::ask(ApiAsk ask, Answered answered) {
  auto request = std::make_shared<Request>(shared_from_this(), std::move(ask), std::move(answered));
  enqueue(request);
  return request;
}

Call ApiSession::open_websocket(ApiAsk ask, std::vector<std::string> protocols, Opened opened) {
  auto request = std::make_shared<Request>(shared_from_this(), std::move(ask), nullptr);
  request->upgrade(std::move(protocols), std::move(opened));
  enqueue(request);
  return request;
}

Call ApiSession::fail_later(Error error, std::function<void(Error)> failed) {
  auto timer = std::make_shared<base::EventLoop::Interest>();
  *timer = loop_.after(
      {}, [weak = weak_from_this(), error = std::move(error), failed = std::move(failed)] {
        const auto self = weak.lock();
        if (self != nullptr && !self->is_closed_) failed(error);
      });
  return timer;
}

void ApiSession::enqueue(const std::shared_ptr<Request>& request) {
  if (request->is_long()) return request->start(false);
  queue_.push_back(request);
  start_next();
}

void ApiSession::start_next() {
  if (is_closed_ || rest_) return;
  const auto self = shared_from_this();
  while (in_flight_ < options_.at_once && !queue_.empty()) {
    const auto request = queue_.front().lock();
    queue_.pop_front();
    if (request == nullptr) continue;  // dropped
    ++in_flight_;
    request->start(true);
  }
}

void ApiSession::release() {
  --in_flight_;
  start_next();
}

void ApiSession::rest_for(milliseconds pause) {
  const auto until = steady_clock::now() + std::min(pause, options_.longest_pause);
  if (rest_ && until <= rests_until_) return;
  rests_until_ = until;
  rest_ = loop_.after(until - steady_clock::now(), [this] {
    rest_.reset();
    start_next();
  });
}

http::AsyncClient& ApiSession::client_for(const Credentials& credentials) {
  if (!client_ || place_number_ != credentials.place_number) {
    client_.emplace(loop_, credentials.place, name_, http::KeepAlive{.most = options_.at_once});
    place_number_ = credentials.place_number;
  }
  return *client_;
}

http::Headers ApiSession::headers_for(const Credentials& credentials) const {
  http::Headers headers = credentials.headers;
  headers["accept"] = "application/json";
  headers["user-agent"] =
      options_.version.empty() ? std::string("muster") : "muster/" + options_.version;
  return headers;
}

}  // namespace muster::engine::kubernetes
