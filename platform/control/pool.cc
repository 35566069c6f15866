// Projects and nodes: what the scheduler shares out, and among whom.
#include <algorithm>

#include "base/text.h"
#include "control/controller.h"
#include "control/past_use.h"
#include "control/run.h"
#include "control/schedule_view.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Phase;
using job::Task;
using job::TaskPhase;

// --- nodes

void Controller::read_nodes() {
  std::vector<engine::Node> now = parts_.engine.nodes();
  std::sort(now.begin(), now.end(),
            [](const auto& left, const auto& right) { return left.name < right.name; });
  const auto is_gone = [&](const engine::Node& old) {
    return std::none_of(now.begin(), now.end(),
                        [&](const engine::Node& node) { return node.name == old.name; });
  };
  std::vector<std::string> gone;
  for (const engine::Node& old : nodes_) {
    if (is_gone(old)) gone.push_back(old.name);
  }
  nodes_ = std::move(now);
  for (const engine::Node& node : nodes_) {
    scheduler_.set_node(to_schedule(node, cordoned_.count(node.name) > 0));
  }
  for (const std::string& name : gone) lose_node(name);
  read_pools();
  tell_projects();
}

void Controller::read_pools() {
  std::set<std::string> others;
  for (const engine::Node& node : nodes_) others.insert(node.pool);
  std::vector<std::string> pools{std::string(job::kDefaultPool)};
  others.erase(pools.front());
  pools.insert(pools.end(), others.begin(), others.end());
  if (std::exchange(pools_, std::move(pools)) == pools_) return;
  // Whoever waits and has named no pool may go to any that there is now.
  for (const uint64_t sequence : waiting_) {
    Entry& entry = *entries_.at(sequence);
    const bool takes_any = entry.job.spec.scheduling.node_pools.empty();
    if (takes_any && entry.kept.empty()) queue_anew(entry);
  }
}

/// Nobody will report how the tasks there end.
void Controller::lose_node(const std::string& name) {
  std::vector<engine::TaskReport> losses;
  for (const auto& [sequence, entry] : entries_) {
    if (!entry->run) continue;
    for (const Task& task : entry->job.tasks) {
      if (task.node != name || task.phase == TaskPhase::kEnded) continue;
      losses.push_back(
          {.gang = engine_gang(entry->job),
           .task = task.name,
           .what = engine::TaskEnded{.status = {.lost = true}, .time = parts_.clock.now()}});
    }
  }
  leave_node(name);
  for (const engine::TaskReport& loss : losses) hear(loss);
  scheduler_.remove_node(name);
}

/// Nobody who is being evicted, or was in part, keeps a place there.
void Controller::leave_node(const std::string& name) {
  const auto is_there = [&](const auto& place) { return place && place->node == name; };
  for (const auto& [sequence, entry] : entries_) {
    const auto places = entry->run ? places_of(entry->job) : entry->kept;
    if (std::none_of(places.begin(), places.end(), is_there)) continue;
    if (entry->run) {
      entry->run->goes_whole = true;
    } else {
      queue_anew(*entry);
    }
  }
}

std::vector<job::Node> Controller::nodes() const {
  std::vector<job::Node> views;
  for (const engine::Node& node : nodes_) views.push_back(view_of(node));
  return views;
}

