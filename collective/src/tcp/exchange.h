// The execution of a program over the sockets. One thread sends to and receives from all peers at
// the same time and reduces in between, so that two ranks cannot block each other for any size of
// buffer.
//
// poll() is called only if no byte moves. If each rank has a core, the thread spins for a moment
// first, since sleeping and waking up takes six times as long as a short message.
//
// Failures go through the monitor, so that all ranks return the same error. If a data connection
// ends, the monitor decides first: the reason may still be in transit.
//
// Ownership: refers to its arguments. Thread-safety: one thread.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "call/call.h"
#include "control/monitor.h"
#include "tcp/lane.h"
#include "tcp/mesh.h"
#include "tcp/program.h"
#include "transport/socket.h"

namespace muster::collective::tcp {

/// Scratch memory that is reused from call to call.
class Scratch {
 public:
  std::span<std::byte> take(std::uint64_t bytes);

 private:
  std::unique_ptr<std::byte[]> bytes_;
  std::uint64_t size_ = 0;
};

/// The headers of a collective.
struct Greeting {
  Call call;

  /// The header to and from one peer, if it differs from that of `call`.
  std::function<Call(int peer)> to = {};
  std::function<Call(int peer)> from = {};

  /// Called once, if this rank has waited for long.
  std::function<void()> when_slow = {};
};

class Exchange {
 public:
  Exchange(const Mesh& mesh, const Greeting& greeting, const Program& program, Memory in,
           Memory out, Scratch& scratch);

  Status run();

 private:
  // One connection, in both directions.
  struct Port {
    std::size_t lane;
    std::size_t stream;
    int fd;
    bool is_full = false;   // the last send would have blocked
    bool is_empty = false;  // the last receive would have blocked
  };
  struct Lane {
    const Dialogue& dialogue;
    Sender sender;
    Receiver receiver;
    bool is_checked;  // the header is the one that was expected
  };

  Status connect_peers();
  void open_lanes();
  Result<bool> step();
  Result<bool> send(Port& port);
  Result<bool> receive(Port& port);
  Status check_header(Lane& lane);

  bool merge_all();
  std::uint64_t ready_for(const Merge& merge) const;
  void run_merge(const Merge& merge, std::uint64_t begin, std::uint64_t end);

  Status wait();
  void look(int timeout_ms);
  void note_slowness();
  bool done() const;

  Error lost(int peer, const std::string& event);
  Error differs(const Lane& lane, const Call& mine, const CallHeader& theirs);

  const Mesh& mesh_;
  const Greeting& greeting_;
  const Program& program_;
  Scratch& scratch_;
  Memories memories_;
  Tracks tracks_;
  std::vector<Lane> lanes_;
  std::vector<Port> ports_;
  std::vector<pollfd> entries_;  // of look(): the failure, then the ports
  std::size_t merged_ = 0;       // merges before this one are done

  // The time since which no byte has moved; empty while bytes move.
  std::optional<Deadline> quiet_since_ = {};
  std::optional<Monitor::Watch> watch_ = {};
};

}  // namespace muster::collective::tcp
