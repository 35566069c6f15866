// The loop of the orchestrator: store -> schedule -> launch -> engine -> store. It alone changes
// jobs. Whatever it does is committed before anybody is told, and recover() takes up what an
// earlier server left at any point in between. What happens in one turn of the loop is committed
// together.
//
// On the EventLoop's thread; the store, the engine and the clock must outlive it.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "access/audit.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "control/accounts.h"
#include "control/change_feed.h"
#include "control/controller_parts.h"
#include "control/forward_clock.h"
#include "control/journal.h"
#include "control/metrics.h"
#include "control/projects.h"
#include "control/retention.h"
#include "control/seeking.h"
#include "engine/engine.h"
#include "job/forecast.h"
#include "job/job.h"
#include "job/log_record.h"
#include "job/metric.h"
#include "job/node.h"
#include "job/project.h"
#include "launch/plan.h"
#include "schedule/scheduler.h"
#include "store/store.h"

namespace muster::logs {
class LogFollower;
class MetricBook;
class ProgressBook;
}  // namespace muster::logs

namespace muster::control {

using base::Result;

class Controller {
 public:
  Controller(Parts parts, SiteFacts site, schedule::Options options = {});
  ~Controller();

  /// Loads every job and takes up those that had not ended. To be called once, before anything
  /// else.
  Result<void> recover();

  // Where a job is named, its id does, too; a name does where only one project has a job of it,
  // else it is kConflict. `by` is who asks: of what it changes, the audit log keeps a record, in
  // the same commit; nobody: it keeps none.

  /// Commits a new job of `by` and wakes the scheduler. kInvalid with every fault of the spec;
  /// kConflict where the name is taken in the project; kNotFound for an unknown project; kRefused,
  /// with the numbers, for a job that could never run. The same key again gives the first job
  /// again.
  Result<job::Job> submit(const job::JobSpec& spec, const std::string& idempotency_key,
                          const access::Actor& by = {});

  /// The same for many: `done` is called once the job is committed, together with whatever else
  /// changes in this turn of the loop.
  using Submitted = std::function<void(Result<job::Job>)>;
  void submit(const job::JobSpec& spec, const std::string& idempotency_key, Submitted done,
              const access::Actor& by = {});

  /// What submit() would do with this spec now. Stores and starts nothing.
  Result<job::Forecast> forecast(const job::JobSpec& spec) const;

  /// Asks a job to end. Ended jobs are no error. Of a job that cannot be read, its tasks are ended.
  Result<job::Job> stop(const std::string& name, bool now, const access::Actor& by = {});

  /// Frees the job's room (SIGTERM, grace, SIGKILL) and holds it back until resume(). Suspended
  /// jobs are no error; kConflict for ended ones.
  Result<job::Job> suspend(const std::string& name, const access::Actor& by = {});
  Result<job::Job> resume(const std::string& name, const access::Actor& by = {});

  /// Sets the labels that have a value, and takes away those that have none. Also of ended jobs.
  /// kInvalid: what comes of it are no labels.
  using LabelChanges = std::map<std::string, std::optional<std::string>>;
  Result<job::Job> set_labels(const std::string& name, const LabelChanges& changes,
                              const access::Actor& by = {});

  /// Forgets an ended job and its logs. kConflict while it has not ended.
  Result<void> remove(const std::string& name, const access::Actor& by = {});

  /// Why it waits, or what happened to it.
  Result<job::Explanation> explain(const std::string& name) const;

  /// Those that wait, in the order in which they would be served as things are; suspended ones
  /// last. The first of them have reasons as of now.
  std::vector<const job::Job*> queue();

  /// kNotFound with the nearest name.
  Result<const job::Job*> find(const std::string& name) const;
  /// The jobs of this name, at most one a project; oldest first.
  std::vector<const job::Job*> named(const std::string& name) const;
  /// The job of this id; nullptr where there is none.
  const job::Job* with_id(const std::string& id) const;
  /// Oldest first.
  std::vector<const job::Job*> list() const;
  /// Calls `visit` for each job in the order of submission, or against it, until it returns false;
  /// begins behind the job that was submitted at `after`, where one is given. (No two jobs were
  /// submitted at the same time.)
  void each_job(bool newest_first, std::optional<base::Time> after,
                const std::function<bool(const job::Job&)>& visit) const;
  /// The same by name, and jobs of one name by project; begins with the first that is not before
  /// `name` and `project`.
  void each_job_from(const std::string& name, const std::string& project,
                     const std::function<bool(const job::Job&)>& visit) const;

