// The control thread of a world. It holds a connection to every other rank, on which they tell each
// other what is not data: that one is alive, leaves, or has failed and why; and what the layers
// above agree on. It sleeps until something comes.
//
// The first failure of a world is its last word: it is told to all, everyone keeps the first that
// it hears, and every call from then on returns it. A connection that ends without a goodbye is a
// death, noticed at once whatever the ranks are doing.
//
// Silence is told from lateness. While a call of this rank waits, the monitor asks the others every
// kProbeInterval; their monitors answer whatever their own threads do, and say how many calls they
// have entered. Who does not answer for kSilence is stopped or cut off, and named. Who answers but
// has not entered the call after the world's timeout is late, and named.
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

#include "muster/collective/result.h"
#include "transport/bytes.h"
#include "transport/descriptor.h"

namespace muster::collective {

/// What a message between monitors is about.
enum class Topic : std::uint16_t { kGroup = 1, kSession = 2, kCall = 3 };

/// One rank as the monitor sees it.
struct Link {
  int rank = 0;
  std::string host = {};
  bool is_local = false;   // on this host: kSilenceOnHost applies
  Descriptor socket = {};  // connected, stream, authenticated
};

struct MonitorOptions {
  int rank = 0;
  std::string host = {};
  std::chrono::milliseconds timeout{};  // of a call, for a rank that is alive but late
  std::chrono::milliseconds probe_interval{200};
  std::chrono::milliseconds silence_on_host{700};
  std::chrono::milliseconds silence_between_hosts{5'000};
};

class Monitor {
 public:
  /// Takes over the connections and starts the thread. `links` has no entry for this rank.
  Monitor(MonitorOptions options, std::vector<Link> links);

  /// Says goodbye, unless the world has failed, and joins the thread.
  ~Monitor();
  Monitor(const Monitor&) = delete;
  Monitor& operator=(const Monitor&) = delete;

  /// One load: cheap enough for a loop that spins.
  bool failed() const { return failed_.load(std::memory_order_acquire); }

  /// The failure of this world; only where failed().
  Error failure() const;

  /// Makes `error` the failure of this world, unless there is one already, tells all ranks, and
  /// returns the one that stands.
  Error fail(Error error);

  /// Readable from the failure on, and never before: for poll().
  int failure_descriptor() const;

  /// Called at the beginning of every collective call with its number.
  void entered(std::uint64_t sequence) { entered_.store(sequence, std::memory_order_relaxed); }

  /// A call that has waited for a while holds one: as long as there is any, the others are asked
  /// whether they are there. `what` is the call, for messages: "call 3 (barrier)".
  class Watch {
   public:
    Watch(Monitor& monitor, std::string what);
    ~Watch();
    Watch(const Watch&) = delete;
    Watch& operator=(const Watch&) = delete;

   private:
    Monitor& monitor_;
    std::uint64_t id_;
  };

  /// What to wake where a thread sleeps on something that failure_descriptor() does not reach.
  /// Called on the monitor's thread, once, when the world fails; at once if it has. The returned
  /// number takes it back: after unsubscribe() it is not running and will not be called.
  std::uint64_t on_failure(std::function<void()> wake);
  void unsubscribe(std::uint64_t id);

  /// Sends to another rank, in order for that rank; what cannot go out yet is kept. A rank that has
  /// left gets nothing.
  void send(int to, Topic topic, Bytes payload);

  /// Who hears the messages of a topic, on the monitor's thread, in the order of each sender. What
  /// came before there was a handler is kept for it. An empty handler: none again.
  void handle(Topic topic, std::function<void(int from, Bytes payload)> handler);

  /// Ranks that have said goodbye.
  std::vector<int> departed() const;

 private:
  class Impl;
  std::atomic<bool> failed_{false};
  std::atomic<std::uint64_t> entered_{0};
  std::unique_ptr<Impl> impl_;
};

}  // namespace muster::collective
