#include "sweep/spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/text.h"
#include "base/units.h"
#include "job/checker.h"
#include "job/metric.h"
#include "job/spec_table.h"
#include "job/validate.h"
#include "record/field.h"
#include "sweep/spec.h"

namespace muster::sweep {

using base::number_of;
using record::field;
using record::Need;

namespace {

constexpr std::array<record::Named<Method>, 3> kMethods{
    {{Method::kGrid, "grid"}, {Method::kRandom, "random"}, {Method::kAsha, "asha"}}};
constexpr std::array<record::Named<Goal>, 2> kGoals{
    {{Goal::kMaximize, "maximize"}, {Goal::kMinimize, "minimize"}}};
constexpr std::array<record::Named<Goal>, 2> kGoalAliases{
    {{Goal::kMaximize, "max"}, {Goal::kMinimize, "min"}}};

constexpr const char* kMetricPattern = "^[A-Za-z_][A-Za-z0-9_./-]{0,63}$";
constexpr const char* kStepMetricPattern = "^([A-Za-z_][A-Za-z0-9_./-]{0,63})?$";

// The name of a trial's job is the sweep's, '-' and the number of the trial.
constexpr size_t kLongestName = 42;

/// The parameters by name. In job files a parameter may also be a list of values or a short form.
class ParametersType final : public record::Type {
 public:
  using All = std::map<std::string, Parameter>;

  void write(record::JsonWriter& json, const void* value, record::Form form) const override {
    plain_.write(json, value, form);
  }
  void read(const record::Input& input, void* value) const override {
    if (input.form != record::Form::kHuman) return plain_.read(input, value);
    auto& parameters = *static_cast<All*>(value);
    record::read_pairs(input, [&](const std::string& name, const record::Input& each) {
      read_human(each, parameters[name]);
    });
  }
  bool is_same(const void* a, const void* b) const override { return plain_.is_same(a, b); }
  record::Schema schema(const record::Notes& notes, record::Schemas& schemas) const override {
    return plain_.schema(notes, schemas);
  }

 private:
  static void read_human(const record::Input& input, Parameter& parameter) {
    if (input.value.is_text()) {
      const std::string text(input.value.text());
      if (auto parsed = parse_parameter(text)) {
        parameter = *std::move(parsed);
      } else {
        input.note("'" + text + "' " + kParameterForms);
      }
    } else if (input.value.is_list()) {
      parameter = {};
      record::texts_type()->read(input, &parameter.values);
    } else {
      record::read(input, parameter);
    }
  }

  record::NamedType<Parameter> plain_;
};

}  // namespace

record::Words<Method> words_of(const Method*) {
  return {.schema = "SweepMethod",
          .values = kMethods,
          .help =
              "`grid` runs every combination of the values. `random` draws values at random. "
              "`asha` draws values at random and pauses trials with a poor metric early."};
}
record::Words<Goal> words_of(const Goal*) {
  return {.schema = "SweepGoal", .values = kGoals, .aliases = kGoalAliases};
}

std::string_view to_string(Method method) {
  return record::word_for(method);
}
std::string_view to_string(Goal goal) {
  return record::word_for(goal);
}

const record::Table& table_of(const Parameter*) {
  static const record::Table table = record::table<Parameter>(
      "SweepParameter",
      {field<&Parameter::values>("values", {.help = "A list of values. Empty: a range."}),
       field<&Parameter::low>("low", {.help = "The lower end of a range."}),
       field<&Parameter::high>("high", {.help = "The upper end of a range, included."}),
       field<&Parameter::log>("log", {.help = "The logarithm of the values is uniform."}),
       field<&Parameter::integer>("integer", {.help = "The values are whole numbers."}),
       field<&Parameter::step>("step", {.help = "Only `low`, `low` + `step`, and so on."})},
      "The values that a parameter of a sweep may have: a list, or a range.");
  return table;
}

namespace {

std::vector<record::Row> rows_of_search() {
  return {
      record::typed_field<&SweepSpec::parameters>(
          "parameters", std::make_shared<const ParametersType>(),
          {.help = "The parameters by name. A name is that of an environment variable in any case.",
           .need = Need::kOnWire,
           .schema = R"({"propertyNames": {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,63}$"},
                         "minProperties": 1})",
           .most_items = 100}),
      field<&SweepSpec::method>(
          "method", {.sent = record::Sent::kAlways,
                     .flag = {.name = "--method",
                              .value = "HOW",
                              .help = "how values are chosen: random (default), grid (every "
                                      "combination), asha (random; pauses poor trials early)"}}),
      field<&SweepSpec::metric>(
          "metric", {.help = "The metric that the trials report and the sweep compares.",
                     .need = Need::kOnWire,
                     .pattern = kMetricPattern,
                     .flag = {.name = "--metric",
                              .value = "NAME",
                              .help = "metric that the trials report, as in accuracy"}}),
      field<&SweepSpec::goal>(
          "goal", {.sent = record::Sent::kAlways,
                   .flag = {.name = "--goal",
                            .value = "GOAL",
                            .help = "maximize or minimize the metric (default: maximize)"}}),
      field<&SweepSpec::max_trials>(
          "max_trials",
          {.help = "The number of trials. 0, only for `grid`: one for each combination.",
           .least = 0,
           .most = kMostTrials,
           .flag = {.name = "--max-trials",
                    .value = "N",
                    .help = "number of trials (grid: at most; default: every combination)"}}),
      field<&SweepSpec::max_concurrent>(
          "max_concurrent",
          {.help = "How many trials run, or wait for resources, at the same time.",
           .sent = record::Sent::kAlways,
           .least = 1,
           .most = 1000,
           .flag = {.name = "--max-concurrent",
                    .value = "N",
                    .help = "largest number of trials that run at the same time (default: 4)"}}),
      field<&SweepSpec::seed>(
          "seed", {.help = "The same seed gives the same values.",
                   .sent = record::Sent::kAlways,
                   .flag = {.name = "--seed",
                            .value = "N",
                            .help = "the same seed gives the same values (default: 0)"}}),
  };
}

