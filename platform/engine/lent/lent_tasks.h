// The tasks of gangs on nodes that a cluster lends, held there by muster-nodes (node/agent.h). An
// engine decides where a gang runs and whether its allocation still holds; these parts do the rest.
// Each owns the data of its topic:
//
//   gang_table.h   the gangs, their records on disk and their folders
//   node_lines.h   the connections of muster-nodes
//   gang_start.h   starting tasks, all or none
//   task_life.h    reports and ends of tasks
//   task_orders.h  file changes, programs, and the streams of muster-nodes
//   reports.h      what the engine reports to its listeners
//
// On the loop's thread.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "engine/engine.h"
#include "engine/folder/trees.h"
#include "engine/lent/gang_start.h"
#include "engine/lent/gang_table.h"
#include "engine/lent/lender.h"
#include "engine/lent/node_lines.h"
#include "engine/lent/reports.h"
#include "engine/lent/task_life.h"
#include "engine/lent/task_orders.h"

namespace muster::engine::lent {

struct LentTasks {
  /// The engine fills in `lender` before it uses the parts.
  LentTasks(base::EventLoop& its_loop, LentOptions its_options, GangTable::Options table);

  // As in Engine.
  /// `hosts`: as in GangStarter::start().
  void start(const GangId& gang, std::vector<launch::TaskPlan> plans, Engine::Done done,
             std::vector<std::pair<std::string, std::string>> hosts = {});
  void stop(const GangId& gang, const std::vector<std::string>& names, StopMode mode);
  /// Takes over a task of an earlier server. Its muster-node reconnects by itself, or the engine
  /// connects to it.
  AdoptionResult adopt(const GangId& gang, const std::string& name);
  void scrub(const GangId& gang);
  Result<std::unique_ptr<LogCursor>> open_log(const GangId& gang, const std::string& task) const;
  std::shared_ptr<void> watch_log(const GangId& gang, const std::string& task,
                                  std::function<void()> grown);
  MetricReader open_metrics(const GangId& gang, const std::string& task) const;
  std::optional<std::filesystem::path> artifacts_folder(const std::string& job_id) const;
  std::string mpi_of(const GangId& gang, const std::string& task) const;
  std::vector<RankPlace> ranks(const GangId& gang, const std::vector<std::string>& tasks) const;

  base::EventLoop& loop;
  const LentOptions options;
  Lender lender;
  JobTrees trees{loop, options.folder, options.unpack_tree};
  Reports reports{loop};
  GangTable gangs;
  TaskOrders orders{loop, lender, gangs, reports};
  TaskLife tasks{loop, options, lender, gangs, reports, orders};
  GangStarter starter{options, lender, trees, gangs, reports, orders, tasks};
  NodeLines lines{loop, options, lender, gangs, orders, tasks, starter};

 private:
  AdoptionResult adopt_started(const GangPointer& gang, const TaskPointer& task);
};

}  // namespace muster::engine::lent
