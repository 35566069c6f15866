#include "http/client.h"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>
#include <vector>

#include "http/head.h"
#include "http/message_reader.h"
#include "http/sockets.h"

namespace muster::http {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::system_error;
using std::chrono::steady_clock;

namespace {

constexpr size_t kPiece = 64 << 10;

}  // namespace

struct BlockingClient::Impl {
  explicit Impl(ServerPlace where) : place(std::move(where)), buffer(kPiece) {}

  Result<Response> exchange(const Request& request, const OnPiece& on_piece, const Wake& wake) {
    MUSTER_CHECK(connect(wake));
    auto answer = exchange_connected(request, on_piece, wake);
    if (answer || answer.error().code != ErrorCode::kUnavailable) return answer;
    Error error = std::move(answer).error();
    error.detail = std::make_shared<AnswerLost>();
    return error;
  }

  /// REQUIRES: `connection` is open.
  Result<Response> exchange_connected(const Request& request, const OnPiece& on_piece,
                                      const Wake& wake) {
    ResponseReader reader(request.method == "HEAD", on_piece);
    // Moved out of the member; it returns there only after a complete exchange.
    std::unique_ptr<ClientStream> stream = std::move(connection);
    MUSTER_TRY(const bool sent,
               stream->send_all(request_head(request, host_header(place)) + request.body,
                                ClientStream::WhenAnswered::kStop, on_piece ? Wake{} : wake));
    MUSTER_TRY(const auto progress, receive(*stream, reader, wake));
    const bool whole = sent && progress == ResponseReader::Progress::kDone;
    if (whole && reader.keep_alive()) connection = std::move(stream);
    return reader.take();
  }

  Result<void> connect(const Wake& wake) {
    if (connection != nullptr && !connection->is_dead()) return {};
    connection.reset();
    MUSTER_TRY(connection, ClientStream::connect(place, wake));
    return {};
  }

  Result<ResponseReader::Progress> receive(ClientStream& stream, ResponseReader& reader,
                                           const Wake& wake) {
    while (true) {
      const auto received = stream.receive(buffer.data(), buffer.size(), wake);
      if (received && received->kind == ClientStream::Received::Kind::kLeft) {
        return ResponseReader::Progress::kLeft;
      }
      if (!received || received->kind == ClientStream::Received::Kind::kEnd) {
        MUSTER_CHECK(reader.put_end());
        // A body that ends with the connection is complete only if the connection ended in order.
        if (!received) return received.error();
        return ResponseReader::Progress::kDone;
      }
      MUSTER_TRY(const auto progress, reader.put({buffer.data(), received->count}));
      if (progress != ResponseReader::Progress::kMore) return progress;
    }
  }

