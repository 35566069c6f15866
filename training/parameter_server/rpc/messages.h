// Between what this code works with and what protobuf carries.
#pragma once

#include <grpcpp/support/status.h>
#include <parameter_server.pb.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/status.h"
#include "parameter_server/layout.h"
#include "parameter_server/model.h"

namespace muster::parameter_server {

/// Workers are numbered from 0, and not beyond.
inline constexpr std::uint32_t kHighestWorker = 1'000'000;

v1::Declaration to_message(const Declaration& declaration);

/// Errors: kBadArgument for what check() refuses, and a place that is none.
collective::Result<Declaration> from_message(const v1::Declaration& message);

v1::StatusResponse to_message(const ServerStatus& status);
ServerStatus from_message(const v1::StatusResponse& message);

/// Of a PullRequest or PushHead.
template <typename Message>
void add_tensors(std::span<const NamedTensor> tensors, Message& message) {
  for (const NamedTensor& tensor : tensors) {
    auto* const named = message.add_tensors();
    named->set_name(tensor.name);
    named->set_elements(tensor.elements);
  }
}

template <typename Message>
std::vector<NamedTensor> tensors_of(const Message& message) {
  std::vector<NamedTensor> tensors;
  for (const auto& named : message.tensors()) tensors.push_back({named.name(), named.elements()});
  return tensors;
}

// The service's methods, once for both ends. Streams of values go as raw buffers instead of
// protobuf messages (see chunk.h), for which gRPC's plugin generates nothing: what it would
// generate stands in server.cc and connection.cc.

inline constexpr const char* kJoin = "/muster.parameter_server.v1.ParameterServer/Join";
inline constexpr const char* kDeclare = "/muster.parameter_server.v1.ParameterServer/Declare";
inline constexpr const char* kPull = "/muster.parameter_server.v1.ParameterServer/Pull";
inline constexpr const char* kPush = "/muster.parameter_server.v1.ParameterServer/Push";
inline constexpr const char* kStatus = "/muster.parameter_server.v1.ParameterServer/Status";

// Errors over the wire: a status code of gRPC's and both sentences of an Error there, and back.

/// Bytes.
inline constexpr std::size_t kLongestMessage = 2'000;

/// Its sentence in no more than kLongestMessage bytes, for gRPC carries it among the headers of an
/// answer, which have to be short: where they are not, the other end sees nothing of it.
grpc::Status to_grpc(const collective::Error& error);

/// What the call answers; kSystem where it finds no memory, of which gRPC would say nothing.
grpc::Status with_memory(const std::function<grpc::Status()>& call);

/// The server that a call was made to, as errors name it.
struct Whom {
  int server;
  std::string address;

  /// "parameter server 1 (10.0.0.2:2222)"
  std::string name() const;
};

/// What the end of a call means to the worker; not for an end that is OK.
collective::Error from_grpc(const grpc::Status& status, const Whom& whom);

/// Whether a connection failed for the other's certificate: it has another job's key.
bool is_stranger(const grpc::Status& status);

}  // namespace muster::parameter_server
