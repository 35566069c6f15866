#include "workspace/walk.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <utility>

#include "workspace/beneath.h"
#include "workspace/ignore_rules.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Fault;
using base::Result;
using base::UniqueFd;

FileState::FileState(const struct stat& status)
    : device(status.st_dev),
      inode(status.st_ino),
      bytes(status.st_size),
      changed(int64_t{status.st_ctim.tv_sec} * 1'000'000'000 + status.st_ctim.tv_nsec) {}

void FaultList::add(const std::string& path, std::string what) {
  constexpr size_t kMostFaults = 20;
  if (faults_.size() == kMostFaults) {
    ++more_;
  } else {
    faults_.push_back({.field = shown(path), .what = std::move(what)});
  }
}

std::vector<Fault> FaultList::to_vector() const {
  std::vector<Fault> faults = faults_;
  if (more_ > 0) faults.push_back({.field = "", .what = "and " + std::to_string(more_) + " more"});
  return faults;
}

namespace {

constexpr int64_t kMostRuleBytes = 1 << 20;
/// Counted on so far beyond the limit, to tell which folder is the large one.
constexpr size_t kPatience = 5;
/// Where the sum stops, for it must not overflow: a sparse file says of itself what it likes.
constexpr int64_t kMostSum = int64_t{1} << 59;

std::string reason(int number) {
  std::array<char, 128> buffer{};
  return strerror_r(number, buffer.data(), buffer.size());
}

class Walker {
 public:
  explicit Walker(const ScanOptions& options) : options_(options), rules_(options.ignore) {}

  Result<Walk> walk(const std::filesystem::path& folder) {
    MUSTER_TRY(UniqueFd root, open_root(folder));
    if (const auto error = walk_into(std::move(root), "")) {
      return base::system_error("cannot read folder " + shown(folder.native()), *error);
    }
    if (too_many()) walk_.found.clear();
    std::sort(walk_.found.begin(), walk_.found.end(), [](const Found& one, const Found& other) {
      return one.entry.path < other.entry.path;
    });
    return std::move(walk_);
  }

 private:
  bool too_many() const { return walk_.all.entries > options_.most_entries; }

  /// `prefix`: its path and a '/', or nothing for the root. An errno where it cannot be listed.
  std::optional<int> walk_into(UniqueFd fd, const std::string& prefix) {
    const OpenFolder folder(::fdopendir(fd.get()));
    if (folder == nullptr) return errno;
    fd.release();  // it is the stream's now
    std::vector<std::string> names;
    while (true) {
      errno = 0;
      const dirent* const item = ::readdir(folder.get());
      if (item == nullptr && errno != 0) return errno;
      if (item == nullptr) break;
      const std::string_view name = item->d_name;
      if (name != "." && name != "..") names.emplace_back(name);
      walk_.whole = walk_.all.entries + names.size() <= kPatience * options_.most_entries;
      if (!walk_.whole) break;
    }
    std::sort(names.begin(), names.end());
    const int here = ::dirfd(folder.get());
    if (options_.use_gitignore) read_rules(here, prefix);
    const Amount before = walk_.all;
    if (!walk_.whole) {
      walk_.all.entries += names.size();
      names.clear();
    }
    for (const std::string& name : names) {
      look_at(here, name, prefix);
      if (!walk_.whole) break;
    }
    if (!prefix.empty()) note_amount(prefix, before);
    return std::nullopt;
  }

  void note_amount(const std::string& name, const Amount& before) {
    walk_.amounts[name] = {.bytes = walk_.all.bytes - before.bytes,
                           .entries = walk_.all.entries - before.entries};
  }

  void look_at(int folder, const std::string& name, const std::string& prefix) {
    const std::string path = prefix + name;
    struct stat status{};
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) {
      if (!rules_.leaves_out(path, false)) walk_.faults.add(path, cannot_read(errno));
      return;
    }
    if (rules_.leaves_out(path, S_ISDIR(status.st_mode))) return;
    if (!is_tree_path(path)) {
      return walk_.faults.add(path, "is nested too deep, or its path is too long: at most " +
                                        std::to_string(kMostDepth) + " folders and " +
                                        std::to_string(kMostPathBytes) + " bytes");
    }
    const Amount before = walk_.all;
    ++walk_.all.entries;
    Found found{.entry = {.path = path}, .state = FileState(status)};
    if (S_ISDIR(status.st_mode)) {
      found.entry.kind = Entry::Kind::kFolder;
      add(std::move(found));
      return enter(folder, name, path);
    }
    if (const auto fault = S_ISREG(status.st_mode)   ? look_at_file(folder, name, status, found)
                           : S_ISLNK(status.st_mode) ? look_at_link(folder, name, found)
                                                     : is_special(status.st_mode)) {
      return walk_.faults.add(path, *fault);
    }
    if (prefix.empty()) note_amount(name, before);
    add(std::move(found));
  }

  void add(Found found) {
    if (!too_many()) walk_.found.push_back(std::move(found));
  }

  void enter(int above, const std::string& name, const std::string& path) {
    UniqueFd folder(::openat(above, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const auto error = folder ? walk_into(std::move(folder), path + "/") : errno;
    if (error) walk_.faults.add(path, cannot_read(*error));
  }

  std::optional<std::string> look_at_file(int folder, const std::string& name,
                                          const struct stat& status, Found& found) {
    walk_.all.bytes += std::min<int64_t>(status.st_size, kMostSum - walk_.all.bytes);
    found.entry.bytes = status.st_size;
    found.entry.executable = (status.st_mode & S_IXUSR) != 0;
    // Now, not when it is its turn to be read: all faults are told at once.
    if (::faccessat(folder, name.c_str(), R_OK, AT_EACCESS) == 0) return std::nullopt;
    return cannot_read(errno);
  }

  static std::optional<std::string> look_at_link(int folder, const std::string& name,
                                                 Found& found) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(folder, name.c_str(), target.data(), target.size());
    if (length < 0) return cannot_read(errno);
    Entry& entry = found.entry;
    entry.kind = Entry::Kind::kLink;
    entry.link = std::string(target.data(), static_cast<size_t>(length));
    if (link_stays_inside(entry.path, entry.link)) return std::nullopt;
    const std::string to = "is a link to " + shown(entry.link);
    if (entry.link.starts_with('/')) return to + ", which is absolute";
    return to + ", which leads out of the folder, or has a '..' behind a name";
  }

  static std::string is_special(mode_t mode) {
    if (S_ISSOCK(mode)) return "is a socket";
    return S_ISFIFO(mode) ? "is a pipe" : "is a device";
  }

  static std::string cannot_read(int number) { return "cannot be read: " + reason(number); }

  /// As git does: a .gitignore that is a link, or no file at all, has no rules.
  void read_rules(int folder, const std::string& prefix) {
    const UniqueFd file(
        ::openat(folder, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status{};
    if (!file) {
      // Without its rules, what was to stay at home would be sent. That it may not be read is told
      // where it is its own turn, unless it is left out.
      const int number = errno;
      const bool told = number == EACCES && !rules_.leaves_out(prefix + ".gitignore", false);
      if (number != ENOENT && number != ELOOP && !told) {
        walk_.faults.add(prefix + ".gitignore", cannot_read(number));
      }
      return;
    }
    if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) return;
    if (status.st_size > kMostRuleBytes) {
      return walk_.faults.add(prefix + ".gitignore", "is larger than " + size_text(kMostRuleBytes));
    }
    std::string text(static_cast<size_t>(status.st_size), '\0');
    size_t length = 0;
    while (length < text.size()) {
      const ssize_t count = ::read(file.get(), text.data() + length, text.size() - length);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) walk_.faults.add(prefix + ".gitignore", cannot_read(errno));
      if (count <= 0) break;
      length += static_cast<size_t>(count);
    }
    rules_.add_file(prefix.empty() ? prefix : prefix.substr(0, prefix.size() - 1),
                    text.substr(0, length));
  }

  const ScanOptions& options_;
  IgnoreRules rules_;
  Walk walk_;
};

}  // namespace

Result<Walk> walk_folder(const std::filesystem::path& folder, const ScanOptions& options) {
  return Walker(options).walk(folder);
}

}  // namespace muster::workspace
