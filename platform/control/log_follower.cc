#include "control/log_follower.h"

#include <algorithm>

namespace muster::control {

using job::Job;
using job::LogRecord;

namespace {

// One step of reading, so that the loop gets its turn in between.
constexpr size_t kStepBytes = 256 << 10;
// How much is printed after a line without its newline before it is held back no longer: nobody has
// to read more than this again who goes on from a position.
constexpr uint64_t kStaleBytes = 1 << 20;
static_assert(kStaleBytes + engine::kMaxFrame + engine::kFrameHeader <= kFarthestPending);
// How long a line without its newline is held back in the hope of the rest.
constexpr std::chrono::milliseconds kPartialPause{150};
constexpr std::chrono::milliseconds kRetryPause{200};
// The last lines are held until the log's end is found: of more than this, the last ones.
constexpr size_t kMostTailBytes = 16 << 20;

size_t cost_of(const LogRecord& record) {
  return record.text.size() + sizeof(LogRecord);
}

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
  uint64_t at = 0;                                ///< how much of the log was read, up to `frame`
  std::map<LineSplitter::Source, uint64_t> seen;  ///< so much of what comes is not delivered
  std::map<LineSplitter::Source, uint64_t> dropped;  ///< while in the tail: so much came before it

  /// Loads the next frame; false where there is none now.
  bool peek() {
    if (has_frame || damaged) return has_frame;
    const auto next = cursor->next(frame);
    damaged = !next;
    has_frame = next && *next;
    return has_frame;
  }

