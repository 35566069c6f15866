// Which jobs changed, in order, for those who watch: a change is a number, and whoever knows the
// last one he saw is told what changed since.
//
// Of a job that changed often only its last state is told: the feed keeps one number a job, so it
// costs the same however many watch and however slow they are. Removed jobs are remembered for a
// while; whoever comes later than that, or with a number of another server, is told to start anew.
// (The idea is that of etcd's compacted revisions.)
//
// On the EventLoop's thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

namespace muster::control {

/// A place in the feed of one server's life: "EPOCH.NUMBER".
struct FeedPosition {
  uint64_t epoch = 0;
  uint64_t number = 0;

  bool operator==(const FeedPosition&) const = default;
};
std::string to_string(const FeedPosition& position);
std::optional<FeedPosition> feed_position_of(std::string_view text);

class ChangeFeed {
 public:
  /// What happened to a job since.
  struct Change {
    uint64_t number = 0;
    std::string job;   ///< its id
    std::string name;  ///< and its name and project, for the removed ones
    std::string project;
    bool removed = false;
  };

  /// `epoch` tells this server's life from all others.
  explicit ChangeFeed(uint64_t epoch) : epoch_(epoch) {}

  /// `hint`: the change's number is this or the next that is free. Where it is the time, the
  /// numbers that one watcher sees do not tell how much else changes.
  void changed(const std::string& id, uint64_t hint = 0);
  void removed(const std::string& id, const std::string& name, const std::string& project,
               uint64_t hint = 0);

  FeedPosition now() const { return {epoch_, next_ - 1}; }
  /// What changed after `since`, in order, at most `most`; nothing where it is not known any more
  /// what that was, and the watcher has to begin with a whole listing.
  std::optional<std::vector<Change>> after(const FeedPosition& since, size_t most) const;

  /// Calls after each turn of the loop in which something changed, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(std::function<void()> changed);
  /// Calls those who watch: for the controller, once what changed is committed.
  void tell();

 private:
  uint64_t number_from(uint64_t hint);

  static constexpr size_t kMostRemoved = 10'000;

  uint64_t epoch_;
  uint64_t next_ = 1;
  std::map<uint64_t, std::string> by_number_;  ///< number of its last change -> id
  std::unordered_map<std::string, uint64_t> number_of_;
  std::deque<Change> removed_;     ///< oldest first
  uint64_t forgotten_before_ = 0;  ///< removals up to this number are not known any more
  std::vector<std::weak_ptr<std::function<void()>>> watchers_;
};

}  // namespace muster::control
