// What the shared parts of lent/ ask the Slurm engine (lent/lender.h): to which gang a muster-node
// belongs that has called, and whether Slurm may still list why a task ended. Muster-nodes of an
// earlier run of the same Slurm job are rejected.
//
// On the loop's thread.
#pragma once

#include "engine/lent/lender.h"
#include "engine/lent/lent_tasks.h"
#include "engine/node/connection.h"
#include "engine/slurm/allocations.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/job_watch.h"
#include "engine/slurm/queue.h"

namespace muster::engine::slurm {

class NodeCalls {
 public:
  NodeCalls(GangTable& gangs, SlurmQueue& queue, Allocations& allocations, SlurmJobWatch& jobs)
      : gangs_(gangs), queue_(queue), allocations_(allocations), jobs_(jobs) {}

  /// The answers of this engine.
  lent::Lender lender();
  /// The handlers for node::open_callback_site().
  node::HubOptions hub_options(lent::NodeLines& lines);

 private:
  lent::GangPointer gang_of(const node::NodeConnection& line);
  bool belongs_to(const GangPointer& gang, const node::Hello& hello);
  void lost(const GangPointer& gang, const TaskPointer& task);
  bool may_explain(const GangPointer& gang, const TaskPointer& task) const;

  GangTable& gangs_;
  SlurmQueue& queue_;
  Allocations& allocations_;
  SlurmJobWatch& jobs_;
};

}  // namespace muster::engine::slurm
