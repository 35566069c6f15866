#include "workspace/tree_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <unordered_map>

#include "base/files.h"
#include "workspace/path_text.h"
#include "workspace/store_files.h"

namespace muster::workspace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

Error no_id(std::string_view text) {
  return {.code = ErrorCode::kInvalid,
          .what = shown(text.substr(0, 100)) + " is no id: that has 64 digits of hexadecimal"};
}

Result<void> check_ids(const std::vector<ChunkId>& ids) {
  const auto wrong = std::find_if_not(ids.begin(), ids.end(), is_id);
  if (wrong != ids.end()) return no_id(*wrong);
  return {};
}

/// Whether the chunk is there and, as far as its size tells, whole. An error where it is whole, but
/// not what the list of files says.
Result<bool> has_chunk(const ProjectFiles& files, const ChunkId& id, size_t bytes) {
  struct stat status{};
  if (::stat(files.chunk(id).c_str(), &status) != 0) {
    if (errno == ENOENT) return false;
    return base::system_error("cannot look at chunk " + id, errno);
  }
  if (static_cast<size_t>(status.st_size) == bytes) return true;
  // A crash cut it short, or the list is wrong.
  auto content = read_checked(files, id);
  if (!content && content.error().code == ErrorCode::kNotFound) return false;
  if (!content) return std::move(content).error();
  return Error{.code = ErrorCode::kInvalid,
               .what = "chunk " + id + " has " + std::to_string(content->size()) +
                       " bytes, and the list of files says " + std::to_string(bytes)};
}

Result<void> check_chunks(const ProjectFiles& files, const Manifest& manifest) {
  std::unordered_map<std::string_view, size_t> seen;
  size_t missing = 0;
  ChunkId first;
  for (const Entry& entry : manifest.entries) {
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
  return Error{.code = ErrorCode::kNotFound,
               .what = std::to_string(missing) + " of " +
                       count_text(seen.size(), "chunk", "chunks") +
                       " of the files are not here; the first is " + first,
               .advice = "ask which are missing, send them, and have the files kept again"};
}

/// One call for all chunks, which were written without waiting for the disk: an fsync for each
/// would take minutes where there are many small files. It waits for what others write to that
/// disk, too, once for a tree. What a crash before it leaves of a chunk is found by its size or its
/// hash.
Result<void> sync_store(const fs::path& store) {
  const UniqueFd folder(::open(store.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder && ::syncfs(folder.get()) == 0) return {};
  return disk_error("cannot write " + shown(store.native()) + " to the disk", errno);
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
    // Young again, so that it is still there when its tree is kept.
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
                         ", and this server takes at most " + size_text(most_bytes_),
                 .advice = "leave out what the job does not need, by a line in .gitignore"};
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

}  // namespace muster::workspace
