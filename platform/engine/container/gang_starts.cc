#include "engine/container/gang_starts.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/labels.h"
#include "engine/engine_errors.h"
#include "engine/folder/mounts.h"
#include "engine/nvml_library.h"
#include "job/amounts.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using launch::TaskPlan;

namespace {

/// The pause before a host is asked again what an unanswered request has created; it doubles each
/// time.
constexpr std::chrono::milliseconds kFirstRestPause{1'000};
constexpr std::chrono::milliseconds kLongestRestPause{60'000};

/// Whether the host may have done what it was asked for, although no answer arrived.
bool is_outcome_unknown(const Error& error) {
  return error.code == ErrorCode::kUnavailable || error.code == ErrorCode::kTimeout;
}

/// Passes a result on, after adding the host to `unknown` if the outcome is unknown. `owner` holds
/// `unknown`.
Then noting_unknown(std::set<HeldHost*>& unknown, HeldHost& host, Then then,
                    std::shared_ptr<void> owner) {
  return [&unknown, &host, then = std::move(then), owner = std::move(owner)](Result<void> done) {
    if (!done && is_outcome_unknown(done.error())) unknown.insert(&host);
    then(std::move(done));
  };
}

std::string variable_of(const TaskPlan& plan, const std::string& name) {
  const auto found = plan.environment.find(name);
  return found == plan.environment.end() ? "" : found->second;
}

ContainerRecord container_record_of(const TaskPlan& plan, const HeldTask& task) {
  const double share = std::atof(variable_of(plan, "MUSTER_GPU_SHARE").c_str());
  const bool is_part = share > 0 && share < 1;
  const int share_milli =
      is_part ? static_cast<int>(std::lround(share * job::kWholeGpu)) : job::kWholeGpu;
  return {.host = task.host->host.name(),
          .container = task.container,
          .artifacts = task.artifacts,
          .devices = plan.devices,
          .gpu_share_milli = plan.devices.empty() ? 0 : share_milli,
          .job_name = variable_of(plan, "MUSTER_JOB"),
          .project = plan.project};
}

/// Podman does not report GPUs. On this machine the configuration files of CDI show them; for other
/// hosts the administrator's configuration is trusted.
bool gives_gpus(const HeldHost& host, const DockerInfo& info) {
  if (!info.is_podman) return info.has_nvidia_runtime || info.has_cdi;
  if (!host.is_this_machine()) return true;
  std::error_code ignored;
  return fs::exists("/etc/cdi/nvidia.yaml", ignored) ||
         fs::exists("/var/run/cdi/nvidia.yaml", ignored);
}

}  // namespace

/// One start of a gang, until every task is up or everything is removed again.
struct GangStarts::GangStart {
  GangId gang;
  std::vector<TaskPlan> plans;
  Engine::Done done;  ///< null: the start has ended
  std::optional<Error> error;
  std::shared_ptr<PendingStart> pending;  ///< through which its tasks report
  std::vector<std::string> tasks;         ///< tasks whose containers are created or being created
  size_t busy = 0;                        ///< pending answers of hosts
  size_t pending_tasks = 0;               ///< tasks that are not up yet
  std::vector<HeldHost*> networks;        ///< hosts on which this start created the gang's network
  /// Hosts that did not answer a request to create something, and may have done it.
  std::set<HeldHost*> unknown;
  JobVolumes::Made volumes;
  base::EventLoop::Interest bound;  ///< time limit for the tasks to come up
};

/// What a failed start may have left on a host without a record.
struct GangStarts::Rest {
  GangId gang;
  HeldHost* host = nullptr;
  std::vector<std::string> tasks;
  bool was_listed = false;
  std::chrono::milliseconds pause = kFirstRestPause;
  base::EventLoop::Interest timer;
};

/// One task of a start, until its container runs.
struct GangStarts::Launch {
  Start start;
  std::shared_ptr<HeldTask> task;
  TaskPlan plan;
  ContainerConfig config;
  Turns::Turn turn;
};

GangStarts::GangStarts(base::EventLoop& loop, const ContainerEngineOptions& options,
                       const Dependencies& parts, std::vector<workspace::ArchiveEntry> programs)
    : loop_(loop), options_(options), parts_(parts), programs_(std::move(programs)), later_(loop) {}

GangStarts::~GangStarts() = default;

void GangStarts::start(const GangId& gang, std::vector<TaskPlan> plans, Engine::Done done) {
  const auto start = std::make_shared<GangStart>();
  start->gang = gang;
  start->plans = std::move(plans);
  start->done = std::move(done);
  start->pending = std::make_shared<PendingStart>(
      PendingStart{.task_came_up =
                       [this, weak = std::weak_ptr(start)] {
                         const auto still = weak.lock();
                         if (!still) return;
                         --still->pending_tasks;
                         settle(still);
                       },
                   .failed =
                       [this, weak = std::weak_ptr(start)](Error error) {
                         if (const auto still = weak.lock()) fail(still, std::move(error));
                       }});
  starts_.push_back(start);
  if (auto checked = check(*start); !checked) {
    start->error = std::move(checked).error();
    return later_([this, start] { settle(start); });
  }
  unpack_trees(start);
}

void GangStarts::clear() {
  starts_.clear();
  rests_.clear();
}

// --- checks

Result<void> GangStarts::check(const GangStart& start) const {
  for (const TaskPlan& plan : start.plans) {
    if (auto checked = check_task(start, plan); !checked) {
      return start_error(plan.task, std::move(checked).error());
    }
  }
  return {};
}

Result<void> GangStarts::check_task(const GangStart& start, const TaskPlan& plan) const {
  std::error_code ignored;
  if (parts_.tasks.find({start.gang, plan.task}) != nullptr ||
      fs::exists(parts_.tasks.folder_of({start.gang, plan.task}).path, ignored)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "task " + plan.task + " of this attempt was started before"};
  }
  const HeldHost* const host = parts_.hosts.find(plan.node);
  if (host == nullptr) {
    return Error{.code = ErrorCode::kNotFound, .what = "there is no host '" + plan.node + "'"};
  }
  if (const auto fault = host->host.fault(); fault && !host->host.has_answered()) return *fault;
  if (plan.image.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "it has no image, and this server runs tasks in containers",
                 .advice = "name an image: --image"};
  }
  MUSTER_CHECK(check_places(plan));
  if (!host->is_this_machine()) return {};  // its engine checks paths of that host
  std::vector<fs::path> hidden = options_.hidden;
  hidden.push_back(options_.folder);
  for (const job::Volume& volume : plan.volumes) {
    if (volume.kind != job::Volume::Kind::kHostPath) continue;
    MUSTER_CHECK(check_host_path(volume, real_paths(hidden)));
  }
  return {};
}

