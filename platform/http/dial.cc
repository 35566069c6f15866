#include "http/dial.h"

#include <sys/socket.h>

#include <array>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <string_view>
#include <utility>

#include "base/unique_fd.h"
#include "http/byte_stream.h"
#include "http/connecting.h"
#include "http/head.h"
#include "http/message_reader.h"
#include "http/sockets.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::EventLoop;
using base::Result;
using base::UniqueFd;

namespace {

/// nullopt: a unix socket.
std::optional<HostAndPort> tcp_address_of(const AsyncPlace& place) {
  if (const auto* tls = std::get_if<TlsPlace>(&place)) {
    return HostAndPort{.host = tls->host, .port = tls->port};
  }
  if (const auto* tcp = std::get_if<TcpPlace>(&place)) {
    return HostAndPort{.host = tcp->host, .port = tcp->port};
  }
  return std::nullopt;
}

const HttpProxy* proxy_of(const AsyncPlace& place) {
  const auto* tls = std::get_if<TlsPlace>(&place);
  return tls == nullptr || !tls->proxy ? nullptr : &*tls->proxy;
}

/// Asks a proxy for a tunnel, over a connected socket.
class ProxyTunnel {
 public:
  /// Errors are phrased to follow the name of the proxy.
  using Then = std::function<void(Result<UniqueFd>)>;

  ProxyTunnel(EventLoop& loop, UniqueFd socket, const HttpProxy& proxy, const std::string& target,
              Then then)
      : loop_(loop), socket_(std::move(socket)), reader_(true, nullptr), then_(std::move(then)) {
    Headers headers;
    if (!proxy.authorization.empty()) headers["proxy-authorization"] = proxy.authorization;
    request_ = request_head("CONNECT", target, headers, target);
    writable_ = loop_.when_writable(socket_.get(), [this] { send(); });
  }

 private:
  void send() {
    const ssize_t count = ::send(socket_.get(), request_.data(), request_.size(), MSG_NOSIGNAL);
    if (count < 0 && errno != EAGAIN && errno != EINTR) return fail("closed the connection");
    if (count > 0) request_.erase(0, static_cast<size_t>(count));
    if (request_.empty()) {
      writable_.reset();
      readable_ = loop_.when_readable(socket_.get(), [this] { read(); });
    } else {
      writable_ = loop_.when_writable(socket_.get(), [this] { send(); });
    }
  }

  /// Byte by byte, because what follows the answer belongs to the tunnel.
  void read() {
    char letter = 0;
    while (true) {
      const ssize_t count = ::recv(socket_.get(), &letter, 1, 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return fail("closed the connection");
      const auto progress = reader_.put({&letter, 1});
      if (!progress) return fail("does not answer in HTTP");
      if (reader_.has_head()) return answered();
    }
  }

  void answered() {
    const int status = reader_.status();
    if (status == 407) return fail("requires a user and a password");
    if (status < 200 || status > 299) {
      return fail("refuses to connect to the server: status " + std::to_string(status));
    }
    readable_.reset();
    std::exchange(then_, nullptr)(std::move(socket_));
  }

  void fail(std::string what) {
    readable_.reset();
    writable_.reset();
    std::exchange(then_, nullptr)(Error{.code = ErrorCode::kUnavailable, .what = std::move(what)});
  }

  EventLoop& loop_;
  UniqueFd socket_;
  ResponseReader reader_;
  std::string request_;
  Then then_;
  // Declared after the socket that they watch.
  EventLoop::Interest readable_;
  EventLoop::Interest writable_;
};

class Dial : public std::enable_shared_from_this<Dial> {
 public:
  Dial(EventLoop& loop, AsyncPlace place, std::string name, std::chrono::milliseconds patience,
       Dialled then)
      : loop_(loop),
        place_(std::move(place)),
        name_(std::move(name)),
        patience_(patience),
        then_(std::move(then)) {}

  void begin() {
    const auto then = [this](Result<UniqueFd> fd) { connected(std::move(fd)); };
    if (const HttpProxy* proxy = proxy_of(place_)) {
      connecting_ =
          connect_async(loop_, {.host = proxy->host, .port = proxy->port}, patience_, then);
    } else if (const auto address = tcp_address_of(place_)) {
      connecting_ = connect_async(loop_, *address, patience_, then);
    } else {
      connecting_ = connect_async(loop_, std::get<std::filesystem::path>(place_), then);
    }
  }

  /// Calls nothing any more.
  void drop() {
    then_ = nullptr;
    connecting_.reset();
    tunnel_.reset();
    if (stream_ != nullptr) stream_->close();
  }

