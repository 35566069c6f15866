#include "control/log_follower.h"

#include <algorithm>

namespace muster::control {

using job::Job;
using job::LogRecord;

namespace {

// One step of reading, so that the loop gets its turn in between.
constexpr size_t kStepBytes = 512 << 10;
// How long a line without its newline is held back in the hope of the rest.
constexpr std::chrono::milliseconds kPartialPause{150};

}  // namespace

/// One task's log: where it is read, its lines, and the next frame in the order of time.
struct LogFollower::Source {
  int attempt = 0;
  std::string task;
  std::unique_ptr<engine::LogCursor> cursor;
  LineSplitter splitter;
  std::shared_ptr<void> watch;
  engine::LogFrame frame;
  bool has_frame = false;
  bool damaged = false;

  /// Loads the next frame; false where there is none now.
  bool peek() {
    if (has_frame || damaged) return has_frame;
    const auto next = cursor->next(frame);
    damaged = !next;
    has_frame = next && *next;
    return has_frame;
  }
};

LogFollower::LogFollower(base::EventLoop& loop, Controller& controller, engine::Engine& engine,
                         std::string name, job::LogQuery query)
    : loop_(loop),
      controller_(controller),
      engine_(engine),
      name_(std::move(name)),
      query_(std::move(query)),
      in_tail_(query_.tail.has_value()) {
  job_watch_ = controller_.watch(name_, [this] { wait(); });
}

LogFollower::~LogFollower() = default;

void LogFollower::pull(Deliver deliver) {
  deliver_ = std::move(deliver);
  wait();
}

/// Something may be there to read: looks at it in a moment, once.
void LogFollower::wait() {
  if (!deliver_ || std::exchange(posted_, true)) return;
  loop_.post([this, alive = std::weak_ptr<bool>(alive_)] {
    if (alive.expired()) return;
    posted_ = false;
    if (deliver_) advance();
  });
}

void LogFollower::advance() {
  const auto found = controller_.find(name_);
  if (!found) return this->deliver(true);
  const Job& job = **found;
  if (id_.empty()) id_ = job.id;
  if (id_ != job.id) return this->deliver(true);  // another of its name
  const bool over = job::is_final(job.phase);
  open_sources(job);
  // A log that was whole when the job was seen to be over is read to its end before the end is
  // told.
  const bool more = read_some();
  if (more) {
    if (ready_.empty()) return wait();
    return this->deliver(false);
  }
  if (over || !query_.follow) {
    flush(true);
    in_tail_ = false;
    std::move(tail_.begin(), tail_.end(), std::back_inserter(ready_));
    tail_.clear();
    return this->deliver(true);
  }
  if (std::exchange(in_tail_, false)) {
    std::move(tail_.begin(), tail_.end(), std::back_inserter(ready_));
    tail_.clear();
  }
  if (!ready_.empty()) return this->deliver(false);
  const bool partial = std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
    return source->splitter.has_partial();
  });
  if (partial && !partial_timer_) {
    partial_timer_ = loop_.after(kPartialPause, [this] {
      partial_timer_.reset();
      flush(false);
      if (deliver_ && !ready_.empty()) this->deliver(false);
    });
  }
}

/// A job that was started again has a log for each attempt, one after the other.
void LogFollower::open_sources(const Job& job) {
  for (int attempt = std::max(1, settled_attempts_ + 1); attempt <= job.attempt; ++attempt) {
    for (const job::Task& task : job.tasks) {
      if (!query_.task || *query_.task == task.name) open_source({job.id, attempt}, task);
    }
  }
  // No task will be added to those before the present one.
  settled_attempts_ = std::max(0, job.attempt - 1);
}

void LogFollower::open_source(const engine::Gang& gang, const job::Task& task) {
  const bool open = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
    return source->attempt == gang.attempt && source->task == task.name;
  });
  if (open) return;
  auto cursor = engine_.open_log(gang, task.name);
  if (!cursor) return;
  auto source =
      std::make_unique<Source>(Source{.attempt = gang.attempt,
                                      .task = task.name,
                                      .cursor = *std::move(cursor),
                                      .splitter = LineSplitter(task.name, task.hostname)});
  if (query_.follow) source->watch = engine_.watch_log(gang, task.name, [this] { wait(); });
  sources_.push_back(std::move(source));
}

LogFollower::Source* LogFollower::earliest() {
  Source* first = nullptr;
  for (const auto& source : sources_) {
    if (source->peek() && (first == nullptr || source->frame.time < first->frame.time)) {
      first = source.get();
    }
  }
  return first;
}

/// Reads one step. True: there is more to read right now.
bool LogFollower::read_some() {
  size_t bytes = 0;
  while (Source* source = earliest()) {
    source->splitter.add(source->frame, [this](LogRecord record) { take(std::move(record)); });
    source->has_frame = false;
    bytes += source->frame.bytes.size() + engine::kFrameHeader;
    if (bytes >= kStepBytes) return true;
  }
  return false;
}

void LogFollower::flush(bool last) {
  for (const auto& source : sources_) {
    source->splitter.flush(last, [this](LogRecord record) { take(std::move(record)); });
  }
}

void LogFollower::take(LogRecord record) {
  if (query_.since && record.time < *query_.since) return;
  if (!in_tail_) return ready_.push_back(std::move(record));
  tail_.push_back(std::move(record));
  if (tail_.size() > static_cast<size_t>(std::max(0, *query_.tail))) tail_.pop_front();
}

void LogFollower::deliver(bool end) {
  const Deliver deliver = std::exchange(deliver_, nullptr);
  deliver(std::exchange(ready_, {}), end);
}

}  // namespace muster::control
