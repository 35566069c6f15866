// What the controller knows of a gang only while it holds room. Private to the controller's own
// files.
#pragma once

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "control/census.h"
#include "control/controller.h"
#include "control/kept_seed.h"
#include "launch/task_plan.h"

namespace muster::control {

/// Never stored: a restarted server does without it.
struct Controller::Run {
  /// While its images are brought to its nodes.
  struct Fetch {
    base::Time began;
    std::vector<std::string> tasks;        ///< whose images these are, in the order of the wishes
    std::optional<job::FetchesImage> now;  ///< what the engine does
    base::EventLoop::Interest pause;       ///< before the next of its news is shown
    std::shared_ptr<void> interest;        ///< dropping it ends it
  };
  std::optional<Fetch> fetch;
  std::map<std::string, launch::ImageFacts> images;  ///< by task
  launch::GangPlan plan;
  /// Task names by the address of their remote shell. Tasks that share an address are left out.
  std::map<std::string, std::string> tasks_by_address;
  base::Time placed;                           ///< when its start began
  std::set<std::string> unanswered;            ///< workers whose sshd has not greeted
  std::set<int> served;                        ///< ports that were chosen for its programs
  bool stage_under_way = false;                ///< engine.start() has not reported yet
  bool ending = false;                         ///< everything was told to stop
  std::optional<job::Fact> requeue;            ///< why a new attempt follows when all has ended
  std::chrono::milliseconds requeue_delay{0};  ///< and how long after that
  std::vector<int> evicted;                ///< by the scheduler: these tasks of the gang it knows
  bool moves = false;                      ///< and start elsewhere, at least some of them
  bool goes_whole = false;                 ///< once evicted, none of it keeps its place
  bool taken_up_evicted = false;           ///< the eviction was an earlier server's
  std::optional<job::Task> culprit;        ///< who failed the job
  std::vector<std::string> culprit_lines;  ///< the last it printed
  base::EventLoop::Interest start_timer;
  base::EventLoop::Interest last_words_timer;
  std::optional<job::SlurmState> room_says;  ///< the cluster, of what it has of it
  bool room_is_taken = false;           ///< by the cluster: nothing of it can be started any more
  bool retries_by_rules_alone = false;  ///< the cluster's limits were its end
  bool led_to_the_end = false;  ///< the leader has ended well, and the others may end by themselves
  base::EventLoop::Interest limit_timer;
  bool judging = false;  ///< the rank census is looked at in a moment
  bool judged = false;   ///< and need not be any more

  // Of a gang that resizes while it runs.

  /// A worker that has been given a seat, and is no member yet.
  struct Newcomer {
    bool is_started = false;                 ///< the engine was asked to
    std::shared_ptr<void> fetch;             ///< its image is brought; dropping it ends that
    base::EventLoop::Interest answer_timer;  ///< until it has to answer
  };
  std::map<std::string, Newcomer> newcomers;  ///< by name
  bool can_grow = false;                      ///< `kept` is there, or will be
  std::optional<launch::Reach> reach;         ///< between all the nodes that it may get
  std::optional<KeptSeed> kept;               ///< what newcomers are planned with
  std::string cannot_grow;                    ///< why there is none
  std::vector<std::string> unfit;             ///< nodes where none of its workers can join it
  bool asks_for_less = false;                 ///< than the scheduler knows
  std::map<int, schedule::TaskPlace> given;   ///< by seat: room that nobody was sent to yet
  std::deque<Controller::Step> steps;
  bool step_under_way = false;
  int setbacks = 0;  ///< of growing: since a worker was last lost that had run for long
  base::EventLoop::Interest rest_timer;            ///< until it goes off, nobody joins
  std::vector<base::EventLoop::Interest> notices;  ///< before those who leave are stopped
  std::set<std::string> lost_soon;                 ///< workers, by name
  std::set<std::string> leaving_from_before;       ///< that an earlier server had sent away
};

/// A shell that is missing would be told of as a file that is not there: kRefused.
Result<void> check_shells(const std::vector<launch::TaskPlan>& tasks,
                          const std::map<std::string, launch::ImageFacts>& images);
/// Tasks that hold something in the engine.
std::vector<std::string> live_tasks(const job::Job& job);
job::Task* find_task(job::Job& job, const std::string& name);
std::vector<std::string> names_of_tasks(const job::Job& job);
job::Fact suspended_reason(const job::Job& job);
job::Fact starting_reason(const job::Job& job);
job::Failure failure_of(const job::Job& job, CensusFault fault);
/// Whether the end of this task is the end of the job.
bool leads(const job::Job& job, const job::Task& task);

}  // namespace muster::control
