// What the Slurm engine is made of. Its parts stand in files of their own, by what happens to a
// gang: asking.cc, polling.cc, verdicts.cc, connections.cc, giving_back.cc; to its tasks:
// starting.cc, hearing.cc, ending.cc, changing.cc, programs.cc; and around them: nodes.cc,
// adoption.cc, reading.cc.
//
// On the loop's thread. What is posted to the loop holds on to `alive`; nobody who listens is ever
// called within a call of the engine.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/random.h"
#include "engine/folder/mirror.h"
#include "engine/folder/run_conversation.h"
#include "engine/folder/trees.h"
#include "engine/node/brief.h"
#include "engine/node/connection.h"
#include "engine/node/folder_streams.h"
#include "engine/shim/plan.h"
#include "engine/slurm/gang_record.h"
#include "engine/slurm/slurm_client.h"
#include "engine/slurm/slurm_engine.h"

namespace muster::engine::slurm {

using Steady = std::chrono::steady_clock;

enum class Stage {
  kToKeep,   ///< its record is being written
  kToSend,   ///< nothing of it is in Slurm
  kSending,  ///< it is being submitted
  kUnsure,   ///< it may be in Slurm: the queue is to be looked at before anything is sent
  kQueued,   ///< Slurm has it, and not all of its muster-nodes have called
  kThere,    ///< its room was given
  kOver,     ///< Slurm has nothing of it any more
};

/// One call of start(), until each task is up or none is left.
struct GangStart {
  Gang gang;
  std::map<std::string, launch::TaskPlan> plans;  ///< by task; until each has answered
  Engine::Done done;
  std::optional<base::Error> error;
  std::set<std::string> tasks;
  std::set<std::string> unheard;  ///< tasks that have said neither that they are up nor why not
  std::set<std::string> ordered;  ///< tasks whose muster-nodes were told
  bool waits_for_trees = false;
};

/// A task that sits in a Slurm job.
struct HeldTask {
  std::string name;
  size_t seat = 0;                             ///< in the gang's record
  std::shared_ptr<node::NodeConnection> line;  ///< to its muster-node
  bool holds_task = false;                     ///< as that said when it called last
  std::vector<int> gpu_indices;
  std::shared_ptr<GangStart> start;  ///< until the whole start is settled
  std::optional<Mirror> mirror;      ///< where the folder is not shared
  bool fetches = false;              ///< its artifacts are on their way here
  bool up = false;
  bool answered = false;
  bool is_announced = false;  ///< that it answers was told
  bool was_told_to_stop = false;
  std::optional<StopMode> stop_wish;  ///< told again to each muster-node that calls for it
  int signal = 0;                     ///< that Slurm sent it
  std::optional<uint64_t> suspicion;  ///< it may have: a poll behind this one says so, or not
  std::optional<TaskEnded> end;       ///< known
  bool is_leaving = false;            ///< its muster-node removes what is on its node
  bool is_reported = false;           ///< and told
  std::map<uint64_t, Engine::Done> changes;
  std::set<uint64_t> streams;           ///< that it was told to make, and has not
  std::vector<node::NodeOrder> orders;  ///< for its muster-node, when that calls again
  std::vector<std::weak_ptr<std::function<void()>>> log_watchers;
  std::vector<std::function<void()>> when_over;  ///< called when nothing more is heard of it
  base::EventLoop::Interest timer;  ///< of a line that is gone, or an end that waits for its reason

  bool runs() const { return up && !end; }
};

struct HeldGang {
  Gang gang;
  GangRecord record;
  Stage stage = Stage::kToKeep;
  std::optional<RoomWish> wish;   ///< who restarted a server says it again
  std::optional<RoomWish> again;  ///< asked for while what was there is still being ended
  std::map<std::string, std::shared_ptr<HeldTask>> tasks;
  std::optional<ListedJob> listed;  ///< as Slurm listed it last
  uint64_t known_at = 0;            ///< the number of the poll that was the last when it was sent
  int missing = 0;                  ///< polls that did not have it
  bool wants_news = false;          ///< whoever asked listens
  bool is_told = false;             ///< that the room was given, by this server
  bool is_saved = true;
  std::optional<RoomWaits> waits;       ///< told last
  std::optional<job::SlurmState> says;  ///< told last
  bool is_cancelled = false;            ///< Slurm was told so
  std::optional<Steady::time_point> over_since;
  std::optional<Steady::time_point> back_since;  ///< given back, and left to end by itself
  base::EventLoop::Interest call_back;           ///< how long its nodes are waited for
  base::EventLoop::Interest retry;

  Seat& seat_of(const HeldTask& task) { return record.seats[task.seat]; }
  const Seat& seat_of(const HeldTask& task) const { return record.seats[task.seat]; }
};

/// Slurm has sent it a signal before it ended: what its program makes of that, which may be to save
/// its work and to end well, is not how it would have ended.
inline bool was_ended_by_slurm(const HeldTask& task) {
  return task.end && task.signal != 0 && !task.was_told_to_stop;
}

using GangPointer = std::shared_ptr<HeldGang>;
using TaskPointer = std::shared_ptr<HeldTask>;

}  // namespace muster::engine::slurm

