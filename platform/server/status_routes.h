// The numbers of /metrics: answered requests, the resources of the process, and their text format.
//
// On the EventLoop's thread.
//
// RequestCounts counts requests by route and class of status. The number of counters is bounded by
// the number of routes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/controller.h"
#include "control/metrics.h"

namespace muster::server {

class RequestCounts {
 public:
  /// `route`: as it was added ("/v1/jobs/{name}"); empty: no route.
  void add(const std::string& method, const std::string& route, int status) {
    const std::string name = route.empty() ? "none" : method + " " + route;
    ++counts_[{name, std::to_string(status / 100) + "xx"}];
  }

  /// By route and class: ("GET /v1/jobs", "2xx") -> 17.
  const std::map<std::pair<std::string, std::string>, uint64_t>& all() const { return counts_; }

 private:
  std::map<std::pair<std::string, std::string>, uint64_t> counts_;
};

// The resources that this process uses, from the kernel. Thread-safe (no state).

struct ProcessFigures {
  double cpu_seconds = 0;  ///< of all its threads, in user and kernel mode
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int64_t open_descriptors = 0;
  int64_t most_descriptors = 0;
  double started = 0;  ///< seconds since the Unix epoch
};

/// A number that cannot be read is 0.
ProcessFigures process_figures();

// Prometheus' text format 0.0.4: metric families, each with its HELP, its TYPE and its samples. Not
// thread-safe.

inline constexpr std::string_view kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

class MetricsText {
 public:
  using Labels = std::vector<std::pair<std::string, std::string>>;

  /// Begins a family; its samples follow.
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

// The text of /metrics: the present jobs, queues and GPUs of the cluster, the counters of the
// control loop and the server, and the resources of the process.

std::string server_metrics(const control::Controller& controller, const RequestCounts& requests,
                           const ProcessFigures& process, const std::string& version);

}  // namespace muster::server
