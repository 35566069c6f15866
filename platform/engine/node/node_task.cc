#include "engine/node/node_task.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "engine/engine_errors.h"
#include "engine/node/attempt_folder.h"

namespace muster::engine::node {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr const char* kVisibleDevices = "CUDA_VISIBLE_DEVICES";

/// Empty: one of the devices is not among those that the cluster has given.
std::vector<std::string> names_of(const std::vector<int>& devices, const NodeFacts& facts) {
  std::vector<std::string> names;
  for (const int device : devices) {
    const auto found = std::find(facts.gpu_indices.begin(), facts.gpu_indices.end(), device);
    const auto at = static_cast<size_t>(found - facts.gpu_indices.begin());
    if (at >= facts.gpus.size()) return {};
    names.push_back(facts.gpus[at]);
  }
  return names;
}

}  // namespace

launch::TaskPlan plan_on_node(launch::TaskPlan plan, const NodeFacts& facts) {
  plan.resources.cpu_milli = 0;
  std::vector<std::string> names = names_of(plan.devices, facts);
  if (names.empty()) return plan;
  plan.environment[kVisibleDevices] = base::joined(names, ",");
  plan.gpus = std::move(names);
  return plan;
}

// --- the task

NodeTask::NodeTask(base::EventLoop& loop, GangId gang, TaskSite site, StartOrder order,
                   const TaskReports::Send& send, const TreeFetch::Open& open)
    : loop_(loop),
      gang_(std::move(gang)),
      site_(std::move(site)),
      order_(std::move(order)),
      name_(order_.plan.task),
      send_(send),
      folder_{fs::path(order_.folder) / gang_.job_id / std::to_string(gang_.attempt) / name_},
      trees_(loop, open),
      streams_(loop, open, send),
      reports_(loop, folder_, order_.is_shared, send) {
  artifacts_ = folder_.path.parent_path().parent_path() / "artifacts";
  for (const job::Volume& volume : order_.plan.volumes) {
    if (is_in_container() && volume.kind == job::Volume::Kind::kArtifacts) {
      artifacts_ = volume.target;
    }
  }
}

NodeTask::~NodeTask() = default;

// --- starting

void NodeTask::start() {
  if (auto prepared = prepare(); !prepared) return answered(std::move(prepared).error());
  if (order_.is_shared) return launch();
  is_fetching_ = true;
  trees_.fetch(folder_.path.parent_path().parent_path(), order_.trees, tree_places(),
               [this](Result<void> here) {
                 if (!std::exchange(is_fetching_, false)) return;  // stopped meanwhile
                 if (!here) return answered(std::move(here).error());
                 launch();
               });
}

/// The container's volumes are there already: a tree goes to where the task sees it.
std::vector<fs::path> NodeTask::tree_places() const {
  std::vector<fs::path> places;
  if (!is_in_container()) return places;
  for (const job::Volume& volume : order_.plan.volumes) places.emplace_back(volume.target);
  return places;
}

ProcessEngineOptions NodeTask::engine_options() const {
  ProcessEngineOptions options{.folder = order_.folder,
                               .shim = fs::path(order_.programs) / "muster-shim",
                               .declared_gpus = std::nullopt,
                               .topology = {},
                               .labels = {},
                               .hidden = {},
                               .log_quota = order_.log_quota,
                               .storage_folder = order_.storage,
                               .unpack_tree = nullptr,
                               .tasks_end_with_it = true};
  options.limits = order_.limits;
  options.limits.is_held_by_container = is_in_container();
  options.holds_claims = true;
  options.first_sample = std::chrono::milliseconds(order_.first_sample_ms);
  options.sample_interval = std::chrono::milliseconds(order_.sample_interval_ms);
  options.filter = order_.filter;
  options.generated_in_container = site_.generated_in_container;
  for (const std::string& path : order_.hidden) options.hidden.emplace_back(path);
  return options;
}

Result<void> NodeTask::prepare() {
  if (order_.is_shared) {
    MUSTER_CHECK(base::make_private_folder(folder_.path.parent_path()));
  } else {
    MUSTER_TRY(held_, make_attempt_folder(order_.folder, gang_));
    remove_forsaken_attempts(order_.folder);
  }
  engine_ = std::make_unique<ProcessEngine>(loop_, engine_options(),
                                            Node{.name = site_.facts.node,
                                                 .gpu_model = {},
                                                 .gpu_names = {},
                                                 .address = {},
                                                 .topology = {},
                                                 .labels = {}});
  engine_->listen([this](const TaskReport& report) { handle(report); });
  return {};
}