// --- networks and volumes, which the tasks of a host share

void GangStarts::unpack_trees(const Start& start) {
  // All tasks of a gang have the same volumes.
  const TaskPlan* const any = start->plans.empty() ? nullptr : &start->plans.front();
  if (any == nullptr || parts_.trees.are_here(start->gang.job_id, any->volumes)) {
    return prepare_hosts(start);
  }
  parts_.trees.unpack(start->gang.job_id, any->project, any->volumes,
                      [this, start, task = any->task](Result<void> unpacked) {
                        if (start->done == nullptr) return;  // stopped meanwhile
                        if (unpacked) return prepare_hosts(start);
                        fail(start, start_error(task, std::move(unpacked).error()));
                      });
}

void GangStarts::prepare_hosts(const Start& start) {
  std::vector<Step> steps;
  std::set<HeldHost*> used;
  for (const TaskPlan& plan : start->plans) {
    HeldHost& host = *parts_.hosts.find(plan.node);
    if (!used.insert(&host).second) continue;
    steps.emplace_back([this, start, &host](Then then) {
      if (start->error) return then(*start->error);
      parts_.leftovers.when_listed(host, std::move(then));
    });
    if (plan.reach != launch::Reach::kHosts) steps.push_back(network_step(start, host));
    steps.push_back(volumes_step(start, host));
  }
  ++start->busy;
  one_by_one(std::move(steps), [this, start](Result<void> prepared) {
    --start->busy;
    if (!prepared) return fail(start, std::move(prepared).error());
    if (start->error) return settle(start);
    launch_all(start);
  });
}

Step GangStarts::network_step(const Start& start, HeldHost& host) {
  return [this, start, &host](Then then) {
    if (start->error) return then(*start->error);
    parts_.networks.ensure(
        start->gang, host, [start, &host] { start->networks.push_back(&host); },
        noting_unknown(start->unknown, host, std::move(then), start));
  };
}

Step GangStarts::volumes_step(const Start& start, HeldHost& host) {
  return [this, start, &host](Then then) {
    if (start->error) return then(*start->error);
    const auto plan = std::find_if(start->plans.begin(), start->plans.end(),
                                   [&](const auto& each) { return each.node == host.host.name(); });
    parts_.volumes.ensure(start->gang, *plan, host,
                          std::shared_ptr<JobVolumes::Made>(start, &start->volumes),
                          noting_unknown(start->unknown, host, std::move(then), start));
  };
}

