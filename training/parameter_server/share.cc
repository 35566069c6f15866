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
  const auto start_another = [&] {
    try {
      others.emplace_back(take);
      return true;
    } catch (const std::system_error&) {
      return false;
    }
  };
  // Where the system refuses a further thread, the threads that there are do all of the work.
  while (others.size() + 1 < std::min(parts, threads) && start_another()) {
  }
  take();
}

}  // namespace muster::parameter_server