std::vector<record::Row> rows_of_limits() {
  return {
      field<&SweepSpec::step_metric>(
          "step_metric",
          {.help = "The metric that counts the work of a trial. Empty: `step`, or `epoch` of a "
                   "program that reports no `step`.",
           .pattern = kStepMetricPattern,
           .flag = {.name = "--step-metric",
                    .value = "NAME",
                    .help = "metric that counts the work of a trial (default: step, else epoch)"}}),
      field<&SweepSpec::max_steps>("max_steps",
                                   {.help = "The steps of the longest trial; 0: no limit.",
                                    .least = 0,
                                    .most = int64_t{1} << 40,
                                    .flag = {.name = "--max-steps",
                                             .value = "N",
                                             .help = "steps (or epochs) of the longest trial"}}),
      field<&SweepSpec::max_time>(
          "max_time",
          {.help = "Instead of `max_steps`: the running time of the longest trial.",
           .least = 1000,
           .most = job::kYearMilliseconds,
           .flag = {.name = "--max-time",
                    .value = "TIME",
                    .help = "instead of --max-steps: running time of the longest trial"}}),
      field<&SweepSpec::divisor>(
          "divisor",
          {.help = "Method `asha`: one of this many trials goes on beyond a rung.",
           .sent = record::Sent::kAlways,
           .least = 2,
           .most = 100,
           .flag = {.name = "--divisor",
                    .value = "N",
                    .help = "asha: one of N trials continues beyond a rung (default: 4)"}}),
      field<&SweepSpec::max_rungs>(
          "max_rungs", {.help = "Method `asha`: the largest number of rungs, including the last.",
                        .sent = record::Sent::kAlways,
                        .least = 1,
                        .most = 20,
                        .flag = {.name = "--max-rungs",
                                 .value = "N",
                                 .help = "asha: largest number of rungs (default: 5)"}}),
      field<&SweepSpec::max_failures>(
          "max_failures", {.help = "When more trials than this have failed, the sweep is stopped.",
                           .least = 0,
                           .flag = {.name = "--max-failures",
                                    .value = "N",
                                    .help = "stop the sweep when more trials than N have failed"}}),
      field<&SweepSpec::metric_timeout>(
          "metric_timeout",
          {.help =
               "A running trial that reports no value of the metric for so long is stopped, and "
               "counts as failed.",
           .least = 1000,
           .most = job::kYearMilliseconds,
           .flag =
               {.name = "--metric-timeout",
                .value = "TIME",
                .help =
                    "stop a trial that reports no value of the metric for this long, as in 10m"}}),
      field<&SweepSpec::job>("job",
                             {.help = "The job of every trial. Its name is that of the sweep.",
                              .need = Need::kOnWire}),
  };
}

}  // namespace

