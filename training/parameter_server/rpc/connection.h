// A worker's connection to one server. Each call blocks until it is answered. Between calls the
// connection watches the worker's lease, so that the end of the server is detected at once, also
// without a pending call.
//
// Values travel on a bulk connection (bulk_client.h) if the server has a port for it that the worker
// reaches, otherwise by gRPC. The lease is on gRPC in both cases, and with it the detection of a
// server that is silent.
//
// Thread-safety: one thread at a time; wake() and cancel() from any thread.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
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
#include "parameter_server/rpc/bulk_client.h"
#include "parameter_server/rpc/lease.h"
#include "parameter_server/rpc/messages.h"
#include "parameter_server/rpc/security.h"

namespace muster::parameter_server {

class Connection {
 public:
  /// watch() calls `on_lost`, at most once, when the server has ended the lease or is lost.
  Connection(Whom whom, const ClientOptions& options, const WorkerIdentity& identity,
             std::function<void(const collective::Error&)> on_lost);
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection();

  /// Waits for the server and joins it. Errors: those of Client::connect().
  collective::Status join(std::chrono::system_clock::time_point deadline);

  /// The worker's next step on this server.
  std::uint64_t clock() const { return clock_; }

  struct InitialValues {
    std::uint64_t worker;  // whose values count
    bool taken;            // the values of this call count
  };

  /// The worker's first step is the `clock` of the declaration. `values_of`: on all servers but the
  /// first, the worker that the first server has chosen; `values` are not sent then.
  collective::Result<InitialValues> declare(v1::Declaration declaration,
                                            std::optional<std::uint64_t> values_of,
                                            std::span<const std::span<const float>> values);

  /// Returns the number of pushes that the server had applied before.
  collective::Result<std::uint64_t> pull(std::span<const NamedTensor> tensors,
                                         std::vector<std::span<float>> into);

  /// `gradients` are this server's slices of the tensors, each at most kSliceElements long.
  collective::Status push(std::span<const NamedTensor> tensors,
                          std::span<const std::span<const float>> gradients);

  collective::Result<ServerStatus> status();

  /// Sends a goodbye.
  collective::Status leave();

  /// Watches until wake() is called, or at once returns if it was called since the last watch().
  void watch();

  void wake() { lease_.wake(); }

  /// Pending and later calls end with an error.
  void cancel();

  /// Whether values do not travel by gRPC. To be called after join().
  bool has_bulk() const { return bulk_ != nullptr; }

 private:
  // The context of a call, which cancel() can reach during the call.
  class Call;

  collective::Status try_to_join(std::chrono::system_clock::time_point deadline, bool& may_retry);
  std::chrono::system_clock::time_point call_deadline() const;
  collective::Status ended(const grpc::Status& status) const;
  bool is_cancelled();
  Loan lend();

  // How a call on the bulk connection ended, and what it returns.
  using BulkExchange = std::function<std::optional<v1::BulkAnswer>(BulkClient&)>;
  void open_bulk(std::uint32_t port);
  collective::Result<std::uint64_t> call_bulk(const BulkExchange& exchange);
  collective::Error lost(const grpc::Status& lease) const;

  const Whom whom_;
  const int worker_;
  const std::chrono::milliseconds timeout_;
  const std::chrono::milliseconds silence_;
  const std::shared_ptr<const TlsContext> tls_;
  const std::function<void(const collective::Error&)> on_lost_;
  std::shared_ptr<grpc::Channel> channel_;

  Lease lease_;
  std::uint64_t session_ = 0;
  std::uint64_t clock_ = 0;

  std::unique_ptr<BulkClient> bulk_;  // changed under the mutex, by join()

  std::mutex mutex_;
  grpc::ClientContext* current_ = nullptr;
  bool cancelled_ = false;
};

}  // namespace muster::parameter_server
