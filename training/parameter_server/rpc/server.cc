// The server: its start and end, and the calls of workers.
#include "muster/parameter_server/server.h"

#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/method_handler.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>
#include <parameter_server.pb.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "parameter_server/buffers.h"
#include "parameter_server/chunk.h"
#include "parameter_server/model.h"
#include "parameter_server/roster.h"
#include "parameter_server/rpc/messages.h"
#include "parameter_server/rpc/security.h"
#include "parameter_server/rpc/values.h"

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

Status check_server_options(const ServerOptions& options) {
  if (options.workers < 0) {
    return Error{ErrorCode::kBadArgument,
                 "invalid number of workers " + std::to_string(options.workers)};
  }
  return check_silence(options.silence);
}

// "0.0.0.0:0" with the port that the system chose.
std::string with_port(const std::string& address, int port) {
  return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
}

}  // namespace

/// The calls of workers, each on a thread of gRPC, on the roster and the model.
class Service : public grpc::Service {
 public:
  explicit Service(const ServerOptions& options);

  Roster& roster() { return roster_; }

  ServerStatus status() const;

  /// The listening address, for status(). To be called before the first call of a worker.
  void set_address(std::string address) { address_ = std::move(address); }
  const std::string& address() const { return address_; }

 private:
  using Buffer = grpc::ByteBuffer;
  using Lease = grpc::ServerReaderWriter<v1::JoinResponse, v1::JoinRequest>;

  grpc::Status join(grpc::ServerContext* context, Lease* lease);
  grpc::Status declare(grpc::ServerReader<Buffer>* stream, v1::DeclareResponse* response);
  grpc::Status pull(const v1::PullRequest& request, grpc::ServerWriter<Buffer>* stream);
  grpc::Status push(grpc::ServerReader<Buffer>* stream);

  collective::Result<int> take_declaration(const v1::Declaration& message,
                                           grpc::ServerReader<Buffer>* stream);
  collective::Result<int> await_declaration(std::uint64_t session, int winner,
                                            const Declaration& declaration);
  collective::Status take_push(const v1::PushHead& head, grpc::ServerReader<Buffer>* stream);

  // The model and the worker whose values it has, once they have arrived.
  struct Declared {
    std::shared_ptr<Model> model;
    int values_of;
  };
  std::optional<Declared> declared() const;
  static collective::Result<int> agreed(const Declared& first, const Declaration& later);

  // Uses these values from now on, unless other values have come before. Returns the values in use.
  Declared declare_first(Declaration declaration, std::vector<float> values, int worker);
  collective::Result<std::shared_ptr<Model>> model() const;

  Roster roster_;
  std::string address_;
  mutable std::mutex mutex_;
  std::optional<Declared> declared_;  // once it is there it stays
  Buffers buffers_;
  std::atomic<std::uint64_t> pulls_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> bytes_in_ = 0;
  std::atomic<std::uint64_t> bytes_out_ = 0;
};

class Server::Implementation {
 public:
  explicit Implementation(const ServerOptions& options) : service_(options) {}
  Implementation(const Implementation&) = delete;
  Implementation& operator=(const Implementation&) = delete;
  ~Implementation() { stop(std::chrono::seconds(2)); }

  Status listen(const ServerOptions& options,
                const std::shared_ptr<grpc::ServerCredentials>& credentials) {
    grpc::ServerBuilder builder;
    for (const auto& [name, value] : liveness(options.silence)) {
      builder.AddChannelArgument(name, value);
    }
    // The same limit applies to a client that connects and does not start TLS.
    builder.AddChannelArgument(GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS,
                               static_cast<int>(options.silence.count()));
    // Otherwise two servers could share a port without an error, and each would get some of the
    // workers.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    int port = 0;
    builder.AddListeningPort(options.address, credentials, &port);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      server_ = nullptr;
      return Error{ErrorCode::kSystem, "the parameter server cannot listen on " + options.address,
                   "the address must belong to this host, and its port must be free"};
    }
    service_.set_address(with_port(options.address, port));
    return {};
  }

  const std::string& address() const { return service_.address(); }
  ServerStatus status() const { return service_.status(); }

  Ending wait() {
    const bool all_have_gone = service_.roster().wait_for_end();
    const Roster::Departures departures = service_.roster().departures();
    return {.stopped = !all_have_gone, .left = departures.left, .lost = departures.lost};
  }

  void stop(std::chrono::milliseconds grace) {
    service_.roster().stop();
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + grace);
  }

 private:
  Service service_;  // outlives the server, which calls it
  std::unique_ptr<grpc::Server> server_;
};

