#include "engine/slurm/node/node_task.h"

#include <signal.h>

#include <chrono>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "engine/engine_errors.h"
#include "engine/slurm/node/attempt_folder.h"
#include "engine/slurm/node/launcher_here.h"
#include "engine/slurm/node/plan_here.h"

namespace muster::engine::slurm {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

/// A task that prints a lot is not told of for each line.
constexpr std::chrono::milliseconds kHintPause{100};

ProcessEngineOptions options_of(const StartOrder& order) {
  ProcessEngineOptions options{.folder = order.folder,
                               .shim = fs::path(order.programs) / "muster-shim",
                               .declared_gpus = std::nullopt,
                               .topology = {},
                               .labels = {},
                               .hidden = {},
                               .log_quota = order.log_quota,
                               .storage_folder = order.storage,
                               .unpack_tree = nullptr,
                               .tasks_end_with_it = true};
  options.first_sample = std::chrono::milliseconds(order.first_sample_ms);
  options.sample_interval = std::chrono::milliseconds(order.sample_interval_ms);
  for (const std::string& path : order.hidden) options.hidden.emplace_back(path);
  return options;
}

}  // namespace

/// A program, and the connection that it is being given.
struct NodeTask::Bridged {
  std::shared_ptr<ExecBridge> bridge;
  std::shared_ptr<void> opening;
};

NodeTask::NodeTask(base::EventLoop& loop, Gang gang, const StepFacts& facts, StartOrder order,
                   Say say, TreeFetch::Open open)
    : loop_(loop),
      gang_(std::move(gang)),
      facts_(facts),
      order_(std::move(order)),
      name_(order_.plan.task),
      say_(std::move(say)),
      open_(std::move(open)),
      folder_{fs::path(order_.folder) / gang_.job_id / std::to_string(gang_.attempt) / name_},
      trees_(loop, open_) {}

NodeTask::~NodeTask() = default;

// --- starting

void NodeTask::start() {
  if (auto prepared = prepare(); !prepared) return answered(std::move(prepared).error());
  if (order_.is_shared) return launch();
  is_fetching_ = true;
  trees_.fetch(folder_.path.parent_path().parent_path(), order_.trees, [this](Result<void> here) {
    if (!std::exchange(is_fetching_, false)) return;  // stopped meanwhile
    if (!here) return answered(std::move(here).error());
    launch();
  });
}

Result<void> NodeTask::prepare() {
  if (order_.is_shared) {
    MUSTER_CHECK(base::make_private_folder(folder_.path.parent_path()));
  } else {
    MUSTER_TRY(held_, make_attempt_folder(order_.folder, gang_));
    remove_forsaken_attempts(order_.folder);
  }
  engine_ = std::make_unique<ProcessEngine>(loop_, options_of(order_),
                                            Node{.name = facts_.node,
                                                 .gpu_model = {},
                                                 .gpu_names = {},
                                                 .address = {},
                                                 .topology = {},
                                                 .labels = {}});
  engine_->listen([this](const TaskReport& report) { heed(report); });
  return {};
}

void NodeTask::launch() {
  const Variables variables = variables_of(base::current_environment());
  auto plan =
      launcher_here(plan_here(order_.plan, facts_), variables, folder_.path.parent_path().string());
  engine_->start(gang_, {std::move(plan)}, [this](Result<void> started) {
    answered(started ? std::nullopt : std::optional(std::move(started).error()));
  });
  order_.plan = {};  // there are secrets in it
}

void NodeTask::answered(std::optional<Error> error) {
  if (error) error = bare_start_error(*std::move(error));  // the server names the task
  answer_ = StartAnswer{std::move(error)};
  if (answer_->error) {
    say_(*answer_);
    if (ended_) ended_();
    return;
  }
  if (order_.is_shared) {
    say_(*answer_);
    return watch_growth();
  }
  if (welcome_) follow(*welcome_);
}

void NodeTask::heed(const TaskReport& report) {
  if (std::holds_alternative<TaskAnswered>(report.what)) {
    has_answered_ = true;
    say_(AnsweredNews{});
  } else if (std::holds_alternative<RanksChanged>(report.what)) {
    if (order_.is_shared) grown(false, true);
  } else if (const auto* const end = std::get_if<TaskEnded>(&report.what)) {
    ended(*end);
  }
}

// --- its end

void NodeTask::ended(TaskEnded end) {
  if (end.status.lost && !order_.is_shared) leave_exit_record();
  end_ = std::move(end);
  tell_end();
  if (ended_) ended_();
}

/// Of a shim that was killed: whoever follows the task is to hear the rest of it, and then its end.
void NodeTask::leave_exit_record() const {
  const auto written = base::write_file(
      folder_.exit(),
      encode(ExitRecord{.status = {.signal = SIGKILL, .error = "its shim was killed"},
                        .ended = base::SystemClock().now()}));
  if (!written) base::log_error(written.error().what);
}

/// Behind all that it left.
void NodeTask::tell_end() {
  if (!end_ || !welcome_) return;
  if (order_.is_shared || all_is_told_) say_(EndedNews{*end_});
}

