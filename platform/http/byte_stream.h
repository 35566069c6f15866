// What a connection of the server, or of AsyncClient, reads from and writes to: a unix socket, or
// TLS over TCP. There are two, and nothing above them knows which it has.
//
// On the loop's thread only. At most one read and one write are under way at a time. A callback is
// never called from within the call that it was given to; it holds the owner of the stream, so the
// stream lives as long as an operation is under way.
#pragma once

#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/system/error_code.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "base/unique_fd.h"
#include "http/tls_context.h"

namespace muster::http {

struct StreamFault {
  bool is_certificate = false;  ///< the other side's is not to be trusted
  std::string what;
};

class ByteStream {
 public:
  using Done = std::function<void(const boost::system::error_code& error, size_t bytes)>;
  /// One after the other; any may be empty.
  using Pieces = std::array<boost::asio::const_buffer, 3>;

  virtual ~ByteStream() = default;
  /// First of all: what the two ends have to settle before the first byte.
  virtual void async_start(Done done) = 0;
  virtual void async_read_some(boost::asio::mutable_buffer buffer, Done done) = 0;
  virtual void async_write_some(const Pieces& pieces, Done done) = 0;
  /// Tells the other side that nothing more comes and lets it take what was sent. Done with an
  /// error or without: close() then loses nothing. REQUIRES: no write is under way, and no read
  /// will be asked for.
  virtual void async_finish(Done done) = 0;
  /// Tells the other side that nothing more comes, and goes on reading what it says.
  /// REQUIRES: no write is under way, and none will be asked for.
  virtual void async_close_output(Done done) = 0;
  /// At once. What is under way ends with an error.
  virtual void close() = 0;
  /// Why the last operation has failed, where more is known than its error code says.
  virtual std::optional<StreamFault> fault() const { return std::nullopt; }
};

std::unique_ptr<ByteStream> plain_stream(base::EventLoop& loop, base::UniqueFd socket);
/// The server's end.
std::unique_ptr<ByteStream> tls_stream(base::EventLoop& loop, base::UniqueFd socket,
                                       TlsContext context);
/// The client's end; `host`: whose name the other side's certificate must have.
std::unique_ptr<ByteStream> tls_stream_to(const std::string& host, base::EventLoop& loop,
                                          base::UniqueFd socket, TlsContext context);

}  // namespace muster::http
