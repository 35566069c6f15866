// Messages between two ranks of a session, with tags. A receive matches the first message with its
// tag from its sender, or from any rank.
//
// Messages travel in letters, so that no rank but the two takes part and no call of the backend has
// to wait: between the ranks of one host through rings in shared memory (mail_rings.h), which the
// thread on duty reads, otherwise over the connections between the monitors. Short messages are sent
// at once and kept by the receiver until a receive matches them; a receiver that keeps kMostUnread
// bytes of a rank receives no more of them from it. A longer message is offered first, and its bytes
// follow in parts once a receive has matched it. So a rank that sends faster than another receives
// waits, as in MPI.
//
// Letters, little-endian:
//
//   u8 1, u64 tag, u64 id, bytes               short: a short message
//   u8 2, u64 tag, u64 id, u64 length          offer: a long message
//   u8 3, u64 id, u64 window                   accept: the first `window` bytes of an offer
//   u8 4, u64 id, bytes                        part of an accepted message, in order
//   u8 5, u64 id, u64 length                   refuse: the receive has another length
//   u8 6, u64 bytes                            read: so many bytes of short messages were received
//   u8 7                                       leave: this rank sends and receives no more
//
// A connection takes any letter, so that a receiver limits what is on its way by its window. A ring
// limits that itself: the window is the whole message, and letters that find no room wait here.
//
// Failures: if the world fails, every message fails. If a rank leaves, messages to and from that
// rank fail; a receive from any rank fails once all other ranks have left.
//
// Thread-safety: collect(), has_work() and leave() on the thread on duty; all other methods from any
// thread.
#pragma once

#include <atomic>
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
#include "session/channel.h"
#include "session/mail_rings.h"
#include "session/operation.h"
#include "transport/bytes.h"
#include "world/world.h"

namespace muster::collective::session {

class Mail {
 public:
  /// The longest message that is sent without an offer, over a connection and through a ring.
  static constexpr std::size_t kLongestShort = std::size_t{32} << 10;
  static constexpr std::size_t kLongestShortInRing = std::size_t{64} << 10;
  /// Short messages that a receiver keeps for one sender.
  static constexpr std::size_t kMostUnread = std::size_t{1} << 20;
  static constexpr std::size_t kPart = std::size_t{512} << 10;
  /// The parts of one message that are on their way at a time, over a connection.
  static constexpr std::size_t kWindow = 4 * kPart;

  /// Ends an operation. Called without a lock of this class.
  using Settle = std::function<void(Operation&, const Status&)>;

  /// Uses the rings of `base` if there are any and `channel` has the doorbells of all ranks. The
  /// arguments outlive it, and the world has a monitor.
  Mail(const SessionBase& base, Channel& channel, Settle settle);
  ~Mail();
  Mail(const Mail&) = delete;
  Mail& operator=(const Mail&) = delete;

  /// Sends the `bytes` bytes at `operation.in`.
  void send(Operation& operation, std::uint64_t bytes, int to, std::uint64_t tag);

  /// Receives `bytes` bytes into `operation.out`, from any rank if `from` is kAnyRank. `sender` may
  /// be null; it is set before the operation is done.
  void receive(Operation& operation, std::uint64_t bytes, int from, std::uint64_t tag, int* sender);

  /// Reads the rings, and sends what found no room in them. Returns whether any letter moved.
  bool collect();

  /// Whether collect() would move a letter.
  bool has_work();

  /// Fails every message of this rank, now and later.
  void end(const Error& why);

  /// A rank has left without a message.
  void departed(int rank);

  /// Notifies the other ranks that this rank has left. After end().
  void leave();

 private:
  using Id = std::pair<int, std::uint64_t>;  // a rank, and its number of a message

  struct Sending {
    Operation* operation;
    std::uint64_t bytes;
    std::uint64_t tag;
    std::uint64_t granted = 0;  // the receiver's window
    std::uint64_t sent = 0;
  };
  struct Receiving {
    Operation* operation;
    std::uint64_t bytes;
    int from;
    std::uint64_t tag;
    int* sender;
    std::uint64_t got = 0;
  };
  // The bytes of a letter that has just arrived: those of the monitor, or in a ring.
  struct Letter {
    int from;
    std::uint64_t bytes;
    Bytes* payload = nullptr;
    const MailRings* rings = nullptr;

    void copy(std::uint64_t offset, std::byte* out, std::uint64_t count) const;
  };
  struct Arrived {
    int from;
    std::uint64_t tag;
    std::uint64_t id;
    std::uint64_t length;
    bool is_short;
    Bytes letter = {};  // a short one that no receive has matched yet
  };
  struct Settled {
    Operation* operation;
    Status outcome;
  };
  struct Peer {
    std::deque<Bytes> letters;          // that found no room in the ring
    std::deque<std::uint64_t> streams;  // the ids of offers of which parts are to be sent
    std::uint64_t unread = 0;    // bytes of short messages that it has not reported as received
    std::uint64_t reported = 0;  // bytes of its short messages that this rank reported as received
    std::uint64_t received = 0;  // bytes of its short messages that were received
    bool has_left = false;
  };

  // These functions require the lock. They add to `settled_`.
  void take(const Letter& letter);
  void arrive(Arrived arrived, const Letter& letter);
  void match(Receiving& receive, const Arrived& arrived, const Letter* letter);
  void accept(std::uint64_t id, int from, std::uint64_t window);
  void add_part(std::uint64_t id, const Letter& letter);
  void refuse(int from, std::uint64_t id, std::uint64_t length);
  void has_left(int rank);
  void report_read(int from, std::uint64_t bytes);
  void settle(Operation* operation, Status outcome) {
    settled_.push_back({operation, std::move(outcome)});
  }
  bool all_have_left() const;
  Error lost(int rank) const;
  Peer& peer(int rank) { return peers_[static_cast<std::size_t>(rank)]; }

  // Letters on their way: post() in the order of the calls, deliver() at once or not at all.
  void post(int to, ByteView head, ByteView body = {});
  bool deliver(int to, ByteView head, ByteView body);
  bool deliver_waiting(int to);
  bool read_ring(int from);
  std::uint64_t next_bytes(const Peer& receiver) const;
  void count_waiting();

  // Ends the operations in `settled_`, without the lock.
  void finish(std::unique_lock<std::mutex> lock);

  World& world_;
  Channel& channel_;
  Settle settle_;
  std::optional<MailRings> rings_;
  std::uint64_t short_bytes_ = kLongestShort;
  std::uint64_t part_bytes_ = kPart;
  std::uint32_t seen_letters_ = 0;      // of the bell, by the thread on duty
  std::atomic<bool> some_wait_{false};  // a peer has letters or parts that found no room

  std::mutex mutex_;
  std::vector<Peer> peers_;
  std::uint64_t last_id_ = 0;
  std::map<Id, Sending> offered_;     // by receiver and id
  std::map<Id, Receiving> incoming_;  // accepted, by sender and id
  std::list<Receiving> waiting_;      // no message matches yet
  std::list<Arrived> arrived_;        // no receive matches yet
  std::vector<Settled> settled_;
  std::optional<Error> ended_;
};

}  // namespace muster::collective::session
