// Conversions between the types of this library and the messages of protobuf.
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

/// The highest number of a worker. The lowest is 0.
inline constexpr std::uint32_t kHighestWorker = 1'000'000;

v1::Declaration to_message(const Declaration& declaration);

/// Errors: kBadArgument for a model that check() rejects, and for an invalid server number.
collective::Result<Declaration> from_message(const v1::Declaration& message);

v1::StatusResponse to_message(const ServerStatus& status);
ServerStatus from_message(const v1::StatusResponse& message);

/// `message` is a PullRequest or a PushHead.
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

// The methods of the service, defined once for both ends. Streams of values are sent as raw buffers
// instead of protobuf messages (chunk.h), for which gRPC's plug-in generates no code: server.cc and
// connection.cc contain the code that it would generate.

inline constexpr const char* kJoin = "/muster.parameter_server.v1.ParameterServer/Join";
inline constexpr const char* kDeclare = "/muster.parameter_server.v1.ParameterServer/Declare";
inline constexpr const char* kPull = "/muster.parameter_server.v1.ParameterServer/Pull";
inline constexpr const char* kPush = "/muster.parameter_server.v1.ParameterServer/Push";
inline constexpr const char* kStatus = "/muster.parameter_server.v1.ParameterServer/Status";

// Errors on the wire: a status code of gRPC with the message and the advice of an Error.

/// The longest text of an error on the wire, in bytes.
inline constexpr std::size_t kLongestMessage = 2'000;

/// The text is cut off at kLongestMessage bytes: gRPC sends it in a header, and the other end would
/// not receive a header that is too long.
grpc::Status to_grpc(const collective::Error& error);

/// The result of `call`; kSystem if it runs out of memory, for which gRPC would return no message.
grpc::Status with_memory(const std::function<grpc::Status()>& call);

/// The server to which a call was made, for errors.
struct Whom {
  int server;
  std::string address;

  /// "parameter server 1 (10.0.0.2:2222)"
  std::string name() const;
};

/// The worker's error for the end of a call with a status other than OK.
collective::Error from_grpc(const grpc::Status& status, const Whom& whom);

/// Whether a connection failed because of the peer's certificate: the peer has another job's key.
bool is_stranger(const grpc::Status& status);

}  // namespace muster::parameter_server
