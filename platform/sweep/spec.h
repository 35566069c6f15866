// A sweep: many jobs from one job template, which differ in the values of their parameters, and a
// search for the values with the best metric. Each job of a sweep is a trial.
//
// Plain values. validate() checks them.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/result.h"
#include "job/spec.h"
#include "record/table.h"
#include "record/words.h"

namespace muster::sweep {

/// The values that a parameter may have: a list, or a range.
struct Parameter {
  std::vector<std::string> values;  ///< a list; empty: the range `low`..`high`
  std::optional<double> low;
  std::optional<double> high;  ///< included
  bool log = false;            ///< the logarithm is uniform, instead of the value
  bool integer = false;
  std::optional<double> step;  ///< only low, low + step, ...

  bool operator==(const Parameter&) const = default;
};

enum class Method {
  kGrid,    ///< every combination of the values
  kRandom,  ///< values drawn at random; every trial runs to its end
  kAsha,    ///< values drawn at random; trials with a poor metric are paused early
};

enum class Goal { kMaximize, kMinimize };

std::string_view to_string(Method method);
std::string_view to_string(Goal goal);

struct SweepSpec {
  job::JobSpec job;  ///< the template of all trials; its name is that of the sweep
  std::map<std::string, Parameter> parameters;
  Method method = Method::kRandom;
  std::string metric;  ///< as the program reports it: "accuracy"
  Goal goal = Goal::kMaximize;
  int max_trials = 0;      ///< 0: kGrid: all combinations
  int max_concurrent = 4;  ///< trials that run or wait for resources at the same time
  int64_t seed = 0;
  /// The metric that counts the work of a trial; empty: "step", or "epoch" if no step is reported.
  std::string step_metric;
  int64_t max_steps = 0;                              ///< the longest trial; 0: no limit by steps
  std::optional<std::chrono::milliseconds> max_time;  ///< the same in running time
  int divisor = 4;                                    ///< kAsha: 1 of so many trials continues
  int max_rungs = 5;                                  ///< kAsha
  std::optional<int> max_failures;  ///< more failed trials than this stop the sweep
  /// A running trial that reports no value of the metric for so long is stopped, and has failed.
  std::optional<std::chrono::milliseconds> metric_timeout;

  bool operator==(const SweepSpec&) const = default;
};

inline constexpr int kMostTrials = 10'000;
inline constexpr int kMostParameters = 100;

const record::Table& table_of(const Parameter*);
const record::Table& table_of(const SweepSpec*);
record::Words<Method> words_of(const Method*);
record::Words<Goal> words_of(const Goal*);

/// A parameter in short: "16,32,64", "0..0.5", "0..0.5/0.1", "int:1..8", "log:1e-4..1e-1",
/// "log:int:16..512"; nothing for any other text. kParameterForms describes the valid forms.
std::optional<Parameter> parse_parameter(std::string_view text);
inline constexpr const char* kParameterForms =
    "is not a list A,B,C or a range [log:][int:]FROM..TO[/STEP]";

/// Every fault, with the path of its field as in job files. Also faults of the template, which is
/// checked with the values of the first trial if the sweep itself has no fault.
std::vector<base::Fault> validate(const SweepSpec& spec);

/// As job::add_dependents(), for the fields of a sweep and of its template.
void add_dependents(std::vector<base::Fault>& unread);

/// The least step with which the values of this range differ: they are written with 15 significant
/// digits. REQUIRES: `low` and `high` are finite.
double least_step(const Parameter& range);

/// The number of combinations; nothing: a parameter is a range without steps, or there are more
/// than kMostTrials.
std::optional<int> grid_size(const std::map<std::string, Parameter>& parameters);

/// The number of trials that the sweep has unless it is stopped.
int trial_count(const SweepSpec& spec);

/// The values of one trial, by name.
using Values = std::map<std::string, std::string>;

/// The values of trial `number` (from 1). The same spec and number always give the same values, in
/// any order of calls. kGrid: the parameter that is last by name changes fastest.
/// REQUIRES: validate(spec) has no fault; 1 <= number <= trial_count(spec).
Values values_of(const SweepSpec& spec, int number);

/// The budget of each rung, in steps or in milliseconds: the last is max_steps or max_time, and each
/// is the next one divided by `divisor`. Rungs of less than one step or one second are left out.
/// Empty: no limit. Other methods than kAsha have one rung.
std::vector<int64_t> budgets_of(const SweepSpec& spec);
bool counts_time(const SweepSpec& spec);

/// The name of a trial's job: "lr-3".
std::string trial_name(const std::string& sweep, int number);

/// The job of a trial: `{NAME}` in its command, arguments and environment is replaced by the value
/// of the parameter, and variables are added:
///   NAME (upper case; unless the template sets it) and MUSTER_PARAM_NAME   the value
///   MUSTER_PARAMETERS (and /generated/parameters.json)                     all values, as JSON
///   MUSTER_SWEEP, MUSTER_SWEEP_TRIAL                                       the sweep, the number
/// and those of set_rung().
job::JobSpec trial_job(const SweepSpec& spec, int number, int rung);

/// Sets the variables with how far the trial runs before it is paused:
///   MUSTER_SWEEP_RUNG, MUSTER_SWEEP_RUNGS          the rung, from 0, and the number of rungs
///   MUSTER_SWEEP_STEPS, MUSTER_SWEEP_MAX_STEPS     steps until the rung, and of the longest trial
///   MUSTER_SWEEP_SECONDS, MUSTER_SWEEP_MAX_SECONDS the same in running time
void set_rung(const SweepSpec& spec, int rung, job::JobSpec& job);

/// Whether a program that succeeds has reached a rung below the last: the trial is paused then.
bool may_go_on(const job::JobSpec& trial);

}  // namespace muster::sweep
