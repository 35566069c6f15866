// From the place of a server to an open connection, on the event loop: connects, through an HTTP
// proxy where the place names one, and does the TLS handshake. Finished connections can be kept for
// further requests.
//
// On the loop's thread; the loop must outlive all objects.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "http/tls.h"

namespace muster::http {

class ByteStream;

/// A proxy that opens a tunnel to the server (CONNECT), reached over plain TCP. TLS is spoken
/// through the tunnel, so the proxy sees only the server's name.
struct HttpProxy {
  std::string host;
  int port = 3128;
  std::string authorization;  ///< the header proxy-authorization; empty: none

  bool operator==(const HttpProxy&) const = default;
};

struct TlsPlace {
  std::string host;
  int port = 0;
  TlsContext context;            ///< made by client_context()
  std::string server_name = {};  ///< that the certificate must contain; empty: `host`
  std::optional<HttpProxy> proxy = {};
};
/// Unencrypted: do not send secrets except over a trusted network.
struct TcpPlace {
  std::string host;
  int port = 0;
};
using AsyncPlace = std::variant<std::filesystem::path, TlsPlace, TcpPlace>;

/// The value of the header "host".
std::string host_header(const AsyncPlace& place);

using Dialled = std::function<void(base::Result<std::unique_ptr<ByteStream>>)>;

/// Opens a connection. Calls `then` once, later; never after the returned handle was dropped.
/// `patience`: for each address of the host; the caller bounds the whole.
///
/// Errors name the server by `name`: kUnavailable (no answer, or the proxy refuses), kRefused (no
/// permission, or an untrusted certificate).
[[nodiscard]] std::shared_ptr<void> dial(base::EventLoop& loop, const AsyncPlace& place,
                                         const std::string& name,
                                         std::chrono::milliseconds patience, Dialled then);

/// The error for a connection of `name` that failed: "NAME WHAT", or what is wrong with the
/// certificate of NAME. `stream`: may be null.
base::Error connection_error(const std::string& name, const std::string& what,
                             const ByteStream* stream);

/// Open connections that wait for their next request. A connection is closed when it has waited too
/// long, and when the server closes it.
class KeptConnections {
 public:
  KeptConnections(base::EventLoop& loop, size_t most, std::chrono::milliseconds longest_wait);
  ~KeptConnections();
  KeptConnections(const KeptConnections&) = delete;
  KeptConnections& operator=(const KeptConnections&) = delete;

  /// The connection that was used last; null: there is none.
  std::unique_ptr<ByteStream> take();
  /// REQUIRES: no read or write is pending.
  void keep(std::unique_ptr<ByteStream> stream);
  void close_all();
  size_t size() const { return waiting_.size(); }

 private:
  struct Waiting {
    std::unique_ptr<ByteStream> stream;
    std::chrono::steady_clock::time_point since;
  };
  void close_outdated();

  base::EventLoop& loop_;
  size_t most_;
  std::chrono::milliseconds longest_wait_;
  std::vector<Waiting> waiting_;  ///< oldest first
  base::EventLoop::Interest timer_;
};

}  // namespace muster::http
