// Between a program in a task of this node and whoever sits before it: its input and output in the
// words of engine/shim/run_wire.h, on a connection with the server.
//
// On the loop's thread.
#pragma once

#include <functional>
#include <memory>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/shim/run_wire.h"
#include "engine/slurm/node_hub.h"

namespace muster::engine::slurm {

class ExecBridge : public std::enable_shared_from_this<ExecBridge> {
 public:
  /// Starts the program, with these to be told by.
  using Begin = std::function<base::Result<std::unique_ptr<Exec>>(ExecHandlers)>;

  /// `over`: called once, later: its connection is gone, and it may be dropped, which ends the
  /// program of an exec.
  ExecBridge(base::EventLoop& loop, std::function<void()> over)
      : loop_(loop), over_(std::move(over)) {}

  /// What it prints waits for connected(). Errors: those of `begin`.
  base::Result<void> begin(const Begin& begin);
  void connected(std::shared_ptr<NodeConnection> line);

 private:
  ExecHandlers handlers();
  void say(const RunMessage& message);
  void say_output(std::string_view bytes, bool is_error);
  void heed(const NodeMessage& message);
  void heed(const RunMessage& message);
  void ended(job::ExitStatus status);
  void hung_up();

  base::EventLoop& loop_;
  std::function<void()> over_;
  std::unique_ptr<Exec> exec_;
  std::shared_ptr<NodeConnection> line_;
  RunReader reader_;
  std::string waiting_;  ///< until there is a connection
  bool has_ended_ = false;
  base::EventLoop::Interest patience_;
};

}  // namespace muster::engine::slurm
