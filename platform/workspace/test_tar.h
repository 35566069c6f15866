// For tests: tars with arbitrary entries, and the content of a folder as text.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "workspace/libarchive_handle.h"
#include "workspace/tar_pack.h"
#include "workspace/tar_unpack.h"

namespace muster::workspace {

/// The lines of tree_of().
using Lines = std::vector<std::string>;

inline void write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

inline std::string text_of(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Entries in any order and of any kind.
class TarOf {
 public:
  TarOf() {
    ::archive_write_set_format_pax(tar_.get());
    ::archive_write_set_bytes_per_block(tar_.get(), 0);
    const auto take = [](archive*, void* self, const void* bytes, size_t size) -> la_ssize_t {
      static_cast<TarOf*>(self)->bytes_.append(static_cast<const char*>(bytes), size);
      return static_cast<la_ssize_t>(size);
    };
    ::archive_write_open(tar_.get(), this, nullptr, take, nullptr);
  }

  TarOf& folder(const std::string& name, int mode = 0755) { return add(name, AE_IFDIR, mode, ""); }
  TarOf& file(const std::string& name, const std::string& text, int mode = 0644) {
    return add(name, AE_IFREG, mode, text);
  }
  TarOf& device(const std::string& name) { return add(name, AE_IFCHR, 0666, ""); }
  TarOf& link(const std::string& name, const std::string& target) {
    return add(name, AE_IFLNK, 0777, "", target);
  }
  TarOf& hard_link(const std::string& name, const std::string& target) {
    return add(name, AE_IFREG, 0644, "", "", target);
  }

  std::string bytes() {
    ::archive_write_close(tar_.get());
    return bytes_;
  }

 private:
  TarOf& add(const std::string& name, unsigned type, int mode, const std::string& text,
             const std::string& link = "", const std::string& hard_link = "") {
    const EntryHandle entry(::archive_entry_new());
    ::archive_entry_copy_pathname(entry.get(), name.c_str());
    ::archive_entry_set_filetype(entry.get(), type);
    ::archive_entry_set_perm(entry.get(), static_cast<mode_t>(mode));
    ::archive_entry_set_size(entry.get(), static_cast<la_int64_t>(text.size()));
    if (!link.empty()) ::archive_entry_copy_symlink(entry.get(), link.c_str());
    if (!hard_link.empty()) ::archive_entry_copy_hardlink(entry.get(), hard_link.c_str());
    ::archive_write_header(tar_.get(), entry.get());
    ::archive_write_data(tar_.get(), text.data(), text.size());
    return *this;
  }

  std::string bytes_;
  ArchiveHandle tar_{::archive_write_new()};
};

struct Unpacked {
  base::Result<CopyTotals> totals = CopyTotals{};
  std::vector<std::string> notes;
};

/// Read in pieces of this many bytes.
inline Unpacked unpack(const std::string& tar, const UnpackRequest& request, size_t piece = 1000) {
  Unpacked unpacked;
  size_t at = 0;
  const ReadTar read = [&]() -> base::Result<std::string_view> {
    const std::string_view next = std::string_view(tar).substr(at, piece);
    at += next.size();
    return next;
  };
  unpacked.totals = unpack_tar(read, request, {.on_note = [&](const CopyNote& note) {
                                 unpacked.notes.push_back(to_line(note));
                               }});
  return unpacked;
}

struct Packed {
  base::Result<std::string> tar = std::string();
  std::vector<std::string> notes;
  CopyTotals totals;
};

inline Packed pack(const std::filesystem::path& path) {
  Packed packed;
  auto packer =
      TarPacker::open(path, [&](const CopyNote& note) { packed.notes.push_back(to_line(note)); });
  if (!packer) packed.tar = packer.error();
  if (!packer) return packed;
  while (true) {
    const auto piece = packer->next();
    if (!piece) packed.tar = piece.error();
    if (!piece || piece->empty()) break;
    *packed.tar += *piece;
  }
  packed.totals = packer->totals();
  return packed;
}

/// "a/ 755", "a/f 644 'text'", "a/l -> target", in order.
inline Lines tree_of(const std::filesystem::path& folder) {
  Lines lines;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    const std::string name = entry.path().lexically_relative(folder);
    struct stat status{};
    ::lstat(entry.path().c_str(), &status);
    std::ostringstream mode;
    mode << " " << std::oct << (status.st_mode & 07777);
    if (S_ISLNK(status.st_mode)) {
      lines.push_back(name + " -> " + std::filesystem::read_symlink(entry.path()).string());
    } else if (S_ISDIR(status.st_mode)) {
      lines.push_back(name + "/" + mode.str());
    } else {
      lines.push_back(name + mode.str() + " '" + text_of(entry.path()) + "'");
    }
  }
  std::sort(lines.begin(), lines.end());
  return lines;
}

}  // namespace muster::workspace
