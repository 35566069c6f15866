// What a muster-node reports to the server about its task.
//
// If the node shares the server's folder of jobs, the server reads the task's files itself, and the
// reports only hint that a file has grown. If not, the records of the task go to the server
// (engine/shim/follow.h), and the end of the task follows the last record.
//
// A server that connects later, perhaps another one, gets everything again that still holds.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/error.h"
#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/node/messages.h"
#include "engine/shim/follow.h"
#include "engine/shim/plan.h"

namespace muster::engine::node {

class TaskReports {
 public:
  /// Sends news to the server, or drops them while there is no connection.
  using Send = std::function<void(NodeNews)>;

  /// `folder`: the task's. `is_shared`: the server reads it itself.
  TaskReports(base::EventLoop& loop, TaskFolder folder, bool is_shared, Send send);
  ~TaskReports();

  // --- what happens to the task

  /// The task's programs can be started from now on, or the task could not be started.
  void started(std::optional<base::Error> error);
  /// The task's remote shell answers, or the task has none.
  void port_answers();
  /// The log or the ranks of the task have changed. Reported a few times a second at most.
  void grown(bool log, bool ranks);
  void ended(TaskEnded end);

  const std::optional<StartAnswer>& answer() const { return answer_; }
  const std::optional<TaskEnded>& end() const { return end_; }

  // --- what happens to the connection

  /// Reports all that holds now, to a server that has just accepted the connection.
  void report_again(const Welcome& from);
  /// The connection is gone: nothing is sent until report_again().
  void server_lost();
  /// While paused, sends no records and loses none.
  void pause(bool paused);
  /// The task's files are about to be removed.
  void stop_following();

 private:
  class RecordFollower;

  void write_exit_record();
  void follow(const Welcome& from);
  void send_record(FollowRecord record);
  void send_end();

  base::EventLoop& loop_;
  TaskFolder folder_;
  bool is_shared_;
  Send send_;
  std::optional<StartAnswer> answer_;
  bool port_answers_ = false;
  std::optional<TaskEnded> end_;
  std::optional<Welcome> welcome_;  ///< set while there is a connection
  bool all_sent_ = false;           ///< this server has got all records
  std::unique_ptr<RecordFollower> follower_;
  base::EventLoop::Interest follow_again_;
  base::EventLoop::Interest write_again_;
  GrownNews pending_;
  base::EventLoop::Interest send_soon_;
};

}  // namespace muster::engine::node
