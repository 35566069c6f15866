// For tests: a server that also listens for TLS on a port of the loopback, and its certificate.
#pragma once

#include <fcntl.h>

#include <functional>

#include "base/clock.h"
#include "http/client.h"
#include "http/sockets.h"
#include "http/test_server.h"
#include "http/tls.h"

namespace muster::http {

inline TlsIdentity identity_of(const std::vector<std::string>& names,
                               base::Time now = base::SystemClock().now()) {
  auto identity = make_self_signed(names, now, std::chrono::hours(24));
  EXPECT_TRUE(identity) << identity.error().to_string();
  return identity ? *std::move(identity) : TlsIdentity();
}

class TlsTestServer : public TestServer {
 public:
  explicit TlsTestServer(Handler handler, const Limits& limits = {},
                         TlsIdentity identity = identity_of({"localhost", "127.0.0.1"}))
      : TestServer(std::move(handler), limits), identity_(std::move(identity)) {
    on_loop([this] {
      const auto listening = server().listen(std::string("127.0.0.1:0"), identity_);
      ASSERT_TRUE(listening) << listening.error().to_string();
      const auto address = parse_host_and_port(*listening);
      ASSERT_TRUE(address) << *listening;
      port_ = address->port;
    });
  }

  int port() const { return port_; }
  const TlsIdentity& identity() const { return identity_; }
  std::string fingerprint() const { return *fingerprint_of(identity_.certificate); }

  TlsEndpoint pinned() const {
    return {.host = "127.0.0.1", .port = port_, .fingerprint = fingerprint()};
  }
  TlsEndpoint trusted(const std::string& host) const {
    return {.host = host, .port = port_, .authorities = identity_.certificate};
  }

  /// A connection before its TLS handshake.
  base::UniqueFd tcp() const {
    auto fd = connect_to(HostAndPort{.host = "127.0.0.1", .port = port_}, kPatience);
    EXPECT_TRUE(fd) << fd.error().to_string();
    if (!fd) return {};
    ::fcntl(fd->get(), F_SETFL, ::fcntl(fd->get(), F_GETFL) & ~O_NONBLOCK);
    return *std::move(fd);
  }

 private:
  TlsIdentity identity_;
  int port_ = 0;
};

/// A TLS connection that may break the protocol.
class RawTlsClient {
 public:
  explicit RawTlsClient(const TlsTestServer& server) {
    auto stream = ClientStream::connect(server.pinned());
    EXPECT_TRUE(stream) << stream.error().to_string();
    if (stream) stream_ = *std::move(stream);
  }

  void send(std::string_view bytes) {
    EXPECT_TRUE(stream_->send_all(bytes, ClientStream::WhenAnswered::kStop));
  }

  std::string read_to_the_end() { return read_until(nullptr); }

  /// Reads until the bytes end with `end`.
  std::string read_to(const std::string& end) {
    return read_until([&end](const std::string& text) { return text.ends_with(end); });
  }

  /// Whether the peer closes the connection, rather than resets it, without another byte.
  bool ends_in_order() {
    char letter = 0;
    const auto received = stream_->receive(&letter, 1, {});
    return received && received->kind == ClientStream::Received::Kind::kEnd;
  }

  /// Waits for bytes and returns them.
  std::string read_some() {
    return read_until([](const std::string&) { return true; });
  }

 private:
  std::string read_until(const std::function<bool(const std::string&)>& is_enough) {
    std::string text;
    std::string buffer(1 << 16, '\0');
    while (true) {
      const auto received = stream_->receive(buffer.data(), buffer.size(), {});
      if (!received || received->kind != ClientStream::Received::Kind::kBytes) return text;
      text.append(buffer, 0, received->count);
      if (is_enough && is_enough(text)) return text;
    }
  }

  std::unique_ptr<ClientStream> stream_;
};

}  // namespace muster::http
