// The metrics and the progress that the programs of jobs report, read from the files of their
// tasks.
//
// Files are read a piece in each turn of the loop, so that large files do not block it, and what
// was read is kept, so that only new samples are read later. Only the present attempt of a job
// counts, or the last attempt of an ended job.
//
// The books are used on the EventLoop's thread; the loop and the engine must outlive them. All else
// is pure.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "engine/metric_log.h"
#include "job/job.h"
#include "job/metric.h"

namespace muster::logs {

/// How many bytes of a file are read in one turn of the loop: about a millisecond.
inline constexpr int64_t kMetricPiece = 128 << 10;

/// The points in the time range of the query; `points` are oldest first. If the query has an
/// interval, the mean of each interval that has values, at the beginning of the interval (intervals
/// are counted from the epoch, so they are the same for all series). More than job::kMostPoints
/// points are merged: neighbours become their mean, at the time of the last of them.
std::vector<job::MetricPoint> asked_points(const std::vector<job::MetricPoint>& points,
                                           const job::MetricQuery& query);

/// Halves the number of the older points: in the first three quarters, each two neighbours become
/// their mean.
void make_coarser(std::vector<job::MetricPoint>& points);

/// The metrics of jobs, for requests. Memory is bounded: a series keeps kMostKept points, the older
/// ones coarser; a job keeps kMostSeries series, because a program may make up names without end;
/// and the jobs that were requested last are kept, up to kMostPointsHeld points.
class MetricBook {
 public:
  static constexpr size_t kMostKept = 4096;
  static constexpr size_t kMostSeries = 1000;
  static constexpr size_t kMostPointsHeld = size_t{4} << 20;  ///< 16 bytes each

  using Done = std::function<void(base::Result<std::vector<job::MetricSeries>>)>;

  MetricBook(base::EventLoop& loop, engine::Engine& engine) : loop_(loop), engine_(engine) {}

  /// Calls `done` once, in a later turn: with the requested series that have values, ordered by
  /// name, then by task as in the job, then by rank. kNotFound: the job was deleted meanwhile.
  void ask(const job::Job& job, const job::MetricQuery& query, Done done);

  /// The job was deleted.
  void forget(const std::string& id);

  /// In all jobs together.
  size_t points_held() const;

 private:
  using Points = std::vector<job::MetricPoint>;
  using SeriesName = std::pair<std::string, std::optional<int>>;  ///< metric, and rank
  struct TaskBook {
    std::string name;
    engine::MetricReader reader;
    std::map<SeriesName, Points> series;
  };
  struct Asker {
    job::MetricQuery query;
    Done done;
  };
  struct Entry {
    int attempt = 0;
    std::vector<TaskBook> tasks;
    std::vector<Asker> askers;  ///< answered once everything is read
    size_t reading = 0;         ///< index of the task whose file is read; tasks.size(): none
    uint64_t asked = 0;         ///< a larger number is a later request
  };

  Entry& entry_of(const job::Job& job);
  void read_on(const std::string& id);
  static bool read_piece(Entry& entry);
  static size_t series_of(const Entry& entry);
  static void add(Entry& entry, TaskBook& task, const engine::MetricSample& sample);
  static std::vector<job::MetricSeries> answer(const Entry& entry, const job::MetricQuery& query);
  static size_t points_of(const Entry& entry);
  void make_room(const std::string& but);

  base::EventLoop& loop_;
  engine::Engine& engine_;
  std::unordered_map<std::string, Entry> entries_;  ///< by id of the job
  uint64_t asks_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

// Programs report progress as "epoch=3 epochs=10", "step=200 steps=5000", or "progress=0.4". The
// first number counts what is done: epoch=3 means that three epochs are complete. Totals are
// remembered, so a program may report them once. If a program reports several units, epochs count
// before steps, and steps before a fraction of 1. Of several ranks the lowest progress counts; of
// several tasks without ranks, the latest report.

/// The progress of one program: a task, or one rank in a task.
class ProgressMeter {
 public:
  void take(const engine::MetricSample& sample);

  /// The end is estimated from the pace between the first and the newest report. After a value that
  /// went back, the estimate begins anew.
  std::optional<job::Progress> progress() const;

  /// The time of the newest report of progress.
  base::Time newest() const { return newest_; }

 private:
  struct Unit {
    std::optional<double> total;
    std::optional<job::MetricPoint> first;  ///< since the value last went back
    job::MetricPoint last;
  };
  void note(Unit& unit, job::MetricPoint report);

  std::array<Unit, 3> units_;  ///< epochs, steps, fraction of 1
  base::Time newest_;
};

/// The progress of all programs of a job. Tasks are numbered in the order of the job.
class JobProgress {
 public:
  void take(size_t task, const engine::MetricSample& sample);
  /// Forgets the reports of a task, whose file is read again.
  void forget(size_t task);

  std::optional<job::Progress> progress() const;

 private:
  // A program may report ranks without end: only so many are kept, and the lowest is shown.
  static constexpr size_t kMostPrograms = 1024;

  std::map<std::pair<int, size_t>, ProgressMeter> meters_;  ///< by rank and task
};

/// The progress of all jobs, for listings: it is read as the files grow, and only a few numbers are
/// kept for each job.
class ProgressBook {
 public:
  ProgressBook(base::EventLoop& loop, engine::Engine& engine) : loop_(loop), engine_(engine) {}

  /// The progress of its present attempt, or of the last attempt of an ended job. Nothing if the
  /// job waits, if its program reports none, or while a long file is still being read.
  std::optional<job::Progress> of(const job::Job& job);

  /// The job was deleted.
  void forget(const std::string& id) { entries_.erase(id); }

 private:
  struct Entry {
    int attempt = 0;
    std::vector<engine::MetricReader>
        readers;       ///< by task; empty once everything was read for the last time
    size_t tasks = 0;  ///< how many tasks of the job have had a reader
    std::set<size_t>
        left;  ///< of these, tasks that left a running job: their progress no longer counts
    JobProgress reports;
    std::optional<job::Progress> known;
    bool catching_up = false;  ///< a later turn of the loop continues reading
  };

  Entry& entry_of(const job::Job& job);
  static bool read_on(Entry& entry);
  void catch_up(const std::string& id);

  base::EventLoop& loop_;
  engine::Engine& engine_;
  std::unordered_map<std::string, Entry> entries_;  ///< by id of the job
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::logs