// --- the containers

void GangStarts::launch_all(const Start& start) {
  start->pending_tasks = start->plans.size();
  start->bound =
      loop_.after(options_.patience.answer * (1 + start->plans.size() / 8), [this, start] {
        // A host that hangs for a moment: the job waits, and starts again.
        fail(start, {.code = ErrorCode::kUnavailable,
                     .what = "its tasks did not start in time",
                     .advice = "check whether the hosts are overloaded"});
      });
  ++start->busy;
  for (const TaskPlan& plan : start->plans) launch(start, plan);
  --start->busy;
  start->plans.clear();  // they contain secrets
  settle(start);
}

void GangStarts::launch(const Start& start, const TaskPlan& plan) {
  const auto launch = std::make_shared<Launch>();
  launch->start = start;
  launch->plan = plan;
  launch->task = std::make_shared<HeldTask>();
  launch->task->key = {start->gang, plan.task};
  launch->task->host = parts_.hosts.find(plan.node);
  launch->task->start = start->pending;
  launch->task->has_ssh = plan.ssh.has_value();
  launch->task->grace = plan.grace;
  launch->config = container_config(start->gang, plan, site_for(*start, plan));
  parts_.tasks.add(launch->task);
  start->tasks.push_back(plan.task);
  ++start->busy;
  const auto ended = [this, launch](Result<void> launched) {
    launch->turn.reset();
    --launch->start->busy;
    if (launched) return settle(launch->start);
    fail(launch->start, start_error(launch->plan.task, std::move(launched).error()));
  };
  launch->task->host->starts.wait([this, launch, ended](Turns::Turn turn) {
    launch->turn = std::move(turn);
    if (launch->start->error) return ended(*launch->start->error);
    if (auto laid_out = lay_out(*launch); !laid_out) return ended(std::move(laid_out).error());
    one_by_one(steps_of(launch), ended);
  });
}

/// Creates the folders of the task on this machine.
Result<void> GangStarts::lay_out(Launch& launch) {
  HeldTask& task = *launch.task;
  for (const job::Volume& volume : launch.plan.volumes) {
    if (volume.kind != job::Volume::Kind::kArtifacts) continue;
    task.artifacts = volume.target;
    MUSTER_CHECK(
        base::make_private_folder(parts_.tasks.job_folder(task.key.first.job_id) / "artifacts"));
  }
  MUSTER_TRY(Mirror mirror, Mirror::open(parts_.tasks.folder_of(task.key), options_.log_quota));
  task.follower = parts_.running.follower_for(task, std::move(mirror));
  return {};
}

std::vector<Step> GangStarts::steps_of(const std::shared_ptr<Launch>& launch) {
  std::vector<Step> steps;
  const auto put = [&](const std::vector<workspace::ArchiveEntry>& files) {
    for (VolumeFiles& volume : by_volume(files, launch->config.mounts)) {
      steps.emplace_back([launch, volume = std::move(volume)](Then then) {
        if (launch->start->error) return then(*launch->start->error);
        launch->task->host->client().put_archive(launch->task->container, volume.folder,
                                                 workspace::make_archive(volume.entries),
                                                 std::move(then));
      });
    }
  };
  steps.emplace_back([this, launch](Then then) { create(launch, 0, std::move(then)); });
  put(programs_of(launch->plan, programs_));
  // Before the container is started, so that no output of its shim is missed.
  steps.emplace_back([launch](Then then) {
    if (launch->start->error) return then(*launch->start->error);
    launch->task->follower->attach(std::move(then));
  });
  steps.emplace_back([launch](Then then) {
    if (launch->start->error) return then(*launch->start->error);
    launch->task->host->client().start(launch->task->container, std::move(then));
  });
  put(files_of(launch->plan, shim_plan(launch->plan, site_for(*launch->start, launch->plan))));
  // From here on another server may adopt the task.
  steps.emplace_back([this, launch](Then then) {
    then(base::write_file(parts_.tasks.folder_of(launch->task->key).complete(), ""));
  });
  return steps;
}

