#include "engine/container/task_table.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_text.h"
#include "base/log.h"
#include "engine/container/container_plan.h"

namespace muster::engine {

std::string encode(const ContainerRecord& record) {
  return base::json_text(nlohmann::json{{"host", record.host},
                                        {"container", record.container},
                                        {"artifacts", record.artifacts},
                                        {"devices", record.devices},
                                        {"gpu_share_milli", record.gpu_share_milli},
                                        {"job_name", record.job_name},
                                        {"project", record.project}}) +
         "\n";
}

base::Result<ContainerRecord> decode_container_record(std::string_view text) {
  try {
    const auto read = base::parse_json_or_throw(text);
    return ContainerRecord{.host = read.at("host"),
                           .container = read.at("container"),
                           .artifacts = read.value("artifacts", ""),
                           .devices = read.value("devices", std::vector<int>()),
                           .gpu_share_milli = read.value("gpu_share_milli", 0),
                           .job_name = read.value("job_name", ""),
                           .project = read.value("project", "")};
  } catch (const nlohmann::json::exception&) {
    return base::Error{.what = "cannot parse the record of a task's container"};
  }
}

std::shared_ptr<HeldTask> TaskTable::find(const TaskKey& key) const {
  const auto found = tasks_.find(key);
  return found == tasks_.end() ? nullptr : found->second;
}

std::shared_ptr<HeldTask> TaskTable::take(const TaskKey& key) {
  const auto taken = tasks_.extract(key);
  return taken.empty() ? nullptr : taken.mapped();
}

std::vector<std::shared_ptr<HeldTask>> TaskTable::all() const {
  std::vector<std::shared_ptr<HeldTask>> all;
  for (const auto& [key, task] : tasks_) all.push_back(task);
  return all;
}

bool TaskTable::has_tasks(const GangId& gang) const {
  return std::any_of(tasks_.begin(), tasks_.end(),
                     [&](const auto& each) { return each.first.first == gang; });
}

void TaskTable::disconnect() const {
  for (const auto& [key, task] : tasks_) {
    if (task->follower) task->follower->hang_up();
  }
}

void TaskTable::report(const TaskKey& key, TaskNews what) const {
  if (listener_) listener_({.gang = key.first, .task = key.second, .what = std::move(what)});
}

// --- following

namespace {

using base::ErrorCode;
using base::Result;

/// The pause before a broken connection is opened again; it doubles each time.
constexpr std::chrono::milliseconds kFirstFollowPause{50};
constexpr std::chrono::milliseconds kLongestFollowPause{5'000};
constexpr size_t kKeptErrorOutput = 400;
/// Each record may write a file. Many small records of one task must not delay other tasks.
constexpr int kTakenAtOnce = 200;

}  // namespace

bool is_alive(const std::string& state) {
  for (const char* alive : {"running", "paused", "restarting", "removing"}) {
    if (state == alive) return true;
  }
  return false;
}

TaskFollower::TaskFollower(base::EventLoop& loop, HeldHost& host, Mirror mirror, Handlers handlers)
    : loop_(loop),
      host_(host),
      mirror_(std::move(mirror)),
      handlers_(std::move(handlers)),
      pause_(kFirstFollowPause) {}

DockerStream::Handlers TaskFollower::listening() {
  reader_ = {};
  is_behind_ = has_hung_up_ = false;
  const int connection = ++connection_;
  return {.on_output =
              [weak = weak_from_this(), connection](std::string_view bytes, bool is_error) {
                const auto self = weak.lock();
                if (self && self->connection_ == connection) self->take_output(bytes, is_error);
              },
          .on_end =
              [weak = weak_from_this(), connection] {
                const auto self = weak.lock();
                if (self && self->connection_ == connection) self->hung_up();
              }};
}

void TaskFollower::attach(std::function<void(Result<void>)> attached) {
  auto handlers = listening();
  // Released when it is called: the connection keeps its callbacks, and everything that they hold,
  // as long as it lasts.
  const auto once = std::make_shared<std::function<void(Result<void>)>>(std::move(attached));
  host_.client().attach(container_, false, std::move(handlers),
                        [weak = weak_from_this(), connection = connection_,
                         once](Result<std::unique_ptr<DockerStream>> stream) {
                          const auto then = std::exchange(*once, nullptr);
                          const auto self = weak.lock();
                          if (!self || self->finished_) return;
                          if (!stream) return then(std::move(stream).error());
                          if (self->connection_ == connection) self->stream_ = *std::move(stream);
                          then({});
                        });
}

void TaskFollower::resume() {
  look();
}

void TaskFollower::stop() {
  finished_ = true;
  handlers_ = {};
  timer_.reset();
  drop_stream();
}

void TaskFollower::hang_up() {
  finished_ = true;
  handlers_ = {};
  timer_.reset();
  stream_.reset();
}

/// Destroyed later, because the stream may be calling this object now.
void TaskFollower::drop_stream() {
  ++connection_;
  if (stream_) loop_.post([stream = std::exchange(stream_, nullptr)] {});
}

void TaskFollower::take_output(std::string_view bytes, bool is_error) {
  if (is_error) {
    words_ += bytes;
    if (words_.size() > kKeptErrorOutput) words_.erase(0, words_.size() - kKeptErrorOutput);
    return;
  }
  reader_.add(bytes);
  if (!is_behind_) take_some();
}

void TaskFollower::take_some() {
  const int connection = connection_;
  for (int taken = 0; connection_ == connection; ++taken) {
    if (taken == kTakenAtOnce) return take_the_rest_later();
    const auto record = reader_.next();
    if (!record) break;
    take(*record);
  }
  // The bytes are not the shim's, but written by the task; or the stream has ended.
  if (connection_ == connection && (reader_.is_broken() || has_hung_up_)) look_later();
}

void TaskFollower::take_the_rest_later() {
  is_behind_ = true;
  if (stream_) stream_->pause(true);
  loop_.post([weak = weak_from_this(), connection = connection_] {
    const auto self = weak.lock();
    if (!self || self->connection_ != connection) return;
    self->is_behind_ = false;
    if (self->stream_) self->stream_->pause(false);
    self->take_some();
  });
}

void TaskFollower::hung_up() {
  has_hung_up_ = true;
  if (!is_behind_) look_later();
}

void TaskFollower::take(const FollowRecord& record) {
  const size_t ranks = mirror_.ranks();
  if (const auto taken = mirror_.take(record); !taken) {
    if (std::exchange(fault_, taken.error().what) != taken.error().what) {
      base::log_error("cannot store the report of a task, and tries again: " + taken.error().what);
    }
    return look_later();
  }
  fault_.clear();
  pause_ = kFirstFollowPause;
  // For each report the caller reads all ranks, so known ranks are not reported again.
  if (record.kind == FollowKind::kRank && mirror_.ranks() == ranks) return;
  const auto on_record = handlers_.on_record;
  if (record.kind == FollowKind::kExit || record.kind == FollowKind::kRefused) stop();
  if (on_record) on_record(record);
}

void TaskFollower::look_later() {
  drop_stream();
  if (finished_) return;
  timer_ = loop_.after(pause_, [this] { look(); });
  pause_ = std::min(pause_ * 2, kLongestFollowPause);
}

void TaskFollower::look() {
  timer_.reset();
  drop_stream();
  if (finished_) return;
  host_.client().inspect(container_, [weak = weak_from_this()](Result<ContainerState> state) {
    if (const auto self = weak.lock()) self->looked(std::move(state));
  });
}

void TaskFollower::looked(Result<ContainerState> state) {
  if (finished_) return;
  if (state && is_alive(state->state)) return follow_by_exec();
  if (state) return gone(*std::move(state));
  if (state.error().code == ErrorCode::kNotFound) return gone(std::nullopt);
  host_.host.ask();
  look_later();
}

void TaskFollower::look_again() {
  if (finished_) return;
  if (timer_) return look();
  if (!stream_) return;  // a request is pending, and its time is limited
  host_.client().inspect(container_, [weak = weak_from_this(),
                                      connection = connection_](Result<ContainerState> state) {
    const auto self = weak.lock();
    if (!self || self->finished_ || self->connection_ != connection) return;
    const bool is_alive_here = state && is_alive(state->state) && self->host_.is_this_machine();
    if (is_alive_here) return;
    self->drop_stream();
    self->looked(std::move(state));
  });
}

// The input is never written to. Its end shows the program that this follower is gone.
void TaskFollower::follow_by_exec() {
  const DockerExec exec{.argv = {std::string(kProgramsFolder) + "/muster-shim", "--follow",
                                 kTaskFolder, std::to_string(mirror_.log_offset()), "0"},
                        .environment = {},
                        .user = {},
                        .folder = "/"};
  host_.client().create_exec(
      container_, exec,
      [weak = weak_from_this(), connection = connection_](Result<std::string> id) {
        const auto self = weak.lock();
        if (!self || self->finished_ || self->connection_ != connection) return;
        id ? self->start_following(*id) : self->look_later();
      });
}

void TaskFollower::start_following(const std::string& exec) {
  auto handlers = listening();
  host_.client().start_exec(exec, false, std::move(handlers),
                            [weak = weak_from_this(), connection = connection_](
                                Result<std::unique_ptr<DockerStream>> stream) {
                              const auto self = weak.lock();
                              if (!self || self->finished_ || self->connection_ != connection)
                                return;
                              if (!stream) return self->look_later();
                              self->stream_ = *std::move(stream);
                            });
}

void TaskFollower::gone(std::optional<ContainerState> state) {
  const auto on_gone = handlers_.on_gone;
  stop();
  if (on_gone) on_gone(std::move(state));
}

}  // namespace muster::engine
