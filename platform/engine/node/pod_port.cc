#include "engine/node/pod_port.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace muster::engine::node {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// After this the agent decides whether to wait longer for the server.
constexpr std::chrono::seconds kOrdersPatience{5};
constexpr std::chrono::milliseconds kLeastPatience{50};
/// The server connects as soon as it has sent the order. Its way leads through the API server.
constexpr std::chrono::seconds kStreamPatience{60};
/// A connection may arrive before its order.
constexpr std::chrono::seconds kOrderPatience{30};
constexpr size_t kMostStrangers = 64;
constexpr size_t kMostArrived = 64;

}  // namespace

struct PodPort::Call {
  Hello hello;
  Then then;
  base::EventLoop::Interest patience;
};

Result<std::unique_ptr<PodPort>> PodPort::open(base::EventLoop& loop, const NodeBrief& brief) {
  std::unique_ptr<PodPort> port(new PodPort(loop, brief));
  CallerGate::Options options{
      .bind = "127.0.0.1",
      .port = brief.port,
      .whose = "Muster's server",
      .most = kMostStrangers,
      .is_greeted = false,
      .admit = [&brief](std::string_view line) -> std::optional<Admission> {
        if (!decode_server_dial(line)) return std::nullopt;
        return Admission{.end = rsh::End::kNear, .key = brief.key, .clear = encode(brief.caller)};
      },
      .on_caller =
          [at = port.get()](std::string_view line, std::shared_ptr<NodeSocket> socket,
                            const std::optional<NodeMessage>&) {
            if (const auto dial = decode_server_dial(line)) {
              at->arrived(dial->stream, std::move(socket));
            }
          }};
  auto gate = CallerGate::open(loop, options);
  if (!gate && gate.error().code != ErrorCode::kConflict) {
    options.bind = "::1";
    if (auto other = CallerGate::open(loop, options)) gate = std::move(other);
  }
  if (!gate) return std::move(gate).error();
  port->gate_ = *std::move(gate);
  return port;
}

std::shared_ptr<void> PodPort::call(Hello hello, Then then) {
  auto call = std::make_shared<Call>();
  const uint64_t stream = hello.stream;
  call->hello = std::move(hello);
  call->then = std::move(then);
  const std::weak_ptr<Call> weak = call;
  if (auto found = arrived_.extract(stream)) {
    loop_.post([this, weak, socket = std::move(found.mapped().socket)] {
      if (const auto still = weak.lock()) connect(still, socket);
    });
    return call;
  }
  calls_[stream] = weak;
  const std::chrono::milliseconds orders = std::min<std::chrono::milliseconds>(
      kOrdersPatience, std::max<std::chrono::milliseconds>(brief_.linger, kLeastPatience));
  const std::chrono::milliseconds patience = stream == 0 ? orders : kStreamPatience;
  call->patience = loop_.after(patience, [this, weak, stream] {
    const auto still = weak.lock();
    if (!still) return;
    calls_.erase(stream);
    const auto waiting = std::exchange(still->then, nullptr);
    waiting(Error{
        .code = ErrorCode::kTimeout,
        .what = "the server has not connected to port " + std::to_string(port()) + " of this pod"});
  });
  return call;
}

void PodPort::arrived(uint64_t stream, std::shared_ptr<NodeSocket> socket) {
  const auto waiting = calls_.extract(stream);
  const auto call = waiting.empty() ? nullptr : waiting.mapped().lock();
  if (call) return connect(call, std::move(socket));
  if (arrived_.size() >= kMostArrived && arrived_.count(stream) == 0) return;
  arrived_[stream] = {
      .socket = std::move(socket), .patience = loop_.after(kOrderPatience, [this, stream] {
        // Later: this handler is part of it.
        loop_.post(
            [gone = std::make_shared<Arrived>(std::move(arrived_.extract(stream).mapped()))] {});
      })};
  if (stream == 0 && on_orders_) on_orders_();
}

void PodPort::connect(const std::shared_ptr<Call>& call, std::shared_ptr<NodeSocket> socket) {
  call->patience.reset();
  const auto then = std::exchange(call->then, nullptr);
  if (!then) return;
  if (call->hello.address.empty()) call->hello.address = socket->own_address();
  socket->send(NodeNews(call->hello));
  then(connection_on(std::move(socket), brief_.caller.gang, call->hello));
}

}  // namespace muster::engine::node