const record::Table& table_of(const SweepSpec*) {
  static const record::Table table = [] {
    std::vector<record::Row> rows = rows_of_search();
    for (record::Row& row : rows_of_limits()) rows.push_back(std::move(row));
    return record::table<SweepSpec>(
        "SweepSpec", std::move(rows),
        "A sweep to create: the template of its trials, and the search for the best values.");
  }();
  return table;
}

namespace {

bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

/// FROM..TO[/STEP]; nothing for any other text.
std::optional<Parameter> parse_range(std::string_view text) {
  const size_t dots = text.find("..");
  if (dots == std::string_view::npos) return std::nullopt;
  const std::string_view rest = text.substr(dots + 2);
  const size_t slash = rest.find('/');
  Parameter range{.low = number_of<double>(text.substr(0, dots)),
                  .high = number_of<double>(rest.substr(0, slash))};
  if (!range.low || !range.high) return std::nullopt;
  if (slash == std::string_view::npos) return range;
  range.step = number_of<double>(rest.substr(slash + 1));
  return range.step ? std::optional(range) : std::nullopt;
}

}  // namespace

std::optional<Parameter> parse_parameter(std::string_view text) {
  bool log = false;
  bool integer = false;
  std::string_view rest = text;
  for (bool again = true; again;) {
    again = false;
    if (!log && take_prefix(rest, "log:")) again = log = true;
    if (!integer && take_prefix(rest, "int:")) again = integer = true;
  }
  if (auto range = parse_range(rest)) {
    range->log = log;
    range->integer = integer;
    return range;
  }
  if (log || integer || text.empty()) return std::nullopt;
  Parameter list{.values = base::split(text, ',')};
  for (std::string& value : list.values) {
    value = std::string(base::trimmed(value));
    if (value.empty()) return std::nullopt;
  }
  return list;
}

// --- validation

