// The coordinator on rank 0. It receives the hand-overs of all ranks, detects which names are
// complete, and collects complete operations in records, which every rank executes in the same
// order.
//
// A name is complete when every rank has handed it over or has joined. A name that waits for a rank
// does not delay other names. A record is made when rank 0 is free to execute it: names that become
// complete in the meantime go together into the next record.
//
// Names are cached with the last request of each rank, so that handing a name over again takes four
// bytes. If there are more than kMostNames, the least recently used names are forgotten. Names that
// were used only once, such as names with a running number, are forgotten earlier (kMostOnce), a
// few at a time.
//
// Pure: time comes in as an argument. Thread-safety: none.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "session/protocol.h"
#include "session/stragglers.h"
#include "transport/socket.h"

namespace muster::collective::session {

inline constexpr std::size_t kMostNames = 16'384;
inline constexpr std::size_t kMostOnce = 2'048;

class Coordinator {
 public:
  /// `hosts` by rank, for messages: "rank 0 on host a". `first_id` is the id of the first name.
  Coordinator(std::vector<std::string> hosts, std::uint64_t fusion_bytes,
              std::size_t most_names = kMostNames, std::uint32_t first_id = 1);

  /// Receives a message that rank `from` handed over at `time`. Messages of different ranks may
  /// arrive in an order other than that of their times. False if the message is invalid.
  bool take(int from, ByteView message, Deadline time);

  /// Whether cut() has a record to return.
  bool has_record() const { return !announcements_.empty() || !complete_.empty(); }

  /// Removes and returns the next record.
  Record cut();

  /// The bytes of the last batch, on this rank.
  std::uint64_t cut_bytes() const { return cut_bytes_; }

  /// Whether a name waits for a rank.
  bool has_pending() const { return !pending_.empty(); }

  /// The names that have waited for `patience` and are not reported yet: "'w1' has waited 60 s for
  /// ranks 2, 3 (on hosts x, y)".
  std::vector<std::string> stalled(Deadline now, std::chrono::milliseconds patience);

  /// The next time at which stalled() has a report, if no message arrives before.
  std::optional<Deadline> next_stall(std::chrono::milliseconds patience) const;

  /// Ends the wait for names that have waited for `limit`: they go into the next records with an
  /// error.
  void give_up(Deadline now, std::chrono::milliseconds limit);

  /// The next time at which give_up() has something to do, if no message arrives before.
  std::optional<Deadline> next_give_up(std::chrono::milliseconds limit) const;

  void set_fusion_bytes(std::uint64_t bytes) { fusion_bytes_ = bytes; }

  /// From now on judge() finds slow ranks and links, a window after the other. Zero: never.
  void watch_for_stragglers(std::chrono::milliseconds window) {
    stragglers_ = Stragglers(static_cast<int>(hosts_.size()), window);
  }
  std::optional<Slowness> judge(Deadline now) { return stragglers_.judge(now); }

 private:
  struct Name {
    std::uint32_t id = 0;
    std::string text = {};
    std::uint32_t tally = 0;
    // By rank: its last request. Of the lengths of an all_to_all, only their sum is stored.
    std::vector<std::shared_ptr<const Request>> requests = {};
    std::vector<char> has = {};  // by rank: has handed it over
    int count = 0;
    int last = 0;        // the rank that handed it over last
    bool is_new = true;  // a rank has changed its request
    bool reported = false;
    std::optional<std::chrono::milliseconds> given_up = {};  // after that time, in its next record
    std::uint64_t used = 0;
    bool carried_out = false;
    bool only_once = true;  // used at most once so far
    std::size_t place = 0;  // in pending_
    Deadline since = {};    // its first hand-over
    Deadline latest = {};   // that of `last`
    Deadline before = {};   // the last one of the other ranks
  };

  Name& name_of(std::string_view text);
  void record_request(Name& name, int from, const Request& request);
  void hand_over(Name& name, int from, Deadline time);
  void join(int from);
  bool is_complete(const Name& name) const;
  void complete(Name& name);
  void forget_old_names();
  void forget_names_of_once();
  void forget(const std::vector<Name*>& names);
  std::shared_ptr<const Agreed> judge(const Name& name) const;
  std::optional<Error> fault_of(const Name& name, int first) const;
  Entry entry_of(Name& name);
  std::string who(int rank) const;
  std::string report(const Name& name, std::chrono::milliseconds patience) const;
  Error not_handed_over(const Name& name) const;

  std::vector<std::string> hosts_;
  std::uint64_t fusion_bytes_;
  std::size_t most_names_;
  std::unordered_map<std::string, std::unique_ptr<Name>> names_;
  std::unordered_map<std::uint32_t, Name*> by_id_;
  std::vector<Name*> pending_;  // handed over by some ranks
  std::deque<Name*> complete_;  // handed over by all ranks, in the order of completion
  std::deque<Record> announcements_;
  std::vector<char> joined_;  // by rank
  int joined_count_ = 0;
  bool ended_ = false;  // a rank has left
  Stragglers stragglers_;
  // Ids in the order of creation. Some belong to names that are no longer `only_once`.
  std::deque<std::uint32_t> once_;
  std::size_t once_count_ = 0;  // names that are `only_once`
  std::uint32_t next_id_;
  std::uint64_t uses_ = 0;
  std::uint64_t cut_bytes_ = 0;
};

}  // namespace muster::collective::session
