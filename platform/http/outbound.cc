#include "http/outbound.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/unique_fd.h"
#include "http/connecting.h"
#include "http/head.h"
#include "http/message_reader.h"
#include "http/sockets.h"
#include "http/tls_session.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;
using std::chrono::steady_clock;

namespace {

Error cancelled() {
  return {.code = ErrorCode::kTimeout, .what = "the server is shutting down"};
}

enum class Waited { kReady, kLate, kCancelled };

Waited wait_for(int fd, short events, int cancel, steady_clock::time_point end) {
  while (true) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - steady_clock::now());
    if (left.count() <= 0) return Waited::kLate;
    // poll() skips a negative descriptor.
    std::array<pollfd, 2> fds{{{.fd = fd, .events = events, .revents = 0},
                               {.fd = cancel, .events = POLLIN, .revents = 0}}};
    const int ready = ::poll(fds.data(), fds.size(), static_cast<int>(left.count()));
    if (ready < 0 && errno == EINTR) continue;
    if (ready < 0) return Waited::kLate;
    if (fds[1].revents != 0) return Waited::kCancelled;
    if (fds[0].revents != 0) return Waited::kReady;
  }
}

/// One pending request: a socket, optional TLS, and the deadline.
class OutboundExchange {
 public:
  OutboundExchange(const Outbound& request, const OutboundLimits& limits, int cancel)
      : request_(request),
        limits_(limits),
        cancel_(cancel),
        connect_end_(steady_clock::now() + std::min(limits.connect, limits.whole)),
        end_(steady_clock::now() + limits.whole) {}

  /// Each address gets a part of the time, so that a silent address leaves time for the next.
  Result<void> connect(const std::vector<IpAddress>& addresses) {
    Result<void> done = fault("has no address");
    for (size_t i = 0; i < addresses.size(); ++i) {
      const auto now = steady_clock::now();
      const auto part = (connect_end_ - now) / static_cast<int>(addresses.size() - i);
      done = connect(addresses[i], now + part);
      if (done || done.error().code == ErrorCode::kTimeout) break;
    }
    return done;
  }

  Result<void> connect(const IpAddress& address, steady_clock::time_point end) {
    MUSTER_TRY(fd_, socket_for(address));
    if (const int error = begin_to_connect(fd_.get(), address, request_.port);
        error == EINPROGRESS) {
      MUSTER_CHECK(wait(POLLOUT, end, "did not accept the connection"));
    } else if (error != 0) {
      return no_connection(error);
    }
    if (const int error = connect_error(fd_.get()); error != 0) return no_connection(error);
    send_at_once(fd_.get());
    return {};
  }

  Result<void> shake_hands(const TlsContext& context) {
    tls_ = std::make_unique<TlsSession>(context, fd_.get(), TlsSession::Role::kClient);
    tls_->expect_host(request_.host);
    while (true) {
      const TlsStep step = tls_->handshake();
      if (step.kind == TlsStep::Kind::kDone) return {};
      if (!may_go_on(step)) return handshake_error(step);
      MUSTER_CHECK(wait(events_for(step), connect_end_, "did not finish the TLS handshake"));
    }
  }

  /// If the peer has closed its input, that is not an error: its answer can still be read.
  Result<void> send() {
    std::string head = "POST " + request_.target + " HTTP/1.1\r\nhost: " + host_header() +
                       "\r\ncontent-length: " + std::to_string(request_.body.size()) +
                       "\r\nconnection: close\r\n";
    for (const auto& [name, value] : request_.headers) head += name + ": " + value + "\r\n";
    const std::string bytes = head + "\r\n" + request_.body;
    for (std::string_view left = bytes; !left.empty();) {
      const TlsStep step = write(left);
      if (step.kind == TlsStep::Kind::kDone) {
        left.remove_prefix(step.bytes);
      } else if (may_go_on(step)) {
        MUSTER_CHECK(wait(events_for(step), end_, "did not accept the request"));
      } else {
        return {};
      }
    }
    return {};
  }

