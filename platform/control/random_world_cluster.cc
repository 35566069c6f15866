// A random world on a cluster that grants and revokes allocations as it decides.
#include <array>

#include "control/random_world.h"

namespace muster::control {

using engine::AllocationGranted;
using engine::AllocationRequest;
using engine::AllocationRevoked;
using engine::GangId;
using job::Job;
using job::Phase;

namespace {

constexpr std::array kReasons{AllocationRevoked::Why::kEvicted, AllocationRevoked::Why::kEvicted,
                              AllocationRevoked::Why::kNodeLost, AllocationRevoked::Why::kCancelled,
                              AllocationRevoked::Why::kFailed};

}  // namespace

// --- the acts of the cluster

void RandomWorld::the_cluster_acts() {
  if (engine_->requests.empty()) return;
  const GangId gang = dice_.any_of(engine_->requests).first;
  const auto given = engine_->given.find(gang);
  if (given == engine_->given.end()) return the_cluster_answers(gang);
  switch (dice_.below(4)) {
    case 0:
      return engine_->report_allocation(
          gang, engine::AllocationStateChange{dice_.one_in(2) ? std::optional(job::SlurmState{})
                                                              : std::nullopt});
    case 1:
      return engine_->report_allocation(gang, AllocationGranted(given->second));
    default:
      the_cluster_takes(gang, {.why = dice_.any_of(kReasons),
                               .end = job::SlurmEnded{.text = "Slurm took its room"}});
  }
}

void RandomWorld::the_cluster_answers(const GangId& gang) {
  switch (dice_.below(10)) {
    case 0:
      engine_->requests.erase(gang);
      return engine_->report_allocation(gang,
                                        engine::AllocationRefused{{.what = "Slurm refuses it"}});
    case 1:
      return the_cluster_takes(gang, {.why = dice_.any_of(kReasons),
                                      .end = job::SlurmEnded{.text = "a node never called"}});
    case 2:
    case 3:
      return engine_->report_allocation(
          gang,
          engine::AllocationPending{
              .reason = job::SlurmWaits{.reason = dice_.one_in(2) ? "Resources" : "Priority"}});
    default:
      the_cluster_gives(gang);
  }
}

/// On whichever nodes have the devices; where they do not suffice, it waits on.
void RandomWorld::the_cluster_gives(const GangId& gang) {
  const AllocationRequest& request = engine_->requests.at(gang);
  std::map<std::string, std::vector<int>> free;
  for (const engine::Node& node : engine_->offered) free[node.name] = free_devices(node.name);
  AllocationGranted room{.places = {}, .slurm_job = 17};
  for (const engine::TaskRequest& task : request.tasks) {
    const auto needed =
        static_cast<size_t>(task.resources.gpu_share_milli > 0 ? 1 : task.resources.gpus);
    const auto found = std::find_if(free.begin(), free.end(),
                                    [&](const auto& node) { return node.second.size() >= needed; });
    if (found == free.end() || (task.may_be_missing && dice_.one_in(4))) {
      if (!task.may_be_missing)
        return engine_->report_allocation(
            gang, engine::AllocationPending{.reason = job::Remark{"waits"}});
      break;
    }
    auto& devices = found->second;
    const auto end = devices.begin() + static_cast<std::ptrdiff_t>(needed);
    room.places.push_back(
        {.task = task.task, .node = found->first, .devices = {devices.begin(), end}});
    devices.erase(devices.begin(), end);
  }
  engine_->given[gang] = room;
  engine_->report_allocation(gang, room);
}

std::vector<int> RandomWorld::free_devices(const std::string& node) const {
  std::set<int> free;
  for (const engine::Node& one : engine_->offered) {
    for (int device = 0; one.name == node && device < one.gpus; ++device) free.insert(device);
  }
  for (const auto& [gang, room] : engine_->given) {
    for (const engine::AllocatedPlace& place : room.places) {
      if (place.node != node) continue;
      for (const int device : place.devices) free.erase(device);
    }
  }
  return {free.begin(), free.end()};
}

/// The tasks in the allocation are lost.
void RandomWorld::the_cluster_takes(const GangId& gang, AllocationRevoked taken) {
  engine_->requests.erase(gang);
  engine_->given.erase(gang);
  engine_->report_allocation(gang, taken);
  const std::set<TaskKey> running = engine_->running;
  for (const auto& [of, task] : running) {
    if (of == gang) engine_->end_for_good(of, task, {.lost = true});
  }
}

void RandomWorld::the_cluster_loses(const std::string& node) {
  const auto given = engine_->given;
  for (const auto& [gang, room] : given) {
    const bool is_there = std::any_of(room.places.begin(), room.places.end(),
                                      [&](const auto& place) { return place.node == node; });
    if (!is_there) continue;
    the_cluster_takes(gang, {.why = AllocationRevoked::Why::kNodeLost,
                             .end = job::SlurmEnded{.text = "NODE_FAIL"},
                             .node = node});
  }
  std::vector<engine::Node> rest = engine_->offered;
  std::erase_if(rest, [&](const engine::Node& one) { return one.name == node; });
  engine_->set_nodes(std::move(rest));
}

void RandomWorld::the_cluster_serves_all() {
  const auto rooms = engine_->requests;
  for (const auto& [gang, request] : rooms) {
    const bool waits = engine_->requests.contains(gang) && !engine_->given.contains(gang);
    if (waits) the_cluster_gives(gang);
  }
}

// --- properties that hold

/// Each requested job is on the disk as a waiting job.
void RandomWorld::look_at_what_is_asked(const GangId& gang) {
  const auto stored = store_.load();
  ASSERT_TRUE(stored);
  const auto found = std::find_if(stored->jobs.begin(), stored->jobs.end(),
                                  [&](const Job& job) { return job.id == gang.job_id; });
  ASSERT_NE(found, stored->jobs.end()) << gang.job_id;
  EXPECT_EQ(found->phase, Phase::kQueued) << found->spec.name;
  EXPECT_FALSE(found->suspended) << found->spec.name;
  EXPECT_EQ(found->attempt + 1, gang.attempt) << found->spec.name;
}

void RandomWorld::look_at_what_is_given_back(const GangId& gang) {
  for (const auto& [of, task] : engine_->running) {
    EXPECT_NE(of, gang) << task << " runs in the room that is given back";
  }
}

/// Each task runs on the node that the allocation assigns to it, under its own name.
void RandomWorld::look_at_given(const Job& job, const job::Task& task) {
  const auto given = engine_->given.find({job.id, job.attempt});
  ASSERT_NE(given, engine_->given.end()) << job.spec.name;
  const auto& places = given->second.places;
  const auto place = std::find_if(places.begin(), places.end(),
                                  [&](const auto& one) { return one.task == task.name; });
  ASSERT_NE(place, places.end()) << job.spec.name << " " << task.name;
  EXPECT_EQ(task.node, place->node) << job.spec.name << " " << task.name;
  EXPECT_EQ(task.devices, place->devices) << job.spec.name << " " << task.name;
}

/// No job has two allocations, or an allocation without need; each running job has one.
void RandomWorld::look_at_allocations() {
  for (const auto& [gang, task] : engine_->running) {
    EXPECT_TRUE(engine_->given.contains(gang)) << gang.job_id << "/" << gang.attempt << " " << task;
  }
  const auto stored = store_.load();
  for (const auto& [gang, request] : engine_->requests) {
    const Job* const job = job_of(gang.job_id);
    ASSERT_NE(job, nullptr) << request.job;
    const bool is_on_disk = std::any_of(stored->jobs.begin(), stored->jobs.end(),
                                        [&](const Job& one) { return one == *job; });
    if (!is_on_disk) continue;  // it has had no effect yet
    EXPECT_FALSE(job::is_final(job->phase)) << request.job;
    const bool waits = job->phase == Phase::kQueued;
    EXPECT_FALSE(waits && job->suspended) << request.job;
    EXPECT_EQ(gang.attempt, job->attempt + waits) << request.job;
  }
}

}  // namespace muster::control
