// The calls of workers, on the roster and the model. gRPC calls them on its threads, each with a
// stream of its own; bulk connections (bulk_server.h) share the pulls and pushes.
//
// Thread-safety: all functions may be called from any thread, except the setters.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>
#include <parameter_server.pb.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/server.h"
#include "parameter_server/buffers.h"
#include "parameter_server/model.h"
#include "parameter_server/roster.h"
#include "parameter_server/rpc/messages.h"

namespace muster::parameter_server {

class Service : public grpc::Service {
 public:
  explicit Service(const ServerOptions& options);

  Roster& roster() { return roster_; }

  ServerStatus status() const;

  /// The listening address, for status(). To be called before the first call of a worker.
  void set_address(std::string address) { address_ = std::move(address); }
  const std::string& address() const { return address_; }

  /// The port that workers learn when they join, and what to do when a session has ended. To be
  /// called before the first call of a worker.
  void set_bulk(std::uint16_t port, std::function<void(std::uint64_t session)> on_end) {
    bulk_port_ = port;
    on_end_ = std::move(on_end);
  }

  /// Fills the memory with the values of a push. Returns early with the index of a value that is
  /// not finite.
  using Receive =
      std::function<collective::Result<std::optional<std::size_t>>(std::span<float> values)>;

  /// Waits for slower workers, receives the values, and applies them if all have arrived and are
  /// finite. Otherwise the push changes nothing.
  collective::Status push(const v1::PushHead& head, const Receive& receive);

  /// What a pull reads.
  struct Reading {
    std::shared_ptr<Model> model;
    Model::Selection selection;

    std::uint64_t bytes() const { return selection.elements() * sizeof(float); }
  };

  /// Waits for slower workers.
  collective::Result<Reading> begin_pull(const v1::PullRequest& request);

  /// Counts a pull whose values have been sent.
  void finish_pull(const Reading& reading);

 private:
  using Buffer = grpc::ByteBuffer;
  using Lease = grpc::ServerReaderWriter<v1::JoinResponse, v1::JoinRequest>;

  grpc::Status join(grpc::ServerContext* context, Lease* lease);
  grpc::Status declare(grpc::ServerReader<Buffer>* stream, v1::DeclareResponse* response);
  grpc::Status pull(const v1::PullRequest& request, grpc::ServerWriter<Buffer>* stream);
  grpc::Status push(grpc::ServerReader<Buffer>* stream);

  collective::Result<v1::DeclareResponse> take_declaration(const v1::Declaration& message,
                                                           grpc::ServerReader<Buffer>* stream);
  collective::Result<v1::DeclareResponse> await_declaration(std::uint64_t session, int worker,
                                                            int winner,
                                                            const Declaration& declaration);
  collective::Status take_push(const v1::PushHead& head, const Receive& receive);

  // The model, and the worker and its session whose values it has, once they have arrived.
  struct Declared {
    std::shared_ptr<Model> model;
    int values_of;
    std::uint64_t session;
  };
  std::optional<Declared> declared() const;

  // The answer to a later declaration, or to the first one itself.
  static collective::Result<v1::DeclareResponse> agreed(const Declared& first,
                                                        const Declaration& later,
                                                        std::uint64_t session);

  // Uses these values from now on, unless other values have come before. Returns the values in use.
  Declared declare_first(Declaration declaration, std::vector<float> values, int worker,
                         std::uint64_t session);
  collective::Result<std::shared_ptr<Model>> model() const;

  Roster roster_;
  std::string address_;
  std::uint16_t bulk_port_ = 0;
  std::function<void(std::uint64_t)> on_end_ = [](std::uint64_t) {};
  mutable std::mutex mutex_;
  std::optional<Declared> declared_;  // once it is there it stays
  Buffers buffers_;
  std::atomic<std::uint64_t> pulls_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> bytes_in_ = 0;
  std::atomic<std::uint64_t> bytes_out_ = 0;
};

}  // namespace muster::parameter_server
