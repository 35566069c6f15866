#include "parameter_server/rpc/service.h"

#include <grpc/grpc.h>
#include <grpc/slice.h>
#include <grpcpp/impl/codegen/rpc_service_method.h>
#include <grpcpp/support/method_handler.h>

#include <algorithm>
#include <new>
#include <utility>

#include "parameter_server/chunk.h"
#include "parameter_server/rpc/values.h"

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

Error unreadable(const char* what) {
  return {ErrorCode::kBadArgument, std::string("invalid ") + what,
          "worker and parameter server may be of different versions"};
}

Error cut_off() {
  return {ErrorCode::kBadArgument, "the values are incomplete"};
}

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
  welcome.set_bulk_port(bulk_port_);
  // The thread stays here as long as the worker is present.
  if (lease->Write(welcome) && lease->Read(&message) && message.goodbye()) {
    roster_.leave(membership.session);
  } else {
    roster_.lose(membership.session);
  }
  on_end_(membership.session);
  return grpc::Status::OK;
}

grpc::Status Service::declare(grpc::ServerReader<Buffer>* stream, v1::DeclareResponse* response) {
  Buffer first;
  v1::DeclareRequest request;
  if (!stream->Read(&first) || !parse(first, request) || !request.has_declaration()) {
    return to_grpc(unreadable("declaration"));
  }
  const Result<v1::DeclareResponse> answer = take_declaration(request.declaration(), stream);
  if (!answer) return to_grpc(answer.error());
  *response = *answer;
  return grpc::Status::OK;
}

Result<v1::DeclareResponse> Service::take_declaration(const v1::Declaration& message,
                                                      grpc::ServerReader<Buffer>* stream) {
  const Result<Roster::Turn> turn = roster_.begin_turn(message.session());
  if (!turn) return turn.error();
  roster_.begin_at(message.session(), message.clock());
  Result<Declaration> declaration = from_message(message);
  if (!declaration) return declaration.error();
  if (message.has_values_of()) {
    return await_declaration(message.session(), turn->worker(),
                             static_cast<int>(message.values_of()), *declaration);
  }
  // A late worker need not send values, since they would not be used.
  if (const std::optional<Declared> before = declared()) {
    return agreed(*before, *declaration, message.session());
  }
  Result<std::vector<float>> values = memory_for(declared_elements(*declaration));
  if (!values) return values.error();
  const auto odd = receive(*stream, *values);
  if (!odd) return odd.error();
  if (*odd) {
    return Error{ErrorCode::kBadArgument,
                 "an initial value of a parameter is a NaN or an infinity"};
  }

  const Declared first =
      declare_first(*declaration, *std::move(values), turn->worker(), message.session());
  return agreed(first, *declaration, message.session());
}

Result<v1::DeclareResponse> Service::agreed(const Declared& first, const Declaration& later,
                                            std::uint64_t session) {
  const Status same = compare(first.model->declaration(), later);
  if (!same) return same.error();
  v1::DeclareResponse answer;
  answer.set_values_of(static_cast<std::uint32_t>(first.values_of));
  answer.set_taken(first.session == session);
  return answer;
}

Service::Declared Service::declare_first(Declaration declaration, std::vector<float> values,
                                         int worker, std::uint64_t session) {
  {
    const std::lock_guard lock(mutex_);
    if (declared_) return *declared_;
    declared_ = {.model = std::make_shared<Model>(std::move(declaration), std::move(values)),
                 .values_of = worker,
                 .session = session};
  }
  // Without the lock: waiting threads call declared() under the lock of the roster.
  roster_.wake();
  return *declared();
}

Result<v1::DeclareResponse> Service::await_declaration(std::uint64_t session, int worker,
                                                       int winner, const Declaration& declaration) {
  // An earlier start of this worker has ended, since this one has joined in its place.
  const bool was_this_worker = winner == worker;
  const Status waited = roster_.wait_until(session, [&](const Clocks& clocks) {
    return declared().has_value() || was_this_worker || !clocks.present().contains(winner);
  });
  if (!waited) return waited.error();
  const std::optional<Declared> found = declared();
  if (!found) {
    const std::string who = "worker " + std::to_string(winner);
    return Error{ErrorCode::kPeerLost,
                 (was_this_worker ? "an earlier start of " + who + " was lost" : who + " left") +
                     " before it had declared its parameters",
                 "start all parameter servers of the job anew: some have its initial values",
                 winner};
  }
  return agreed(*found, declaration, session);
}

Result<Service::Reading> Service::begin_pull(const v1::PullRequest& request) {
  const Result<std::shared_ptr<Model>> model = this->model();
  if (!model) return model.error();
  auto selection = (*model)->select(tensors_of(request));
  if (!selection) return selection.error();
  const Status admitted = roster_.admit(request.session(), request.step());
  if (!admitted) return admitted.error();
  return Reading{.model = *model, .selection = *std::move(selection)};
}

void Service::finish_pull(const Reading& reading) {
  ++pulls_;
  bytes_out_ += reading.bytes();
}

grpc::Status Service::pull(const v1::PullRequest& request, grpc::ServerWriter<Buffer>* stream) {
  const Result<Reading> reading = begin_pull(request);
  if (!reading) return to_grpc(reading.error());
  const auto& [model, selection] = *reading;
  v1::PullResponse head;
  head.mutable_head()->set_pushes(model->pushes());
  std::vector<std::size_t> counts;
  for (std::size_t i = 0; i < selection.size(); ++i) counts.push_back(selection.count(i));
  const bool sent =
      stream->Write(raw(head)) &&
      send_values(
          counts, [&](std::size_t i) { return copy_of(*reading->model, reading->selection, i); },
          [&](const Buffer& chunk) { return stream->Write(chunk); });
  if (!sent) return {grpc::StatusCode::CANCELLED, "the worker has stopped reading"};
  finish_pull(*reading);
  return grpc::Status::OK;
}

grpc::Status Service::push(grpc::ServerReader<Buffer>* stream) {
  Buffer first;
  v1::PushRequest request;
  if (!stream->Read(&first) || !parse(first, request) || !request.has_head()) {
    return to_grpc(unreadable("head of a push"));
  }
  const Status taken =
      push(request.head(), [&](std::span<float> values) { return receive(*stream, values); });
  return taken ? grpc::Status::OK : to_grpc(taken.error());
}

Status Service::push(const v1::PushHead& head, const Receive& receive) {
  Status taken = take_push(head, receive);
  if (!taken) ++refused_;
  return taken;
}

Status Service::take_push(const v1::PushHead& head, const Receive& receive) {
  const Result<std::shared_ptr<Model>> model = this->model();
  if (!model) return model.error();
  const auto selection = (*model)->select(tensors_of(head));
  if (!selection) return selection.error();
  const Result<Roster::Turn> turn = roster_.begin_turn(head.session());
  if (!turn) return turn.error();
  if (Status admitted = roster_.admit(head.session(), head.step()); !admitted) return admitted;

  // All values have arrived and are checked before any of them is applied.
  Buffers::Lent gradient = buffers_.take(selection->elements());
  const auto odd = receive(gradient.values());
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
