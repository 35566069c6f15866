#include "parameter_server/share.h"

#include <algorithm>
#include <atomic>
#include <system_error>
#include <thread>
#include <vector>

namespace muster::parameter_server {

void share(std::size_t parts, std::size_t threads, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next = 0;
  const auto take = [&] {
    for (std::size_t part = next++; part < parts; part = next++) work(part);
  };
  std::vector<std::jthread> others;
  try {
    while (others.size() + 1 < std::min(parts, threads)) others.emplace_back(take);
  } catch (const std::system_error&) {
    // Then those that there are do it all.
  }
  take();
}

}  // namespace muster::parameter_server
