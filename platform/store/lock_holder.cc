#include "store/lock_holder.h"

#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <sstream>

namespace muster::store {

namespace {

/// "08:01:1835043", as /proc/locks writes it.
std::optional<std::string> inode_of(const std::filesystem::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return std::nullopt;
  char text[64];
  std::snprintf(text, sizeof text, "%02x:%02x:%lu", major(status.st_dev), minor(status.st_dev),
                static_cast<unsigned long>(status.st_ino));
  return text;
}

std::string describe(int pid) {
  std::string name;
  std::getline(std::ifstream("/proc/" + std::to_string(pid) + "/comm"), name);
  return "process " + std::to_string(pid) + (name.empty() ? "" : " (" + name + ")");
}

}  // namespace

// A line: "2: POSIX  ADVISORY  WRITE 4711 08:01:1835043 120 120"; one that waits for the lock has
// "->" in second place.
std::optional<std::string> lock_holder(const std::filesystem::path& file) {
  const auto inode = inode_of(file);
  if (!inode) return std::nullopt;
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    std::istringstream words(line);
    std::string number;
    std::string type;
    std::string strictness;
    std::string mode;
    std::string where;
    int pid = 0;
    words >> number >> type >> strictness >> mode >> pid >> where;
    if (words && mode == "WRITE" && pid > 0 && pid != ::getpid() && where == *inode) {
      return describe(pid);
    }
  }
  return std::nullopt;
}

}  // namespace muster::store