void NodeTask::launch() {
  launch::TaskPlan plan = plan_on_node(order_.plan, site_.facts);
  if (site_.adapt) plan = site_.adapt(std::move(plan), folder_.path.parent_path().string());
  if (is_in_container()) {
    plan.sandbox = job::Sandbox::kNone;
    plan.volumes.clear();
  }
  engine_->start(gang_, {std::move(plan)}, [this](Result<void> started) {
    answered(started ? std::nullopt : std::optional(std::move(started).error()));
  });
  order_.plan = {};  // it contains secrets
}

void NodeTask::answered(std::optional<Error> error) {
  if (error) error = bare_start_error(*std::move(error));  // the server names the task
  reports_.started(std::move(error));
  if (failed_to_start()) {
    if (ended_) ended_();
  } else if (order_.is_shared) {
    watch_growth();
  }
}

void NodeTask::watch_growth() {
  log_watch_ = engine_->watch_log(gang_, name_, [this] { reports_.grown(true, false); });
  // Events from before the watch began.
  reports_.grown(true, !engine_->ranks(gang_, {name_}).empty());
}

void NodeTask::handle(const TaskReport& report) {
  if (std::holds_alternative<TaskAnswered>(report.what)) {
    reports_.port_answers();
  } else if (std::holds_alternative<RanksChanged>(report.what)) {
    if (order_.is_shared) reports_.grown(false, true);
  } else if (const auto* const end = std::get_if<TaskEnded>(&report.what)) {
    reports_.ended(*end);
    if (ended_) ended_();
  }
}

// --- orders

void NodeTask::stop(StopMode mode) {
  if (std::exchange(is_fetching_, false)) {
    return answered(Error{.code = ErrorCode::kUnavailable,
                          .what = "was stopped while its files were being sent to the node"});
  }
  if (engine_) engine_->stop(gang_, {name_}, mode);
}

void NodeTask::change(const ChangeOrder& order) {
  const auto done = [this, number = order.number](Result<void> changed) {
    send_(ChangeAnswer{number, changed ? std::nullopt : std::optional(std::move(changed).error())});
  };
  if (is_starting() && engine_ == nullptr) return done({});
  engine_->change_files(gang_, {order.change}, done);
}

void NodeTask::exec(const ExecOrder& order) {
  if (engine_ == nullptr) return refuse_program(order.stream);
  streams_.reach_program(order.stream, [this, &order](ExecHandlers handlers) {
    return engine_->exec(gang_, name_, order.plan, std::move(handlers));
  });
}

void NodeTask::attach(const AttachOrder& order) {
  if (engine_ == nullptr) return refuse_program(order.stream);
  streams_.reach_program(order.stream, [this](ExecHandlers handlers) {
    return engine_->attach(gang_, name_, std::move(handlers));
  });
}

void NodeTask::refuse_program(uint64_t stream) {
  send_(StreamRefused{stream, {.code = ErrorCode::kConflict, .what = "the task does not run"}});
}

/// A job without artifacts has no such folder: an empty one is made and sent.
void NodeTask::send_artifacts(const ArtifactsOrder& order) {
  std::error_code error;
  const bool is_there = is_in_container() && fs::is_directory(artifacts_, error);
  auto made = is_there ? Result<void>() : base::make_private_folder(artifacts_);
  if (!made) return send_(StreamRefused{order.stream, std::move(made).error()});
  streams_.send_folder(order.stream, artifacts_);
}

void NodeTask::remove_files(bool keeps_artifacts) {
  reports_.stop_following();
  std::error_code error;
  if (is_in_container()) {  // keys are there, and the pod may stay for a while
    std::vector<fs::path> entries;
    for (const auto& entry : fs::directory_iterator(site_.generated_in_container, error)) {
      entries.push_back(entry.path());
    }
    for (const fs::path& entry : entries) fs::remove_all(entry, error);
  }
  if (!order_.is_shared) remove_task_folder(order_.folder, gang_, name_, keeps_artifacts);
}

}  // namespace muster::engine::node
