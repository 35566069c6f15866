// The stream below a connection of the server or of AsyncClient: a plain socket, or TLS over TCP.
// The code above does not know which.
//
// On the loop's thread only. At most one read and one write are pending at a time. A callback is
// never called from within the call that received it. The callback holds the owner of the stream,
// so the stream lives as long as an operation is pending.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "http/tls.h"

namespace muster::http {

struct StreamFault {
  bool is_certificate = false;  ///< the peer's certificate is not trusted
  std::string what;
};

class ByteStream {
 public:
  using Done = std::function<void(const boost::system::error_code& error, size_t bytes)>;
  /// Written one after the other; any may be empty.
  using Pieces = std::array<boost::asio::const_buffer, 3>;

  virtual ~ByteStream() = default;
  /// The handshake, before anything else.
  virtual void async_start(Done done) = 0;
  virtual void async_read_some(boost::asio::mutable_buffer buffer, Done done) = 0;
  virtual void async_write_some(const Pieces& pieces, Done done) = 0;
  /// Closes the output and waits until the peer has received everything. After `done`, with or
  /// without an error, close() loses nothing. REQUIRES: no pending write, and no further read.
  virtual void async_finish(Done done) = 0;
  /// Closes the output; reading continues. REQUIRES: no pending write, and no further write.
  virtual void async_close_output(Done done) = 0;
  /// Closes at once. Pending operations end with an error.
  virtual void close() = 0;
  /// Whether the peer has neither sent anything nor closed its output since the last read.
  /// REQUIRES: no read is pending.
  virtual bool is_silent() const = 0;
  /// How long nothing has come from the peer's kernel, neither data nor an acknowledgement, while
  /// something was sent to it. Zero for unix sockets.
  virtual std::chrono::milliseconds silent_for() const = 0;
  /// Details of the last failure beyond its error code, if known.
  virtual std::optional<StreamFault> fault() const { return std::nullopt; }
};

std::unique_ptr<ByteStream> plain_stream(base::EventLoop& loop, base::UniqueFd socket);
/// TLS, the server's end.
std::unique_ptr<ByteStream> tls_stream(base::EventLoop& loop, base::UniqueFd socket,
                                       TlsContext context);
/// TLS, the client's end; the peer's certificate must contain the name `host`.
std::unique_ptr<ByteStream> tls_stream_to(const std::string& host, base::EventLoop& loop,
                                          base::UniqueFd socket, TlsContext context);

}  // namespace muster::http
