#include "workspace/sources.h"

#include <locale.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/text.h"
#include "workspace/beneath.h"
#include "workspace/git_source.h"
#include "workspace/libarchive_handle.h"
#include "workspace/manifest.h"
#include "workspace/path_text.h"
#include "workspace/repository_url.h"

namespace muster::workspace {

namespace fs = std::filesystem;

using base::Error;
using base::ErrorCode;
using base::Fault;

namespace {

bool has_archive_name(const std::string& where) {
  constexpr std::array<std::string_view, 4> kEndings{".zip", ".tar", ".tar.gz", ".tgz"};
  const std::string name = base::lower_case(where);
  for (const std::string_view ending : kEndings) {
    if (name.ends_with(ending)) return true;
  }
  return false;
}

Result<SourceKind> kind_of_path(const WorkspaceSource& source, const fs::path& path) {
  std::error_code ignored;
  const bool is_folder = fs::is_directory(path, ignored);
  const bool is_archive = !is_folder && has_archive_name(source.where);
  if (!is_archive && fs::is_regular_file(path, ignored)) {
    return invalid_source("'" + source.where + "' is neither a folder nor an archive",
                          "give its folder, or a .zip, .tar or .tar.gz file");
  }
  if (!source.ref.empty()) {
    return invalid_source(
        "'" + source.where + "' is not a repository: it has no '" + source.ref + "'",
        "leave " + source.flags.ref + " out, or give file://" + path.string() +
            " if its full path is a git repository");
  }
  return is_archive ? SourceKind::kArchive : SourceKind::kFolder;
}

Error no_such(const std::string& kind, const WorkspaceSource& source, const fs::path& path) {
  return {.code = ErrorCode::kNotFound,
          .what = "there is no " + kind + " '" + source.where + "'",
          .advice = path == source.where ? "check the path, or give the URL of a repository"
                                         : "its full path is " + path.string() +
                                               "; check the path, or give the URL of a repository"};
}

Result<Fetched> fetch_folder(const WorkspaceSource& source, const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return no_such("folder", source, path);
  Fetched fetched;
  fetched.folder = path.filename() == "." ? path.parent_path() : path;
  return fetched;
}

Result<Fetched> fetch_archive(const WorkspaceSource& source, const fs::path& path,
                              int64_t most_bytes) {
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return no_such("archive", source, path);
  MUSTER_TRY(Fetched fetched, own_folder());
  MUSTER_CHECK(unpack_archive(path, fetched.folder, most_bytes));
  return fetched;
}

}  // namespace

Result<SourceKind> kind_of(const WorkspaceSource& source, const fs::path& current_folder) {
  if (source.where.empty()) {
    return invalid_source("the workspace is empty",
                          "give a folder, a .zip file, or the URL of a repository");
  }
  if (source.where.starts_with('-')) {
    return invalid_source("'" + source.where + "' is an option, not a workspace",
                          "give a folder, a .zip file, or the URL of a repository; for a folder of "
                          "that name, give ./" +
                              source.where);
  }
  std::error_code ignored;
  const fs::path path = current_folder / source.where;
  if (!is_address(source.where) || fs::exists(path, ignored)) return kind_of_path(source, path);
  MUSTER_CHECK(check_repository(source));
  return SourceKind::kRepository;
}

Result<Fetched> fetch(const WorkspaceSource& source, const fs::path& current_folder,
                      int64_t most_bytes,
                      const std::function<void(std::string_view)>& on_progress) {
  MUSTER_TRY(const SourceKind kind, kind_of(source, current_folder));
  switch (kind) {
    case SourceKind::kFolder:
      return fetch_folder(source, current_folder / source.where);
    case SourceKind::kArchive:
      return fetch_archive(source, current_folder / source.where, most_bytes);
    case SourceKind::kRepository:
      return fetch_repository(source, on_progress);
  }
  return invalid_source("unknown kind of workspace", "");
}

Result<Fetched> own_folder() {
  const char* const chosen = std::getenv("TMPDIR");
  const std::filesystem::path parent = chosen != nullptr && *chosen != '\0' ? chosen : "/tmp";
  // Resolved, because the path for unpacking must not contain links.
  std::error_code failed;
  const std::filesystem::path real = std::filesystem::canonical(parent, failed);
  if (failed) {
    return base::system_error(
        "cannot use the folder for temporary files, '" + parent.string() + "'", failed.value());
  }
  std::string name = (real / "muster-workspace-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    return base::system_error("cannot create a folder in '" + real.string() + "'", errno);
  }
  Fetched fetched;
  fetched.own = name;
  fetched.folder = fetched.own / "files";
  if (!std::filesystem::create_directory(fetched.folder, failed)) {
    return base::system_error("cannot create '" + fetched.folder.string() + "'", failed.value());
  }
  return fetched;
}

Fetched::Fetched(Fetched&& other) noexcept
    : folder(std::exchange(other.folder, {})),
      commit(std::exchange(other.commit, {})),
      note(std::exchange(other.note, {})),
      own(std::exchange(other.own, {})) {}

Fetched& Fetched::operator=(Fetched&& other) noexcept {
  std::swap(folder, other.folder);
  std::swap(commit, other.commit);
  std::swap(note, other.note);
  std::swap(own, other.own);
  return *this;
}

Fetched::~Fetched() {
  if (!own.empty()) static_cast<void>(base::remove_tree(own));
}

// --- archives: the first pass checks every entry and collects all faults; the second writes, and
// counts the bytes that come out, because the sizes that an archive declares may be wrong

namespace {

/// Sets a UTF-8 locale for this thread while it exists. libarchive converts names to the locale's
/// encoding, and in the C locale fails on every name that is not ASCII.
class Utf8Names {
 public:
  Utf8Names() : utf8_(::newlocale(LC_CTYPE_MASK, "C.UTF-8", nullptr)) {
    if (utf8_ != nullptr) before_ = ::uselocale(utf8_);
  }
  Utf8Names(const Utf8Names&) = delete;
  Utf8Names& operator=(const Utf8Names&) = delete;
  ~Utf8Names() {
    if (utf8_ == nullptr) return;
    ::uselocale(before_);
    ::freelocale(utf8_);
  }

