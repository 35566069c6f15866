#include "http/byte_stream.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/post.hpp>
#include <cerrno>
#include <string>
#include <utility>

#include "http/tls_session.h"

namespace muster::http {

namespace asio = boost::asio;

using boost::system::error_code;

namespace {

/// Whether a read of the socket would wait.
bool would_wait(int fd) {
  char letter = 0;
  return ::recv(fd, &letter, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

std::chrono::milliseconds unacknowledged_for(int fd) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return {};
  const bool has_unanswered = info.tcpi_unacked > 0 || info.tcpi_probes > 0;
  return std::chrono::milliseconds(has_unanswered ? info.tcpi_last_ack_recv : 0);
}

bool is_unix(int fd) {
  int domain = AF_UNIX;
  socklen_t size = sizeof domain;
  ::getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size);
  return domain == AF_UNIX;
}

/// The limit for bytes that a client still sends after its last answer.
constexpr size_t kMostReadAway = 64 << 20;

/// Drops what the peer still sends, `left` bytes at most, until it closes its output. `done` holds
/// the owner of the socket. MSG_TRUNC: the kernel drops the bytes instead of copying them.
template <class Socket>
void read_away(Socket& socket, size_t left, ByteStream::Done done) {
  socket.async_wait(
      Socket::wait_read, [&socket, left, done = std::move(done)](error_code error) mutable {
        if (error) return done(error, 0);
        const ssize_t count =
            ::recv(socket.native_handle(), nullptr, kMostReadAway, MSG_TRUNC | MSG_DONTWAIT);
        const bool again = count > 0 || (count < 0 && (errno == EAGAIN || errno == EINTR));
        const auto dropped = static_cast<size_t>(std::max<ssize_t>(count, 0));
        if (!again || dropped > left) return done(error, 0);
        read_away(socket, left - dropped, std::move(done));
      });
}

/// Closing a TCP socket with unread bytes sends a reset, which makes the peer discard what it has
/// received. Hence this closes the output, and waits for the peer's end.
template <class Socket>
void finish_tcp(Socket& socket, ByteStream::Done done) {
  error_code ignored;
  socket.cancel(ignored);  // the pending read: its bytes are not needed
  socket.shutdown(Socket::shutdown_send, ignored);
  read_away(socket, kMostReadAway, std::move(done));
}

/// A unix socket, or a connection over TCP of this machine.
class PlainStream : public ByteStream {
 public:
  PlainStream(base::EventLoop& loop, base::UniqueFd socket)
      : socket_(loop.context()), is_unix_(is_unix(socket.get())) {
    boost::system::error_code error;
    // The kernel does not care which address family Asio assumes for the socket.
    socket_.assign(asio::local::stream_protocol(), socket.get(), error);
    if (!error) socket.release();  // else the first read fails, and with it the connection
  }

  void async_start(Done done) override { at_once(std::move(done)); }

  void async_read_some(asio::mutable_buffer buffer, Done done) override {
    socket_.async_read_some(buffer, std::move(done));
  }

  void async_write_some(const Pieces& pieces, Done done) override {
    socket_.async_write_some(pieces, std::move(done));
  }

  /// Bytes in a unix socket can still be read after this end is closed.
  void async_finish(Done done) override {
    is_unix_ ? at_once(std::move(done)) : finish_tcp(socket_, std::move(done));
  }

  void async_close_output(Done done) override {
    boost::system::error_code ignored;  // the other side may have gone
    socket_.shutdown(asio::local::stream_protocol::socket::shutdown_send, ignored);
    at_once(std::move(done));
  }

  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

  bool is_silent() const override {
    return socket_.is_open() && would_wait(const_cast<PlainStream*>(this)->socket_.native_handle());
  }

  std::chrono::milliseconds silent_for() const override {
    return unacknowledged_for(const_cast<PlainStream*>(this)->socket_.native_handle());
  }

 private:
  void at_once(Done done) {
    asio::post(socket_.get_executor(), [done = std::move(done)] { done({}, 0); });
  }

