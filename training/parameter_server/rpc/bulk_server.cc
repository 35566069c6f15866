#include "parameter_server/rpc/bulk_server.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "parameter_server/chunk.h"
#include "parameter_server/rpc/bulk_messages.h"

namespace muster::parameter_server {
namespace {

// No event reports that the process has a free descriptor again.
constexpr std::chrono::milliseconds kPauseWithoutDescriptors{100};

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

grpc::Status invalid_message(const char* what) {
  return to_grpc({ErrorCode::kBadArgument, std::string("invalid ") + what + " on a bulk connection",
                  "worker and parameter server may be of different versions"});
}

Error wrong_size(std::uint64_t expected, std::uint64_t sent) {
  return {ErrorCode::kBadArgument, std::to_string(sent) + " bytes of values were sent, but " +
                                       std::to_string(expected) + " are expected"};
}

// Reads values and checks them while they are in the cache.
Result<std::optional<std::size_t>> receive_values(TlsStream& stream, std::uint64_t sent,
                                                  std::span<float> values) {
  constexpr std::size_t kStep = 64 * 1024;
  if (sent != values.size_bytes()) return wrong_size(values.size_bytes(), sent);
  Inspection inspection(values);
  const std::span<std::byte> bytes = std::as_writable_bytes(values);
  for (std::size_t at = 0; at < bytes.size(); at += kStep) {
    const std::size_t count = std::min(kStep, bytes.size() - at);
    if (!stream.read(bytes.subspan(at, count))) {
      return Error{ErrorCode::kPeerLost, "the connection ended before all values had arrived"};
    }
    if (const auto index = inspection.look(at + count)) return index;
  }
  return std::optional<std::size_t>();
}

v1::BulkAnswer answer_of(const grpc::Status& status) {
  v1::BulkAnswer answer;
  answer.set_code(static_cast<std::uint32_t>(status.error_code()));
  answer.set_text(status.error_message());
  return answer;
}

bool refuse_message(TlsStream& stream, const grpc::Status& status) {
  if (send_message(stream, BulkKind::kAnswer, answer_of(status)) && stream.flush()) {
    // Until the worker has read the answer: to close a socket with unread data resets the
    // connection, which discards the answer.
    std::vector<std::byte> discarded(64 * 1024);
    while (stream.read(discarded)) {
    }
  }
  return false;
}

bool answer_push(TlsStream& stream, const BulkHead& head, const v1::PushHead& request,
                 Service& service) {
  const grpc::Status pushed = with_memory([&] {
    const Status taken = service.push(request, [&](std::span<float> values) {
      return receive_values(stream, head.value_bytes, values);
    });
    return taken ? grpc::Status::OK : to_grpc(taken.error());
  });
  if (!pushed.ok()) return refuse_message(stream, pushed);
  return send_message(stream, BulkKind::kAnswer, v1::BulkAnswer()) && stream.flush();
}

// A slice is sent from a copy, so that a slow worker does not hold its lock. `copy` is memory that
// the pulls of a connection share.
bool answer_pull(TlsStream& stream, const v1::PullRequest& request, Service& service,
                 std::vector<std::byte>& copy) {
  const Result<Service::Reading> reading = service.begin_pull(request);
  if (!reading) return refuse_message(stream, to_grpc(reading.error()));
  const Model& model = *reading->model;
  v1::BulkAnswer answer;
  answer.set_pushes(model.pushes());
  if (!send_message(stream, BulkKind::kAnswer, answer, reading->bytes())) return false;
  copy.resize(kSliceElements * sizeof(float));
  for (std::size_t i = 0; i < reading->selection.size(); ++i) {
    model.read(reading->selection, i, copy.data());
    if (!stream.write(std::span(copy).first(reading->selection.count(i) * sizeof(float)))) {
      return false;
    }
  }
  if (!stream.flush()) return false;
  service.finish_pull(*reading);
  return true;
}

// False if the connection is to end.
bool answer_message(TlsStream& stream, const BulkHead& head, Service& service,
                    std::vector<std::byte>& copy) {
  if (head.kind == BulkKind::kPushRequest) {
    v1::PushHead request;
    if (!read_message(stream, head, request)) {
      return refuse_message(stream, invalid_message("head of a push"));
    }
    return answer_push(stream, head, request, service);
  }
  v1::PullRequest request;
  if (head.kind != BulkKind::kPullRequest || !read_message(stream, head, request)) {
    return refuse_message(stream, invalid_message("message"));
  }
  return answer_pull(stream, request, service, copy);
}

}  // namespace

struct BulkServer::Connection {
  Connection(const TlsContext& context, Socket socket) : stream(context, std::move(socket)) {}

