// What an earlier server left on the hosts, and its copies of the tasks' folders here: tasks that
// run are taken up, and what nobody takes up is removed.
//
// A host is asked what it has once: when this server opens, or, where the host did not answer then,
// when it does. What was made later is nobody's leftover.
#include <set>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/container_engine_impl.h"
#include "engine/container/labels.h"
#include "engine/folder/task_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

void keep(std::vector<Inventory::Named>& into, NamedWithLabels listed) {
  for (auto& [name, labels] : listed) into.push_back({std::move(name), std::move(labels)});
}

}  // namespace

void ContainerEngine::Impl::take_inventory(HeldHost& host, std::function<void()> then) {
  const auto filters = as_filters({{kOwnerLabel, options.owner}});
  const auto found = std::make_shared<Inventory>();
  DockerClient& client = host.client();
  one_by_one({[&client, filters, found](Then next) {
                client.list(filters, [found, next](Result<std::vector<ContainerState>> listed) {
                  if (!listed) return next(std::move(listed).error());
                  found->containers = *std::move(listed);
                  next({});
                });
              },
              [&client, filters, found](Then next) {
                client.networks(filters, [found, next](Result<NamedWithLabels> listed) {
                  if (!listed) return next(std::move(listed).error());
                  keep(found->networks, *std::move(listed));
                  next({});
                });
              },
              [&client, filters, found](Then next) {
                client.volumes(filters, [found, next](Result<NamedWithLabels> listed) {
                  if (!listed) return next(std::move(listed).error());
                  keep(found->volumes, *std::move(listed));
                  next({});
                });
              }},
             [&host, found, then = std::move(then)](const Result<void>& all) {
               if (all) {
                 host.inventory = std::move(*found);
               } else {
                 base::log_warning("host " + host.host.name() +
                                   " does not say what it has: " + all.error().what);
               }
               then();
             });
}

Found ContainerEngine::Impl::adopt(const Gang& gang, const std::string& name) {
  const TaskKey key{gang, name};
  const TaskFolder folder = folder_of(gang, name);
  const auto text = base::read_file(container_record_in(folder), 4096);
  if (!text) return Found::kNothing;
  std::error_code ignored;
  const bool was_up = fs::exists(folder.running(), ignored);
  const bool has_ended = fs::exists(folder.exit(), ignored);
  const auto record = decode_container_record(*text);
  HeldHost* const host = record ? host_of(record->host) : nullptr;
  const ContainerState* const state =
      host != nullptr && host->inventory ? host->inventory->container(record->container) : nullptr;
  const bool is_there = host != nullptr && (!host->inventory || state != nullptr);
  if (!is_there || (state != nullptr && state->state == "created")) {
    if (!was_up && !has_ended) return Found::kNothing;
    soon([this, key, folder] { report(key, end_left_in(folder)); });
    return Found::kEnded;
  }
  auto mirror = Mirror::open(folder, options.log_quota);
  if (!mirror) {
    base::log_error("task " + name + " cannot be taken up: " + mirror.error().what);
    return Found::kNothing;
  }
  const auto task = std::make_shared<HeldTask>();
  task->key = key;
  task->host = host;
  task->container = record->container;
  task->artifacts = record->artifacts;
  task->up = task->answered = true;  // whoever was here before has said so
  task->follower = follower_for(*task, *std::move(mirror));
  task->follower->set_container(record->container);
  tasks[key] = task;
  take_up(task, has_ended);
  return has_ended ? Found::kEnded : Found::kRunning;
}

void ContainerEngine::Impl::take_up(const std::shared_ptr<HeldTask>& task, bool has_ended) {
  if (has_ended) {
    return soon([this, task] {
      if (find(task->key) != task || task->end) return;
      task->end = end_left_in(folder_of(task->key.first, task->key.second));
      finish(task);
    });
  }
  task->follower->resume();
  if (task->host->host.node()) return;
  // Nobody counts on a host that has never been there; and it may never be.
  task->timer = loop.after(options.patience.absence, [this, weak = std::weak_ptr(task)] {
    const auto still = weak.lock();
    if (!still || still->host->host.node()) return;
    const TaskKey key = still->key;
    abandon(*still->host);
    report(key, TaskEnded{.status = {.lost = true, .error = "its host does not answer"},
                          .time = base::SystemClock().now()});
  });
}

// --- what nobody has taken up

void ContainerEngine::Impl::sweep() {
  swept = true;
  trees.sweep();
  for (const auto& [name, host] : hosts) {
    if (host->inventory) sweep(*host);
  }
}

void ContainerEngine::Impl::sweep(HeldHost& host) {
  std::set<std::string> held;
  for (const auto& [key, task] : tasks) held.insert(task->container);
  std::vector<Step> containers;
  for (const ContainerState& state : host.inventory->containers) {
    if (held.count(state.id) > 0) continue;
    containers.emplace_back([this, &host, id = state.id](Then then) {
      removals.add(host, Removals::Kind::kContainer, id, [then = std::move(then)] { then({}); });
    });
  }
  // A network or a volume that a container still has cannot be removed: those go first.
  all_at_once(containers, [this, &host](const Result<void>&) {
    for (const Inventory::Named& network : host.inventory->networks) {
      const auto gang = gang_of(options.owner, network.labels);
      if (gang && has_tasks(*gang)) {
        networks.emplace(std::pair(*gang, &host), network.name);
      } else {
        removals.add(host, Removals::Kind::kNetwork, network.name);
      }
    }
    for (const Inventory::Named& volume : host.inventory->volumes) {
      const std::string job = job_of(options.owner, volume.labels);
      std::error_code ignored;
      if (job.empty() || fs::exists(job_folder(job), ignored)) continue;
      removals.add(host, Removals::Kind::kVolume, volume.name);
    }
    host.inventory = Inventory{};
  });
}

}  // namespace muster::engine
