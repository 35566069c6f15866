// The settings of connections at both ends: TLS with the job's key, and the detection of silent peers.
#pragma once

#include <grpcpp/security/credentials.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <chrono>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "parameter_server/tls_stream.h"

namespace muster::parameter_server {

/// Errors: those of certificates_from().
collective::Result<std::shared_ptr<grpc::ServerCredentials>> server_credentials(
    std::string_view hex_key);
collective::Result<std::shared_ptr<grpc::ChannelCredentials>> worker_credentials(
    std::string_view hex_key);

/// With which a worker proves on its connections that it has the job's key.
struct WorkerIdentity {
  std::shared_ptr<grpc::ChannelCredentials> grpc;
  std::shared_ptr<const TlsContext> bulk;
};

/// Errors: those of certificates_from().
collective::Result<WorkerIdentity> worker_identity(std::string_view hex_key);

/// Errors: kBadArgument for less than a millisecond, or more than a day.
collective::Status check_silence(std::chrono::milliseconds silence);

/// The settings that both ends share: the peer is pinged, so that a cut connection or a stopped
/// process is detected after `silence`.
std::vector<std::pair<std::string, int>> liveness(std::chrono::milliseconds silence);

/// All settings of a worker's channel.
grpc::ChannelArguments channel_arguments(std::chrono::milliseconds silence);

}  // namespace muster::parameter_server