 private:
  void connected(Result<UniqueFd> fd) {
    const auto self = shared_from_this();
    const HttpProxy* proxy = proxy_of(place_);
    if (!fd) {
      Error error = std::move(fd).error();
      error.what =
          name_ + " cannot be reached: " + (proxy == nullptr ? "" : "its proxy does not answer: ") +
          error.what;
      return finish(std::move(error));
    }
    if (proxy == nullptr) return open(*std::move(fd));
    tunnel_ = std::make_unique<ProxyTunnel>(
        loop_, *std::move(fd), *proxy, to_string(*tcp_address_of(place_)),
        [this](Result<UniqueFd> socket) { tunnelled(std::move(socket)); });
  }

  void tunnelled(Result<UniqueFd> socket) {
    const auto self = shared_from_this();
    const auto ended = std::exchange(tunnel_, nullptr);
    if (socket) return open(*std::move(socket));
    const HttpProxy& proxy = *proxy_of(place_);
    Error error = std::move(socket).error();
    error.what = name_ + " cannot be reached: the proxy at " +
                 to_string(HostAndPort{.host = proxy.host, .port = proxy.port}) + " " + error.what;
    error.advice = "check the proxy, or list the server in NO_PROXY";
    finish(std::move(error));
  }

  void open(UniqueFd fd) {
    if (const auto* tls = std::get_if<TlsPlace>(&place_)) {
      stream_ = tls_stream_to(tls->server_name.empty() ? tls->host : tls->server_name, loop_,
                              std::move(fd), tls->context);
    } else {
      stream_ = plain_stream(loop_, std::move(fd));
    }
    stream_->async_start([self = shared_from_this()](const boost::system::error_code& error,
                                                     size_t) { self->started(bool(error)); });
  }

  void started(bool failed) {
    if (then_ == nullptr) return;
    if (failed) {
      return finish(connection_error(name_, "closed the connection before the request was sent",
                                     stream_.get()));
    }
    finish(std::move(stream_));
  }

  void finish(Result<std::unique_ptr<ByteStream>> result) {
    const auto self = shared_from_this();
    if (!result && stream_ != nullptr) stream_->close();
    if (const auto then = std::exchange(then_, nullptr)) then(std::move(result));
  }

  EventLoop& loop_;
  AsyncPlace place_;
  std::string name_;
  std::chrono::milliseconds patience_;
  Dialled then_;
  std::shared_ptr<void> connecting_;
  std::unique_ptr<ProxyTunnel> tunnel_;
  std::unique_ptr<ByteStream> stream_;
};

}  // namespace

std::string host_header(const AsyncPlace& place) {
  const auto address = tcp_address_of(place);
  return address ? to_string(*address) : "localhost";
}

std::shared_ptr<void> dial(EventLoop& loop, const AsyncPlace& place, const std::string& name,
                           std::chrono::milliseconds patience, Dialled then) {
  const auto attempt = std::make_shared<Dial>(loop, place, name, patience, std::move(then));
  attempt->begin();
  return {attempt.get(), [attempt](void*) { attempt->drop(); }};
}

Error connection_error(const std::string& name, const std::string& what, const ByteStream* stream) {
  const auto fault = stream == nullptr ? std::nullopt : stream->fault();
  if (!fault) return {.code = ErrorCode::kUnavailable, .what = name + " " + what};
  if (!fault->is_certificate) {
    return {.code = ErrorCode::kUnavailable, .what = name + " " + what + ": " + fault->what};
  }
  return {.code = ErrorCode::kRefused,
          .what = "cannot verify the certificate of " + name + ": " + fault->what,
          .advice = "configure the authority that signed it, and the host name that it contains"};
}

KeptConnections::KeptConnections(EventLoop& loop, size_t most,
                                 std::chrono::milliseconds longest_wait)
    : loop_(loop), most_(most), longest_wait_(longest_wait) {}

KeptConnections::~KeptConnections() {
  close_all();
}

std::unique_ptr<ByteStream> KeptConnections::take() {
  while (!waiting_.empty()) {
    auto stream = std::move(waiting_.back().stream);
    waiting_.pop_back();
    if (stream->is_silent()) return stream;
    stream->close();
  }
  return nullptr;
}

void KeptConnections::keep(std::unique_ptr<ByteStream> stream) {
  if (most_ == 0) return stream->close();
  if (waiting_.size() == most_) {
    waiting_.front().stream->close();
    waiting_.erase(waiting_.begin());
  }
  waiting_.push_back({std::move(stream), std::chrono::steady_clock::now()});
  if (!timer_) timer_ = loop_.after(longest_wait_, [this] { close_outdated(); });
}

void KeptConnections::close_all() {
  for (Waiting& one : waiting_) one.stream->close();
  waiting_.clear();
  timer_.reset();
}

void KeptConnections::close_outdated() {
  const auto outdated = std::chrono::steady_clock::now() - longest_wait_;
  std::erase_if(waiting_, [&](Waiting& one) {
    const bool is_over = one.since <= outdated || !one.stream->is_silent();
    if (is_over) one.stream->close();
    return is_over;
  });
  timer_.reset();
  if (waiting_.empty()) return;
  timer_ = loop_.after(waiting_.front().since - outdated, [this] { close_outdated(); });
}

}  // namespace muster::http
