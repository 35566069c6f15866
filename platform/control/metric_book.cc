#include "control/metric_book.h"

#include <algorithm>

#include "control/metric_points.h"

namespace muster::control {

namespace {

using job::MetricQuery;
using job::MetricSeries;

bool is_asked(const MetricQuery& query, const std::string& metric, std::optional<int> rank) {
  if (query.rank && query.rank != rank) return false;
  return query.metrics.empty() ||
         std::find(query.metrics.begin(), query.metrics.end(), metric) != query.metrics.end();
}

base::Error is_gone() {
  return {.code = base::ErrorCode::kNotFound,
          .what = "the job was removed while its metrics were read",
          .advice = "muster list shows the jobs there are"};
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
  // Workers that have joined it since stand behind the others.
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
    // Whoever is answered may ask again, or have the job forgotten.
    const std::vector<Asker> askers = std::exchange(entry.askers, {});
    std::vector<std::vector<MetricSeries>> answers;
    for (const Asker& asker : askers) answers.push_back(answer(entry, asker.query));
    make_room(id);
    for (size_t i = 0; i < askers.size(); ++i) askers[i].done(std::move(answers[i]));
  });
}

/// Whether there is more.
bool MetricBook::read_piece(Entry& entry) {
  if (entry.reading >= entry.tasks.size()) return false;
  TaskBook& task = entry.tasks[entry.reading];
  const auto read = task.reader.read(kMetricPiece);
  if (read) {
    if (read->anew) task.series.clear();
    for (const engine::MetricSample& sample : read->samples) add(entry, task, sample);
  }
  // A file that cannot be read now has nothing new now.
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

/// Gives up what was asked for longest ago; it is read anew where somebody asks again. `but`: not
/// this one, which alone is bounded.
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

}  // namespace muster::control
