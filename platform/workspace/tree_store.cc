#include "workspace/tree_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/files.h"
#include "base/random.h"
#include "base/text.h"
#include "base/units.h"
#include "workspace/beneath.h"
#include "workspace/path_text.h"
#include "workspace/project_files.h"

namespace muster::workspace {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

Error no_id(std::string_view text) {
  return {.code = ErrorCode::kInvalid,
          .what = shown(text.substr(0, 100)) + " is not an id: an id has 64 hexadecimal digits"};
}

Result<void> check_ids(const std::vector<ChunkId>& ids) {
  const auto wrong = std::find_if_not(ids.begin(), ids.end(), is_id);
  if (wrong != ids.end()) return no_id(*wrong);
  return {};
}

/// Whether the chunk exists and has the right size. kInvalid: the chunk is intact, but its size is
/// not the one in the manifest.
Result<bool> has_chunk(const ProjectFiles& files, const ChunkId& id, size_t bytes) {
  struct stat status{};
  if (::stat(files.chunk(id).c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    return base::system_error("cannot examine chunk " + id, errno);
  }
  if (static_cast<size_t>(status.st_size) == bytes) return true;
  // Either a crash truncated the chunk, or the manifest is wrong.
  auto content = read_checked(files, id);
  if (!content && content.error().code == ErrorCode::kNotFound) return false;
  if (!content) return std::move(content).error();
  return Error{.code = ErrorCode::kInvalid,
               .what = "chunk " + id + " has " + std::to_string(content->size()) +
                       " bytes, but according to the list of files it has " +
                       std::to_string(bytes)};
}

Result<void> check_chunks(const ProjectFiles& files, const Manifest& manifest) {
  std::unordered_map<std::string_view, size_t> seen;
  size_t missing = 0;
  ChunkId first;
  for (const ManifestEntry& entry : manifest.entries) {
    for (size_t i = 0; i < entry.chunks.size(); ++i) {
      const ChunkId& id = entry.chunks[i];
      const size_t bytes = chunk_bytes(entry.bytes, i);
      const auto [known, fresh] = seen.emplace(id, bytes);
      if (!fresh && known->second == bytes) continue;
      MUSTER_TRY(const bool here, has_chunk(files, id, bytes));
      if (here) continue;
      if (missing++ == 0) first = id;
    }
  }
  if (missing == 0) return {};
  return Error{
      .code = ErrorCode::kNotFound,
      .what = std::to_string(missing) + " of " + count_text(seen.size(), "chunk", "chunks") +
              " of the files are missing; the first is " + first,
      .advice = "request the list of missing chunks, send them, and store the files again"};
}

/// Whether chunks of the tree are missing. False after other errors.
bool lacks_chunks(const ProjectFiles& files, const std::string& id,
                  const std::vector<ChunkId>& manifest_chunks) {
  const auto manifest = read_manifest(files, id, manifest_chunks);
  const Result<void> checked =
      manifest ? check_chunks(files, *manifest) : Result<void>(manifest.error());
  return !checked && checked.error().code == ErrorCode::kNotFound;
}

/// One syncfs for all chunks of a tree, because an fsync for each would take minutes with many
/// small files. It also waits for writes of other programs to that disk. A chunk that a crash
/// truncated before the sync is detected by its size or hash.
Result<void> sync_store(const fs::path& store) {
  const UniqueFd folder(::open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::syncfs(folder.get()) == 0) return {};
  return disk_error("cannot write " + shown(store.native()) + " to the disk", errno);
}

/// Folders of deleted projects, whose names are not valid names of projects.
constexpr std::string_view kForgotten = ".gone-";

/// Whether the project's folder is still this one: its files may have been set aside. The
/// descriptor keeps the number of the folder from being given to a new one.
bool is_folder_of(const ProjectFiles& files, const UniqueFd& folder) {
  struct stat held{};
  struct stat named{};
  if (::fstat(folder.get(), &held) != 0) return false;
  if (::stat(files.folder().c_str(), &named) != 0) return false;
  return held.st_dev == named.st_dev && held.st_ino == named.st_ino;
}

/// Clients could otherwise fill the disk, where the state and the logs of the server are.
Result<void> leave_room(const fs::path& store) {
  constexpr uint64_t kReserve = 1 << 30;
  constexpr uint64_t kPartOfDisk = 20;
  struct statvfs disk{};
  if (::statvfs(store.c_str(), &disk) != 0) return {};
  const uint64_t reserve = std::min(kReserve, disk.f_blocks * disk.f_frsize / kPartOfDisk);
  const uint64_t free = disk.f_bavail * disk.f_frsize;
  if (free >= reserve) return {};
  return Error{.code = ErrorCode::kExhausted,
               .what = "cannot store files in " + shown(store.native()) + ": its disk has " +
                       size_text(static_cast<int64_t>(free)) +
                       " free, and the server keeps the last " +
                       size_text(static_cast<int64_t>(reserve)),
               .advice = kFreeSpace};
}

}  // namespace

/// How many bytes on the disk each project has that no job uses. Thread-safe.
class TreeStore::Counts {
 public:
  int64_t of(const std::string& project) const {
    const std::scoped_lock lock(mutex_);
    const auto found = bytes_.find(project);
    return found == bytes_.end() ? 0 : found->second;
  }
  void add(const std::string& project, int64_t bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_[project] += bytes;
  }
  void set(const std::string& project, int64_t bytes) {
    const std::scoped_lock lock(mutex_);
    bytes_[project] = bytes;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int64_t> bytes_;
};

namespace {

/// Even a file of one byte takes a block of the disk.
int64_t bytes_on_disk(int64_t bytes) {
  constexpr int64_t kBlock = 4096;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

}  // namespace

TreeStore::TreeStore(fs::path folder, TreeLimits limits)
    : folder_(std::move(folder)), limits_(limits), unused_(std::make_shared<Counts>()) {}

bool TreeStore::is_nearly_full(const std::string& project) const {
  constexpr int64_t kOfOneRequest = 64 << 20;
  return unused_->of(project) + kOfOneRequest > limits_.unused_bytes;
}

Result<void> TreeStore::check_unused(const std::string& project) const {
  const int64_t unused = unused_->of(project);
  if (unused < limits_.unused_bytes) return {};
  return Error{
      .code = ErrorCode::kExhausted,
      .what = "project '" + project + "' has " + size_text(unused) +
              " of uploaded files that no job uses, and this server keeps at most " +
              size_text(limits_.unused_bytes),
      .advice =
          "submit the jobs for these files, or try again in an hour: unused files are then "
          "deleted; an administrator can raise limits.unused_workspace_bytes"};
}

Result<std::vector<ChunkId>> TreeStore::missing(const std::string& project,
                                                const std::vector<ChunkId>& chunks) const {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  MUSTER_CHECK(check_ids(chunks));
  MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kShared));
  std::vector<ChunkId> missing;
  for (const ChunkId& id : chunks) {
    // Updates its time, so that it is not collected before its tree is stored.
    MUSTER_TRY(const bool here, touch(files.chunk(id)));
    if (!here) missing.push_back(id);
  }
  return missing;
}

Result<ChunkId> TreeStore::put_chunk(const std::string& project, std::string_view content) {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  if (content.size() > kChunkBytes) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "a chunk of " + std::to_string(content.size()) + " bytes is too long",
                 .advice = "cut files into pieces of " + std::to_string(kChunkBytes) + " bytes"};
  }
  ChunkId id = chunk_id(content);
  const fs::path file = files.chunk(id);
  MUSTER_TRY(const UniqueFd held, make_and_hold_store(folder_));
  struct stat status{};
  const bool whole =
      ::stat(file.c_str(), &status) == 0 && static_cast<size_t>(status.st_size) == content.size();
  if (whole) {
    MUSTER_TRY(const bool here, touch(file));
    if (here) return id;
  }
  MUSTER_CHECK(check_unused(project));
  MUSTER_CHECK(leave_room(folder_));
  MUSTER_CHECK(put_whole(files, file, content, /*durable=*/false));
  unused_->add(project, bytes_on_disk(static_cast<int64_t>(content.size())));
  return id;
}

