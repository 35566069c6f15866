// Messages between two ranks of a session, with tags. A receive matches the first message with its
// tag from its sender, or from any rank.
//
// Messages travel over the connections between the monitors, so that no rank but the two takes part
// and no call of the backend has to wait. Short messages are sent at once and kept by the receiver
// until a receive matches them; a receiver that keeps kMostUnread bytes of a rank receives no more
// of them from it. A longer message is offered first, and its bytes follow in parts once a receive
// has matched it. So a rank that sends faster than another receives waits, as in MPI.
//
// On the wire, little-endian:
//
//   u8 1, u64 tag, u64 id, bytes               short: a short message
//   u8 2, u64 tag, u64 id, u64 length          offer: a long message
//   u8 3, u64 id, u64 window                   accept: the first `window` bytes of an offer
//   u8 4, u64 id, bytes                        part of an accepted message, in order
//   u8 5, u64 id, u64 length                   refuse: the receive has another length
//   u8 6, u64 bytes                            read: so many bytes of short messages were received
//   u8 7                                       leave: this rank sends and receives no more
//
// Failures: if the world fails, every message fails. If a rank leaves, messages to and from that
// rank fail; a receive from any rank fails once all other ranks have left.
//
// Thread-safety: all methods, from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/collective/result.h"
#include "session/operation.h"
#include "transport/bytes.h"
#include "world/world.h"

namespace muster::collective::session {

class Mail {
 public:
  /// The longest message that is sent without an offer.
  static constexpr std::size_t kLongestShort = std::size_t{32} << 10;
  /// Short messages that a receiver keeps for one sender.
  static constexpr std::size_t kMostUnread = std::size_t{1} << 20;
  static constexpr std::size_t kPart = std::size_t{512} << 10;
  /// The parts of one message that are on their way at a time.
  static constexpr std::size_t kWindow = 4 * kPart;

  /// Ends an operation. Called without a lock of this class.
  using Settle = std::function<void(Operation&, const Status&)>;

  /// `world` outlives it and has a monitor.
  Mail(World& world, Settle settle);
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Sends the `bytes` bytes at `operation.in`.
  void send(Operation& operation, std::uint64_t bytes, int to, std::uint64_t tag);

  /// Receives `bytes` bytes into `operation.out`, from any rank if `from` is kAnyRank. `sender` may
  /// be null; it is set before the operation is done.
  void receive(Operation& operation, std::uint64_t bytes, int from, std::uint64_t tag, int* sender);

  /// Fails every message of this rank, now and later.
  void end(const Error& why);

  /// A rank has left without a message.
  void departed(int rank);

  /// Tells the other ranks that this rank has left. After end().
  void leave();

 private:
  using Id = std::pair<int, std::uint64_t>;  // a rank, and its number of a message

  struct Sending {
    Operation* operation;
    std::uint64_t bytes;
    std::uint64_t sent = 0;
    std::uint64_t tag;
  };
  struct Receiving {
    Operation* operation;
    std::uint64_t bytes;
    int from;
    std::uint64_t tag;
    int* sender;
    std::uint64_t got = 0;
  };
  struct Arrived {
    int from;
    std::uint64_t tag;
    std::uint64_t id;
    std::uint64_t length;
    std::optional<Bytes> content;  // of a short message, after its head
  };
  struct Settled {
    Operation* operation;
    Status outcome;
  };
  struct Peer {
    std::uint64_t unread = 0;    // bytes of short messages that it has not reported as received
    std::uint64_t reported = 0;  // bytes of its short messages that this rank reported as received
    std::uint64_t received = 0;  // bytes of its short messages that were received
    bool has_left = false;
  };
  struct Letter {
    int to;
    Bytes bytes;
  };

  // These functions require the lock. They add to `settled_` and `letters_`.
  void take(int from, ByteView message, Bytes& payload);
  void arrive(Arrived arrived);
  void match(Receiving& receive, Arrived& arrived);
  void accept(std::uint64_t id, int from, std::uint64_t window);
  void add_part(int from, std::uint64_t id, ByteView bytes);
  void refuse(int from, std::uint64_t id, std::uint64_t length);
  void has_left(int rank);
  void report_read(int from, std::uint64_t bytes);
  void settle(Operation* operation, Status outcome) {
    settled_.push_back({operation, std::move(outcome)});
  }
  bool all_have_left() const;
  Error lost(int rank) const;
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  // Sends what the functions above have left, without the lock.
  void flush(std::unique_lock<std::mutex> lock);

  World& world_;
  Settle settle_;
  std::mutex mutex_;
  std::mutex order_;  // held while letters are passed to the monitor, so that they stay in order
  std::vector<Peer> peers_;
  std::uint64_t last_id_ = 0;
  std::map<Id, Sending> offered_;     // by receiver and id
  std::map<Id, Receiving> incoming_;  // accepted, by sender and id
  std::list<Receiving> waiting_;      // no message matches yet
  std::list<Arrived> arrived_;        // no receive matches yet
  std::vector<Settled> settled_;
  std::deque<Letter> letters_;
  std::optional<Error> ended_;
};

}  // namespace muster::collective::session
