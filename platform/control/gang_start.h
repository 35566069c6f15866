// From a placed gang to a running one. The images of its tasks are fetched to their nodes first,
// because the plan of a task depends on its image. Then the engine starts the workers, and when the
// last of them answers, the leader.
//
// On the EventLoop's thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "control/attempt_services.h"
#include "control/failure.h"

namespace muster::control {

/// Adds to `images` the facts that an engine found for the images of these tasks.
Result<void> keep_facts(Result<std::vector<launch::ImageFacts>> facts,
                        const std::vector<std::string>& tasks, ImagesByTask& images);
std::vector<std::string> tasks_of(const std::vector<engine::ImageRequest>& images);

class GangStart {
 public:
  /// How the start acts on its attempt.
  struct Hooks {
    std::function<bool()> is_ending;
    /// Whether the cluster has revoked the allocation, so that the outcome is already decided.
    std::function<bool()> has_lost_allocation;
    std::function<void(job::Failure)> fail;
    /// The attempt ends, and another follows after `delay`.
    std::function<void(job::Fact why, std::chrono::milliseconds delay)> abandon;
    /// `task` has failed the job; `lines`: the last that it printed.
    std::function<void(const job::Task& task, std::vector<std::string> lines)> blame;
    std::function<void()> kill_all;
    std::function<void()> finish_if_over;
    /// The gang may grow: keeps the seed with which later workers are planned.
    std::function<void(const KeptSeed&)> keep_seed;
    std::function<void()> leader_started;
  };

  /// `grows`: workers may join the gang later, on any node.
  GangStart(AttemptContext context, bool grows, Hooks hooks)
      : context_(std::move(context)), grows_(grows), hooks_(std::move(hooks)) {}

  /// To be called once the attempt is committed.
  void begin();
  /// The task answers, or has succeeded already. Starts the leader after the last worker.
  void worker_is_up(const job::Task& task);

  bool is_fetching() const { return fetch_.has_value(); }
  /// The engine is fetching images or starting tasks.
  bool is_busy() const { return is_fetching() || stage_under_way_; }
  bool waits_for_workers() const { return !plan_.then.empty(); }
  void stop_fetching();

  /// Facts about the images of the tasks, for workers that join.
  ImagesByTask& images() { return images_; }
  const TasksByAddress& tasks_by_address() const { return tasks_by_address_; }
  /// The ports that were chosen for the programs of the gang.
  const std::set<int>& served_ports() const { return served_; }

 private:
  struct Fetch {
    base::Time began;
    std::vector<std::string> tasks;   ///< whose images are fetched, in the engine's order
    std::optional<job::Fact> now;     ///< the engine's last report of progress
    base::EventLoop::Interest pause;  ///< until the next report is shown
    std::shared_ptr<void> interest;   ///< dropping it ends the fetch
  };

  void fetch_images();
  void show_progress();
  void images_fetched(Result<std::vector<launch::ImageFacts>> facts);
  void start_planned();
  void start_stage(std::vector<launch::TaskPlan> tasks);
  void stage_started(const Result<void>& started);
  bool try_again_later(const base::Error& error);
  void timed_out();

  AttemptContext context_;
  bool grows_;
  Hooks hooks_;
  std::optional<Fetch> fetch_;
  ImagesByTask images_;
  launch::GangPlan plan_;
  TasksByAddress tasks_by_address_;   ///< without the tasks that share an address
  std::set<std::string> unanswered_;  ///< workers whose sshd has not answered
  std::set<int> served_;
  bool stage_under_way_ = false;
  base::EventLoop::Interest timer_;
};

}  // namespace muster::control
