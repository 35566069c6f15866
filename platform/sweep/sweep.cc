#include "sweep/sweep.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "job/job.h"
#include "record/field.h"

namespace muster::sweep {

using record::field;
using record::Sent;

namespace {

constexpr std::array<record::Named<SweepPhase>, 5> kSweepPhases{
    {{SweepPhase::kRunning, "Running"},
     {SweepPhase::kPaused, "Paused"},
     {SweepPhase::kSucceeded, "Succeeded"},
     {SweepPhase::kFailed, "Failed"},
     {SweepPhase::kStopped, "Stopped"}}};

SweepPhase phase_of(const SearchState& state) {
  switch (state.end) {
    case SweepEnd::kNone:
      return state.paused ? SweepPhase::kPaused : SweepPhase::kRunning;
    case SweepEnd::kCompleted:
      return SweepPhase::kSucceeded;
    case SweepEnd::kStopped:
      return SweepPhase::kStopped;
    case SweepEnd::kFailures:
    case SweepEnd::kNoMetric:
      break;
  }
  return SweepPhase::kFailed;
}

std::vector<record::Row> rows_of_summary() {
  return {
      field<&SweepSummary::id>("id", {.sent = Sent::kAlways}),
      field<&SweepSummary::name>("name", {.sent = Sent::kAlways}),
      field<&SweepSummary::project>("project", {.sent = Sent::kAlways}),
      field<&SweepSummary::owner>("owner",
                                  {.help = "The user who created it.", .sent = Sent::kAlways}),
      field<&SweepSummary::phase>("phase", {.sent = Sent::kAlways}),
      field<&SweepSummary::end>("end", {.help = "Why it ended.", .sent = Sent::kAlways}),
      field<&SweepSummary::created>("created", {.sent = Sent::kAlways}),
      field<&SweepSummary::ended>("ended"),
      field<&SweepSummary::method>("method", {.sent = Sent::kAlways}),
      field<&SweepSummary::metric>("metric", {.sent = Sent::kAlways}),
      field<&SweepSummary::goal>("goal", {.sent = Sent::kAlways}),
      field<&SweepSummary::trials>(
          "trials_total",
          {.help = "The trials that it has unless it is stopped.", .sent = Sent::kAlways}),
      field<&SweepSummary::started>("trials_started", {.sent = Sent::kAlways}),
      field<&SweepSummary::active>(
          "trials_active",
          {.help = "Trials that run, or wait for resources.", .sent = Sent::kAlways}),
      field<&SweepSummary::paused>(
          "trials_paused", {.help = "Trials that are paused at a rung.", .sent = Sent::kAlways}),
      field<&SweepSummary::completed>("trials_completed", {.sent = Sent::kAlways}),
      field<&SweepSummary::failed>("trials_failed", {.sent = Sent::kAlways}),
      field<&SweepSummary::stopped>("trials_stopped", {.sent = Sent::kAlways}),
      field<&SweepSummary::best_trial>("best_trial", {.help = "The number of the best trial."}),
      field<&SweepSummary::best>("best", {.help = "The best value of the metric."}),
  };
}

}  // namespace

record::Words<SweepPhase> words_of(const SweepPhase*) {
  return {.schema = "SweepPhase", .values = kSweepPhases};
}
std::string_view to_string(SweepPhase phase) {
  return record::word_for(phase);
}
job::Phase job_phase(SweepPhase phase) {
  switch (phase) {
    case SweepPhase::kSucceeded:
      return job::Phase::kSucceeded;
    case SweepPhase::kFailed:
      return job::Phase::kFailed;
    case SweepPhase::kStopped:
      return job::Phase::kStopped;
    case SweepPhase::kRunning:
    case SweepPhase::kPaused:
      break;
  }
  return job::Phase::kRunning;
}

const record::Table& table_of(const SweepRecord*) {
  static const record::Table table = record::table<SweepRecord>(
      "SweepRecord", {field<&SweepRecord::id>("id"), field<&SweepRecord::owner>("owner"),
                      field<&SweepRecord::created>("created"), field<&SweepRecord::spec>("spec")});
  return table;
}

const record::Table& table_of(const SweepProgress*) {
  static const record::Table table =
      record::table<SweepProgress>("SweepProgress", {field<&SweepProgress::search>("search"),
                                                     field<&SweepProgress::ended>("ended"),
                                                     field<&SweepProgress::removing>("removing")});
  return table;
}

const record::Table& table_of(const SweepSummary*) {
  static const record::Table table =
      record::table<SweepSummary>("SweepSummary", rows_of_summary(), "A sweep in a listing.")
          .as_answer();
  return table;
}

const record::Table& table_of(const Sweep*) {
  static const record::Table table = [] {
    std::vector<record::Row> rows = record::rows_of_member<&Sweep::summary>(rows_of_summary());
    rows.push_back(field<&Sweep::trials>("trials", {.help = "Best first.", .sent = Sent::kAlways}));
    rows.push_back(field<&Sweep::budgets>(
        "budgets",
        {.help = "The steps, or the milliseconds, until each rung.", .sent = Sent::kAlways}));
    rows.push_back(field<&Sweep::spec>("spec", {.sent = Sent::kAlways}));
    return record::table<Sweep>("Sweep", std::move(rows), "A sweep with its trials.").as_answer();
  }();
  return table;
}

const record::Table& table_of(const SweepPlan*) {
  static const record::Table table =
      record::table<SweepPlan>(
          "SweepPlan",
          {field<&SweepPlan::trials>("trials_total", {.sent = Sent::kAlways}),
           field<&SweepPlan::max_concurrent>("max_concurrent", {.sent = Sent::kAlways}),
           field<&SweepPlan::gpus>("gpus",
                                   {.help = "The GPUs of one trial.", .sent = Sent::kAlways}),
           field<&SweepPlan::budgets>(
               "budgets",
               {.help = "The steps, or the milliseconds, until each rung.", .sent = Sent::kAlways}),
           field<&SweepPlan::most_steps>("most_steps", {.help = "If every trial ran to its end."}),
           field<&SweepPlan::expected_steps>(
               "expected_steps", {.help = "If one of `divisor` trials goes on beyond each rung."}),
           field<&SweepPlan::most_gpu_hours>(
               "most_gpu_hours", {.help = "If every trial ran to its end. Absent: trials have no "
                                          "time limit."}),
           field<&SweepPlan::expected_gpu_hours>("expected_gpu_hours"),
           field<&SweepPlan::first>("first", {.help = "The first trials.", .sent = Sent::kAlways})},
          "What a sweep would run and use.")
          .as_answer();
  return table;
}

SweepSummary summary_of(const SweepRecord& record, const SearchState& search,
                        std::optional<base::Time> ended) {
  SweepSummary summary{.id = record.id,
                       .name = record.spec.job.name,
                       .project = record.spec.job.project,
                       .owner = record.owner,
                       .phase = phase_of(search),
                       .end = search.end,
                       .created = record.created,
                       .ended = ended,
                       .method = record.spec.method,
                       .metric = record.spec.metric,
                       .goal = record.spec.goal,
                       .trials = trial_count(record.spec),
                       .started = static_cast<int>(search.trials.size())};
  for (const Trial& trial : search.trials) {
    switch (trial.phase) {
      case TrialPhase::kActive:
        ++summary.active;
        break;
      case TrialPhase::kPaused:
        ++summary.paused;
        break;
      case TrialPhase::kCompleted:
        ++summary.completed;
        break;
      case TrialPhase::kFailed:
        ++summary.failed;
        break;
      case TrialPhase::kStopped:
        ++summary.stopped;
        break;
    }
  }
  if (const Trial* const best = best_of(record.spec, search.trials)) {
    summary.best_trial = best->number;
    summary.best = best->best;
  }
  return summary;
}

Sweep sweep_of(const SweepRecord& record, const SearchState& search,
               std::optional<base::Time> ended) {
  Sweep sweep{.summary = summary_of(record, search, ended),
              .budgets = budgets_of(record.spec),
              .spec = record.spec};
  for (const Trial* const trial : ranking_of(record.spec, search.trials)) {
    sweep.trials.push_back(*trial);
  }
  return sweep;
}

// --- the plan

namespace {

double gpus_of(const job::JobSpec& job) {
  double gpus = 0;
  for (const job::Task& task : job::tasks_of(job)) {
    const job::Resources& resources = job::resources_of(job, task.role);
    gpus += resources.gpus + resources.gpu_share_milli / 1000.0;
  }
  return gpus;
}

/// The sum over all trials if one of `divisor` continues beyond each rung.
double expected_sum(const SweepSpec& spec, const std::vector<int64_t>& budgets) {
  double sum = 0;
  double trials = trial_count(spec);
  int64_t before = 0;
  for (const int64_t budget : budgets) {
    sum += trials * static_cast<double>(budget - before);
    before = budget;
    trials = std::floor(trials / spec.divisor);
  }
  return sum;
}

}  // namespace

SweepPlan plan_of(const SweepSpec& spec) {
  SweepPlan plan{.trials = trial_count(spec),
                 .max_concurrent = spec.max_concurrent,
                 .gpus = gpus_of(spec.job),
                 .budgets = budgets_of(spec)};
  constexpr double kHour = 3'600'000;
  const double expected = expected_sum(spec, plan.budgets);
  if (spec.max_steps > 0) {
    plan.most_steps = spec.max_steps * plan.trials;
    plan.expected_steps = static_cast<int64_t>(expected);
  }
  const auto& limit = spec.job.scheduling.time_limit;
  if (spec.max_time || limit) {
    const int64_t longest = std::min(spec.max_time ? spec.max_time->count() : limit->count(),
                                     limit ? limit->count() : spec.max_time->count());
    plan.most_gpu_hours = plan.gpus * plan.trials * static_cast<double>(longest) / kHour;
  }
  if (spec.max_time) plan.expected_gpu_hours = plan.gpus * expected / kHour;
  for (int number = 1; number <= std::min(plan.trials, kShownTrials); ++number) {
    plan.first.push_back({.number = number, .values = values_of(spec, number)});
  }
  return plan;
}

// --- the reports of a trial

namespace {

using Points = std::vector<job::MetricPoint>;

/// The first series of this name: of the first task, and of its lowest rank.
const Points* points_of(const std::vector<job::MetricSeries>& series, std::string_view metric) {
  for (const job::MetricSeries& each : series) {
    if (each.metric == metric && !each.points.empty()) return &each.points;
  }
  return nullptr;
}

const Points* steps_in(const SweepSpec& spec, const std::vector<job::MetricSeries>& series) {
  if (!spec.step_metric.empty()) return points_of(series, spec.step_metric);
  const Points* const steps = points_of(series, job::kStep);
  return steps != nullptr ? steps : points_of(series, job::kEpoch);
}

/// When the attempt reached each rung, until the first that it has not reached.
std::vector<base::Time> reached_times(const SweepSpec& spec, const Points* steps,
                                      const TrialRun& run) {
  const std::vector<int64_t> budgets = budgets_of(spec);
  std::vector<base::Time> times;
  for (size_t rung = 0; rung < budgets.size(); ++rung) {
    if (counts_time(spec)) {
      if (!run.started) return times;
      const base::Time time = *run.started + std::chrono::milliseconds(
                                                 std::max<int64_t>(0, budgets[rung] - run.ran_ms));
      if (time > run.now) return times;
      times.push_back(time);
      continue;
    }
    if (steps == nullptr) return times;
    const bool is_beyond = rung + 1 == budgets.size() && !run.over;
    const auto budget = static_cast<double>(budgets[rung]);
    const auto reached =
        std::find_if(steps->begin(), steps->end(), [&](const job::MetricPoint& step) {
          return is_beyond ? step.value > budget : step.value >= budget;
        });
    if (reached == steps->end()) return times;
    times.push_back(reached->time);
  }
  return times;
}

/// The newest value after `from` until `to`, else the first one until `end`.
std::optional<double> value_between(const Points& values, std::optional<base::Time> from,
                                    base::Time to, std::optional<base::Time> end) {
  std::optional<double> found;
  for (const job::MetricPoint& point : values) {
    if (from && point.time <= *from) continue;
    if (point.time > to) {
      const bool is_early = !end || point.time <= *end;
      return found ? found : is_early ? std::optional(point.value) : std::nullopt;
    }
    found = point.value;
  }
  return found;
}

}  // namespace

std::vector<std::string> observed_metrics(const SweepSpec& spec) {
  if (!spec.step_metric.empty()) return {spec.metric, spec.step_metric};
  return {spec.metric, std::string(job::kStep), std::string(job::kEpoch)};
}

Observation observe(const SweepSpec& spec, const std::vector<job::MetricSeries>& series,
                    const TrialRun& run) {
  Observation seen;
  static const Points kNone;
  const Points* const steps = steps_in(spec, series);
  const Points* const reported = points_of(series, spec.metric);
  const Points& values = reported == nullptr ? kNone : *reported;
  if (steps != nullptr) seen.steps = std::llround(steps->back().value);
  for (const job::MetricPoint& point : values) {
    const bool is_better = !seen.best || (spec.goal == Goal::kMaximize ? point.value > *seen.best
                                                                       : point.value < *seen.best);
    if (is_better) seen.best = point.value;
  }
  if (!values.empty()) {
    seen.last = values.back().value;
    seen.newest = values.back().time;
  }
  const std::vector<base::Time> times = reached_times(spec, steps, run);
  const size_t rungs = budgets_of(spec).size();
  std::optional<base::Time> before;
  for (size_t rung = 0; rung < times.size(); ++rung) {
    const bool has_next = rung + 1 < times.size();
    const auto end = has_next ? std::optional(times[rung + 1]) : std::nullopt;
    const auto value = value_between(values, before, times[rung], end);
    // It may come late, but not after the next rung.
    if (!value && !has_next && rung + 1 < rungs) break;
    seen.rungs.push_back({value});
    before = times[rung];
  }
  return seen;
}

}  // namespace muster::sweep