Result<TreeInfo> TreeStore::keep(const std::string& project, const std::string& id,
                                 const std::vector<ChunkId>& manifest_chunks) {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  if (!is_id(id)) return no_id(id);
  MUSTER_CHECK(check_ids(manifest_chunks));
  if (manifest_chunks.empty() || manifest_chunks.size() > kMostManifestBytes / kChunkBytes) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "a list of files has 1 to " +
                         std::to_string(kMostManifestBytes / kChunkBytes) + " chunks, not " +
                         std::to_string(manifest_chunks.size())};
  }
  MUSTER_TRY(const UniqueFd held, make_and_hold_store(folder_));
  const UniqueFd folder(::open(files.folder().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder && errno != ENOENT) {
    return base::system_error("cannot open " + shown(files.folder().native()), errno);
  }
  MUSTER_TRY(const Manifest manifest, read_manifest(files, id, manifest_chunks));
  const TreeRecord record{.info = {.id = id, .bytes = manifest.bytes(), .files = manifest.files()},
                          .manifest_chunks = manifest_chunks};
  if (record.info.bytes > limits_.tree_bytes) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the files have " + size_text(record.info.bytes) +
                         ", and this server accepts at most " + size_text(limits_.tree_bytes),
                 .advice = "exclude files that the job does not need, by a line in .gitignore"};
  }
  MUSTER_CHECK(check_chunks(files, manifest));
  MUSTER_CHECK(base::make_private_folder(files.trees()));
  MUSTER_CHECK(sync_store(folder_));
  MUSTER_CHECK(put_whole(files, files.tree(id), encode_record(record), /*durable=*/true));
  if (!is_folder_of(files, folder)) {
    // Its chunks have gone with the project, unless a new project of this name has the same files.
    if (lacks_chunks(files, id, manifest_chunks)) ::unlink(files.tree(id).c_str());
    return Error{.code = ErrorCode::kConflict,
                 .what = "project '" + project + "' was deleted while its files were stored",
                 .advice = "send the files again if there is a new project of this name"};
  }
  return record.info;
}