  // Projects. Each change is committed before it returns.

  /// kInvalid with every fault, of the tree that it makes, too; kConflict where the name is taken.
  Result<job::ProjectStatus> create_project(job::Project project, const access::Actor& by = {});
  /// Replaces the one of this name. A quota below what runs is no error: what is over it is over
  /// quota from then on.
  Result<job::ProjectStatus> set_project(job::Project project, const access::Actor& by = {});
  /// kConflict while it has jobs that have not ended, or projects below it; the default project
  /// stays.
  Result<void> remove_project(const std::string& name, const access::Actor& by = {});
  /// kNotFound with the nearest name.
  Result<job::ProjectStatus> project(const std::string& name) const;
  std::vector<job::ProjectStatus> projects() const;  ///< parents first, then by age
  /// The project, its parent, and so on up to the top; empty: there is no such project.
  std::vector<std::string> line_of_project(const std::string& name) const;
  /// Whether the project that the job was submitted to is still there, rather than none or another
  /// of its name: whoever belongs to that has no part in what the old one left.
  bool is_of_its_project(const job::Job& job) const;

  // Nodes.

  std::vector<job::Node> nodes() const;  ///< by name
  Result<job::Node> node(const std::string& name) const;
  /// A cordoned node takes nothing new. Drained is cordoned, and what runs there is evicted and
  /// queued again. Both are kept over restarts.
  Result<job::Node> cordon(const std::string& name, const access::Actor& by = {});
  Result<job::Node> uncordon(const std::string& name, const access::Actor& by = {});
  Result<job::Node> drain(const std::string& name, const access::Actor& by = {});

  /// Runs a program in a task of a job that runs; as engine::Engine::exec().
  Result<std::unique_ptr<engine::Exec>> exec(const std::string& name, const std::string& task,
                                             const engine::ExecPlan& plan,
                                             engine::ExecHandlers handlers,
                                             const access::Actor& by = {});

  /// The input and output of a running task's own program; as engine::Engine::attach().
  Result<std::unique_ptr<engine::Exec>> attach(const std::string& name, const std::string& task,
                                               engine::ExecHandlers handlers,
                                               const access::Actor& by = {});

  /// The folder of this machine in which the artifacts of the job of this id lie, where it has any.
  std::optional<std::filesystem::path> artifacts_folder(const std::string& id) const {
    return parts_.engine.artifacts_folder(id);
  }

  void set_resize_pace(const ResizePace& pace) { pace_ = pace; }

  /// From now on, ended jobs are removed by these rules; one whose log is followed, once it is not.
  void set_retention(const RetentionRules& rules);

  /// The merged log of a job that exists now.
  std::unique_ptr<logs::LogFollower> follow_logs(const std::string& name,
                                                 const job::LogQuery& query);

  /// What was measured of a job's present or last attempt (metric_book.h): `measured` is called
  /// once, mostly in a later turn of the loop. kNotFound: there is no such job, or no more.
  using Measured = std::function<void(Result<std::vector<job::MetricSeries>>)>;
  void read_metrics(const std::string& name, const job::MetricQuery& query,
                    Measured measured) const;

  /// How far its program says that it is (progress_book.h).
  std::optional<job::Progress> progress_of(const job::Job& job) const;

  /// Nothing waits and nothing runs.
  bool idle() const;

  /// Whether the store has jobs that cannot be read: what they use is not known.
  bool has_unreadable_jobs() const { return has_unreadable_jobs_; }

  /// {project, id} of every tree that a job has.
  std::set<std::pair<std::string, std::string>> trees_in_use() const;

