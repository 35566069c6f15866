// A worker's client of the parameter servers: declares the model, pulls parameters, and pushes
// gradients. It distributes the elements of the model among the servers in equal parts, so that all
// servers work at the same time with the same load.
//
//   Result<Client> client = Client::connect({.servers = servers, .worker = 1, .key = key});
//   if (!client) return report(client.error());
//   client->declare({{"w", {128, 10}, w}}, Sgd{.learning_rate = 0.1});
//   for (...) {
//     client->pull({{"w", w}});         // the parameters as they are now
//     ...                               // the gradient of a batch
//     client->push({{"w", gradient}});  // one step of the optimizer on the servers; clock + 1
//   }
//   client->leave();
//
// Clocks: the step of a worker is the number of its pushes so far. If the servers bound staleness,
// a pull or push waits while its worker is more than that many steps ahead of the slowest worker.
// It continues when the slower workers have caught up, left or been lost. An empty push counts as a
// step.
//
// While other workers push, the slices of a pull() may be from different steps, which makes it
// fast. They satisfy the bound of staleness.
//
// Errors: a server that has died or does not answer is kPeerLost or kTimeout, with its number as
// `rank` and its address as `host`. After an error of a server the client is unusable: pending and
// later calls return that error. An invalid argument is kBadArgument, sends nothing, and changes
// nothing.
//
// Thread-safety: all functions may be called from any thread; calls take effect in the order in
// which they were made.
#pragma once

#include <chrono>
#include <cstdint>
#include <future>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "muster/parameter_server/optimizer.h"
#include "muster/parameter_server/status.h"

namespace muster::parameter_server {

struct ClientOptions {
  /// host:port of every parameter server of the job, in the same order on every worker.
  std::vector<std::string> servers = {};

  /// This worker's number, from 0; no two workers have the same.
  int worker = 0;

  /// The job's key in hex, 16 bytes or more: MUSTER_RENDEZVOUS_KEY.
  std::string key = {};

  /// How long connect() waits for servers that have not started yet.
  std::chrono::milliseconds connect_timeout{60'000};

  /// The time limit of every other call, including waits for slower workers.
  std::chrono::milliseconds timeout{600'000};

  /// The time without an answer after which a server's machine counts as lost. A server that dies
  /// is detected at once.
  std::chrono::milliseconds silence{10'000};
};

/// A tensor of the model. `values`, row by row, are copied before declare() returns.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;  // {} is a scalar
  std::span<const float> values;    // the initial values
};

/// The destination of a tensor in pull(), with the elements of its shape.
struct Destination {
  std::string name;
  std::span<float> values;
};

/// The gradient of a tensor in push(), with the elements of its shape, all finite.
struct Gradient {
  std::string name;
  std::span<const float> values;
};

/// The result of declare().
struct Declared {
  bool was_first;  // the initial values are those of this call
};

struct Pulled {
  std::uint64_t pushes;  // applied before; the minimum over all servers
};

class Client {
 public:
  /// Joins every server. A worker that joins late begins at the step of the slowest worker, in the
  /// same step on all servers.
  ///
  /// Errors: kTimeout or kPeerLost, naming the first server that does not answer; kAuthentication
  /// for a wrong key; kBadArgument, kConfiguration for the options.
  static collective::Result<Client> connect(const ClientOptions& options);

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Without leave() before, this worker counts as lost.
  ~Client();

  /// Declares the model. To be called once, before pull() and push(). The initial values are those
  /// of the first worker; later workers get the current parameters.
  ///
  /// Errors: kMismatch if another worker declared other tensors, shapes, servers or another
  /// optimizer, naming both, and if some servers have a model of an earlier start of the job;
  /// kPeerLost if the first worker, or an earlier start of this one, was lost before all servers
  /// had its values; kBadArgument for duplicate names, values that do not fit their shape
  /// or are not finite, and optimizers that check(Optimizer) refuses.
  collective::Result<Declared> declare(std::span<const Parameter> parameters,
                                       const Optimizer& optimizer);
  collective::Result<Declared> declare(std::initializer_list<Parameter> parameters,
                                       const Optimizer& optimizer);

  /// Fills the destinations: any tensors, each at most once.
  ///
  /// Errors: kBadArgument for an undeclared tensor or a wrong number of elements.
  collective::Result<Pulled> pull(std::span<const Destination> destinations);
  collective::Result<Pulled> pull(std::initializer_list<Destination> destinations);

  /// Applies one step of the optimizer with these gradients on all servers: any tensors, each at
  /// most once. Returns when all servers have applied it.
  ///
  /// Errors: kBadArgument as for pull(), and for a gradient with a NaN or an infinity, naming
  /// tensor, element and worker; no server applies any part of it.
  collective::Status push(std::span<const Gradient> gradients);
  collective::Status push(std::initializer_list<Gradient> gradients);

  /// The same in the background. The buffers belong to the client until the future is ready.
  std::future<collective::Result<Pulled>> pull_async(std::span<const Destination> destinations);
  std::future<collective::Status> push_async(std::span<const Gradient> gradients);

  /// The status of each server, in the order of ClientOptions::servers.
  collective::Result<std::vector<ServerStatus>> status();

  /// Waits for pending calls and leaves: other workers no longer wait for this one. Later calls are
  /// kBadArgument.
  collective::Status leave();

 private:
  class Implementation;
  explicit Client(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::parameter_server
