#include "server/process_figures.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace muster::server {

namespace {

/// The fields of /proc/self/stat behind the program's name, which may hold anything; the first is
/// the third of proc(5).
std::istringstream stat_fields() {
  std::ifstream file("/proc/self/stat");
  std::string line;
  std::getline(file, line);
  const size_t name_end = line.rfind(')');
  return std::istringstream(name_end == std::string::npos ? "" : line.substr(name_end + 1));
}

double boot_time() {
  std::ifstream file("/proc/stat");
  std::string word;
  while (file >> word) {
    double seconds = 0;
    if (word == "btime" && file >> seconds) return seconds;
  }
  return 0;
}

int count_descriptors() {
  std::error_code error;
  int count = 0;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end;
       at.increment(error)) {
    ++count;
  }
  return count > 0 ? count - 1 : 0;  // one is that of the look itself
}

}  // namespace

ProcessFigures process_figures() {
  ProcessFigures figures;
  std::istringstream stat = stat_fields();
  std::string state;
  stat >> state;
  // 4 to 24 of proc(5): ... 14 utime, 15 stime ... 22 starttime, 23 vsize, 24 rss.
  constexpr int kFirst = 4;
  constexpr int kLast = 24;
  int64_t user = 0;
  int64_t system = 0;
  int64_t start = 0;
  int64_t pages = 0;
  for (int field = kFirst; field <= kLast; ++field) {
    int64_t value = 0;
    stat >> value;
    if (field == 14) user = value;
    if (field == 15) system = value;
    if (field == 22) start = value;
    if (field == 23) figures.virtual_bytes = value;
    if (field == 24) pages = value;
  }
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  figures.cpu_seconds = static_cast<double>(user + system) / ticks;
  figures.started = boot_time() + static_cast<double>(start) / ticks;
  figures.resident_bytes = pages * ::sysconf(_SC_PAGESIZE);
  figures.open_descriptors = count_descriptors();
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) == 0) {
    figures.most_descriptors = static_cast<int64_t>(limit.rlim_cur);
  }
  return figures;
}

}  // namespace muster::server
