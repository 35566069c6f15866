// Workers on their way into a running gang: the image of a new worker is fetched, the members learn
// its address, and it is started. Once it answers, Resizing makes it a member.
//
// A worker that does not join does not fail the job: its seat is released, and the scheduler may
// offer the gang another place.
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
#include <vector>

#include "control/attempt_services.h"
#include "control/gang_start.h"

namespace muster::control {

/// Changes to the files of running tasks, made one after the other: no list of members overtakes a
/// later list.
class MemberUpdates {
 public:
  /// `may_resize`: whether the members still get updates.
  MemberUpdates(AttemptContext context, std::function<bool()> may_resize)
      : context_(std::move(context)), may_resize_(std::move(may_resize)) {}

  /// Calls `done` when it is complete.
  using Step = std::function<void(std::function<void()> done)>;
  void add(Step step);
  /// Adds a step that gives all members the present list of members. `then` is given whether any
  /// task needed it.
  void add_member_list(std::function<void(bool any_updated)> then);
  /// Within a step.
  void change_files(std::vector<launch::FileChange> changes,
                    std::function<void(const Result<void>&)> then);

 private:
  void next();

  AttemptContext context_;
  std::function<bool()> may_resize_;
  std::deque<Step> steps_;
  bool step_under_way_ = false;
};

class Joining {
 public:
  struct Hooks {
    std::function<bool()> may_resize;
    std::function<bool()> is_ending;
    /// The worker was not started, and will not be.
    std::function<void(job::Task&, const std::string& why)> worker_rejected;
    /// The worker was started, and is gone. `why`: empty: it had to leave.
    std::function<void(job::Task&, const std::string& why)> failed;
    /// The worker has not answered in time, and is being stopped.
    std::function<void(job::Task&, const std::string& why)> timed_out;
    /// No worker can join on this node.
    std::function<void(const std::string& node)> unfit_node;
  };

  Joining(AttemptContext context, MemberUpdates& updates, ImagesByTask& images, Hooks hooks)
      : context_(std::move(context)),
        updates_(updates),
        images_(images),
        hooks_(std::move(hooks)) {}

  void set_seed(const KeptSeed& seed) { seed_ = seed; }
  bool has_seed() const { return seed_.has_value(); }

  /// The worker has a seat; begin() follows once that is committed.
  void admit(const std::string& worker) { joiners_[worker].number = ++admitted_; }
  void begin(const std::string& worker);
  bool is_joining(const std::string& worker) const { return joiners_.contains(worker); }
  bool was_started(const std::string& worker) const;
  /// The worker is no longer joining: it answers, has ended or is sent away. False: it was not
  /// joining.
  bool end(const std::string& worker) { return joiners_.erase(worker) > 0; }
  /// Ends them all. The workers that were not started.
  std::vector<job::Task*> end_all();
  /// Gives a worker that has just joined the addresses of workers that began to join after it.
  void add_catch_up(const std::string& worker);

 private:
  struct Joiner {
    uint64_t number = 0;                     ///< counts the admissions of all workers
    bool is_started = false;                 ///< the engine starts it, or has started it
    std::shared_ptr<void> fetch;             ///< of its image; dropping it ends the fetch
    base::EventLoop::Interest answer_timer;  ///< until it has to answer
  };

  void fetch_image(const job::Task& worker);
  void image_fetched(const std::string& worker, const std::vector<std::string>& tasks,
                     Result<std::vector<launch::ImageFacts>> facts);
  void add_start(const std::string& worker);
  void start(const std::string& worker, const std::function<void()>& done);
  void launch(const std::string& worker, std::vector<launch::TaskPlan> plans,
              std::function<void()> done);
  void started(const std::string& worker, const Result<void>& result);
  void give_up(const std::string& worker);

  AttemptContext context_;
  MemberUpdates& updates_;
  ImagesByTask& images_;
  Hooks hooks_;
  std::optional<KeptSeed> seed_;
  std::map<std::string, Joiner> joiners_;  ///< by name
  uint64_t admitted_ = 0;
};

}  // namespace muster::control
