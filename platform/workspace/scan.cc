#include "workspace/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "workspace/beneath.h"
#include "workspace/ignore_rules.h"
#include "workspace/path_text.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Fault;
using base::Result;
using base::UniqueFd;

namespace {

/// Reads up to `size` bytes; fewer only at the end of the file. nullopt with errno.
std::optional<size_t> read_fully(int fd, char* into, size_t size, int64_t offset) {
  size_t length = 0;
  while (length < size) {
    const ssize_t count =
        ::pread(fd, into + length, size - length, offset + static_cast<int64_t>(length));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return std::nullopt;
    if (count == 0) break;
    length += static_cast<size_t>(count);
  }
  return length;
}

/// The second pass: reads every file once, a chunk at a time.
class Reader {
 public:
  using Progress = std::function<void(int64_t, int64_t)>;

  Reader(UniqueFd root, const std::filesystem::path& folder, const FlagNames& flags, int64_t total,
         const Progress& on_progress)
      : beneath_(std::move(root)),
        folder_(std::filesystem::absolute(folder)),
        flags_(flags),
        total_(total),
        on_progress_(on_progress) {}

  void read(ScannedEntry found) {
    if (found.entry.kind == ManifestEntry::Kind::kFile && !read_file(found)) {
      faults_.add(found.entry.path, "changed while it was read");
    }
    scan_.manifest.entries.push_back(std::move(found.entry));
  }

  Result<Scan> finish() && {
    if (!faults_.empty()) {
      return Error{.code = ErrorCode::kConflict,
                   .what = "the workspace " + shown(folder_.native()) + " is being written to",
                   .advice = "try again afterwards, or exclude these files by .gitignore or " +
                             flags_.ignore,
                   .faults = faults_.to_vector()};
    }
    scan_.encoded = encode(scan_.manifest);
    if (scan_.encoded.size() > kMostManifestBytes) {
      return Error{.code = ErrorCode::kInvalid,
                   .what = "the workspace " + shown(folder_.native()) +
                           " is not sent: its list of " +
                           count_text(scan_.manifest.entries.size(), "entry", "entries") +
                           " alone has " + size_text(static_cast<int64_t>(scan_.encoded.size())),
                   .advice = "exclude folders by .gitignore or " + flags_.ignore};
    }
    scan_.id = tree_id(scan_.encoded);
    return std::move(scan_);
  }

 private:
  /// Whether the file was unchanged since the first pass.
  bool read_file(ScannedEntry& found) {
    const std::string& path = found.entry.path;
    const int folder = beneath_.parent_of(path);
    if (folder < 0) return false;
    const UniqueFd file(
        ::openat(folder, name_of(path).c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file || !is_still(file.get(), found.state)) return false;
    for (size_t i = 0; i < chunk_count(found.entry.bytes); ++i) {
      const size_t size = chunk_bytes(found.entry.bytes, i);
      const auto offset = static_cast<int64_t>(i * kChunkBytes);
      if (read_fully(file.get(), buffer_.data(), size, offset) != size) return false;
      ChunkId id = chunk_id(std::string_view(buffer_).substr(0, size));
      if (seen_.insert(id).second) {
        scan_.chunks.push_back({.id = id, .file = folder_ / path, .offset = offset, .bytes = size});
      }
      found.entry.chunks.push_back(std::move(id));
      done_ += static_cast<int64_t>(size);
      if (on_progress_) on_progress_(done_, total_);
    }
    return is_still(file.get(), found.state);
  }

  static bool is_still(int file, const FileState& state) {
    struct stat status{};
    return ::fstat(file, &status) == 0 && S_ISREG(status.st_mode) && FileState(status) == state;
  }

  Beneath beneath_;
  std::filesystem::path folder_;
  const FlagNames& flags_;
  int64_t total_;
  int64_t done_ = 0;
  const Progress& on_progress_;
  std::string buffer_ = std::string(kChunkBytes, '\0');
  std::unordered_set<ChunkId> seen_;
  FaultList faults_;
  Scan scan_;
};

Error has_changed(const ChunkSource& source) {
  return {.code = ErrorCode::kConflict,
          .what = shown(source.file.native()) + " has changed since it was read",
          .advice = "repeat the command when no program writes there"};
}

}  // namespace

Result<Scan> scan_folder(const std::filesystem::path& folder, const ScanOptions& options,
                         const std::function<void(int64_t, int64_t)>& on_progress) {
  MUSTER_TRY(Walk walk, walk_folder(folder, options));
  if (auto refusal = refusal_of(folder, walk, options)) return *std::move(refusal);
  MUSTER_TRY(UniqueFd root, open_root(folder));
  Reader reader(std::move(root), folder, options.flags, walk.all.bytes, on_progress);
  for (ScannedEntry& found : walk.found) reader.read(std::move(found));
  return std::move(reader).finish();
}

Result<std::string> read_chunk(const ChunkSource& source) {
  const UniqueFd file(::open(source.file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
    return base::system_error("cannot read " + shown(source.file.native()), errno);
  }
  if (!file) return has_changed(source);
  // A file that shrank or was replaced gives other bytes, or fewer.
  std::string content(std::min(source.bytes, kChunkBytes), '\0');
  const auto length = read_fully(file.get(), content.data(), content.size(), source.offset);
  if (!length || *length != content.size() || chunk_id(content) != source.id) {
    return has_changed(source);
  }
  return content;
}

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
/// The walk continues to this multiple of the limit, to find out which folder is the large one.
constexpr size_t kPatience = 5;
/// Caps the sum against overflow: a sparse file may have any size.
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
    std::sort(walk_.found.begin(), walk_.found.end(),
              [](const ScannedEntry& one, const ScannedEntry& other) {
                return one.entry.path < other.entry.path;
              });
    return std::move(walk_);
  }

