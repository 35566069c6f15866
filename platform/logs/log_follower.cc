#include "logs/log_follower.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/clock.h"

namespace muster::logs {

using job::Job;

namespace {

// How much one step reads; between two steps the loop does other work.
constexpr size_t kStepBytes = 256 << 10;
// The same when lines are searched for a plain text, and for a pattern, which take far longer than
// reading them.
constexpr size_t kSearchedStepBytes = 32 << 10;
constexpr size_t kMatchedStepBytes = 4 << 10;
// A line without a newline is delivered once this much was printed after it. A reader that
// continues from a position reads no more than this again.
constexpr uint64_t kStaleBytes = 1 << 20;
static_assert(kStaleBytes + engine::kMaxFrame + engine::kFrameHeader <= kFarthestPending);
// The shortest time for which the beginning of a line is held back if the rest does not arrive.
constexpr std::chrono::milliseconds kPartialPause{150};
constexpr std::chrono::milliseconds kReadRetryPause{200};
// How much older the lines of other tasks may be that a line of a task passes: see read_turns().
constexpr std::chrono::seconds kMostAhead{10};

std::shared_ptr<const job::LogPattern> pattern_of(const job::LogQuery& query) {
  if (query.grep.empty()) return nullptr;
  auto pattern = job::LogPattern::compile(query.grep);
  return pattern ? std::make_shared<const job::LogPattern>(*std::move(pattern)) : nullptr;
}

size_t step_bytes(const job::LogPattern* only) {
  if (only == nullptr) return kStepBytes;
  return only->states() == 0 ? kSearchedStepBytes : kMatchedStepBytes;
}

}  // namespace

/// The log of one task: its cursor, its unfinished lines, and its next frame.
struct LogFollower::Source {
  int attempt = 0;
  std::string task;
  std::unique_ptr<engine::LogCursor> cursor;
  RunSplitter splitter;
  std::shared_ptr<void> watch;
  engine::LogFrame frame;
  bool has_frame = false;
  bool damaged = false;       ///< reading has ended; a notice in the log reports it
  bool damage_shown = false;  ///< an earlier reader delivered that notice
  bool starved = false;       ///< its next frame could not be read for lack of a resource
  bool may_have_more = true;  ///< it may have grown since its end was reached
  bool is_live = false;       ///< its end was reached: its next frames were printed since then
  uint64_t at = 0;            ///< offset in the log of `frame`
  uint64_t awaited = 0;       ///< `at` when the pause for unfinished lines began
  uint64_t begin = 0;         ///< in the tail: the offset where `dropped` begins to count
  LogCounts seen;             ///< bytes to skip, which were delivered already
  /// In the tail: how many bytes came before it.
  std::shared_ptr<LogCounts> dropped = std::make_shared<LogCounts>();

  /// Loads the next frame; false: there is no frame at present.
  bool peek() {
    if (has_frame || damaged || !may_have_more) return has_frame;
    const auto next = cursor->next(frame);
    starved = !next && next.error().code == base::ErrorCode::kExhausted;
    if (starved) return false;
    if (!next) return take_damage(next.error());
    has_frame = *next;
    may_have_more = has_frame;
    is_live = is_live || !has_frame;
    return has_frame;
  }

  /// The next frame is a notice of the damage, which is not in the log itself. False: the reader has
  /// received it.
  bool take_damage(const base::Error& error) {
    damaged = true;
    has_frame = !damage_shown;
    if (damage_shown) return false;
    const base::Time time = frame.time == base::Time() ? base::SystemClock().now() : frame.time;
    frame = {.time = time,
             .stream = job::LogStream::kNotice,
             .bytes = "the rest of this log cannot be read: " + error.what + "\n"};
    return true;
  }

