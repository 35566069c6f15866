// For tests: samples of metrics.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/metric_log.h"

namespace muster::engine {

using MetricValues = std::vector<std::pair<std::string, double>>;

inline base::Time at_second(int64_t second) {
  return base::Time(std::chrono::seconds(second));
}

inline MetricSample loss_at(int64_t second, double loss) {
  return {.time = at_second(second), .rank = {}, .values = {{"loss", loss}}};
}

}  // namespace muster::engine
