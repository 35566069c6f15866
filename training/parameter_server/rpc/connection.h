// One worker's connection with one server: the calls, each of which blocks until it is answered,
// and what is to be done between them: to watch the worker's lease, so that the end of the server
// is noticed at once, also while no call is under way.
//
// Thread-safety: all from one thread at a time; wake() and cancel() from any.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/security/credentials.h>
#include <parameter_server.pb.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/client.h"
#include "parameter_server/layout.h"
#include "parameter_server/model.h"
#include "parameter_server/rpc/lease.h"
#include "parameter_server/rpc/messages.h"

namespace muster::parameter_server {

class Connection {
 public:
  /// `on_lost` is called at most once, by watch(): the server has ended the lease, or is gone.
  Connection(Whom whom, const ClientOptions& options,
             const std::shared_ptr<grpc::ChannelCredentials>& credentials,
             std::function<void(const collective::Error&)> on_lost);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// Waits for the server and joins it. Errors: as of Client::connect().
  collective::Status join(std::chrono::system_clock::time_point deadline);

  /// The worker whose values count. `values_of`: the one that the first server named, where this is
  /// not the first; then `values` are not sent.
  collective::Result<std::uint64_t> declare(v1::Declaration declaration,
                                            std::optional<std::uint64_t> values_of,
                                            std::span<const std::span<const float>> values);

  /// Pushes that the server had applied before.
  collective::Result<std::uint64_t> pull(std::span<const NamedTensor> tensors,
                                         std::vector<std::span<float>> into);

  /// `gradients`: this server's slices of the tensors, each at most kSliceElements long.
  collective::Status push(std::span<const NamedTensor> tensors,
                          std::span<const std::span<const float>> gradients);

  collective::Result<ServerStatus> status();

  /// Says goodbye.
  collective::Status leave();

  /// Watches until wake() is called, or was since the last time.
  void watch();

  void wake() { lease_.wake(); }

  /// What is under way, and all later calls, end with an error.
  void cancel();

 private:
  // A call's context, which cancel() reaches while the call is under way.
  class Call;

  collective::Status try_to_join(std::chrono::system_clock::time_point deadline, bool& may_retry);
  std::chrono::system_clock::time_point call_deadline() const;
  collective::Status ended(const grpc::Status& status) const;
  bool is_cancelled();
  Loan lend();

  const Whom whom_;
  const int worker_;
  const std::chrono::milliseconds timeout_;
  const std::function<void(const collective::Error&)> on_lost_;
  std::shared_ptr<grpc::Channel> channel_;

  Lease lease_;
  std::uint64_t session_ = 0;
  std::uint64_t clock_ = 0;

  std::mutex mutex_;
  grpc::ClientContext* current_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace muster::parameter_server
