// Properties that hold in a random world after any events.
#include <algorithm>

#include "control/gang_tasks.h"
#include "control/random_world.h"
#include "engine/engine.h"
#include "launch/elastic.h"

namespace muster::control {

using engine::GangId;
using job::Job;
using job::Kind;
using job::Phase;

const Job* RandomWorld::job_of(const std::string& id) const {
  for (const Job* job : controller_->jobs().list()) {
    if (job->id == id) return job;
  }
  return nullptr;
}

const engine::Node* RandomWorld::node_named(const std::string& name) const {
  for (const engine::Node& node : engine_->offered) {
    if (node.name == name) return &node;
  }
  return nullptr;
}

std::vector<std::string> RandomWorld::leaves() const {
  return {"default", "team-a", "team-b", "lab-a", "lab-b", "extra"};
}

void RandomWorld::look_at_start(const GangId& gang, const std::vector<launch::TaskPlan>& tasks) {
  const Job* const job = job_of(gang.job_id);
  ASSERT_NE(job, nullptr);
  EXPECT_EQ(job->attempt, gang.attempt);
  EXPECT_FALSE(job->suspended) << job->spec.name;
  EXPECT_FALSE(job->stop_requested) << job->spec.name;
  EXPECT_FALSE(job->eviction) << job->spec.name;
  for (const auto& [other, task] : engine_->running) {
    EXPECT_FALSE(other.job_id == gang.job_id && other.attempt != gang.attempt)
        << job->spec.name << ": " << task << " of attempt " << other.attempt << " still runs";
  }
  // After a failed start no trace of it is left.
  const bool fails = std::any_of(tasks.begin(), tasks.end(), [&](const launch::TaskPlan& plan) {
    return engine_->start_errors.contains(plan.task);
  });
  for (const launch::TaskPlan& plan : tasks) {
    EXPECT_TRUE(fails ? !ever_started_.contains({gang, plan.task})
                      : ever_started_.insert({gang, plan.task}).second)
        << job->spec.name << "/" << gang.attempt << " " << plan.task << " twice";
    const auto task = std::find_if(job->tasks.begin(), job->tasks.end(),
                                   [&](const job::Task& one) { return one.name == plan.task; });
    ASSERT_NE(task, job->tasks.end());
    EXPECT_EQ(task->node, plan.node);
    at_cluster_ ? look_at_given(*job, *task) : look_at_allocation(*job, *task);
  }
  if (!at_cluster_) look_at_limit(*job);
}

void RandomWorld::look_at_allocation(const Job& job, const job::Task& task) {
  const engine::Node* const node = node_named(task.node);
  ASSERT_NE(node, nullptr) << job.spec.name << " " << task.name << " on " << task.node;
  EXPECT_FALSE(engine::is_silent(*node)) << job.spec.name << " " << task.name;
  for (const int device : task.devices) {
    EXPECT_LT(device, node->gpus) << job.spec.name << " " << task.name;
  }
  if (task.role == job::TaskRole::kLauncher || job.spec.resources.cpu_milli == 0) return;
  int64_t cpu = 0;
  for (const auto& [gang, name] : engine_->running) {
    if (engine_->plans.at({gang, name}).node != task.node || name == "launcher") continue;
    const Job* const other = job_of(gang.job_id);
    if (other != nullptr) cpu += other->spec.resources.cpu_milli;
  }
  EXPECT_LE(cpu + job.spec.resources.cpu_milli, node->cpu_milli) << job.spec.name;
}

void RandomWorld::look_at_limit(const Job& job) {
  const bool may_have_shrunk = job.spec.scheduling.min_workers.has_value();
  if (may_have_shrunk) return;  // it keeps its places without a new request
  for (const std::string& project : {job.spec.project, std::string("lab")}) {
    const auto limit = fixed_limits_.find(project);
    if (limit == fixed_limits_.end()) continue;
    if (project == "lab" && !job.spec.project.starts_with("lab")) continue;
    std::map<std::string, int64_t> by_pool;
    for (const Job* other : controller_->jobs().list()) {
      // A job that is being evicted does not count: its successor may start before it has ended.
      const bool counts = other->spec.project.starts_with(project) && !other->eviction;
      if (!counts || job::is_final(other->phase)) continue;
      for (const job::Task& task : other->tasks) {
        const engine::Node* const node = node_named(task.node);
        if (node == nullptr || task.left) continue;  // as for evicted jobs, or the node was removed
        by_pool[node->pool] += static_cast<int64_t>(task.devices.size()) * task.gpu_share_milli;
      }
    }
    for (const auto& [pool, gpus] : by_pool) {
      EXPECT_LE(gpus, limit->second) << project << " in pool " << pool << " by " << job.spec.name;
    }
  }
}

void RandomWorld::look() {
  for (const auto& [gang, task] : engine_->running) {
    const Job* const job = job_of(gang.job_id);
    ASSERT_NE(job, nullptr) << gang.job_id << " is gone, and its " << task << " runs";
    EXPECT_EQ(job->attempt, gang.attempt) << job->spec.name << " " << task;
    const bool holds_place = job->phase == Phase::kStarting || job->phase == Phase::kRunning;
    EXPECT_TRUE(holds_place) << job->spec.name << " " << task << " runs; "
                             << job::to_string(job->phase);
  }
  PhaseCounts all;
  PhaseCounts top;
  for (const Job* job : controller_->jobs().list()) {
    look_at_gang(*job);
    ++job::count_of_phase(all, job->phase);
    if (!job::is_member(job::facts_of(*job))) ++job::count_of_phase(top, job->phase);
  }
  EXPECT_EQ(controller_->jobs().counts(true), all);
  EXPECT_EQ(controller_->jobs().counts(false), top);
  if (!at_cluster_) look_at_devices();
}

void RandomWorld::look_at_gang(const Job& job) {
  if (job.phase == Phase::kQueued) {
    for (const job::Task& task : job.tasks) {
      EXPECT_TRUE(task.node.empty() && task.phase == job::TaskPhase::kPending) << job.spec.name;
    }
  }
  look_at_seats(job);
  if (job.spec.kind != Kind::kMpi || job.phase != Phase::kRunning) return;
  const GangId gang{job.id, job.attempt};
  const bool launcher_runs = engine_->running.count({gang, "launcher"}) > 0;
  if (!launcher_runs || engine_->stopping.count({gang, "launcher"}) > 0) return;
  if (engine_->has_news_of(gang)) return;
  // A gang may have fewer workers for a moment, until a new one joins.
  if (launch::resizes_live(job.spec)) return;
  const auto workers = std::count_if(
      engine_->running.begin(), engine_->running.end(),
      [&](const TaskKey& task) { return task.first == gang && task.second.starts_with("worker"); });
  EXPECT_GE(workers, job.spec.scheduling.min_workers.value_or(job.spec.workers)) << job.spec.name;
}

/// No two tasks share a seat, and a task that has left and ended has no seat.
void RandomWorld::look_at_seats(const Job& job) {
  std::set<int> taken;
  int workers = 0;
  for (const job::Task& task : job.tasks) {
    EXPECT_TRUE(!task.left || launch::resizes_live(job.spec)) << job.spec.name << " " << task.name;
    if (!holds_place(task)) continue;
    EXPECT_TRUE(taken.insert(task.seat).second)
        << job.spec.name << ": two in seat " << task.seat << ", " << task.name << " is one";
    workers += task.role == job::TaskRole::kWorker;
  }
  EXPECT_LE(workers, job.spec.workers) << job.spec.name;
  if (job.phase == Phase::kQueued || job::is_final(job.phase)) {
    EXPECT_EQ(job.sealed_seed, "") << job.spec.name;
  }
}

/// After all effects of the events, the launcher of a gang that has resized has been given exactly
/// the running workers.
void RandomWorld::look_at_sent_members(const Job& job) {
  const GangId gang{job.id, job.attempt};
  const bool is_disturbed = job.eviction || job.stop_requested || job.failure;
  if (job.phase != Phase::kRunning || is_disturbed || !launch::resizes_live(job.spec)) return;
  if (engine_->running.count({gang, "launcher"}) == 0) return;
  const auto hostfile = engine_->hostfiles.find({gang, "launcher"});
  if (hostfile == engine_->hostfiles.end()) return;
  std::string members;
  for (const job::Task& task : job.tasks) {
    const bool is_member =
        task.role == job::TaskRole::kWorker && !task.left && task.phase == job::TaskPhase::kRunning;
    if (is_member) members += task.hostname + " slots=1\n";
  }
  EXPECT_EQ(hostfile->second, members) << job.spec.name;
}

void RandomWorld::look_at_devices() {
  std::map<std::pair<std::string, int>, int> held;
  for (const Job* job : controller_->jobs().list()) {
    if (job::is_final(job->phase)) continue;
    for (const job::Task& task : job->tasks) {
      if (task.phase == job::TaskPhase::kEnded) continue;
      for (const int device : task.devices) held[{task.node, device}] += task.gpu_share_milli;
    }
  }
  for (const auto& [device, share] : held) {
    EXPECT_LE(share, 1000) << device.first << " " << device.second;
  }
  for (const job::Node& node : controller_->nodes().list()) {
    for (const job::Device& device : node.devices) {
      const auto share = held.find({node.name, device.index});
      const int taken = share == held.end() ? 0 : share->second;
      // Also on a node that has lost GPUs which tasks still hold.
      EXPECT_GE(device.free_milli, 0) << node.name << " " << device.index;
      EXPECT_LE(device.free_milli, std::max(0, 1000 - taken)) << node.name << " " << device.index;
    }
  }
}

void RandomWorld::look_at_standing() {
  if (!nodes_are_steady_) return;
  std::map<std::string, int64_t> held;
  for (const Job* job : controller_->jobs().list()) {
    if (job::is_final(job->phase)) continue;
    // A job that is being evicted does not count; the job that gets its resources counts already.
    if (job->eviction) return;
    // Resources that were offered to a live gang are held before a worker is sent there.
    const bool runs_undisturbed = job->phase == Phase::kRunning && !job->stop_requested;
    const bool is_live = launch::resizes_live(job->spec) && job->phase != Phase::kQueued;
    if (is_live && (!runs_undisturbed || job->failure)) return;
    for (const job::Task& task : job->tasks) {
      if (task.left && holds_place(task)) return;  // as for evicted jobs
      if (!holds_place(task)) continue;
      held[job->spec.project] += static_cast<int64_t>(task.devices.size()) * task.gpu_share_milli;
    }
  }
  for (const std::string& project : leaves()) {
    const auto status = controller_->projects().status(project);
    if (!status || project == "team-a") continue;  // team-a may have a project below it
    EXPECT_EQ(status->allocated.gpu_milli, held[project]) << project;
  }
}

}  // namespace muster::control
