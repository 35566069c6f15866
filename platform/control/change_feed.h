// The order in which jobs changed, for watchers. Every change has a number, and a watcher that
// gives the number of the last change it saw gets the changes since.
//
// The feed keeps only the last change of each job, so its cost does not depend on the number or the
// speed of the watchers. Removed jobs are remembered for a while. A watcher that comes later, or
// with a number of another server, has to begin with a whole listing. (etcd's compacted revisions
// work in the same way.)
//
// On the EventLoop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/random.h"
#include "control/journal.h"

namespace muster::control {

/// A position in the feed of one server process: "EPOCH.NUMBER".
struct FeedPosition {
  uint64_t epoch = 0;
  uint64_t number = 0;

  bool operator==(const FeedPosition&) const = default;
};
std::string to_string(const FeedPosition& position);
std::optional<FeedPosition> feed_position_of(std::string_view text);

class ChangeFeed {
 public:
  /// The last change of a job.
  struct Change {
    uint64_t number = 0;
    std::string job;  ///< its id
    bool removed = false;
    // Only of removed jobs.
    std::string name;
    std::string project;
    base::Time submitted{};
  };

  /// `epoch` distinguishes this server process from all others.
  explicit ChangeFeed(uint64_t epoch) : epoch_(epoch) {}

  /// The change gets the number `hint`, or the next free number. With the time as hint, the numbers
  /// do not reveal to a watcher how much else changes.
  void changed(const std::string& id, uint64_t hint = 0);
  /// `submitted` distinguishes the job's project from a later project of the same name.
  void removed(const std::string& id, const std::string& name, const std::string& project,
               base::Time submitted, uint64_t hint = 0);

  FeedPosition now() const { return {epoch_, next_ - 1}; }
  /// At most `most` changes after `since`, in order. Nothing: they were forgotten, and the
  /// watcher has to begin with a whole listing.
  std::optional<std::vector<Change>> after(const FeedPosition& since, size_t most) const;

  /// Calls after each turn of the loop in which something changed, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(std::function<void()> changed);
  /// Calls the watchers; to be called once the changes are committed.
  void call_watchers();

 private:
  uint64_t number_from(uint64_t hint);

  static constexpr size_t kMostRemoved = 10'000;

  uint64_t epoch_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::string> by_number_;  ///< number of its last change -> id
  std::unordered_map<std::string, uint64_t> number_of_;
  std::deque<Change> removed_;     ///< oldest first
  uint64_t forgotten_before_ = 0;  ///< removals up to this number are forgotten
  std::vector<std::weak_ptr<std::function<void()>>> watchers_;
};

/// Announces changes of jobs after their commit: to the feed, and to the watchers of single jobs.
/// On the EventLoop's thread; the clock and the journal must outlive it.
class JobWatchers {
 public:
  JobWatchers(const base::Clock& clock, base::RandomSource& random, Journal& journal);

  /// Announces a change after the commit of this turn of the loop.
  void announce(const std::string& id);
  /// Announces the removal of a job at once; feed().call_watchers() is to follow.
  void removed(const std::string& id, const std::string& name, const std::string& project,
               base::Time submitted);

  /// Calls after each change of the job, its removal included, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(const std::string& id, std::function<void()> changed);
  bool is_watched(const std::string& id) const;
  ChangeFeed& feed() { return feed_; }

 private:
  void announce_now();
  void call(const std::string& id) const;
  uint64_t hint() const;

  const base::Clock& clock_;
  Journal& journal_;
  ChangeFeed feed_;
  std::multimap<std::string, std::weak_ptr<std::function<void()>>> watchers_;  ///< by id
  std::set<std::string> to_announce_;                                          ///< ids
};

}  // namespace muster::control
