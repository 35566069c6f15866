// The connections of muster-nodes: to which gang and task each belongs, and what a node that has
// (re)connected is sent. Muster-nodes of an earlier run of the same Slurm job are rejected.
//
// On the loop's thread.
#pragma once

#include <memory>
#include <optional>

#include "base/event_loop.h"
#include "engine/node/connection.h"
#include "engine/slurm/allocations.h"
#include "engine/slurm/gang_start.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/job_watch.h"
#include "engine/slurm/options.h"
#include "engine/slurm/queue.h"
#include "engine/slurm/task_life.h"
#include "engine/slurm/task_orders.h"

namespace muster::engine::slurm {

class NodeLines {
 public:
  NodeLines(base::EventLoop& loop, const SlurmEngineOptions& options, GangTable& gangs,
            SlurmQueue& queue, TaskOrders& orders, TaskLife& tasks, GangStarter& starter,
            Allocations& allocations, SlurmJobWatch& jobs)
      : loop_(loop),
        options_(options),
        gangs_(gangs),
        queue_(queue),
        orders_(orders),
        tasks_(tasks),
        starter_(starter),
        allocations_(allocations),
        jobs_(jobs) {}

  /// The handlers for node::open_callback_site().
  node::HubOptions hub_options();
  /// Gives the job up if the task's muster-node stays away for too long.
  void watch_silence(const GangPointer& gang, const TaskPointer& task);

 private:
  using Line = std::shared_ptr<node::NodeConnection>;

  void connected(Line line);
  bool belongs_to(const GangPointer& gang, const node::Hello& hello);
  void greeted(const GangPointer& gang, const TaskPointer& task, Line line);
  void listen(const GangPointer& gang, const TaskPointer& task);
  void continue_started(const GangPointer& gang, const TaskPointer& task);
  void lost(const GangPointer& gang, const TaskPointer& task);

  base::EventLoop& loop_;
  const SlurmEngineOptions& options_;
  GangTable& gangs_;
  SlurmQueue& queue_;
  TaskOrders& orders_;
  TaskLife& tasks_;
  GangStarter& starter_;
  Allocations& allocations_;
  SlurmJobWatch& jobs_;
};

}  // namespace muster::engine::slurm