 private:
  locale_t utf8_;
  locale_t before_ = nullptr;
};

using Handle = ArchiveHandle;

Error broken(const std::filesystem::path& file, archive* handle) {
  return {.code = ErrorCode::kInvalid,
          .what = "the archive '" + file.string() + "' cannot be read: " + last_words(handle),
          .advice = "check that it is complete, and a .zip, .tar or .tar.gz file"};
}

Error too_large(const std::filesystem::path& file, int64_t most_bytes) {
  return {.code = ErrorCode::kInvalid,
          .what = "the archive '" + file.string() + "' contains more than " + size_text(most_bytes),
          .advice = "remove data from it, or raise the limit: MUSTER_WORKSPACE_LIMIT=2G"};
}

Error too_many(const std::filesystem::path& file) {
  return {.code = ErrorCode::kInvalid,
          .what = "the archive '" + file.string() + "' contains more than " +
                  count_text(kMostEntries, "entry", "entries"),
          .advice = "remove some of them"};
}

Result<Handle> open_archive(const std::filesystem::path& file) {
  constexpr size_t kBlockBytes = 64 << 10;
  Handle handle(::archive_read_new());
  ::archive_read_support_filter_gzip(handle.get());
  ::archive_read_support_format_zip(handle.get());
  ::archive_read_support_format_tar(handle.get());
  if (::archive_read_open_filename(handle.get(), file.c_str(), kBlockBytes) != ARCHIVE_OK) {
    return broken(file, handle.get());
  }
  return handle;
}

/// The next entry; nullptr at the end.
Result<archive_entry*> next_entry(const std::filesystem::path& file, archive* handle) {
  archive_entry* entry = nullptr;
  const int status = ::archive_read_next_header(handle, &entry);
  if (status == ARCHIVE_EOF) return nullptr;
  if (status < ARCHIVE_WARN) return broken(file, handle);
  return entry;
}

/// place_beneath(), but nullopt for a path that is invalid in a tree.
std::optional<std::string> tree_place_of(std::string_view name) {
  auto place = place_beneath(name);
  if (place && !place->empty() && !is_tree_path(*place)) return std::nullopt;
  return place;
}

/// Why an entry must not be unpacked; empty: it may be.
std::string fault_of(archive_entry* entry, const std::string& place) {
  if (const char* const link = ::archive_entry_hardlink(entry)) {
    const auto target = tree_place_of(link);
    return target && !target->empty() ? "" : "is a link to " + shown(link) + ", out of the archive";
  }
  if (::archive_entry_is_encrypted(entry) != 0) return "is encrypted";
  switch (::archive_entry_filetype(entry)) {
    case AE_IFREG:
    case AE_IFDIR:
      return "";
    case AE_IFLNK: {
      const char* const link = ::archive_entry_symlink(entry);
      if (link == nullptr) return "is a link without a target";
      return link_stays_inside(place, link)
                 ? ""
                 : "is a link to " + shown(link) + ", out of the archive";
    }
    default:
      return "is neither a file nor a folder nor a link";
  }
}

/// Keeps the first faults and counts the rest.
class Faults {
 public:
  void add(const char* name, std::string what) {
    constexpr size_t kMost = 20;
    if (++count_ <= kMost)
      faults_.push_back({name != nullptr ? shown(name) : "?", std::move(what)});
  }
  Result<void> as_result(const std::filesystem::path& file) && {
    if (count_ == 0) return {};
    if (count_ > faults_.size()) {
      faults_.push_back({"and", std::to_string(count_ - faults_.size()) + " more"});
    }
    return Error{
        .code = ErrorCode::kInvalid,
        .what = "the archive '" + file.string() + "' contains entries that a workspace cannot have",
        .advice = "unpack it, remove those entries, and give the folder",
        .faults = std::move(faults_)};
  }