Result<TreeInfo> TreeStore::info(const std::string& project, const std::string& id) const {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  if (!is_id(id)) return no_id(id);
  MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kShared));
  MUSTER_TRY(const TreeRecord record, read_record(files, id));
  MUSTER_CHECK(touch(files.tree(id)));
  return record.info;
}

// Without the lock, for which the caller would wait as long as others unpack or sync files. An upload
// at the same time fails, or leaves single files, which collect() removes; keep() checks at its end.
Result<void> TreeStore::forget_project(const std::string& project) {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  base::SystemRandom random;
  constexpr size_t kLength = 16;
  const std::string aside = std::string(kForgotten) + base::random_name(random, kLength);
  if (::rename(files.folder().c_str(), (folder_ / aside).c_str()) != 0 && errno != ENOENT) {
    return base::system_error("cannot set " + shown(files.folder().native()) + " aside", errno);
  }
  unused_->set(project, 0);
  return {};
}

// --- collecting unused trees and chunks

namespace {

/// The entries of a folder; a missing folder has none.
Result<std::vector<fs::path>> items_of(const fs::path& folder) {
  std::vector<fs::path> items;
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    items.push_back(at->path());
  }
  if (!error || error == std::errc::no_such_file_or_directory) return items;
  return base::system_error("cannot list " + shown(folder.native()), error.value());
}

/// Collects in one project. REQUIRES: the exclusive lock.
class Collector {
 public:
  Collector(const ProjectFiles& files, std::string project, const TreeStore::Used& used,
            base::Time before)
      : files_(files), project_(std::move(project)), used_(used), before_(before) {}

  Result<int64_t> collect() {
    MUSTER_TRY(const auto trees, items_of(files_.trees()));
    for (const fs::path& tree : trees) MUSTER_CHECK(look_at_tree(tree));
    MUSTER_TRY(const auto halves, items_of(files_.incoming()));
    for (const fs::path& half : halves) MUSTER_CHECK(remove_if_old(half));
    MUSTER_TRY(const auto folders, items_of(files_.chunks()));
    for (const fs::path& folder : folders) {
      MUSTER_TRY(const auto chunks, items_of(folder));
      for (const fs::path& chunk : chunks) {
        MUSTER_CHECK(look_at_chunk(chunk));
      }
    }
    return removed_;
  }