 private:
  bool too_many() const { return walk_.all.entries > options_.most_entries; }

  /// `prefix`: the folder's path with a '/', or empty for the root. Returns the errno of a failure.
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
    ScannedEntry found{.entry = {.path = path}, .state = FileState(status)};
    if (S_ISDIR(status.st_mode)) {
      found.entry.kind = ManifestEntry::Kind::kFolder;
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

  void add(ScannedEntry found) {
    if (!too_many()) walk_.found.push_back(std::move(found));
  }

  void enter(int above, const std::string& name, const std::string& path) {
    UniqueFd folder(::openat(above, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    const auto error = folder ? walk_into(std::move(folder), path + "/") : errno;
    if (error) walk_.faults.add(path, cannot_read(*error));
  }

  std::optional<std::string> look_at_file(int folder, const std::string& name,
                                          const struct stat& status, ScannedEntry& found) {
    walk_.all.bytes += std::min<int64_t>(status.st_size, kMostSum - walk_.all.bytes);
    found.entry.bytes = status.st_size;
    found.entry.executable = (status.st_mode & S_IXUSR) != 0;
    // Checked now and not when it is read, so that all faults are reported at once.
    if (::faccessat(folder, name.c_str(), R_OK, AT_EACCESS) == 0) return std::nullopt;
    return cannot_read(errno);
  }

  static std::optional<std::string> look_at_link(int folder, const std::string& name,
                                                 ScannedEntry& found) {
    std::array<char, PATH_MAX> target{};
    const ssize_t length = ::readlinkat(folder, name.c_str(), target.data(), target.size());
    if (length < 0) return cannot_read(errno);
    ManifestEntry& entry = found.entry;
    entry.kind = ManifestEntry::Kind::kLink;
    entry.link = std::string(target.data(), static_cast<size_t>(length));
    if (link_stays_inside(entry.path, entry.link)) return std::nullopt;
    const std::string to = "is a link to " + shown(entry.link);
    if (entry.link.starts_with('/')) return to + ", which is absolute";
    return to + ", which leads out of the folder, or has a '..' after a name";
  }

  static std::string is_special(mode_t mode) {
    if (S_ISSOCK(mode)) return "is a socket";
    return S_ISFIFO(mode) ? "is a pipe" : "is a device";
  }

  static std::string cannot_read(int number) { return "cannot be read: " + reason(number); }

  /// Like git, this ignores a .gitignore that is a link or not a regular file.
  void read_rules(int folder, const std::string& prefix) {
    const UniqueFd file(
        ::openat(folder, ".gitignore", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat status{};
    if (!file) {
      // Without its rules, files meant to be left out would be sent. A missing permission is
      // reported when the walk reaches the file itself, unless it is left out.
      const int number = errno;
      const bool is_reported_later =
          number == EACCES && !rules_.leaves_out(prefix + ".gitignore", false);
      if (number != ENOENT && number != ELOOP && !is_reported_later) {
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

namespace {

using Named = std::pair<std::string, Amount>;

/// The deepest folder that has most of the content of `folder`: "app/web/node_modules/" is more
/// useful than "app/".
Named bulk_of(const Walk& walk, Named folder, int64_t (*size)(const Amount&)) {
  const auto is_bulk = [&](const Amount& part) {
    return size(part) * 5 >= size(folder.second) * 4;
  };
  auto at = walk.amounts.upper_bound(folder.first);
  while (at != walk.amounts.end() && at->first.starts_with(folder.first)) {
    if (is_bulk(at->second)) folder = *at;
    ++at;
  }
  return folder;
}

std::vector<Fault> largest(const Walk& walk, int64_t (*size)(const Amount&)) {
  constexpr size_t kShown = 5;
  std::vector<Named> parts;
  for (const auto& [name, amount] : walk.amounts) {
    if (name.find('/') >= name.size() - 1 && size(amount) > 0) parts.emplace_back(name, amount);
  }
  std::stable_sort(parts.begin(), parts.end(), [&](const Named& one, const Named& other) {
    return size(one.second) > size(other.second);
  });
  parts.resize(std::min(parts.size(), kShown));
  std::vector<Fault> faults;
  for (Named& part : parts) {
    if (part.first.ends_with('/')) part = bulk_of(walk, std::move(part), size);
    const auto& [name, amount] = part;
    const std::string in =
        name.ends_with('/') ? " in " + count_text(amount.entries, "entry", "entries") : "";
    faults.push_back({.field = shown(name), .what = "has " + size_text(amount.bytes) + in});
  }
  return faults;
}

int64_t bytes_in(const Amount& amount) {
  return amount.bytes;
}
int64_t entries_in(const Amount& amount) {
  return static_cast<int64_t>(amount.entries);
}

/// A value for MUSTER_WORKSPACE_LIMIT, in whole GiB.
std::string limit_for(int64_t bytes) {
  constexpr int64_t kGibi = int64_t{1} << 30;
  return std::to_string(bytes / kGibi + (bytes % kGibi != 0 ? 1 : 0)) + "G";
}

void append_part(std::string& text, const std::string& separator, const std::string& more) {
  if (!text.empty()) text += separator;
  text += more;
}

}  // namespace

std::optional<Error> refusal_of(const std::filesystem::path& folder, const Walk& walk,
                                const ScanOptions& options) {
  const bool too_large = walk.all.bytes > options.most_bytes;
  const bool too_many = walk.all.entries > options.most_entries;
  if (!too_large && !too_many && walk.faults.empty()) return std::nullopt;
  std::string what;
  std::string advice;
  std::vector<Fault> faults = walk.faults.to_vector();
  const std::string at_least = walk.whole ? "" : "at least ";
  if (too_large) {
    append_part(what, "; ",
                "it has " + at_least + size_text(walk.all.bytes) + ", but at most " +
                    size_text(options.most_bytes) + " is sent");
  }
  if (too_many) {
    append_part(what, "; ",
                "it has " + at_least + count_text(walk.all.entries, "entry", "entries") +
                    ", but at most " + count_text(options.most_entries, "entry", "entries") +
                    " are sent");
  }
  if (too_large || too_many) {
    const auto parts = largest(walk, too_large ? bytes_in : entries_in);
    faults.insert(faults.end(), parts.begin(), parts.end());
    advice = "exclude files that the job does not need, by a line in .gitignore or by " +
             options.flags.ignore;
  }
  if (too_large && walk.whole) {
    advice += ", or raise the limit: MUSTER_WORKSPACE_LIMIT=" + limit_for(walk.all.bytes);
  }
  if (!walk.faults.empty()) {
    append_part(what, "; ", "it contains entries that cannot be sent");
    append_part(advice, "; ",
                "make links relative and within the folder, and exclude other kinds of files by "
                ".gitignore or " +
                    options.flags.ignore + "");
  }
  return Error{.code = ErrorCode::kInvalid,
               .what = "the workspace " + shown(folder.native()) + " is not sent: " + what,
               .advice = std::move(advice),
               .faults = std::move(faults)};
}

}  // namespace muster::workspace
