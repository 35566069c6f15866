#include "engine/process/cgroup_limits.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// A hierarchy of groups: where it is mounted, and which group of it is seen there.
struct Hierarchy {
  fs::path mount;
  std::string root;
};

std::string file_text(const fs::path& path) {
  auto text = base::read_file(path, 1 << 20);
  return text ? *std::move(text) : std::string();
}

std::optional<int64_t> number_in(std::string_view text) {
  int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < 0) return std::nullopt;
  return number;
}

bool has_word(std::string_view list, std::string_view word) {
  const std::vector<std::string> words = base::split(list, ',');
  return std::find(words.begin(), words.end(), word) != words.end();
}

/// The version 1 hierarchy of `controller`; the version 2 one for an empty name.
std::optional<Hierarchy> hierarchy_of(std::string_view mountinfo, std::string_view controller) {
  for (const std::string& line : base::split(mountinfo, '\n')) {
    // ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS [TAGS...] - TYPE SOURCE SUPEROPTIONS
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> mount = base::split(line.substr(0, dash), ' ');
    const std::vector<std::string> system = base::split(line.substr(dash + 3), ' ');
    if (mount.size() < 5 || system.size() < 3) continue;
    const bool wanted = controller.empty()
                            ? system[0] == "cgroup2"
                            : system[0] == "cgroup" && has_word(system[2], controller);
    if (wanted) return Hierarchy{.mount = mount[4], .root = mount[3]};
  }
  return std::nullopt;
}

/// The group of this process in the hierarchy of `controller`, as the kernel names it.
std::string group_of(std::string_view cgroup, std::string_view controller) {
  for (const std::string& line : base::split(cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool wanted =
        controller.empty() ? line.starts_with("0::") : has_word(controllers, controller);
    if (wanted) return line.substr(second + 1);
  }
  return "/";
}

/// The folders from the group of this process up to the mount. A container may see its own group
/// mounted at the top while the kernel names it from the host's root.
std::vector<fs::path> folders_of(const fs::path& root, const Hierarchy& hierarchy,
                                 std::string group) {
  if (hierarchy.root != "/" && group.starts_with(hierarchy.root)) {
    group.erase(0, hierarchy.root.size());
  }
  const fs::path top = root / hierarchy.mount.relative_path();
  std::vector<fs::path> folders{top};
  fs::path folder = top;
  for (const fs::path& part : fs::path(group).relative_path()) {
    folder /= part;
    folders.push_back(folder);
  }
  return folders;
}

void lower_to(std::optional<int64_t>& limit, std::optional<int64_t> other) {
  if (other && (!limit || *other < *limit)) limit = other;
}

/// "200000 100000": so much time in so much time; "max 100000": all of it.
std::optional<int64_t> cpu_milli_of(std::optional<int64_t> quota, std::optional<int64_t> period) {
  constexpr int64_t kLongest = int64_t{1} << 50;  // 35 years; what is longer is no limit
  if (!quota || !period || *quota == 0 || *period == 0 || *quota > kLongest) return std::nullopt;
  return std::max<int64_t>(*quota * 1000 / *period, 1);
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  const std::string mountinfo = file_text(root / "proc/self/mountinfo");
  const std::string cgroup = file_text(root / "proc/self/cgroup");
  const auto folders = [&](std::string_view controller) {
    const auto hierarchy = hierarchy_of(mountinfo, controller);
    return hierarchy ? folders_of(root, *hierarchy, group_of(cgroup, controller))
                     : std::vector<fs::path>();
  };
  CgroupLimits limits;
  for (const fs::path& folder : folders("")) {
    lower_to(limits.memory_bytes, number_in(file_text(folder / "memory.max")));
    const std::string quota = file_text(folder / "cpu.max");
    const size_t space = std::min(quota.find(' '), quota.size());
    const std::string period = quota.substr(std::min(space + 1, quota.size()));
    lower_to(limits.cpu_milli, cpu_milli_of(number_in(quota), number_in(period)));
  }
  for (const fs::path& folder : folders("memory")) {
    lower_to(limits.memory_bytes, number_in(file_text(folder / "memory.limit_in_bytes")));
  }
  for (const fs::path& folder : folders("cpu")) {
    lower_to(limits.cpu_milli, cpu_milli_of(number_in(file_text(folder / "cpu.cfs_quota_us")),
                                            number_in(file_text(folder / "cpu.cfs_period_us"))));
  }
  return limits;
}

}  // namespace muster::engine