  /// The bytes on the disk of the chunks that were not removed and no job uses.
  int64_t unused() const { return unused_; }

 private:
  Result<void> look_at_chunk(const fs::path& chunk) {
    const auto found = has_.find(chunk.filename().native());
    const bool is_used = found != has_.end() && found->second;
    if (is_used) return {};
    if (found == has_.end()) {
      MUSTER_TRY(const bool gone, remove_if_old(chunk));
      if (gone) return {};
    }
    struct stat status{};
    if (::lstat(chunk.c_str(), &status) == 0) unused_ += bytes_on_disk(status.st_size);
    return {};
  }

  Result<void> look_at_tree(const fs::path& tree) {
    const std::string id = tree.filename();
    const bool is_used = used_.contains({project_, id});
    if (!is_used) {
      MUSTER_TRY(const bool gone, remove_if_old(tree));
      if (gone) return {};
    }
    // If this fails, no chunk of the project is removed, because any of them may belong to the
    // tree.
    MUSTER_TRY(const TreeRecord record, read_record(files_, id));
    MUSTER_TRY(const Manifest manifest, read_manifest(files_, id, record.manifest_chunks));
    for (const ChunkId& chunk : record.manifest_chunks) has_[chunk] |= is_used;
    for (const ManifestEntry& entry : manifest.entries) {
      for (const ChunkId& chunk : entry.chunks) has_[chunk] |= is_used;
    }
    return {};
  }

  /// True: the file was removed.
  Result<bool> remove_if_old(const fs::path& file) {
    struct stat status{};
    if (::lstat(file.c_str(), &status) != 0) {
      return base::system_error("cannot examine " + shown(file.native()), errno);
    }
    const base::Time used = base::Time(std::chrono::seconds(status.st_mtim.tv_sec) +
                                       std::chrono::nanoseconds(status.st_mtim.tv_nsec));
    if (used >= before_ || !S_ISREG(status.st_mode)) return false;
    if (::unlink(file.c_str()) != 0) {
      return base::system_error("cannot remove " + shown(file.native()), errno);
    }
    removed_ += status.st_size;
    return true;
  }

  const ProjectFiles& files_;
  std::string project_;
  const TreeStore::Used& used_;
  base::Time before_;
  std::unordered_map<ChunkId, bool> has_;  ///< the chunks of trees; true: a job uses such a tree
  int64_t removed_ = 0;
  int64_t unused_ = 0;
};

}  // namespace

Result<void> TreeStore::remove_forgotten() {
  MUSTER_TRY(const auto folders, items_of(folder_));
  std::optional<Error> first;
  for (const fs::path& folder : folders) {
    if (!folder.filename().native().starts_with(kForgotten)) continue;
    auto gone = base::remove_tree(folder);
    if (!gone && !first) first = std::move(gone).error();
  }
  if (first) return *std::move(first);
  return {};
}

Result<int64_t> TreeStore::collect(const Used& used, base::Time before) {
  std::optional<Error> first;
  if (auto gone = remove_forgotten(); !gone) first = std::move(gone).error();
  MUSTER_TRY(const auto projects, items_of(folder_));
  int64_t removed = 0;
  for (const fs::path& folder : projects) {
    const std::string project = folder.filename();
    if (!ProjectFiles::of(folder_, project)) continue;  // the lock, or a forgotten project
    auto collected = collect(project, used, before);
    if (collected) removed += *collected;
    // An error in one project does not prevent collecting in the others.
    if (!collected && !first) first = std::move(collected).error();
  }
  if (first) return *std::move(first);
  return removed;
}

Result<int64_t> TreeStore::collect(const std::string& project, const Used& used,
                                   base::Time before) {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  // Locked for each project, so that others wait for one project at most.
  MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kAlone));
  Collector collector(files, project, used, before);
  auto removed = collector.collect();
  std::error_code unknown;
  const bool is_deleted = !fs::exists(files.folder(), unknown) && !unknown;
  if (!removed && is_deleted) removed = 0;  // the project was deleted meanwhile, with its files
  // After an error, the use of the remaining chunks is unknown; sending them again may repair it.
  unused_->set(project, removed && !is_deleted ? collector.unused() : 0);
  return removed;
}

// --- unpacking a tree

