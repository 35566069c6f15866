#include "engine/container/leftovers.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/folder/task_folder.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

/// A step that stores the list of `ask` in `into`.
template <class List, class Ask>
Step list_step(Ask ask, std::shared_ptr<List> into) {
  return [ask, into](Then next) {
    ask([into, next](Result<List> listed) {
      if (!listed) return next(std::move(listed).error());
      *into = *std::move(listed);
      next({});
    });
  };
}

}  // namespace

const ContainerState* Leftovers::Inventory::container(const std::string& id) const {
  const auto found = std::find_if(containers.begin(), containers.end(),
                                  [&](const ContainerState& state) { return state.id == id; });
  return found == containers.end() ? nullptr : &*found;
}

Leftovers::Leftovers(base::EventLoop& loop, const ContainerEngineOptions& options, TaskTable& tasks,
                     ContainerTasks& running, GangNetworks& networks, Removals& removals)
    : loop_(loop),
      options_(options),
      tasks_(tasks),
      running_(running),
      networks_(networks),
      removals_(removals),
      later_(loop) {}

// --- asking hosts

void Leftovers::ask(const Hosts& hosts) {
  std::vector<Step> steps;
  for (const auto& [name, host] : hosts.all()) {
    if (!host->is_there) continue;
    steps.emplace_back([this, &asked = *host](Then then) { when_listed(asked, std::move(then)); });
  }
  if (steps.empty()) return;
  bool done = false;
  all_at_once(steps, [this, &done](const Result<void>&) {
    done = true;
    loop_.stop();
  });
  while (!done) loop_.run();
}

void Leftovers::host_is_present(HeldHost& host) {
  when_listed(host, [](const Result<void>&) {});
}

void Leftovers::when_listed(HeldHost& host, Then then) {
  if (inventories_.contains(&host)) return then({});
  std::vector<Then>& waiting = listing_[&host];
  waiting.push_back(std::move(then));
  if (waiting.size() == 1) take_inventory(host);
}

void Leftovers::take_inventory(HeldHost& host) {
  const auto filters = as_filters({{kOwnerLabel, options_.owner}});
  const auto found = std::make_shared<Inventory>();
  DockerClient& client = host.client();
  using Containers = std::vector<ContainerState>;
  one_by_one(
      {list_step([&client, filters](auto take) { client.list(filters, take); },
                 std::shared_ptr<Containers>(found, &found->containers)),
       list_step([&client, filters](auto take) { client.networks(filters, take); },
                 std::shared_ptr<NamedWithLabels>(found, &found->networks)),
       list_step([&client, filters](auto take) { client.volumes(filters, take); },
                 std::shared_ptr<NamedWithLabels>(found, &found->volumes))},
      [this, &host, found](const Result<void>& all) { has_listed(host, all, std::move(*found)); });
}

void Leftovers::has_listed(HeldHost& host, const Result<void>& all, Inventory found) {
  const std::vector<Then> waiting = std::exchange(listing_[&host], {});
  listing_.erase(&host);
  if (all) {
    inventories_[&host] = std::move(found);
    if (has_swept_) sweep(host);
  } else {
    base::log_warning("host " + host.host.name() +
                      " does not list its containers, networks and volumes: " + all.error().what);
  }
  for (const Then& then : waiting) then(all);
}

// --- adopting tasks

