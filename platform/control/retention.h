// How long ended jobs, arrays and sweeps are kept. The keep_for of a job's spec overrides keep_for
// of the server's rules. The rules on the number of jobs and on bytes hold for all jobs; the jobs
// that ended first are removed first. Arrays and sweeps are counted by themselves, and are removed
// with the jobs that they still have.
//
// The functions are pure, and take ended jobs only.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "base/event_loop.h"
#include "control/job_table.h"
#include "engine/engine.h"

namespace muster::control {

/// A rule without a value sets no limit.
struct RetentionRules {
  std::optional<std::chrono::milliseconds> keep_for;  ///< after the end of the job
  std::optional<int> keep_jobs;       ///< in each project; and as many arrays, and as many sweeps
  std::optional<int64_t> keep_bytes;  ///< of all jobs together: logs, artifacts, copies of files

  bool operator==(const RetentionRules&) const = default;
};

struct EndedJob {
  std::string id;
  std::string project;
  base::Time ended;
  std::optional<std::chrono::milliseconds> keep_for;  ///< from its spec
  std::optional<int64_t> bytes;  ///< nothing: not measured yet, and not counted
};

/// When the job is to be removed; nothing: it is kept.
std::optional<base::Time> kept_until(base::Time ended, std::optional<std::chrono::milliseconds> own,
                                     const RetentionRules& rules);

struct Removal {
  std::string id;
  std::string rule;  ///< "keep_jobs_for=30d"

  bool operator==(const Removal&) const = default;
};

/// The jobs to remove now, in the order in which they ended.
std::vector<Removal> removals(std::vector<EndedJob> jobs, const RetentionRules& rules,
                              base::Time now);

/// When the next job is to be removed, if no other job ends meanwhile.
std::optional<base::Time> next_removal(const std::vector<EndedJob>& jobs,
                                       const RetentionRules& rules);

/// Ended objects of one kind that are removed by the same rules, except the rule on bytes.
struct RetainedObjects {
  std::function<std::vector<EndedJob>()> ended;
  std::function<Result<void>(const std::string& id, const std::string& rule)> remove;
};

/// Removes ended jobs and objects by the rules of retention. A job whose log is followed is removed once it is
/// not followed any more.
///
/// On the EventLoop's thread. Everything that the constructor refers to must outlive it.
class RetentionKeeper {
 public:
  RetentionKeeper(base::EventLoop& loop, const base::Clock& clock, engine::Engine& engine,
                  JobTable& jobs)
      : loop_(loop), clock_(clock), engine_(engine), jobs_(jobs) {}

  /// To be called before set_rules().
  void add(RetainedObjects objects) { objects_.push_back(std::move(objects)); }
  void set_rules(const RetentionRules& rules);
  /// The same rules for jobs that were loaded since.
  void apply_rules() { set_rules(RetentionRules(rules_)); }
  /// The job has just ended.
  void job_ended(job::Job& job);
  /// Adds to an ended job the time of its removal.
  void complete(job::Job& job) const;
  /// An object has just ended.
  void object_ended() { look_at(clock_.now()); }
  /// The job was removed for another reason.
  void forget(const std::string& id) { bytes_.erase(id); }

 private:
  std::vector<EndedJob> ended_jobs() const;
  void look();
  void look_at(base::Time time);
  void remove(const std::vector<Removal>& due);
  void look_at_objects(base::Time now);
  void measure_next();

  base::EventLoop& loop_;
  const base::Clock& clock_;
  engine::Engine& engine_;
  JobTable& jobs_;
  RetentionRules rules_;
  std::vector<RetainedObjects> objects_;
  std::unordered_map<std::string, int64_t> bytes_;  ///< on disk, by id of an ended job
  std::optional<base::Time> due_;                   ///< when the timer expires
  base::EventLoop::Interest timer_;
  bool measuring_ = false;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
