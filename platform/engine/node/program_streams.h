// A program that `muster exec` or `muster attach` reaches, over a connection that the muster-node
// opens for it. link_program() is the server's end, ExecBridge the node's; between them go the
// messages of engine/shim/run_wire.h.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/folder/run_conversation.h"
#include "engine/node/connection.h"
#include "engine/node/folder_streams.h"
#include "engine/shim/run_wire.h"

namespace muster::engine::node {

/// Passes what arrives on `line` to the conversation, as long as that exists.
std::unique_ptr<RunLink> link_program(std::shared_ptr<NodeConnection> line,
                                      const std::shared_ptr<RunConversation>& to);

class ExecBridge : public std::enable_shared_from_this<ExecBridge> {
 public:
  /// Starts the program with these handlers.
  using Begin = std::function<base::Result<std::unique_ptr<Exec>>(ExecHandlers)>;

  /// `over`: called once, later, when the connection is gone. The owner may then drop the bridge,
  /// which ends the program of an exec.
  ExecBridge(base::EventLoop& loop, std::function<void()> over)
      : loop_(loop), over_(std::move(over)) {}

  /// Starts the program; keeps its output until connected(). Errors: those of `begin`.
  base::Result<void> begin(const Begin& begin);
  void connected(std::shared_ptr<NodeConnection> line);

 private:
  ExecHandlers handlers();
  void send(const RunMessage& message);
  void send_output(std::string_view bytes, bool is_error);
  void take(const NodeMessage& message);
  void take(const RunMessage& message);
  void ended(job::ExitStatus status);
  void closed();

  base::EventLoop& loop_;
  std::function<void()> over_;
  std::unique_ptr<Exec> exec_;
  std::shared_ptr<NodeConnection> line_;
  RunReader reader_;
  std::string waiting_;  ///< output from before the connection
  bool has_ended_ = false;
  base::EventLoop::Interest patience_;
};

/// The streams that a muster-node opens for its task, by orders of the server.
class TaskStreams {
 public:
  using Send = std::function<void(NodeNews)>;

  /// `open`: opens the connection of a stream. `send`: sends news to the server.
  TaskStreams(base::EventLoop& loop, TreeFetch::Open open, Send send);
  ~TaskStreams();

  /// Starts or reaches a program and connects it to the stream, or refuses the stream.
  void reach_program(uint64_t stream, const ExecBridge::Begin& begin);
  /// Whether the server may not have all output and the exit codes of the programs yet. The server
  /// closes the connection of a program when it has both.
  bool has_programs() const { return !bridges_.empty(); }
  /// `over` is called from the event loop each time that the last of the programs has ended.
  void on_programs_end(std::function<void()> over) { over_ = std::move(over); }

  /// Sends the content of the folder over the stream, except for what cannot be read.
  void send_folder(uint64_t stream, const std::filesystem::path& folder);

 private:
  /// A program, and the connection that is being opened for it.
  struct Bridged {
    std::shared_ptr<ExecBridge> bridge;
    std::shared_ptr<void> opening;
  };

  void forget(const std::shared_ptr<Bridged>& bridged);

  base::EventLoop& loop_;
  TreeFetch::Open open_;
  Send send_;
  std::function<void()> over_;
  FolderSender folders_;
  std::set<std::shared_ptr<Bridged>> bridges_;
  std::set<std::shared_ptr<void>> openings_;  ///< of folders
};

}  // namespace muster::engine::node
