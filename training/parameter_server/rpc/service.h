// The calls of workers, each on a thread of gRPC's, over the roster and the model.
#pragma once

#include <grpcpp/impl/codegen/service_type.h>
#include <grpcpp/server_context.h>
#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/status.h>
#include <grpcpp/support/sync_stream.h>
#include <parameter_server.pb.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/server.h"
#include "parameter_server/buffers.h"
#include "parameter_server/model.h"
#include "parameter_server/roster.h"

namespace muster::parameter_server {

class Service : public grpc::Service {
 public:
  explicit Service(const ServerOptions& options);

  Roster& roster() { return roster_; }

  ServerStatus status() const;

  /// Where it listens, as status() says it. To be called before anybody asks.
  void set_address(std::string address) { address_ = std::move(address); }
  const std::string& address() const { return address_; }

 private:
  using Buffer = grpc::ByteBuffer;
  using Lease = grpc::ServerReaderWriter<v1::JoinResponse, v1::JoinRequest>;

  grpc::Status join(grpc::ServerContext* context, Lease* lease);
  grpc::Status declare(grpc::ServerReader<Buffer>* stream, v1::DeclareResponse* response);
  grpc::Status pull(const v1::PullRequest& request, grpc::ServerWriter<Buffer>* stream);
  grpc::Status push(grpc::ServerReader<Buffer>* stream);

  collective::Result<int> take_declaration(const v1::Declaration& message,
                                           grpc::ServerReader<Buffer>* stream);
  collective::Result<int> await_declaration(std::uint64_t session, int winner,
                                            const Declaration& declaration);
  collective::Status take_push(const v1::PushHead& head, grpc::ServerReader<Buffer>* stream);

  // Whose values count, where they have come.
  struct Declared {
    std::shared_ptr<Model> model;
    int values_of;
  };
  std::optional<Declared> declared() const;
  static collective::Result<int> agreed(const Declared& first, const Declaration& later);

  // What counts from now on: these values, where no others have come before.
  Declared declare_first(Declaration declaration, std::vector<float> values, int worker);
  collective::Result<std::shared_ptr<Model>> model() const;

  Roster roster_;
  std::string address_;
  mutable std::mutex mutex_;
  std::optional<Declared> declared_;  // once it is there it stays
  Buffers buffers_;
  std::atomic<std::uint64_t> pulls_ = 0;
  std::atomic<std::uint64_t> refused_ = 0;
  std::atomic<std::uint64_t> bytes_in_ = 0;
  std::atomic<std::uint64_t> bytes_out_ = 0;
};

}  // namespace muster::parameter_server
