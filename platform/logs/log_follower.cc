#include "logs/log_follower.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace muster::logs {

using job::Job;

namespace {

// One step of reading, so that the loop gets its turn in between.
constexpr size_t kStepBytes = 256 << 10;
// The same where each line is looked into, which takes far longer than reading it.
constexpr size_t kSearchedStepBytes = 32 << 10;
// How much is printed after a line without its newline before it is held back no longer: nobody has
// to read more than this again who goes on from a position.
constexpr uint64_t kStaleBytes = 1 << 20;
static_assert(kStaleBytes + engine::kMaxFrame + engine::kFrameHeader <= kFarthestPending);
// How long a line without its newline is held back in the hope of the rest.
constexpr std::chrono::milliseconds kPartialPause{150};
constexpr std::chrono::milliseconds kReadRetryPause{200};

std::shared_ptr<const job::LogPattern> pattern_of(const job::LogQuery& query) {
  if (query.grep.empty()) return nullptr;
  auto pattern = job::LogPattern::compile(query.grep);
  return pattern ? std::make_shared<const job::LogPattern>(*std::move(pattern)) : nullptr;
}

}  // namespace

/// One task's log: where it is read, its lines, and the next frame in the order of time.
struct LogFollower::Source {
  int attempt = 0;
  std::string task;
  std::unique_ptr<engine::LogCursor> cursor;
  RunSplitter splitter;
  std::shared_ptr<void> watch;
  engine::LogFrame frame;
  bool has_frame = false;
  bool damaged = false;
  bool may_have_more = true;  ///< it has grown since its end was met, or may have
  uint64_t at = 0;            ///< how much of the log was read, up to `frame`
  uint64_t begin = 0;         ///< while in the tail: where in the log the counts begin
  LogCounts seen;             ///< so much of what comes is not delivered
  /// While in the tail: so much came before it.
  std::shared_ptr<LogCounts> dropped = std::make_shared<LogCounts>();

  /// Loads the next frame; false where there is none now.
  bool peek() {
    if (has_frame || damaged || !may_have_more) return has_frame;
    const auto next = cursor->next(frame);
    damaged = !next;
    has_frame = next && *next;
    may_have_more = has_frame;
    return has_frame;
  }

  /// Leaves the frame that peek() has loaded behind.
  void leave_frame() {
    at += engine::size_in_log(frame);
    has_frame = false;
  }
};