  Result<Response> receive() {
    ResponseReader reader(false, {});
    std::vector<char> buffer(16 << 10);
    size_t received = 0;
    while (received <= limits_.answer_bytes) {
      const TlsStep step = read(buffer);
      if (step.kind == TlsStep::Kind::kDone && step.bytes > 0) {
        received += step.bytes;
        MUSTER_TRY(const auto progress, reader.put({buffer.data(), step.bytes}));
        if (progress != ResponseReader::Progress::kMore) break;
      } else if (step.kind == TlsStep::Kind::kWantsRead ||
                 step.kind == TlsStep::Kind::kWantsWrite) {
        MUSTER_CHECK(wait(events_for(step), end_, "did not answer"));
      } else if (!reader.put_end()) {
        return fault("closed the connection without an answer");
      } else {
        break;
      }
    }
    // Endless interim responses.
    if (!reader.has_head()) return fault("did not answer");
    Response response = reader.take();
    response.body.resize(std::min(response.body.size(), limits_.answer_bytes));
    return response;
  }

 private:
  static bool may_go_on(const TlsStep& step) {
    return step.kind == TlsStep::Kind::kWantsRead || step.kind == TlsStep::Kind::kWantsWrite;
  }
  static short events_for(const TlsStep& step) {
    return step.kind == TlsStep::Kind::kWantsWrite ? POLLOUT : POLLIN;
  }
  static TlsStep step_of(ssize_t count, TlsStep::Kind would_block) {
    if (count >= 0) return {.bytes = static_cast<size_t>(count)};
    if (errno == EAGAIN || errno == EINTR) return {.kind = would_block};
    return {.kind = TlsStep::Kind::kFailed};
  }

  TlsStep write(std::string_view bytes) const {
    if (tls_ != nullptr) return tls_->write(bytes);
    return step_of(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
                   TlsStep::Kind::kWantsWrite);
  }
  TlsStep read(std::vector<char>& buffer) const {
    if (tls_ != nullptr) return tls_->read(buffer.data(), buffer.size());
    return step_of(::recv(fd_.get(), buffer.data(), buffer.size(), 0), TlsStep::Kind::kWantsRead);
  }

  Result<void> wait(short events, steady_clock::time_point end, const char* what) const {
    switch (wait_for(fd_.get(), events, cancel_, end)) {
      case Waited::kReady:
        return {};
      case Waited::kCancelled:
        return cancelled();
      case Waited::kLate:
        break;
    }
    return fault(std::string(what) + " in time");
  }

  std::string host_header() const {
    const bool is_usual = request_.port == (request_.over_tls ? 443 : 80);
    const std::string whole = to_string(HostAndPort{.host = request_.host, .port = request_.port});
    return is_usual ? whole.substr(0, whole.rfind(':')) : whole;
  }

  Error fault(const std::string& what) const {
    return {.code = ErrorCode::kUnavailable, .what = host_header() + " " + what};
  }
  Error no_connection(int error) const {
    return {.code = ErrorCode::kUnavailable,
            .what = "no connection to " + host_header() + ": " + std::strerror(error)};
  }
  Error handshake_error(const TlsStep& step) const {
    if (const auto wrong = tls_->certificate_fault()) {
      return {.code = ErrorCode::kRefused,
              .what = "cannot verify the certificate of " + host_header() + ": " + *wrong,
              .advice = "give it one that an authority of this machine has signed for that name"};
    }
    return fault(step.fault.empty() ? "closed the connection during the TLS handshake"
                                    : "failed in the TLS handshake: " + step.fault);
  }

  const Outbound& request_;
  const OutboundLimits& limits_;
  int cancel_;
  steady_clock::time_point connect_end_;
  steady_clock::time_point end_;
  UniqueFd fd_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace

Result<std::vector<IpAddress>> addresses_of(const std::string& host,
                                            std::chrono::milliseconds patience, int cancel) {
  if (const auto itself = ip_address_of(host)) return std::vector<IpAddress>{*itself};
  MUSTER_TRY(const NameLookup lookup, NameLookup::start(host));
  const Waited waited = wait_for(lookup.fd(), POLLIN, cancel, steady_clock::now() + patience);
  if (waited == Waited::kCancelled) return cancelled();
  return lookup.answer();
}

Result<Response> post(const std::vector<IpAddress>& addresses, const Outbound& request,
                      const TlsContext& tls, const OutboundLimits& limits, int cancel) {
  OutboundExchange exchange(request, limits, cancel);
  MUSTER_CHECK(exchange.connect(addresses));
  if (request.over_tls) MUSTER_CHECK(exchange.shake_hands(tls));
  MUSTER_CHECK(exchange.send());
  return exchange.receive();
}

}  // namespace muster::http
