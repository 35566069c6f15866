// Starting tasks: each muster-node gets an order and reports whether its task is up. All tasks of
// one start() come up, or none is left. An order that has never arrived is sent again when its
// muster-node reconnects.
//
// On the loop's thread.
#pragma once

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/folder/trees.h"
#include "engine/lent/gang_table.h"
#include "engine/lent/lender.h"
#include "engine/lent/reports.h"
#include "engine/lent/task_life.h"
#include "engine/lent/task_orders.h"

namespace muster::engine::lent {

class GangStarter {
 public:
  GangStarter(const LentOptions& options, const Lender& lender, JobTrees& trees, GangTable& gangs,
              Reports& reports, TaskOrders& orders, TaskLife& tasks)
      : options_(options),
        lender_(lender),
        trees_(trees),
        gangs_(gangs),
        reports_(reports),
        orders_(orders),
        tasks_(tasks) {}

  /// `hosts`: TaskPlan::hosts of all plans, which then have none: one list instead of a copy for
  /// each task of a large gang.
  void start(const GangId& gang, std::vector<launch::TaskPlan> plans, Engine::Done done,
             std::vector<std::pair<std::string, std::string>> hosts = {});
  /// Sends the order again to a muster-node that has never received it.
  void order_again(const GangPointer& gang, const TaskPointer& task);
  /// Fails the starts of these tasks, since all tasks of a start come up or none.
  void stop(const GangId& gang, const std::vector<std::string>& tasks);
  /// Fails all starts of the gang: no muster-node will answer any more.
  void give_up(const GangPointer& gang, const base::Error& error);

 private:
  using StartPointer = std::shared_ptr<GangStart>;

  Result<void> check(const GangPointer& gang, const std::vector<launch::TaskPlan>& plans) const;
  void order_all(const StartPointer& start);
  Result<void> prepare(const GangPointer& gang, const launch::TaskPlan& plan);
  void send_order(const GangPointer& gang, const TaskPointer& task);
  void expect_trees(const GangPointer& gang, node::StartOrder& order);
  void answered(const StartPointer& start, const TaskPointer& task,
                const std::optional<base::Error>& error);
  void fail(const StartPointer& start, base::Error error);
  void settle(const StartPointer& start);
  void undo(const StartPointer& start);
  void succeed(const StartPointer& start);

  const LentOptions& options_;
  const Lender& lender_;
  JobTrees& trees_;
  GangTable& gangs_;
  Reports& reports_;
  TaskOrders& orders_;
  TaskLife& tasks_;
};

}  // namespace muster::engine::lent