 private:
  size_t count_ = 0;
  std::vector<Fault> faults_;
};

Result<void> look_through(const std::filesystem::path& file, int64_t most_bytes) {
  MUSTER_TRY(const Handle handle, open_archive(file));
  Faults faults;
  int64_t left = most_bytes;
  size_t entries = 0;
  while (true) {
    MUSTER_TRY(archive_entry* const entry, next_entry(file, handle.get()));
    if (entry == nullptr) break;
    if (++entries > kMostEntries) return too_many(file);
    const int64_t bytes = std::max<int64_t>(::archive_entry_size(entry), 0);
    if (bytes > left) return too_large(file, most_bytes);
    left -= bytes;
    const char* const name = ::archive_entry_pathname(entry);
    const auto place = name != nullptr ? tree_place_of(name) : std::nullopt;
    std::string fault = place ? fault_of(entry, *place) : "leads out of the archive";
    if (name == nullptr) fault = "has an invalid name";
    if (!fault.empty()) faults.add(name, std::move(fault));
  }
  return std::move(faults).as_result(file);
}

// --- the second pass

class ArchiveUnpacking {
 public:
  ArchiveUnpacking(const std::filesystem::path& file, const std::filesystem::path& folder,
                   int64_t most_bytes)
      : file_(file), folder_(folder), most_bytes_(most_bytes), left_(most_bytes) {
    ::archive_write_disk_set_options(disk_.get(), ARCHIVE_EXTRACT_SECURE_SYMLINKS |
                                                      ARCHIVE_EXTRACT_SECURE_NODOTDOT |
                                                      ARCHIVE_EXTRACT_UNLINK);
  }

  Result<void> unpack_all() {
    MUSTER_TRY(const Handle handle, open_archive(file_));
    while (true) {
      MUSTER_TRY(archive_entry* const entry, next_entry(file_, handle.get()));
      if (entry == nullptr) break;
      MUSTER_CHECK(unpack(handle.get(), entry));
    }
    if (::archive_write_close(disk_.get()) < ARCHIVE_WARN) return cannot_write();
    return {};
  }

 private:
  Result<void> unpack(archive* handle, archive_entry* entry) {
    const char* const name = ::archive_entry_pathname(entry);
    const auto place = name != nullptr ? tree_place_of(name) : std::nullopt;
    // The file may have been replaced since the first pass.
    if (!place || !fault_of(entry, *place).empty()) return broken(file_, handle);
    if (place->empty()) return {};
    set_place(entry, *place);
    if (::archive_write_header(disk_.get(), entry) < ARCHIVE_WARN) return cannot_write();
    MUSTER_CHECK(copy_content(handle));
    if (::archive_write_finish_entry(disk_.get()) < ARCHIVE_WARN) return cannot_write();
    return {};
  }

  /// Keeps of the mode only whether the file is executable.
  void set_place(archive_entry* entry, const std::string& place) const {
    const bool executable = (::archive_entry_perm(entry) & 0100) != 0;
    const bool is_folder = ::archive_entry_filetype(entry) == AE_IFDIR;
    ::archive_entry_set_perm(entry, is_folder || executable ? 0755 : 0644);
    ::archive_entry_set_pathname(entry, (folder_ / place).c_str());
    if (const char* const link = ::archive_entry_hardlink(entry)) {
      ::archive_entry_set_hardlink(entry, (folder_ / *tree_place_of(link)).c_str());
    }
  }

  Result<void> copy_content(archive* handle) {
    int64_t size = 0;
    while (true) {
      const void* block = nullptr;
      size_t bytes = 0;
      la_int64_t offset = 0;
      const int status = ::archive_read_data_block(handle, &block, &bytes, &offset);
      if (status == ARCHIVE_EOF) break;
      if (status < ARCHIVE_WARN) return broken(file_, handle);
      size = std::max(size, offset + static_cast<int64_t>(bytes));
      if (size > left_) return too_large(file_, most_bytes_);
      if (::archive_write_data_block(disk_.get(), block, bytes, offset) < ARCHIVE_WARN) {
        return cannot_write();
      }
    }
    left_ -= size;
    return {};
  }

  Error cannot_write() const {
    const int number = ::archive_errno(disk_.get());
    if (number == ENOSPC || number == EDQUOT) {
      Error error = base::system_error("cannot unpack '" + file_.string() + "'", number);
      error.advice = "set TMPDIR to a folder on a larger disk";
      return error;
    }
    return {.code = ErrorCode::kInvalid,
            .what = "the archive '" + file_.string() +
                    "' cannot be unpacked: " + last_words(disk_.get()),
            .advice = "unpack it, and give the folder"};
  }

  const std::filesystem::path& file_;
  const std::filesystem::path& folder_;
  const int64_t most_bytes_;
  int64_t left_;
  Handle disk_{::archive_write_disk_new()};
};

}  // namespace

Result<void> unpack_archive(const std::filesystem::path& archive,
                            const std::filesystem::path& folder, int64_t most_bytes) {
  const Utf8Names names;
  MUSTER_CHECK(look_through(archive, most_bytes));
  return ArchiveUnpacking(archive, folder, most_bytes).unpack_all();
}

}  // namespace muster::workspace
