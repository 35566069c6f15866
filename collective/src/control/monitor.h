// The control thread of a world. It has connections to other ranks, for everything but data: signs
// of life, goodbye, failures, and the messages of higher layers. It sleeps until a message arrives.
// A small world is a complete graph: each rank is connected to every other. In a larger world a rank
// has connections to some ranks (graph.h), and opens one to another rank when a message must go
// there (switchboard.h).
//
// The first failure of a world is final. Each rank keeps the first failure that it receives, passes
// it on, and every later call returns it. A connection that ends without a goodbye means that the
// rank died, which its neighbours detect at once, whatever the ranks are doing. A goodbye is passed
// on too, by the ranks that stay. A rank that leaves waits until its neighbours have answered its
// goodbye, and a rank that has lost a neighbour in this way connects to another one.
//
// The monitor distinguishes silent ranks from late ones. While a call of this rank waits, it probes
// its neighbours every probe_interval. Their monitors answer independently of their other threads,
// with the number of calls that they have entered. A rank that does not answer within the silence
// limit is stopped or disconnected; a rank that answers but has not entered the call after the
// world's timeout is late. The error names the rank in both cases. Between ranks that are not
// neighbours:
//
//   silence   A probe has a reach. The neighbour probes its own neighbours with a reach that is one
//             lower, and stops some time after the last such probe.
//   lateness  At the timeout the rank connects to all ranks and asks each for its calls. Ranks begin
//             to do so one after the other, since one verdict ends the world.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "control/switchboard.h"
#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/socket.h"

namespace muster::collective {

/// The recipient of a message between monitors.
enum class Topic : std::uint16_t { kGroup = 1, kSession = 2, kCall = 3, kMail = 4 };

struct MonitorOptions {
  int rank = 0;
  std::string host = {};
  std::chrono::milliseconds timeout{};  // of a call, for ranks that are alive but late
  std::chrono::milliseconds probe_interval{200};
  std::chrono::milliseconds silence_on_host{700};
  std::chrono::milliseconds silence_between_hosts{5'000};
};

class Monitor {
 public:
  /// Takes over the connections and starts the thread. `links` has no entry for this rank. Without a
  /// switchboard they are connections to all other ranks; it must outlive the monitor.
  Monitor(MonitorOptions options, std::vector<Link> links, Switchboard* switchboard = nullptr);

  /// Sends a goodbye, unless the world has failed, and joins the thread. Does nothing in a process
  /// that was forked from the rank: the thread does not exist there.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// Whether this process was forked from the rank to which the monitor belongs. Such a process must
  /// not use the world, and leaves its objects as they are.
  bool is_foreign() const;

  /// One atomic load, cheap enough for a spinning loop.
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  /// The failure of this world. Requires failed().
  Error failure() const;

  /// Makes `error` the failure of this world, unless it has failed already, and sends it to all
  /// ranks. Returns the failure of the world.
  Error fail(Error error);

  /// A descriptor for poll(), readable from the failure on.
  int failure_descriptor() const;

  /// Called with the number of each collective call at its beginning.
  void entered(std::uint64_t sequence) { entered_.store(sequence, std::memory_order_relaxed); }

  /// Held by a call that has waited for a while. As long as a watch exists, the other ranks are
  /// probed. `what` is the call, for messages: "call 3 (barrier)".
  class Watch {
   public:
    Watch(Monitor& monitor, std::string what);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

    /// The call has made progress: its timeout begins again.
    void renew();

   private:
    Monitor& monitor_;
    std::uint64_t id_;
  };

  /// Calls `wake` once when the world fails, or at once if it has failed; for threads that do not
  /// poll failure_descriptor(). `wake` runs on the monitor's thread. After unsubscribe() with the
  /// returned number it is not running and will not be called.
  std::uint64_t on_failure(std::function<void()> wake);
  void unsubscribe(std::uint64_t id);

  /// Whether this rank is connected to every other rank from the start.
  bool is_complete() const;

  /// Sends a message to another rank, queued if necessary, in order. A message to a rank that has
  /// left is discarded.
  void send(int to, Topic topic, Bytes payload);

  /// Sends a message to all ranks to which this rank is connected now: in a complete graph, to all.
  void send_to_neighbours(Topic topic, const Bytes& payload);

  /// Sends a short message to all ranks, which pass it on. Messages of one sender to all keep their
  /// order; a message to one rank may come later than a later message to all, unless settle() was
  /// called in between.
  void send_to_all(Topic topic, const Bytes& payload);

  /// Returns once the monitors of the other ranks have received the messages that this rank has sent
  /// before, or after ten seconds.
  void settle();

  /// Sets the handler of a topic. It runs on the monitor's thread; messages of one sender arrive in
  /// order. Messages that arrived before are kept for the handler. An empty function removes the
  /// handler.
  void handle(Topic topic, std::function<void(int from, Bytes payload)> handler);

  /// The ranks that have left in order.
  std::vector<int> departed() const;

  /// Whether the goodbye of a rank has arrived. What the rank wrote to shared memory before is
  /// visible then.
  bool has_sent_goodbye(int rank) const;

  /// Of these, the ranks that had not entered more calls than this rank, and whose messages the
  /// handlers have processed. The others may have sent what this rank has not seen yet.
  std::vector<int> departed_in_step() const;

 private:
  class Impl;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> entered_{0};
  const int process_;
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::collective
