// How many requests were answered, by route and by class of status, for /metrics.
//
// On the EventLoop's thread. As many numbers as there are routes, whatever is asked for.
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
  /// `route`: as it was added ("/v1/jobs/{name}"); empty: there is none.
  void add(const std::string& method, const std::string& route, int status) {
    const std::string name = route.empty() ? "none" : method + " " + route;
    ++counts_[{name, std::to_string(status / 100) + "xx"}];
  }

  /// By route and class: ("GET /v1/jobs", "2xx") -> 17.
  const std::map<std::pair<std::string, std::string>, uint64_t>& all() const { return counts_; }

 private:
  std::map<std::pair<std::string, std::string>, uint64_t> counts_;
};

// What this process costs the machine, as the kernel counts it.
//
// Thread-safe (no state).

struct ProcessFigures {
  double cpu_seconds = 0;  ///< of all its threads, in user and kernel mode
  int64_t resident_bytes = 0;
  int64_t virtual_bytes = 0;
  int open_descriptors = 0;
  int64_t most_descriptors = 0;
  double started = 0;  ///< seconds since the Unix epoch
};

/// What cannot be read is 0.
ProcessFigures process_figures();

// Figures in Prometheus' text format 0.0.4: one family after the other, each with its HELP, its
// TYPE and its samples.
//
// Not thread-safe.

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

// What /metrics says: the cluster's jobs, queues and GPUs as they are, what the control loop and
// the server have counted, and what the process costs.
//
// On the EventLoop's thread.

std::string server_metrics(const control::Controller& controller, const RequestCounts& requests,
                           const ProcessFigures& process, const std::string& version);

}  // namespace muster::server
