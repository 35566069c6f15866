// Figures in Prometheus' text format 0.0.4: one family after the other, each with its HELP, its
// TYPE and its samples.
//
// Not thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/metrics.h"

namespace muster::server {

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// What follows is its samples.
  void gauge(std::string name, std::string_view help) { family(std::move(name), "gauge", help); }
  /// Only grows. Its name ends in _total.
  void counter(std::string name, std::string_view help) {
    family(std::move(name), "counter", help);
  }
  void sample(double value, const Labels& labels = {}) { line(name_, labels, value); }

  template <size_t N>
  void histogram(std::string name, std::string_view help, const control::Histogram<N>& values) {
    family(std::move(name), "histogram", help);
    for (size_t i = 0; i < N; ++i) {
      line(name_ + "_bucket", {{"le", number(values.bounds()[i])}},
           static_cast<double>(values.counts()[i]));
    }
    line(name_ + "_bucket", {{"le", "+Inf"}}, static_cast<double>(values.count()));
    line(name_ + "_sum", {}, values.sum());
    line(name_ + "_count", {}, static_cast<double>(values.count()));
  }

  const std::string& text() const { return text_; }

 private:
  void family(std::string name, std::string_view type, std::string_view help);
  void line(const std::string& name, const Labels& labels, double value);
  static std::string number(double value);

  std::string name_;
  std::string text_;
};

}  // namespace muster::server