Server::Server(std::unique_ptr<Implementation> implementation)
    : implementation_(std::move(implementation)) {}
Server::Server(Server&&) noexcept = default;
Server& Server::operator=(Server&&) noexcept = default;
Server::~Server() = default;

Result<Server> Server::start(const ServerOptions& options) {
  if (const Status right = check_server_options(options); !right) return right.error();
  const auto credentials = server_credentials(options.key);
  if (!credentials) return credentials.error();
  auto implementation = std::make_unique<Implementation>(options);
  if (const Status listens = implementation->listen(options, *credentials); !listens) {
    return listens.error();
  }
  return Server(std::move(implementation));
}

const std::string& Server::address() const {
  return implementation_->address();
}
ServerStatus Server::status() const {
  return implementation_->status();
}
Ending Server::wait() {
  return implementation_->wait();
}
void Server::stop(std::chrono::milliseconds grace) {
  implementation_->stop(grace);
}

namespace {

using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

Error unreadable(const char* what) {
  return {ErrorCode::kBadArgument, std::string("invalid ") + what,
          "worker and parameter server may be of different versions"};
}

Error cut_off() {
  return {ErrorCode::kBadArgument, "the values are incomplete"};
}

// Checks values as they arrive, while they are still in the cache.
class Inspection {
 public:
  explicit Inspection(std::span<const float> values) : values_(values) {}

  /// Checks the values up to byte `bytes` that were not checked before. Returns the first that is
  /// not finite.
  std::optional<std::size_t> look(std::size_t bytes) {
    const std::size_t end = bytes / sizeof(float);
    const auto found = first_not_finite(values_.subspan(seen_, end - seen_));
    if (found) return seen_ + *found;
    seen_ = end;
    return std::nullopt;
  }

 private:
  std::span<const float> values_;
  std::size_t seen_ = 0;
};

// Reads until `values` is full and the stream has ended. Returns early with the index of a value
// that is not finite.
Result<std::optional<std::size_t>> receive(grpc::ServerReader<grpc::ByteBuffer>& stream,
                                           std::span<float> values) {
  Filler filler({values});
  Inspection inspection(values);
  grpc::ByteBuffer chunk;
  while (stream.Read(&chunk)) {
    if (!take_chunk(chunk, filler)) return unreadable("chunk of values");
    if (const auto index = inspection.look(filler.filled())) return index;
  }
  if (filler.filled() != values.size_bytes()) return cut_off();
  return std::optional<std::size_t>();
}

grpc::Slice copy_of(const Model& model, const Model::Selection& selection, std::size_t i) {
  grpc_slice slice = grpc_slice_malloc(selection.count(i) * sizeof(float));
  model.read(selection, i, reinterpret_cast<std::byte*>(GRPC_SLICE_START_PTR(slice)));
  return {slice, grpc::Slice::STEAL_REF};
}

std::uint64_t declared_elements(const Declaration& declaration) {
  std::uint64_t elements = 0;
  for (const Slice& slice : part_of(declaration.tensors, declaration.server, declaration.servers)) {
    elements += slice.count;
  }
  return elements;
}

Result<std::vector<float>> memory_for(std::uint64_t elements) {
  try {
    return zeros(elements);
  } catch (const std::bad_alloc&) {
    return Error{ErrorCode::kSystem,
                 "no memory for " + std::to_string(elements * sizeof(float)) + " bytes",
                 "run the job with more parameter servers, or give them more memory"};
  }
}

}  // namespace