  ServerPlace place;
  Wake wake_of_send;
  std::unique_ptr<ClientStream> connection;
  std::vector<char> buffer;
};

BlockingClient::BlockingClient(std::filesystem::path socket)
    : impl_(std::make_unique<Impl>(std::move(socket))) {}
BlockingClient::BlockingClient(TlsEndpoint endpoint)
    : impl_(std::make_unique<Impl>(std::move(endpoint))) {}
BlockingClient::~BlockingClient() = default;

void BlockingClient::set_wake(Wake wake) {
  impl_->wake_of_send = std::move(wake);
}

Result<Response> BlockingClient::send(const Request& request) {
  if (impl_->wake_of_send.fd < 0) return impl_->exchange(request, {}, {});
  bool is_left = false;
  const Wake wake{.fd = impl_->wake_of_send.fd, .on_wake = [&] {
                    is_left = !impl_->wake_of_send.on_wake();
                    return !is_left;
                  }};
  auto answer = impl_->exchange(request, {}, wake);
  if (!is_left) return answer;
  return Error{.code = ErrorCode::kUnavailable,
               .what = "interrupted while waiting for the server",
               .detail = std::make_shared<RequestLeft>()};
}

Result<Response> BlockingClient::stream(const Request& request,
                                        const std::function<bool(std::string_view)>& on_piece,
                                        const Wake& wake) {
  return impl_->exchange(request, on_piece, wake);
}

namespace {

/// The time limits to connect, and for the handshake.
constexpr std::chrono::seconds kPatience{10};
constexpr size_t kReadAhead = 64 << 10;
/// A stream that never pauses lets `wake` pass each time after so many bytes.
constexpr size_t kMostWithoutWake = 64 << 10;

std::string place_of(const TlsEndpoint& endpoint) {
  return to_string(HostAndPort{.host = endpoint.host, .port = endpoint.port});
}

/// kDone with the number of bytes, or the reason why no byte was transferred.
TlsStep step_of(ssize_t count, TlsStep::Kind would_block) {
  if (count >= 0) return {.bytes = static_cast<size_t>(count)};
  if (errno == EAGAIN || errno == EINTR) return {.kind = would_block};
  return {.kind = TlsStep::Kind::kFailed};
}

bool is_readable(int fd) {
  pollfd entry{.fd = fd, .events = POLLIN, .revents = 0};
  return ::poll(&entry, 1, 0) == 1;
}

short events_for(TlsStep::Kind kind) {
  return kind == TlsStep::Kind::kWantsWrite ? POLLOUT : POLLIN;
}

/// Waits until `fd` is ready or the time is up.
Result<void> wait_until(int fd, TlsStep::Kind kind, steady_clock::time_point end,
                        const TlsEndpoint& endpoint, const Wake& wake) {
  const Awaited awaited = await_events(fd, events_for(kind), end, wake);
  if (awaited == Awaited::kReady) return {};
  if (awaited == Awaited::kLeft) return left_while_connecting();
  return Error{.code = ErrorCode::kUnavailable,
               .what = "the server at " + place_of(endpoint) + " does not finish the handshake",
               .advice = "check that a Muster server listens there"};
}

Error handshake_error(const TlsEndpoint& endpoint, const TlsSession& session, const TlsStep& step) {
  const std::string place = place_of(endpoint);
  if (const auto fault = session.certificate_fault(); fault && endpoint.fingerprint.empty()) {
    return {.code = ErrorCode::kRefused,
            .what = "cannot verify the certificate of the server at " + place + ": " + *fault,
            .advice =
                "compare its fingerprint with the one that the server prints when it starts "
                "and pin it, or name the authority that has signed it"};
  }
  if (step.fault.empty()) {
    return {.code = ErrorCode::kUnavailable,
            .what = "the server at " + place + " closed the connection during the handshake",
            .advice = "it may have too many connections; try again later"};
  }
  return {.code = ErrorCode::kUnavailable,
          .what = "no TLS connection to the server at " + place + ": " + step.fault,
          .advice = "check that a Muster server listens there"};
}

Result<void> compare(const std::string& found, const TlsEndpoint& endpoint) {
  MUSTER_TRY(const std::string expected, parse_fingerprint(endpoint.fingerprint));
  if (found == expected) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = "the certificate of the server at " + place_of(endpoint) +
                       " is not the pinned one: its fingerprint is " + readable_fingerprint(found) +
                       ", expected " + readable_fingerprint(expected),
               .advice =
                   "if the server has a new certificate, compare its fingerprint with the output "
                   "of 'muster server --fingerprint' on the server, and pin the new one: muster "
                   "login https://" +
                   place_of(endpoint) +
                   " --fingerprint NEW; if not, another machine answers in its place"};
}

}  // namespace

std::string host_header(const ServerPlace& place) {
  const auto* endpoint = std::get_if<TlsEndpoint>(&place);
  return endpoint == nullptr ? "localhost" : place_of(*endpoint);
}

