#include "engine/node/connection.h"

#include <utility>

#include "base/unique_fd.h"
#include "engine/node/callers.h"

namespace muster::engine::node {

namespace {

// A handshake needs about 500 bytes.
constexpr size_t kMostBeforeKey = 8 << 10;
/// The most messages reported in one turn of the loop, so that other connections have their turn.
constexpr int kMessagesATurn = 256;

}  // namespace

NodeSocket::NodeSocket(base::EventLoop& loop, std::unique_ptr<PeerStream> stream, rsh::End end,
                       const rsh::Key& key)
    : loop_(loop), stream_(std::move(stream)), channel_(end, key) {}

NodeSocket::NodeSocket(base::EventLoop& loop, base::UniqueFd socket, rsh::End end,
                       const rsh::Key& key)
    : NodeSocket(loop, stream_on(loop, std::move(socket)), end, key) {}

/// A handler may drop the socket while it runs, so each call holds a reference.
void NodeSocket::begin(Handlers handlers, std::string_view clear, std::string_view received) {
  handlers_ = std::move(handlers);
  const std::weak_ptr<NodeSocket> weak = weak_from_this();
  stream_->listen({.on_bytes =
                       [weak](std::string_view bytes) {
                         if (const auto self = weak.lock()) self->take(bytes);
                       },
                   .on_end =
                       [weak](const std::string& why) {
                         if (const auto self = weak.lock()) self->ended(why);
                       },
                   .on_drain =
                       [weak] {
                         const auto self = weak.lock();
                         const auto on_drain = self ? self->handlers_.on_drain : nullptr;
                         if (on_drain) on_drain();
                       }});
  if (paused_) stream_->pause(true);
  if (!clear.empty()) stream_->write(clear);
  stream_->write(channel_.take_encrypted());
  if (!received.empty()) take(received);
}

void NodeSocket::take(std::string_view bytes) {
  if (!was_established_) before_key_ += bytes.size();
  const auto received = channel_.receive(bytes);
  reader_.add(channel_.take_plain());
  if (const auto answer = channel_.take_encrypted(); !answer.empty()) stream_->write(answer);
  if (!received) return end(received.error().what);
  if (!channel_.established()) {
    if (before_key_ >= kMostBeforeKey) end("has another key");
    return;
  }
  if (!std::exchange(was_established_, true)) {
    const auto on_established = handlers_.on_established;
    if (on_established) on_established();
  }
  deliver_messages();
}

/// Returns false if the connection has ended or is paused, or if a later call delivers the remaining
/// messages.
bool NodeSocket::deliver_messages() {
  if (std::exchange(in_handler_, true)) return false;
  int delivered = 0;
  while (stream_ && !paused_ && delivered < kMessagesATurn) {
    auto message = reader_.next();
    if (!message) {
      in_handler_ = false;
      end("sent a malformed message");
      return false;
    }
    if (!*message) break;
    ++delivered;
    const auto on_message = handlers_.on_message;
    if (on_message) on_message(**std::move(message));
  }
  in_handler_ = false;
  if (!stream_ || paused_) return false;
  if (delivered == kMessagesATurn) {
    stream_->pause(true);
    deliver_rest_later();
    return false;
  }
  if (far_end_) end(std::string(*far_end_));
  return stream_ != nullptr;
}

void NodeSocket::deliver_rest_later() {
  loop_.post([weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->deliver_rest();
  });
}

void NodeSocket::deliver_rest() {
  if (stream_ && !paused_ && deliver_messages()) stream_->pause(false);
}

void NodeSocket::send(const NodeMessage& message) {
  if (!stream_) return;
  channel_.send(encode_node(message));
  stream_->write(channel_.take_encrypted());
}

size_t NodeSocket::waiting() const {
  return stream_ ? stream_->waiting() : 0;
}

void NodeSocket::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused || !stream_) return;
  paused ? stream_->pause(true) : deliver_rest_later();
}

void NodeSocket::hang_up() {
  handlers_ = {};
  stream_.reset();
}

/// The messages that have arrived come first.
void NodeSocket::ended(const std::string& why) {
  far_end_ = why.empty() ? "closed the connection" : why;
  deliver_messages();
}

void NodeSocket::end(const std::string& why) {
  const auto on_end = std::exchange(handlers_.on_end, nullptr);
  hang_up();
  if (on_end) on_end(why);
}

std::string NodeSocket::own_address() const {
  return stream_ ? stream_->own_address() : "";
}

// --- the server's port

struct NodeHub::Impl {
  HubOptions options;
  std::unique_ptr<CallerGate> gate;

  std::optional<Admission> admit(std::string_view line) const {
    const auto caller = decode_caller(line);
    const auto key = caller ? options.key_of(caller->gang) : std::nullopt;
    if (!key) return std::nullopt;
    return Admission{.end = rsh::End::kFar, .key = *key, .clear = {}};
  }

  void greet(std::string_view line, std::shared_ptr<NodeSocket> socket,
             std::optional<NodeMessage> first) const {
    const auto caller = decode_caller(line);
    auto* news = first ? std::get_if<NodeNews>(&*first) : nullptr;
    auto* hello = news == nullptr ? nullptr : std::get_if<Hello>(news);
    if (!caller || hello == nullptr) return;
    const auto on_connection = options.on_connection;
    if (on_connection) {
      on_connection(connection_on(std::move(socket), caller->gang, std::move(*hello)));
    }
  }
};

base::Result<std::unique_ptr<NodeHub>> NodeHub::open(base::EventLoop& loop, HubOptions options) {
  auto impl = std::make_unique<Impl>();
  impl->options = std::move(options);
  const Impl& at = *impl;
  MUSTER_TRY(
      impl->gate,
      CallerGate::open(loop, {.bind = at.options.bind,
                              .port = at.options.port,
                              .whose = "muster-nodes",
                              .admit = [&at](std::string_view line) { return at.admit(line); },
                              .on_caller =
                                  [&at](std::string_view line, std::shared_ptr<NodeSocket> socket,
                                        std::optional<NodeMessage> first) {
                                    at.greet(line, std::move(socket), std::move(first));
                                  }}));
  return std::unique_ptr<NodeHub>(new NodeHub(std::move(impl)));
}

NodeHub::NodeHub(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
NodeHub::~NodeHub() = default;

uint16_t NodeHub::port() const {
  return impl_->gate->port();
}

}  // namespace muster::engine::node