Service::Service(const ServerOptions& options) : roster_(options.staleness, options.workers) {
  AddMethod(new RpcServiceMethod(
      kJoin, RpcMethod::BIDI_STREAMING,
      new grpc::internal::BidiStreamingHandler<Service, v1::JoinRequest, v1::JoinResponse>(
          [](Service* self, grpc::ServerContext* context, Lease* lease) {
            return self->join(context, lease);
          },
          this)));
  AddMethod(new RpcServiceMethod(
      kDeclare, RpcMethod::CLIENT_STREAMING,
      new grpc::internal::ClientStreamingHandler<Service, Buffer, v1::DeclareResponse>(
          [](Service* self, grpc::ServerContext*, grpc::ServerReader<Buffer>* stream,
             v1::DeclareResponse* response) {
            return with_memory([&] { return self->declare(stream, response); });
          },
          this)));
  AddMethod(new RpcServiceMethod(
      kPull, RpcMethod::SERVER_STREAMING,
      new grpc::internal::ServerStreamingHandler<Service, v1::PullRequest, Buffer>(
          [](Service* self, grpc::ServerContext*, const v1::PullRequest* request,
             grpc::ServerWriter<Buffer>* stream) {
            return with_memory([&] { return self->pull(*request, stream); });
          },
          this)));
  AddMethod(new RpcServiceMethod(
      kPush, RpcMethod::CLIENT_STREAMING,
      new grpc::internal::ClientStreamingHandler<Service, Buffer, v1::PushResponse>(
          [](Service* self, grpc::ServerContext*, grpc::ServerReader<Buffer>* stream,
             v1::PushResponse*) { return with_memory([&] { return self->push(stream); }); },
          this)));
  AddMethod(new RpcServiceMethod(
      kStatus, RpcMethod::NORMAL_RPC,
      new grpc::internal::RpcMethodHandler<Service, v1::StatusRequest, v1::StatusResponse,
                                           google::protobuf::MessageLite,
                                           google::protobuf::MessageLite>(
          [](Service* self, grpc::ServerContext*, const v1::StatusRequest*,
             v1::StatusResponse* response) {
            *response = to_message(self->status());
            return grpc::Status::OK;
          },
          this)));
}

grpc::Status Service::join(grpc::ServerContext* context, Lease* lease) {
  v1::JoinRequest message;
  if (!lease->Read(&message) || message.what_case() != v1::JoinRequest::kWorker) {
    return to_grpc(unreadable("worker's hello"));
  }
  if (message.worker() > kHighestWorker) {
    return to_grpc({ErrorCode::kBadArgument,
                    "invalid worker number " + std::to_string(message.worker()),
                    "workers are numbered from 0 to " + std::to_string(kHighestWorker)});
  }
  const Roster::Membership membership =
      roster_.join(static_cast<int>(message.worker()), [context] { context->TryCancel(); });
  v1::JoinResponse welcome;
  welcome.set_session(membership.session);
  welcome.set_clock(membership.clock);
  // The thread stays here as long as the worker is present.
  if (lease->Write(welcome) && lease->Read(&message) && message.goodbye()) {
    roster_.leave(membership.session);
  } else {
    roster_.lose(membership.session);
  }
  return grpc::Status::OK;
}

grpc::Status Service::declare(grpc::ServerReader<Buffer>* stream, v1::DeclareResponse* response) {
  Buffer first;
  v1::DeclareRequest request;
  if (!stream->Read(&first) || !parse(first, request) || !request.has_declaration()) {
    return to_grpc(unreadable("declaration"));
  }
  const Result<int> values_of = take_declaration(request.declaration(), stream);
  if (!values_of) return to_grpc(values_of.error());
  response->set_values_of(static_cast<std::uint32_t>(*values_of));
  return grpc::Status::OK;
}

Result<int> Service::take_declaration(const v1::Declaration& message,
                                      grpc::ServerReader<Buffer>* stream) {
  const Result<Roster::Turn> turn = roster_.begin_turn(message.session());
  if (!turn) return turn.error();
  Result<Declaration> declaration = from_message(message);
  if (!declaration) return declaration.error();
  if (message.has_values_of()) {
    return await_declaration(message.session(), static_cast<int>(message.values_of()),
                             *declaration);
  }
  // A late worker need not send values, since they would not be used.
  if (const std::optional<Declared> before = declared()) return agreed(*before, *declaration);
  Result<std::vector<float>> values = memory_for(declared_elements(*declaration));
  if (!values) return values.error();
  const auto odd = receive(*stream, *values);
  if (!odd) return odd.error();
  if (*odd) {
    return Error{ErrorCode::kBadArgument,
                 "an initial value of a parameter is a NaN or an infinity"};
  }

  return agreed(declare_first(*declaration, *std::move(values), turn->worker()), *declaration);
}

/// The worker whose values count, for another worker with an equal declaration.
Result<int> Service::agreed(const Declared& first, const Declaration& later) {
  const Status same = compare(first.model->declaration(), later);
  if (!same) return same.error();
  return first.values_of;
}

