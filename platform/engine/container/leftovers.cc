#include "engine/container/leftovers.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "base/units.h"
#include "engine/container/image_keeper.h"
#include "engine/folder/task_folder.h"
#include "job/job.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

/// The limit for the record of a task's container.
constexpr size_t kMostRecord = 64 << 10;

bool is_plain_id(const std::string& text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= '0' && letter <= '9');
  });
}

void log_removal(const std::string& owner, const HeldHost& host, const ContainerState& state) {
  const auto task = task_of(owner, state.labels);
  const std::string whose = task ? " of task " + task->task + " of job " + task->gang.job_id +
                                       ", attempt " + std::to_string(task->gang.attempt) + ","
                                 : "";
  const std::string what = "container " + state.id + whose + " on host " + host.host.name() +
                           " belongs to no task that this server runs, and is removed";
  is_alive(state.state) ? base::log_warning(what) : base::log_info(what);
}

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
  bool done = steps.empty();
  if (!done) {
    all_at_once(steps, [this, &done](const Result<void>&) {
      done = true;
      loop_.stop();
    });
  }
  while (!done) loop_.run();
  has_asked_ = true;
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
    found.is_late = has_asked_;
    inventories_[&host] = std::move(found);
    if (has_swept_) sweep(host);
  } else {
    base::log_warning("host " + host.host.name() +
                      " does not list its containers, networks and volumes: " + all.error().what);
  }
  for (const Then& then : waiting) then(all);
}

// --- adopting tasks

std::optional<Leftovers::LeftTask> Leftovers::left_task(const TaskFolder& folder,
                                                        const Hosts& hosts) const {
  const auto text = base::read_file(container_record_in(folder), kMostRecord);
  if (!text) return std::nullopt;
  std::error_code ignored;
  LeftTask left{.record = decode_container_record(*text)};
  left.was_up = fs::exists(folder.running(), ignored);
  left.has_ended = fs::exists(folder.exit(), ignored);
  left.host = left.record ? hosts.find(left.record->host) : nullptr;
  const auto inventory = left.host == nullptr ? inventories_.end() : inventories_.find(left.host);
  const bool is_known = inventory != inventories_.end();
  if (is_known) left.state = inventory->second.container(left.record->container);
  const bool is_there = left.host != nullptr && (!is_known || left.state != nullptr);
  // The shim of a task without its files waits for the server that is gone.
  const bool has_files = left.was_up || left.has_ended || fs::exists(folder.complete(), ignored);
  const bool was_started = left.state == nullptr || left.state->state != "created";
  left.can_be_adopted = is_there && has_files && was_started;
  return left;
}

AdoptionResult Leftovers::adopt(const GangId& gang, const std::string& name, const Hosts& hosts) {
  const TaskKey key{gang, name};
  const TaskFolder folder = tasks_.folder_of(key);
  const auto left = left_task(folder, hosts);
  if (!left) return AdoptionResult::kNothing;
  const bool has_ended = left->has_ended;
  if (!left->can_be_adopted) {
    if (!left->was_up && !has_ended) return AdoptionResult::kNothing;
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
  task->host = left->host;
  task->container = left->record->container;
  task->artifacts = left->record->artifacts;
  task->up = task->answered = true;  // the earlier server has reported this
  task->follower = running_.follower_for(*task, *std::move(mirror));
  task->follower->set_container(task->container);
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
  task->absence = loop_.after(options_.patience.absence, [this, weak = std::weak_ptr(task)] {
    const auto still = weak.lock();
    if (!still || still->host->host.has_answered()) return;
    for (const TaskKey& key : running_.abandon(*still->host)) {
      tasks_.report(key, TaskEnded{.status = {.lost = true, .error = "its host does not answer"},
                                   .time = base::SystemClock().now()});
    }
  });
}

std::vector<RunningTask> Leftovers::running_tasks(const std::string& job_id,
                                                  const Hosts& hosts) const {
  std::vector<RunningTask> found;
  // The id itself may be damaged, and must not lead out of the folder.
  if (!is_plain_id(job_id)) return found;
  std::error_code error;
  // Tasks of earlier attempts count as lost: the sweep removes their containers.
  GangId gang{job_id, 0};
  for (const auto& attempt : fs::directory_iterator(tasks_.job_folder(job_id), error)) {
    const auto number = base::number_of<int>(attempt.path().filename().string());
    if (number) gang.attempt = std::max(gang.attempt, *number);
  }
  for (const auto& each : fs::directory_iterator(tasks_.attempt_folder(gang), error)) {
    const TaskKey key{gang, each.path().filename()};
    const auto left = left_task(tasks_.folder_of(key), hosts);
    if (!left || !left->can_be_adopted || tasks_.find(key) != nullptr) continue;
    // The host does not answer. Most such tasks ended long ago, and left no container.
    if (left->has_ended && left->state == nullptr) continue;
    found.push_back({.gang = key.first,
                     .task = key.second,
                     .node = left->record->host,
                     .devices = left->record->devices,
                     .gpu_share_milli = left->record->gpu_share_milli,
                     .job_name = left->record->job_name,
                     .project = left->record->project});
  }
  std::sort(found.begin(), found.end(),
            [](const RunningTask& one, const RunningTask& other) { return one.task < other.task; });
  return found;
}

std::vector<std::string> Leftovers::unknown_jobs(
    const std::function<bool(const std::string& job_id)>& is_known) const {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& each : fs::directory_iterator(options_.folder, error)) {
    const std::string id = each.path().filename();
    const bool is_job = id.size() == job::kJobIdLength && is_plain_id(id);
    if (is_job && !is_known(id)) found.push_back(id);
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<std::string> Leftovers::jobs_with_tasks() const {
  std::set<std::string> jobs;
  for (const auto& [host, inventory] : inventories_) {
    for (const ContainerState& state : inventory.containers) {
      const auto task = task_of(options_.owner, state.labels);
      if (task && is_alive(state.state)) jobs.insert(task->gang.job_id);
    }
  }
  return {jobs.begin(), jobs.end()};
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
  const Inventory& inventory = inventories_[&host];
  for (const ContainerState& state : inventory.containers) {
    // This server may have begun to inspect images on the host before the host listed its objects.
    // ImageKeeper removes the containers of earlier inspections there.
    const bool may_be_in_use = inventory.is_late && state.labels.contains(kLookLabel);
    if (held.count(state.id) > 0 || may_be_in_use) continue;
    log_removal(options_.owner, host, state);
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
