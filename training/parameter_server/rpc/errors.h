// Errors over the wire: a status code of gRPC's and both sentences of an Error there, and back.
#pragma once

#include <grpcpp/support/status.h>

#include <cstddef>
#include <functional>
#include <string>

#include "muster/collective/result.h"

namespace muster::parameter_server {

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
