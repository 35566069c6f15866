#include "workspace/small_archive.h"

#include <algorithm>
#include <array>
#include <cerrno>

#include "workspace/libarchive_handle.h"

namespace muster::workspace {

using base::Error;
using base::ErrorCode;
using base::Result;

namespace {

constexpr mode_t kPermissions = 07777;

mode_t entry_type(const ArchiveEntry& entry) {
  if (!entry.link.empty()) return AE_IFLNK;
  return entry.is_folder ? AE_IFDIR : AE_IFREG;
}

void write_entry(archive* tar, const ArchiveEntry& entry) {
  const EntryHandle made(::archive_entry_new());
  const bool is_file = entry_type(entry) == AE_IFREG;
  ::archive_entry_copy_pathname(made.get(), entry.path.c_str());
  ::archive_entry_set_filetype(made.get(), entry_type(entry));
  ::archive_entry_set_perm(made.get(), entry.mode & kPermissions);
  ::archive_entry_set_uid(made.get(), entry.uid);
  ::archive_entry_set_gid(made.get(), entry.gid);
  ::archive_entry_set_mtime(made.get(), 0, 0);
  ::archive_entry_set_size(made.get(), is_file ? static_cast<int64_t>(entry.content.size()) : 0);
  if (!entry.link.empty()) ::archive_entry_copy_symlink(made.get(), entry.link.c_str());
  ::archive_write_header(tar, made.get());
  if (is_file) ::archive_write_data(tar, entry.content.data(), entry.content.size());
}

/// "./a/b/" -> "a/b"
std::string plain_path(std::string_view path) {
  while (path.starts_with("./")) path.remove_prefix(2);
  while (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return std::string(path);
}

std::string text_of(const char* text) {
  return text == nullptr ? "" : text;
}

Error unreadable(archive* tar) {
  return {.code = ErrorCode::kInvalid, .what = "the archive cannot be read: " + last_words(tar)};
}

Error too_much(size_t most) {
  return {.code = ErrorCode::kExhausted,
          .what = "the archive contains more than " + std::to_string(most) + " bytes"};
}

/// Appends the content of the entry that was read last.
Result<void> read_content(archive* tar, std::string& content, size_t most) {
  std::array<char, 16 << 10> buffer;
  while (true) {
    const la_ssize_t count = ::archive_read_data(tar, buffer.data(), buffer.size());
    if (count < 0) return unreadable(tar);
    if (count == 0) return {};
    if (static_cast<size_t>(count) > most - content.size()) return too_much(most);
    content.append(buffer.data(), static_cast<size_t>(count));
  }
}

/// The entry without its content.
ArchiveEntry entry_of(archive_entry* read) {
  return {.path = plain_path(text_of(::archive_entry_pathname(read))),
          .content = {},
          .mode = ::archive_entry_perm(read) & kPermissions,
          .is_folder = ::archive_entry_filetype(read) == AE_IFDIR,
          .uid = static_cast<uid_t>(::archive_entry_uid(read)),
          .gid = static_cast<gid_t>(::archive_entry_gid(read)),
          .link = text_of(::archive_entry_symlink(read))};
}

/// A hard link has no content of its own.
bool has_content(archive_entry* read) {
  if (::archive_entry_hardlink(read) != nullptr) return false;
  const auto kind = ::archive_entry_filetype(read);
  return kind == AE_IFREG || kind == AE_IFDIR || kind == AE_IFLNK;
}

}  // namespace

std::string make_archive(const std::vector<ArchiveEntry>& entries) {
  std::string out;
  const ArchiveHandle tar(::archive_write_new());
  ::archive_write_set_format_pax_restricted(tar.get());
  // Names are bytes, and must not be converted.
  ::archive_write_set_format_option(tar.get(), "pax", "hdrcharset", "BINARY");
  ::archive_write_set_bytes_per_block(tar.get(), 0);
  const auto take = [](archive*, void* whole, const void* bytes, size_t size) -> la_ssize_t {
    static_cast<std::string*>(whole)->append(static_cast<const char*>(bytes), size);
    return static_cast<la_ssize_t>(size);
  };
  ::archive_write_open(tar.get(), &out, nullptr, take, nullptr);
  for (const ArchiveEntry& entry : entries) write_entry(tar.get(), entry);
  ::archive_write_close(tar.get());
  return out;
}

Result<std::vector<ArchiveEntry>> read_archive(std::string_view tar, size_t most) {
  const ArchiveHandle handle(::archive_read_new());
  ::archive_read_support_format_tar(handle.get());
  ::archive_read_support_format_empty(handle.get());
  if (::archive_read_open_memory(handle.get(), tar.data(), tar.size()) != ARCHIVE_OK) {
    return unreadable(handle.get());
  }
  std::vector<ArchiveEntry> entries;
  size_t left = most;
  while (true) {
    archive_entry* read = nullptr;
    const int status = ::archive_read_next_header(handle.get(), &read);
    if (status == ARCHIVE_EOF) return entries;
    if (status < ARCHIVE_WARN) return unreadable(handle.get());
    if (!has_content(read)) continue;
    ArchiveEntry entry = entry_of(read);
    if (::archive_entry_filetype(read) == AE_IFREG) {
      auto content = read_content(handle.get(), entry.content, left);
      if (!content) {
        return content.error().code == ErrorCode::kExhausted ? too_much(most) : content.error();
      }
    }
    left -= entry.content.size();
    entries.push_back(std::move(entry));
  }
}

}  // namespace muster::workspace
