#include "engine/node/task_reports.h"

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.h"
#include "base/files.h"
#include "base/log.h"
#include "base/unique_fd.h"

namespace muster::engine::node {

using base::Error;
using base::Result;
using base::UniqueFd;

namespace {

/// Between two reports that a task's log has grown.
constexpr std::chrono::milliseconds kHintPause{100};
/// Between two tries to follow the task, or to record its end, if this machine has no descriptor or
/// thread left, or its disk is full.
constexpr std::chrono::seconds kFollowAgain{1};

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

/// Follows the task (engine/shim/follow.h) on a thread of its own, and passes its records on, on
/// the loop's thread.
class TaskReports::RecordFollower {
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

Result<std::unique_ptr<TaskReports::RecordFollower>> TaskReports::RecordFollower::start(
    base::EventLoop& loop, const TaskFolder& folder, uint64_t log_offset, uint64_t metrics_offset,
    Take take) {
  MUSTER_TRY(Pipe records, make_record_pipe());
  MUSTER_TRY(Pipe hang_up, make_record_pipe());
  std::unique_ptr<RecordFollower> follower(new RecordFollower(loop, std::move(take)));
  follower->records_ = std::move(records.read_end);
  follower->hang_up_ = std::move(hang_up.write_end);
  try {
    follower->thread_ =
        std::thread([folder, log_offset, metrics_offset, output = std::move(records.write_end),
                     end = std::move(hang_up.read_end)] {
          engine::follow({.folder = folder,
                          .log_offset = log_offset,
                          .metrics_offset = metrics_offset,
                          .output = output.get(),
                          .hang_up = end.get()});
        });
  } catch (const std::system_error& error) {
    return base::system_error("cannot start a thread", error.code().value());
  }
  follower->pause(true);
  follower->pause(false);
  return follower;
}

TaskReports::RecordFollower::~RecordFollower() {
  *alive_ = false;
  readable_.reset();
  hang_up_.reset();
  records_.reset();
  if (thread_.joinable()) thread_.join();
}

void TaskReports::RecordFollower::pause(bool paused) {
  if (std::exchange(paused_, paused) == paused) return;
  readable_.reset();
  if (paused || !records_) return;
  readable_ = loop_.when_readable(records_.get(), [this] { read(); });
  loop_.post([this, alive = alive_] {
    if (*alive) read_records();
  });
}

void TaskReports::RecordFollower::read() {
  std::array<char, kMaxFollowRecord> bytes;
  const ssize_t count = ::read(records_.get(), bytes.data(), bytes.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return readable_.reset();
  reader_.add({bytes.data(), static_cast<size_t>(count)});
  read_records();
}

void TaskReports::RecordFollower::read_records() {
  const auto alive = alive_;
  while (*alive && !paused_) {
    auto record = reader_.next();
    if (!record) return;
    const auto take = take_;
    take(*std::move(record));
  }
}

// --- the reports

TaskReports::TaskReports(base::EventLoop& loop, TaskFolder folder, bool is_shared, Send send)
    : loop_(loop), folder_(std::move(folder)), is_shared_(is_shared), send_(std::move(send)) {}

TaskReports::~TaskReports() = default;

void TaskReports::started(std::optional<Error> error) {
  answer_ = StartAnswer{std::move(error)};
  if (answer_->error || is_shared_) return send_(*answer_);
  if (welcome_) follow(*welcome_);
}

void TaskReports::port_answers() {
  port_answers_ = true;
  send_(AnsweredNews{});
}

void TaskReports::ended(TaskEnded end) {
  if (end.status.lost && !is_shared_) write_exit_record();
  end_ = std::move(end);
  send_end();
}

/// Writes the record that a killed shim could not write, so that the follower reads the rest of the
/// task's records and then its end. It goes into the space that was reserved for the shim's record,
/// because the disk may be full. Repeated until it succeeds: this machine may have no descriptor
/// left.
void TaskReports::write_exit_record() {
  write_again_.reset();
  ExitFile file;
  if (const auto reserved = file.reserve(folder_.exit()); !reserved) {
    base::log_error("cannot record the end of the task yet: " + reserved.error().what);
    write_again_ = loop_.after(kFollowAgain, [this] { write_exit_record(); });
    return;
  }
  file.write({.status = {.signal = SIGKILL, .error = "its shim was killed"},
              .ended = base::SystemClock().now()});
}

/// Sends the end after all other records and changes.
void TaskReports::send_end() {
  if (!end_ || !welcome_) return;
  if (pending_ != GrownNews{}) send_(std::exchange(pending_, {}));
  if (is_shared_ || all_sent_) send_(EndedNews{*end_});
}

void TaskReports::report_again(const Welcome& from) {
  welcome_ = from;
  all_sent_ = false;
  if (!answer_) return;
  if (answer_->error || is_shared_) send_(*answer_);
  if (answer_->error) return;
  if (port_answers_) send_(AnsweredNews{});
  if (!is_shared_) return follow(from);
  send_(GrownNews{.log = true, .ranks = true});
  send_end();
}

void TaskReports::server_lost() {
  welcome_.reset();
  stop_following();
}

void TaskReports::pause(bool paused) {
  if (follower_) follower_->pause(paused);
}

void TaskReports::stop_following() {
  follow_again_.reset();
  follower_.reset();
}

void TaskReports::follow(const Welcome& from) {
  auto follower =
      RecordFollower::start(loop_, folder_, from.log_offset, from.metrics_offset,
                            [this](FollowRecord record) { send_record(std::move(record)); });
  if (follower) {
    follow_again_.reset();
    follower_ = *std::move(follower);
    return;
  }
  follower_.reset();
  base::log_error("cannot send the task's log yet: " + follower.error().what);
  follow_again_ = loop_.after(kFollowAgain, [this] {
    if (welcome_) follow(*welcome_);
  });
}

void TaskReports::send_record(FollowRecord record) {
  const bool is_last = record.kind == FollowKind::kExit;
  const bool runs = record.kind == FollowKind::kRunning;
  send_(RecordNews{std::move(record)});
  // By now the task's folder holds all that a started task has, such as which MPI it uses.
  if (runs) send_(*answer_);
  if (!is_last) return;
  all_sent_ = true;
  send_end();
}

void TaskReports::grown(bool log, bool ranks) {
  pending_.log = pending_.log || log;
  pending_.ranks = pending_.ranks || ranks;
  if (send_soon_) return;
  send_(std::exchange(pending_, {}));
  send_soon_ = loop_.after(kHintPause, [this] {
    send_soon_.reset();
    if (pending_ != GrownNews{}) grown(false, false);
  });
}

}  // namespace muster::engine::node