Service::Declared Service::declare_first(Declaration declaration, std::vector<float> values,
                                         int worker) {
  {
    const std::lock_guard lock(mutex_);
    if (declared_) return *declared_;
    declared_ = {.model = std::make_shared<Model>(std::move(declaration), std::move(values)),
                 .values_of = worker};
  }
  // Without the lock: waiting threads call declared() under the lock of the roster.
  roster_.wake();
  return *declared();
}

Result<int> Service::await_declaration(std::uint64_t session, int winner,
                                       const Declaration& declaration) {
  const Status waited = roster_.wait_until(session, [&](const Clocks& clocks) {
    return declared().has_value() || !clocks.present().contains(winner);
  });
  if (!waited) return waited.error();
  const std::optional<Declared> found = declared();
  if (!found) {
    return Error{ErrorCode::kPeerLost,
                 "worker " + std::to_string(winner) + " left before it had declared its parameters",
                 "", winner};
  }
  return agreed(*found, declaration);
}

grpc::Status Service::pull(const v1::PullRequest& request, grpc::ServerWriter<Buffer>* stream) {
  const Result<std::shared_ptr<Model>> model = this->model();
  if (!model) return to_grpc(model.error());
  const auto selection = (*model)->select(tensors_of(request));
  if (!selection) return to_grpc(selection.error());
  const Status admitted = roster_.admit(request.session(), request.step());
  if (!admitted) return to_grpc(admitted.error());

  v1::PullResponse head;
  head.mutable_head()->set_pushes((*model)->pushes());
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < selection->size(); ++i) counts.push_back(selection->count(i));
  const bool sent = stream->Write(raw(head)) &&
                    send_values(
                        counts, [&](std::size_t i) { return copy_of(**model, *selection, i); },
                        [&](const Buffer& chunk) { return stream->Write(chunk); });
  if (!sent) return {grpc::StatusCode::CANCELLED, "the worker has stopped reading"};
  ++pulls_;
  bytes_out_ += selection->elements() * sizeof(float);
  return grpc::Status::OK;
}

grpc::Status Service::push(grpc::ServerReader<Buffer>* stream) {
  Buffer first;
  v1::PushRequest request;
  if (!stream->Read(&first) || !parse(first, request) || !request.has_head()) {
    return to_grpc(unreadable("head of a push"));
  }
  const Status taken = take_push(request.head(), stream);
  if (taken) return grpc::Status::OK;
  ++refused_;
  return to_grpc(taken.error());
}

Status Service::take_push(const v1::PushHead& head, grpc::ServerReader<Buffer>* stream) {
  const Result<std::shared_ptr<Model>> model = this->model();
  if (!model) return model.error();
  const auto selection = (*model)->select(tensors_of(head));
  if (!selection) return selection.error();
  const Result<Roster::Turn> turn = roster_.begin_turn(head.session());
  if (!turn) return turn.error();
  if (Status admitted = roster_.admit(head.session(), head.step()); !admitted) return admitted;

  // All values have arrived and are checked before any of them is applied.
  Buffers::Lent gradient = buffers_.take(selection->elements());
  const auto odd = receive(*stream, gradient.values());
  if (!odd) return odd.error();
  if (const auto index = *odd) {
    return not_finite(gradient.values()[*index], selection->name_of(*index), turn->worker());
  }
  (*model)->apply(*selection, gradient.values());
  bytes_in_ += gradient.values().size_bytes();
  roster_.advance(head.session());
  return {};
}

std::optional<Service::Declared> Service::declared() const {
  const std::lock_guard lock(mutex_);
  return declared_;
}

Result<std::shared_ptr<Model>> Service::model() const {
  const std::optional<Declared> found = declared();
  if (found) return found->model;
  return Error{ErrorCode::kBadArgument, "no worker has declared the model yet"};
}

ServerStatus Service::status() const {
  const std::optional<Declared> found = declared();
  const Roster::Departures departures = roster_.departures();
  return {.address = address_,
          .tensors = found ? found->model->tensors_here() : 0,
          .bytes = found ? found->model->bytes() : 0,
          .pushes = found ? found->model->pushes() : 0,
          .pulls = pulls_,
          .refused = refused_,
          .bytes_in = bytes_in_,
          .bytes_out = bytes_out_,
          .left = departures.left,
          .lost = departures.lost,
          .workers = roster_.workers()};
}

}  // namespace muster::parameter_server
