// The connections of muster-nodes: to which task each belongs, and the orders that a node gets when
// it (re)connects.
//
// On the loop's thread.
#pragma once

#include <memory>

#include "base/event_loop.h"
#include "engine/lent/gang_start.h"
#include "engine/lent/gang_table.h"
#include "engine/lent/lender.h"
#include "engine/lent/task_life.h"
#include "engine/lent/task_orders.h"
#include "engine/node/connection.h"

namespace muster::engine::lent {

class NodeLines {
 public:
  using Line = std::shared_ptr<node::NodeConnection>;

  NodeLines(base::EventLoop& loop, const LentOptions& options, const Lender& lender,
            GangTable& gangs, TaskOrders& orders, TaskLife& tasks, GangStarter& starter)
      : loop_(loop),
        options_(options),
        lender_(lender),
        gangs_(gangs),
        orders_(orders),
        tasks_(tasks),
        starter_(starter) {
    tasks_.on_hang_up(
        [this](const GangPointer& gang, const TaskPointer& task) { lost(gang, task); });
  }

  /// Takes the connection of a muster-node that has proved that it has the gang's key, or drops it.
  void connected(Line line);
  /// Asks the engine whether to give the task up if its muster-node stays away for too long.
  void watch_silence(const GangPointer& gang, const TaskPointer& task);

 private:
  void greeted(const GangPointer& gang, const TaskPointer& task, Line line);
  void listen(const GangPointer& gang, const TaskPointer& task);
  void continue_started(const GangPointer& gang, const TaskPointer& task);
  void lost(const GangPointer& gang, const TaskPointer& task);

  base::EventLoop& loop_;
  const LentOptions& options_;
  const Lender& lender_;
  GangTable& gangs_;
  TaskOrders& orders_;
  TaskLife& tasks_;
  GangStarter& starter_;
};

}  // namespace muster::engine::lent
