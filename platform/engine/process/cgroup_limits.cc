#include "engine/process/cgroup_limits.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "engine/process/cpu_choice.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

/// A mounted hierarchy of groups: the mount point, and the group that is seen there.
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

/// The version 1 hierarchy of `controller`; with an empty name, the version 2 hierarchy.
std::optional<Hierarchy> hierarchy_of(std::string_view mountinfo, std::string_view controller) {
  for (const std::string& line : base::split(mountinfo, '\n')) {
    // ID PARENT DEVICE ROOT MOUNTPOINT OPTIONS [TAGS...] - TYPE SOURCE SUPEROPTIONS
    const size_t dash = line.find(" - ");
    if (dash == std::string::npos) continue;
    const std::vector<std::string> mount = base::split(line.substr(0, dash), ' ');
    const std::vector<std::string> system = base::split(line.substr(dash + 3), ' ');
    if (mount.size() < 5 || system.size() < 3) continue;
    const bool matches = controller.empty()
                             ? system[0] == "cgroup2"
                             : system[0] == "cgroup" && has_word(system[2], controller);
    if (matches) return Hierarchy{.mount = mount[4], .root = mount[3]};
  }
  return std::nullopt;
}

/// The path of this process's group in the hierarchy of `controller`.
std::string group_of(std::string_view cgroup, std::string_view controller) {
  for (const std::string& line : base::split(cgroup, '\n')) {
    const size_t first = line.find(':');
    const size_t second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool matches =
        controller.empty() ? line.starts_with("0::") : has_word(controllers, controller);
    if (matches) return line.substr(second + 1);
  }
  return "/";
}

/// The folders from the group of this process up to the mount point. A container may see its own
/// group at the mount point, while the kernel gives the group's path from the host's root.
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

/// The CPU limit from a quota and a period: cpu.max contains "200000 100000" for two CPUs, and "max
/// 100000" for no limit.
std::optional<int64_t> cpu_milli_of(std::optional<int64_t> quota, std::optional<int64_t> period) {
  constexpr int64_t kLongest = int64_t{1} << 50;  // 35 years: a longer quota means no limit
  if (!quota || !period || *quota == 0 || *period == 0 || *quota > kLongest) return std::nullopt;
  return std::max<int64_t>(*quota * 1000 / *period, 1);
}

constexpr const char* kFolderOfTasks = "muster";
constexpr const char* kFolderInHolder = "/task";
constexpr int64_t kSharesOfCpu = 1024;
constexpr int64_t kMostShares = 262'144;
constexpr int64_t kWeightOfCpu = 100;
constexpr int64_t kMostWeight = 10'000;

std::string first_line(const fs::path& path) {
  const std::string text = file_text(path);
  return text.substr(0, text.find('\n'));
}

/// Whether this account may make groups below `group`. The shim must also be able to move back to
/// the group itself.
bool may_make_groups(const fs::path& group) {
  return ::access(group.c_str(), W_OK) == 0 &&
         ::access((group / "cgroup.procs").c_str(), W_OK) == 0;
}

}  // namespace

