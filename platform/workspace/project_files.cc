#include "workspace/project_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "workspace/path_text.h"

namespace muster::workspace {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

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

}  // namespace muster::workspace
