// Slurm's queue as the engine sees it: one listing for all gangs, polled at short intervals while
// something changes and at long ones at rest, and not at all while no answer is awaited. Also the
// cancellations, sent together, and the list of nodes.
//
// A listing shows why a gang waits, and what happened to its job outside of the engine. Starts and
// ends of tasks are reported earlier, by their muster-nodes.
//
// On the loop's thread, which neither class must outlive.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/lent/reports.h"
#include "engine/slurm/options.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

using Steady = std::chrono::steady_clock;

class SlurmQueue {
 public:
  struct Handlers {
    std::function<bool()> has_gangs;
    /// A listing, and the number of its poll.
    std::function<void(uint64_t poll, const std::vector<ListedJob>& jobs)> on_jobs;
    std::function<void()> on_away;  ///< called for each failed request
    std::function<void()> on_back;
    std::function<void(const std::set<uint64_t>& jobs)> on_cancelled;
  };

  SlurmQueue(base::EventLoop& loop, const SlurmEngineOptions& options, SlurmClient& client,
             lent::Reports& reports)
      : loop_(loop), options_(options), client_(client), reports_(reports) {}

  /// Starts to poll.
  void begin(Handlers handlers);

  /// Something has changed: more changes are likely, so polls are more frequent for a while.
  void changed();
  /// Polls several times in quick succession, because Slurm is about to list a recent event.
  void poll_soon();
  /// Polls once more soon after the current poll.
  void poll_again() { polls_again_ = true; }
  /// Plans the next poll, if a poll can bring news.
  void schedule();
  /// The number of polls so far: the number of the latest.
  uint64_t polls() const { return polls_; }

  /// Cancels a job, together with others of this turn of the loop.
  void cancel(uint64_t job);
  /// Cancels a job with the next cancellations that are sent.
  void cancel_later(uint64_t job) { to_cancel_.insert(job); }
  void do_not_cancel(uint64_t job) { to_cancel_.erase(job); }
  bool is_to_be_cancelled(uint64_t job) const { return to_cancel_.count(job) > 0; }

  /// The controller did not answer a request.
  void controller_away(const base::Error& error);
  /// Since when the controller does not answer; nullopt: it does.
  const std::optional<base::Time>& away_since() const { return away_since_; }
  const std::string& away_why() const { return away_why_; }
  /// Whether the controller answered the latest request for the jobs. That answer may be old:
  /// without gangs, the jobs are not requested.
  bool is_answering() const { return has_listed_ && !away_since_; }
  /// How many times the controller has stopped answering.
  uint64_t outages() const { return outages_; }

 private:
  void poll();
  int hurries_left();
  void controller_back();
  void send_cancels();

  base::EventLoop& loop_;
  const SlurmEngineOptions& options_;
  SlurmClient& client_;
  lent::Reports& reports_;
  Handlers handlers_;
  bool has_begun_ = false;
  uint64_t polls_ = 0;
  bool is_polling_ = false;
  bool polls_again_ = false;
  bool has_listed_ = false;  ///< a listing has been handled
  int hurry_ = 0;            ///< polls that follow each other at once
  bool is_hurrying_ = false;
  Steady::time_point hurries_from_{};
  Steady::time_point poll_due_{};
  Steady::time_point last_change_{};
  std::optional<base::Time> away_since_;
  std::string away_why_;
  uint64_t outages_ = 0;
  std::set<uint64_t> to_cancel_;
  bool is_cancelling_ = false;
  base::EventLoop::Interest poll_timer_;
};

/// The nodes of the cluster, as Slurm lists them.
class ClusterNodes {
 public:
  ClusterNodes(base::EventLoop& loop, const SlurmEngineOptions& options, SlurmClient& client,
               lent::Reports& reports, SlurmQueue& queue)
      : loop_(loop), options_(options), client_(client), reports_(reports), queue_(queue) {}

  /// Lists the nodes, now and at intervals.
  void poll();
  const std::vector<Node>& list() const { return list_; }
  /// Whether Slurm has answered, with the nodes or with a refusal: with PrivateData=nodes in its
  /// configuration, it lists them only to operators, or lists none. A failed
  /// request counts as refused if the controller answered from its sending to its failure. Its latest
  /// answer may be old: SlurmQueue::is_answering().
  bool has_answered() const { return has_answered_; }
  /// Calls `changed` after each change, as long as the result lives.
  std::shared_ptr<void> watch(std::function<void()> changed);

 private:
  void update(const std::vector<ListedNode>& listed);
  /// `was_answering`: whether the controller was answering when the failed request was sent.
  void failed(const base::Error& error, bool was_answering);

  base::EventLoop& loop_;
  const SlurmEngineOptions& options_;
  SlurmClient& client_;
  lent::Reports& reports_;
  SlurmQueue& queue_;
  std::vector<Node> list_;
  bool has_answered_ = false;
  std::string refusal_;  ///< why the nodes cannot be listed, although the controller answers
  std::vector<std::weak_ptr<std::function<void()>>> watchers_;
  base::EventLoop::Interest timer_;
};

}  // namespace muster::engine::slurm
