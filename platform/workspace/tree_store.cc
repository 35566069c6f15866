#include "workspace/tree_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "base/units.h"
#include "workspace/beneath.h"
#include "workspace/path_text.h"

namespace muster::workspace {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

// --- the files of the store: their places, how they are written and read back

/// The folder of one project. Files are named by their content; incomplete files are in `incoming`.
class ProjectFiles {
 public:
  /// kInvalid: `project` is not a valid name of a project, so it must not become a path.
  static Result<ProjectFiles> of(const std::filesystem::path& store, const std::string& project);

  const std::filesystem::path& folder() const { return folder_; }
  std::filesystem::path chunks() const { return folder_ / "chunks"; }
  std::filesystem::path trees() const { return folder_ / "trees"; }
  std::filesystem::path incoming() const { return folder_ / "incoming"; }
  std::filesystem::path chunk(const ChunkId& id) const { return chunks() / id.substr(0, 2) / id; }
  std::filesystem::path tree(const std::string& id) const { return trees() / id; }

 private:
  explicit ProjectFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

  std::filesystem::path folder_;
};

/// The content of the file of a tree. The tree's manifest is itself stored as chunks.
struct TreeRecord {
  TreeInfo info;
  std::vector<ChunkId> manifest_chunks;
};

std::string encode_record(const TreeRecord& record);

/// kNotFound: the store has no such tree.
Result<TreeRecord> read_record(const ProjectFiles& files, const std::string& id);

/// The content of a chunk. kNotFound: the chunk is missing or damaged. A damaged chunk is removed,
/// so that missing() lists it and the client sends it again.
Result<std::string> read_checked(const ProjectFiles& files, const ChunkId& id);

/// The manifest in these chunks. Errors: as read_checked() and decode_manifest(); kInvalid: it is
/// the manifest of another tree.
Result<Manifest> read_manifest(const ProjectFiles& files, const std::string& id,
                               const std::vector<ChunkId>& chunks);

/// Creates `target` with all of `content`, or not at all. `durable`: the content and the name are
/// synced to disk before the return.
Result<void> put_whole(const ProjectFiles& files, const std::filesystem::path& target,
                       std::string_view content, bool durable);

/// Sets the file's time of use to now. False: the file does not exist.
Result<bool> touch(const std::filesystem::path& file);

enum class Hold { kShared, kAlone };

/// Locks the store: kShared for all uses, kAlone to remove files. An empty descriptor is returned
/// if the store does not exist yet.
Result<base::UniqueFd> hold_store(const std::filesystem::path& store, Hold hold);

/// Creates the store if necessary and takes the shared lock.
Result<base::UniqueFd> make_and_hold_store(const std::filesystem::path& store);

/// The error of a system call; for a full disk, with advice.
base::Error disk_error(const std::string& what, int number);

namespace {

constexpr const char* kFreeSpace =
    "free space on that disk, then try again: no stored file is lost";

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

/// One syncfs for all chunks of a tree, because an fsync for each would take minutes with many
/// small files. It also waits for writes of other programs to that disk. A chunk that a crash
/// truncated before the sync is detected by its size or hash.
Result<void> sync_store(const fs::path& store) {
  const UniqueFd folder(::open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::syncfs(folder.get()) == 0) return {};
  return disk_error("cannot write " + shown(store.native()) + " to the disk", errno);
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

TreeStore::TreeStore(fs::path folder, int64_t most_bytes)
    : folder_(std::move(folder)), most_bytes_(most_bytes) {}

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
  MUSTER_CHECK(leave_room(folder_));
  MUSTER_CHECK(put_whole(files, file, content, /*durable=*/false));
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
  MUSTER_TRY(const Manifest manifest, read_manifest(files, id, manifest_chunks));
  const TreeRecord record{.info = {.id = id, .bytes = manifest.bytes(), .files = manifest.files()},
                          .manifest_chunks = manifest_chunks};
  if (record.info.bytes > most_bytes_) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the files have " + size_text(record.info.bytes) +
                         ", and this server accepts at most " + size_text(most_bytes_),
                 .advice = "exclude files that the job does not need, by a line in .gitignore"};
  }
  MUSTER_CHECK(check_chunks(files, manifest));
  MUSTER_CHECK(base::make_private_folder(files.trees()));
  MUSTER_CHECK(sync_store(folder_));
  MUSTER_CHECK(put_whole(files, files.tree(id), encode_record(record), /*durable=*/true));
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

Result<void> TreeStore::forget_project(const std::string& project) {
  MUSTER_TRY(const ProjectFiles files, ProjectFiles::of(folder_, project));
  MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kAlone));
  return base::remove_tree(files.folder());
}

