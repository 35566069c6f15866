#include "engine/shim/reached_programs.h"

#include <unistd.h>

#include <string>

#include "engine/shim/proc_files.h"
#include "engine/shim/process_tree.h"

namespace muster::engine {

namespace {

// The kernel keeps so much of a process's name.
constexpr size_t kKeptOfName = 15;

std::string_view kernel_name_of(std::string_view program) {
  return program.substr(program.rfind('/') + 1).substr(0, kKeptOfName);
}

bool lives(std::string_view stat) {
  const size_t bracket = stat.rfind(')');
  return bracket != std::string_view::npos && !stat.substr(bracket).starts_with(") Z");
}

}  // namespace

// An sshd changes its command line, and one of OpenSSH 9.8 or later calls others (sshd-session).
std::vector<pid_t> reached_programs(std::string_view shell) {
  std::vector<pid_t> programs;
  for (const pid_t pid : descendants_of(::getpid())) {
    const std::string stat = read_proc_file("/proc/" + std::to_string(pid) + "/stat");
    if (lives(stat) && !name_in_stat(stat).starts_with(kernel_name_of(shell)))
      programs.push_back(pid);
  }
  return programs;
}

}  // namespace muster::engine
