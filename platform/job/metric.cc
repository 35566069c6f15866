#include "job/metric.h"

#include <algorithm>
#include <array>

#include "record/field.h"

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

using record::field;
using record::Need;
using record::Table;

const Table& table_of(const MetricPoint*) {
  static const Table table =
      record::table<MetricPoint>("MetricPoint",
                                 {field<&MetricPoint::time>("time", {.need = Need::kRequired}),
                                  field<&MetricPoint::value>("value", {.need = Need::kRequired})})
          .as_answer();
  return table;
}

const Table& table_of(const MetricSeries*) {
  static const Table table =
      record::table<MetricSeries>(
          "MetricSeries",
          {field<&MetricSeries::metric>(
               "metric",
               {.help =
                    "Sampled: cpu_percent (100: one CPU), memory_bytes, "
                    "network_received_bytes_per_second, network_sent_bytes_per_second, gpu_percent "
                    "(100: one GPU), gpu_memory_bytes, gpu_memory_free_bytes, gpu_power_watts, "
                    "gpu_temperature_celsius. Any other metric is reported by the program.",
                .need = Need::kRequired}),
           field<&MetricSeries::task>("task", {.need = Need::kRequired}),
           field<&MetricSeries::rank>(
               "rank", {.help = "The rank, if the program reported one.", .least = 0}),
           field<&MetricSeries::points>("points",
                                        {.help = "Oldest first.", .need = Need::kRequired})})
          .as_answer();
  return table;
}

}  // namespace muster::job