  const Metrics& metrics() const { return metrics_; }
  ChangeFeed& feed() { return feed_; }
  const ChangeFeed& feed() const { return feed_; }
  /// Whether the store takes changes right now.
  Result<void> ready() { return parts_.store.ping(); }

  /// Calls after each change of the job, its removal included, as long as the handle is kept.
  [[nodiscard]] std::shared_ptr<void> watch(const std::string& name, std::function<void()> changed);

 private:
  struct Run;
  using Places = std::vector<std::optional<schedule::TaskPlace>>;  ///< by seat
  /// A job and what of it is not stored.
  struct Entry {
    job::Job job;
    uint64_t sequence = 0;     ///< order of submission
    std::unique_ptr<Run> run;  ///< while it holds room
    /// Where its tasks stay while it starts again because some of them had to go elsewhere.
    Places kept;
    /// How often in a row a start of it found that the engine of a node does not answer.
    int unanswered_starts = 0;
    Seeking seeking;
    std::optional<job::Fact>
        ended_by;                  ///< who has it stopped, where that was none of Muster's users
    std::optional<int64_t> bytes;  ///< of an ended job, on the disk; nothing: not measured
    std::vector<engine::RunningTask> strays;  ///< of a job that cannot be read: its tasks that run
  };

  struct JobCount {
    int running = 0;
    int waiting = 0;
    schedule::Amounts asked_for;  ///< by those that wait, of a cluster
  };
  using JobCounts = std::map<std::string, JobCount>;  ///< by project
  /// By node: the tasks there, those of one job in a row.
  using Tenants = std::map<std::string, std::vector<std::pair<const job::Job*, const job::Task*>>>;

  // submission.cc: what a new job must be
  Result<void> check_submission(const job::JobSpec& spec) const;
  Result<void> check_secrets(const job::JobSpec& spec) const;
  Result<void> check_trees(const job::JobSpec& spec) const;
  Result<void> check_programs(const job::JobSpec& spec) const;
  Result<void> check_images(const job::JobSpec& spec) const;

  // controller.cc: jobs, and what callers ask of them
  using JobName = std::pair<std::string, std::string>;  ///< name, and its project
  static JobName name_of(const job::JobSpec& spec) { return {spec.name, spec.project}; }
  void judge_committed(const JobName& name, const std::string& key);
  Result<schedule::Gang> admissible(const job::Job& job, uint64_t sequence) const;
  void admit(Entry& entry);
  Result<Entry*> entry_of(const std::string& name) const;
  /// The same; kConflict for a job whose record cannot be read.
  Result<Entry*> changeable_entry_of(const std::string& name) const;
  Entry* by_id(const std::string& id) const;
  Entry* by_name(const JobName& name) const;
  void forget(Entry& entry);
  /// For the audit log: nothing where nobody asked.
  using Records = std::vector<access::AuditRecord>;
  Records record(const access::Actor& by, std::string action, std::string target,
                 std::string project, std::vector<access::FieldChange> changes) const;
  Records record(const access::Actor& by, std::string action, const job::Job* before,
                 const job::Job* after) const;
  /// Does it to the job, and commits it with its record.
  Result<job::Job> act(Entry& entry, const access::Actor& by, const std::string& action,
                       const std::function<void()>& change);

  // programs.cc
  Result<const job::Task*> running_task(job::Job& job, const std::string& task) const;
  Result<void> note_entry(const job::Job& job, const job::Task& task, const std::string& action,
                          const access::Actor& by);

  // scheduling.cc: telling the scheduler, and carrying out what it says
  void wake();
  void schedule();
  void note_wait(const schedule::Wait& wait);
  schedule::Constraint refresh_reason(job::Job& job) const;
  void prepare_starts(const schedule::Plan& plan);
  void prepare(Entry& entry, Places places);
  void place(Entry& entry, Places places, uint64_t slurm_job = 0);
  void hold_as_placed(Entry& entry);
  void take_eviction(const schedule::Eviction& eviction);
  void evict(Entry& entry, const job::Eviction& why);
  void evicted(Entry& entry);
  void queue_anew(Entry& entry, std::chrono::milliseconds delay = {});
  void line_up(Entry& entry, std::chrono::milliseconds delay = {});
  job::Fact first_reason() const;
  void start_without_the_moved();
  bool has_room_for(const Places& places) const;
  void wait_again(Entry& entry, const job::Fact& why, std::chrono::milliseconds delay);
  schedule::Gang gang_of(const Entry& entry) const;
  bool knows_by_placed(const Entry& entry) const;
  void plan_again_at(std::optional<base::Time> time);

