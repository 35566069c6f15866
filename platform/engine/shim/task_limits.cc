#include "engine/shim/task_limits.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string_view>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "base/units.h"

namespace muster::engine {

namespace fs = std::filesystem;

using base::Result;

namespace {

constexpr const char* kProcs = "cgroup.procs";
// The kernel empties a control group some milliseconds after its last process has ended, and cgroups
// v1 report no such event, so the removal is tried again for half a second.
constexpr int kRemovals = 50;
constexpr std::chrono::milliseconds kRemovalPause{10};

/// A file of the kernel's: it is neither made nor truncated.
Result<void> write_setting(const fs::path& file, std::string_view value) {
  const base::UniqueFd opened(::open(file.c_str(), O_WRONLY | O_CLOEXEC));
  if (!opened || ::write(opened.get(), value.data(), value.size()) < 0) {
    return base::system_error("cannot write '" + std::string(value) + "' to " + file.string(),
                              errno);
  }
  return {};
}

/// The number in a file of one number, or behind `name` in a file of named numbers.
std::optional<uint64_t> number_of_group(const fs::path& file, std::string_view name = "") {
  const auto text = base::read_file(file, 1 << 16);
  if (!text) return std::nullopt;
  for (const std::string& line : base::split(*text, '\n')) {
    if (!name.empty() && !line.starts_with(std::string(name) + " ")) continue;
    return base::number_of<uint64_t>(line.substr(name.empty() ? 0 : name.size() + 1));
  }
  return std::nullopt;
}

bool is_of(const TaskGroup& group, const std::string& controller) {
  return std::any_of(group.settings.begin(), group.settings.end(), [&](const auto& setting) {
    return setting.first.starts_with(controller + ".");
  });
}

Result<void> limit_resource(int resource, int64_t most, const char* what) {
  if (most == 0) return {};
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  // A limit is lowered, never raised: that takes a right that few have.
  limit.rlim_max = std::min(limit.rlim_max, static_cast<rlim_t>(most));
  limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
  if (::setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0) return {};
  return base::system_error(std::string("cannot limit the ") + what + " of the task", errno);
}

}  // namespace

bool TaskLimits::has_group(const std::string& controller) const {
  return std::any_of(groups.begin(), groups.end(),
                     [&](const TaskGroup& group) { return is_of(group, controller); });
}

Result<void> TaskGroups::make() const {
  for (const TaskGroup& group : groups_) {
    std::error_code error;
    fs::create_directories(group.folder, error);
    if (error) {
      return base::system_error("cannot make the control group " + group.folder, error.value());
    }
    for (const auto& [file, value] : group.settings) {
      MUSTER_CHECK(write_setting(fs::path(group.folder) / file, value));
    }
  }
  return {};
}

Result<void> TaskGroups::enter() const {
  std::error_code error;
  for (const TaskGroup& group : groups_) {
    if (!fs::is_directory(group.folder, error)) continue;
    MUSTER_CHECK(write_setting(fs::path(group.folder) / kProcs, "0"));
  }
  return {};
}

void TaskGroups::leave() const {
  for (const TaskGroup& group : groups_) {
    [[maybe_unused]] const auto left = write_setting(fs::path(group.home) / kProcs, "0");
  }
}

uint64_t TaskGroups::memory_kills() const {
  for (const TaskGroup& group : groups_) {
    for (const char* file : {"memory.oom_control", "memory.events"}) {
      const auto kills = number_of_group(fs::path(group.folder) / file, "oom_kill");
      if (kills) return *kills;
    }
  }
  return 0;
}

int64_t TaskGroups::memory_peak() const {
  for (const TaskGroup& group : groups_) {
    for (const char* file : {"memory.max_usage_in_bytes", "memory.peak"}) {
      if (const auto peak = number_of_group(fs::path(group.folder) / file)) {
        return static_cast<int64_t>(*peak);
      }
    }
  }
  return 0;
}

void TaskGroups::remove() const {
  for (const TaskGroup& group : groups_) {
    int tries = kRemovals;
    while (::rmdir(group.folder.c_str()) != 0 && errno == EBUSY && --tries > 0) {
      std::this_thread::sleep_for(kRemovalPause);
    }
    // The folder for all tasks goes with the last of them.
    ::rmdir(fs::path(group.folder).parent_path().c_str());
  }
}

Result<void> set_resource_limits(const TaskLimits& limits, bool is_own_user) {
  MUSTER_CHECK(limit_resource(RLIMIT_NOFILE, limits.open_files, "open files"));
  MUSTER_CHECK(limit_resource(RLIMIT_FSIZE, limits.file_bytes, "file sizes"));
  // Elsewhere the kernel counts all processes of the account, of whatever task.
  if (!is_own_user) return {};
  return limit_resource(RLIMIT_NPROC, limits.processes, "processes");
}

}  // namespace muster::engine