namespace muster::engine {

struct SlurmEngine::Impl {
  using GangPointer = slurm::GangPointer;
  using TaskPointer = slurm::TaskPointer;

  Impl(base::EventLoop& its_loop, slurm::SlurmEngineOptions its_options,
       std::unique_ptr<slurm::SlurmClient> its_client);
  ~Impl();

  /// Opens what others see of it, and looks what an earlier server left: when it is first used, for
  /// a server that does not lead touches nothing.
  void begin();

  // --- asking for room (asking.cc)
  void ask(const Gang& gang, RoomWish wish);
  void ask_anew(const Gang& gang, RoomWish wish, std::vector<uint64_t> former);
  void take_up(const GangPointer& gang, RoomWish wish);
  bool take_over(const Gang& gang, const RoomWish& wish, const slurm::Submission& submission);
  void keep_and_send(const GangPointer& gang);
  void send(const GangPointer& gang);
  void sent(const GangPointer& gang, Result<uint64_t> answer);
  void send_again(const GangPointer& gang, std::chrono::milliseconds pause);
  void send_all_unsent();
  void refuse(const GangPointer& gang, base::Error error);
  slurm::Submission full_submission(const slurm::HeldGang& gang,
                                    slurm::Submission submission) const;
  GangPointer hold(const Gang& gang, slurm::GangRecord record, slurm::Stage stage);

  // --- giving it back (giving_back.cc)
  void give_back(const Gang& gang);
  void end_in_slurm(const GangPointer& gang);
  void cancel(const GangPointer& gang);
  void send_cancels();
  void forget(const GangPointer& gang);
  bool is_anothers(const slurm::HeldGang& gang) const;

  // --- the queue, as Slurm lists it (polling.cc)
  void schedule_poll();
  void poll();
  void poll_soon();
  int hurries_left();
  void something_changed();
  void heed(uint64_t number, const std::vector<slurm::ListedJob>& jobs);
  void heed(const GangPointer& gang, const slurm::ListedJob* listed);
  void find_unsure(const GangPointer& gang, const std::vector<slurm::ListedJob>& jobs);
  void look_into_past(std::vector<GangPointer> missing);
  void sweep(const std::vector<slurm::ListedJob>& jobs);
  void controller_away(const base::Error& error);
  void controller_back();
  RoomWaits away_waits(const slurm::HeldGang& gang) const;

  // --- what Slurm has done to a gang (verdicts.cc)
  void waits_in_slurm(const GangPointer& gang, const slurm::ListedJob& listed);
  void runs_in_slurm(const GangPointer& gang, const slurm::ListedJob& listed);
  void queued_again(const GangPointer& gang, const slurm::ListedJob& listed);
  void tell_queued_again(const GangPointer& gang, const std::vector<slurm::ListedNode>& nodes);
  void over_in_slurm(const GangPointer& gang, const slurm::ListedJob& listed);
  void settle_over(const GangPointer& gang);
  void ended_by_slurm(const GangPointer& gang);
  void forget_signals(const GangPointer& gang);
  static std::string broken_node(const slurm::HeldGang& gang,
                                 const std::vector<slurm::ListedNode>& nodes);
  void vanished(const GangPointer& gang);
  std::string awaited_at() const;
  void nodes_are_late(const GangPointer& gang);
  void task_is_silent(const GangPointer& gang, const TaskPointer& task);
  void take_away(const GangPointer& gang, RoomTaken taken);
  bool find_ends_in_folders(const GangPointer& gang);
  std::vector<std::string> output_of(const slurm::HeldGang& gang) const;

  // --- muster-nodes that call (connections.cc)
  std::optional<rsh::Key> key_of(const Gang& caller) const;
  GangPointer present_of(const Gang& caller) const;
  void connected(std::shared_ptr<node::NodeConnection> line);
  void greeted(const GangPointer& gang, const TaskPointer& task,
               std::shared_ptr<node::NodeConnection> line);
  void line_is_gone(const GangPointer& gang, const TaskPointer& task);
  void watch_silence(const GangPointer& gang, const TaskPointer& task);
  size_t awaited_tasks(const slurm::HeldGang& gang) const;
  void give_if_all_there(const GangPointer& gang);
  std::vector<RoomPlace> places_of(const slurm::HeldGang& gang) const;

  void order(const TaskPointer& task, node::NodeOrder order);

  // --- starting (starting.cc)
  void start(const Gang& gang, std::vector<launch::TaskPlan> plans, Done done);
  Result<void> check(const GangPointer& gang, const std::vector<launch::TaskPlan>& plans) const;
  void order_start(const std::shared_ptr<slurm::GangStart>& start);
  Result<void> order_start(const GangPointer& gang, const launch::TaskPlan& plan);
  void send_order(const GangPointer& gang, const TaskPointer& task);
  void order_again(const GangPointer& gang, const TaskPointer& task);
  void send_trees(const GangPointer& gang, node::StartOrder& order);
  void start_answered(const TaskPointer& task, const std::optional<base::Error>& error);
  void fail_start(std::shared_ptr<slurm::GangStart> start, base::Error error);
  void settle(std::shared_ptr<slurm::GangStart> start);
  void undo(const std::shared_ptr<slurm::GangStart>& start);
  void succeeded(const std::shared_ptr<slurm::GangStart>& start);
  void stop_starting(const Gang& gang, const std::vector<std::string>& names);
  void give_up_start(const GangPointer& gang, base::Error error);