  // rooms.cc, rooms_taken.cc: jobs of an engine that asks a cluster for room
  bool asks_a_cluster() const;
  Result<void> check_wish(const job::Job& job) const;
  job::Fact asking_reason(std::optional<job::SlurmEnded> after = {}) const;
  void line_up_for_room(Entry& entry, std::chrono::milliseconds delay);
  void ask_once_committed(Entry& entry);
  void ask_for_the_rested();
  void ask_for_room(Entry& entry);
  void give_back_rooms(Entry& entry);
  void take_up_room(Entry& entry);
  void hear_of_room(const engine::Gang& gang, const engine::RoomNews& news);
  void room_waits(Entry& entry, const engine::RoomWaits& waits);
  void room_given(Entry& entry, const engine::RoomGiven& given);
  void room_refused(Entry& entry, const base::Error& error);
  void room_taken_before_it_was_given(Entry& entry, const engine::RoomTaken& taken);
  void wait_for_another_room(Entry& entry, const engine::RoomTaken& taken,
                             std::chrono::milliseconds delay);
  void cluster_says(Entry& entry, const engine::RoomSays& says);
  void room_taken(Entry& entry, const engine::RoomTaken& taken);
  void decide_without_room(Entry& entry, const engine::RoomTaken& taken);
  std::vector<const job::Job*> queue_at_the_cluster() const;
  Result<job::Forecast> forecast_at_the_cluster(const job::Job& job) const;

  // preparing.cc: the images of a gang, before it is planned
  void fetch_images(Entry& entry);
  void show_fetching(Entry& entry);
  void images_fetched(const std::string& id, int attempt,
                      Result<std::vector<launch::ImageFacts>> facts);
  void give_up_fetching(Entry& entry);
  void leave_before_start(Entry& entry, const std::string& node);
  void fetch_newcomers_image(Entry& entry, const job::Task& newcomer);
  void newcomers_image_fetched(Entry& entry, const std::string& name,
                               const std::vector<std::string>& tasks,
                               Result<std::vector<launch::ImageFacts>> facts);

  // starting.cc
  launch::Site site_of(const job::Job& job, const Run& run) const;
  Result<launch::Site> site_with_secrets(const job::Job& job, const Run& run) const;
  Result<launch::GangPlan> plan_of(job::Job& job, Run& run);
  void tell_what_stands_in(job::Job& job);
  void tell_of_own_variables(job::Job& job);
  void begin(Entry& entry);
  void start_planned(Entry& entry);
  bool try_again_later(Entry& entry, const base::Error& error);
  static std::optional<std::chrono::milliseconds> pause_before_another_try(Entry& entry);
  void start_stage(Entry& entry, std::vector<launch::TaskPlan> tasks);
  void stage_started(const std::string& id, int attempt, const Result<void>& started);
  void is_up(Entry& entry, const job::Task& task);
  void answered(Entry& entry, job::Task& task);
  void start_timed_out(const std::string& id, int attempt);
  void measure_start(const Entry& entry);
  void limit_run_time(Entry& entry);
  Entry* run_of(const std::string& id, int attempt) const;

