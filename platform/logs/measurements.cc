#include "logs/measurements.h"

#include <algorithm>
#include <string>
#include <utility>

namespace muster::logs {

namespace {

using base::Time;
using job::MetricPoint;
using job::MetricQuery;
using Points = std::vector<MetricPoint>;

/// REQUIRES: begin < end.
MetricPoint mean(Points::const_iterator begin, Points::const_iterator end) {
  MetricPoint result{.time = std::prev(end)->time, .value = 0};
  const auto count = static_cast<double>(end - begin);
  // Each value is divided first: the sum of large values may exceed a double.
  for (auto at = begin; at != end; ++at) result.value += at->value / count;
  return result;
}

Time begin_of_interval(Time time, std::chrono::nanoseconds interval) {
  const auto since = time.time_since_epoch();
  auto rest = since % interval;
  if (rest < rest.zero()) rest += interval;
  return time - rest;
}

Points means_of_intervals(Points::const_iterator begin, Points::const_iterator end,
                          std::chrono::nanoseconds interval) {
  Points means;
  while (begin != end) {
    const Time start = begin_of_interval(begin->time, interval);
    const auto next = std::find_if(begin, end, [&](const MetricPoint& point) {
      return begin_of_interval(point.time, interval) != start;
    });
    means.push_back({.time = start, .value = mean(begin, next).value});
    begin = next;
  }
  return means;
}

/// Merges each `count` neighbours.
Points joined(Points::const_iterator begin, Points::const_iterator end, size_t count) {
  Points result;
  while (begin != end) {
    const auto next = begin + static_cast<ptrdiff_t>(
                                  std::min(count, static_cast<size_t>(std::distance(begin, end))));
    result.push_back(mean(begin, next));
    begin = next;
  }
  return result;
}

}  // namespace

Points asked_points(const Points& points, const MetricQuery& query) {
  // If the clock was set back, points are out of order, so each is checked.
  Points asked;
  std::copy_if(points.begin(), points.end(), std::back_inserter(asked),
               [&](const MetricPoint& point) {
                 return (!query.since || point.time >= *query.since) &&
                        (!query.until || point.time <= *query.until);
               });
  if (query.interval.count() > 0) {
    asked = means_of_intervals(asked.begin(), asked.end(), query.interval);
  }
  if (query.last && !asked.empty()) asked.erase(asked.begin(), std::prev(asked.end()));
  if (query.unmerged || asked.size() <= job::kMostPoints) return asked;
  const size_t count = (asked.size() + job::kMostPoints - 1) / job::kMostPoints;
  return joined(asked.begin(), asked.end(), count);
}

void make_coarser(Points& points) {
  const auto older = points.begin() + static_cast<ptrdiff_t>(points.size() / 8 * 6);
  Points result = joined(points.begin(), older, 2);
  result.insert(result.end(), older, points.end());
  points = std::move(result);
}

namespace {

using job::MetricSeries;

bool is_asked(const MetricQuery& query, const std::string& metric, std::optional<int> rank) {
  if (query.rank && query.rank != rank) return false;
  return query.metrics.empty() ||
         std::find(query.metrics.begin(), query.metrics.end(), metric) != query.metrics.end();
}

base::Error is_gone() {
  return {.code = base::ErrorCode::kNotFound,
          .what = "the job was deleted while its metrics were read",
          .advice = "list the jobs: muster list"};
}

}  // namespace

void MetricBook::ask(const job::Job& job, const MetricQuery& query, Done done) {
  Entry& entry = entry_of(job);
  entry.asked = ++asks_;
  const bool reads_already = !entry.askers.empty();
  entry.askers.push_back({query, std::move(done)});
  if (reads_already) return;
  entry.reading = 0;
  read_on(job.id);
}

MetricBook::Entry& MetricBook::entry_of(const job::Job& job) {
  Entry& entry = entries_[job.id];
  if (entry.attempt != job.attempt) {
    entry.attempt = job.attempt;
    entry.tasks.clear();
    entry.reading = 0;
  }
  // Workers that joined since then follow the others.
  for (size_t i = entry.tasks.size(); i < job.tasks.size(); ++i) {
    const std::string& task = job.tasks[i].name;
    entry.tasks.push_back({task, engine_.open_metrics({job.id, job.attempt}, task), {}});
  }
  return entry;
}

void MetricBook::forget(const std::string& id) {
  const auto entry = entries_.extract(id);
  if (entry.empty()) return;
  for (const Asker& asker : entry.mapped().askers) asker.done(is_gone());
}

void MetricBook::read_on(const std::string& id) {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), id] {
    if (alive.expired()) return;
    const auto found = entries_.find(id);
    if (found == entries_.end()) return;
    Entry& entry = found->second;
    if (read_piece(entry)) return read_on(id);
    // A callback may ask again, or have the job forgotten.
    const std::vector<Asker> askers = std::exchange(entry.askers, {});
    std::vector<std::vector<MetricSeries>> answers;
    for (const Asker& asker : askers) answers.push_back(answer(entry, asker.query));
    make_room(id);
    for (size_t i = 0; i < askers.size(); ++i) askers[i].done(std::move(answers[i]));
  });
}

