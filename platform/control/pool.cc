// Projects and nodes: what the scheduler shares out, and among whom.
#include <algorithm>

#include "base/text.h"
#include "control/audit_changes.h"
#include "control/controller.h"
#include "control/live_gang.h"
#include "control/past_use.h"
#include "control/room_wish.h"
#include "control/run.h"
#include "control/schedule_view.h"
#include "control/unknown_name.h"
#include "engine/engine.h"

namespace muster::control {

using base::Error;
using base::ErrorCode;
using job::Phase;
using job::Task;
using job::TaskPhase;

namespace {

void add_tenant(job::Node& view, const std::string& job, const Task& task) {
  if (view.jobs.empty() || view.jobs.back() != job) view.jobs.push_back(job);
  for (const int device : task.devices) {
    // A node that came back smaller has fewer than its tasks hold.
    if (device >= static_cast<int>(view.devices.size())) continue;
    view.devices[static_cast<size_t>(device)].jobs.push_back(job);
  }
}

}  // namespace

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
  std::set<std::string> come;
  for (const engine::Node& node : now) come.insert(node.name);
  for (const engine::Node& old : nodes_) {
    if (is_gone(old)) gone.push_back(old.name);
    come.erase(old.name);
  }
  const std::vector<engine::Node> before = std::exchange(nodes_, std::move(now));
  for (const engine::Node& node : nodes_) {
    scheduler_.set_node(to_schedule(node, takes_nothing_new(node.name)));
  }
  tell_of_silence(before);
  if (asks_a_cluster() && !come.empty()) book_those_on(come);
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
  if (std::exchange(pools_, std::move(pools)) == pools_ || asks_a_cluster()) return;
  // Whoever waits and has named no pool may go to any that there is now.
  for (const uint64_t sequence : waiting_) {
    Entry& entry = *entries_.at(sequence);
    const bool takes_any = entry.job.spec.scheduling.node_pools.empty();
    if (takes_any && entry.kept.empty()) queue_anew(entry);
  }
}

/// A cluster's nodes may be known later than the jobs that run there.
void Controller::book_those_on(const std::set<std::string>& nodes) {
  for (const auto& [sequence, entry] : entries_) {
    const auto& tasks = entry->job.tasks;
    const bool is_there =
        entry->run && std::any_of(tasks.begin(), tasks.end(),
                                  [&](const Task& task) { return nodes.contains(task.node); });
    if (is_there) hold_as_placed(*entry);
  }
}