  // resizing.cc: a gang whose workers come and go while it runs
  bool may_resize(const Entry& entry) const;
  void take_room(Entry& entry, const schedule::Start& start);
  bool shrink(Entry& entry, const std::vector<int>& seats, const job::Eviction& why);
  bool can_do_without(const Entry& entry, const std::vector<int>& seats) const;
  static const job::Task* leave_seat(Entry& entry, int seat);
  void say_goodbye(Entry& entry, const std::vector<std::string>& leaving);
  void stop_leaving(const std::string& id, int attempt, const std::vector<std::string>& leaving);
  void has_left(Entry& entry, const job::Task& task);
  void give_back(Entry& entry, const std::vector<int>& seats);
  bool wants_no_more(const Entry& entry) const;
  void ask_for_less(Entry& entry);
  void give_back_room_on(Entry& entry, const std::string& node);
  bool goes_on_without(const Entry& entry, const job::Task& lost) const;
  void note_loss(Entry& entry, const job::Task& lost);
  bool falls_over(const Entry& entry) const;
  void lose_worker(Entry& entry, job::Task& task);
  void rest(Entry& entry);
  void show_size(Entry& entry);
  void tell_members(Entry& entry, std::function<void(Entry&, bool anybody)> then);
  void change_files(Entry& entry, std::vector<launch::FileChange> changes,
                    std::function<void(const Result<void>&)> then);
  /// One of the things that are done to the tasks of a gang that runs, one after the other. Calls
  /// what it is given once it is done.
  using Step = std::function<void(Entry&, std::function<void()>)>;
  void add_step(Entry& entry, Step step);
  void next_step(const std::string& id, int attempt);
  void keep_seed(job::Job& job, Run& run, const launch::GangSeed& seed);
  void find_seed(const job::Job& job, Run& run);
  void take_up_live(Entry& entry);
  void end_attempt(job::Job& job);

  // joining.cc: the way of one worker into a gang that runs
  void grow(Entry& entry);
  void begin_newcomer(const std::string& id, int attempt, const std::string& name);
  void line_up_newcomer(Entry& entry, const std::string& name);
  Result<launch::Growth> plan_of_newcomer(const job::Job& job, const Run& run,
                                          const std::string& name);
  void start_newcomer(Entry& entry, const std::string& name, std::function<void()> done);
  void launch_newcomer(Entry& entry, const std::string& name, std::vector<launch::TaskPlan> plans,
                       std::function<void()> done);
  void newcomer_started(Entry& entry, const std::string& name, const Result<void>& started);
  void newcomer_timed_out(Entry& entry, const std::string& name);
  void has_joined(Entry& entry, const job::Task& task);
  void catch_up(Entry& entry, const std::string& name, std::function<void()> done);
  void did_not_join(Entry& entry, job::Task& task);
  void turn_away(Entry& entry, job::Task& task, const std::string& why);
  void note_setback(Entry& entry, const std::string& what);
  void stop_growing(Entry& entry, const std::string& why);
  static void give_up_newcomers(Entry& entry);

  // ranks.cc: what is learnt of its MPI program while it runs
  void learn_mpi(Entry& entry);
  void ranks_changed(Entry& entry);
  void judge_ranks(Entry& entry);

  // ending.cc
  void hear(const engine::TaskReport& report);
  void ended(Entry& entry, job::Task& task, const engine::TaskEnded& end);
  void react_to_end(Entry& entry, job::Task& task);
  void fail(Entry& entry, job::Failure failure);
  void fail_by(Entry& entry, const job::Task& culprit,
               std::chrono::milliseconds third_loss_within = {});
  void end_what_was_led(Entry& entry);
  void begin_to_end(Entry& entry);
  void end_gang(Entry& entry, engine::StopMode mode);
  void end_gang_gently(Entry& entry);
  void finish_if_over(Entry& entry);
  void conclude(Entry& entry);
  bool start_again(Entry& entry);
  void finish(Entry& entry, job::Phase phase);

  // keeping.cc: removing ended jobs, when asked to and by the rules of retention
  Result<void> forget(const std::vector<Entry*>& entries, const Records& audit);
  bool is_followed(const std::string& id) const;
  std::vector<EndedJob> ended_jobs() const;
  void note_end(Entry& entry);
  void look_at_retention();
  void look_at_retention_at(base::Time time);
  void remove_by_rule(const std::vector<Removal>& due);
  void measure_ended();

