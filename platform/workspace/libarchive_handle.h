// Owning handles for libarchive's objects, and the text of its last error.
//
// Only .cc files that call libarchive include this header.
#pragma once

#include <archive.h>
#include <archive_entry.h>

#include <memory>
#include <string>

namespace muster::workspace {

struct FreeArchive {
  void operator()(archive* handle) const { ::archive_free(handle); }
};
using ArchiveHandle = std::unique_ptr<archive, FreeArchive>;

struct FreeEntry {
  void operator()(archive_entry* entry) const { ::archive_entry_free(entry); }
};
using EntryHandle = std::unique_ptr<archive_entry, FreeEntry>;

inline std::string last_words(archive* handle) {
  const char* const words = ::archive_error_string(handle);
  return words != nullptr ? words : "no reason given";
}

}  // namespace muster::workspace