/// Tries other names if the first is taken. Tasks are never found by the name of their container.
void GangStarts::create(const std::shared_ptr<Launch>& launch, int tries, Then then) {
  const std::string name = container_name(launch->start->gang, launch->plan.task);
  launch->config.name = numbered_name(name, tries);
  launch->task->host->client().create(launch->config, [this, launch, tries, then = std::move(then)](
                                                          Result<std::string> id) {
    const bool is_taken = !id && id.error().code == ErrorCode::kConflict;
    if (is_taken && tries + 1 < kMostNames) return create(launch, tries + 1, then);
    if (!id && is_outcome_unknown(id.error())) {
      launch->start->unknown.insert(launch->task->host);
    }
    if (!id) return then(std::move(id).error());
    HeldTask& task = *launch->task;
    task.container = *id;
    task.follower->set_container(*id);
    const ContainerRecord record = container_record_of(launch->plan, task);
    then(base::write_file(container_record_in(parts_.tasks.folder_of(task.key)), encode(record)));
  });
}

ContainerSite GangStarts::site_for(const GangStart& start, const TaskPlan& plan) const {
  HeldHost& host = *parts_.hosts.find(plan.node);
  const auto info = host.host.info();
  return {.owner = options_.owner,
          .network = parts_.networks.find(start.gang, host).value_or("host"),
          .log_quota = options_.log_quota,
          .limits = options_.limits,
          .sampling = {.first = options_.first_sample,
                       .interval = options_.sample_interval,
                       .nvml = kNvml,
                       .gpus = {}},
          .filter = options_.filter,
          .gives_gpus = info && gives_gpus(host, *info)};
}

// --- the end of a start

void GangStarts::fail(Start start, Error error) {
  if (!start->error) start->error = std::move(error);
  settle(start);
}

void GangStarts::settle(Start start) {
  if (start->done == nullptr || start->busy > 0) return;
  if (start->error) return undo(start);
  if (start->pending_tasks == 0) succeed(start);
}

void GangStarts::undo(const Start& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->bound.reset();
  start->plans.clear();
  std::erase(starts_, start);
  std::vector<Step> containers;
  for (const std::string& name : start->tasks) {
    const auto task = parts_.tasks.take({start->gang, name});
    if (task == nullptr) continue;
    if (task->follower) task->follower->stop();
    task->start.reset();
    const fs::path folder = parts_.tasks.folder_of(task->key).path;
    if (const auto removed = base::remove_tree(folder); !removed) {
      base::log_error(removed.error().what);
    }
    if (task->container.empty()) continue;
    containers.emplace_back([this, task](Then then) {
      parts_.removals.add(*task->host, Removals::Kind::kContainer, task->container,
                          [then = std::move(then)] { then({}); });
    });
  }
  std::vector<Step> unknown;
  for (HeldHost* const host : start->unknown) {
    const auto rest =
        std::make_shared<Rest>(Rest{.gang = start->gang, .host = host, .tasks = start->tasks});
    rests_.insert(rest);
    unknown.emplace_back([this, rest](Then then) { remove_unknown(rest, std::move(then)); });
  }
  std::vector<Step> rest;
  const bool others = parts_.tasks.has_tasks(start->gang);
  for (HeldHost* const host : start->networks) {
    if (others) continue;
    rest.emplace_back([this, gang = start->gang, host](Then then) {
      parts_.networks.remove(gang, *host, [then = std::move(then)] { then({}); });
    });
  }
  for (const auto& volume : start->volumes) {
    parts_.volumes.forget(start->gang.job_id, *volume.first);
    rest.emplace_back([this, volume](Then then) {
      parts_.removals.add(*volume.first, Removals::Kind::kVolume, volume.second,
                          [then = std::move(then)] { then({}); });
    });
  }
  const auto report = [this, done, error = *start->error](const Result<void>&) {
    later_([done, error] { done(error); });
  };
  one_by_one({[containers](Then then) { all_at_once(containers, std::move(then)); },
              [unknown](Then then) { all_at_once(unknown, std::move(then)); },
              [rest](Then then) { all_at_once(rest, std::move(then)); }},
             report);
}