// --- telling

void NodeTask::tell_anew(const Welcome& from) {
  welcome_ = from;
  all_is_told_ = false;
  if (!answer_) return;
  if (answer_->error || order_.is_shared) say_(*answer_);
  if (answer_->error) return;
  if (has_answered_) say_(AnsweredNews{});
  if (!order_.is_shared) return follow(from);
  say_(GrownNews{.log = true, .ranks = true});
  tell_end();
}

void NodeTask::server_is_gone() {
  welcome_.reset();
  follower_.reset();
}

void NodeTask::pause_telling(bool paused) {
  if (follower_) follower_->pause(paused);
}

void NodeTask::follow(const Welcome& from) {
  auto follower =
      RecordFollower::start(loop_, folder_, from.log_offset, from.metrics_offset,
                            [this](FollowRecord record) { tell_record(std::move(record)); });
  if (follower) {
    follower_ = *std::move(follower);
    return;
  }
  base::log_error("the task's log cannot be told: " + follower.error().what);
}

void NodeTask::tell_record(FollowRecord record) {
  const bool is_last = record.kind == FollowKind::kExit;
  const bool runs = record.kind == FollowKind::kRunning;
  say_(RecordNews{std::move(record)});
  // What is known by then, as which MPI it has, is there when its start is answered.
  if (runs) say_(*answer_);
  if (!is_last) return;
  all_is_told_ = true;
  tell_end();
}

void NodeTask::watch_growth() {
  log_watch_ = engine_->watch_log(gang_, name_, [this] { grown(true, false); });
  grown(true, !engine_->ranks(gang_, {name_}).empty());  // what was quicker than the watch
}

void NodeTask::grown(bool log, bool ranks) {
  to_tell_.log = to_tell_.log || log;
  to_tell_.ranks = to_tell_.ranks || ranks;
  if (tell_soon_) return;
  say_(std::exchange(to_tell_, {}));
  tell_soon_ = loop_.after(kHintPause, [this] {
    tell_soon_.reset();
    if (to_tell_ != GrownNews{}) grown(false, false);
  });
}

// --- orders

void NodeTask::stop(StopMode mode) {
  if (std::exchange(is_fetching_, false)) {
    return answered(Error{.code = ErrorCode::kUnavailable,
                          .what = "was stopped while its files were being brought"});
  }
  if (engine_) engine_->stop(gang_, {name_}, mode);
}

void NodeTask::change(const ChangeOrder& order) {
  const auto done = [this, number = order.number](Result<void> changed) {
    say_(ChangeAnswer{number, changed ? std::nullopt : std::optional(std::move(changed).error())});
  };
  if (is_starting() && engine_ == nullptr) return done({});
  engine_->change_files(gang_, {order.change}, done);
}

void NodeTask::exec(const ExecOrder& order) {
  bridge(order.stream, [this, &order](ExecHandlers handlers) {
    return engine_->exec(gang_, name_, order.plan, std::move(handlers));
  });
}

void NodeTask::attach(const AttachOrder& order) {
  bridge(order.stream, [this](ExecHandlers handlers) {
    return engine_->attach(gang_, name_, std::move(handlers));
  });
}

void NodeTask::bridge(uint64_t stream, const ExecBridge::Begin& begin) {
  if (engine_ == nullptr) {
    return say_(
        StreamRefused{stream, {.code = ErrorCode::kConflict, .what = "the task does not run"}});
  }
  auto bridged = std::make_shared<Bridged>();
  const std::weak_ptr<Bridged> weak = bridged;
  bridged->bridge =
      std::make_shared<ExecBridge>(loop_, [this, weak] { bridges_.erase(weak.lock()); });
  if (auto begun = bridged->bridge->begin(begin); !begun) {
    return say_(StreamRefused{stream, std::move(begun).error()});
  }
  bridges_.insert(bridged);
  bridged->opening = open_(stream, [this, weak, stream](TreeFetch::Line line) {
    const auto still = weak.lock();
    if (!still) return;
    if (line) return still->bridge->connected(*std::move(line));
    say_(StreamRefused{stream, std::move(line).error()});
    bridges_.erase(still);
  });
}

/// The folder is there where the job has one; else there is nothing in it.
void NodeTask::send_artifacts(const ArtifactsOrder& order) {
  const fs::path folder = folder_.path.parent_path().parent_path() / "artifacts";
  if (auto made = base::make_private_folder(folder); !made) {
    return say_(StreamRefused{order.stream, std::move(made).error()});
  }
  const auto slot = std::make_shared<std::shared_ptr<void>>();
  *slot = open_(order.stream, [this, folder, slot, stream = order.stream](TreeFetch::Line line) {
    openings_.erase(*slot);
    if (line) return artifacts_.send(*std::move(line), folder);
    say_(StreamRefused{stream, std::move(line).error()});
  });
  openings_.insert(*slot);
}

void NodeTask::remove_what_is_left() {
  follower_.reset();
  if (!order_.is_shared) remove_task_folder(order_.folder, gang_, name_);
}

}  // namespace muster::engine::slurm
