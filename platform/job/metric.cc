#include "job/metric.h"

#include <algorithm>
#include <array>

namespace muster::job {

namespace {

constexpr std::array kSampled{kCpuPercent,    kMemoryBytes,   kNetworkReceived,
                              kNetworkSent,   kGpuPercent,    kGpuMemoryBytes,
                              kGpuMemoryFree, kGpuPowerWatts, kGpuCelsius};

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool may_follow(char c) {
  return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '/' || c == '-';
}

}  // namespace

bool is_metric_name(std::string_view name) {
  return !name.empty() && name.size() <= kMaxMetricName && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), may_follow);
}

bool is_sampled(std::string_view name) {
  return std::find(kSampled.begin(), kSampled.end(), name) != kSampled.end();
}

}  // namespace muster::job
