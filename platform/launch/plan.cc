#include "launch/plan.h"

#include "launch/gang.h"
#include "launch/plan_task.h"

namespace muster::launch {

using base::Result;
using job::Job;
using job::TaskRole;

namespace {

/// Parameter servers, then workers, then the leader: a task starts after the tasks that it connects
/// to. An evaluator waits for checkpoints, however long.
GangPlan plan_stages(const GangContext& gang) {
  GangPlan plan;
  for (const TaskRole role :
       {TaskRole::kParameterServer, TaskRole::kWorker, TaskRole::kEvaluator}) {
    for (size_t i = 0; i < gang.tasks.size(); ++i) {
      if (gang.tasks[i]->role == role) plan.first.push_back(plan_task(gang, i));
    }
  }
  plan.then.push_back(plan_task(gang, 0));
  return plan;
}

}  // namespace

Result<GangPlan> plan_gang(const Job& job, const GangSeed& seed, const Site& site) {
  MUSTER_TRY(const GangContext gang, gather_gang(job, seed, site));
  return plan_stages(gang);
}

}  // namespace muster::launch
