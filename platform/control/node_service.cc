#include "control/node_service.h"

#include <algorithm>
#include <utility>

#include "control/audit_changes.h"
#include "control/gang_tasks.h"
#include "control/schedule_view.h"
#include "engine/engine.h"

namespace muster::control {

using job::Task;

namespace {

void add_task(job::Node& view, const std::string& job, const Task& task, bool anonymous_gpus) {
  if (view.jobs.empty() || view.jobs.back() != job) view.jobs.push_back(job);
  for (const int device : task.devices) {
    if (anonymous_gpus) {
      // The scheduler may count other numbers than those of the job.
      const auto unnamed = std::find_if(
          view.devices.begin(), view.devices.end(),
          [](const job::Device& one) { return one.free_milli == 0 && one.jobs.empty(); });
      if (unnamed != view.devices.end()) unnamed->jobs.push_back(job);
      continue;
    }
    // A node that came back smaller has fewer devices than its tasks hold.
    if (device >= static_cast<int>(view.devices.size())) continue;
    view.devices[static_cast<size_t>(device)].jobs.push_back(job);
  }
}

}  // namespace

NodeService::NodeService(Dependencies parts) : parts_(std::move(parts)) {
  watch_ = parts_.engine.watch_nodes([this] {
    read();
    parts_.wake();
  });
}

void NodeService::load(const std::vector<std::string>& cordoned) {
  for (const std::string& name : cordoned) {
    parts_.nodes.set_cordoned(name, true);
    if (const engine::Node* const node = parts_.nodes.find(name)) give_to_scheduler(*node);
  }
}

void NodeService::give_to_scheduler(const engine::Node& node) {
  parts_.book.scheduler().set_node(to_schedule(node, parts_.nodes.is_closed(node.name)));
}

void NodeService::read() {
  const NodeTable::Difference difference = parts_.nodes.replace(parts_.engine.nodes());
  // An engine reports all its nodes when one of them has changed.
  for (const std::string& name : difference.changed) give_to_scheduler(*parts_.nodes.find(name));
  for (const auto& [node, is_silent] : difference.silence) {
    for (const auto& [sequence, attempt] : parts_.attempts.all()) {
      attempt->note_silence(node, is_silent);
    }
  }
  if (!difference.added.empty()) parts_.placement.nodes_added(difference.added);
  for (const std::string& name : difference.gone) lose(name);
  if (difference.pools) parts_.placement.pools_changed();
  parts_.changed();
}

/// The engine reports no end of the tasks there, unless a cluster manages the nodes: it takes the
/// allocation back.
void NodeService::lose(const std::string& name) {
  if (!parts_.placement.reports_lost_nodes()) {
    parts_.attempts.lose_node(name, [&] { release(name); });
  }
  parts_.book.scheduler().remove_node(name);
}

/// No evicted or partly evicted gang keeps a place there.
void NodeService::release(const std::string& name) {
  for (const auto& [sequence, attempt] : parts_.attempts.all()) attempt->release_node(name);
  parts_.placement.release_node(name);
}

// --- questions

NodeService::TasksByNode NodeService::tasks_by_node() const {
  TasksByNode tasks;
  for (const auto& [sequence, attempt] : parts_.attempts.all()) {
    for (const Task& task : attempt->job().tasks) {
      if (holds_place(task)) tasks[task.node].emplace_back(&attempt->job(), &task);
    }
  }
  return tasks;
}

std::vector<job::Node> NodeService::list() const {
  const TasksByNode tasks = tasks_by_node();
  std::vector<job::Node> views;
  for (const engine::Node& node : parts_.nodes.all()) views.push_back(view_of(node, tasks));
  return views;
}

Result<job::Node> NodeService::find(const std::string& name) const {
  MUSTER_TRY(const engine::Node* const node, parts_.nodes.known(name));
  return view_of(*node, tasks_by_node());
}

job::Node NodeService::view_of(const engine::Node& node, const TasksByNode& tasks) const {
  const schedule::Scheduler& scheduler = parts_.book.scheduler();
  // What tasks hold on a node that has become smaller is more than the node has.
  const auto at_least_none = [](auto amount) { return std::max(amount, decltype(amount){0}); };
  const schedule::Amounts free = scheduler.free(node.name);
  job::Node view{.name = node.name,
                 .pool = node.pool,
                 .cpu_milli = node.cpu_milli,
                 .cpu_milli_free = at_least_none(free.cpu_milli),
                 .memory_bytes = node.memory_bytes,
                 .memory_bytes_free = at_least_none(free.memory_bytes),
                 .topology = node.topology,
                 .labels = node.labels};
  const std::vector<int> free_devices = scheduler.free_devices(node.name);
  for (int i = 0; i < static_cast<int>(free_devices.size()); ++i) {
    view.devices.push_back({.index = i,
                            .model = node.gpu_model,
                            .memory_bytes = node.gpu_memory_bytes,
                            .free_milli = at_least_none(free_devices[static_cast<size_t>(i)])});
  }
  if (const auto here = tasks.find(node.name); here != tasks.end()) {
    for (const auto& [job, task] : here->second) {
      add_task(view, job->spec.name, *task, node.anonymous_gpus);
    }
  }
  const bool cordoned = parts_.nodes.cordoned().contains(node.name) || engine::is_closed(node);
  view.state = !cordoned ? "ready" : view.jobs.empty() ? "cordoned" : "draining";
  if (engine::is_silent(node)) view.state = "gone";
  return view;
}

// --- changes

std::vector<access::AuditRecord> NodeService::cordon_record(const std::string& name, bool cordoned,
                                                            const access::Actor& by) const {
  const bool was = parts_.nodes.cordoned().contains(name);
  if (was == cordoned) return {};
  return audit_records(parts_.clock.now(), by, cordoned ? "node.cordon" : "node.uncordon", name, "",
                       {{.field = "cordoned",
                         .before = was ? "true" : "false",
                         .after = cordoned ? "true" : "false"}});
}

Result<job::Node> NodeService::set_cordon(const std::string& name, bool cordoned,
                                          std::vector<access::AuditRecord> audit) {
  const bool is_leftover =
      !cordoned && parts_.nodes.find(name) == nullptr && parts_.nodes.cordoned().contains(name);
  const engine::Node* node = nullptr;
  if (!is_leftover) {
    MUSTER_TRY(node, parts_.nodes.known(name));
  }
  store::Batch batch{.audit = std::move(audit)};
  (cordoned ? batch.cordoned_nodes : batch.uncordoned_nodes).push_back(name);
  MUSTER_CHECK(parts_.journal.flush(std::move(batch)));
  parts_.nodes.set_cordoned(name, cordoned);
  // The node was removed from the cluster while it was cordoned.
  if (is_leftover) return job::Node{.name = name, .state = "gone"};
  give_to_scheduler(*node);
  parts_.wake();
  return find(name);
}

Result<job::Node> NodeService::cordon(const std::string& name, const access::Actor& by) {
  return set_cordon(name, true, cordon_record(name, true, by));
}

Result<job::Node> NodeService::uncordon(const std::string& name, const access::Actor& by) {
  return set_cordon(name, false, cordon_record(name, false, by));
}

Result<job::Node> NodeService::drain(const std::string& name, const access::Actor& by) {
  MUSTER_CHECK(set_cordon(name, true,
                          audit_records(parts_.clock.now(), by, "node.drain", name, "",
                                        {{.field = "drained", .after = "true"}})));
  release(name);
  for (const auto& [sequence, attempt] : parts_.attempts.all()) attempt->drain(name);
  MUSTER_CHECK(parts_.journal.flush());
  return find(name);
}

}  // namespace muster::control
