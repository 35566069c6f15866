#include "engine/node/dial.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "engine/node/callers.h"

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// The muster-node of a stream answers once it has the order.
constexpr std::chrono::seconds kAnswerPatience{45};

class Dialling : public std::enable_shared_from_this<Dialling> {
 public:
  using Then = std::function<void(Result<std::shared_ptr<NodeConnection>>)>;

  Dialling(base::EventLoop& loop, std::unique_ptr<PeerStream> stream, NodeDial dial, Then then)
      : loop_(loop), stream_(std::move(stream)), dial_(std::move(dial)), then_(std::move(then)) {}

  void begin() {
    const std::weak_ptr<Dialling> weak = weak_from_this();
    stream_->listen({.on_bytes =
                         [weak](std::string_view bytes) {
                           if (const auto self = weak.lock()) self->read_line(bytes);
                         },
                     .on_end =
                         [weak](const std::string& why) {
                           const auto self = weak.lock();
                           if (!self) return;
                           self->fail(ErrorCode::kUnavailable,
                                      why.empty() ? "closed the connection" : why);
                         }});
    patience_ = loop_.after(kAnswerPatience, [weak] {
      if (const auto self = weak.lock()) self->fail(ErrorCode::kTimeout, "does not answer");
    });
    stream_->write(encode(ServerDial{.stream = dial_.stream}));
  }

 private:
  /// The rest after the line belongs to the encrypted connection.
  void read_line(std::string_view bytes) {
    line_ += bytes;
    const size_t end = line_.find('\n');
    const bool is_too_long = std::min(end, line_.size()) >= kLongestCaller;
    if (is_too_long) return fail(ErrorCode::kRefused, "is not a muster-node");
    if (end != std::string::npos) secure(end + 1);
  }

  void secure(size_t length) {
    const auto caller = decode_caller(std::string_view(line_).substr(0, length));
    if (!caller) return fail(ErrorCode::kRefused, "sent an invalid answer: " + caller.error().what);
    if (caller->gang != dial_.gang) {
      return fail(ErrorCode::kRefused, "belongs to another attempt, of job " + caller->gang.job_id);
    }
    secured_ = std::make_shared<NodeSocket>(loop_, std::move(stream_), rsh::End::kFar, dial_.key);
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
    then(connection_on(std::move(secured_), dial_.gang, std::move(*hello)));
  }

  void fail(ErrorCode code, const std::string& why) {
    patience_.reset();
    stream_.reset();
    loop_.post([gone = std::exchange(secured_, nullptr)] {});  // a handler of it may be running
    const auto then = std::exchange(then_, nullptr);
    if (then) then(Error{.code = code, .what = "the muster-node " + why});
  }

  base::EventLoop& loop_;
  std::unique_ptr<PeerStream> stream_;
  NodeDial dial_;
  Then then_;
  std::string line_;
  std::shared_ptr<NodeSocket> secured_;
  base::EventLoop::Interest patience_;
};

}  // namespace

std::shared_ptr<void> dial_node(base::EventLoop& loop, std::unique_ptr<PeerStream> stream,
                                NodeDial dial,
                                std::function<void(Result<std::shared_ptr<NodeConnection>>)> then) {
  auto dialling =
      std::make_shared<Dialling>(loop, std::move(stream), std::move(dial), std::move(then));
  dialling->begin();
  return dialling;
}

}  // namespace muster::engine::node
