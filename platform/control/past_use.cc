#include "control/past_use.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "control/live_gang.h"

namespace muster::control {

using schedule::Amounts;

namespace {

/// What a run weighs: the part of the decayed time, from the beginning of all to now, that it
/// fills.
double weight_of(const job::Job& job, base::Time now, std::chrono::nanoseconds half_life) {
  const auto remains = [&](base::Time time) {
    // A clock that was set back may show what is yet to come.
    const std::chrono::nanoseconds age = std::max(now - time, std::chrono::nanoseconds(0));
    return std::exp2(-std::chrono::duration<double>(age) /
                     std::chrono::duration<double>(half_life));
  };
  return std::max(0.0, remains(job.ended.value_or(now)) - remains(*job.started));
}

std::array<double, 3> held_by(const job::Job& job) {
  std::array<double, 3> held{};
  for (const job::Task& task : job.tasks) {
    if (!holds_room(task)) continue;
    const job::Resources& claim = job::resources_of(job.spec, task.role);
    held[0] += static_cast<double>(task.devices.size()) * task.gpu_share_milli;
    held[1] += static_cast<double>(claim.cpu_milli);
    held[2] += static_cast<double>(claim.memory_bytes);
  }
  return held;
}

int64_t thousandths(double use, int64_t total) {
  return total <= 0 ? 0 : std::llround(1000 * use / static_cast<double>(total));
}

}  // namespace

std::map<std::string, Amounts> past_use(const std::vector<const job::Job*>& jobs,
                                        const Amounts& total, base::Time now,
                                        std::chrono::nanoseconds half_life) {
  std::map<std::string, std::array<double, 3>> use;
  for (const job::Job* job : jobs) {
    if (!job->started) continue;
    const double weight = weight_of(*job, now, half_life);
    const std::array<double, 3> held = held_by(*job);
    auto& sum = use[job->spec.project];
    for (size_t i = 0; i < sum.size(); ++i) sum[i] += weight * held[i];
  }
  std::map<std::string, Amounts> result;
  for (const auto& [project, sum] : use) {
    const Amounts parts{thousandths(sum[0], total.gpu_milli), thousandths(sum[1], total.cpu_milli),
                        thousandths(sum[2], total.memory_bytes)};
    if (parts != Amounts{}) result[project] = parts;
  }
  return result;
}

}  // namespace muster::control
