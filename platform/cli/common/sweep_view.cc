#include "cli/common/sweep_view.h"

#include <algorithm>

#include "base/text.h"
#include "base/units.h"
#include "cli/common/format.h"
#include "cli/common/output.h"

namespace muster::cli {

using sweep::Sweep;
using sweep::SweepPhase;
using sweep::SweepSummary;
using sweep::Trial;
using sweep::TrialPhase;

namespace {

std::string metric_words(const std::optional<double>& value) {
  return value ? value_words(*value, MetricUnit::kNumber) : "-";
}

/// "8/16": trials that have ended or are paused, of all.
std::string trials_done(const SweepSummary& sweep) {
  return std::to_string(sweep.started - sweep.active) + "/" + std::to_string(sweep.trials);
}

std::string budget_words(const sweep::SweepSpec& spec, const std::vector<int64_t>& budgets) {
  std::vector<std::string> texts;
  for (const int64_t budget : budgets) {
    texts.push_back(sweep::counts_time(spec)
                        ? base::format_duration(std::chrono::milliseconds(budget))
                        : std::to_string(budget));
  }
  if (texts.empty()) return "";
  return base::joined(texts) + (sweep::counts_time(spec) ? "" : " steps");
}

/// "0.92 (lr-2)"; empty: no trial has reported the metric.
std::string best_words(const SweepSummary& sweep) {
  if (!sweep.best_trial) return "";
  return metric_words(sweep.best) + " (" + sweep::trial_name(sweep.name, *sweep.best_trial) + ")";
}

std::string end_words(const SweepSummary& sweep) {
  switch (sweep.end) {
    case sweep::SweepEnd::kFailures:
      return "too many trials failed";
    case sweep::SweepEnd::kNoMetric:
      return "no trial reported the metric '" + sweep.metric + "'";
    default:
      return "";
  }
}

/// For a paused trial of a sweep that has ended, and a trial that was stopped with it: how far it
/// got.
std::string phase_words(const Trial& trial) {
  std::string words(to_string(trial.phase));
  if (!trial.fault.empty()) words += ": " + trial.fault;
  return words;
}

std::vector<std::string> parameter_names(const sweep::SweepSpec& spec) {
  std::vector<std::string> names;
  for (const auto& [name, parameter] : spec.parameters) names.push_back(name);
  return names;
}

void add_values(const Trial& trial, const std::vector<std::string>& names,
                std::vector<std::string>& row) {
  for (const std::string& name : names) {
    const auto value = trial.values.find(name);
    row.push_back(value == trial.values.end() ? "" : base::shortened(value->second, 30));
  }
}

std::string trial_table(const Sweep& sweep) {
  const std::vector<std::string> names = parameter_names(sweep.spec);
  std::vector<Column> columns = {{"TRIAL"}, {"BEST", true}, {"LAST", true}};
  const bool has_rungs = sweep.budgets.size() > 1;
  if (has_rungs) columns.push_back({"RUNG", true});
  columns.push_back({"STEPS", true});
  for (const std::string& name : names) columns.push_back({name, true});
  columns.push_back({"PHASE"});
  Table table(columns);
  for (const Trial& trial : sweep.trials) {
    std::vector<std::string> row = {sweep::trial_name(sweep.summary.name, trial.number),
                                    metric_words(trial.best), metric_words(trial.last)};
    if (has_rungs) {
      row.push_back(std::to_string(trial.rungs.size()) + "/" +
                    std::to_string(sweep.budgets.size()));
    }
    row.push_back(std::to_string(trial.steps));
    add_values(trial, names, row);
    row.push_back(phase_words(trial));
    table.add(std::move(row));
  }
  return table.to_string();
}

}  // namespace

std::string sweep_table(const std::vector<SweepSummary>& sweeps, base::Time now) {
  Table table({{"NAME"},
               {"PROJECT"},
               {"METHOD"},
               {"PHASE"},
               {"TRIALS", true},
               {"METRIC"},
               {"BEST", true},
               {"TRIAL"},
               {"AGE", true}});
  for (const SweepSummary& sweep : sweeps) {
    table.add({sweep.name, sweep.project, std::string(to_string(sweep.method)),
               std::string(to_string(sweep.phase)), trials_done(sweep), sweep.metric,
               metric_words(sweep.best),
               sweep.best_trial ? sweep::trial_name(sweep.name, *sweep.best_trial) : "-",
               age(sweep.created, now)});
  }
  return table.to_string();
}

std::string trial_counts(const SweepSummary& sweep) {
  std::string words =
      std::to_string(sweep.started) + " of " + std::to_string(sweep.trials) + " started";
  const auto add = [&](int count, const char* what) {
    if (count > 0) words += ", " + std::to_string(count) + " " + what;
  };
  add(sweep.active, "active");
  add(sweep.paused, "paused");
  add(sweep.completed, "completed");
  add(sweep.failed, "failed");
  add(sweep.stopped, "stopped");
  return words;
}

std::string sweep_line(const SweepSummary& sweep) {
  const std::string best = best_words(sweep);
  return std::string(to_string(sweep.phase)) + "; " + trial_counts(sweep) +
         (best.empty() ? "" : "; best " + sweep.metric + ": " + best);
}

std::string sweep_stop_text(const SweepSummary& sweep) {
  const bool is_stopped = sweep.phase == sweep::SweepPhase::kStopped;
  return is_stopped ? "stopping " + sweep.name + ": " + trial_counts(sweep) + "\n"
                    : sweep.name + " has ended: " + sweep_line(sweep) + "\n";
}

std::string sweep_page(const Sweep& sweep, base::Time now) {
  const SweepSummary& summary = sweep.summary;
  std::string page = fields(
      {{"NAME", summary.name},
       {"KIND", "sweep of " + std::string(job::to_string(sweep.spec.job.kind)) + " jobs"},
       {"METHOD", std::string(to_string(summary.method))},
       {"METRIC", std::string(to_string(summary.goal)) + " " + summary.metric},
       {"RUNGS", sweep.budgets.size() > 1 ? budget_words(sweep.spec, sweep.budgets) : ""},
       {"PHASE", std::string(to_string(summary.phase))},
       {"REASON", end_words(summary)},
       {"TRIALS", trial_counts(summary)},
       {"BEST", best_words(summary)},
       {"PROJECT", summary.project},
       {"OWNER", summary.owner},
       {"ID", summary.id},
       {"SUBMITTED", moment_words(summary.created) + " (" + age(summary.created, now) + " ago)"},
       {"ENDED", summary.ended ? moment_words(*summary.ended) + " (it took " +
                                     age(summary.created, *summary.ended) + ")"
                               : ""}});
  if (!sweep.trials.empty()) page += "\n" + trial_table(sweep);
  return page;
}

std::string plan_page(const sweep::SweepSpec& spec, const sweep::SweepPlan& plan) {
  const auto two_numbers = [](const std::optional<double>& most,
                              const std::optional<double>& expected) -> std::string {
    if (!most) return "";
    std::string words = "at most " + value_words(*most, MetricUnit::kNumber);
    if (expected && *expected < *most) {
      words += ", about " + value_words(*expected, MetricUnit::kNumber) + " expected";
    }
    return words;
  };
  const auto as_double = [](const std::optional<int64_t>& number) {
    return number ? std::optional(static_cast<double>(*number)) : std::nullopt;
  };
  std::string hours = two_numbers(plan.most_gpu_hours, plan.expected_gpu_hours);
  if (hours.empty() && plan.gpus > 0) {
    hours = "not bounded: give --max-time, or the job a --time-limit";
  }
  std::string page =
      fields({{"NAME", spec.job.name},
              {"METHOD", std::string(to_string(spec.method))},
              {"TRIALS", std::to_string(plan.trials) + ", at most " +
                             std::to_string(plan.max_concurrent) + " at the same time"},
              {"RUNGS", plan.budgets.size() > 1 ? budget_words(spec, plan.budgets) : ""},
              {"STEPS", two_numbers(as_double(plan.most_steps), as_double(plan.expected_steps))},
              {"GPUS", value_words(plan.gpus, MetricUnit::kNumber) + " for each trial"},
              {"GPU HOURS", hours}});
  const std::vector<std::string> names = parameter_names(spec);
  std::vector<Column> columns = {{"TRIAL"}};
  for (const std::string& name : names) columns.push_back({name, true});
  Table table(columns);
  for (const Trial& trial : plan.first) {
    std::vector<std::string> row = {sweep::trial_name(spec.job.name, trial.number)};
    add_values(trial, names, row);
    table.add(std::move(row));
  }
  page += "\n" + table.to_string();
  const int more = plan.trials - static_cast<int>(plan.first.size());
  if (more > 0) page += "and " + std::to_string(more) + " more\n";
  return page;
}

std::string rerun_command(const Sweep& sweep, const Trial& trial) {
  std::vector<std::string> words = {"muster", "rerun",
                                    sweep::trial_name(sweep.summary.name, trial.number)};
  if (sweep.summary.project != "default") {
    words.insert(words.end(), {"--project", sweep.summary.project});
  }
  if (sweep.budgets.size() > 1) {
    job::JobSpec job;
    sweep::set_rung(sweep.spec, static_cast<int>(sweep.budgets.size()) - 1, job);
    for (const auto& [name, value] : job.environment) {
      words.insert(words.end(), {"--env", name + "=" + value});
    }
  }
  return base::shell_joined(words);
}

}  // namespace muster::cli
