// Which trials of a sweep start, pause, continue and stop: a pure state machine. Facts about trials
// come in through note_...(), and next_decision() returns one decision after the other, each of
// which is already part of the state. The state is stored with every decision: a server that
// restarts continues from there, and brings the jobs of the trials to the state (desired_of()).
//
// Method kAsha is the asynchronous successive halving algorithm of L. Li, K. Jamieson, A.
// Rostamizadeh, E. Gonina, J. Ben-tzur, M. Hardt, B. Recht and A. Talwalkar: "A System for
// Massively Parallel Hyperparameter Tuning", MLSys 2020 (arXiv:1810.05934, 2018), Algorithm 2: a
// trial continues beyond a rung if it is in the top 1/divisor of all trials that have reached this
// rung so far. If no paused trial can be promoted, a new trial starts. In contrast to the paper, a
// trial that can continue at once is not paused in between.
//
// Pure. Thread-safety: none needed, a state has one owner.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "record/table.h"
#include "record/words.h"
#include "sweep/spec.h"

namespace muster::sweep {

enum class TrialPhase {
  kActive,     ///< its job runs, or waits for resources
  kPaused,     ///< at a rung; may be promoted
  kCompleted,  ///< ended well, or reached the last rung
  kFailed,     ///< its job failed, or ended without a value of the metric
  kStopped,    ///< by a user, or with the sweep
};

/// Why a sweep ended.
enum class SweepEnd {
  kNone,  ///< it has not ended
  kCompleted,
  kStopped,   ///< by a user
  kFailures,  ///< more than max_failures trials failed
  kNoMetric,  ///< the first trials ended without a value of the metric
};

std::string_view to_string(TrialPhase phase);
std::string_view to_string(SweepEnd end);

/// A program that reports NaN, or no value up to the next rung, has no value at a rung, which ranks
/// below all values.
struct RungValue {
  std::optional<double> value;

  bool operator==(const RungValue&) const = default;
};

struct Trial {
  int number = 0;  ///< from 1
  Values values;
  TrialPhase phase = TrialPhase::kActive;
  int rung = 0;                  ///< that it runs towards, or is paused at
  std::vector<RungValue> rungs;  ///< its value at each rung that it has reached
  std::optional<double> best;    ///< of all values that it has reported
  std::optional<double> last;
  int64_t steps = 0;           ///< done
  int64_t ran_ms = 0;          ///< kAsha by time: running time of earlier attempts
  bool without_value = false;  ///< it ended and never reported the metric
  std::string fault;           ///< why its job was not submitted, or was stopped
  /// Id of its job, set only in answers; empty: not submitted yet, or deleted.
  std::string job;

  bool operator==(const Trial&) const = default;
};

struct SearchState {
  std::vector<Trial> trials;  ///< by number
  SweepEnd end = SweepEnd::kNone;
  bool paused = false;  ///< by a user: no trial starts or continues

  bool operator==(const SearchState&) const = default;
};

const record::Table& table_of(const RungValue*);
const record::Table& table_of(const Trial*);
const record::Table& table_of(const SearchState*);
record::Words<TrialPhase> words_of(const TrialPhase*);
record::Words<SweepEnd> words_of(const SweepEnd*);

/// The state that the job of a trial must have.
enum class Desired { kRuns, kIsSuspended, kHasEnded };
Desired desired_of(const Trial& trial);

struct Decision {
  enum class What {
    kStart,     ///< a new trial
    kPause,     ///< the trial at its rung
    kPromote,   ///< a paused trial continues to its next rung
    kGoOn,      ///< a trial continues to its next rung without a pause
    kComplete,  ///< the trial has reached the last rung
    kFinish,    ///< the sweep; `trial` is 0
  };
  What what = What::kFinish;
  int trial = 0;
  int rung = 0;

  bool operator==(const Decision&) const = default;
};

bool is_better(Goal goal, double a, double b);
/// By the best value that each trial has reported, best first; then the trials without a value.
std::vector<const Trial*> ranking_of(const SweepSpec& spec, const std::vector<Trial>& trials);
/// nullptr: no trial has a value.
const Trial* best_of(const SweepSpec& spec, const std::vector<Trial>& trials);

class Search {
 public:
  /// `spec` is valid and outlives the search.
  explicit Search(const SweepSpec& spec, SearchState state = {});

  const SearchState& state() const { return state_; }
  const std::vector<int64_t>& budgets() const { return budgets_; }

  // Facts. A fact that the state contains already, or about a trial that has ended, changes nothing.

  /// The trial has this value at `rung`. Rungs are reported in order; a fast program may report
  /// rungs beyond the one it runs towards. No value, NaN and infinities rank below all values.
  void note_rung(int trial, int rung, std::optional<double> value);
  /// The progress of a trial, for listings.
  void note_values(int trial, std::optional<double> best, std::optional<double> last,
                   int64_t steps);
  void note_ran(int trial, int64_t ran_ms);
  /// The job of the trial has ended by itself.
  void note_ended(int trial, bool succeeded, std::string fault = {});
  /// Records why the job of an active trial cannot be submitted for now (empty: it can). Returns
  /// whether the reason changed.
  bool note_fault(int trial, const std::string& fault);
  /// A user stopped the job of the trial, or deleted it.
  void note_stopped(int trial);
  /// A user stops the sweep: every trial that has not ended is stopped.
  void stop(SweepEnd why = SweepEnd::kStopped);
  void set_paused(bool paused) { state_.paused = paused; }

  /// The next decision, or nothing until there are new facts.
  std::optional<Decision> next_decision();

 private:
  Trial& at(int number) { return state_.trials[static_cast<size_t>(number - 1)]; }
  bool has_trial(int number) const {
    return number >= 1 && static_cast<size_t>(number) <= state_.trials.size();
  }
  bool is_better(double a, double b) const { return sweep::is_better(spec_.goal, a, b); }

  /// The trials that have reached a rung. Kept, so that a decision does not compare each trial with
  /// each other.
  struct RungRanking {
    struct Ranked {
      double value = 0;
      int trial = 0;
    };
    int reached = 0;
    std::vector<Ranked> best_first;  ///< of the trials with a value

    /// The number of trials at the front that may continue.
    size_t top(int divisor) const {
      return std::min(best_first.size(), static_cast<size_t>(reached / divisor));
    }
  };
  std::vector<RungRanking::Ranked>::iterator place_of(RungRanking& ranking,
                                                      const RungRanking::Ranked& ranked) const;
  void rank(const Trial& trial, int rung);
  bool is_in_top(const Trial& trial, int rung);
  int last_rung() const { return static_cast<int>(budgets_.size()) - 1; }
  int active() const;
  int failures() const;
  std::optional<Decision> judge(Trial& trial);
  Decision go_on(Trial& trial, Decision::What what);
  Trial* promotable();
  bool is_blind() const;

  const SweepSpec& spec_;
  SearchState state_;
  std::vector<int64_t> budgets_;
  std::vector<RungRanking> rankings_;  ///< by rung, of all rungs that a trial has reached
};

/// After so many trials without any value of the metric the sweep stops.
inline constexpr int kBlindTrials = 3;

}  // namespace muster::sweep
