#include "control/progress_book.h"

#include <utility>

#include "control/metric_points.h"

namespace muster::control {

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
  // Workers that have joined it since stand behind the others.
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

/// A piece of each file; whether there is more. What is shown changes once all was read: in between
/// it would be of the past.
bool ProgressBook::read_on(Entry& entry) {
  bool more = false;
  for (size_t task = 0; task < entry.readers.size(); ++task) {
    if (entry.left.contains(task)) continue;
    const auto read = entry.readers[task].read(kMetricPiece);
    if (!read) continue;  // a file that cannot be read now tells nothing now
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

}  // namespace muster::control