AdoptionResult Leftovers::adopt(const GangId& gang, const std::string& name, const Hosts& hosts) {
  const TaskKey key{gang, name};
  const TaskFolder folder = tasks_.folder_of(key);
  const auto text = base::read_file(container_record_in(folder), 4096);
  if (!text) return AdoptionResult::kNothing;
  std::error_code ignored;
  const bool was_up = fs::exists(folder.running(), ignored);
  const bool has_ended = fs::exists(folder.exit(), ignored);
  const auto record = decode_container_record(*text);
  HeldHost* const host = record ? hosts.find(record->host) : nullptr;
  const auto inventory = host == nullptr ? inventories_.end() : inventories_.find(host);
  const bool is_known = inventory != inventories_.end();
  const ContainerState* const state =
      is_known ? inventory->second.container(record->container) : nullptr;
  const bool is_there = host != nullptr && (!is_known || state != nullptr);
  // The shim of a task without its files waits for the server that is gone.
  const bool has_files = was_up || has_ended || fs::exists(folder.complete(), ignored);
  if (!is_there || !has_files || (state != nullptr && state->state == "created")) {
    if (!was_up && !has_ended) return AdoptionResult::kNothing;
    later_([this, key, folder] { tasks_.report(key, end_left_in(folder)); });
    return AdoptionResult::kEnded;
  }
  auto mirror = Mirror::open(folder, options_.log_quota);
  if (!mirror) {
    base::log_error("cannot adopt task " + name + ": " + mirror.error().what);
    return AdoptionResult::kNothing;
  }
  const auto task = std::make_shared<HeldTask>();
  task->key = key;
  task->host = host;
  task->container = record->container;
  task->artifacts = record->artifacts;
  task->up = task->answered = true;  // the earlier server has reported this
  task->follower = running_.follower_for(*task, *std::move(mirror));
  task->follower->set_container(record->container);
  tasks_.add(task);
  take_up(task, has_ended);
  return has_ended ? AdoptionResult::kEnded : AdoptionResult::kRunning;
}

void Leftovers::take_up(const std::shared_ptr<HeldTask>& task, bool has_ended) {
  if (has_ended) {
    return later_([this, task] {
      if (tasks_.find(task->key) != task || task->end) return;
      task->end = end_left_in(tasks_.folder_of(task->key));
      running_.finish(task);
    });
  }
  task->follower->resume();
  if (task->host->host.has_answered()) return;
  // No other part waits for a host that has never answered, and it may never answer. The first
  // timer ends all tasks of the host: abandon() drops the timers of the others.
  task->timer = loop_.after(options_.patience.absence, [this, weak = std::weak_ptr(task)] {
    const auto still = weak.lock();
    if (!still || still->host->host.has_answered()) return;
    for (const TaskKey& key : running_.abandon(*still->host)) {
      tasks_.report(key, TaskEnded{.status = {.lost = true, .error = "its host does not answer"},
                                   .time = base::SystemClock().now()});
    }
  });
}

// --- removing the rest

void Leftovers::sweep() {
  has_swept_ = true;
  for (const auto& [host, inventory] : inventories_) sweep(*host);
}

void Leftovers::sweep(HeldHost& host) {
  std::set<std::string> held;
  for (const auto& task : tasks_.all()) held.insert(task->container);
  std::vector<Step> containers;
  for (const ContainerState& state : inventories_[&host].containers) {
    if (held.count(state.id) > 0) continue;
    containers.emplace_back([this, &host, id = state.id](Then then) {
      removals_.add(host, Removals::Kind::kContainer, id, [then = std::move(then)] { then({}); });
    });
  }
  // Containers first: a network or volume that a container uses cannot be removed.
  all_at_once(containers, [this, &host](const Result<void>&) { sweep_networks_and_volumes(host); });
}

void Leftovers::sweep_networks_and_volumes(HeldHost& host) {
  const Inventory inventory = std::exchange(inventories_[&host], {});
  for (const auto& [name, labels] : inventory.networks) {
    const auto gang = gang_of(options_.owner, labels);
    if (gang && tasks_.has_tasks(*gang)) {
      networks_.adopt(*gang, host, name);
    } else {
      removals_.add(host, Removals::Kind::kNetwork, name);
    }
  }
  for (const auto& [name, labels] : inventory.volumes) {
    const std::string job = job_of(options_.owner, labels);
    std::error_code ignored;
    if (job.empty() || fs::exists(tasks_.job_folder(job), ignored)) continue;
    removals_.add(host, Removals::Kind::kVolume, name);
  }
}

}  // namespace muster::engine
