// How many requests were answered, by route and by class of status, for /metrics.
//
// On the EventLoop's thread. As many numbers as there are routes, whatever is asked for.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

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

}  // namespace muster::server