namespace {

constexpr std::string_view kKeptHeading = "muster-kept 1";
constexpr size_t kMostRecordBytes = 1 << 20;

/// Whether the name is a DNS label, as names of projects must be.
bool is_project_name(std::string_view name) {
  constexpr size_t kLongest = 63;
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !name.empty() && name.size() <= kLongest && plain(name.front()) && plain(name.back()) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return plain(c) || c == '-'; });
}

Error damaged_record(const fs::path& file) {
  return {.code = ErrorCode::kInternal,
          .what = shown(file.native()) + " is damaged",
          .advice = "remove it, and send the workspace again"};
}

Result<void> write_new(int fd, std::string_view content, const fs::path& target, bool durable) {
  while (!content.empty()) {
    const ssize_t count = ::write(fd, content.data(), content.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return disk_error("cannot write " + shown(target.native()), errno);
    content.remove_prefix(static_cast<size_t>(count));
  }
  if (durable && ::fsync(fd) != 0) {
    return disk_error("cannot write " + shown(target.native()) + " to the disk", errno);
  }
  return {};
}

Result<void> sync_folder(const fs::path& folder) {
  const UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (fd && ::fsync(fd.get()) == 0) return {};
  return disk_error("cannot write folder " + shown(folder.native()) + " to the disk", errno);
}

Result<UniqueFd> hold(UniqueFd file, const fs::path& store, int operation) {
  while (::flock(file.get(), operation) != 0) {
    if (errno != EINTR) {
      return base::system_error("cannot lock " + shown(store.native()), errno);
    }
  }
  return file;
}

fs::path lock_of(const fs::path& store) {
  return store / ".lock";
}

}  // namespace

Error disk_error(const std::string& what, int number) {
  Error error = base::system_error(what, number);
  if (number == ENOSPC || number == EDQUOT) {
    error.advice = kFreeSpace;
  }
  return error;
}

Result<ProjectFiles> ProjectFiles::of(const fs::path& store, const std::string& project) {
  if (is_project_name(project)) return ProjectFiles(store / project);
  return Error{.code = ErrorCode::kInvalid,
               .what = shown(project) + " is not the name of a project",
               .advice = "use a-z, 0-9 and '-', with a letter or digit at both ends"};
}

std::string encode_record(const TreeRecord& record) {
  std::string text(kKeptHeading);
  text += "\n" + std::to_string(record.info.bytes) + " " + std::to_string(record.info.files) + "\n";
  for (const ChunkId& chunk : record.manifest_chunks) text += chunk + "\n";
  return text;
}

Result<TreeRecord> read_record(const ProjectFiles& files, const std::string& id) {
  const fs::path file = files.tree(id);
  auto text = base::read_file(file, kMostRecordBytes);
  if (!text && text.error().code == ErrorCode::kNotFound) {
    return Error{
        .code = ErrorCode::kNotFound,
        .what =
            "there are no files " + id + " in project '" + files.folder().filename().string() + "'",
        .advice =
            "send the workspace again: files that no job has used for a long time are removed"};
  }
  if (!text) return std::move(text).error();
  const std::vector<std::string> lines = base::split(*text, '\n');
  if (lines.size() < 3 || lines[0] != kKeptHeading) return damaged_record(file);
  const std::vector<std::string> sums = base::split(lines[1], ' ');
  TreeRecord record{.info = {.id = id}, .manifest_chunks = {lines.begin() + 2, lines.end()}};
  const auto bytes = base::number_of<int64_t>(sums.empty() ? "" : sums[0]);
  const auto count = base::number_of<size_t>(sums.size() != 2 ? "" : sums[1]);
  const auto& chunks = record.manifest_chunks;
  if (!bytes || !count || !std::all_of(chunks.begin(), chunks.end(), is_id)) {
    return damaged_record(file);
  }
  record.info.bytes = *bytes;
  record.info.files = *count;
  return record;
}

Result<std::string> read_checked(const ProjectFiles& files, const ChunkId& id) {
  const fs::path file = files.chunk(id);
  auto content = base::read_file(file, kChunkBytes);
  if (content && chunk_id(*content) == id) return content;
  const bool damaged = content || content.error().code == ErrorCode::kInvalid;
  if (!damaged && content.error().code != ErrorCode::kNotFound) return content;
  if (damaged) ::unlink(file.c_str());
  return Error{.code = ErrorCode::kNotFound,
               .what = "chunk " + id + (damaged ? " was damaged on the disk" : " is missing"),
               .advice = "send the workspace again, with all missing chunks"};
}

