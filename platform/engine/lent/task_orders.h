// What muster-nodes are ordered while their tasks run: orders, file changes, programs beside a
// task's own; and the connections that muster-nodes open for streams (node/messages.h).
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/folder/run_conversation.h"
#include "engine/lent/gang_table.h"
#include "engine/lent/lender.h"
#include "engine/lent/reports.h"
#include "engine/node/folder_streams.h"

namespace muster::engine::lent {

class TaskOrders {
 public:
  using Line = Result<std::shared_ptr<node::NodeConnection>>;
  using Arrived = std::function<void(Line)>;

  TaskOrders(base::EventLoop& loop, const Lender& lender, GangTable& gangs, Reports& reports)
      : loop_(loop), lender_(lender), gangs_(gangs), reports_(reports), receiver_(loop) {}

  /// Sends the order now, or once the task's muster-node has reconnected: after a restart of the
  /// server that takes a moment.
  void send(const GangPointer& gang, const TaskPointer& task, node::NodeOrder order);
  /// Sends the order now, and connects the streams that it opens, if muster-nodes do not call.
  /// REQUIRES: task->line.
  void send_now(const GangPointer& gang, const TaskPointer& task, const node::NodeOrder& order);
  /// Sends the orders that waited for the task's muster-node. REQUIRES: task->line.
  void send_waiting(const GangPointer& gang, const TaskPointer& task);

  /// Engine::change_files(), exec() and attach().
  void change_files(const GangId& gang, std::vector<launch::FileChange> changes, Engine::Done done);
  Result<std::unique_ptr<Exec>> exec(const GangId& gang, const std::string& task,
                                     const ExecPlan& plan, ExecHandlers handlers);
  Result<std::unique_ptr<Exec>> attach(const GangId& gang, const std::string& task,
                                       ExecHandlers handlers);

  /// Expects a connection of a muster-node of the job; returns the number of its stream, for the
  /// order.
  uint64_t expect(const std::string& job_id, Arrived arrived);
  /// Expects the connection of the stream no longer.
  void forget(uint64_t stream) { expected_.erase(stream); }
  /// Expects a connection on which a folder is sent.
  uint64_t expect_sending(const std::string& job_id, const std::filesystem::path& folder);
  /// Receives a folder on a connection that has arrived.
  void receive(std::shared_ptr<node::NodeConnection> line, const std::filesystem::path& folder,
               int64_t most, node::FolderReceiver::Done done,
               node::FolderReceiver::Progress progress);
  /// The connection of a stream has arrived, or cannot be opened. Muster-nodes of other jobs are
  /// ignored.
  void arrived(const std::string& job_id, uint64_t stream, Line line);

  /// A muster-node has answered a change.
  void change_answered(const TaskPointer& task, uint64_t number, std::optional<base::Error> error);
  /// Answers all changes of a task whose connection is lost, or which has ended.
  void fail_changes(const TaskPointer& task);
  /// Fails the streams of its programs that have not arrived, and will not arrive any more.
  void fail_streams(const TaskPointer& task);

 private:
  struct Expected {
    std::string job_id;
    Arrived arrived;
  };

  uint64_t expect_program(const GangId& gang, const TaskPointer& task,
                          const std::shared_ptr<RunConversation>& conversation);

  base::EventLoop& loop_;
  const Lender& lender_;
  GangTable& gangs_;
  Reports& reports_;
  std::map<uint64_t, Expected> expected_;  ///< by stream
  uint64_t last_number_ = 0;               ///< of streams and changes
  node::FolderSender sender_;
  node::FolderReceiver receiver_;
};

}  // namespace muster::engine::lent
