#include "parameter_server/rpc/connection.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/impl/codegen/client_unary_call.h>
#include <grpcpp/impl/codegen/rpc_method.h>
#include <grpcpp/support/sync_stream.h>

#include <algorithm>
#include <utility>

#include "parameter_server/rpc/messages.h"
#include "parameter_server/rpc/security.h"
#include "parameter_server/rpc/values.h"

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;
using grpc::internal::RpcMethod;
using TimePoint = std::chrono::system_clock::time_point;

// The client of a stream, as gRPC's plug-in would generate it.
std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>> reader(grpc::Channel& channel,
                                                             const char* method,
                                                             grpc::ClientContext& context,
                                                             const v1::PullRequest& request) {
  return std::unique_ptr<grpc::ClientReader<grpc::ByteBuffer>>(
      grpc::internal::ClientReaderFactory<grpc::ByteBuffer>::Create(
          &channel, RpcMethod(method, RpcMethod::SERVER_STREAMING), &context, request));
}

template <typename Response>
std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>> writer(grpc::Channel& channel,
                                                             const char* method,
                                                             grpc::ClientContext& context,
                                                             Response& response) {
  return std::unique_ptr<grpc::ClientWriter<grpc::ByteBuffer>>(
      grpc::internal::ClientWriterFactory<grpc::ByteBuffer>::Create(
          &channel, RpcMethod(method, RpcMethod::CLIENT_STREAMING), &context, &response));
}

// A failed write needs no error of its own: the status of the call has the reason.
void send(grpc::ClientWriter<grpc::ByteBuffer>& stream, const grpc::ByteBuffer& head,
          std::span<const std::span<const float>> values, Loan& loan) {
  std::vector<std::size_t> counts;
  for (const auto piece : values) counts.push_back(piece.size());
  const bool sent = stream.Write(head) &&
                    send_values(
                        counts, [&](std::size_t i) { return loan.lend(std::as_bytes(values[i])); },
                        [&](const grpc::ByteBuffer& chunk) { return stream.Write(chunk); });
  if (sent) stream.WritesDone();
}

}  // namespace

