#include "engine/node/node_task.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/text.h"
#include "engine/engine_errors.h"
#include "engine/node/attempt_folder.h"
#include "engine/shim/follow.h"

namespace muster::engine::node {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

/// Between two reports that a task's log has grown.
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
  options.limits = order.limits;
  options.holds_claims = true;
  options.first_sample = std::chrono::milliseconds(order.first_sample_ms);
  options.sample_interval = std::chrono::milliseconds(order.sample_interval_ms);
  for (const std::string& path : order.hidden) options.hidden.emplace_back(path);
  return options;
}

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

struct Pipe {
  UniqueFd read_end, write_end;
};

Result<Pipe> make_record_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0) {
    return base::system_error("cannot make a pipe", errno);
  }
  return Pipe{UniqueFd(ends[0]), UniqueFd(ends[1])};
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

// --- the records of a task

/// Follows the task (engine/shim/follow.h) on a thread of its own, and passes its records on, on
/// the loop's thread.
class NodeTask::RecordFollower {
 public:
  using Take = std::function<void(FollowRecord)>;

  /// From these offsets on. `take` may destroy the follower.
  static Result<std::unique_ptr<RecordFollower>> start(base::EventLoop& loop,
                                                       const TaskFolder& folder,
                                                       uint64_t log_offset, uint64_t metrics_offset,
                                                       Take take);
  ~RecordFollower();

  /// While paused, passes nothing on and loses nothing.
  void pause(bool paused);

 private:
  RecordFollower(base::EventLoop& loop, Take take) : loop_(loop), take_(std::move(take)) {}
  void read();
  void read_records();

  base::EventLoop& loop_;
  Take take_;
  FollowReader reader_;
  bool paused_ = false;
  std::thread thread_;
  UniqueFd hang_up_;  ///< closing it ends the thread
  UniqueFd records_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
  base::EventLoop::Interest readable_;  // after records_: destroyed first
};

Result<std::unique_ptr<NodeTask::RecordFollower>> NodeTask::RecordFollower::start(
    base::EventLoop& loop, const TaskFolder& folder, uint64_t log_offset, uint64_t metrics_offset,
    Take take) {
  MUSTER_TRY(Pipe records, make_record_pipe());
  MUSTER_TRY(Pipe hang_up, make_record_pipe());
  std::unique_ptr<RecordFollower> follower(new RecordFollower(loop, std::move(take)));
  follower->records_ = std::move(records.read_end);
  follower->hang_up_ = std::move(hang_up.write_end);
  follower->thread_ =
      std::thread([folder, log_offset, metrics_offset, output = std::move(records.write_end),
                   end = std::move(hang_up.read_end)] {
        engine::follow({.folder = folder,
                        .log_offset = log_offset,
                        .metrics_offset = metrics_offset,
                        .output = output.get(),
                        .hang_up = end.get()});
      });
  follower->pause(true);
  follower->pause(false);
  return follower;
}

NodeTask::RecordFollower::~RecordFollower() {
  *alive_ = false;
  readable_.reset();
  hang_up_.reset();
  records_.reset();
  thread_.join();
}

void NodeTask::RecordFollower::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  readable_.reset();
  if (paused || !records_) return;
  readable_ = loop_.when_readable(records_.get(), [this] { read(); });
  loop_.post([this, alive = alive_] {
    if (*alive) read_records();
  });
}

void NodeTask::RecordFollower::read() {
  std::array<char, kMaxFollowRecord> bytes;
  const ssize_t count = ::read(records_.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return readable_.reset();
  reader_.add({bytes.data(), static_cast<size_t>(count)});
  read_records();
}

void NodeTask::RecordFollower::read_records() {
  const auto alive = alive_;
  while (*alive && !paused_) {
    auto record = reader_.next();
    if (!record) return;
    const auto take = take_;
    take(*std::move(record));
  }
}

// --- the task

/// A program, and the connection that is being opened for it.
struct NodeTask::Bridged {
  std::shared_ptr<ExecBridge> bridge;
  std::shared_ptr<void> opening;
};

NodeTask::NodeTask(base::EventLoop& loop, Gang gang, const NodeFacts& facts, StartOrder order,
                   AdaptPlan adapt, Send send, TreeFetch::Open open)
    : loop_(loop),
      gang_(std::move(gang)),
      facts_(facts),
      order_(std::move(order)),
      name_(order_.plan.task),
      adapt_(std::move(adapt)),
      send_(std::move(send)),
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
  engine_->listen([this](const TaskReport& report) { handle(report); });
  return {};
}

void NodeTask::launch() {
  launch::TaskPlan plan = plan_on_node(order_.plan, facts_);
  if (adapt_) plan = adapt_(std::move(plan), folder_.path.parent_path().string());
  engine_->start(gang_, {std::move(plan)}, [this](Result<void> started) {
    answered(started ? std::nullopt : std::optional(std::move(started).error()));
  });
  order_.plan = {};  // it contains secrets
}

void NodeTask::answered(std::optional<Error> error) {
  if (error) error = bare_start_error(*std::move(error));  // the server names the task
  answer_ = StartAnswer{std::move(error)};
  if (answer_->error) {
    send_(*answer_);
    if (ended_) ended_();
    return;
  }
  if (order_.is_shared) {
    send_(*answer_);
    return watch_growth();
  }
  if (welcome_) follow(*welcome_);
}

