#include "quiet.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string>

#include "arguments.h"

namespace bench {

std::uint64_t run_queue_wait() {
  // "time on a core, time waiting for one, time slices"
  static const int file = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC);
  char text[128] = {};
  // Without this file the waiting time is unknown, and no sample is dropped.
  if (file < 0 || pread(file, text, sizeof text - 1, 0) <= 0) return 0;
  char* second = nullptr;
  std::strtoull(text, &second, 10);
  return std::strtoull(second, nullptr, 10);
}

double own_processor_time() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

double idle_time(const std::vector<int>& cores) {
  std::ifstream file("/proc/stat");
  double ticks = 0;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string name;
    double user = 0, nice = 0, system = 0, idle = 0, waiting = 0;
    words >> name >> user >> nice >> system >> idle >> waiting;
    const bool ours = std::any_of(cores.begin(), cores.end(),
                                  [&](int core) { return name == "cpu" + std::to_string(core); });
    if (ours) ticks += idle + waiting;
  }
  return ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
}

}  // namespace bench
