// muster-node: runs one task of a gang on a node that a cluster lends. It keeps a connection with
// the server (server_calls.h) and carries out the server's orders (messages.h). It reconnects for as long as its task runs; a
// server that took over from another continues where that one was. If the server stays away after
// the task has ended, muster-node waits for it (NodeBrief::linger) and then exits.
//
// On the loop's thread, which it must not outlive.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/event_loop.h"
#include "engine/node/brief.h"
#include "engine/node/node_task.h"
#include "engine/node/server_calls.h"

namespace muster::engine::node {

struct AgentOptions {
  NodeBrief brief;
  TaskSite site;
  bool shares_folder = false;
  std::string version;  ///< of Muster
  std::string cluster;  ///< its name in sentences: "Slurm"
  std::string address;  ///< of this node for others; empty: that of the connection to the server
  std::optional<launch::ImageFacts> image;  ///< in which it runs
  /// The time from the cluster's signal until the cluster kills; data that the server has not
  /// received by then is lost.
  std::chrono::milliseconds kill_after{20'000};
  /// A signal of the cluster may reach muster-node this long after it has ended the task. If more time
  /// has passed since the end, the signal has not ended the task, and is not reported.
  std::chrono::milliseconds signal_lag{0};
  /// Prints a sentence where the users of the cluster look for it: the output of the Slurm job.
  std::function<void(const std::string& sentence)> complain;
  /// Handles signals that have arrived already: the server must get a signal that ended the task
  /// before it gets the end. Empty: there are no signals.
  std::function<void()> poll_signals;
  /// Ends the process with this code; there is nothing left to do.
  std::function<void(int code)> leave;
};

class Agent {
 public:
  /// `way`: must outlive the agent.
  Agent(base::EventLoop& loop, ServerWay& way, AgentOptions options);
  ~Agent();

  void begin();
  /// The server has connected again (PodPort::on_orders).
  void server_connected() { line_.call_anew(); }
  /// The cluster has sent this signal: the job is cancelled, out of time or preempted.
  void handle_signal(int signal);

 private:
  using Line = TreeFetch::Line;

  Hello hello(uint64_t stream) const;
  bool calls_again();
  void handle(const Welcome& welcome);
  void handle(const StartOrder& order);
  void handle(const StopOrder& order);
  void handle(const ChangeOrder& order);
  void handle(const ExecOrder& order);
  void handle(const AttachOrder& order);
  void handle(const ArtifactsOrder& order);
  void handle(const Farewell& farewell);
  void send(const NodeNews& news);
  bool waits_for_task() const { return task_ && !task_->has_ended(); }
  bool may_have_ended_task() const;
  void give_up();
  void remove_everything();
  void leave_if_done();
  void wait_for_programs();
  void leave_files();
  void leave(int code);

  base::EventLoop& loop_;
  AgentOptions options_;
  ServerWay& way_;
  OrderLine line_;
  base::EventLoop::Interest ending_;
  base::EventLoop::Interest before_the_kill_;
  base::EventLoop::Interest for_programs_;  ///< while it waits for them
  std::optional<int> signal_;
  std::optional<int> reported_signal_;  ///< empty: the task had ended when it came
  std::optional<std::chrono::steady_clock::time_point> task_ended_;
  std::optional<Farewell> farewell_;
  std::unique_ptr<NodeTask> task_;
};

}  // namespace muster::engine::node