  /// Leaves the frame that peek() has loaded behind.
  void leave_frame() {
    if (!damaged) {
      at += engine::size_in_log(frame);
      damage_shown = false;  // an earlier reader could not read this frame
    }
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
    expect_more();
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

/// Reads in a later turn of the loop, once.
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
  // The log is complete once the job has ended: it is read to its end before the end is delivered.
  if (over || !query_.follow) expect_more();
  if (read_some()) {
    if (ready_.empty()) return wait();
    return this->deliver(false);
  }
  if (lacks_resources()) {
    if (ready_.empty()) return try_again_later();
    return this->deliver(false);
  }
  close_settled();
  if (over || !query_.follow) {
    flush_all();
    all_read_ = true;
  }
  // The position of the last lines is delivered first: a reader that is cut off within them asks
  // for these lines again, not for newer ones.
  if (std::exchange(in_tail_, false)) {
    tail_.trim();
    return this->deliver(all_read_ && tail_.empty());
  }
  if (all_read_) return this->deliver(true);
  if (!ready_.empty()) return this->deliver(false);
  if (has_partial() && !partial_timer_) await_rest_of_lines();
}

/// Whether a log cannot be read further now, for example because too many files are open.
bool LogFollower::lacks_resources() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->starved; });
}

bool LogFollower::has_partial() const {
  return std::any_of(sources_.begin(), sources_.end(),
                     [](const auto& source) { return source->splitter.has_partial(); });
}

/// Lines that begin during the pause wait for another one: perhaps only the beginning of such a line
/// has been read.
void LogFollower::await_rest_of_lines() {
  for (const auto& source : sources_) source->awaited = source->at;
  partial_timer_ = loop_.after(kPartialPause, [this] {
    partial_timer_.reset();
    flush_waiting();
    if (deliver_ && !ready_.empty()) return this->deliver(false);
    const bool has_grown = std::any_of(sources_.begin(), sources_.end(), [](const auto& source) {
      return source->at > source->awaited;
    });
    if (has_grown && has_partial()) await_rest_of_lines();
  });
}

/// Opens the logs of each attempt, one attempt after the other. False: an existing log cannot be
/// opened now, for example because too many files are open.
bool LogFollower::open_sources(const Job& job) {
  for (int attempt = std::max(1, opened_attempts_ + 1); attempt <= job.attempt; ++attempt) {
    for (const job::Task& task : job.tasks) {
      const bool shown = (!query_.task || *query_.task == task.name) &&
                         (!query_.attempt || *query_.attempt == attempt);
      // A launcher without slots of its own passes on what the ranks of workers print.
      const bool passes_on = task.role == job::TaskRole::kLauncher && job.tasks.size() > 1 &&
                             job.spec.leader_slots == 0;
      const auto ranks =
          passes_on ? RunSplitter::Ranks::kOfAnyHost : RunSplitter::Ranks::kOfThisHost;
      if (shown && !open_source({job.id, attempt}, task, ranks)) return false;
    }
  }
  // No task is added to attempts before the present one.
  opened_attempts_ = std::max(opened_attempts_, job.attempt - 1);
  return true;
}

// A log that cannot be opened is not skipped: its bytes would be lost.
void LogFollower::try_again_later() {
  if (retry_timer_) return;
  retry_timer_ = loop_.after(kReadRetryPause, [this] {
    retry_timer_.reset();
    wait();
  });
}

bool LogFollower::open_source(const engine::GangId& gang, const job::Task& task,
                              RunSplitter::Ranks ranks) {
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
             .splitter = RunSplitter(
                 {.task = task.name, .attempt = gang.attempt, .host = task.hostname, .rank = {}},
                 only_, ranks)});
  const auto* const place = from_.find(gang.attempt, task.name);
  if (place != nullptr && !go_to(*source, *place)) return false;
  if (query_.follow) {
    source->watch = engine_.watch_log(gang, task.name, [this, grown = source.get()] {
      grown->may_have_more = true;
      wait();
    });
    // It may have grown before it was watched.
    source->may_have_more = true;
  }
  sources_.push_back(std::move(source));
  return true;
}

/// Reads the bytes again that are pending at that position. False: they cannot be read now.
bool LogFollower::go_to(Source& source, const LogPosition::Source& place) const {
  source.damage_shown = place.damage_shown;
  const auto sought = source.cursor->seek(place.from);
  if (!sought && sought.error().code == base::ErrorCode::kExhausted) return false;
  source.at = place.from;
  if (!sought) source.take_damage(sought.error());
  // What each stream of each rank has printed, and where in it each frame ends.
  struct Printed {
    std::string bytes;
    std::vector<RunSplitter::Line> frames;
    std::vector<size_t> ends;
  };
  std::map<RunSplitter::Key, Printed> all;
  // A cut that was made meanwhile is delivered later, in order.
  while (source.at < place.at && source.peek() && source.frame.cut == 0 && !source.damaged) {
    if (is_shown(source.frame)) {
      Printed& printed = all[{source.frame.rank, source.frame.stream}];
      printed.bytes += source.frame.bytes;
      printed.frames.push_back({.text = {}, .time = source.frame.time, .at = source.at});
      printed.ends.push_back(printed.bytes.size());
    }
    source.leave_frame();
  }
  if (source.starved) return false;
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
  return true;
}

