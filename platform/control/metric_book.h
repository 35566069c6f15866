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
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/event_loop.h"
#include "base/result.h"
#include "engine/engine.h"
#include "job/job.h"
#include "job/metric.h"

namespace muster::control {

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

}  // namespace muster::control