/// Whether there is more to read.
bool MetricBook::read_piece(Entry& entry) {
  if (entry.reading >= entry.tasks.size()) return false;
  TaskBook& task = entry.tasks[entry.reading];
  const auto read = task.reader.read(kMetricPiece);
  if (read) {
    if (read->anew) task.series.clear();
    for (const engine::MetricSample& sample : read->samples) add(entry, task, sample);
  }
  // An unreadable file counts as unchanged.
  if (!read || !read->more) ++entry.reading;
  return entry.reading < entry.tasks.size();
}

size_t MetricBook::series_of(const Entry& entry) {
  size_t count = 0;
  for (const TaskBook& task : entry.tasks) count += task.series.size();
  return count;
}

void MetricBook::add(Entry& entry, TaskBook& task, const engine::MetricSample& sample) {
  for (const auto& [metric, value] : sample.values) {
    auto found = task.series.find({metric, sample.rank});
    if (found == task.series.end()) {
      if (series_of(entry) >= kMostSeries) continue;
      found = task.series.emplace(SeriesName{metric, sample.rank}, Points{}).first;
    }
    Points& points = found->second;
    points.push_back({.time = sample.time, .value = value});
    if (points.size() >= kMostKept) make_coarser(points);
  }
}

std::vector<MetricSeries> MetricBook::answer(const Entry& entry, const MetricQuery& query) {
  std::vector<MetricSeries> all;
  for (const TaskBook& task : entry.tasks) {
    if (query.task && query.task != task.name) continue;
    for (const auto& [name, points] : task.series) {
      if (!is_asked(query, name.first, name.second)) continue;
      MetricSeries series{.metric = name.first,
                          .task = task.name,
                          .rank = name.second,
                          .points = asked_points(points, query)};
      if (!series.points.empty()) all.push_back(std::move(series));
    }
  }
  std::stable_sort(all.begin(), all.end(), [](const MetricSeries& left, const MetricSeries& right) {
    return left.metric < right.metric;
  });
  return all;
}

size_t MetricBook::points_of(const Entry& entry) {
  size_t count = 0;
  for (const TaskBook& task : entry.tasks) {
    for (const auto& [name, points] : task.series) count += points.size();
  }
  return count;
}

size_t MetricBook::points_held() const {
  size_t count = 0;
  for (const auto& [id, entry] : entries_) count += points_of(entry);
  return count;
}

/// Drops the jobs that were requested longest ago; they are read again on the next request. `but`:
/// the job to keep, whose memory is bounded.
void MetricBook::make_room(const std::string& but) {
  size_t held = points_held();
  while (held > kMostPointsHeld) {
    auto oldest = entries_.end();
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->first == but || !at->second.askers.empty()) continue;
      if (oldest == entries_.end() || at->second.asked < oldest->second.asked) oldest = at;
    }
    if (oldest == entries_.end()) return;
    held -= points_of(oldest->second);
    entries_.erase(oldest);
  }
}

namespace {

using job::Progress;

/// The names of the metrics by which programs report progress.
struct Names {
  std::string_view done;
  std::string_view total;  ///< empty: a fraction of 1
};

constexpr std::array<Names, 3> kUnits{
    {{job::kEpoch, job::kEpochs}, {job::kStep, job::kSteps}, {job::kProgress, {}}}};

/// nullopt: there is no progress, or the end is too far away.
std::optional<base::Time> end_at_pace(const MetricPoint& first, const MetricPoint& last,
                                      double total) {
  if (last.value >= total) return last.time;
  if (last.value <= first.value || last.time <= first.time) return std::nullopt;
  const std::chrono::duration<double> passed = last.time - first.time;
  const std::chrono::duration<double> left =
      passed * ((total - last.value) / (last.value - first.value));
  constexpr std::chrono::duration<double> kMost = std::chrono::years(10);
  if (left > kMost) return std::nullopt;
  return last.time + std::chrono::duration_cast<std::chrono::nanoseconds>(left);
}

}  // namespace