job::Node Controller::view_of(const engine::Node& node) const {
  const schedule::Amounts free = scheduler_.free(node.name);
  job::Node view{.name = node.name,
                 .pool = node.pool,
                 .cpu_milli = node.cpu_milli,
                 .cpu_milli_free = free.cpu_milli,
                 .memory_bytes = node.memory_bytes,
                 .memory_bytes_free = free.memory_bytes,
                 .topology = node.topology,
                 .labels = node.labels};
  const std::vector<int> free_devices = scheduler_.free_devices(node.name);
  for (int i = 0; i < static_cast<int>(free_devices.size()); ++i) {
    view.devices.push_back({.index = i,
                            .model = node.gpu_model,
                            .memory_bytes = node.gpu_memory_bytes,
                            .free_milli = free_devices[static_cast<size_t>(i)]});
  }
  for (const auto& [sequence, entry] : entries_) {
    if (!entry->run) continue;
    for (const Task& task : entry->job.tasks) {
      if (task.node != node.name) continue;
      const std::string& name = entry->job.spec.name;
      if (view.jobs.empty() || view.jobs.back() != name) view.jobs.push_back(name);
      for (const int device : task.devices) {
        if (device < static_cast<int>(view.devices.size())) {
          view.devices[static_cast<size_t>(device)].jobs.push_back(name);
        }
      }
    }
  }
  const bool cordoned = cordoned_.count(node.name) > 0;
  view.state = !cordoned ? "ready" : view.jobs.empty() ? "cordoned" : "draining";
  return view;
}

Result<engine::Node> Controller::engine_node(const std::string& name) const {
  std::vector<std::string> names;
  for (const engine::Node& node : nodes_) {
    if (node.name == name) return node;
    names.push_back(node.name);
  }
  const std::string near = base::nearest(name, names);
  return Error{.code = ErrorCode::kNotFound,
               .what = "there is no node '" + name + "'",
               .advice = near.empty() ? "muster node list shows the nodes there are"
                                      : "did you mean '" + near + "'?"};
}

Result<job::Node> Controller::node(const std::string& name) const {
  MUSTER_TRY(const engine::Node node, engine_node(name));
  return view_of(node);
}

Result<job::Node> Controller::set_cordon(const std::string& name, bool cordoned) {
  MUSTER_TRY(const engine::Node node, engine_node(name));
  store::Batch batch;
  (cordoned ? batch.cordoned_nodes : batch.uncordoned_nodes).push_back(name);
  MUSTER_CHECK(journal_.flush(std::move(batch)));
  if (cordoned) {
    cordoned_.insert(name);
  } else {
    cordoned_.erase(name);
  }
  scheduler_.set_node(to_schedule(node, cordoned));
  wake();
  return view_of(node);
}

Result<job::Node> Controller::cordon(const std::string& name) {
  return set_cordon(name, true);
}

Result<job::Node> Controller::uncordon(const std::string& name) {
  return set_cordon(name, false);
}

Result<job::Node> Controller::drain(const std::string& name) {
  MUSTER_CHECK(set_cordon(name, true));
  leave_node(name);
  for (const auto& [sequence, entry] : entries_) {
    if (!entry->run || entry->job.eviction || entry->job.stop_requested) continue;
    const auto& tasks = entry->job.tasks;
    const bool is_there = std::any_of(tasks.begin(), tasks.end(),
                                      [&](const Task& task) { return task.node == name; });
    if (is_there) evict(*entry, "was evicted: node " + name + " is being drained");
  }
  MUSTER_CHECK(journal_.flush());
  return node(name);
}

// --- projects

void Controller::tell_projects() {
  PoolTotals totals;
  schedule::Amounts all;
  for (const engine::Node& node : nodes_) {
    const schedule::Amounts has{static_cast<int64_t>(node.gpus) * schedule::kWholeGpu,
                                node.cpu_milli, node.memory_bytes};
    totals[node.pool] += has;
    all += has;
  }
  std::vector<schedule::Project> projects = projects_.for_scheduler(totals);
  if (options_.decay > 0) {
    const auto use = past_use(list(), all, parts_.clock.now(), kUseHalfLife);
    for (schedule::Project& project : projects) {
      const auto found = use.find(project.name);
      if (found != use.end()) project.past_use = found->second;
    }
    // Use goes on adding up and fading while nothing else changes.
    use_timer_ = parts_.loop.after(std::chrono::minutes(1), [this] {
      tell_projects();
      wake();
    });
  }
  scheduler_.set_projects(std::move(projects));
}

