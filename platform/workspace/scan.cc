#include "workspace/scan.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "workspace/beneath.h"
#include "workspace/path_text.h"
#include "workspace/refusal.h"
#include "workspace/walk.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

/// Reads `size` bytes, or as many as there are; nothing at an error, which is in errno.
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

/// The second look: reads every file once, a chunk at a time.
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

  void read(Found found) {
    if (found.entry.kind == Entry::Kind::kFile && !read_file(found)) {
      faults_.add(found.entry.path, "changed while it was looked at");
    }
    scan_.manifest.entries.push_back(std::move(found.entry));
  }

  Result<Scan> finish() && {
    if (!faults_.empty()) {
      return Error{
          .code = ErrorCode::kConflict,
          .what = "the workspace " + shown(folder_.native()) + " is being written to",
          .advice = "try again when that is done, or leave these files out by .gitignore or " +
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
                   .advice = "leave out folders by .gitignore or " + flags_.ignore};
    }
    scan_.id = tree_id(scan_.encoded);
    return std::move(scan_);
  }

 private:
  /// Whether it was all the time the file that the first look saw.
  bool read_file(Found& found) {
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
          .what = shown(source.file.native()) + " has changed since it was looked at",
          .advice = "run the command again when nothing writes there"};
}

}  // namespace

Result<Scan> scan_folder(const std::filesystem::path& folder, const ScanOptions& options,
                         const std::function<void(int64_t, int64_t)>& on_progress) {
  MUSTER_TRY(Walk walk, walk_folder(folder, options));
  if (auto refusal = refusal_of(folder, walk, options)) return *std::move(refusal);
  MUSTER_TRY(UniqueFd root, open_root(folder));
  Reader reader(std::move(root), folder, options.flags, walk.all.bytes, on_progress);
  for (Found& found : walk.found) reader.read(std::move(found));
  return std::move(reader).finish();
}

Result<std::string> read_chunk(const ChunkSource& source) {
  const UniqueFd file(::open(source.file.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file && errno != ENOENT && errno != ENOTDIR && errno != ELOOP) {
    return base::system_error("cannot read " + shown(source.file.native()), errno);
  }
  if (!file) return has_changed(source);
  // Files that shrink, or were swapped for something else, give other bytes or none.
  std::string content(std::min(source.bytes, kChunkBytes), '\0');
  const auto length = read_fully(file.get(), content.data(), content.size(), source.offset);
  if (!length || *length != content.size() || chunk_id(content) != source.id) {
    return has_changed(source);
  }
  return content;
}

}  // namespace muster::workspace