  /// Leaves the frame that peek() has loaded behind; its size.
  size_t take_frame() {
    const size_t size = frame.bytes.size() + engine::kFrameHeader;
    at += size;
    has_frame = false;
    return size;
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

void LogFollower::resume(LogPosition from) {
  from_ = std::move(from);
  opened_attempts_ = from_.settled;
  settled_attempts_ = from_.settled;
  in_tail_ = false;
}

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
  if (!in_tail_ && !tail_.empty()) return deliver_tail();
  const auto found = controller_.find(id_.empty() ? name_ : id_);
  if (!found) return this->deliver(true);
  const Job& job = **found;
  id_ = job.id;
  const bool over = job::is_final(job.phase);
  if (!open_sources(job)) return try_again_later();
  // A log that was whole when the job was seen to be over is read to its end before the end is
  // told.
  const bool more = read_some();
  flush_stale();
  if (more) {
    if (ready_.empty()) return wait();
    return this->deliver(false);
  }
  close_settled();
  if (over || !query_.follow) {
    flush(true);
    all_read_ = true;
  }
  // Before the last lines, their place: whoever is cut off amid them asks for these again, not for
  // the last ones that there are by then.
  if (std::exchange(in_tail_, false)) return this->deliver(all_read_ && tail_.empty());
  if (all_read_) return this->deliver(true);
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

/// A job that was started again has a log for each attempt, one after the other. False: one that is
/// there cannot be opened now, for want of descriptors, say.
bool LogFollower::open_sources(const Job& job) {
  for (int attempt = std::max(1, opened_attempts_ + 1); attempt <= job.attempt; ++attempt) {
    for (const job::Task& task : job.tasks) {
      const bool shown = !query_.task || *query_.task == task.name;
      if (shown && !open_source({job.id, attempt}, task)) return false;
    }
  }
  // No task will be added to those before the present one.
  opened_attempts_ = std::max(opened_attempts_, job.attempt - 1);
  return true;
}

// Not read as if it were empty: its bytes would be lost.
void LogFollower::try_again_later() {
  if (retry_timer_) return;
  retry_timer_ = loop_.after(kRetryPause, [this] {
    retry_timer_.reset();
    wait();
  });
}

bool LogFollower::open_source(const engine::Gang& gang, const job::Task& task) {
  const bool open = std::any_of(sources_.begin(), sources_.end(), [&](const auto& source) {
    return source->attempt == gang.attempt && source->task == task.name;
  });
  if (open) return true;
  auto cursor = engine_.open_log(gang, task.name);
  if (!cursor) return cursor.error().code != base::ErrorCode::kExhausted;
  auto source = std::make_unique<Source>(
      Source{.attempt = gang.attempt,
             .task = task.name,
             .cursor = *std::move(cursor),
             .splitter = LineSplitter(task.name, task.hostname, gang.attempt)});
  if (const auto* place = from_.find(gang.attempt, task.name)) go_to(*source, *place);
  if (query_.follow) source->watch = engine_.watch_log(gang, task.name, [this] { wait(); });
  sources_.push_back(std::move(source));
  return true;
}

/// Reads again what is pending there.
void LogFollower::go_to(Source& source, const LogPosition::Source& place) const {
  source.damaged = !source.cursor->seek(place.from);
  source.at = place.from;
  // Each rank's stream, and where in it each frame ends.
  struct Printed {
    std::string bytes;
    std::vector<LineSplitter::Line> frames;
    std::vector<size_t> ends;
  };
  std::map<LineSplitter::Source, Printed> all;
  while (source.at < place.at && source.peek()) {
    if (is_shown(source.frame)) {
      Printed& printed = all[{source.frame.rank, source.frame.stream}];
      printed.bytes += source.frame.bytes;
      printed.frames.push_back({.text = {}, .time = source.frame.time, .at = source.at});
      printed.ends.push_back(printed.bytes.size());
    }
    source.take_frame();
  }
  for (const LogPosition::Part& part : place.parts) {
    const LineSplitter::Source key{part.rank, part.stream};
    if (part.what == LogPosition::Part::What::kSeen) {
      source.seen[key] = part.bytes;
      continue;
    }
    const Printed& printed = all[key];
    const size_t begin = printed.bytes.size() - std::min(printed.bytes.size(), part.bytes);
    const auto end = std::upper_bound(printed.ends.begin(), printed.ends.end(), begin);
    LineSplitter::Line line;
    if (end != printed.ends.end()) line = printed.frames[end - printed.ends.begin()];
    line.text = printed.bytes.substr(begin);
    line.begun = part.what == LogPosition::Part::What::kBegun;
    source.splitter.restore(key, std::move(line));
  }
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
    if (is_shown(source->frame)) {
      source->splitter.add(
          source->frame, [this, source](LogRecord record) { take(*source, std::move(record)); },
          source->at);
    }
    bytes += source->take_frame();
    if (bytes >= kStepBytes) return true;
  }
  return false;
}

bool LogFollower::is_shown(const engine::LogFrame& frame) const {
  return !query_.since || frame.time >= *query_.since;
}

void LogFollower::flush(bool last) {
  for (const auto& source : sources_) {
    source->splitter.flush(last, [&](LogRecord record) { take(*source, std::move(record)); });
  }
}

void LogFollower::flush_stale() {
  for (const auto& source : sources_) {
    if (source->at <= kStaleBytes) continue;
    source->splitter.flush_before(source->at - kStaleBytes,
                                  [&](LogRecord record) { take(*source, std::move(record)); });
  }
}

/// All that there is was read: of the attempts before the present one, nothing more will come.
void LogFollower::close_settled() {
  if (in_tail() || opened_attempts_ == settled_attempts_) return;
  for (const auto& source : sources_) {
    if (source->attempt > opened_attempts_) continue;
    source->splitter.flush(true, [&](LogRecord record) { take(*source, std::move(record)); });
  }
  std::erase_if(sources_,
                [this](const auto& source) { return source->attempt <= opened_attempts_; });
  settled_attempts_ = opened_attempts_;
}

void LogFollower::take(Source& source, LogRecord record) {
  if (!source.seen.empty()) {
    const auto seen = source.seen.find({record.rank, record.stream});
    if (seen != source.seen.end() && seen->second > 0 && !job::drop_seen(record, seen->second)) {
      return;
    }
  }
  if (!in_tail_) return ready_.push_back(std::move(record));
  tail_bytes_ += cost_of(record);
  tail_.push_back({.record = std::move(record), .source = &source});
  const auto most = static_cast<size_t>(std::max(0, *query_.tail));
  while (tail_.size() > most || tail_bytes_ > kMostTailBytes) drop_first_of_tail();
}

void LogFollower::drop_first_of_tail() {
  const auto& [record, source] = tail_.front();
  source->dropped[{record.rank, record.stream}] += job::printed_size(record);
  tail_bytes_ -= cost_of(record);
  tail_.pop_front();
}

void LogFollower::deliver_tail() {
  size_t bytes = 0;
  while (!tail_.empty() && bytes < kStepBytes) {
    bytes += cost_of(tail_.front().record);
    ready_.push_back(tail_.front().record);
    drop_first_of_tail();
  }
  this->deliver(all_read_ && tail_.empty());
}

LogPosition LogFollower::position() const {
  using Part = LogPosition::Part;
  LogPosition position{.settled = settled_attempts_, .sources = {}};
  for (const auto& source : sources_) {
    LogPosition::Source place{.attempt = source->attempt, .task = source->task, .parts = {}};
    if (in_tail()) {
      for (const auto& [key, bytes] : source->dropped) {
        place.parts.push_back({key.first, key.second, Part::What::kSeen, bytes});
      }
      position.sources.push_back(std::move(place));
      continue;
    }
    place.at = source->at;
    place.from = source->at;
    for (const auto& [key, line] : source->splitter.unfinished()) {
      if (!line.text.empty()) place.from = std::min(place.from, line.at);
      place.parts.push_back({key.first, key.second,
                             line.begun ? Part::What::kBegun : Part::What::kPending,
                             line.text.size()});
    }
    for (const auto& [key, bytes] : source->seen) {
      if (bytes > 0) place.parts.push_back({key.first, key.second, Part::What::kSeen, bytes});
    }
    position.sources.push_back(std::move(place));
  }
  // Those that could not be opened again, yet.
  for (const LogPosition::Source& place : from_.sources) {
    if (place.attempt > settled_attempts_ && position.find(place.attempt, place.task) == nullptr) {
      position.sources.push_back(place);
    }
  }
  return position;
}

void LogFollower::deliver(bool end) {
  const Deliver deliver = std::exchange(deliver_, nullptr);
  deliver(std::exchange(ready_, {}), end);
}

}  // namespace muster::control