void ProgressMeter::note(Unit& unit, MetricPoint report) {
  if (report.value < 0) return;
  if (!unit.first || report.value < unit.last.value) unit.first = report;
  unit.last = report;
  newest_ = report.time;
}

void ProgressMeter::take(const engine::MetricSample& sample) {
  for (const auto& [name, value] : sample.values) {
    for (size_t i = 0; i < kUnits.size(); ++i) {
      if (name == kUnits[i].done) note(units_[i], {.time = sample.time, .value = value});
      if (name == kUnits[i].total) units_[i].total = value;
    }
  }
}

std::optional<Progress> ProgressMeter::progress() const {
  for (size_t i = 0; i < kUnits.size(); ++i) {
    const Unit& unit = units_[i];
    const bool is_part = kUnits[i].total.empty();
    const double total = is_part ? 1 : unit.total.value_or(0);
    if (!unit.first || total <= 0 || (is_part && unit.last.value > 1)) continue;
    return Progress{.unit = is_part ? "" : std::string(kUnits[i].done),
                    .done = unit.last.value,
                    .total = total,
                    .ends = end_at_pace(*unit.first, unit.last, total)};
  }
  return std::nullopt;
}

void JobProgress::take(size_t task, const engine::MetricSample& sample) {
  meters_[{sample.rank.value_or(0), task}].take(sample);
  if (meters_.size() > kMostPrograms) meters_.erase(std::prev(meters_.end()));
}

void JobProgress::forget(size_t task) {
  std::erase_if(meters_, [&](const auto& meter) { return meter.first.second == task; });
}

std::optional<Progress> JobProgress::progress() const {
  std::optional<Progress> found;
  std::optional<int> rank;
  base::Time newest;
  for (const auto& [key, meter] : meters_) {
    if (rank && key.first > *rank) break;
    if (found && meter.newest() <= newest) continue;
    auto progress = meter.progress();
    if (!progress) continue;
    found = std::move(progress);
    rank = key.first;
    newest = meter.newest();
  }
  return found;
}

std::optional<job::Progress> ProgressBook::of(const job::Job& job) {
  if (job.attempt == 0 || job.phase == job::Phase::kQueued) return std::nullopt;
  Entry& entry = entry_of(job);
  if (!entry.catching_up && read_on(entry)) {
    entry.catching_up = true;
    catch_up(job.id);
  }
  if (!job::is_final(job.phase)) return entry.known;
  if (!entry.catching_up) entry.readers.clear();
  if (entry.known) entry.known->ends.reset();
  return entry.known;
}

ProgressBook::Entry& ProgressBook::entry_of(const job::Job& job) {
  Entry& entry = entries_[job.id];
  if (entry.attempt != job.attempt) {
    entry = {.attempt = job.attempt, .readers = {}, .left = {}, .reports = {}, .known = {}};
  }
  // Workers that joined since then follow the others.
  for (; entry.tasks < job.tasks.size(); ++entry.tasks) {
    const std::string& task = job.tasks[entry.tasks].name;
    entry.readers.push_back(engine_.open_metrics({job.id, job.attempt}, task));
  }
  for (size_t i = 0; i < job.tasks.size(); ++i) {
    if (!job.tasks[i].left || !entry.left.insert(i).second) continue;
    entry.reports.forget(i);
  }
  return entry;
}

/// Reads a piece of each file; whether there is more. The answer changes only when everything was
/// read: before, it would be out of date.
bool ProgressBook::read_on(Entry& entry) {
  bool more = false;
  for (size_t task = 0; task < entry.readers.size(); ++task) {
    if (entry.left.contains(task)) continue;
    const auto read = entry.readers[task].read(kMetricPiece);
    if (!read) continue;  // an unreadable file counts as unchanged
    if (read->anew) entry.reports.forget(task);
    for (const engine::MetricSample& sample : read->samples) entry.reports.take(task, sample);
    more = more || read->more;
  }
  if (!more && !entry.readers.empty()) entry.known = entry.reports.progress();
  return more;
}

void ProgressBook::catch_up(const std::string& id) {
  loop_.post([this, alive = std::weak_ptr<bool>(alive_), id] {
    if (alive.expired()) return;
    const auto found = entries_.find(id);
    if (found == entries_.end() || !found->second.catching_up) return;
    if (read_on(found->second)) return catch_up(id);
    found->second.catching_up = false;
  });
}

}  // namespace muster::logs