  // pool.cc: projects and nodes
  void read_nodes();
  void tell_of_silence(const std::vector<engine::Node>& before);
  job::Fact running_reason(const job::Job& job) const;
  bool is_silent(const std::string& node) const;
  bool takes_nothing_new(const std::string& node) const;
  void tell_projects();
  void lose_node(const std::string& name);
  void book_those_on(const std::set<std::string>& nodes);
  void leave_node(const std::string& name);
  void read_pools();
  Result<void> check_parent(const job::Project& project) const;
  Result<void> keep_project(const job::Project& project, Records audit);
  JobCounts count_jobs() const;
  job::ProjectStatus status_of(const job::Project& project, const JobCounts& counts) const;
  Tenants tenants() const;
  job::Node view_of(const engine::Node& node, const Tenants& all) const;
  const engine::Node* node_named(const std::string& name) const;  ///< nullptr where there is none
  Result<const engine::Node*> engine_node(const std::string& name) const;
  std::vector<access::FieldChange> cordon_change(const std::string& name, bool cordoned) const;
  Result<job::Node> set_cordon(const std::string& name, bool cordoned, Records audit);

  // recovery.cc
  Result<void> take_note_of_unreadable(const store::Contents& stored);
  void stand_in_for(const store::Unreadable& record, base::Time submitted);
  void hold_strays(Entry& entry);
  static void show_strays(Entry& entry);
  void stray_reported(Entry& entry, const engine::TaskReport& report);
  Result<job::Job> stop_strays(Entry& entry, bool now, const access::Actor& by);
  void take_up(Entry& entry);
  bool begins_anew(const Entry& entry) const;
  void take_up_task(Entry& entry, job::Task& task);

  /// In a later turn of the loop, unless the controller is gone by then.
  void soon(std::function<void()> action);
  /// The same after a while, as long as the handle is kept where there is a while.
  [[nodiscard]] base::EventLoop::Interest later(std::chrono::milliseconds delay,
                                                std::function<void()> action);
  void change(Entry& entry);
  void note(job::Job& job, job::Fact what);
  void tell(const job::Job& job);
  void tell_watchers();
  uint64_t feed_hint() const;
  void call_watchers(const std::string& id);
  base::Time stamp();
  static engine::Gang engine_gang(const job::Job& job) { return {job.id, job.attempt}; }

  Parts parts_;
  SiteFacts site_;
  schedule::Options options_;
  ResizePace pace_;
  ForwardClock forward_;  ///< what the scheduler is told the time by
  Metrics metrics_;
  Journal journal_;
  ChangeFeed feed_;
  std::unique_ptr<logs::MetricBook> measurements_;
  std::unique_ptr<logs::ProgressBook> progress_;
  schedule::Scheduler scheduler_;
  Projects projects_;
  std::vector<engine::Node> nodes_;  ///< as the scheduler was told
  std::set<std::string> cordoned_;
  std::vector<std::string> pools_;  ///< the default one first
  std::shared_ptr<void> nodes_watch_;

  std::map<uint64_t, std::unique_ptr<Entry>> entries_;  ///< by sequence: oldest first
  std::unordered_map<std::string, Entry*> by_id_;
  std::map<JobName, Entry*> by_name_;
  std::map<base::Time, Entry*> by_time_;  ///< of submission
  std::map<JobName, std::unique_ptr<Entry>> uncommitted_;
  std::set<std::string> uncommitted_keys_;
  uint64_t next_sequence_ = 1;
  size_t not_final_ = 0;
  bool has_unreadable_jobs_ = false;
  std::set<uint64_t> waiting_;     ///< Queued: sequences
  std::set<uint64_t> resting_;     ///< of these, those that ask for room only later: sequences
  std::set<uint64_t> parted_;      ///< of these, those that have kept some places: sequences
  int evictions_from_before_ = 0;  ///< that an earlier server had begun

  base::Time last_stamp_{};
  std::multimap<std::string, std::weak_ptr<std::function<void()>>> watchers_;  ///< by id
  std::set<std::string> to_tell_;  ///< ids whose watchers hear of the next commit
  bool telling_ = false;           ///< they will, without anything more being done
  bool woken_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::EventLoop::Interest plan_timer_;
  base::EventLoop::Interest use_timer_;

  RetentionRules retention_;
  std::optional<base::Time> retention_due_;  ///< when the timer goes off
  base::EventLoop::Interest retention_timer_;
  bool measuring_ = false;
};

}  // namespace muster::control
