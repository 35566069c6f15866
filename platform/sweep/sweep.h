// A sweep in the server, as the API shows it; the maximum use of a sweep; and the effect of the
// reports of a trial's program on the search.
//
// Plain values and pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "job/fact_parts.h"
#include "job/metric.h"
#include "sweep/search.h"
#include "sweep/spec.h"

namespace muster::sweep {

/// The part of a sweep that never changes.
struct SweepRecord {
  std::string id;
  std::string owner;
  base::Time created;
  SweepSpec spec;

  bool operator==(const SweepRecord&) const = default;
};

/// The part that changes; stored under the same id.
struct SweepProgress {
  SearchState search;
  std::optional<base::Time> ended;
  bool removing = false;  ///< it is being deleted, with the jobs of its trials

  bool operator==(const SweepProgress&) const = default;
};

enum class SweepPhase { kRunning, kPaused, kSucceeded, kFailed, kStopped };
std::string_view to_string(SweepPhase phase);
/// The phase that a listing of jobs shows for it: a paused sweep is running.
job::Phase job_phase(SweepPhase phase);

/// A row of a listing.
struct SweepSummary {
  std::string id;
  std::string name;
  std::string project;
  std::string owner;
  SweepPhase phase = SweepPhase::kRunning;
  SweepEnd end = SweepEnd::kNone;
  base::Time created;
  std::optional<base::Time> ended;
  Method method = Method::kRandom;
  std::string metric;
  Goal goal = Goal::kMaximize;
  int trials = 0;   ///< that it has unless it is stopped
  int started = 0;  ///< of these
  int active = 0;   ///< run, or wait for resources
  int paused = 0;   ///< at a rung
  int completed = 0;
  int failed = 0;
  int stopped = 0;
  std::optional<int> best_trial;
  std::optional<double> best;

  bool operator==(const SweepSummary&) const = default;
};

/// A sweep with its trials.
struct Sweep {
  SweepSummary summary;
  std::vector<Trial> trials;     ///< best first
  std::vector<int64_t> budgets;  ///< of each rung: steps, or milliseconds
  SweepSpec spec;

  bool operator==(const Sweep&) const = default;
};

/// What a sweep would run and use.
struct SweepPlan {
  int trials = 0;
  int max_concurrent = 0;
  double gpus = 0;                        ///< of one trial
  std::vector<int64_t> budgets;           ///< of each rung: steps, or milliseconds
  std::optional<int64_t> most_steps;      ///< of all trials together, if each ran to its end
  std::optional<int64_t> expected_steps;  ///< if one of `divisor` trials continues beyond each rung
  std::optional<double> most_gpu_hours;   ///< nothing: neither max_time nor a time limit is set
  std::optional<double> expected_gpu_hours;
  std::vector<Trial> first;  ///< the values of the first trials, at most kShownTrials

  bool operator==(const SweepPlan&) const = default;
};
inline constexpr int kShownTrials = 20;

const record::Table& table_of(const SweepRecord*);
const record::Table& table_of(const SweepProgress*);
const record::Table& table_of(const SweepSummary*);
const record::Table& table_of(const Sweep*);
const record::Table& table_of(const SweepPlan*);
record::Words<SweepPhase> words_of(const SweepPhase*);

Sweep sweep_of(const SweepRecord& record, const SearchState& search,
               std::optional<base::Time> ended);
SweepSummary summary_of(const SweepRecord& record, const SearchState& search,
                        std::optional<base::Time> ended);

/// REQUIRES: validate(spec) has no fault.
SweepPlan plan_of(const SweepSpec& spec);

// --- the reports of a trial

/// One attempt of a trial's job.
struct TrialRun {
  std::optional<base::Time> started;  ///< nothing: the attempt has ended
  base::Time now;
  int64_t ran_ms = 0;  ///< in earlier attempts
  bool over = false;   ///< the program has ended: no value is to come
};

struct Observation {
  std::vector<RungValue> rungs;  ///< the rungs that this attempt has reached, from rung 0
  std::optional<double> best;
  std::optional<double> last;
  int64_t steps = 0;
  std::optional<base::Time> newest;  ///< time of the newest value of the metric

  bool operator==(const Observation&) const = default;
};

/// Reads the metrics that the search needs from the series of one attempt. The value at a rung is the
/// newest value since the rung before it, up to the report of the rung's step; a program that evaluates
/// seldom has the first value after it. A program that reports none until the next rung has none.
/// The last rung is reached when the program reports a step beyond it, because a program that runs to
/// the last step ends by itself.
Observation observe(const SweepSpec& spec, const std::vector<job::MetricSeries>& series,
                    const TrialRun& run);

/// The metrics that observe() reads.
std::vector<std::string> observed_metrics(const SweepSpec& spec);

}  // namespace muster::sweep
