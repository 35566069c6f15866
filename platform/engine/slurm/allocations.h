// Allocations: requesting one from Slurm for a gang, reporting it, and giving it back.
//
// A request is written to disk before it is submitted, so that it is never submitted twice: after a
// crash, or a lost answer, the record's comment finds the Slurm job in the queue (job_watch.h).
//
// An allocation that is no longer needed ends by itself if all its muster-nodes can be ordered to
// leave; then Slurm's accounting keeps how its tasks ended. Otherwise the Slurm job is cancelled.
// The record stays until Slurm has nothing left of the job, so a restarted server continues.
//
// On the loop's thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/event_loop.h"
#include "base/random.h"
#include "engine/lent/gang_start.h"
#include "engine/lent/reports.h"
#include "engine/lent/task_life.h"
#include "engine/node/brief.h"
#include "engine/slurm/gang_table.h"
#include "engine/slurm/options.h"
#include "engine/slurm/queue.h"
#include "engine/slurm/slurm_client.h"

namespace muster::engine::slurm {

/// Where muster-nodes call, or why they cannot.
using Callback = std::optional<Result<node::CallbackSite>>;

class Allocations {
 public:
  /// Handles the latest listing of a gang again.
  using Listed = std::function<void(const GangPointer&, const ListedJob&)>;

  Allocations(base::EventLoop& loop, const SlurmEngineOptions& options, SlurmClient& client,
              const Callback& callback, GangTable& gangs, lent::Reports& reports, SlurmQueue& queue,
              const ClusterNodes& cluster, lent::TaskLife& tasks, lent::GangStarter& starter)
      : loop_(loop),
        options_(options),
        client_(client),
        callback_(callback),
        gangs_(gangs),
        reports_(reports),
        queue_(queue),
        cluster_(cluster),
        tasks_(tasks),
        starter_(starter) {}

  void listen(Listed listed) { listed_ = std::move(listed); }

  void request(const GangId& gang, AllocationRequest request);
  /// Submits the gang's job, if Slurm can have it now.
  void submit(const GangPointer& gang);
  void submit_all_unsent();
  /// Reports the allocation once every muster-node of it has called.
  void report_if_complete(const GangPointer& gang);

  void give_back(const GangId& gang);
  void cancel(const GangPointer& gang);
  /// Removes a gang of which Slurm has nothing left, and requests its next allocation, if any.
  void forget(const GangPointer& gang);

  /// Why a gang waits while the controller does not answer.
  AllocationPending away_waits(const HeldGang& gang) const;

 private:
  void request_new(const GangId& gang, AllocationRequest request, std::vector<uint64_t> former);
  void resume(const GangPointer& gang, AllocationRequest request);
  bool take_over(const GangId& gang, const AllocationRequest& request,
                 const Submission& submission);
  void save_and_submit(const GangPointer& gang);
  bool drop_unknown_nodes(std::vector<std::string>& names) const;
  void submitted(const GangPointer& gang, Result<uint64_t> answer);
  void submit_later(const GangPointer& gang);
  void refuse(const GangPointer& gang, base::Error error);
  Submission complete(const HeldGang& gang, Submission submission) const;
  size_t expected_tasks(const HeldGang& gang) const;
  std::vector<AllocatedPlace> places_of(const HeldGang& gang) const;
  void end_job(const GangPointer& gang);

  base::EventLoop& loop_;
  const SlurmEngineOptions& options_;
  SlurmClient& client_;
  const Callback& callback_;
  GangTable& gangs_;
  lent::Reports& reports_;
  SlurmQueue& queue_;
  const ClusterNodes& cluster_;
  lent::TaskLife& tasks_;
  lent::GangStarter& starter_;
  Listed listed_;
  base::SystemRandom random_;
};

}  // namespace muster::engine::slurm