namespace {

/// Writes entries below a folder. The manifest has been checked; in addition, every name is opened
/// from its folder's descriptor, no link is followed, and every file must be new.
class Unpacker {
 public:
  Unpacker(const ProjectFiles& files, UniqueFd folder)
      : files_(files), beneath_(std::move(folder)) {}

  Result<void> unpack(const Manifest& manifest) {
    for (const ManifestEntry& entry : manifest.entries) {
      if (entry.kind == ManifestEntry::Kind::kFolder) MUSTER_CHECK(make_folder(entry));
      if (entry.kind == ManifestEntry::Kind::kFile) MUSTER_CHECK(make_file(entry));
    }
    // Links last, so that no link exists while files are created.
    for (const ManifestEntry& entry : manifest.entries) {
      if (entry.kind == ManifestEntry::Kind::kLink) MUSTER_CHECK(make_link(entry));
    }
    return {};
  }

  /// Whether unpack() failed because of a missing chunk.
  bool lacks_chunk() const { return lacks_chunk_; }

 private:
  Result<void> make_folder(const ManifestEntry& entry) {
    const int parent = beneath_.parent_of(entry.path);
    if (parent < 0 || ::mkdirat(parent, name_of(entry.path).c_str(), 0755) != 0) {
      return failed(entry);
    }
    // The umask may have removed bits.
    const int folder = beneath_.parent_of(entry.path + "/");
    return folder >= 0 && ::fchmod(folder, 0755) == 0 ? Result<void>() : failed(entry);
  }

  Result<void> make_file(const ManifestEntry& entry) {
    const int parent = beneath_.parent_of(entry.path);
    if (parent < 0) return failed(entry);
    const mode_t mode = entry.executable ? 0755 : 0644;
    const UniqueFd file(::openat(parent, name_of(entry.path).c_str(),
                                 O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode));
    if (!file || ::fchmod(file.get(), mode) != 0) return failed(entry);
    for (size_t i = 0; i < entry.chunks.size(); ++i) {
      auto content = read_checked(files_, entry.chunks[i]);
      if (!content) {
        Error error = std::move(content).error();
        lacks_chunk_ = error.code == ErrorCode::kNotFound;
        error.what += ", of " + shown(entry.path);
        return error;
      }
      MUSTER_CHECK(write(file.get(), *content, entry));
    }
    return {};
  }

  Result<void> make_link(const ManifestEntry& entry) {
    const int parent = beneath_.parent_of(entry.path);
    if (parent < 0 || ::symlinkat(entry.link.c_str(), parent, name_of(entry.path).c_str()) != 0) {
      return failed(entry);
    }
    return {};
  }

  static Result<void> write(int file, std::string_view content, const ManifestEntry& entry) {
    while (!content.empty()) {
      const ssize_t count = ::write(file, content.data(), content.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed(entry);
      content.remove_prefix(static_cast<size_t>(count));
    }
    return {};
  }

  static Error failed(const ManifestEntry& entry) {
    return disk_error("cannot write " + shown(entry.path) + " of the workspace", errno);
  }

  const ProjectFiles& files_;
  Beneath beneath_;
  bool lacks_chunk_ = false;
};

}  // namespace

Result<void> TreeStore::unpack(const std::string& project, const std::string& id,
                               const fs::path& folder) const {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  if (!is_id(id)) {
    return Error{.code = ErrorCode::kInvalid, .what = shown(id) + " is not the id of a tree"};
  }
  MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kShared));
  MUSTER_TRY(const TreeRecord record, read_record(files, id));
  MUSTER_CHECK(touch(files.tree(id)));
  MUSTER_TRY(UniqueFd root, open_root(folder));
  const auto manifest = read_manifest(files, id, record.manifest_chunks);
  Unpacker unpacker(files, std::move(root));
  auto unpacked = manifest ? unpacker.unpack(*manifest) : Result<void>(manifest.error());
  // A tree that lacks a chunk is removed, so that clients send it again.
  const bool lacks_list = !manifest && manifest.error().code == ErrorCode::kNotFound;
  if (lacks_list || unpacker.lacks_chunk()) ::unlink(files.tree(id).c_str());
  return unpacked;
}

}  // namespace muster::workspace