void NodeTask::handle(const TaskReport& report) {
  if (std::holds_alternative<TaskAnswered>(report.what)) {
    has_answered_ = true;
    send_(AnsweredNews{});
  } else if (std::holds_alternative<RanksChanged>(report.what)) {
    if (order_.is_shared) grown(false, true);
  } else if (const auto* const end = std::get_if<TaskEnded>(&report.what)) {
    ended(*end);
  }
}

// --- its end

void NodeTask::ended(TaskEnded end) {
  if (end.status.lost && !order_.is_shared) write_exit_record();
  end_ = std::move(end);
  send_end();
  if (ended_) ended_();
}

/// Writes the record that a killed shim could not write, so that the follower reads the rest of the
/// task's records and then its end.
void NodeTask::write_exit_record() const {
  const auto written = base::write_file(
      folder_.exit(),
      encode(ExitRecord{.status = {.signal = SIGKILL, .error = "its shim was killed"},
                        .ended = base::SystemClock().now()}));
  if (!written) base::log_error(written.error().what);
}

/// Sends the end after all other records.
void NodeTask::send_end() {
  if (!end_ || !welcome_) return;
  if (order_.is_shared || all_sent_) send_(EndedNews{*end_});
}

// --- reports

void NodeTask::report_again(const Welcome& from) {
  welcome_ = from;
  all_sent_ = false;
  if (!answer_) return;
  if (answer_->error || order_.is_shared) send_(*answer_);
  if (answer_->error) return;
  if (has_answered_) send_(AnsweredNews{});
  if (!order_.is_shared) return follow(from);
  send_(GrownNews{.log = true, .ranks = true});
  send_end();
}

void NodeTask::server_lost() {
  welcome_.reset();
  follower_.reset();
}

void NodeTask::pause_reports(bool paused) {
  if (follower_) follower_->pause(paused);
}

void NodeTask::follow(const Welcome& from) {
  auto follower =
      RecordFollower::start(loop_, folder_, from.log_offset, from.metrics_offset,
                            [this](FollowRecord record) { send_record(std::move(record)); });
  if (follower) {
    follower_ = *std::move(follower);
    return;
  }
  base::log_error("cannot send the task's log: " + follower.error().what);
}

void NodeTask::send_record(FollowRecord record) {
  const bool is_last = record.kind == FollowKind::kExit;
  const bool runs = record.kind == FollowKind::kRunning;
  send_(RecordNews{std::move(record)});
  // By now the task's folder holds all that a started task has, such as which MPI it uses.
  if (runs) send_(*answer_);
  if (!is_last) return;
  all_sent_ = true;
  send_end();
}

void NodeTask::watch_growth() {
  log_watch_ = engine_->watch_log(gang_, name_, [this] { grown(true, false); });
  grown(true, !engine_->ranks(gang_, {name_}).empty());  // what has happened before the watch began
}

void NodeTask::grown(bool log, bool ranks) {
  pending_.log = pending_.log || log;
  pending_.ranks = pending_.ranks || ranks;
  if (send_soon_) return;
  send_(std::exchange(pending_, {}));
  send_soon_ = loop_.after(kHintPause, [this] {
    send_soon_.reset();
    if (pending_ != GrownNews{}) grown(false, false);
  });
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
    return send_(
        StreamRefused{stream, {.code = ErrorCode::kConflict, .what = "the task does not run"}});
  }
  auto bridged = std::make_shared<Bridged>();
  const std::weak_ptr<Bridged> weak = bridged;
  bridged->bridge =
      std::make_shared<ExecBridge>(loop_, [this, weak] { bridges_.erase(weak.lock()); });
  if (auto begun = bridged->bridge->begin(begin); !begun) {
    return send_(StreamRefused{stream, std::move(begun).error()});
  }
  bridges_.insert(bridged);
  bridged->opening = open_(stream, [this, weak, stream](TreeFetch::Line line) {
    const auto still = weak.lock();
    if (!still) return;
    if (line) return still->bridge->connected(*std::move(line));
    send_(StreamRefused{stream, std::move(line).error()});
    bridges_.erase(still);
  });
}

/// A job without artifacts has no such folder: an empty one is made and sent.
void NodeTask::send_artifacts(const ArtifactsOrder& order) {
  const fs::path folder = folder_.path.parent_path().parent_path() / "artifacts";
  if (auto made = base::make_private_folder(folder); !made) {
    return send_(StreamRefused{order.stream, std::move(made).error()});
  }
  const auto slot = std::make_shared<std::shared_ptr<void>>();
  *slot = open_(order.stream, [this, folder, slot, stream = order.stream](TreeFetch::Line line) {
    openings_.erase(*slot);
    if (line) return artifacts_.send(*std::move(line), folder);
    send_(StreamRefused{stream, std::move(line).error()});
  });
  openings_.insert(*slot);
}

void NodeTask::remove_files() {
  follower_.reset();
  if (!order_.is_shared) remove_task_folder(order_.folder, gang_, name_);
}

}  // namespace muster::engine::node
