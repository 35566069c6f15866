// A worker's bulk connection to one server: pulls and pushes over TLS, without gRPC (bulk_frame.h).
//
// Thread-safety: one thread at a time; shut_down() from any thread.
#pragma once

#include <parameter_server.pb.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "muster/collective/result.h"
#include "parameter_server/tls_stream.h"

namespace muster::parameter_server {

class BulkClient {
 public:
  using Patience = TlsStream::Patience;

  /// Connects as the worker with this session, which the server must confirm. nullptr if this does
  /// not succeed within `patience`.
  static std::unique_ptr<BulkClient> connect(const TlsContext& context, const HostAndPort& where,
                                             std::uint64_t session,
                                             std::chrono::milliseconds patience);

  /// While a call waits it asks in these intervals whether it may go on.
  void wait_with(Patience patience, std::chrono::milliseconds interval) {
    stream_.wait_with(std::move(patience), interval);
  }

  /// Each call returns the server's answer, or nullopt if the connection ended or another message
  /// arrived. After that, and after an answer with an error, the connection is useless.
  std::optional<v1::BulkAnswer> push(const v1::PushHead& head,
                                     std::span<const std::span<const float>> values);
  std::optional<v1::BulkAnswer> pull(const v1::PullRequest& request,
                                     std::span<const std::span<float>> into);

  void shut_down() { stream_.shut_down(); }

 private:
  BulkClient(const TlsContext& context, Socket socket) : stream_(context, std::move(socket)) {}

  bool greet(std::uint64_t session);
  std::optional<v1::BulkAnswer> read_answer(std::uint64_t value_bytes);

  TlsStream stream_;
};

}  // namespace muster::parameter_server
