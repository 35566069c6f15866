// How far the jobs are whose programs tell it: what every listing shows, so it is read as it grows,
// a piece at a time, and of a job only some numbers are kept.
//
// On the EventLoop's thread; the loop and the engine must outlive it.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/event_loop.h"
#include "control/progress_meter.h"
#include "engine/engine.h"
#include "job/job.h"

namespace muster::control {

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

}  // namespace muster::control
