#include "parameter_server/rpc/messages.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <new>
#include <string_view>
#include <utility>

namespace muster::parameter_server {
namespace {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

void put(const Sgd& sgd, v1::Declaration& message) {
  message.mutable_sgd()->set_learning_rate(sgd.learning_rate);
  message.mutable_sgd()->set_momentum(sgd.momentum);
  message.mutable_sgd()->set_nesterov(sgd.nesterov);
}

void put(const Adam& adam, v1::Declaration& message) {
  message.mutable_adam()->set_learning_rate(adam.learning_rate);
  message.mutable_adam()->set_beta1(adam.beta1);
  message.mutable_adam()->set_beta2(adam.beta2);
  message.mutable_adam()->set_epsilon(adam.epsilon);
}

Optimizer optimizer_of(const v1::Declaration& message) {
  if (message.has_adam()) {
    const v1::Adam& adam = message.adam();
    return Adam{.learning_rate = adam.learning_rate(),
                .beta1 = adam.beta1(),
                .beta2 = adam.beta2(),
                .epsilon = adam.epsilon()};
  }
  return Sgd{.learning_rate = message.sgd().learning_rate(),
             .momentum = message.sgd().momentum(),
             .nesterov = message.sgd().nesterov()};
}

}  // namespace

v1::Declaration to_message(const Declaration& declaration) {
  v1::Declaration message;
  for (const Tensor& tensor : declaration.tensors) {
    v1::Tensor* const one = message.add_tensors();
    one->set_name(tensor.name);
    for (const std::int64_t dimension : tensor.shape) one->add_shape(dimension);
  }
  std::visit([&](const auto& optimizer) { put(optimizer, message); }, declaration.optimizer);
  message.set_server(static_cast<std::uint32_t>(declaration.server));
  message.set_servers(static_cast<std::uint32_t>(declaration.servers));
  return message;
}

Result<Declaration> from_message(const v1::Declaration& message) {
  Declaration declaration = {.tensors = {},
                             .optimizer = optimizer_of(message),
                             .server = message.server(),
                             .servers = message.servers()};
  for (const v1::Tensor& tensor : message.tensors()) {
    declaration.tensors.push_back(
        {.name = tensor.name(), .shape = {tensor.shape().begin(), tensor.shape().end()}});
  }
  if (const Status right = check(declaration.tensors); !right) return right.error();
  if (const Status right = check(declaration.optimizer); !right) return right.error();
  if (declaration.server < declaration.servers) return declaration;
  return Error{ErrorCode::kBadArgument, "a job of " + std::to_string(declaration.servers) +
                                            " parameter servers has no number " +
                                            std::to_string(declaration.server)};
}

v1::StatusResponse to_message(const ServerStatus& status) {
  v1::StatusResponse message;
  message.set_address(status.address);
  message.set_tensors(status.tensors);
  message.set_bytes(status.bytes);
  message.set_pushes(status.pushes);
  message.set_pulls(status.pulls);
  message.set_refused(status.refused);
  message.set_bytes_in(status.bytes_in);
  message.set_bytes_out(status.bytes_out);
  message.set_left(status.left);
  message.set_lost(status.lost);
  for (const WorkerStatus& worker : status.workers) {
    v1::StatusResponse::Worker* const one = message.add_workers();
    one->set_worker(static_cast<std::uint32_t>(worker.worker));
    one->set_clock(worker.clock);
    one->set_waits(worker.waits);
  }
  return message;
}

ServerStatus from_message(const v1::StatusResponse& message) {
  ServerStatus status = {.address = message.address(),
                         .tensors = message.tensors(),
                         .bytes = message.bytes(),
                         .pushes = message.pushes(),
                         .pulls = message.pulls(),
                         .refused = message.refused(),
                         .bytes_in = message.bytes_in(),
                         .bytes_out = message.bytes_out(),
                         .left = message.left(),
                         .lost = message.lost(),
                         .workers = {}};
  for (const v1::StatusResponse::Worker& worker : message.workers()) {
    status.workers.push_back({.worker = static_cast<int>(worker.worker()),
                              .clock = worker.clock(),
                              .waits = worker.waits()});
  }
  return status;
}

namespace {

struct Pair {
  ErrorCode ours;
  grpc::StatusCode grpcs;
};
// The codes of a server's answers. Other codes of gRPC come from the connection.
constexpr std::array<Pair, 6> kCodes = {{
    {ErrorCode::kBadArgument, grpc::StatusCode::INVALID_ARGUMENT},
    {ErrorCode::kConfiguration, grpc::StatusCode::OUT_OF_RANGE},
    {ErrorCode::kAuthentication, grpc::StatusCode::UNAUTHENTICATED},
    {ErrorCode::kMismatch, grpc::StatusCode::FAILED_PRECONDITION},
    {ErrorCode::kPeerLost, grpc::StatusCode::ABORTED},
    {ErrorCode::kSystem, grpc::StatusCode::RESOURCE_EXHAUSTED},
}};

constexpr std::string_view kCut = " ...";

}  // namespace

grpc::Status to_grpc(const Error& error) {
  const auto* const pair = std::find_if(kCodes.begin(), kCodes.end(),
                                        [&](const Pair& one) { return one.ours == error.code; });
  std::string text = error.to_string();
  if (text.size() > kLongestMessage)
    text = text.substr(0, kLongestMessage - kCut.size()).append(kCut);
  return {pair == kCodes.end() ? grpc::StatusCode::INTERNAL : pair->grpcs, text};
}

grpc::Status with_memory(const std::function<grpc::Status()>& call) {
  try {
    return call();
  } catch (const std::bad_alloc&) {
    return to_grpc({ErrorCode::kSystem, "the parameter server is out of memory",
                    "run the job with more parameter servers, or give them more memory"});
  }
}

std::string Whom::name() const {
  return "parameter server " + std::to_string(server) + " (" + address + ")";
}

Error from_grpc(const grpc::Status& status, const Whom& whom) {
  Error error = {ErrorCode::kPeerLost, "", "", whom.server, whom.address};
  const auto* const pair = std::find_if(kCodes.begin(), kCodes.end(), [&](const Pair& one) {
    return one.grpcs == status.error_code();
  });
  if (pair != kCodes.end()) {
    error.code = pair->ours;
    error.message = whom.name() + ": " + status.error_message();
  } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    error.code = ErrorCode::kTimeout;
    error.message = whom.name() + " did not answer in time";
    error.advice = "if the call waits for a slow worker, raise the timeout";
  } else {
    error.message = whom.name() + " was lost: " + status.error_message();
    error.advice = "see the end of its log";
  }
  return error;
}

bool is_stranger(const grpc::Status& status) {
  // gRPC has no code for this. Its text contains OpenSSL's reason, in capitals in some versions.
  std::string text = status.error_message();
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char letter) {
    return letter == '_' ? ' ' : static_cast<char>(std::tolower(letter));
  });
  return text.find("certificate verify failed") != std::string::npos;
}

}  // namespace muster::parameter_server
