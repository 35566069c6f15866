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
  bool in_use = false;           ///< its removal has to wait; of an object, too
};

/// When the job is to be removed; nothing: it is kept.
std::optional<base::Time> kept_until(base::Time ended, std::optional<std::chrono::milliseconds> own,
                                     const RetentionRules& rules);

struct Removal {
  std::string id;
  std::string rule;    ///< "keep_jobs_for=30d"
  bool waits = false;  ///< the job is still in use

  bool operator==(const Removal&) const = default;
};

/// The jobs to remove now, in the order in which they ended. A job in use keeps its bytes: if there
/// are too many, other jobs are removed instead, unless that would not be enough. `other_bytes`: of
/// the ended jobs that are not in `jobs`, all of which are younger than those that the rule on
/// bytes removes.
std::vector<Removal> removals(std::vector<EndedJob> jobs, const RetentionRules& rules,
                              base::Time now, int64_t other_bytes = 0);

/// When the next job that is not due at `now` is to be removed, if no other job ends meanwhile.
std::optional<base::Time> next_removal(const std::vector<EndedJob>& jobs,
                                       const RetentionRules& rules, base::Time now);

/// Ended objects of one kind that are removed by the same rules, except the rule on bytes.
struct RetainedObjects {
  std::function<std::vector<EndedJob>()> ended;
  std::function<Result<void>(const std::string& id, const std::string& rule)> remove;
  /// Whether this ended job has to stay for now, for example because an object still needs it; null:
  /// no job has to.
  std::function<bool(const job::JobFacts& job)> needs;
};

/// Removes ended jobs and objects by the rules of retention. A job whose log is followed, or that
/// an object needs, is removed later.
///
/// A server has a million ended jobs. The keeper visits all of them when it gets its rules and when
/// a job may have to go, and copies only the jobs that a rule may concern.
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
  /// The job was removed, for whatever reason.
  void forget(const std::string& id);

  /// For tests: how many times a job was visited, and the sum of all sizes.
  uint64_t visits() const { return visits_; }
  int64_t measured_bytes() const { return bytes_; }

 private:
  struct Candidates {
    std::vector<EndedJob> jobs;
    int64_t other_bytes = 0;  ///< of all other ended jobs
  };
  struct DiskUse {
    base::Time ended;
    int64_t bytes = 0;
  };
  struct ProjectCount {
    int most = 0;     ///< of its ended jobs; more, if some were removed since the last look
    int visited = 0;  ///< in this look
  };

  void each_ended(const std::function<void(const job::JobFacts&)>& visit);
  void read_jobs();
  ProjectCount& count_of(std::string_view project);
  Candidates candidates(base::Time now);
  std::optional<base::Time> too_large_until() const;
  bool is_in_use(const job::JobFacts& job) const;
  void look();
  void look_at(base::Time time);
  void leave_out_refused(std::vector<Removal>& due, base::Time now);
  bool remove(const std::vector<Removal>& due, base::Time now);
  void look_at_objects(base::Time now);
  void measure_next();
  void measured(const std::string& id, const DiskUse& use);

  base::EventLoop& loop_;
  const base::Clock& clock_;
  engine::Engine& engine_;
  JobTable& jobs_;
  RetentionRules rules_;
  std::vector<RetainedObjects> objects_;
  std::map<std::string, ProjectCount, std::less<>> counts_;  ///< if there is a rule on their number
  std::unordered_map<std::string, DiskUse> disk_use_;        ///< by id of an ended job
  std::set<std::pair<base::Time, std::string_view>> by_end_;  ///< the ids in `disk_use_`
  int64_t bytes_ = 0;                                         ///< the sum of `disk_use_`
  std::set<std::pair<base::Time, std::string>> unmeasured_;   ///< ends and ids of jobs to measure
  std::set<std::string> refused_;  ///< ids of due jobs that the engine refused to remove
  base::Time refused_until_{};     ///< then the engine is asked to remove them again
  std::optional<base::Time> due_;  ///< when the timer expires
  base::EventLoop::Interest timer_;
  bool measuring_ = false;
  uint64_t visits_ = 0;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace muster::control
