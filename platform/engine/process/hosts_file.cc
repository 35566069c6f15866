#include "engine/process/hosts_file.h"

#include <fcntl.h>

#include <cerrno>
#include <map>
#include <sstream>

#include "base/files.h"
#include "base/unique_fd.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

namespace {

/// A reader sees a file grow by what was written within a page, and by no less.
constexpr size_t kPage = 4096;

std::string line_of(const std::string& name, const std::string& address) {
  return address + " " + name + "\n";
}

/// The address that each name has: the first that is found counts.
std::map<std::string, std::string> addresses_by_name(const std::string& text) {
  std::map<std::string, std::string> names;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string address;
    words >> address;
    for (std::string name; words >> name;) names.emplace(name, address);
  }
  return names;
}

/// Across no end of a page: before it, the page is filled up with empty lines.
Result<void> append_line(const UniqueFd& file, const std::string& line, size_t& size) {
  const size_t left = kPage - size % kPage;
  if (line.size() > left) {
    MUSTER_CHECK(base::write_all(file.get(), std::string(left, '\n')));
    size += left;
  }
  size += line.size();
  return base::write_all(file.get(), line);
}

}  // namespace

std::string hosts_file(const HostNames& names) {
  std::string text;
  for (const auto& [name, address] : names) text += line_of(name, address);
  const auto machine = base::read_file("/etc/hosts");
  // A bare system may have no such file, and programs ask for localhost all the same.
  return text + (machine ? *machine : "127.0.0.1 localhost\n");
}

Result<void> add_hosts(const std::filesystem::path& path, const HostNames& names) {
  MUSTER_TRY(const std::string text, base::read_file(path));
  auto known = addresses_by_name(text);
  std::vector<std::string> lines;
  if (!text.ends_with('\n')) lines.emplace_back("\n");
  for (const auto& [name, address] : names) {
    const auto [found, is_new] = known.emplace(name, address);
    if (is_new) {
      lines.push_back(line_of(name, address));
    } else if (found->second != address) {
      return base::Error{.code = base::ErrorCode::kConflict,
                         .what = "'" + name + "' is " + found->second +
                                 " in /etc/hosts already, and cannot become " + address,
                         .advice = "take the name out of this machine's /etc/hosts"};
    }
  }
  const UniqueFd file(::open(path.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!file) return base::system_error("cannot write '" + path.string() + "'", errno);
  size_t size = text.size();
  for (const std::string& line : lines) MUSTER_CHECK(append_line(file, line, size));
  return {};
}

}  // namespace muster::engine
