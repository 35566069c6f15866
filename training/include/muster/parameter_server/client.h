// A worker's end of the parameter servers: declares the model, pulls its parameters, pushes
// gradients. It cuts the model among the servers (each tensor's elements end to end, in equal
// parts), so all servers work at once and none holds more than its share.
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
// Clocks: a worker is in the step that it has not pushed yet. Where the servers bound staleness, a
// pull or push waits while its worker is more than that many steps ahead of the slowest one, and
// returns when those have caught up, left or been lost. A push of nothing counts as a step, too.
//
// What pull() gives may be of different steps from one slice to the next while others push: that is
// what makes it fast. It holds at least what bounded staleness promises.
//
// Errors: a server that has died or does not answer is kPeerLost or kTimeout, with its number as
// `rank` and its address as `host`. After an error of a server the client is of no further use:
// what is under way ends with that error, and so do later calls. An argument that cannot be right
// is kBadArgument, sends nothing, and changes nothing.
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

  /// How long connect() waits for servers that are not there yet.
  std::chrono::milliseconds connect_timeout{60'000};

  /// How long any other call may take, waits for slower workers included.
  std::chrono::milliseconds timeout{600'000};

  /// A server whose machine does not answer for so long counts as lost. A server that dies is
  /// noticed at once.
  std::chrono::milliseconds silence{10'000};
};

/// A tensor of the model. `values`, row by row, are copied before declare() returns.
struct Parameter {
  std::string name;
  std::vector<std::int64_t> shape;  // {} is a scalar
  std::span<const float> values;    // what it begins with
};

/// Where pull() writes a tensor: as many elements as its shape has.
struct Destination {
  std::string name;
  std::span<float> values;
};

/// What push() reads: as many elements as the tensor's shape has, all of them finite.
struct Gradient {
  std::string name;
  std::span<const float> values;
};

/// What declare() found.
struct Declared {
  bool was_first;  // the model begins with this worker's values
};

struct Pulled {
  std::uint64_t pushes;  // that the servers had applied before; the least of all servers
};

class Client {
 public:
  /// Joins every server. A worker that joins late begins in the step of the slowest.
  ///
  /// Errors: kTimeout or kPeerLost, naming the first server that does not answer; kAuthentication
  /// where its key is another one; kBadArgument, kConfiguration for the options.
  static collective::Result<Client> connect(const ClientOptions& options);

  Client(Client&&) noexcept;
  Client& operator=(Client&&) noexcept;

  /// Without leave() before, the servers count this worker as lost.
  ~Client();

  /// Says what the model is, to be called once, before pull() and push(). The values of the worker
  /// that comes first count; later ones find the parameters as they are by then.
  ///
  /// Errors: kMismatch where another worker declared other tensors, shapes, servers or another
  /// optimizer, naming both; kBadArgument for names twice, values that do not fit their shape or
  /// are not finite, and what check(Optimizer) refuses.
  collective::Result<Declared> declare(std::span<const Parameter> parameters,
                                       const Optimizer& optimizer);
  collective::Result<Declared> declare(std::initializer_list<Parameter> parameters,
                                       const Optimizer& optimizer);

  /// Fills the destinations: any tensors, each at most once.
  ///
  /// Errors: kBadArgument for a tensor that was not declared or another number of elements.
  collective::Result<Pulled> pull(std::span<const Destination> destinations);
  collective::Result<Pulled> pull(std::initializer_list<Destination> destinations);

  /// Has the servers take one step with these gradients: any tensors, each at most once. Returns
  /// when all have.
  ///
  /// Errors: kBadArgument as of pull(), and for a gradient with a NaN or an infinity, naming
  /// tensor, element and worker. No server then applies any of it.
  collective::Status push(std::span<const Gradient> gradients);
  collective::Status push(std::initializer_list<Gradient> gradients);

  /// The same in the background. The buffers belong to the client until the future is ready.
  std::future<collective::Result<Pulled>> pull_async(std::span<const Destination> destinations);
  std::future<collective::Status> push_async(std::span<const Gradient> gradients);

  /// What each server is doing, in the order of ClientOptions::servers.
  collective::Result<std::vector<ServerStatus>> status();

  /// Waits for what is under way and says goodbye: nobody waits for this worker from now on. Later
  /// calls are kBadArgument.
  collective::Status leave();

 private:
  class Implementation;
  explicit Client(std::unique_ptr<Implementation> implementation);
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace muster::parameter_server