Result<Manifest> read_manifest(const ProjectFiles& files, const std::string& id,
                               const std::vector<ChunkId>& chunks) {
  std::string text;
  for (const ChunkId& chunk : chunks) {
    MUSTER_TRY(const std::string piece, read_checked(files, chunk));
    text += piece;
  }
  if (tree_id(text) != id) {
    return Error{.code = ErrorCode::kInvalid,
                 .what = "the list of files is not that of " + id,
                 .advice = "send all its chunks, in order"};
  }
  return decode_manifest(text);
}

Result<void> put_whole(const ProjectFiles& files, const fs::path& target, std::string_view content,
                       bool durable) {
  for (const fs::path& folder : {files.incoming(), target.parent_path()}) {
    MUSTER_CHECK(base::make_private_folder(folder));
  }
  std::string temporary = files.incoming() / "XXXXXX";
  const UniqueFd fd(::mkostemp(temporary.data(), O_CLOEXEC));
  if (!fd) return disk_error("cannot write to " + shown(files.incoming().native()), errno);
  auto written = write_new(fd.get(), content, target, durable);
  if (written && ::rename(temporary.c_str(), target.c_str()) != 0) {
    written = disk_error("cannot write " + shown(target.native()), errno);
  }
  if (!written) {
    ::unlink(temporary.c_str());
    return written;
  }
  return durable ? sync_folder(target.parent_path()) : written;
}

Result<bool> touch(const fs::path& file) {
  if (::utimensat(AT_FDCWD, file.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) == 0) return true;
  if (errno == ENOENT) return false;
  return base::system_error("cannot use " + shown(file.native()), errno);
}

Result<UniqueFd> hold_store(const fs::path& store, Hold how) {
  UniqueFd file(::open(lock_of(store).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file && errno == ENOENT) return file;
  if (!file) return base::system_error("cannot open " + shown(lock_of(store).native()), errno);
  return hold(std::move(file), store, how == Hold::kAlone ? LOCK_EX : LOCK_SH);
}

Result<UniqueFd> make_and_hold_store(const fs::path& store) {
  MUSTER_CHECK(base::make_private_folder(store));
  UniqueFd file(::open(lock_of(store).c_str(), O_RDONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file) return disk_error("cannot open " + shown(lock_of(store).native()), errno);
  return hold(std::move(file), store, LOCK_SH);
}

// --- collecting unused trees and chunks

namespace {

using Used = std::set<std::pair<std::string, std::string>>;

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
  Collector(const ProjectFiles& files, std::string project, const Used& used, base::Time before)
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
        if (!has_.contains(chunk.filename().native())) MUSTER_CHECK(remove_if_old(chunk));
      }
    }
    return removed_;
  }

 private:
  Result<void> look_at_tree(const fs::path& tree) {
    const std::string id = tree.filename();
    if (!used_.contains({project_, id})) {
      MUSTER_TRY(const bool gone, remove_if_old(tree));
      if (gone) return {};
    }
    // If this fails, no chunk of the project is removed, because any of them may belong to the
    // tree.
    MUSTER_TRY(const TreeRecord record, read_record(files_, id));
    MUSTER_TRY(const Manifest manifest, read_manifest(files_, id, record.manifest_chunks));
    has_.insert(record.manifest_chunks.begin(), record.manifest_chunks.end());
    for (const ManifestEntry& entry : manifest.entries) {
      has_.insert(entry.chunks.begin(), entry.chunks.end());
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
  const Used& used_;
  base::Time before_;
  std::unordered_set<ChunkId> has_;
  int64_t removed_ = 0;
};

}  // namespace

Result<int64_t> TreeStore::collect(const Used& used, base::Time before) {
  MUSTER_TRY(const auto projects, items_of(folder_));
  int64_t removed = 0;
  std::optional<Error> first;
  for (const fs::path& folder : projects) {
    const std::string project = folder.filename();
    const auto files = ProjectFiles::of(folder_, project);
    if (!files) continue;  // the lock
    // Locked for each project, so that others wait for one project at most.
    MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kAlone));
    auto collected = Collector(*files, project, used, before).collect();
    if (collected) removed += *collected;
    // An error in one project does not prevent collecting in the others.
    if (!collected && !first) first = std::move(collected).error();
  }
  if (first) return *std::move(first);
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