  asio::local::stream_protocol::socket socket_;
  const bool is_unix_;
};

}  // namespace

std::unique_ptr<ByteStream> plain_stream(base::EventLoop& loop, base::UniqueFd socket) {
  return std::make_unique<PlainStream>(loop, std::move(socket));
}

using Socket = asio::ip::tcp::socket;

namespace {

/// The size of a TLS record.
constexpr size_t kRecord = 16 << 10;

error_code error_of(const TlsStep& step) {
  switch (step.kind) {
    case TlsStep::Kind::kEnd:
      return asio::error::eof;
    case TlsStep::Kind::kFailed:
      return asio::error::connection_reset;
    default:
      return {};
  }
}

class TlsStream : public ByteStream {
 public:
  TlsStream(base::EventLoop& loop, base::UniqueFd socket, TlsContext context,
            TlsSession::Role role = TlsSession::Role::kServer)
      : socket_(loop.context()), session_(std::move(context), socket.get(), role) {
    error_code error;
    // The kernel does not care which address family Asio assumes for the socket.
    socket_.assign(asio::ip::tcp::v4(), socket.get(), error);
    if (!error) socket_.non_blocking(true, error);
    if (!error) socket.release();  // else the handshake fails, and with it the connection
  }

  void expect_host(const std::string& host) { session_.expect_host(host); }

  void async_start(Done done) override {
    go_on([this] { return session_.handshake(); }, std::move(done));
  }

  void async_read_some(asio::mutable_buffer buffer, Done done) override {
    go_on(
        [this, buffer] { return session_.read(static_cast<char*>(buffer.data()), buffer.size()); },
        std::move(done));
  }

  void async_write_some(const Pieces& pieces, Done done) override {
    const std::string_view bytes = first_record(pieces);
    go_on([this, bytes] { return session_.write(bytes); }, std::move(done));
  }

  void async_finish(Done done) override {
    session_.try_to_close_output();
    finish_tcp(socket_, std::move(done));
  }

  void async_close_output(Done done) override {
    go_on([this] { return session_.close_output(); }, std::move(done));
  }

  void close() override {
    error_code ignored;
    socket_.close(ignored);
  }

  bool is_silent() const override {
    return socket_.is_open() && would_wait(const_cast<TlsStream*>(this)->socket_.native_handle());
  }

  std::chrono::milliseconds silent_for() const override {
    return unacknowledged_for(const_cast<TlsStream*>(this)->socket_.native_handle());
  }

  std::optional<StreamFault> fault() const override {
    if (const auto wrong = session_.certificate_fault()) {
      return StreamFault{.is_certificate = true, .what = *wrong};
    }
    if (fault_.empty()) return std::nullopt;
    return StreamFault{.what = fault_};
  }

 private:
  template <class Attempt>
  void go_on(Attempt attempt, Done done) {
    if (!socket_.is_open()) return complete({.kind = TlsStep::Kind::kFailed}, std::move(done));
    const TlsStep step = attempt();
    if (step.kind == TlsStep::Kind::kWantsRead) {
      wait(Socket::wait_read, std::move(attempt), std::move(done));
    } else if (step.kind == TlsStep::Kind::kWantsWrite) {
      wait(Socket::wait_write, std::move(attempt), std::move(done));
    } else {
      complete(step, std::move(done));
    }
  }

  template <class Attempt>
  void wait(Socket::wait_type type, Attempt attempt, Done done) {
    socket_.async_wait(type, [this, attempt = std::move(attempt),
                              done = std::move(done)](const error_code& error) mutable {
      if (error) return done(error, 0);
      go_on(std::move(attempt), std::move(done));
    });
  }

  /// Posted to the loop, because this may run inside the call that received `done`.
  void complete(const TlsStep& step, Done done) {
    if (!step.fault.empty()) fault_ = step.fault;
    asio::post(socket_.get_executor(), [error = error_of(step), bytes = step.bytes,
                                        done = std::move(done)] { done(error, bytes); });
  }

  /// Small pieces are joined, so that a head and its body form one record and one packet.
  std::string_view first_record(const Pieces& pieces) {
    out_.clear();
    for (const asio::const_buffer& piece : pieces) {
      const std::string_view bytes(static_cast<const char*>(piece.data()), piece.size());
      if (out_.empty() && bytes.size() >= kRecord) return bytes;
      out_ += bytes.substr(0, kRecord - out_.size());
    }
    return out_;
  }

  Socket socket_;
  TlsSession session_;
  std::string out_;
  std::string fault_;
};

}  // namespace

std::unique_ptr<ByteStream> tls_stream(base::EventLoop& loop, base::UniqueFd socket,
                                       TlsContext context) {
  return std::make_unique<TlsStream>(loop, std::move(socket), std::move(context));
}

std::unique_ptr<ByteStream> tls_stream_to(const std::string& host, base::EventLoop& loop,
                                          base::UniqueFd socket, TlsContext context) {
  auto stream = std::make_unique<TlsStream>(loop, std::move(socket), std::move(context),
                                            TlsSession::Role::kClient);
  stream->expect_host(host);
  return stream;
}

}  // namespace muster::http