namespace {

std::string upper_case(std::string_view text) {
  std::string upper(text);
  for (char& c : upper) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return upper;
}

void check_range(const Parameter& range, const std::string& at, job::Checker& check) {
  if (!range.low || !range.high) {
    return check.require(false, at, "has no values; give `values`, or `low` and `high`");
  }
  const double low = *range.low;
  const double high = *range.high;
  check.require(std::isfinite(low) && std::isfinite(high), at, "the ends of a range are finite");
  check.require(low <= high, at + ".high", "the upper end of a range is below its lower end");
  check.require(!range.log || low > 0, at + ".low", "a logarithmic range begins above 0");
  check.require(!range.integer || (std::floor(low) == low && std::floor(high) == high &&
                                   std::abs(low) < 1e15 && std::abs(high) < 1e15),
                at, "the ends of an integer range are whole numbers");
  if (!range.step) return;
  const bool is_step = std::isfinite(*range.step) && *range.step > 0;
  check.require(is_step, at + ".step", "a step is greater than 0");
  const bool are_finite = std::isfinite(low) && std::isfinite(high);
  check.require(
      !is_step || !are_finite || *range.step >= least_step(range), at + ".step",
      "the step is too small: neighbouring values would have the same first 15 digits; use a "
      "larger step, or list the values");
  check.require(!range.log, at + ".step", "a logarithmic range has no steps; list its values");
  check.require(!range.integer || std::floor(*range.step) == *range.step, at + ".step",
                "the step of an integer range is a whole number");
}

void check_parameter(const std::string& name, const Parameter& parameter, job::Checker& check) {
  const std::string at = "parameters." + name;
  check.require(
      job::is_variable_name(name) && name.size() <= 64, at,
      base::in_quotes(name) +
          " is not a parameter name; use at most 64 of A-Z, a-z, 0-9 and '_', and begin with "
          "a letter or '_'");
  check.require(!upper_case(name).starts_with("MUSTER_"), at,
                "names that begin with MUSTER_ are reserved");
  const bool is_range =
      parameter.low || parameter.high || parameter.log || parameter.integer || parameter.step;
  if (parameter.values.empty()) return check_range(parameter, at, check);
  check.require(!is_range, at, "is a list and a range; give one of them");
  check.require(parameter.values.size() <= kMostTrials, at,
                "has more than " + std::to_string(kMostTrials) + " values");
  for (const std::string& value : parameter.values) {
    check.require(base::is_utf8(value) && !job::has_nul(value) && value.size() <= 4096, at,
                  "a value is text of at most 4096 bytes without NUL");
  }
}

void check_parameters(const SweepSpec& spec, job::Checker& check) {
  check.require(!spec.parameters.empty(), "parameters", "a sweep needs at least one parameter");
  check.require(spec.parameters.size() <= kMostParameters, "parameters",
                "at most " + std::to_string(kMostParameters) + " parameters are allowed");
  std::map<std::string, std::string> variables;
  for (const auto& [name, parameter] : spec.parameters) {
    check_parameter(name, parameter, check);
    const auto [other, is_new] = variables.emplace(upper_case(name), name);
    check.require(is_new, "parameters." + name,
                  "sets the same variable as parameter '" + other->second + "'");
  }
}

void check_method(const SweepSpec& spec, job::Checker& check) {
  check.require(job::is_metric_name(spec.metric), "metric",
                spec.metric.empty() ? "name the metric that the trials report, as in accuracy"
                                    : "'" + spec.metric + "' is not the name of a metric");
  check.require(spec.step_metric.empty() || job::is_metric_name(spec.step_metric), "step_metric",
                "'" + spec.step_metric + "' is not the name of a metric");
  check.require_range(spec.max_trials, 0, kMostTrials, "max_trials");
  check.require_range(spec.max_concurrent, 1, 1000, "max_concurrent");
  check.require_range(spec.divisor, 2, 100, "divisor");
  check.require_range(spec.max_rungs, 1, 20, "max_rungs");
  check.require(spec.max_steps >= 0, "max_steps", "give a number of at least 0");
  check.require(spec.max_steps == 0 || !spec.max_time, "max_time", "cannot be used with max_steps");
  check.require(!spec.max_time || spec.max_time->count() >= 1000, "max_time",
                "give a time of at least 1s");
  check.require(spec.max_failures.value_or(0) >= 0, "max_failures", "give a number of at least 0");
  if (spec.method == Method::kAsha) {
    check.require(spec.max_steps > 0 || spec.max_time.has_value(), "max_steps",
                  "method asha requires max_steps or max_time");
  }
  if (spec.method != Method::kGrid) {
    check.require(spec.max_trials != 0, "max_trials",
                  "method " + std::string(to_string(spec.method)) + " requires a number of trials");
  } else if (!grid_size(spec.parameters)) {
    check.require(false, "parameters",
                  "a grid requires lists, integer ranges or ranges with a step, with at most " +
                      std::to_string(kMostTrials) + " combinations");
  }
}

void check_template(const SweepSpec& spec, job::Checker& check) {
  const std::string& name = spec.job.name;
  check.require(job::is_job_name(name) && name.size() <= kLongestName, "job.name",
                "'" + name + "' is not a name of a sweep; use 1 to " +
                    std::to_string(kLongestName) +
                    " of a-z, 0-9 and '-', with a letter or digit at both ends");
  check.require(spec.job.array.is_none(), "job.array", "a trial cannot be an array");
  check.require(!spec.job.held, "job.held", "a trial cannot be held; pause the sweep");
  check.require(spec.method != Method::kAsha || spec.job.scheduling.singleton.empty(),
                "job.scheduling.singleton",
                "a sweep of method asha cannot use a singleton, because a paused trial would block "
                "the others; use max_concurrent: 1");
}

}  // namespace

std::vector<base::Fault> validate(const SweepSpec& spec) {
  job::Checker check;
  check_parameters(spec, check);
  check_method(spec, check);
  check_template(spec, check);
  std::vector<base::Fault> faults = check.take();
  const bool has_trials = faults.empty();
  job::JobSpec sample = has_trials ? trial_job(spec, 1, 0) : spec.job;
  if (!has_trials) sample.name = trial_name(spec.job.name, 1);
  for (base::Fault& fault : job::validate(sample)) {
    // check_template() has its own rules for these.
    const bool is_checked = fault.field == "name" || record::is_within(fault.field, "array");
    if (is_checked && !has_trials) continue;
    fault.field = "job." + fault.field;
    faults.push_back(std::move(fault));
  }
  return faults;
}

void add_dependents(std::vector<base::Fault>& unread) {
  const size_t count = unread.size();
  for (size_t i = 0; i < count; ++i) {
    const std::string field = unread[i].field;
    if (field == "max_time" || field == "method") unread.push_back({.field = "max_steps"});
    if (field == "method") unread.push_back({.field = "max_trials"});
    if (field == "method") unread.push_back({.field = "parameters"});
  }
  job::add_dependents(unread, "job.");
}

}  // namespace muster::sweep
