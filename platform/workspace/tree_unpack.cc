// A kept tree becomes files again. Part of TreeStore.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "workspace/beneath.h"
#include "workspace/path_text.h"
#include "workspace/store_files.h"
#include "workspace/tree_store.h"

namespace muster::workspace {

namespace fs = std::filesystem;
using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

/// Writes entries below a folder. The manifest was checked; that nothing leaves the folder does not
/// hang on it alone: every name is opened from its folder's descriptor, follows no link, and what
/// is made must be new.
class Unpacker {
 public:
  Unpacker(const ProjectFiles& files, UniqueFd folder)
      : files_(files), beneath_(std::move(folder)) {}

  Result<void> unpack(const Manifest& manifest) {
    for (const Entry& entry : manifest.entries) {
      if (entry.kind == Entry::Kind::kFolder) MUSTER_CHECK(make_folder(entry));
      if (entry.kind == Entry::Kind::kFile) MUSTER_CHECK(make_file(entry));
    }
    // Last: no link is there yet while files are made.
    for (const Entry& entry : manifest.entries) {
      if (entry.kind == Entry::Kind::kLink) MUSTER_CHECK(make_link(entry));
    }
    return {};
  }

  /// Whether unpack() failed because of that.
  bool lacks_chunk() const { return lacks_chunk_; }

 private:
  Result<void> make_folder(const Entry& entry) {
    const int parent = beneath_.parent_of(entry.path);
    if (parent < 0 || ::mkdirat(parent, name_of(entry.path).c_str(), 0755) != 0) {
      return failed(entry);
    }
    // The umask may have taken bits away.
    const int folder = beneath_.parent_of(entry.path + "/");
    return folder >= 0 && ::fchmod(folder, 0755) == 0 ? Result<void>() : failed(entry);
  }

  Result<void> make_file(const Entry& entry) {
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

  Result<void> make_link(const Entry& entry) {
    const int parent = beneath_.parent_of(entry.path);
    if (parent < 0 || ::symlinkat(entry.link.c_str(), parent, name_of(entry.path).c_str()) != 0) {
      return failed(entry);
    }
    return {};
  }

  static Result<void> write(int file, std::string_view content, const Entry& entry) {
    while (!content.empty()) {
      const ssize_t count = ::write(file, content.data(), content.size());
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) return failed(entry);
      content.remove_prefix(static_cast<size_t>(count));
    }
    return {};
  }

  static Error failed(const Entry& entry) {
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
    return Error{.code = ErrorCode::kInvalid, .what = shown(id) + " is no id of a tree"};
  }
  MUSTER_TRY(const UniqueFd held, hold_store(folder_, Hold::kShared));
  MUSTER_TRY(const TreeRecord record, read_record(files, id));
  MUSTER_CHECK(touch(files.tree(id)));
  MUSTER_TRY(UniqueFd root, open_root(folder));
  const auto manifest = read_manifest(files, id, record.manifest_chunks);
  Unpacker unpacker(files, std::move(root));
  auto unpacked = manifest ? unpacker.unpack(*manifest) : Result<void>(manifest.error());
  // A tree that lacks a chunk is none any more: who asks for it is to send it again.
  const bool lacks_list = !manifest && manifest.error().code == ErrorCode::kNotFound;
  if (lacks_list || unpacker.lacks_chunk()) ::unlink(files.tree(id).c_str());
  return unpacked;
}

}  // namespace muster::workspace