Result<void> Controller::keep_project(const job::Project& project) {
  MUSTER_CHECK(journal_.flush({.projects = {project}}));
  projects_.put(project);
  tell_projects();
  wake();
  return {};
}

/// Jobs belong to projects that have none below them.
Result<void> Controller::check_parent(const job::Project& project) const {
  if (project.parent.empty()) return {};
  const bool has_jobs = std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const job::Job& job = entry.second->job;
    return job.spec.project == project.parent && !job::is_final(job.phase);
  });
  if (!has_jobs) return {};
  return Error{.code = ErrorCode::kConflict,
               .what = "project '" + project.parent +
                       "' has jobs of its own, so nothing can be "
                       "put below it",
               .advice = "let them end, or choose another parent"};
}

Result<job::ProjectStatus> Controller::create_project(job::Project project) {
  MUSTER_TRY(const job::Project checked,
             projects_.checked_new(std::move(project), parts_.clock.now()));
  MUSTER_CHECK(journal_.flush());  // whose jobs are only just coming counts too
  MUSTER_CHECK(check_parent(checked));
  MUSTER_CHECK(keep_project(checked));
  return status_of(checked);
}

Result<job::ProjectStatus> Controller::set_project(job::Project project) {
  MUSTER_TRY(const job::Project checked, projects_.checked_change(std::move(project)));
  MUSTER_CHECK(journal_.flush());
  MUSTER_CHECK(check_parent(checked));
  MUSTER_CHECK(keep_project(checked));
  return status_of(checked);
}

Result<void> Controller::remove_project(const std::string& name) {
  MUSTER_CHECK(projects_.find(name));
  const auto conflict = [&](const std::string& why, const std::string& advice) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "project '" + name + "' cannot be deleted: " + why,
                 .advice = advice};
  };
  if (name == job::kDefaultProject) {
    return conflict("it is the default project", "muster project set default --gpus 0 empties it");
  }
  if (projects_.has_children(name)) {
    return conflict("it has projects below it", "delete those first");
  }
  MUSTER_CHECK(journal_.flush());
  const auto jobs = std::count_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    const job::Job& job = entry.second->job;
    return job.spec.project == name && !job::is_final(job.phase);
  });
  if (jobs > 0) {
    return conflict(
        "it has " + std::to_string(jobs) + (jobs == 1 ? " job" : " jobs") + " that have not ended",
        "stop them first: muster list --project " + name);
  }
  MUSTER_CHECK(journal_.flush({.removed_projects = {name}}));
  projects_.remove(name);
  tell_projects();
  wake();
  return {};
}

job::ProjectStatus Controller::status_of(const job::Project& project) const {
  job::ProjectStatus status = control::status_of(project, scheduler_.standing(project.name));
  const std::vector<std::string> family = projects_.family(project.name);
  for (const auto& [sequence, entry] : entries_) {
    const job::Job& job = entry->job;
    if (job::is_final(job.phase)) continue;
    if (std::find(family.begin(), family.end(), job.spec.project) == family.end()) continue;
    ++(job.phase == Phase::kQueued ? status.waiting : status.running);
  }
  return status;
}

Result<job::ProjectStatus> Controller::project(const std::string& name) const {
  MUSTER_TRY(const job::Project* const project, projects_.find(name));
  return status_of(*project);
}

std::vector<job::ProjectStatus> Controller::projects() const {
  std::vector<const job::Project*> order;
  for (const auto& [name, project] : projects_.all()) order.push_back(&project);
  std::sort(order.begin(), order.end(),
            [](const auto* left, const auto* right) { return left->sequence < right->sequence; });
  // Parents first: each project is followed by those below it.
  std::vector<job::ProjectStatus> result;
  const std::function<void(const std::string&)> add_below = [&](const std::string& parent) {
    for (const job::Project* project : order) {
      if (project->parent != parent) continue;
      result.push_back(status_of(*project));
      add_below(project->name);
    }
  };
  add_below("");
  return result;
}

}  // namespace muster::control
