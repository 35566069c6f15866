// A gang is started: its network is made and its volumes are filled, then its containers come up,
// some at a time. Whatever goes wrong on the way, or whoever stops a task of it meanwhile, all that
// was made is taken away again before the start is over.
#include <algorithm>
#include <set>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "engine/container/container_engine_impl.h"
#include "engine/container/labels.h"
#include "engine/folder/mounts.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using launch::TaskPlan;

namespace {

std::string another(const std::string& name, int tries) {
  return tries == 0 ? name : name + "-" + std::to_string(tries + 1);
}

/// Docker has room for some thirty networks unless it is told otherwise.
Error network_error(const HeldHost& host, Error error) {
  if (error.what.find("subnet") != std::string::npos) {
    error.code = ErrorCode::kExhausted;
    error.advice = "the engine of " + host.host.name() +
                   " has no addresses left for another network: give it more "
                   "(default-address-pools in its daemon.json), or let fewer jobs run at once";
  }
  error.what = "cannot make the network of the job: " + error.what;
  return error;
}

}  // namespace

/// One task of a start, until its container runs.
struct ContainerEngine::Impl::Launch {
  std::shared_ptr<GangStart> start;
  std::shared_ptr<HeldTask> task;
  TaskPlan plan;
  ContainerConfig config;
  Turns::Turn turn;
};

void ContainerEngine::start(const Gang& gang, std::vector<TaskPlan> plans, Done done) {
  auto start = std::make_shared<GangStart>();
  start->gang = gang;
  start->plans = std::move(plans);
  start->done = std::move(done);
  impl_->starting.push_back(start);
  if (auto checked = impl_->check(*start); !checked) {
    start->error = std::move(checked).error();
    return impl_->soon([impl = impl_.get(), start] { impl->settle(start); });
  }
  impl_->begin(start);
}

// --- before anything is made

Result<void> ContainerEngine::Impl::check(const GangStart& start) const {
  for (const TaskPlan& plan : start.plans) {
    if (auto checked = check_task(start, plan); !checked) {
      return start_error(plan.task, std::move(checked).error());
    }
  }
  return {};
}

Result<void> ContainerEngine::Impl::check_task(const GangStart& start, const TaskPlan& plan) const {
  std::error_code ignored;
  if (find({start.gang, plan.task}) != nullptr ||
      fs::exists(folder_of(start.gang, plan.task).path, ignored)) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "task " + plan.task + " of this attempt was started before"};
  }
  const HeldHost* const host = host_of(plan.node);
  if (host == nullptr) {
    return Error{.code = ErrorCode::kNotFound, .what = "there is no host '" + plan.node + "'"};
  }
  if (const auto fault = host->host.fault(); fault && !host->host.node()) return *fault;
  if (plan.image.empty()) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "it names no image, and tasks are containers here",
                 .advice = "name one: --image"};
  }
  MUSTER_CHECK(check_places(plan));
  if (!host->is_this_machine()) return {};  // paths there are its engine's to look up
  std::vector<fs::path> hidden = options.hidden;
  hidden.push_back(options.folder);
  for (const job::Volume& volume : plan.volumes) {
    if (volume.kind != job::Volume::Kind::kHostPath) continue;
    MUSTER_CHECK(check_host_path(volume, real_paths(hidden)));
  }
  return {};
}

// --- what the tasks of a host share

void ContainerEngine::Impl::begin(const std::shared_ptr<GangStart>& start) {
  // The tasks of a gang have the same volumes, for they share them.
  const TaskPlan* const any = start->plans.empty() ? nullptr : &start->plans.front();
  if (any == nullptr || trees.are_here(start->gang.job_id, any->volumes)) {
    return prepare_hosts(start);
  }
  trees.unpack(start->gang.job_id, any->project, any->volumes,
               [this, start, task = any->task](Result<void> unpacked) {
                 if (start->done == nullptr) return;  // stopped meanwhile
                 if (unpacked) return prepare_hosts(start);
                 fail(start, start_error(task, std::move(unpacked).error()));
               });
}