Result<std::unique_ptr<ClientStream>> ClientStream::connect(const ServerPlace& place,
                                                            const Wake& wake) {
  if (const auto* endpoint = std::get_if<TlsEndpoint>(&place)) {
    MUSTER_TRY(auto stream, meet(*endpoint, wake));
    if (!endpoint->fingerprint.empty()) MUSTER_CHECK(compare(stream->fingerprint(), *endpoint));
    return stream;
  }
  MUSTER_TRY(base::UniqueFd fd, connect_to(std::get<std::filesystem::path>(place)));
  return std::unique_ptr<ClientStream>(new ClientStream(std::move(fd)));
}

Result<std::unique_ptr<ClientStream>> ClientStream::meet(const TlsEndpoint& endpoint,
                                                         const Wake& wake) {
  MUSTER_TRY(const TlsContext context, client_context(endpoint));
  MUSTER_TRY(base::UniqueFd fd,
             connect_to({.host = endpoint.host, .port = endpoint.port}, kPatience, wake));
  std::unique_ptr<ClientStream> stream(new ClientStream(std::move(fd)));
  stream->tls_ =
      std::make_unique<TlsSession>(context, stream->fd_.get(), TlsSession::Role::kClient);
  stream->tls_->expect_host(endpoint.host);
  MUSTER_CHECK(stream->shake_hands(endpoint, wake));
  return stream;
}

Result<void> ClientStream::shake_hands(const TlsEndpoint& endpoint, const Wake& wake) {
  const auto end = steady_clock::now() + kPatience;
  while (true) {
    const TlsStep step = tls_->handshake();
    if (step.kind == TlsStep::Kind::kDone) return {};
    if (step.kind == TlsStep::Kind::kFailed || step.kind == TlsStep::Kind::kEnd) {
      return handshake_error(endpoint, *tls_, step);
    }
    MUSTER_CHECK(wait_until(fd_.get(), step.kind, end, endpoint, wake));
  }
}

ClientStream::~ClientStream() {
  if (tls_ != nullptr) tls_->try_to_close_output();
}

bool ClientStream::is_dead() {
  char byte = 0;
  if (!ahead_.empty()) return true;
  if (tls_ != nullptr) return tls_->read(&byte, 1).kind != TlsStep::Kind::kWantsRead;
  const ssize_t count = ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count >= 0 || (errno != EAGAIN && errno != EINTR);
}

Result<bool> ClientStream::send_all(std::string_view bytes, WhenAnswered when_answered,
                                    const Wake& wake) {
  while (!bytes.empty()) {
    const TlsStep step = try_to_write(bytes);
    if (step.kind == TlsStep::Kind::kFailed) return false;
    bytes.remove_prefix(step.bytes);
    if (bytes.empty()) break;
    const bool more_may_come = read_ahead();
    if (when_answered == WhenAnswered::kStop && !ahead_.empty()) return false;
    if (step.kind == TlsStep::Kind::kDone) continue;
    std::array<pollfd, 2> fds{
        {{.fd = fd_.get(), .events = POLLOUT, .revents = 0},
         {.fd = wake.fd, .events = POLLIN, .revents = 0}}};  // poll() skips a negative one
    if (more_may_come) fds[0].events |= POLLIN;
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return system_error("cannot wait for the server", errno);
    }
    if (fds[1].revents != 0 && !wake.on_wake()) {
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "interrupted while sending to the server"};
    }
  }
  return true;
}

void ClientStream::queue(std::string_view bytes) {
  unsent_.append(bytes);
  send_queued();
}

/// If the server no longer takes the bytes, they are dropped: its answer can still be received.
void ClientStream::send_queued() {
  if (unsent_.empty()) return;
  size_t sent = 0;
  TlsStep step;
  while (step.kind == TlsStep::Kind::kDone && sent < unsent_.size()) {
    step = try_to_write(std::string_view(unsent_).substr(sent));
    sent += step.bytes;
  }
  if (step.kind == TlsStep::Kind::kFailed) sent = unsent_.size();
  unsent_waits_for_ = step.kind;
  unsent_.erase(0, sent);
  if (unsent_.empty() && on_drain_) on_drain_();
}

