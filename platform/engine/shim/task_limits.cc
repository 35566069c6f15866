#include "engine/shim/task_limits.h"

#include <sched.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>

namespace muster::engine {

using base::Result;

bool TaskGroup::is_of(const std::string& controller) const {
  return std::any_of(settings.begin(), settings.end(), [&](const auto& setting) {
    return setting.first.starts_with(controller + ".");
  });
}

bool TaskLimits::has_group(const std::string& controller) const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const TaskGroup& group) { return group.is_of(controller); });
}

namespace {

Result<void> limit_resource(int resource, int64_t most, const char* what) {
  if (most == 0) return {};
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  // The hard limit is only ever lowered: raising it requires CAP_SYS_RESOURCE.
  limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(most));
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0) return {};
  return base::system_error(std::string("cannot limit the ") + what + " of the task", errno);
}

/// This process; no CPUs: it stays where it is.
Result<void> bind_to(const std::vector<int>& cpus) {
  if (cpus.empty()) return {};
  const int most = *std::max_element(cpus.begin(), cpus.end()) + 1;
  const size_t bytes = CPU_ALLOC_SIZE(most);
  std::vector<unsigned char> bits(bytes, 0);
  auto* const mask = reinterpret_cast<cpu_set_t*>(bits.data());
  for (const int cpu : cpus) CPU_SET_S(static_cast<size_t>(cpu), bytes, mask);
  if (::sched_setaffinity(0, bytes, mask) == 0) return {};
  return base::system_error("cannot bind the task to its CPUs", errno);
}

/// Settings of parent folders only prepare the group.
bool sets_nothing(const TaskGroup& group) {
  return std::none_of(group.settings.begin(), group.settings.end(),
                      [](const auto& setting) { return !setting.first.starts_with("../"); });
}

bool is_for_cpus(const std::string& file) {
  return file.starts_with("cpuset.") || file.find("/cpuset.") != std::string::npos;
}

}  // namespace

std::vector<TaskGroup> without_cpus(std::vector<TaskGroup> groups) {
  for (TaskGroup& group : groups) {
    std::erase_if(group.settings, [](const auto& setting) { return is_for_cpus(setting.first); });
  }
  std::erase_if(groups, sets_nothing);
  return groups;
}

Result<void> set_resource_limits(const TaskLimits& limits) {
  MUSTER_CHECK(limit_resource(RLIMIT_NOFILE, limits.open_files, "open files"));
  MUSTER_CHECK(limit_resource(RLIMIT_FSIZE, limits.file_bytes, "file sizes"));
  return limit_resource(RLIMIT_NPROC, limits.user_processes, "processes");
}

Result<void> set_cpus_and_niceness(const TaskLimits& limits) {
  Result<void> lowered;
  if (limits.niceness > 0 && ::setpriority(PRIO_PROCESS, 0, limits.niceness) != 0) {
    lowered = base::system_error("cannot set the nice value of the task", errno);
  }
  auto bound = bind_to(limits.cpus);
  return lowered ? bound : lowered;
}

}  // namespace muster::engine
