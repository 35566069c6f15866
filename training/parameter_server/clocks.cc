#include "parameter_server/clocks.h"

#include <algorithm>

namespace muster::parameter_server {

std::uint64_t Clocks::slowest() const {
  if (clocks_.empty()) return last_slowest_;
  return std::min_element(clocks_.begin(), clocks_.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->second;
}

std::uint64_t Clocks::join(int worker) {
  const std::uint64_t clock = slowest();
  clocks_[worker] = clock;
  seen_.insert(worker);
  return clock;
}

void Clocks::leave(int worker) {
  const auto found = clocks_.find(worker);
  if (found == clocks_.end()) return;
  if (clocks_.size() == 1) last_slowest_ = found->second;
  clocks_.erase(found);
}

void Clocks::advance(int worker) {
  const auto found = clocks_.find(worker);
  if (found != clocks_.end()) ++found->second;
}

bool Clocks::may_proceed(int worker) const {
  if (!is_complete()) return false;
  const auto found = clocks_.find(worker);
  if (found == clocks_.end()) return false;
  return !bound_ || found->second - slowest() <= *bound_;
}

}  // namespace muster::parameter_server