  // --- what is heard of a task (hearing.cc)
  void heard(const GangPointer& gang, const TaskPointer& task, node::NodeMessage message);
  void heard(const GangPointer& gang, const TaskPointer& task, const node::RecordNews& news);
  void came_up(const GangPointer& gang, const TaskPointer& task);
  void answers(const GangPointer& gang, const TaskPointer& task);
  void log_has_grown(const TaskPointer& task);

  // --- its end (ending.cc)
  void stop(const Gang& gang, const std::vector<std::string>& names, StopMode mode);
  void ended(const GangPointer& gang, const TaskPointer& task, TaskEnded end);
  void finish(const GangPointer& gang, const TaskPointer& task);
  void leave(const GangPointer& gang, const TaskPointer& task);
  void fetch_artifacts(const GangPointer& gang, const TaskPointer& task);
  void farewell(const GangPointer& gang, const TaskPointer& task);
  void tell_end(const GangPointer& gang, const TaskPointer& task);
  void wait_for_reason(const GangPointer& gang, const TaskPointer& task);
  void suspect_slurm(const TaskPointer& task);
  void clear_suspicions(const GangPointer& gang, uint64_t poll);
  void tell_as_it_ended(const GangPointer& gang, const TaskPointer& task);
  void no_reason_came(const GangPointer& gang, const TaskPointer& task);
  void lose(const GangPointer& gang, const TaskPointer& task, const std::string& why);
  void nothing_more_of(const TaskPointer& task);
  void fail_changes(const TaskPointer& task);

  // --- programs in it (programs.cc)
  uint64_t stream_for(const TaskPointer& task,
                      const std::shared_ptr<RunConversation>& conversation);
  void fail_streams(const TaskPointer& task);

  // --- what an earlier server left (adoption.cc)
  void load_records();
  Found adopt(const Gang& gang, const std::string& name);

  // --- nodes (nodes.cc)
  void poll_nodes();
  void have_nodes(const std::vector<slurm::ListedNode>& listed);

  // --- small things (slurm_engine.cc)
  TaskFolder folder_of(const Gang& gang, std::string_view task) const;
  std::filesystem::path attempt_folder(const Gang& gang) const;
  std::filesystem::path job_folder(const std::string& job_id) const;
  std::string folder_on_node(bool is_shared) const;
  std::string programs_on_nodes() const;
  GangPointer find(const Gang& gang) const;
  TaskPointer find(const Gang& gang, const std::string& task) const;
  void save(const GangPointer& gang);
  void save_soon(const GangPointer& gang);
  void soon(std::function<void()> action);
  void tell(const GangPointer& gang, RoomNews news);
  void tell_waits(const GangPointer& gang, RoomWaits waits);
  void tell_says(const GangPointer& gang, std::optional<job::SlurmState> state);
  void report(const Gang& gang, const std::string& task, TaskNews what);

  base::EventLoop& loop;
  slurm::SlurmEngineOptions options;
  std::shared_ptr<bool> alive = std::make_shared<bool>(true);
  base::SystemRandom random;
  Listener listener;
  RoomListener room_listener;
  std::optional<base::Error> site_fault;  ///< why nobody can call back
  bool has_begun = false;
  JobTrees trees;
  slurm::RecordKeeper keeper;
  std::map<Gang, GangPointer> gangs;
  /// Who waits for a connection that a muster-node was told to make.
  std::map<uint64_t, std::function<void(Result<std::shared_ptr<node::NodeConnection>>)>> streams;
  uint64_t last_number = 0;  ///< of streams and changes
  std::vector<Node> node_list;
  std::vector<std::weak_ptr<std::function<void()>>> node_watchers;

  // The queue.
  uint64_t polls = 0;  ///< begun so far
  bool is_polling = false;
  bool polls_again = false;  ///< as soon as that answer is there
  bool has_swept = false;
  int hurry = 0;  ///< polls that follow each other at once
  bool is_hurrying = false;
  slurm::Steady::time_point hurries_from{};
  slurm::Steady::time_point poll_due{};
  slurm::Steady::time_point last_change{};
  std::optional<base::Time> away_since;
  std::string away_why;
  std::set<uint64_t> to_cancel;
  bool is_cancelling = false;
  base::EventLoop::Interest poll_timer;
  base::EventLoop::Interest nodes_timer;

  node::FolderSender folder_sender;
  node::FolderReceiver folder_receiver;
  node::CallbackSite site;
  // Last, to go first: with it end all answers.
  std::unique_ptr<slurm::SlurmClient> client;
};

}  // namespace muster::engine