/// Nobody will report how the tasks there end; but for a cluster, which takes room away itself.
void Controller::lose_node(const std::string& name) {
  if (asks_a_cluster()) return scheduler_.remove_node(name);
  std::vector<engine::TaskReport> losses;
  for (const auto& [sequence, entry] : entries_) {
    if (!entry->run) continue;
    if (entry->run->fetch) {
      leave_before_start(*entry, name);
      continue;
    }
    for (const Task& task : entry->job.tasks) {
      if (task.node != name || task.phase == TaskPhase::kEnded) continue;
      losses.push_back({.gang = engine_gang(entry->job),
                        .task = task.name,
                        .what = engine::TaskEnded{
                            .status = {.lost = true, .error = "node " + name + " has gone"},
                            .time = parts_.clock.now()}});
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
    if (entry->run) give_back_room_on(*entry, name);
    const auto places = entry->run ? places_of(entry->job) : entry->kept;
    if (std::none_of(places.begin(), places.end(), is_there)) continue;
    if (entry->run) {
      entry->run->goes_whole = true;
    } else {
      queue_anew(*entry);
    }
  }
}

/// What of jobs is on each node.
Controller::Tenants Controller::tenants() const {
  Tenants tenants;
  for (const auto& [sequence, entry] : entries_) {
    if (!entry->run) continue;
    for (const Task& task : entry->job.tasks) {
      if (holds_room(task)) tenants[task.node].emplace_back(&entry->job, &task);
    }
  }
  return tenants;
}

std::vector<job::Node> Controller::nodes() const {
  const Tenants all = tenants();
  std::vector<job::Node> views;
  for (const engine::Node& node : nodes_) views.push_back(view_of(node, all));
  return views;
}

job::Node Controller::view_of(const engine::Node& node, const Tenants& all) const {
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
  const auto here = all.find(node.name);
  if (here != all.end()) {
    for (const auto& [job, task] : here->second) add_tenant(view, job->spec.name, *task);
  }
  const bool cordoned = cordoned_.count(node.name) > 0 || engine::is_closed(node);
  view.state = !cordoned ? "ready" : view.jobs.empty() ? "cordoned" : "draining";
  if (is_silent(node.name)) view.state = "gone";
  return view;
}

const engine::Node* Controller::node_named(const std::string& name) const {
  const auto found = std::lower_bound(
      nodes_.begin(), nodes_.end(), name,
      [](const engine::Node& node, const std::string& wanted) { return node.name < wanted; });
  return found == nodes_.end() || found->name != name ? nullptr : &*found;
}

Result<const engine::Node*> Controller::engine_node(const std::string& name) const {
  if (const engine::Node* node = node_named(name)) return node;
  std::vector<std::string> names;
  for (const engine::Node& node : nodes_) names.push_back(node.name);
  return unknown_name("node", name, names, "muster node list shows the nodes there are");
}

Result<job::Node> Controller::node(const std::string& name) const {
  MUSTER_TRY(const engine::Node* const node, engine_node(name));
  return view_of(*node, tenants());
}

Result<job::Node> Controller::set_cordon(const std::string& name, bool cordoned, Records audit) {
  MUSTER_TRY(const engine::Node* const known, engine_node(name));
  store::Batch batch{.audit = std::move(audit)};
  (cordoned ? batch.cordoned_nodes : batch.uncordoned_nodes).push_back(name);
  MUSTER_CHECK(journal_.flush(std::move(batch)));
  if (cordoned) {
    cordoned_.insert(name);
  } else {
    cordoned_.erase(name);
  }
  scheduler_.set_node(to_schedule(*known, takes_nothing_new(name)));
  wake();
  return node(name);
}

/// What a node's record in the audit log says.
std::vector<access::FieldChange> Controller::cordon_change(const std::string& name,
                                                           bool cordoned) const {
  const bool was = cordoned_.count(name) > 0;
  if (was == cordoned) return {};
  return {{.field = "cordoned",
           .before = was ? "true" : "false",
           .after = cordoned ? "true" : "false"}};
}

Result<job::Node> Controller::cordon(const std::string& name, const access::Actor& by) {
  return set_cordon(name, true, record(by, "node.cordon", name, "", cordon_change(name, true)));
}

Result<job::Node> Controller::uncordon(const std::string& name, const access::Actor& by) {
  return set_cordon(name, false, record(by, "node.uncordon", name, "", cordon_change(name, false)));
}

Result<job::Node> Controller::drain(const std::string& name, const access::Actor& by) {
  MUSTER_CHECK(set_cordon(
      name, true, record(by, "node.drain", name, "", {{.field = "drained", .after = "true"}})));
  leave_node(name);
  for (const auto& [sequence, entry] : entries_) {
    if (!entry->run || entry->job.eviction || entry->job.stop_requested) continue;
    std::vector<int> there;
    for (const Task& task : entry->job.tasks) {
      if (task.node == name && !task.left) there.push_back(task.seat);
    }
    const job::NodeDrained why{name};
    if (!there.empty() && !shrink(*entry, there, why)) evict(*entry, why);
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

Result<void> Controller::keep_project(const job::Project& project, Records audit) {
  MUSTER_CHECK(journal_.flush({.projects = {project}, .audit = std::move(audit)}));
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

Result<job::ProjectStatus> Controller::create_project(job::Project project,
                                                      const access::Actor& by) {
  MUSTER_TRY(const job::Project checked,
             projects_.checked_new(std::move(project), parts_.clock.now()));
  MUSTER_CHECK(journal_.flush());  // whose jobs are only just coming counts too
  MUSTER_CHECK(check_parent(checked));
  const job::Project* const none = nullptr;
  MUSTER_CHECK(keep_project(checked, record(by, "project.create", checked.name, checked.name,
                                            changes_of(none, &checked))));
  return this->project(checked.name);
}

Result<job::ProjectStatus> Controller::set_project(job::Project project, const access::Actor& by) {
  MUSTER_TRY(const job::Project checked, projects_.checked_change(std::move(project)));
  MUSTER_CHECK(journal_.flush());
  MUSTER_CHECK(check_parent(checked));
  MUSTER_TRY(const job::Project* const before, projects_.find(checked.name));
  MUSTER_CHECK(keep_project(checked, record(by, "project.set", checked.name, checked.name,
                                            changes_of(before, &checked))));
  return this->project(checked.name);
}

Result<void> Controller::remove_project(const std::string& name, const access::Actor& by) {
  MUSTER_TRY(const job::Project* const before, projects_.find(name));
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
    return conflict("it has " + base::count_text(jobs, "job") + " that have not ended",
                    "stop them first: muster list --project " + name);
  }
  const job::Project* const none = nullptr;
  store::Batch batch{.removed_projects = {name},
                     .audit = record(by, "project.delete", name, name, changes_of(before, none))};
  if (parts_.accounts != nullptr) parts_.accounts->forget_project(name, batch);
  MUSTER_CHECK(journal_.flush(std::move(batch)));
  if (parts_.accounts != nullptr) parts_.accounts->project_is_gone(name);
  if (site_.project_gone) site_.project_gone(name);
  projects_.remove(name);
  tell_projects();
  wake();
  return {};
}

/// Those that have not ended, in each project and all below it.
Controller::JobCounts Controller::count_jobs() const {
  JobCounts counts;
  for (const auto& [sequence, entry] : entries_) {
    const job::Job& job = entry->job;
    if (job::is_final(job.phase)) continue;
    const bool waits = job.phase == Phase::kQueued;
    const bool asks = waits && !job.suspended && asks_a_cluster();
    for (const std::string& project : projects_.line_of(job.spec.project)) {
      ++(waits ? counts[project].waiting : counts[project].running);
      if (asks) counts[project].asked_for += amounts_of(job);
    }
  }
  return counts;
}

job::ProjectStatus Controller::status_of(const job::Project& project,
                                         const JobCounts& counts) const {
  job::ProjectStatus status = control::status_of(project, scheduler_.standing(project.name));
  if (const auto count = counts.find(project.name); count != counts.end()) {
    status.running = count->second.running;
    status.waiting = count->second.waiting;
    add(status.requested, count->second.asked_for);
  }
  return status;
}

Result<job::ProjectStatus> Controller::project(const std::string& name) const {
  MUSTER_TRY(const job::Project* const project, projects_.find(name));
  return status_of(*project, count_jobs());
}

std::vector<std::string> Controller::line_of_project(const std::string& name) const {
  return projects_.line_of(name);
}

bool Controller::is_of_its_project(const job::Job& job) const {
  const auto found = projects_.all().find(job.spec.project);
  if (found == projects_.all().end()) return false;
  // The default project is nobody's to delete, and its date is that of the server's start.
  return job.spec.project == job::kDefaultProject || found->second.created <= job.submitted;
}

std::vector<job::ProjectStatus> Controller::projects() const {
  const JobCounts counts = count_jobs();
  std::vector<job::ProjectStatus> result;
  for (const job::Project* project : projects_.in_tree_order()) {
    result.push_back(status_of(*project, counts));
  }
  return result;
}

}  // namespace muster::control
