#include "engine/shim/oom_kills.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "base/units.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

constexpr size_t kLongestCgroupFile = 1 << 20;

/// The number behind "oom_kill" in a file of such lines.
std::optional<uint64_t> count_in(const fs::path& file) {
  const auto text = base::read_file(file, kLongestCgroupFile);
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n')) {
    constexpr std::string_view kName = "oom_kill ";
    if (line.starts_with(kName)) return base::number_of<uint64_t>(line.substr(kName.size()));
  }
  return std::nullopt;
}

/// The group of this process, as the kernel names it: in version 1's hierarchy of memory, or in
/// version 2's. Empty: it is in none.
std::string group_in(const std::vector<std::string>& cgroup, bool version_2) {
  for (const std::string& line : cgroup) {
    // NUMBER:CONTROLLERS:PATH
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::vector<std::string> names = base::split(controllers, ',');
    const bool has_memory = std::find(names.begin(), names.end(), "memory") != names.end();
    if (version_2 ? line.starts_with("0::") : has_memory) return line.substr(second + 1);
  }
  return "";
}

}  // namespace

uint64_t kills_on_machine(const fs::path& root) {
  return count_in(root / "proc/vmstat").value_or(0);
}

// A container may see its own group at the top of what is mounted, while the kernel names it from
// the machine's: the named place counts first, for at the top of the machine there is no count, or
// one of all.
std::optional<uint64_t> kills_in_group(const fs::path& root) {
  const auto text = base::read_file(root / "proc/self/cgroup", kLongestCgroupFile);
  if (!text) return std::nullopt;
  const std::vector<std::string> cgroup = base::split(*text, '\n');
  struct Place {
    fs::path mount;
    bool version_2;
    const char* file;
  };
  const Place places[] = {{root / "sys/fs/cgroup/memory", false, "memory.oom_control"},
                          {root / "sys/fs/cgroup", true, "memory.events"},
                          {root / "sys/fs/cgroup/unified", true, "memory.events"}};
  for (const Place& place : places) {
    const std::string group = group_in(cgroup, place.version_2);
    if (group.empty()) continue;
    for (const fs::path& folder : {place.mount / fs::path(group).relative_path(), place.mount}) {
      if (const auto count = count_in(folder / place.file)) return count;
    }
  }
  return std::nullopt;
}

}  // namespace muster::engine