Result<ClientStream::Received> ClientStream::receive(char* buffer, size_t size, const Wake& wake) {
  if (received_since_wake_ >= kMostWithoutWake && wake.fd >= 0) {
    received_since_wake_ = 0;
    if (is_readable(wake.fd) && !wake.on_wake()) return Received{.kind = Received::Kind::kLeft};
  }
  MUSTER_TRY(const Received received, wait_for_bytes(buffer, size, wake));
  received_since_wake_ += received.count;
  return received;
}

Result<ClientStream::Received> ClientStream::wait_for_bytes(char* buffer, size_t size,
                                                            const Wake& wake) {
  while (true) {
    send_queued();
    if (!ahead_.empty()) return Received{.count = take_ahead(buffer, size)};
    const TlsStep step = try_to_read(buffer, size, wake.fd < 0 && unsent_.empty());
    if (step.kind == TlsStep::Kind::kDone && step.bytes > 0) return Received{.count = step.bytes};
    if (step.kind == TlsStep::Kind::kDone || step.kind == TlsStep::Kind::kEnd) {
      return Received{.kind = Received::Kind::kEnd};
    }
    if (step.kind == TlsStep::Kind::kFailed) {
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "the connection to the server broke",
                   .advice = "see the server's log, then try again"};
    }
    std::array<pollfd, 2> fds{
        {{.fd = fd_.get(), .events = events_for(step.kind), .revents = 0},
         {.fd = wake.fd, .events = POLLIN, .revents = 0}}};  // poll() skips a negative one
    if (!unsent_.empty()) {
      fds[0].events = static_cast<short>(fds[0].events | events_for(unsent_waits_for_));
    }
    if (::poll(fds.data(), fds.size(), -1) < 0) {
      if (errno == EINTR) continue;
      return system_error("cannot wait for the server", errno);
    }
    if (fds[1].revents != 0 && !wake.on_wake()) return Received{.kind = Received::Kind::kLeft};
  }
}

std::string ClientStream::fingerprint() const {
  return tls_ == nullptr ? std::string() : tls_->fingerprint();
}

TlsStep ClientStream::try_to_read(char* buffer, size_t size, bool may_wait) {
  if (tls_ != nullptr) return tls_->read(buffer, size);
  return step_of(::recv(fd_.get(), buffer, size, may_wait ? 0 : MSG_DONTWAIT),
                 TlsStep::Kind::kWantsRead);
}

TlsStep ClientStream::try_to_write(std::string_view bytes) {
  if (tls_ != nullptr) return tls_->write(bytes);
  return step_of(::send(fd_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT),
                 TlsStep::Kind::kWantsWrite);
}

size_t ClientStream::take_ahead(char* buffer, size_t size) {
  const size_t count = ahead_.copy(buffer, size, ahead_taken_);
  ahead_taken_ += count;
  if (ahead_taken_ == ahead_.size()) {
    ahead_.clear();
    ahead_taken_ = 0;
  }
  return count;
}

/// Whether more bytes may arrive. receive() will meet an end or a fault again and report it.
bool ClientStream::read_ahead() {
  std::array<char, kReadAhead> buffer;
  const TlsStep step = try_to_read(buffer.data(), buffer.size(), false);
  if (step.kind == TlsStep::Kind::kDone) ahead_.append(buffer.data(), step.bytes);
  return step.kind == TlsStep::Kind::kWantsRead || step.bytes > 0;
}

Result<std::string> fingerprint_at(const std::string& host, int port, const Wake& wake) {
  // With a fingerprint the certificate is not verified: the person compares the fingerprint.
  MUSTER_TRY(const auto stream,
             ClientStream::meet({.host = host, .port = port, .fingerprint = "?"}, wake));
  return stream->fingerprint();
}

}  // namespace muster::http
