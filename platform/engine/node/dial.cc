#include "engine/node/dial.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "engine/node/callers.h"

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

/// The muster-node of a stream answers once it has the order.
constexpr std::chrono::seconds kAnswerPatience{45};

class Dialling : public std::enable_shared_from_this<Dialling> {
 public:
  using Then = std::function<void(Result<std::shared_ptr<NodeConnection>>)>;

  Dialling(base::EventLoop& loop, UniqueFd socket, NodeDial dial, Then then)
      : loop_(loop), socket_(std::move(socket)), dial_(std::move(dial)), then_(std::move(then)) {}

  void begin() {
    prepare_socket(socket_.get());
    const std::string line = encode(ServerDial{.stream = dial_.stream});
    // A new socket takes a line as a whole.
    const ssize_t sent = ::send(socket_.get(), line.data(), line.size(), MSG_NOSIGNAL);
    if (sent != static_cast<ssize_t>(line.size())) {
      loop_.post([weak = weak_from_this(), number = errno] {
        if (const auto self = weak.lock()) {
          self->fail(ErrorCode::kUnavailable,
                     base::system_error("closed the connection", number).what);
        }
      });
      return;
    }
    patience_ = loop_.after(kAnswerPatience, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->fail(ErrorCode::kTimeout, "does not answer");
    });
    readable_ = loop_.when_readable(socket_.get(), [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->read_line();
    });
  }

 private:
  void read_line() {
    std::array<char, kLongestCaller> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), kLongestCaller - line_.size(), 0);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return fail(ErrorCode::kUnavailable, "closed the connection");
    line_.append(buffer.data(), static_cast<size_t>(count));
    const size_t end = line_.find('\n');
    if (end != std::string::npos) return secure(end + 1);
    if (line_.size() == kLongestCaller) fail(ErrorCode::kRefused, "is not a muster-node");
  }

  void secure(size_t length) {
    const auto caller = decode_caller(std::string_view(line_).substr(0, length));
    if (!caller) return fail(ErrorCode::kRefused, "sent an invalid answer: " + caller.error().what);
    if (caller->gang != dial_.gang) {
      return fail(ErrorCode::kRefused, "belongs to another attempt, of job " + caller->gang.job_id);
    }
    readable_.reset();
    secured_ = std::make_shared<NodeSocket>(loop_, std::move(socket_), rsh::End::kFar, dial_.key);
    const auto secured = secured_;
    const std::weak_ptr<Dialling> weak = weak_from_this();
    secured->begin({.on_established = nullptr,
                    .on_message =
                        [weak](NodeMessage first) {
                          if (const auto self = weak.lock()) self->greeted(first);
                        },
                    .on_end =
                        [weak](const std::string& why) {
                          const auto self = weak.lock();
                          if (self) self->fail(ErrorCode::kRefused, why);
                        },
                    .on_drain = nullptr},
                   {}, std::string_view(line_).substr(length));
  }

  void greeted(NodeMessage& first) {
    auto* news = std::get_if<NodeNews>(&first);
    auto* hello = news == nullptr ? nullptr : std::get_if<Hello>(news);
    if (hello == nullptr || hello->stream != dial_.stream) {
      return fail(ErrorCode::kRefused, "opened another connection than requested");
    }
    secured_->pause(true);
    secured_->listen({});
    patience_.reset();
    const auto then = std::exchange(then_, nullptr);
    if (!then) return;
    then(connection_on(std::move(secured_), dial_.gang, std::move(*hello), std::move(dial_.way)));
  }

  void fail(ErrorCode code, const std::string& why) {
    patience_.reset();
    readable_.reset();
    socket_.reset();
    loop_.post([gone = std::exchange(secured_, nullptr)] {});  // a handler of it may be running
    const auto then = std::exchange(then_, nullptr);
    if (then) then(Error{.code = code, .what = "the muster-node " + why});
  }

  base::EventLoop& loop_;
  UniqueFd socket_;
  NodeDial dial_;
  Then then_;
  std::string line_;
  std::shared_ptr<NodeSocket> secured_;
  base::EventLoop::Interest readable_;
  base::EventLoop::Interest patience_;
};

}  // namespace

std::shared_ptr<void> dial_node(base::EventLoop& loop, UniqueFd socket, NodeDial dial,
                                std::function<void(Result<std::shared_ptr<NodeConnection>>)> then) {
  auto dialling =
      std::make_shared<Dialling>(loop, std::move(socket), std::move(dial), std::move(then));
  dialling->begin();
  return dialling;
}

}  // namespace muster::engine::node