  TlsStream stream;
  // Guarded by the mutex of the server.
  std::optional<std::uint64_t> session = {};
  bool is_busy = false;  // with a message
  bool has_ended = false;
  std::thread thread = {};
};

Result<std::unique_ptr<BulkServer>> BulkServer::start(const std::string& host,
                                                      std::string_view hex_key,
                                                      std::chrono::milliseconds silence,
                                                      Service& service) {
  Result<TlsContext> context = TlsContext::create(hex_key, End::kServer);
  if (!context) return context.error();
  Result<Socket> listener = listen_on(host);
  if (!listener) return listener.error();
  return std::unique_ptr<BulkServer>(
      new BulkServer(*std::move(listener), *std::move(context), silence, service));
}

BulkServer::BulkServer(Socket listener, TlsContext context, std::chrono::milliseconds silence,
                       Service& service)
    : listener_(std::move(listener)),
      context_(std::move(context)),
      silence_(silence),
      service_(service),
      acceptor_([this] { accept_all(); }) {}

BulkServer::~BulkServer() {
  stop(Clock::now());
}

void BulkServer::accept_all() {
  while (true) {
    Socket socket(::accept4(listener_.descriptor(), nullptr, nullptr, SOCK_CLOEXEC));
    if (socket.descriptor() >= 0) {
      take(std::move(socket));
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      if (!wait_for_descriptors()) break;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      break;
    }
  }
  // By stop(): later workers are refused, and use gRPC.
  ::shutdown(listener_.descriptor(), SHUT_RDWR);
}

// False if no more connections are to be accepted.
bool BulkServer::wait_for_descriptors() {
  remove_ended();
  std::unique_lock lock(mutex_);
  return !changed_.wait_for(lock, kPauseWithoutDescriptors, [this] { return refuses_; });
}

void BulkServer::take(Socket socket) {
  remove_ended();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return refuses_ || unproved_ < kMostUnproved; });
  if (refuses_) return;
  Connection& connection = connections_.emplace_back(context_, std::move(socket));
  ++unproved_;
  try {
    connection.thread = std::thread([this, &connection] { serve(connection); });
  } catch (const std::system_error&) {  // no more threads: the worker uses gRPC
    --unproved_;
    connections_.pop_back();
  }
}

void BulkServer::remove_ended() {
  std::list<Connection> ended;
  {
    const std::lock_guard lock(mutex_);
    for (auto one = connections_.begin(); one != connections_.end();) {
      const auto next = std::next(one);
      if (one->has_ended) ended.splice(ended.end(), connections_, one);
      one = next;
    }
  }
  for (Connection& connection : ended) connection.thread.join();
}

void BulkServer::serve(Connection& connection) {
  const bool proved = prove(connection);
  {
    const std::lock_guard lock(mutex_);
    --unproved_;
    changed_.notify_all();
  }
  if (proved) answer_all(connection);
  {
    const std::lock_guard lock(mutex_);
    connection.has_ended = true;
  }
  // The worker does not wait until remove_ended() destroys the connection.
  connection.stream.shut_down();
}

void BulkServer::answer_all(Connection& connection) {
  std::vector<std::byte> copy;
  bool goes_on = true;
  while (goes_on) {
    const std::optional<BulkHead> head = read_head(connection.stream);
    if (!head || !begin_message(connection)) return;
    try {
      goes_on = answer_message(connection.stream, *head, service_, copy);
    } catch (const std::bad_alloc&) {
      goes_on = false;
    }
    end_message(connection);
  }
}

// A handshake, and a hello of a session without another connection.
bool BulkServer::prove(Connection& connection) {
  const auto deadline = Clock::now() + silence_;
  connection.stream.wait_with([deadline] { return Clock::now() < deadline; }, silence_);
  if (!connection.stream.shake_hands()) return false;
  const std::optional<BulkHead> head = read_head(connection.stream);
  v1::BulkHello hello;
  if (!head || head->kind != BulkKind::kHello || !read_message(connection.stream, *head, hello)) {
    return false;
  }
  {
    const std::lock_guard lock(mutex_);
    const bool is_taken =
        std::any_of(connections_.begin(), connections_.end(), [&](const Connection& other) {
          return !other.has_ended && other.session == hello.session();
        });
    if (is_taken || refuses_) return false;
    connection.session = hello.session();
  }
  // After close() could find the connection: a session that ends now closes it.
  if (!service_.roster().has(hello.session())) return false;
  connection.stream.wait_with(nullptr, {});
  return send_message(connection.stream, BulkKind::kAnswer, v1::BulkAnswer()) &&
         connection.stream.flush();
}

bool BulkServer::begin_message(Connection& connection) {
  const std::lock_guard lock(mutex_);
  connection.is_busy = !refuses_;
  return connection.is_busy;
}

void BulkServer::end_message(Connection& connection) {
  const std::lock_guard lock(mutex_);
  connection.is_busy = false;
  changed_.notify_all();
}

void BulkServer::close(std::uint64_t session) {
  const std::lock_guard lock(mutex_);
  for (Connection& connection : connections_) {
    const bool is_left_to_stop = refuses_ && connection.is_busy;
    if (connection.session == session && !is_left_to_stop) connection.stream.shut_down();
  }
}

void BulkServer::refuse() {
  const std::lock_guard lock(mutex_);
  refuses_ = true;
  changed_.notify_all();
}

void BulkServer::stop(Clock::time_point deadline) {
  const std::lock_guard one_at_a_time(stopping_);
  refuse();
  ::shutdown(listener_.descriptor(), SHUT_RDWR);
  if (acceptor_.joinable()) acceptor_.join();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, deadline, [this] {
      return std::none_of(connections_.begin(), connections_.end(),
                          [](const Connection& one) { return one.is_busy; });
    });
    for (Connection& connection : connections_) connection.stream.shut_down();
  }
  // Their threads are the last that use the list.
  for (Connection& connection : connections_) connection.thread.join();
  connections_.clear();
}

}  // namespace muster::parameter_server
