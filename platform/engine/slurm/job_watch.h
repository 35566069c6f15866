// Changes of the jobs of gangs, according to Slurm's listings: a job waits, is starting, is
// requeued, is over, or is missing. A task whose end is known, or recorded in its folder, is not
// lost with its job.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "engine/lent/gang_start.h"
#include "engine/lent/reports.h"
#include "engine/lent/task_life.h"
#include "engine/slurm/allocations.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/options.h"
#include "engine/slurm/queue.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

class SlurmJobWatch {
 public:
  SlurmJobWatch(base::EventLoop& loop, const SlurmEngineOptions& options, SlurmClient& client,
                const Callback& callback, GangTable& gangs, lent::Reports& reports,
                SlurmQueue& queue, lent::TaskLife& tasks, lent::GangStarter& starter,
                Allocations& allocations)
      : loop_(loop),
        options_(options),
        client_(client),
        callback_(callback),
        gangs_(gangs),
        reports_(reports),
        queue_(queue),
        tasks_(tasks),
        starter_(starter),
        allocations_(allocations) {}

  // The handlers of SlurmQueue.
  void take_listing(uint64_t poll, const std::vector<ListedJob>& jobs);
  void controller_away();
  void controller_back();
  void cancelled(const std::set<uint64_t>& jobs);

  /// The tasks of a gang get no order if its record cannot be read, or while Slurm has suspended its
  /// job: if all of them are to stop, their Slurm job is cancelled.
  void stop_unreachable(const GangPointer& gang);

  /// Handles the listing of one gang's job.
  void update(const GangPointer& gang, const ListedJob& listed);
  /// A task's muster-node has been disconnected for too long; returns whether to keep waiting.
  bool task_is_silent(const GangPointer& gang, const TaskPointer& task);

 private:
  void find_unsure(const GangPointer& gang, const std::vector<ListedJob>& jobs);
  void find_unreadable(const GangPointer& gang, const std::vector<ListedJob>& jobs);
  bool waits_for_accounting(const GangPointer& gang) const;
  void look_into_past(std::vector<GangPointer> missing);
  void cancel_unknown(const std::vector<ListedJob>& jobs);
  void report_state(const GangPointer& gang, std::optional<job::SlurmState> state);
  void waits(const GangPointer& gang, const ListedJob& listed);
  void runs(const GangPointer& gang, const ListedJob& listed);
  void nodes_are_late(const GangPointer& gang);
  void queued_again(const GangPointer& gang, const ListedJob& listed);
  void report_queued_again(const GangPointer& gang, const std::vector<ListedNode>& nodes);
  void over(const GangPointer& gang, const ListedJob& listed);
  bool waits_for_last_reports(const GangPointer& gang, const ListedJob& listed);
  void settle_over(const GangPointer& gang);
  void vanished(const GangPointer& gang);
  void take_away(const GangPointer& gang, AllocationRevoked taken);
  std::string callback_address() const;
  std::vector<std::string> script_output(const HeldGang& gang) const;

  base::EventLoop& loop_;
  const SlurmEngineOptions& options_;
  SlurmClient& client_;
  const Callback& callback_;
  GangTable& gangs_;
  lent::Reports& reports_;
  SlurmQueue& queue_;
  lent::TaskLife& tasks_;
  lent::GangStarter& starter_;
  Allocations& allocations_;
  bool is_looking_into_past_ = false;
  bool is_accounting_away_ = false;
};

}  // namespace muster::engine::slurm
