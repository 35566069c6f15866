#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>

#include "base/hash.h"
#include "base/units.h"
#include "record/json_writer.h"
#include "sweep/spec.h"

namespace muster::sweep {

using base::number_of;

namespace {

// --- drawing values
//
// Each draw is a hash of the seed, the trial and the parameter: no generator has a state that would
// have to be stored, and a parameter that is added leaves the values of the others unchanged.

/// The finalizer of SplitMix64 (Steele, Lea and Flood 2014).
uint64_t mixed(uint64_t value) {
  value += 0x9e3779b97f4a7c15U;
  value = (value ^ (value >> 30U)) * 0xbf58476d1ce4e5b9U;
  value = (value ^ (value >> 27U)) * 0x94d049bb133111ebU;
  return value ^ (value >> 31U);
}

/// Uniform in [0, 1).
double drawn(const SweepSpec& spec, int number, const std::string& parameter) {
  const auto seed = static_cast<uint64_t>(spec.seed);
  const uint64_t bits =
      mixed(mixed(mixed(seed) ^ static_cast<uint64_t>(number)) ^ base::fnv_1a(parameter));
  constexpr double kTwoTo53 = 9007199254740992.0;
  return static_cast<double>(bits >> 11U) / kTwoTo53;
}

// A drawn value has six significant digits: short in tables and commands, and finer than any
// effect. In a range that is narrow beside its ends, it has four digits of the range at least.
constexpr int kDrawnDigits = 6;
constexpr int kDigitsBesideTheRange = 2;
// A double holds every decimal number of 15 digits.
constexpr int kMostDigits = 15;

std::string text_of(double value, int digits) {
  std::array<char, 64> text{};
  const auto written = std::to_chars(text.data(), text.data() + text.size(), value,
                                     std::chars_format::general, digits);
  return {text.data(), written.ptr};
}

/// The power of ten of the first digit. REQUIRES: not 0.
int exponent_of(double value) {
  return static_cast<int>(std::floor(std::log10(std::abs(value))));
}

double largest_of(const Parameter& range) {
  return std::max(std::abs(*range.low), std::abs(*range.high));
}

/// A value of a range with steps, without the error of the arithmetic: 0.3 for 3 * 0.1. It ends at
/// the decimal place at which the largest value has its last digit.
std::string stepped_text(double value, const Parameter& range) {
  if (range.integer) return std::to_string(std::llround(value));
  if (value == 0) return "0";
  const int digits = kMostDigits - exponent_of(largest_of(range)) + exponent_of(value);
  return digits < 1 ? "0" : text_of(value, std::min(digits, kMostDigits));
}

std::string drawn_text(double value, const Parameter& range) {
  if (range.integer) return std::to_string(std::llround(value));
  const double span = *range.high - *range.low;
  if (!(span > 0) || !std::isfinite(span)) return text_of(value, kMostDigits);
  const int beside = exponent_of(largest_of(range)) - exponent_of(span) - kDigitsBesideTheRange;
  return text_of(value, std::min(kDrawnDigits + std::max(beside, 0), kMostDigits));
}

/// How many values the parameter has in a grid; 0: without end.
double count_of(const Parameter& parameter) {
  if (!parameter.values.empty()) return static_cast<double>(parameter.values.size());
  if (!parameter.low || !parameter.high || parameter.log) return 0;
  const double step = parameter.step.value_or(parameter.integer ? 1 : 0);
  if (!(step > 0)) return 0;
  // 0..0.3 by 0.1 has four values, although 0.3 / 0.1 is a little less than 3.
  return std::floor((*parameter.high - *parameter.low) / step + 1e-9) + 1;
}

std::string value_at(const Parameter& parameter, int64_t index) {
  if (!parameter.values.empty()) return parameter.values[static_cast<size_t>(index)];
  const double step = parameter.step.value_or(1);
  return stepped_text(*parameter.low + static_cast<double>(index) * step, parameter);
}

/// A value between the ends of a range, whose distance may be larger than every double.
double between(double low, double high, double uniform) {
  const double distance = high - low;
  return std::isfinite(distance) ? low + uniform * distance : std::lerp(low, high, uniform);
}

std::string value_drawn(const Parameter& parameter, double uniform) {
  if (const double count = count_of(parameter); count > 0) {
    return value_at(parameter, std::min(static_cast<int64_t>(uniform * count),
                                        static_cast<int64_t>(count) - 1));
  }
  const double low = *parameter.low;
  const double high = *parameter.high;
  const double value = parameter.log ? std::exp(between(std::log(low), std::log(high), uniform))
                                     : between(low, high, uniform);
  return drawn_text(std::clamp(value, low, high), parameter);
}

}  // namespace

double least_step(const Parameter& range) {
  const double largest = largest_of(range);
  return largest > 0 ? std::pow(10.0, exponent_of(largest) + 1 - kMostDigits) : 0;
}

std::optional<int> grid_size(const std::map<std::string, Parameter>& parameters) {
  double size = 1;
  for (const auto& [name, parameter] : parameters) {
    size *= count_of(parameter);
    if (!(size >= 1) || size > kMostTrials) return std::nullopt;
  }
  return static_cast<int>(size);
}

int trial_count(const SweepSpec& spec) {
  if (spec.method != Method::kGrid) return spec.max_trials;
  const int all = grid_size(spec.parameters).value_or(0);
  return spec.max_trials == 0 ? all : std::min(all, spec.max_trials);
}

Values values_of(const SweepSpec& spec, int number) {
  Values values;
  if (spec.method != Method::kGrid) {
    for (const auto& [name, parameter] : spec.parameters) {
      values[name] = value_drawn(parameter, drawn(spec, number, name));
    }
    return values;
  }
  int64_t rest = number - 1;
  for (auto at = spec.parameters.rbegin(); at != spec.parameters.rend(); ++at) {
    const auto count = static_cast<int64_t>(count_of(at->second));
    values[at->first] = value_at(at->second, rest % count);
    rest /= count;
  }
  return values;
}

bool counts_time(const SweepSpec& spec) {
  return spec.max_time.has_value();
}

std::vector<int64_t> budgets_of(const SweepSpec& spec) {
  const int64_t most = counts_time(spec) ? spec.max_time->count() : spec.max_steps;
  if (most <= 0) return {};
  const int64_t least = counts_time(spec) ? 1000 : 1;
  std::vector<int64_t> budgets{most};
  if (spec.method != Method::kAsha) return budgets;
  while (static_cast<int>(budgets.size()) < spec.max_rungs) {
    const int64_t shorter = budgets.back() / spec.divisor;
    if (shorter < least) break;
    budgets.push_back(shorter);
  }
  std::reverse(budgets.begin(), budgets.end());
  return budgets;
}

// --- the job of a trial

namespace {

std::string variable_of(std::string_view parameter) {
  std::string name(parameter);
  for (char& c : name) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return name;
}

/// `{NAME}` of a parameter becomes its value; all other braces stay.
std::string filled_in(const std::string& text, const Values& values) {
  std::string filled;
  size_t at = 0;
  while (at < text.size()) {
    if (text[at] == '{') {
      const size_t close = text.find('}', at);
      const auto value = close == std::string::npos
                             ? values.end()
                             : values.find(text.substr(at + 1, close - at - 1));
      if (value != values.end()) {
        filled += value->second;
        at = close + 1;
        continue;
      }
    }
    filled += text[at++];
  }
  return filled;
}

void fill_in(std::vector<std::string>& words, const Values& values) {
  for (std::string& word : words) word = filled_in(word, values);
}

std::string json_of(const Values& values) {
  std::string text;
  record::JsonWriter json(text);
  json.open('{');
  for (const auto& [name, value] : values) {
    json.key(name);
    const auto number = number_of<double>(value);
    // A word such as "inf" is a number for from_chars(), but not for JSON.
    if (number && std::isfinite(*number)) {
      json.real(*number);
    } else {
      json.text(value);
    }
  }
  json.close('}');
  return text;
}

}  // namespace

std::string trial_name(const std::string& sweep, int number) {
  return sweep + "-" + std::to_string(number);
}

job::JobSpec trial_job(const SweepSpec& spec, int number, int rung) {
  const Values values = values_of(spec, number);
  job::JobSpec job = spec.job;
  job.name = trial_name(spec.job.name, number);
  for (auto* const words :
       {&job.command, &job.arguments, &job.worker_command, &job.leader.command,
        &job.leader.arguments, &job.parameter_server.command, &job.parameter_server.arguments,
        &job.evaluator.command, &job.evaluator.arguments}) {
    fill_in(*words, values);
  }
  for (const auto& [name, value] : values) {
    job.environment.emplace(variable_of(name), value);
    job.environment["MUSTER_PARAM_" + variable_of(name)] = value;
  }
  job.environment["MUSTER_PARAMETERS"] = json_of(values);
  job.environment["MUSTER_SWEEP"] = spec.job.name;
  job.environment["MUSTER_SWEEP_TRIAL"] = std::to_string(number);
  set_rung(spec, rung, job);
  return job;
}

void set_rung(const SweepSpec& spec, int rung, job::JobSpec& job) {
  const std::vector<int64_t> budgets = budgets_of(spec);
  if (budgets.empty()) return;
  auto& environment = job.environment;
  environment["MUSTER_SWEEP_RUNG"] = std::to_string(rung);
  environment["MUSTER_SWEEP_RUNGS"] = std::to_string(budgets.size());
  const int64_t unit = counts_time(spec) ? 1000 : 1;
  const std::string what = counts_time(spec) ? "SECONDS" : "STEPS";
  environment["MUSTER_SWEEP_" + what] = std::to_string(budgets[static_cast<size_t>(rung)] / unit);
  environment["MUSTER_SWEEP_MAX_" + what] = std::to_string(budgets.back() / unit);
}

bool may_go_on(const job::JobSpec& trial) {
  const auto number = [&](const char* name) {
    const auto found = trial.environment.find(name);
    return found == trial.environment.end() ? 0 : number_of<int>(found->second).value_or(0);
  };
  return number("MUSTER_SWEEP_RUNG") + 1 < number("MUSTER_SWEEP_RUNGS");
}

}  // namespace muster::sweep
