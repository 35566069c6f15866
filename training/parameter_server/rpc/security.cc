#include "parameter_server/rpc/security.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <string>

#include "parameter_server/certificates.h"

namespace muster::parameter_server {

using collective::Error;
using collective::ErrorCode;
using collective::Result;
using collective::Status;

Result<std::shared_ptr<grpc::ServerCredentials>> server_credentials(std::string_view hex_key) {
  const Result<Certificates> own = certificates_from(hex_key, End::kServer);
  if (!own) return own.error();
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  options.pem_root_certs = own->authority;
  options.pem_key_cert_pairs.push_back({own->private_key, own->certificate});
  return grpc::SslServerCredentials(options);
}

Result<std::shared_ptr<grpc::ChannelCredentials>> worker_credentials(std::string_view hex_key) {
  const Result<Certificates> own = certificates_from(hex_key, End::kWorker);
  if (!own) return own.error();
  return grpc::SslCredentials({.pem_root_certs = own->authority,
                               .pem_private_key = own->private_key,
                               .pem_cert_chain = own->certificate});
}

Result<WorkerIdentity> worker_identity(std::string_view hex_key) {
  const auto credentials = worker_credentials(hex_key);
  if (!credentials) return credentials.error();
  Result<TlsContext> context = TlsContext::create(hex_key, End::kWorker);
  if (!context) return context.error();
  return WorkerIdentity{.grpc = *credentials,
                        .bulk = std::make_shared<const TlsContext>(*std::move(context))};
}

Status check_silence(std::chrono::milliseconds silence) {
  if (silence >= std::chrono::milliseconds(1) && silence <= std::chrono::hours(24)) return {};
  return Error{ErrorCode::kBadArgument,
               "invalid silence limit of " + std::to_string(silence.count()) + " ms",
               "use 1 ms to 24 hours"};
}

std::vector<std::pair<std::string, int>> liveness(std::chrono::milliseconds silence) {
  // Half of the time passes before the ping, half is for the answer.
  const auto half =
      static_cast<int>(std::max<std::chrono::milliseconds::rep>(silence.count() / 2, 1));
  return {{GRPC_ARG_KEEPALIVE_TIME_MS, half},
          {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, half},
          {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
          // Calls that wait for slower workers send nothing for long, and by default a server
          // closes the connection of a client that pings more often than every five minutes.
          {GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0},
          {GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0}};
}

grpc::ChannelArguments channel_arguments(std::chrono::milliseconds silence) {
  grpc::ChannelArguments arguments;
  for (const auto& [name, value] : liveness(silence)) arguments.SetInt(name, value);
  arguments.SetSslTargetNameOverride(std::string(kServerName));
  // A web proxy is not meant for the job's own network.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Every client has a connection of its own, so that the end of a connection is the end of one
  // worker.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Servers of a job start in any order, so a client must not sleep for minutes between attempts.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 1'000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1'000);
  return arguments;
}

}  // namespace muster::parameter_server