void ContainerEngine::Impl::prepare_hosts(const std::shared_ptr<GangStart>& start) {
  std::vector<Step> steps;
  std::set<HeldHost*> used;
  for (const TaskPlan& plan : start->plans) {
    HeldHost& host = *host_of(plan.node);
    if (!used.insert(&host).second) continue;
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

Step ContainerEngine::Impl::network_step(const std::shared_ptr<GangStart>& start, HeldHost& host) {
  return [this, start, &host](Then then) {
    if (start->error) return then(*start->error);
    if (networks.count({start->gang, &host}) > 0) return then({});
    make_network(start, host, 0, std::move(then));
  };
}

void ContainerEngine::Impl::make_network(const std::shared_ptr<GangStart>& start, HeldHost& host,
                                         int tries, Then then) {
  const std::string name = another(network_name(start->gang), tries);
  host.client().create_network(
      name, labels_of_gang(options.owner, start->gang),
      [this, start, &host, tries, name, then = std::move(then)](Result<std::string> made) {
        if (made) {
          networks[{start->gang, &host}] = name;
          start->networks.push_back(&host);
          return then({});
        }
        const bool is_taken = made.error().code == ErrorCode::kConflict;
        if (is_taken && tries == 0) return find_network(start, host, then);
        if (is_taken && tries + 1 < kMostNames) return make_network(start, host, tries + 1, then);
        then(network_error(host, std::move(made).error()));
      });
}

/// That of a gang which an earlier server has started. Somebody else's is left alone.
void ContainerEngine::Impl::find_network(const std::shared_ptr<GangStart>& start, HeldHost& host,
                                         Then then) {
  host.client().networks(
      as_filters(labels_of_gang(options.owner, start->gang)),
      [this, start, &host, then = std::move(then)](const Result<NamedWithLabels>& listed) {
        if (!listed) return then(network_error(host, listed.error()));
        if (listed->empty()) return make_network(start, host, 1, then);
        networks[{start->gang, &host}] = listed->front().first;
        then({});
      });
}

// --- the containers

void ContainerEngine::Impl::launch_all(const std::shared_ptr<GangStart>& start) {
  start->unheard = start->plans.size();
  start->bound = loop.after(options.patience.answer * (1 + start->plans.size() / 8), [this, start] {
    fail(start, {.code = ErrorCode::kTimeout,
                 .what = "its tasks did not come up in time",
                 .advice = "see whether the hosts are overloaded"});
  });
  ++start->busy;
  for (const TaskPlan& plan : start->plans) launch(start, plan);
  --start->busy;
  start->plans.clear();  // there are secrets in them
  settle(start);
}

void ContainerEngine::Impl::launch(const std::shared_ptr<GangStart>& start, const TaskPlan& plan) {
  const auto launch = std::make_shared<Launch>();
  launch->start = start;
  launch->plan = plan;
  launch->task = std::make_shared<HeldTask>();
  launch->task->key = {start->gang, plan.task};
  launch->task->host = host_of(plan.node);
  launch->task->start = start;
  launch->task->has_ssh = plan.ssh.has_value();
  launch->task->grace = plan.grace;
  launch->config = container_config(start->gang, plan, site_for(*start, plan));
  tasks[launch->task->key] = launch->task;
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

/// What this machine keeps of the task.
Result<void> ContainerEngine::Impl::lay_out(Launch& launch) {
  HeldTask& task = *launch.task;
  for (const job::Volume& volume : launch.plan.volumes) {
    if (volume.kind != job::Volume::Kind::kArtifacts) continue;
    task.artifacts = volume.target;
    MUSTER_CHECK(base::make_private_folder(job_folder(task.key.first.job_id) / "artifacts"));
  }
  MUSTER_TRY(Mirror mirror,
             Mirror::open(folder_of(task.key.first, task.key.second), options.log_quota));
  task.follower = follower_for(task, std::move(mirror));
  return {};
}

std::vector<Step> ContainerEngine::Impl::steps_of(const std::shared_ptr<Launch>& launch) {
  std::vector<Step> steps;
  steps.emplace_back([this, launch](Then then) { create(launch, 0, std::move(then)); });
  const ShimPlan shim = shim_plan(launch->plan, site_for(*launch->start, launch->plan));
  for (VolumeFiles& volume :
       by_volume(files_of(launch->plan, shim, programs), launch->config.mounts)) {
    steps.emplace_back([launch, volume = std::move(volume)](Then then) {
      if (launch->start->error) return then(*launch->start->error);
      launch->task->host->client().put_archive(launch->task->container, volume.folder,
                                               workspace::make_archive(volume.entries),
                                               std::move(then));
    });
  }
  // Before it is started: not a word of what its shim says is missed.
  steps.emplace_back([launch](Then then) {
    if (launch->start->error) return then(*launch->start->error);
    launch->task->follower->attach(std::move(then));
  });
  steps.emplace_back([launch](Then then) {
    if (launch->start->error) return then(*launch->start->error);
    launch->task->host->client().start(launch->task->container, std::move(then));
  });
  return steps;
}

/// Under another name where that one is taken by a container that is not this task's; nobody finds
/// a task by the name of its container.
void ContainerEngine::Impl::create(const std::shared_ptr<Launch>& launch, int tries, Then then) {
  const std::string name = container_name(launch->start->gang, launch->plan.task);
  launch->config.name = another(name, tries);
  launch->task->host->client().create(
      launch->config, [this, launch, tries, then = std::move(then)](Result<std::string> id) {
        const bool is_taken = !id && id.error().code == ErrorCode::kConflict;
        if (is_taken && tries + 1 < kMostNames) return create(launch, tries + 1, then);
        if (!id) return then(std::move(id).error());
        HeldTask& task = *launch->task;
        task.container = *id;
        task.follower->set_container(*id);
        const ContainerRecord record{
            .host = task.host->host.name(), .container = *id, .artifacts = task.artifacts};
        then(base::write_file(container_record_in(folder_of(task.key.first, task.key.second)),
                              encode(record)));
      });
}

// --- how it ends

void ContainerEngine::Impl::fail(std::shared_ptr<GangStart> start, Error error) {
  if (!start->error) start->error = std::move(error);
  settle(start);
}

void ContainerEngine::Impl::settle(std::shared_ptr<GangStart> start) {
  if (start->done == nullptr || start->busy > 0) return;
  if (start->error) return undo(start);
  if (start->unheard == 0) succeeded(start);
}

void ContainerEngine::Impl::undo(const std::shared_ptr<GangStart>& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->bound.reset();
  start->plans.clear();
  std::erase(starting, start);
  std::vector<Step> containers;
  for (const std::string& name : start->tasks) {
    const auto held = tasks.extract(TaskKey{start->gang, name});
    if (held.empty()) continue;
    const std::shared_ptr<HeldTask> task = held.mapped();
    if (task->follower) task->follower->stop();
    task->start.reset();
    if (const auto removed = base::remove_tree(folder_of(start->gang, name).path); !removed) {
      base::log_error(removed.error().what);
    }
    if (task->container.empty()) continue;
    containers.emplace_back([this, task](Then then) {
      removals.add(*task->host, Removals::Kind::kContainer, task->container,
                   [then = std::move(then)] { then({}); });
    });
  }
  std::vector<Step> rest;
  const bool others = has_tasks(start->gang);
  for (HeldHost* const host : start->networks) {
    const auto network = networks.find({start->gang, host});
    if (others || network == networks.end()) continue;
    rest.emplace_back([this, host, name = network->second](Then then) {
      removals.add(*host, Removals::Kind::kNetwork, name, [then = std::move(then)] { then({}); });
    });
    networks.erase(network);
  }
  for (const auto& volume : start->volumes) {
    forget_volumes(start->gang.job_id, *volume.first);
    rest.emplace_back([this, volume](Then then) {
      removals.add(*volume.first, Removals::Kind::kVolume, volume.second,
                   [then = std::move(then)] { then({}); });
    });
  }
  const auto say = [this, done, error = *start->error](const Result<void>&) {
    soon([done, error] { done(error); });
  };
  one_by_one({[containers](Then then) { all_at_once(containers, std::move(then)); },
              [rest](Then then) { all_at_once(rest, std::move(then)); }},
             say);
}

void ContainerEngine::Impl::succeeded(const std::shared_ptr<GangStart>& start) {
  const auto done = std::exchange(start->done, nullptr);
  start->bound.reset();
  std::erase(starting, start);
  done({});
  for (const std::string& name : start->tasks) {
    const auto task = find({start->gang, name});
    if (task == nullptr) continue;
    task->start.reset();
    if (!task->has_ssh || task->answered) report(task->key, TaskAnswered{});
    task->answered = task->answered || !task->has_ssh;
    if (task->end) finish(task);
  }
}

/// All or none: who stops one task before its gang is there stops the start.
void ContainerEngine::Impl::stop_starting(const Gang& gang, const std::vector<std::string>& names) {
  const auto meant = [&](const std::string& task) {
    return std::find(names.begin(), names.end(), task) != names.end();
  };
  const auto all = starting;
  for (const auto& start : all) {
    if (start->gang != gang || start->error) continue;
    const bool is_planned = std::any_of(start->plans.begin(), start->plans.end(),
                                        [&](const TaskPlan& plan) { return meant(plan.task); });
    if (!is_planned && std::none_of(start->tasks.begin(), start->tasks.end(), meant)) continue;
    start->error =
        Error{.code = ErrorCode::kUnavailable, .what = "was stopped while it was being started"};
    soon([this, start] { settle(start); });
  }
}

}  // namespace muster::engine
