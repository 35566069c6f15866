// The tree of processes, as the files of /proc have it.
//
// I/O; thread-safe. `proc` is another folder in tests.
#pragma once

#include <sys/types.h>

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace muster::engine {

/// A file of /proc, which has no size; empty where it is not there or nobody may read it.
std::string read_proc_file(const std::filesystem::path& path);

/// Off the front of a text; empty, or 0, where there is none.
std::string_view take_word(std::string_view& text);
uint64_t take_number(std::string_view& text);

/// The name of a process, as its "stat" has it: at most 15 bytes of it.
std::string_view name_in_stat(std::string_view stat);

/// The entries of a folder that are numbers.
std::vector<pid_t> numbered_entries(const std::filesystem::path& folder);

/// Who is whose child.
class ProcessChildren {
 public:
  /// Where the kernel keeps no lists of children (`root`'s is missing), all processes are asked for
  /// their parents, once.
  ProcessChildren(std::filesystem::path proc, pid_t root);

  /// `threads`: how many the process has.
  std::vector<pid_t> of(pid_t pid, uint64_t threads) const;

 private:
  std::filesystem::path proc_;
  bool listed_;
  std::multimap<pid_t, pid_t> all_;
};

}  // namespace muster::engine
