// The task of a muster-node: run by a process engine of its own, and reported to the server.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "base/event_loop.h"
#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/node/folder_streams.h"
#include "engine/node/messages.h"
#include "engine/node/program_streams.h"
#include "engine/process/process_engine.h"
#include "engine/shim/follow_wire.h"
#include "engine/shim/plan.h"
#include "launch/task_plan.h"

namespace muster::engine::node {

/// Adapts a task's plan to its node. GPUs get the names that the cluster has given them there; the
/// plan's devices are numbers of NodeFacts::gpu_indices. The limits of CPUs and memory are dropped:
/// the cluster enforces them. Pure.
launch::TaskPlan plan_on_node(launch::TaskPlan plan, const NodeFacts& facts);

class NodeTask {
 public:
  /// Sends news to the server, or drops them while there is no connection.
  using Send = std::function<void(NodeNews)>;
  /// Adapts a plan to the cluster. `attempt_folder`: where the gang's tasks are on each node.
  using AdaptPlan =
      std::function<launch::TaskPlan(launch::TaskPlan plan, const std::string& attempt_folder)>;

  /// `open`: opens the connection of a stream. `adapt`: may be empty.
  NodeTask(base::EventLoop& loop, Gang gang, const NodeFacts& facts, StartOrder order,
           AdaptPlan adapt, Send send, TreeFetch::Open open);
  ~NodeTask();

  void start();

  /// Reports all that holds now, to a server that has just accepted the connection.
  void report_again(const Welcome& from);
  /// The connection is gone: nothing is sent until report_again().
  void server_lost();
  /// Sends nothing while the connection takes nothing.
  void pause_reports(bool paused);

  void stop(StopMode mode);
  void change(const ChangeOrder& order);
  void exec(const ExecOrder& order);
  void attach(const AttachOrder& order);
  void send_artifacts(const ArtifactsOrder& order);

  bool is_starting() const { return !answer_; }
  /// The task failed to start, or has ended.
  bool has_ended() const { return answer_ && (answer_->error || end_); }
  bool failed_to_start() const { return answer_ && answer_->error; }
  const std::optional<TaskEnded>& end() const { return end_; }
  bool is_shared() const { return order_.is_shared; }
  /// Removes the task's files, unless the folder is shared. REQUIRES: has_ended().
  void remove_files();
  std::string folder() const { return folder_.path.string(); }
  /// Called once has_ended() and all reports that can be sent have been sent.
  void on_end(std::function<void()> ended) { ended_ = std::move(ended); }

 private:
  struct Bridged;
  class RecordFollower;
  base::Result<void> prepare();
  void launch();
  void answered(std::optional<base::Error> error);
  void handle(const TaskReport& report);
  void ended(TaskEnded end);
  void write_exit_record() const;
  void follow(const Welcome& from);
  void send_record(FollowRecord record);
  void send_end();
  void watch_growth();
  void grown(bool log, bool ranks);
  void bridge(uint64_t stream, const ExecBridge::Begin& begin);

  base::EventLoop& loop_;
  Gang gang_;
  NodeFacts facts_;
  StartOrder order_;
  std::string name_;
  AdaptPlan adapt_;
  Send send_;
  TreeFetch::Open open_;
  TaskFolder folder_;
  base::UniqueFd held_;  ///< lock of the attempt's folder, if that is the node's own
  std::unique_ptr<ProcessEngine> engine_;
  TreeFetch trees_;
  FolderSender artifacts_;
  std::optional<StartAnswer> answer_;
  bool is_fetching_ = false;
  bool has_answered_ = false;
  std::optional<TaskEnded> end_;
  std::optional<Welcome> welcome_;  ///< while there is a connection
  bool all_sent_ = false;           ///< this server has got all records
  std::unique_ptr<RecordFollower> follower_;
  std::shared_ptr<void> log_watch_;
  GrownNews pending_;
  base::EventLoop::Interest send_soon_;
  std::set<std::shared_ptr<Bridged>> bridges_;
  std::set<std::shared_ptr<void>> openings_;
  std::function<void()> ended_;
};

}  // namespace muster::engine::node
