// One parameter server: holds a part of a model's parameters, hands them out, and applies the
// gradients that workers push, each as it comes. A job has one or more; each knows nothing of the
// others, for the workers cut the model (see client.h).
//
//   Result<Server> server = Server::start({.address = "0.0.0.0:2222", .key = key, .workers = 3});
//   if (!server) return report(server.error());
//   const Ending ending = server->wait();       // until all workers have gone
//
// It speaks gRPC over TLS, and only with those who hold the job's key; there is no other mode.
//
// Thread-safety: all functions may be called from any thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "muster/collective/result.h"
#include "muster/parameter_server/status.h"

namespace muster::parameter_server {

struct ServerOptions {
  /// host:port to listen on; port 0 takes a free one. A port that another program has is refused.
  std::string address = "127.0.0.1:0";

  /// The job's key in hex, 16 bytes or more: MUSTER_RENDEZVOUS_KEY.
  std::string key = {};

  /// How many steps a worker may be ahead of the slowest one; its pulls and pushes wait while it is
  /// further. 0: all take each step together. Nothing: nobody waits for anybody.
  std::optional<std::uint64_t> staleness = {};

  /// Workers that have to have joined before the first pull or push is answered, and before wait()
  /// may return. 0: whoever comes first begins.
  int workers = 0;

  /// A worker whose machine does not answer for so long counts as lost. A worker that dies is
  /// noticed at once.
  std::chrono::milliseconds silence{10'000};
};

/// How the workers went.
struct Ending {
  bool stopped;        // by stop(), with workers still there or still to come
  std::uint64_t left;  // said goodbye
  std::uint64_t lost;  // went without a word
};

class Server {
 public:
  /// Listens and serves, on threads of its own, until it is destroyed or stopped.
  ///
  /// Errors: kConfiguration for a key that is none; kBadArgument for other options; kSystem where
  /// the address cannot be listened on, naming it.
  static collective::Result<Server> start(const ServerOptions& options);

  Server(Server&&) noexcept;
  Server& operator=(Server&&) noexcept;
  ~Server();

  /// host:port as in the options, with the port that it really has.
  const std::string& address() const;

  ServerStatus status() const;

  /// Blocks until at least one worker (and at least `ServerOptions::workers`) has been there and
  /// all have gone, or until stop().
  Ending wait();

  /// Ends the server: takes no new calls, answers those that wait with an error, gives the others
  /// `grace` to end. Again: does nothing.
  void stop(std::chrono::milliseconds grace = std::chrono::seconds(2));

 private:
  class Implementation;
  explicit Server(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::parameter_server
