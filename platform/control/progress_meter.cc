#include "control/progress_meter.h"

#include <string>

namespace muster::control {

namespace {

using job::MetricPoint;
using job::Progress;

/// The two names by which a program tells it.
struct Names {
  std::string_view done;
  std::string_view total;  ///< empty: it is a part of 1
};

constexpr std::array<Names, 3> kUnits{
    {{job::kEpoch, job::kEpochs}, {job::kStep, job::kSteps}, {job::kProgress, {}}}};

/// nullopt: it does not move, or not within any time that could be told.
std::optional<base::Time> end_at_pace(const MetricPoint& first, const MetricPoint& last,
                                      double total) {
  if (last.value >= total) return last.time;
  if (last.value <= first.value || last.time <= first.time) return std::nullopt;
  const std::chrono::duration<double> passed = last.time - first.time;
  const std::chrono::duration<double> left =
      passed * ((total - last.value) / (last.value - first.value));
  constexpr std::chrono::duration<double> kMost = std::chrono::years(10);
  if (left > kMost) return std::nullopt;
  return last.time + std::chrono::duration_cast<std::chrono::nanoseconds>(left);
}

}  // namespace

void ProgressMeter::note(Unit& unit, MetricPoint report) {
  if (report.value < 0) return;
  if (!unit.first || report.value < unit.last.value) unit.first = report;
  unit.last = report;
  newest_ = report.time;
}

void ProgressMeter::take(const engine::MetricSample& sample) {
  for (const auto& [name, value] : sample.values) {
    for (size_t i = 0; i < kUnits.size(); ++i) {
      if (name == kUnits[i].done) note(units_[i], {.time = sample.time, .value = value});
      if (name == kUnits[i].total) units_[i].total = value;
    }
  }
}

std::optional<Progress> ProgressMeter::progress() const {
  for (size_t i = 0; i < kUnits.size(); ++i) {
    const Unit& unit = units_[i];
    const bool is_part = kUnits[i].total.empty();
    const double total = is_part ? 1 : unit.total.value_or(0);
    if (!unit.first || total <= 0 || (is_part && unit.last.value > 1)) continue;
    return Progress{.unit = is_part ? "" : std::string(kUnits[i].done),
                    .done = unit.last.value,
                    .total = total,
                    .ends = end_at_pace(*unit.first, unit.last, total)};
  }
  return std::nullopt;
}

void JobProgress::take(size_t task, const engine::MetricSample& sample) {
  meters_[{sample.rank.value_or(0), task}].take(sample);
  if (meters_.size() > kMostPrograms) meters_.erase(std::prev(meters_.end()));
}

void JobProgress::forget(size_t task) {
  std::erase_if(meters_, [&](const auto& meter) { return meter.first.second == task; });
}

std::optional<Progress> JobProgress::progress() const {
  std::optional<Progress> found;
  std::optional<int> rank;
  base::Time newest;
  for (const auto& [key, meter] : meters_) {
    if (rank && key.first > *rank) break;
    if (found && meter.newest() <= newest) continue;
    auto progress = meter.progress();
    if (!progress) continue;
    found = std::move(progress);
    rank = key.first;
    newest = meter.newest();
  }
  return found;
}

}  // namespace muster::control
