// A gang whose workers come and go while it runs, on places that the scheduler offers and evicts.
//
// Each worker sits in a seat (gang_tasks.h). A worker that is to leave is marked so, and that is
// committed; then the members get the new list, and after that the worker is stopped. Its seat is
// released when it has ended, and the next worker in that seat has another name.
//
// Below its minimum a job does not continue: its whole attempt is evicted.
//
// On the EventLoop's thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/attempt_services.h"
#include "control/joining.h"
#include "schedule/plan.h"

namespace muster::control {

/// Counts the workers that did not join or were soon lost, and makes the gang wait longer after
/// each of them before another worker joins.
class Setbacks {
 public:
  /// `wait_is_over` is called after each wait.
  Setbacks(AttemptContext context, std::function<void()> wait_is_over)
      : context_(std::move(context)), wait_is_over_(std::move(wait_is_over)) {}

  void add() { ++in_a_row_; }
  /// A worker was lost while the job continues. The loss of a worker that ran for long ends a row
  /// of setbacks.
  void add_loss(const job::Task& lost);
  void wait();
  bool is_waiting() const { return static_cast<bool>(timer_); }

  /// A task was lost.
  void note_loss(const job::Task& lost);
  /// Whether workers are lost as fast as they are started.
  bool are_too_many() const;

 private:
  AttemptContext context_;
  std::function<void()> wait_is_over_;
  int in_a_row_ = 0;
  std::set<std::string> lost_soon_;  ///< workers, by name
  base::EventLoop::Interest timer_;
};

class Resizing {
 public:
  struct Hooks {
    std::function<bool()> is_ending;
    /// Evicts the whole attempt.
    std::function<void(const job::Eviction&)> evict_all;
    /// Whether the next attempt keeps no place of the gang.
    std::function<bool()> keeps_no_places;
    std::function<void()> finish_if_over;
    /// Gives the scheduler the gang in its present shape.
    std::function<void()> reshape;
    std::function<job::Fact()> running_reason;
    std::function<void()> wake;
  };

  /// `can_grow`: workers may join; else `cannot_grow` is the reason.
  Resizing(AttemptContext context, ImagesByTask& images, bool can_grow, std::string cannot_grow,
           Hooks hooks);

  /// Whether the number of workers may change now.
  bool may_resize() const;
  bool can_grow() const { return can_grow_; }
  const std::vector<std::string>& unfit_nodes() const { return unfit_nodes_; }
  /// Places, by seat, that the scheduler has offered and no worker was sent to.
  const std::map<int, schedule::TaskPlace>& offers() const { return offers_; }

  /// The scheduler offers more places.
  void offer(const schedule::PlannedStart& start);
  void release_offers_on(const std::string& node);
  /// Sends a worker to each place that was offered.
  void grow();
  /// Has the workers in these seats leave if the job can continue without them. False: nothing
  /// changes.
  bool shrink(const std::vector<int>& seats, const job::Eviction& why);

  void keep_seed(const KeptSeed& kept);
  /// A worker answers. False: it was not joining.
  bool worker_answers(const job::Task& task);
  /// A worker that was not started yet was reported as ended. False: it is another task.
  bool reject_unstarted(job::Task& task, const std::string& why);
  /// A task has ended; whether it was joining.
  bool end_joining(const job::Task& task) { return joining_.end(task.name); }
  /// A task that had to leave has ended.
  void has_left(const job::Task& task);
  /// A task was lost. True: the job continues without it.
  bool absorb_loss(job::Task& task, bool was_joining);
  /// Whether workers are lost as fast as they are started.
  bool falls_over() const { return setbacks_.are_too_many(); }
  void show_size();

  /// The attempt ends: no further worker joins.
  void end_all_joining();
  /// Releases the places that the gang does not use, unless some of its workers still leave:
  /// the scheduler would forget which gangs wait for their places.
  void release_unused();

  // After a restart of the server.
  void find_seed();
  /// The earlier server may have died after the commit that has workers leave.
  void resume();

 private:
  const job::Task* leave_seat(int seat);
  void drop_prepared(const job::Task& task);
  void announce_leaving(const std::vector<std::string>& leaving);
  void stop_leaving(const std::vector<std::string>& leaving);
  void give_back(const std::vector<int>& seats);
  bool can_do_without(const std::vector<int>& seats) const;
  bool goes_on_without(const job::Task& lost) const;
  void reject_worker(job::Task& task, const std::string& why);
  void note_setback(const std::string& what);
  void stop_growing(const std::string& why);
  Joining::Hooks joining_hooks();

  AttemptContext context_;
  Hooks hooks_;
  MemberUpdates updates_;
  Joining joining_;
  bool can_grow_;
  std::string cannot_grow_;
  std::vector<std::string> unfit_nodes_;
  bool asks_for_less_ = false;  ///< than the scheduler has
  std::map<int, schedule::TaskPlace> offers_;
  Setbacks setbacks_;
  std::vector<base::EventLoop::Interest> notices_;  ///< before leaving workers are stopped
};

}  // namespace muster::control
