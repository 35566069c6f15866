// The counters of the controller, for /metrics.
//
// Plain values, on the EventLoop's thread.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

namespace muster::control {

/// A histogram as Prometheus defines it: counts of values up to each bound.
template <size_t N>
class Histogram {
 public:
  explicit Histogram(const std::array<double, N>& bounds) : bounds_(bounds) {}

  void add(double value) {
    ++count_;
    sum_ += value;
    for (size_t i = 0; i < N; ++i) {
      if (value <= bounds_[i]) ++counts_[i];
    }
  }

  const std::array<double, N>& bounds() const { return bounds_; }
  const std::array<uint64_t, N>& counts() const { return counts_; }  ///< cumulative
  uint64_t count() const { return count_; }
  double sum() const { return sum_; }

 private:
  std::array<double, N> bounds_;
  std::array<uint64_t, N> counts_{};
  uint64_t count_ = 0;
  double sum_ = 0;
};

struct Metrics {
  Histogram<12> cycle_seconds{
      {0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5}};
  Histogram<10> wait_seconds{{0.1, 1, 5, 15, 60, 300, 900, 3600, 14400, 86400}};  ///< until Running
  Histogram<10> start_seconds{
      {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60}};  ///< Starting to Running
  Histogram<10> commit_seconds{{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5}};
  std::map<std::string, uint64_t> submitted;                        ///< by project
  std::map<std::string, std::map<std::string, uint64_t>> finished;  ///< by project, by phase
  uint64_t evictions = 0;
  uint64_t restarts = 0;
  uint64_t engine_errors = 0;  ///< starts that failed in the engine
  uint64_t store_errors = 0;   ///< commits that failed
};

}  // namespace muster::control