std::vector<GroupPlace> group_places(const fs::path& root) {
  const std::string mountinfo = file_text(root / "proc/self/mountinfo");
  const std::string cgroup = file_text(root / "proc/self/cgroup");
  const auto home_in = [&](std::string_view controller) -> std::optional<fs::path> {
    const auto hierarchy = hierarchy_of(mountinfo, controller);
    if (!hierarchy) return std::nullopt;
    auto folders = folders_of(root, *hierarchy, group_of(cgroup, controller));
    while (!folders.empty() && !fs::exists(folders.back() / "cgroup.procs")) folders.pop_back();
    if (folders.empty() || !may_make_groups(folders.back())) return std::nullopt;
    return folders.back();
  };
  std::vector<GroupPlace> places;
  for (const char* controller : {"memory", "pids", "cpu"}) {
    const auto home = home_in(controller);
    if (home)
      places.push_back(
          {.folder = *home / kFolderOfTasks, .home = *home, .controllers = {controller}});
  }
  if (const auto home = home_in("cpuset")) {
    GroupPlace place{.folder = *home / kFolderOfTasks,
                     .home = *home,
                     .controllers = {"cpuset"},
                     .cpus = first_line(*home / "cpuset.cpus"),
                     .memory_nodes = first_line(*home / "cpuset.mems")};
    if (!place.cpus.empty() && !place.memory_nodes.empty()) places.push_back(std::move(place));
  }
  const auto home = places.empty() && ::geteuid() == 0 ? home_in("") : std::nullopt;
  if (!home) return places;
  const auto hierarchy = hierarchy_of(mountinfo, "");
  const fs::path top = root / hierarchy->mount.relative_path();
  GroupPlace place{.folder = top / kFolderOfTasks, .home = *home, .is_version_2 = true};
  for (const std::string& word : base::split(first_line(top / "cgroup.subtree_control"), ' ')) {
    const bool is_used = word == "memory" || word == "pids" || word == "cpu" || word == "cpuset";
    if (is_used) place.controllers.insert(word);
  }
  if (!place.controllers.empty()) places.push_back(std::move(place));
  return places;
}

std::vector<TaskGroup> groups_of(const std::vector<GroupPlace>& places, const std::string& name,
                                 const TaskLimits& limits, int64_t cpu_milli) {
  const auto text = [](int64_t number) { return std::to_string(number); };
  const int64_t cpus = std::max<int64_t>(::sysconf(_SC_NPROCESSORS_ONLN), 1);
  if (cpu_milli == 0) cpu_milli = 1000;
  std::vector<TaskGroup> groups;
  for (const GroupPlace& place : places) {
    TaskGroup group{.folder = (place.folder / name).string(), .home = place.home.string()};
    auto& settings = group.settings;
    const auto has = [&](const char* controller) { return place.controllers.contains(controller); };
    if (place.is_version_2) {
      std::string all;
      for (const std::string& controller : place.controllers) all += " +" + controller;
      settings.emplace_back("../cgroup.subtree_control", all.substr(1));
    }
    if (has("memory") && limits.memory_bytes > 0) {
      const char* const file = place.is_version_2 ? "memory.max" : "memory.limit_in_bytes";
      settings.emplace_back(file, text(limits.memory_bytes));
    }
    if (has("pids") && limits.processes > 0) {
      settings.emplace_back("pids.max", text(limits.processes_of_group()));
    }
    if (has("cpu")) {
      // The group of all tasks gets the weight of one busy process for each CPU.
      const int64_t one = place.is_version_2 ? kWeightOfCpu : kSharesOfCpu;
      const char* const file = place.is_version_2 ? "cpu.weight" : "cpu.shares";
      const int64_t most = place.is_version_2 ? kMostWeight : kMostShares;
      const std::string shares = text(std::clamp<int64_t>(one * cpu_milli / 1000, 2, most));
      const std::string of_all = text(std::min(most, one * cpus));
      if (place.is_version_2) {
        settings.insert(settings.end(), {{std::string("../") + file, of_all}, {file, shares}});
      } else {
        // The shims of version 2 are in the group of the server, beside that of all tasks.
        group.holder = std::exchange(group.folder, group.folder + kFolderInHolder);
        settings.insert(settings.end(), {{std::string("../../") + file, of_all},
                                         {std::string("../") + file, shares},
                                         {file, text(one)}});
      }
    }
    if (has("cpuset") && !limits.cpus.empty()) {
      if (!place.is_version_2) {
        settings.insert(settings.end(), {{"../cpuset.cpus", place.cpus},
                                         {"../cpuset.mems", place.memory_nodes},
                                         {"cpuset.mems", place.memory_nodes}});
      }
      settings.emplace_back("cpuset.cpus", cpu_list(limits.cpus));
    }
    const bool is_needed = std::any_of(settings.begin(), settings.end(), [](const auto& setting) {
      return !setting.first.starts_with("../");
    });
    if (is_needed) groups.push_back(std::move(group));
  }
  return groups;
}

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
