// The values of a series as somebody asked for them: of a time, an interval, and never too many.
// Also how much of a file of metrics is read at once.
//
// Pure.
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

/// Bytes of a file of metrics to read in one turn of the loop: about a millisecond.
inline constexpr int64_t kMetricPiece = 128 << 10;

/// Of `points`, oldest first, those of the query's time. With an interval, the mean of each that
/// has values, at the time that it begins (intervals are counted from the epoch, so those of all
/// series are the same). Where there are more than job::kMostPoints, neighbours become their mean,
/// at the time of the last of them.
std::vector<job::MetricPoint> asked_points(const std::vector<job::MetricPoint>& points,
                                           const job::MetricQuery& query);

/// Makes `points` fewer, and the older ones coarser: of the first three quarters, each two
/// neighbours become their mean.
void make_coarser(std::vector<job::MetricPoint>& points);

// What was measured of jobs, for those who ask: read from the files of their tasks, and kept so
// that whoever asks again has only what is new read.
//
// Of the present attempt of a job; of one that has ended, of its last: each attempt begins anew,
// and two of them in one picture would look like one.
//
// Files are read a piece in each turn of the loop, so that large ones hold up nobody. Memory is
// bounded: of a series, kMostKept points, the older ones coarser; of a job, kMostSeries series (a
// program that makes up names without end gets no more); of all jobs, those that were asked about
// last.
//
// On the EventLoop's thread; the loop and the engine must outlive it.

class MetricBook {
 public:
  static constexpr size_t kMostKept = 4096;
  static constexpr size_t kMostSeries = 1000;
  static constexpr size_t kMostPointsHeld = size_t{4} << 20;  ///< 16 bytes each

  using Done = std::function<void(base::Result<std::vector<job::MetricSeries>>)>;

  MetricBook(base::EventLoop& loop, engine::Engine& engine) : loop_(loop), engine_(engine) {}

  /// Calls `done` once, in a later turn: with the series that the query is for, by name, then in
  /// the order of the job's tasks, then by rank; those without a value are left out. kNotFound: the
  /// job was removed meanwhile.
  void ask(const job::Job& job, const job::MetricQuery& query, Done done);

  /// The job is no more.
  void forget(const std::string& id);

  /// Of all jobs together.
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
    std::vector<Asker> askers;  ///< answered once all is read
    size_t reading = 0;         ///< the task whose file is read; as many as there are: none
    uint64_t asked = 0;         ///< the larger, the later
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

// How far a program is, by what it reports: "epoch=3 epochs=10", "step=200 steps=5000", or
// "progress=0.4". The first number is what is done: epoch=3 says that three epochs are behind it.
//
// Totals are remembered, so that a program may tell them once. Of a program that tells several, its
// epochs count before its steps, and these before a part of 1. Of several ranks the lowest counts;
// of several tasks that name none, the one that reported last.
//
// Pure values, no locks.

/// Of one program: a task, or one rank in it.
class ProgressMeter {
 public:
  void take(const engine::MetricSample& sample);

  /// `ends` by the pace between the first report and the newest. A value that went back begins
  /// anew: the pace of what was before says nothing about what follows.
  std::optional<job::Progress> progress() const;

  /// Of the newest report of how far it is.
  base::Time newest() const { return newest_; }

 private:
  struct Unit {
    std::optional<double> total;
    std::optional<job::MetricPoint> first;  ///< since it last went back
    job::MetricPoint last;
  };
  void note(Unit& unit, job::MetricPoint report);

  std::array<Unit, 3> units_;  ///< epochs, steps, a part of 1
  base::Time newest_;
};

/// Of all programs of a job. Its tasks are numbered as the job has them.
class JobProgress {
 public:
  void take(size_t task, const engine::MetricSample& sample);
  /// Forgets what a task has reported: it comes again.
  void forget(size_t task);

  std::optional<job::Progress> progress() const;

 private:
  // Whoever counts up ranks without end gets no more memory for it: the lowest is what is shown.
  static constexpr size_t kMostPrograms = 1024;

  std::map<std::pair<int, size_t>, ProgressMeter> meters_;  ///< by rank and task
};

// How far the jobs are whose programs tell it: what every listing shows, so it is read as it grows,
// a piece at a time, and of a job only some numbers are kept.
//
// On the EventLoop's thread; the loop and the engine must outlive it.

class ProgressBook {
 public:
  ProgressBook(base::EventLoop& loop, engine::Engine& engine) : loop_(loop), engine_(engine) {}

  /// Of its present attempt; of a job that has ended, where it came to. Nothing for a job that
  /// waits, or tells nothing, or has told so much that it is still being read.
  std::optional<job::Progress> of(const job::Job& job);

  /// The job is no more.
  void forget(const std::string& id) { entries_.erase(id); }

 private:
  struct Entry {
    int attempt = 0;
    std::vector<engine::MetricReader> readers;  ///< by task; empty once all was read for good
    size_t tasks = 0;                           ///< of the job, as many as have had a reader
    std::set<size_t> left;  ///< of these, while the job went on: how far they came counts no more
    JobProgress reports;
    std::optional<job::Progress> known;
    bool catching_up = false;  ///< a later turn of the loop goes on reading
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
