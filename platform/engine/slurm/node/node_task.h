// The task that a muster-node is there for: run by a process engine of its own, and told of.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "engine/process/process_engine.h"
#include "engine/slurm/node/exec_bridge.h"
#include "engine/slurm/node/record_follower.h"
#include "engine/slurm/node/step_facts.h"
#include "engine/slurm/node/tree_fetch.h"
#include "engine/slurm/node_wire.h"

namespace muster::engine::slurm {

class NodeTask {
 public:
  using Say = std::function<void(NodeNews)>;

  /// `say`: tells the server, or loses it, where the server does not hear right now: tell_anew()
  /// then says it. `open`: makes the connection of a stream.
  NodeTask(base::EventLoop& loop, Gang gang, const StepFacts& facts, StartOrder order, Say say,
           TreeFetch::Open open);
  ~NodeTask();

  void start();

  /// All that holds now, for a server that has just welcomed this node.
  void tell_anew(const Welcome& from);
  /// It does not hear any more.
  void server_is_gone();
  /// Nothing more is told while it is slow to take it.
  void pause_telling(bool paused);

  void stop(StopMode mode);
  void change(const ChangeOrder& order);
  void exec(const ExecOrder& order);
  void attach(const AttachOrder& order);
  void send_artifacts(const ArtifactsOrder& order);

  bool is_starting() const { return !answer_; }
  /// It never came up, or is over.
  bool has_ended() const { return answer_ && (answer_->error || end_); }
  bool failed_to_start() const { return answer_ && answer_->error; }
  const std::optional<TaskEnded>& end() const { return end_; }
  bool is_shared() const { return order_.is_shared; }
  /// REQUIRES: has_ended(). Of what is not shared.
  void remove_what_is_left();
  std::string folder() const { return folder_.path.string(); }
  /// Called when has_ended() has become true, and all was told that can be.
  void on_end(std::function<void()> ended) { ended_ = std::move(ended); }

 private:
  struct Bridged;
  base::Result<void> prepare();
  void launch();
  void answered(std::optional<base::Error> error);
  void heed(const TaskReport& report);
  void ended(TaskEnded end);
  void leave_exit_record() const;
  void follow(const Welcome& from);
  void tell_record(FollowRecord record);
  void tell_end();
  void watch_growth();
  void grown(bool log, bool ranks);
  void bridge(uint64_t stream, const ExecBridge::Begin& begin);

  base::EventLoop& loop_;
  Gang gang_;
  StepFacts facts_;
  StartOrder order_;
  std::string name_;
  Say say_;
  TreeFetch::Open open_;
  TaskFolder folder_;
  base::UniqueFd held_;  ///< where the folder is the node's own
  std::unique_ptr<ProcessEngine> engine_;
  TreeFetch trees_;
  FolderSender artifacts_;
  std::optional<StartAnswer> answer_;
  bool is_fetching_ = false;
  bool has_answered_ = false;
  std::optional<TaskEnded> end_;
  std::optional<Welcome> welcome_;  ///< while the server hears
  bool all_is_told_ = false;        ///< all records, to this server
  std::unique_ptr<RecordFollower> follower_;
  std::shared_ptr<void> log_watch_;
  GrownNews to_tell_;
  base::EventLoop::Interest tell_soon_;
  std::set<std::shared_ptr<Bridged>> bridges_;
  std::set<std::shared_ptr<void>> openings_;
  std::function<void()> ended_;
};

}  // namespace muster::engine::slurm
