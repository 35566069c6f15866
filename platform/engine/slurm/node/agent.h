// muster-node: stands on a node of Slurm for one task of a gang, calls the server, and does what it
// is told (engine/slurm/node_wire.h). It calls again for as long as its task runs, and whoever
// calls for the server then takes it up where it was; a server that stays away is waited for, for a
// while.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "engine/slurm/node/node_task.h"
#include "engine/slurm/node/server_calls.h"
#include "engine/slurm/node/step_facts.h"
#include "engine/slurm/node_brief.h"

namespace muster::engine::slurm {

struct AgentOptions {
  NodeBrief brief;
  StepFacts facts;
  bool shares_folder = false;
  std::string version;  ///< of Muster
  /// Says a sentence to whoever reads the output of the Slurm job.
  std::function<void(const std::string& sentence)> complain;
  /// Has signals that have come heeded now (heed_signal()): of one that ended the task, too, it is
  /// to be known before the end is told. Empty: none come.
  std::function<void()> look_for_signals;
  /// Nothing is left to be done; the code to end with.
  std::function<void(int code)> leave;
};

class Agent {
 public:
  Agent(base::EventLoop& loop, AgentOptions options);
  ~Agent();

  void begin();
  /// Slurm has sent it: the job is cancelled, out of time or in the way of another.
  void heed_signal(int signal);

 private:
  using Steady = std::chrono::steady_clock;
  using Line = TreeFetch::Line;

  Hello hello(uint64_t stream) const;
  void call();
  void called(Line line);
  void call_later();
  void line_is_gone(const std::string& why);
  void heed(const NodeMessage& message);
  void heed(const Welcome& welcome);
  void heed(const StartOrder& order);
  void heed(const StopOrder& order);
  void heed(const ChangeOrder& order);
  void heed(const ExecOrder& order);
  void heed(const AttachOrder& order);
  void heed(const ArtifactsOrder& order);
  void heed(const Farewell& farewell);
  void say(const NodeNews& news);
  std::shared_ptr<void> open_stream(uint64_t stream, std::function<void(Line)> then);
  bool waits_for_task() const { return task_ && !task_->has_ended(); }
  void give_up();
  void leave_nothing();
  void leave_if_done();
  void leave(int code);

  base::EventLoop& loop_;
  AgentOptions options_;
  ServerCalls calls_;
  std::shared_ptr<void> calling_;
  std::shared_ptr<NodeConnection> line_;
  Welcome welcome_;  ///< the last
  bool is_welcome_ = false;
  bool was_ever_welcome_ = false;
  std::string last_why_;  ///< that no server was found
  Steady::time_point heard_last_ = Steady::now();
  std::chrono::milliseconds pause_;
  base::EventLoop::Interest timer_;
  base::EventLoop::Interest patience_;
  base::EventLoop::Interest ending_;
  base::EventLoop::Interest before_the_kill_;
  std::optional<int> signal_;
  std::optional<Farewell> farewell_;
  std::unique_ptr<NodeTask> task_;
};

}  // namespace muster::engine::slurm
