#include "engine/shim/proc_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <system_error>

#include "base/unique_fd.h"
#include "base/units.h"
#include "engine/shim/process_usage.h"

namespace muster::engine {

namespace fs = std::filesystem;

namespace {

void append_children(const fs::path& thread, std::vector<pid_t>& children) {
  const std::string text = read_proc_file(thread / "children");
  std::string_view rest = text;
  while (const auto child = base::number_of<pid_t>(take_word(rest))) children.push_back(*child);
}

std::multimap<pid_t, pid_t> children_of_all(const fs::path& proc) {
  std::multimap<pid_t, pid_t> children;
  for (const pid_t pid : numbered_entries(proc)) {
    const auto read = parse_stat(read_proc_file(proc / std::to_string(pid) / "stat"));
    if (read) children.emplace(read->second.parent, pid);
  }
  return children;
}

bool has_lists(const fs::path& proc, pid_t root) {
  const std::string name = std::to_string(root);
  std::error_code error;
  return fs::exists(proc / name / "task" / name / "children", error);
}

}  // namespace

// One call of read(2) is all of a short one.
std::string read_proc_file(const fs::path& path) {
  const base::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  if (!file) return text;
  std::array<char, 4096> buffer;
  for (ssize_t count = 0; (count = ::read(file.get(), buffer.data(), buffer.size())) > 0;) {
    text.append(buffer.data(), static_cast<size_t>(count));
  }
  return text;
}

std::string_view take_word(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\n"), text.size()));
  const size_t end = std::min(text.find_first_of(" \t\n"), text.size());
  const std::string_view word = text.substr(0, end);
  text.remove_prefix(end);
  return word;
}

uint64_t take_number(std::string_view& text) {
  return base::number_of<uint64_t>(take_word(text)).value_or(0);
}

std::string_view name_in_stat(std::string_view stat) {
  const size_t begin = stat.find('(');
  const size_t end = stat.rfind(')');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return stat.substr(begin + 1, end - begin - 1);
}

std::vector<pid_t> numbered_entries(const fs::path& folder) {
  std::vector<pid_t> numbers;
  std::error_code error;
  for (auto entry = fs::directory_iterator(folder, error); entry != fs::directory_iterator();
       entry.increment(error)) {
    if (const auto number = base::number_of<pid_t>(entry->path().filename().string())) {
      numbers.push_back(*number);
    }
  }
  return numbers;
}

ProcessChildren::ProcessChildren(fs::path proc, pid_t root)
    : proc_(std::move(proc)), listed_(has_lists(proc_, root)) {
  if (!listed_) all_ = children_of_all(proc_);
}

// They are listed with the thread that forked them.
std::vector<pid_t> ProcessChildren::of(pid_t pid, uint64_t threads) const {
  std::vector<pid_t> children;
  if (!listed_) {
    const auto [first, end] = all_.equal_range(pid);
    for (auto at = first; at != end; ++at) children.push_back(at->second);
    return children;
  }
  const fs::path tasks = proc_ / std::to_string(pid) / "task";
  if (threads == 1) {
    append_children(tasks / std::to_string(pid), children);
  } else {
    for (const pid_t thread : numbered_entries(tasks)) {
      append_children(tasks / std::to_string(thread), children);
    }
  }
  return children;
}

}  // namespace muster::engine
