// The coordinator, on rank 0, hears what every rank hands over, notices when a name is complete,
// and cuts what is complete into records that every rank carries out in one order.
//
// A name is complete once every rank has handed it over or has joined. What waits for a rank holds
// up nothing else. Records are cut only when rank 0 is free to carry one out: what becomes complete
// meanwhile goes together into the next.
//
// Names are kept, with what each rank last asked for, so that to hand a name over again takes four
// bytes. Where there are too many (kMostNames), those that were used longest ago are forgotten; of
// names that were carried out only once, as those that somebody counts up are, sooner (kMostOnce)
// and a few at a time.
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
#include "transport/deadline.h"

namespace muster::collective::session {

inline constexpr std::size_t kMostNames = 16'384;
inline constexpr std::size_t kMostOnce = 2'048;

class Coordinator {
 public:
  /// `names_of` by rank: how messages name it, "rank 0 on host a"; `hosts` its host alone.
  Coordinator(std::vector<std::string> hosts, std::uint64_t fusion_bytes,
              std::size_t most_names = kMostNames);

  /// Takes in what `from` says. False where that is no message.
  bool take(int from, ByteView message, Deadline now);

  /// Whether cut() would give a record.
  bool has_record() const { return !announcements_.empty() || !complete_.empty(); }

  /// The next record.
  Record cut();

  /// Bytes of the batch that was cut last, on this rank.
  std::uint64_t cut_bytes() const { return cut_bytes_; }

  /// Whether a name waits for a rank.
  bool has_pending() const { return !pending_.empty(); }

  /// What has waited for `patience` and has not been reported: "'w1' has waited 60 s for ranks 2, 3
  /// (on hosts x, y)".
  std::vector<std::string> stalled(Deadline now, std::chrono::milliseconds patience);

  /// When stalled() will next have something to say, should nothing change.
  std::optional<Deadline> next_stall(std::chrono::milliseconds patience) const;

  /// Waits no longer for the ranks that what has waited for `limit` still lacks: it goes into the
  /// next records as it is, and fails there.
  void give_up(Deadline now, std::chrono::milliseconds limit);

  /// When give_up() will next have something to do, should nothing change.
  std::optional<Deadline> next_give_up(std::chrono::milliseconds limit) const;

  void set_fusion_bytes(std::uint64_t bytes) { fusion_bytes_ = bytes; }

 private:
  struct Name {
    std::uint32_t id = 0;
    std::string text = {};
    std::uint32_t tally = 0;
    std::vector<std::shared_ptr<const Request>> wanted = {};  // by rank: what it last asked for
    std::vector<char> has = {};                               // by rank: has handed it over
    int count = 0;
    int last = 0;
    bool is_new = true;  // somebody asks for something else than last time
    bool reported = false;
    std::optional<std::chrono::milliseconds> given_up = {};  // after that time, in its next record
    std::uint64_t used = 0;
    bool carried_out = false;
    bool only_once = true;  // not twice yet
    std::size_t place = 0;  // in pending_
    Deadline since = {};
  };

  Name& name_of(std::string_view text);
  void want(Name& name, int from, const Request& request);
  void hand_over(Name& name, int from, Deadline now);
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
  std::vector<Name*> pending_;  // handed over by some
  std::deque<Name*> complete_;  // handed over by all, in the order in which they became so
  std::deque<Record> announcements_;
  std::vector<char> joined_;  // by rank
  int joined_count_ = 0;
  bool ended_ = false;              // a rank has left
  std::deque<std::uint32_t> once_;  // ids in their order; of some that are not `only_once`, too
  std::size_t once_count_ = 0;      // names that are
  std::uint32_t next_id_ = 1;
  std::uint64_t uses_ = 0;
  std::uint64_t cut_bytes_ = 0;
};

}  // namespace muster::collective::session
