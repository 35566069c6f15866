#include "sweep/search.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "record/field.h"

namespace muster::sweep {

using record::field;
using record::Need;
using What = Decision::What;

namespace {

constexpr std::array<record::Named<TrialPhase>, 5> kTrialPhases{
    {{TrialPhase::kActive, "Active"},
     {TrialPhase::kPaused, "Paused"},
     {TrialPhase::kCompleted, "Completed"},
     {TrialPhase::kFailed, "Failed"},
     {TrialPhase::kStopped, "Stopped"}}};

constexpr std::array<record::Named<SweepEnd>, 5> kSweepEnds{{{SweepEnd::kNone, "none"},
                                                             {SweepEnd::kCompleted, "completed"},
                                                             {SweepEnd::kStopped, "stopped"},
                                                             {SweepEnd::kFailures, "failures"},
                                                             {SweepEnd::kNoMetric, "no-metric"}}};

bool has_ended(const Trial& trial) {
  return trial.phase != TrialPhase::kActive && trial.phase != TrialPhase::kPaused;
}

std::optional<double> if_number(std::optional<double> value) {
  return value && std::isfinite(*value) ? value : std::nullopt;
}

/// Its value at a rung that it has reached.
std::optional<double> value_at_rung(const Trial& trial, int rung) {
  return trial.rungs[static_cast<size_t>(rung)].value;
}

bool has_reached(const Trial& trial, int rung) {
  return static_cast<int>(trial.rungs.size()) > rung;
}

}  // namespace

record::Words<TrialPhase> words_of(const TrialPhase*) {
  return {.schema = "TrialPhase", .values = kTrialPhases};
}
record::Words<SweepEnd> words_of(const SweepEnd*) {
  return {.schema = "SweepEnd",
          .values = kSweepEnds,
          .help =
              "`none`: the sweep has not ended. `failures`: more trials than `max_failures` "
              "failed. `no-metric`: the first trials ended without a value of the metric."};
}
std::string_view to_string(TrialPhase phase) {
  return record::word_for(phase);
}
std::string_view to_string(SweepEnd end) {
  return record::word_for(end);
}

const record::Table& table_of(const RungValue*) {
  static const record::Table table =
      record::table<RungValue>(
          "RungValue", {field<&RungValue::value>("value", {.help = "Absent: the trial had none."})},
          "The value of the metric when a trial reached a rung.")
          .as_answer();
  return table;
}

const record::Table& table_of(const Trial*) {
  static const record::Table table =
      record::table<Trial>(
          "Trial",
          {field<&Trial::number>(
               "number",
               {.help = "From 1.", .need = Need::kRequired, .sent = record::Sent::kAlways}),
           field<&Trial::values>("values", {.help = "The values of the parameters.",
                                            .sent = record::Sent::kAlways,
                                            .kept = record::Kept::kSentOnly}),
           field<&Trial::phase>("phase", {.sent = record::Sent::kAlways}),
           field<&Trial::rung>("rung",
                               {.help = "The rung that it runs towards, or is paused at; from 0.",
                                .sent = record::Sent::kAlways}),
           field<&Trial::rungs>("rungs", {.help = "Its values at the rungs that it has reached.",
                                          .sent = record::Sent::kAlways}),
           field<&Trial::best>("best", {.help = "The best value that it has reported."}),
           field<&Trial::last>("last", {.help = "The newest value that it has reported."}),
           field<&Trial::steps>(
               "steps", {.help = "The steps that it has reported.", .sent = record::Sent::kAlways}),
           field<&Trial::ran_ms>("ran_ms", {.help = "The running time of its earlier attempts."}),
           field<&Trial::without_value>(
               "without_value", {.help = "It ended, and never reported a value of the metric."}),
           field<&Trial::fault>("fault", {.help = "Why its job was not submitted, or was stopped."},
                                record::As::kSentence),
           field<&Trial::job>("job", {.help = "The id of its job. Absent: the job was not "
                                              "submitted yet, or is no longer kept.",
                                      .kept = record::Kept::kSentOnly})},
          "A trial of a sweep.")
          .as_answer();
  return table;
}

const record::Table& table_of(const SearchState*) {
  static const record::Table table = record::table<SearchState>(
      "SearchState",
      {field<&SearchState::trials>("trials"), field<&SearchState::end>("end"),
       field<&SearchState::paused>("paused")},
      "How far a sweep has come.");
  return table;
}

Desired desired_of(const Trial& trial) {
  if (trial.phase == TrialPhase::kActive) return Desired::kRuns;
  return trial.phase == TrialPhase::kPaused ? Desired::kIsSuspended : Desired::kHasEnded;
}

Search::Search(const SweepSpec& spec, SearchState state)
    : spec_(spec), state_(std::move(state)), budgets_(budgets_of(spec)) {
  // The store leaves them out.
  for (Trial& trial : state_.trials) {
    if (trial.values.empty()) trial.values = values_of(spec_, trial.number);
    for (size_t rung = 0; rung < trial.rungs.size(); ++rung) rank(trial, static_cast<int>(rung));
  }
}

// --- facts

void Search::note_rung(int number, int rung, std::optional<double> value) {
  if (!has_trial(number) || has_ended(at(number))) return;
  Trial& trial = at(number);
  if (rung != static_cast<int>(trial.rungs.size()) || rung > last_rung()) return;
  trial.rungs.push_back({if_number(value)});
  rank(trial, rung);
  note_values(number, value, std::nullopt, 0);
}

void Search::note_values(int number, std::optional<double> best, std::optional<double> last,
                         int64_t steps) {
  if (!has_trial(number)) return;
  Trial& trial = at(number);
  best = if_number(best);
  // Another attempt begins without values; the best of all attempts counts.
  if (best && (!trial.best || is_better(*best, *trial.best))) trial.best = best;
  if (if_number(last)) trial.last = last;
  trial.steps = std::max(trial.steps, steps);
}

void Search::note_ran(int number, int64_t ran_ms) {
  if (has_trial(number)) at(number).ran_ms = std::max(at(number).ran_ms, ran_ms);
}

void Search::note_ended(int number, bool succeeded, std::string fault) {
  if (!has_trial(number) || has_ended(at(number))) return;
  Trial& trial = at(number);
  trial.fault = std::move(fault);
  trial.without_value = !trial.best;
  trial.phase = succeeded && trial.best ? TrialPhase::kCompleted : TrialPhase::kFailed;
}

bool Search::note_fault(int number, const std::string& fault) {
  if (!has_trial(number) || at(number).phase != TrialPhase::kActive) return false;
  return std::exchange(at(number).fault, fault) != fault;
}

void Search::note_stopped(int number) {
  if (!has_trial(number) || has_ended(at(number))) return;
  at(number).phase = TrialPhase::kStopped;
}

void Search::stop(SweepEnd why) {
  if (state_.end != SweepEnd::kNone) return;
  state_.end = why;
  for (Trial& trial : state_.trials) {
    if (!has_ended(trial)) trial.phase = TrialPhase::kStopped;
  }
}

// --- decisions

int Search::active() const {
  return static_cast<int>(
      std::count_if(state_.trials.begin(), state_.trials.end(),
                    [](const Trial& trial) { return trial.phase == TrialPhase::kActive; }));
}

int Search::failures() const {
  return static_cast<int>(
      std::count_if(state_.trials.begin(), state_.trials.end(),
                    [](const Trial& trial) { return trial.phase == TrialPhase::kFailed; }));
}

/// Whether the first trials ended and none has ever reported the metric: the name is probably
/// wrong, and more trials would be wasted.
bool Search::is_blind() const {
  int without = 0;
  for (const Trial& trial : state_.trials) {
    if (trial.best) return false;
    without += trial.without_value || !trial.rungs.empty() ? 1 : 0;
  }
  return without >= std::min(kBlindTrials, trial_count(spec_));
}

/// Of equal values the trial with the lower number counts as better, so that the order is always
/// the same.
std::vector<Search::RungRanking::Ranked>::iterator Search::place_of(
    RungRanking& ranking, const RungRanking::Ranked& ranked) const {
  return std::lower_bound(ranking.best_first.begin(), ranking.best_first.end(), ranked,
                          [this](const auto& one, const auto& other) {
                            if (one.value == other.value) return one.trial < other.trial;
                            return is_better(one.value, other.value);
                          });
}

/// The trial has reached the rung.
void Search::rank(const Trial& trial, int rung) {
  const auto index = static_cast<size_t>(rung);
  if (rankings_.size() <= index) rankings_.resize(index + 1);
  RungRanking& ranking = rankings_[index];
  ++ranking.reached;
  const std::optional<double> value = value_at_rung(trial, rung);
  if (!value) return;
  const RungRanking::Ranked ranked{.value = *value, .trial = trial.number};
  ranking.best_first.insert(place_of(ranking, ranked), ranked);
}

/// Of the trials that have reached the rung, the top 1/divisor may continue. REQUIRES: this trial
/// has reached it.
bool Search::is_in_top(const Trial& trial, int rung) {
  const std::optional<double> value = value_at_rung(trial, rung);
  if (!value) return false;
  RungRanking& ranking = rankings_[static_cast<size_t>(rung)];
  const auto better =
      place_of(ranking, {.value = *value, .trial = trial.number}) - ranking.best_first.begin();
  return static_cast<size_t>(better) < ranking.top(spec_.divisor);
}

Decision Search::go_on(Trial& trial, What what) {
  ++trial.rung;
  trial.phase = TrialPhase::kActive;
  return {.what = what, .trial = trial.number, .rung = trial.rung};
}

/// The decision for an active trial that has reached the rung it runs towards.
std::optional<Decision> Search::judge(Trial& trial) {
  if (trial.phase != TrialPhase::kActive || !has_reached(trial, trial.rung)) return std::nullopt;
  if (trial.rung == last_rung()) {
    trial.phase = TrialPhase::kCompleted;
    return Decision{.what = What::kComplete, .trial = trial.number, .rung = trial.rung};
  }
  if (is_in_top(trial, trial.rung)) return go_on(trial, What::kGoOn);
  trial.phase = TrialPhase::kPaused;
  return Decision{.what = What::kPause, .trial = trial.number, .rung = trial.rung};
}

/// The paused trial to promote: the best one at the highest rung, as in the paper.
Trial* Search::promotable() {
  for (int rung = static_cast<int>(rankings_.size()) - 1; rung >= 0; --rung) {
    const RungRanking& ranking = rankings_[static_cast<size_t>(rung)];
    const size_t top = ranking.top(spec_.divisor);
    for (size_t place = 0; place < top; ++place) {
      Trial& trial = at(ranking.best_first[place].trial);
      if (trial.phase == TrialPhase::kPaused && trial.rung == rung) return &trial;
    }
  }
  return nullptr;
}

std::optional<Decision> Search::next_decision() {
  if (state_.end != SweepEnd::kNone) return std::nullopt;
  if (is_blind()) {
    stop(SweepEnd::kNoMetric);
    return Decision{.what = What::kFinish};
  }
  if (spec_.max_failures && failures() > *spec_.max_failures) {
    stop(SweepEnd::kFailures);
    return Decision{.what = What::kFinish};
  }
  for (Trial& trial : state_.trials) {
    if (auto decision = judge(trial)) return decision;
  }
  if (state_.paused) return std::nullopt;
  if (active() < spec_.max_concurrent) {
    if (Trial* const trial = promotable()) return go_on(*trial, What::kPromote);
    const int next = static_cast<int>(state_.trials.size()) + 1;
    if (next <= trial_count(spec_)) {
      state_.trials.push_back({.number = next, .values = values_of(spec_, next)});
      return Decision{.what = What::kStart, .trial = next};
    }
  }
  if (active() > 0) return std::nullopt;
  stop(SweepEnd::kCompleted);
  return Decision{.what = What::kFinish};
}

// --- results

bool is_better(Goal goal, double a, double b) {
  return goal == Goal::kMaximize ? a > b : a < b;
}

std::vector<const Trial*> ranking_of(const SweepSpec& spec, const std::vector<Trial>& trials) {
  std::vector<const Trial*> order;
  for (const Trial& trial : trials) order.push_back(&trial);
  std::stable_sort(order.begin(), order.end(), [&](const Trial* a, const Trial* b) {
    if (a->best.has_value() != b->best.has_value()) return a->best.has_value();
    return a->best && is_better(spec.goal, *a->best, *b->best);
  });
  return order;
}

const Trial* best_of(const SweepSpec& spec, const std::vector<Trial>& trials) {
  const Trial* best = nullptr;
  for (const Trial& trial : trials) {
    if (!trial.best) continue;
    if (best == nullptr || is_better(spec.goal, *trial.best, *best->best)) best = &trial;
  }
  return best;
}

}  // namespace muster::sweep