void LogFollower::expect_more() {
  for (const auto& source : sources_) source->may_have_more = true;
}

/// The source of the next frame, and the time of the next frame of any other source. No source: all
/// frames are read, or the next one is unknown for lack of a resource.
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
  if (lacks_resources()) return {nullptr, base::Time::max()};
  return {first, next};
}

/// Reads one step. True: more can be read now.
bool LogFollower::read_some() {
  size_t left = step_bytes(only_.get());
  if (lags_) left -= read_turns(left / 2);
  while (left > 0) {
    const auto [source, next] = earliest();
    lags_ = source != nullptr && query_.follow && !in_tail_;
    if (source == nullptr) return false;
    left -= read_up_to(*source, next, left);
  }
  return true;
}

/// The tasks print faster than the log is read: reads some of each task. In the order of time alone,
/// every line would wait behind all that the task that prints most had printed before it. A line
/// passes only lines that are at most kMostAhead older, and none that were printed before the
/// follower had caught up. Returns the bytes, at most `most`.
size_t LogFollower::read_turns(size_t most) {
  const Source* const first = earliest().first;
  if (first == nullptr) return 0;
  const base::Time until = first->frame.time + kMostAhead;
  std::vector<Source*> ready;
  for (const auto& source : sources_) {
    if (source->is_live && source->peek() && source->frame.time <= until) {
      ready.push_back(source.get());
    }
  }
  size_t bytes = 0;
  for (Source* const source : ready) {
    bytes += read_up_to(*source, until, std::max<size_t>(1, most / ready.size()));
  }
  return std::min(bytes, most);
}

/// Reads the source's frames up to that time. Returns their bytes, at most `most`.
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
  if (source.damaged) {
    source.splitter.flush(true, emit);
    take_own_notice(source);
  } else if (source.frame.cut > 0) {
    take_cut(source);
  } else if (is_shown(source.frame)) {
    source.splitter.add(source.frame, emit, source.at);
  }
  source.leave_frame();
  // After each frame, so that all readers find a line stale at the same offset.
  if (source.at > kStaleBytes) source.splitter.flush_before(source.at - kStaleBytes, emit);
}

/// Part of the log was deleted: unfinished lines end here, and counts of bytes after it are no
/// longer meaningful.
void LogFollower::take_cut(Source& source) {
  source.splitter.flush(true, [&](const RunSplitter::Run& run) { take(source, run); });
  source.seen.clear();
  source.dropped = std::make_shared<LogCounts>();
  const bool of_beginning = source.at == source.begin;
  source.begin = source.at + source.frame.cut;
  // The cut of a log's beginning is not shown to readers who ask only for its last lines.
  if ((in_tail_ && of_beginning) || !is_shown(source.frame)) return;
  take_own_notice(source);
}

/// Shows a frame that is not in the log: its bytes are not counted.
void LogFollower::take_own_notice(Source& source) {
  if (!query_.notices) return;
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
  if (frame.stream == job::LogStream::kNotice) return query_.notices;
  return !query_.rank || frame.rank == query_.rank;
}

void LogFollower::flush_all() {
  for (const auto& source : sources_) {
    source->splitter.flush(true, [&](const RunSplitter::Run& run) { take(*source, run); });
  }
}

void LogFollower::flush_waiting() {
  for (const auto& source : sources_) {
    source->splitter.flush_waiting(source->awaited,
                                   [&](const RunSplitter::Run& run) { take(*source, run); });
  }
}

/// Everything was read: attempts before the present one print nothing more.
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
                            .damage_shown = source.damaged && !source.has_frame,
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
  // Sources that are not open again yet.
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
  // The next batch is probably as large: the memory is kept.
  batch.clear();
  ready_ = std::move(batch);
}

}  // namespace muster::logs
