// The bulk connections of a server: pulls and pushes over TLS, without gRPC (bulk_frame.h). Each
// connection belongs to a worker that has joined by gRPC, and has a thread, which answers one
// message after the other. It ends with the worker's session, and after the first error.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "muster/collective/result.h"
#include "parameter_server/rpc/service.h"
#include "parameter_server/tls_stream.h"

namespace muster::parameter_server {

class BulkServer {
 public:
  using Clock = std::chrono::steady_clock;

  /// The limit of connections that have not yet proved to belong to a worker. Further ones wait to be
  /// accepted, so that strangers cannot occupy any number of threads.
  static constexpr int kMostUnproved = 64;

  /// Listens on a free port of `host`. A connection that does not prove within `silence` that it
  /// belongs to a worker is closed. The service outlives this object.
  ///
  /// Errors: those of certificates_from(); kSystem if it cannot listen.
  static collective::Result<std::unique_ptr<BulkServer>> start(const std::string& host,
                                                               std::string_view hex_key,
                                                               std::chrono::milliseconds silence,
                                                               Service& service);
  BulkServer(const BulkServer&) = delete;
  BulkServer& operator=(const BulkServer&) = delete;
  ~BulkServer();

  std::uint16_t port() const { return port_of(listener_); }

  /// Ends the connection of a session.
  void close(std::uint64_t session);

  /// Accepts no further messages. close() then leaves a message in progress to stop().
  void refuse();

  /// Waits until `deadline` for messages in progress, and ends all connections.
  void stop(Clock::time_point deadline);

 private:
  struct Connection;

  BulkServer(Socket listener, TlsContext context, std::chrono::milliseconds silence,
             Service& service);

  void accept_all();
  bool wait_for_descriptors();
  void take(Socket socket);
  void serve(Connection& connection);
  bool prove(Connection& connection);
  void answer_all(Connection& connection);
  bool begin_message(Connection& connection);
  void end_message(Connection& connection);
  void remove_ended();

  Socket listener_;
  TlsContext context_;
  const std::chrono::milliseconds silence_;
  Service& service_;
  std::mutex stopping_;  // held by stop()
  std::mutex mutex_;
  std::condition_variable changed_;
  bool refuses_ = false;
  int unproved_ = 0;
  std::list<Connection> connections_;  // a stable place for each thread's own
  std::thread acceptor_;
};

}  // namespace muster::parameter_server
