// A parameter server: holds a part of a model's parameters, returns them to workers, and applies
// the gradients that workers push, in the order of arrival. The servers of a job are independent of
// each other, since the workers distribute the model (client.h).
//
//   Result<Server> server = Server::start({.address = "0.0.0.0:2222", .key = key, .workers = 3});
//   if (!server) return report(server.error());
//   const Ending ending = server->wait_as_task();  // until all workers have gone; see there
//
// It serves gRPC over TLS, and only clients that hold the job's key. On a second port of the same
// host, which the system selects, it exchanges values over TLS without gRPC; workers that cannot
// connect to that port use gRPC.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "muster/parameter_server/status.h"

namespace muster::parameter_server {

struct ServerOptions {
  /// host:port to listen on; port 0 selects a free port. A port that is in use is an error.
  std::string address = "127.0.0.1:0";

  /// The job's key in hex, 16 bytes or more: MUSTER_RENDEZVOUS_KEY.
  std::string key = {};

  /// The number of steps that a worker may be ahead of the slowest worker; its pulls and pushes
  /// wait while it is further ahead. 0: all workers take each step together. nullopt: workers never
  /// wait for each other.
  std::optional<std::uint64_t> staleness = {};

  /// The number of workers that must join before the first pull or push is answered, and before
  /// wait() may return. 0: the first worker begins.
  int workers = 0;

  /// The time without an answer after which a worker's machine counts as lost. A worker that dies
  /// is detected at once.
  std::chrono::milliseconds silence{10'000};
};

/// How the workers ended.
struct Ending {
  bool stopped;        // by stop(), before all workers had left
  std::uint64_t left;  // workers that left
  std::uint64_t lost;  // workers that were lost
};

class Server {
 public:
  /// Listens and serves on its own threads until it is destroyed or stopped.
  ///
  /// Errors: kConfiguration for an invalid key; kBadArgument for other options; kSystem if it
  /// cannot listen on the address, which the message names.
  static collective::Result<Server> start(const ServerOptions& options);

  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();

  /// host:port as in the options, with the actual port.
  const std::string& address() const;

  ServerStatus status() const;

  /// Blocks until at least one worker (and at least `ServerOptions::workers`) has joined and all
  /// have left, or until stop().
  Ending wait();

  /// wait() for the program of a parameter server: SIGTERM and SIGINT stop the server. A task `ps-N`
  /// of a Muster job (MUSTER_TASK) also serves on after all workers have left, until one of these
  /// signals or stop(). Muster sends SIGTERM after the chief has ended, and counts a parameter
  /// server that ends earlier as lost, which fails the job.
  ///
  /// `when_gone` is called once, when wait() would return. It must not throw.
  ///
  /// One call at a time in a process, because signals belong to the process. A signal that the
  /// process ignores stays ignored.
  /// Thread-safety: reads the environment, which no other thread may change meanwhile.
  Ending wait_as_task(const std::function<void(const Ending&)>& when_gone = {});

  /// Ends the server: refuses new calls, answers waiting calls with an error, and waits at most
  /// `grace` for others. A second call has no effect.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(2));

 private:
  class Implementation;
  explicit Server(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::parameter_server
