#include "engine/process/host_facts.h"

#include <pwd.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>

#include "base/files.h"

namespace muster::engine {

std::string host_name() {
  std::array<char, 65> buffer{};
  ::gethostname(buffer.data(), buffer.size() - 1);
  return buffer.data();
}

namespace {

/// /dev/nvidia0, /dev/nvidia1 ...; not nvidiactl or nvidia-uvm.
int count_gpus() {
  constexpr std::string_view kPrefix = "nvidia";
  int count = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix) || name.size() == kPrefix.size()) continue;
    if (std::all_of(name.begin() + kPrefix.size(), name.end(),
                    [](unsigned char c) { return std::isdigit(c) != 0; })) {
      ++count;
    }
  }
  return count;
}

}  // namespace

job::Resources host_resources() {
  cpu_set_t set;
  const int cpus = ::sched_getaffinity(0, sizeof set, &set) == 0
                       ? CPU_COUNT(&set)
                       : static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN));
  return {.gpus = count_gpus(),
          .cpus = cpus,
          .memory_bytes = ::sysconf(_SC_PHYS_PAGES) * ::sysconf(_SC_PAGESIZE)};
}

std::string hosts_file(const std::vector<std::pair<std::string, std::string>>& names) {
  std::string text;
  for (const auto& [name, address] : names)
    text.append(address).append(" ").append(name).append("\n");
  const auto machine = base::read_file("/etc/hosts");
  // A bare system may have no such file, and programs ask for localhost all the same.
  return text + (machine ? *machine : "127.0.0.1 localhost\n");
}

std::string user_name() {
  const passwd* entry = ::getpwuid(::geteuid());
  return entry == nullptr ? std::to_string(::geteuid()) : entry->pw_name;
}

}  // namespace muster::engine