/// Removes what a host has created for the gang although its answers did not arrive. The host is
/// asked once more after it has listed, because it may finish a request late. Calls `then` without
/// an error after the first attempt.
///
/// If this server ends first, the next server finds the remaining things by their labels.
void GangStarts::remove_unknown(const std::shared_ptr<Rest>& rest, Then then) {
  const auto filters = as_filters(labels_of_gang(options_.owner, rest->gang));
  DockerClient& client = rest->host->client();
  const auto failed = [this, rest, then] {
    remove_unknown_later(rest, rest->pause);
    rest->pause = std::min(2 * rest->pause, kLongestRestPause);
    then({});
  };
  client.list(filters, [this, &client, rest, filters, failed,
                        then](const Result<std::vector<ContainerState>>& containers) {
    if (!containers) return failed();
    client.networks(filters, [this, rest, failed, then,
                              containers = *containers](const Result<NamedWithLabels>& networks) {
      if (!networks) return failed();
      if (std::exchange(rest->was_listed, true)) {
        rests_.erase(rest);
      } else {
        remove_unknown_later(rest, options_.patience.answer);
      }
      remove_listed(*rest, containers, *networks, then);
    });
  });
}

void GangStarts::remove_unknown_later(const std::shared_ptr<Rest>& rest,
                                      std::chrono::milliseconds pause) {
  rest->timer = loop_.after(pause, [this, weak = std::weak_ptr(rest)] {
    if (const auto still = weak.lock()) remove_unknown(still, [](const Result<void>&) {});
  });
}

/// Other starts of the gang, and its tasks that run, keep what is theirs.
void GangStarts::remove_listed(const Rest& rest, const std::vector<ContainerState>& containers,
                               const NamedWithLabels& networks, Then then) {
  const bool is_starting = std::any_of(
      starts_.begin(), starts_.end(), [&](const Start& start) { return start->gang == rest.gang; });
  std::vector<Step> first;
  for (const ContainerState& state : containers) {
    const auto label = state.labels.find(kTaskLabel);
    const bool is_of_task = label != state.labels.end();
    const bool is_ours = is_of_task ? std::find(rest.tasks.begin(), rest.tasks.end(),
                                                label->second) != rest.tasks.end() &&
                                          !parts_.tasks.find({rest.gang, label->second})
                                    : !is_starting;  // it fills volumes
    if (!is_ours) continue;
    first.emplace_back([this, host = rest.host, id = state.id](Then next) {
      parts_.removals.add(*host, Removals::Kind::kContainer, id, [next] { next({}); });
    });
  }
  std::vector<Step> second;
  for (const auto& [name, labels] : networks) {
    if (is_starting || parts_.tasks.has_tasks(rest.gang)) break;
    second.emplace_back([this, host = rest.host, network = name](Then next) {
      parts_.removals.add(*host, Removals::Kind::kNetwork, network, [next] { next({}); });
    });
  }
  one_by_one({[first](Then next) { all_at_once(first, std::move(next)); },
              [second](Then next) { all_at_once(second, std::move(next)); }},
             std::move(then));
}

void GangStarts::succeed(const Start& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->bound.reset();
  std::erase(starts_, start);
  done({});
  std::vector<std::shared_ptr<HeldTask>> tasks;
  for (const std::string& name : start->tasks) {
    if (const auto task = parts_.tasks.find({start->gang, name})) tasks.push_back(task);
  }
  // First of all tasks: the last one to end on a host fetches the artifacts.
  for (const auto& task : tasks) task->start.reset();
  for (const auto& task : tasks) {
    if (parts_.tasks.find(task->key) != task) continue;
    if (!task->has_ssh || task->answered) parts_.tasks.report(task->key, TaskAnswered{});
    task->answered = task->answered || !task->has_ssh;
    if (task->end) parts_.running.finish(task);
  }
}

void GangStarts::stop(const GangId& gang, const std::vector<std::string>& tasks) {
  const auto meant = [&](const std::string& task) {
    return std::find(tasks.begin(), tasks.end(), task) != tasks.end();
  };
  const auto all = starts_;
  for (const auto& start : all) {
    if (start->gang != gang || start->error) continue;
    const bool is_planned = std::any_of(start->plans.begin(), start->plans.end(),
                                        [&](const TaskPlan& plan) { return meant(plan.task); });
    if (!is_planned && std::none_of(start->tasks.begin(), start->tasks.end(), meant)) continue;
    start->error = Error{.code = ErrorCode::kUnavailable, .what = "was stopped during its start"};
    later_([this, start] { settle(start); });
  }
}

bool GangStarts::includes(const GangId& gang, const std::string& task) const {
  return std::any_of(starts_.begin(), starts_.end(), [&](const Start& start) {
    const auto is_it = [&](const TaskPlan& plan) { return plan.task == task; };
    return start->gang == gang &&
           (std::any_of(start->plans.begin(), start->plans.end(), is_it) ||
            std::find(start->tasks.begin(), start->tasks.end(), task) != start->tasks.end());
  });
}

}  // namespace muster::engine
