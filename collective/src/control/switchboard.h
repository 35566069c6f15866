// The interface by which a monitor gets connections after its world has been joined: it connects to
// ranks to which this rank has no connection yet, and accepts connections from them. Only worlds
// whose control graph is not complete (graph.h) have a switchboard.
//
// Thread-safety: call() from any thread; the other methods from the monitor's thread.
#pragma once

#include <poll.h>

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "muster/collective/result.h"
#include "transport/socket.h"

namespace muster::collective {

/// The connection to another rank.
struct Link {
  int rank = 0;
  std::string host = {};
  bool is_local = false;   // on this host: silence_on_host applies
  Descriptor socket = {};  // connected, stream, authenticated
};

class Switchboard {
 public:
  virtual ~Switchboard() = default;

  /// The ranks of the world.
  virtual int size() const = 0;
  virtual std::string host_of(int rank) const = 0;

  /// Begins to open a control connection to `rank`. take() returns the outcome later.
  virtual void call(int rank) = 0;

  /// For the thread that polls. prepare() appends the entries to poll; if attend() must be called
  /// before `wake`, it sets `wake` to that time. attend() handles the results of the entries.
  ///
  /// Errors: kSystem, if no connection can be accepted any more.
  virtual void prepare(std::vector<pollfd>& entries, Deadline& wake) = 0;
  virtual Status attend(std::span<const pollfd> entries) = 0;

  /// A control connection that this rank opened or accepted, or the reason why it cannot open one.
  struct Outcome {
    Link link;  // without a socket if there is an obstacle
    std::optional<Error> obstacle = {};
  };
  virtual std::vector<Outcome> take() = 0;
};

}  // namespace muster::collective
