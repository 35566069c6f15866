#include "parameter_server/rpc/lease.h"

#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/impl/codegen/rpc_method.h>

#include <algorithm>
#include <utility>

#include "parameter_server/rpc/messages.h"

namespace muster::parameter_server {

using grpc::internal::RpcMethod;

Lease::~Lease() {
  cancel();
  if (is_open_) end();
  queue_.Shutdown();
  void* operation = nullptr;
  bool succeeded = false;
  while (queue_.Next(&operation, &succeeded)) {
  }
}

grpc::Status Lease::open(grpc::Channel& channel, int worker, v1::JoinResponse& welcome) {
  {
    const std::lock_guard lock(mutex_);
    stream_.reset();
    context_ = std::make_unique<grpc::ClientContext>();
    if (cancelled_) context_->TryCancel();
  }
  stream_.reset(
      grpc::internal::ClientAsyncReaderWriterFactory<v1::JoinRequest, v1::JoinResponse>::Create(
          &channel, &queue_, RpcMethod(kJoin, RpcMethod::BIDI_STREAMING), context_.get(), true,
          start_.begin()));
  is_open_ = true;
  v1::JoinRequest hello;
  hello.set_worker(static_cast<std::uint32_t>(worker));
  if (wait_for(start_) && write(hello)) {
    stream_->Read(&response_, read_.begin());
    if (wait_for(read_)) {
      welcome = response_;
      // The server sends nothing else: this read ends with the stream.
      stream_->Read(&response_, read_.begin());
      return grpc::Status::OK;
    }
  }
  grpc::Status why = end();
  if (!why.ok()) return why;
  return {grpc::StatusCode::INTERNAL, "the server ended the stream without accepting this worker"};
}

std::optional<grpc::Status> Lease::watch() {
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (std::exchange(was_woken_, false)) return std::nullopt;
    }
    if (is_open_ && !read_.is_under_way) return end();
    finish_next();
  }
}

std::optional<grpc::Status> Lease::ended_within(std::chrono::milliseconds time) {
  const auto deadline = std::chrono::steady_clock::now() + time;
  do {
    work_for(std::max(
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now()),
        std::chrono::milliseconds(0)));
    if (is_open_ && !read_.is_under_way) return end();
  } while (std::chrono::steady_clock::now() < deadline);
  return std::nullopt;
}

bool Lease::leave() {
  v1::JoinRequest goodbye;
  goodbye.set_goodbye(true);
  bool sent = is_open_ && write(goodbye);
  if (sent) {
    stream_->WritesDone(write_.begin());
    sent = wait_for(write_);
  }
  if (is_open_) end();
  return sent;
}

bool Lease::write(const v1::JoinRequest& message) {
  stream_->Write(message, write_.begin());
  return wait_for(write_);
}

grpc::Status Lease::end() {
  while (wait_for(read_)) stream_->Read(&response_, read_.begin());
  grpc::Status status;
  stream_->Finish(&status, end_.begin());
  wait_for(end_);
  is_open_ = false;
  return status;
}

bool Lease::wait_for(const Operation& operation) {
  while (operation.is_under_way) finish_next();
  return operation.succeeded;
}

void Lease::finish_next() {
  void* operation = nullptr;
  bool succeeded = false;
  if (queue_.Next(&operation, &succeeded)) finish(operation, succeeded);
}

void Lease::work_for(std::chrono::milliseconds time) {
  void* operation = nullptr;
  bool succeeded = false;
  if (queue_.AsyncNext(&operation, &succeeded, std::chrono::system_clock::now() + time) ==
      grpc::CompletionQueue::GOT_EVENT) {
    finish(operation, succeeded);
  }
}

void Lease::finish(void* operation, bool succeeded) {
  if (operation == &alarm_) {
    const std::lock_guard lock(mutex_);
    is_waking_ = false;
    return;
  }
  auto* const finished = static_cast<Operation*>(operation);
  finished->is_under_way = false;
  finished->succeeded = succeeded;
}

void Lease::wake() {
  const std::lock_guard lock(mutex_);
  was_woken_ = true;
  if (std::exchange(is_waking_, true)) return;
  alarm_.Set(&queue_, std::chrono::system_clock::now(), &alarm_);
}

void Lease::cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  if (context_) context_->TryCancel();
}

}  // namespace muster::parameter_server