LogFollower::LogFollower(base::EventLoop& loop, engine::Engine& engine, FollowedJob job,
                         job::LogQuery query)
    : loop_(loop),
      engine_(engine),
      job_(std::move(job)),
      query_(std::move(query)),
      only_(pattern_of(query_)),
      tail_(static_cast<size_t>(std::max(0, query_.tail.value_or(0)))),
      in_tail_(query_.tail.has_value()) {
  job_watch_ = job_.watch([this] {
    look_at_all();
    wait();
  });
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
  const Job* const found = job_.get();
  if (found == nullptr) return this->deliver(true);
  const Job& job = *found;
  const bool over = job::is_final(job.phase);
  if (!open_sources(job)) return try_again_later();
  // A log that was whole when the job was seen to be over is read to its end before the end is
  // told.
  if (over || !query_.follow) look_at_all();
  if (read_some()) {
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
  if (std::exchange(in_tail_, false)) {
    tail_.trim();
    return this->deliver(all_read_ && tail_.empty());
  }
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
  retry_timer_ = loop_.after(kReadRetryPause, [this] {
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
  auto source = std::make_unique<Source>(Source{
      .attempt = gang.attempt,
      .task = task.name,
      .cursor = *std::move(cursor),
      .splitter = RunSplitter(
          {.task = task.name, .attempt = gang.attempt, .host = task.hostname, .rank = {}}, only_)});
  if (const auto* place = from_.find(gang.attempt, task.name)) go_to(*source, *place);
  if (query_.follow) {
    source->watch = engine_.watch_log(gang, task.name, [this, grown = source.get()] {
      grown->may_have_more = true;
      wait();
    });
    // What came before it was watched.
    source->may_have_more = true;
  }
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
    std::vector<RunSplitter::Line> frames;
    std::vector<size_t> ends;
  };
  std::map<RunSplitter::Key, Printed> all;
  // What was cut meanwhile is told, in its turn.
  while (source.at < place.at && source.peek() && source.frame.cut == 0) {
    if (is_shown(source.frame)) {
      Printed& printed = all[{source.frame.rank, source.frame.stream}];
      printed.bytes += source.frame.bytes;
      printed.frames.push_back({.text = {}, .time = source.frame.time, .at = source.at});
      printed.ends.push_back(printed.bytes.size());
    }
    source.leave_frame();
  }
  using What = LogPosition::Part::What;
  for (const LogPosition::Part& part : place.parts) {
    const RunSplitter::Key key{part.rank, part.stream};
    if (part.what == What::kSeen) {
      source.seen[key] = part.bytes;
      continue;
    }
    const Printed& printed = all[key];
    const size_t begin = printed.bytes.size() - std::min(printed.bytes.size(), part.bytes);
    const auto end = std::upper_bound(printed.ends.begin(), printed.ends.end(), begin);
    RunSplitter::Line line;
    if (end != printed.ends.end()) line = printed.frames[end - printed.ends.begin()];
    line.text = printed.bytes.substr(begin);
    line.begun = part.what != What::kPending;
    line.hidden = part.what == What::kHidden;
    source.splitter.restore(key, std::move(line));
  }
}

void LogFollower::look_at_all() {
  for (const auto& source : sources_) source->may_have_more = true;
}

/// Whose frame comes next, and up to which time all that comes is of the same source.
std::pair<LogFollower::Source*, base::Time> LogFollower::earliest() {
  Source* first = nullptr;
  base::Time next = base::Time::max();
  for (const auto& source : sources_) {
    if (!source->peek()) continue;
    if (first == nullptr || source->frame.time < first->frame.time) {
      if (first != nullptr) next = first->frame.time;
      first = source.get();
    } else {
      next = std::min(next, source->frame.time);
    }
  }
  return {first, next};
}

/// Reads one step. True: there is more to read right now.
bool LogFollower::read_some() {
  size_t left = only_ == nullptr ? kStepBytes : kSearchedStepBytes;
  while (left > 0) {
    const auto [source, next] = earliest();
    if (source == nullptr) return false;
    left -= read_up_to(*source, next, left);
  }
  return true;
}

/// The source's frames up to that time; how many bytes they have, `most` at the most.
size_t LogFollower::read_up_to(Source& source, base::Time next, size_t most) {
  size_t bytes = 0;
  do {
    bytes += engine::kFrameHeader + source.frame.bytes.size();
    read_frame(source);
  } while (bytes < most && source.peek() && source.frame.time <= next);
  return std::min(bytes, most);
}

void LogFollower::read_frame(Source& source) {
  const auto emit = [&](const RunSplitter::Run& run) { take(source, run); };
  if (source.frame.cut > 0) {
    heed_cut(source);
  } else if (is_shown(source.frame)) {
    source.splitter.add(source.frame, emit, source.at);
  }
  source.leave_frame();
  // After each frame, so that a line is found to be stale at the same place by all who read it.
  if (source.at > kStaleBytes) source.splitter.flush_before(source.at - kStaleBytes, emit);
}

/// Part of the log is gone: what was begun before it ends here, and what was counted behind it is
/// not to be told from what is new.
void LogFollower::heed_cut(Source& source) {
  source.splitter.flush(true, [&](const RunSplitter::Run& run) { take(source, run); });
  source.seen.clear();
  source.dropped = std::make_shared<LogCounts>();
  const bool of_beginning = source.at == source.begin;
  source.begin = source.at + source.frame.cut;
  // Nobody who asks for the last lines alone, or for late ones, wants to hear of the first.
  if ((in_tail_ && of_beginning) || !is_shown(source.frame)) return;
  source.splitter.add(source.frame, [&](const RunSplitter::Run& run) {
    if (in_tail_) {
      tail_.add(run, nullptr);
    } else {
      ready_.add(run.source, run.time, run.bytes);
    }
  });
}

bool LogFollower::is_shown(const engine::LogFrame& frame) const {
  if (query_.since && frame.time < *query_.since) return false;
  const bool notice = frame.stream == job::LogStream::kNotice;
  return notice || !query_.rank || frame.rank == query_.rank;
}

void LogFollower::flush(bool last) {
  for (const auto& source : sources_) {
    source->splitter.flush(last, [&](const RunSplitter::Run& run) { take(*source, run); });
  }
}

/// All that there is was read: of the attempts before the present one, nothing more will come.
void LogFollower::close_settled() {
  if (in_tail() || opened_attempts_ == settled_attempts_) return;
  for (const auto& source : sources_) {
    if (source->attempt > opened_attempts_) continue;
    source->splitter.flush(true, [&](const RunSplitter::Run& run) { take(*source, run); });
  }
  std::erase_if(sources_,
                [this](const auto& source) { return source->attempt <= opened_attempts_; });
  settled_attempts_ = opened_attempts_;
}

void LogFollower::take(Source& source, const RunSplitter::Run& run) {
  std::string_view bytes = run.bytes;
  if (const auto seen = source.seen.find(run.key); seen != source.seen.end()) {
    const size_t passed = std::min<uint64_t>(seen->second, bytes.size());
    bytes.remove_prefix(passed);
    seen->second -= passed;
    if (seen->second == 0) source.seen.erase(seen);
    if (bytes.empty()) return;
  }
  if (in_tail_) return tail_.add({run.key, run.source, run.time, bytes}, source.dropped);
  ready_.add(run.source, run.time, bytes);
}

void LogFollower::deliver_tail() {
  tail_.take_some(ready_, kStepBytes);
  this->deliver(all_read_ && tail_.empty());
}

LogPosition::Source LogFollower::place_in_tail(const Source& source) const {
  LogPosition::Source place{.attempt = source.attempt,
                            .task = source.task,
                            .from = source.begin,
                            .at = source.begin,
                            .parts = {}};
  for (const auto& [key, bytes] : *source.dropped) {
    place.parts.push_back({key.first, key.second, LogPosition::Part::What::kSeen, bytes});
  }
  return place;
}

LogPosition::Source LogFollower::place_of(const Source& source) {
  using What = LogPosition::Part::What;
  LogPosition::Source place{.attempt = source.attempt,
                            .task = source.task,
                            .from = source.at,
                            .at = source.at,
                            .parts = {}};
  for (const auto& [key, line] : source.splitter.unfinished()) {
    if (!line.text.empty()) place.from = std::min(place.from, line.at);
    const What what = line.hidden ? What::kHidden : line.begun ? What::kBegun : What::kPending;
    place.parts.push_back({key.first, key.second, what, line.text.size()});
  }
  for (const auto& [key, bytes] : source.seen) {
    place.parts.push_back({key.first, key.second, What::kSeen, bytes});
  }
  return place;
}

LogPosition LogFollower::position() const {
  LogPosition position{.settled = settled_attempts_, .sources = {}};
  for (const auto& source : sources_) {
    position.sources.push_back(in_tail() ? place_in_tail(*source) : place_of(*source));
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
  const std::weak_ptr<bool> alive = alive_;
  job::LogBatch batch = std::exchange(ready_, {});
  deliver(batch, end);
  if (alive.expired() || batch.bytes().size() < kStepBytes || !ready_.empty()) return;
  // In a flood the next is as large.
  batch.clear();
  ready_ = std::move(batch);
}

}  // namespace muster::logs