class Connection::Call {
 public:
  explicit Call(Connection& connection) : connection_(connection) {
    context.set_deadline(connection.call_deadline());
    const std::lock_guard lock(connection_.mutex_);
    connection_.current_ = &context;
    if (connection_.cancelled_) context.TryCancel();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  ~Call() {
    const std::lock_guard lock(connection_.mutex_);
    connection_.current_ = nullptr;
  }

  grpc::ClientContext context = {};

 private:
  Connection& connection_;
};

Connection::Connection(Whom whom, const ClientOptions& options, const WorkerIdentity& identity,
                       std::function<void(const Error&)> on_lost)
    : whom_(std::move(whom)),
      worker_(options.worker),
      timeout_(options.timeout),
      silence_(options.silence),
      tls_(identity.bulk),
      on_lost_(std::move(on_lost)),
      channel_(grpc::CreateCustomChannel(whom_.address, identity.grpc,
                                         channel_arguments(options.silence))) {}

Connection::~Connection() {
  cancel();
}

Loan Connection::lend() {
  return Loan([this] { lease_.work_for(std::chrono::milliseconds(1)); });
}

bool Connection::is_cancelled() {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

TimePoint Connection::call_deadline() const {
  return std::chrono::system_clock::now() + timeout_;
}

Status Connection::ended(const grpc::Status& status) const {
  if (status.ok()) return {};
  return from_grpc(status, whom_);
}

Status Connection::join(TimePoint deadline) {
  Status joined;
  bool may_retry = true;
  while (may_retry) {
    joined = try_to_join(deadline, may_retry);
    if (joined || is_cancelled()) return joined;
  }
  return joined;
}

// One attempt. An attempt that fails to connect returns at once with the reason, for the message at
// the deadline; the channel then tries again by itself.
Status Connection::try_to_join(TimePoint deadline, bool& may_retry) {
  may_retry = false;
  v1::JoinResponse welcome;
  const grpc::Status why = lease_.open(*channel_, worker_, welcome);
  if (why.ok()) {
    session_ = welcome.session();
    clock_ = welcome.clock();
    open_bulk(welcome.bulk_port());
    return {};
  }
  if (is_stranger(why)) {
    return Error{ErrorCode::kAuthentication, whom_.name() + " has the key of another job",
                 "MUSTER_RENDEZVOUS_KEY must be the same on all tasks", whom_.server,
                 whom_.address};
  }
  if (why.error_code() != grpc::StatusCode::UNAVAILABLE) return ended(why);
  // Wakes when the channel begins its next attempt, or after a while to check for cancel().
  const TimePoint now = std::chrono::system_clock::now();
  channel_->WaitForStateChange(GRPC_CHANNEL_TRANSIENT_FAILURE,
                               std::min(deadline, now + std::chrono::seconds(1)));
  may_retry = now < deadline;
  return Error{ErrorCode::kTimeout, whom_.name() + " does not answer: " + why.error_message(),
               "check that it runs and is reachable at this address, and see its log", whom_.server,
               whom_.address};
}

Error Connection::lost(const grpc::Status& lease) const {
  if (!lease.ok() && lease.error_code() != grpc::StatusCode::CANCELLED) {
    return from_grpc(lease, whom_);
  }
  return from_grpc(
      {grpc::StatusCode::ABORTED,
       "it has been stopped, or another worker has joined it as worker " + std::to_string(worker_)},
      whom_);
}

void Connection::watch() {
  while (const std::optional<grpc::Status> status = lease_.watch()) {
    if (!is_cancelled()) on_lost_(lost(*status));
  }
}

// A worker that cannot connect, for example because of a firewall, uses gRPC.
void Connection::open_bulk(std::uint32_t port) {
  constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(2);
  if (port == 0 || port > UINT16_MAX) return;
  auto opened = BulkClient::connect(
      *tls_, {.host = split_address(whom_.address).host, .port = static_cast<std::uint16_t>(port)},
      session_, kPatience);
  const std::lock_guard lock(mutex_);
  bulk_ = std::move(opened);
  if (bulk_ && cancelled_) bulk_->shut_down();
}

// gRPC needs the thread of the lease now and then to detect that the server is silent or has ended,
// and otherwise that it is not.
Result<std::uint64_t> Connection::call_bulk(const BulkExchange& exchange) {
  using Clock = std::chrono::steady_clock;
  const auto interval = std::clamp<std::chrono::milliseconds>(
      silence_ / 8, std::chrono::milliseconds(1), std::chrono::milliseconds(20));
  const Clock::time_point deadline = Clock::now() + timeout_;
  Clock::time_point next_look = Clock::now() + interval;
  bool is_late = false;
  std::optional<grpc::Status> lease;
  bulk_->wait_with(
      [&] {
        const Clock::time_point now = Clock::now();
        if (now < next_look) return true;
        next_look = now + interval;
        is_late = now >= deadline;
        if (!lease) lease = lease_.ended_within(std::chrono::milliseconds(0));
        return !is_late && !lease;
      },
      interval);
  const std::optional<v1::BulkAnswer> answer = exchange(*bulk_);
  if (answer) {
    const Status done = ended({static_cast<grpc::StatusCode>(answer->code()), answer->text()});
    if (!done) return done.error();
    return answer->pushes();
  }
  if (is_late) return from_grpc({grpc::StatusCode::DEADLINE_EXCEEDED, ""}, whom_);
  // The lease ends with the server, and has the reason.
  constexpr std::chrono::milliseconds kGrace(500);
  if (!lease && !is_cancelled()) lease = lease_.ended_within(kGrace);
  if (lease) return lost(*lease);
  return lost({grpc::StatusCode::UNAVAILABLE, "its bulk connection has ended"});
}

Result<Connection::InitialValues> Connection::declare(
    v1::Declaration declaration, std::optional<std::uint64_t> values_of,
    std::span<const std::span<const float>> values) {
  clock_ = declaration.clock();
  declaration.set_session(session_);
  declaration.set_server(static_cast<std::uint32_t>(whom_.server));
  if (values_of) declaration.set_values_of(static_cast<std::uint32_t>(*values_of));
  v1::DeclareRequest request;
  *request.mutable_declaration() = std::move(declaration);

  Loan loan = lend();  // ends after the call
  Call call(*this);
  v1::DeclareResponse response;
  const auto stream = writer(*channel_, kDeclare, call.context, response);
  send(*stream, raw(request), values_of ? std::span<const std::span<const float>>() : values, loan);
  const Status done = ended(stream->Finish());
  if (!done) return done.error();
  return InitialValues{.worker = response.values_of(), .taken = response.taken()};
}

Result<std::uint64_t> Connection::pull(std::span<const NamedTensor> tensors,
                                       std::vector<std::span<float>> into) {
  std::size_t expected = 0;
  for (const auto piece : into) expected += piece.size_bytes();
  v1::PullRequest request;
  request.set_session(session_);
  request.set_step(clock_);
  add_tensors(tensors, request);
  if (bulk_) return call_bulk([&](BulkClient& bulk) { return bulk.pull(request, into); });

  Call call(*this);
  const auto stream = reader(*channel_, kPull, call.context, request);
  Filler filler(std::move(into));
  grpc::ByteBuffer buffer;
  v1::PullResponse head;
  bool understood = true;
  if (stream->Read(&buffer)) understood = parse(buffer, head) && head.has_head();
  while (understood && stream->Read(&buffer)) understood = take_chunk(buffer, filler);
  if (understood) {
    const Status done = ended(stream->Finish());
    if (!done) return done.error();
    if (filler.filled() == expected) return head.head().pushes();
  } else {
    call.context.TryCancel();
    stream->Finish();
  }
  return Error{ErrorCode::kMismatch, whom_.name() + " sent values of another size", "",
               whom_.server, whom_.address};
}

Status Connection::push(std::span<const NamedTensor> tensors,
                        std::span<const std::span<const float>> gradients) {
  v1::PushRequest request;
  request.mutable_head()->set_session(session_);
  request.mutable_head()->set_step(clock_);
  add_tensors(tensors, *request.mutable_head());
  if (bulk_) {
    const auto pushed =
        call_bulk([&](BulkClient& bulk) { return bulk.push(request.head(), gradients); });
    if (!pushed) return pushed.error();
    ++clock_;
    return {};
  }

  Loan loan = lend();  // ends after the call
  Call call(*this);
  v1::PushResponse response;
  const auto stream = writer(*channel_, kPush, call.context, response);
  send(*stream, raw(request), gradients, loan);
  Status done = ended(stream->Finish());
  if (done) ++clock_;
  return done;
}

Result<ServerStatus> Connection::status() {
  Call call(*this);
  v1::StatusResponse response;
  const Status done = ended(grpc::internal::BlockingUnaryCall<v1::StatusRequest, v1::StatusResponse,
                                                              google::protobuf::MessageLite,
                                                              google::protobuf::MessageLite>(
      channel_.get(), RpcMethod(kStatus, RpcMethod::NORMAL_RPC), &call.context, {}, &response));
  if (!done) return done.error();
  return from_message(response);
}

Status Connection::leave() {
  if (lease_.leave()) return {};
  return Error{ErrorCode::kPeerLost, whom_.name() + " was lost before this worker left it", "",
               whom_.server, whom_.address};
}

void Connection::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (current_ != nullptr) current_->TryCancel();
  if (bulk_) bulk_->shut_down();
  lease_.cancel();
}

}  // namespace muster::parameter_server
