// Packs a file, or a folder with its content, as a tar (pax), piece by piece. If the given path is
// a link, it is followed; links below it stay links. Modes, times, hard links and holes are kept,
// owners are not.
//
// The first entry is named after the path's last part; the content of a folder follows. For a path
// that ends with "." or ".." (or is the root) the first entry is ".": the content of the folder
// without the folder.
//
// The size of a file is fixed when it is opened. If it grows meanwhile, only that many bytes are
// packed; if it shrinks, it is padded with zeros and reported. Files of /proc, /sys and control groups,
// which state no true size, are read whole first.
//
// Blocking; I/O; one owner. Holds a descriptor for each folder between the root and the latest
// place.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workspace/copy_report.h"

namespace muster::workspace {

/// The name of the first entry for `path`; "" for the content of a folder. Pure.
std::string copied_name(std::string_view path);

class TarPacker {
 public:
  /// kNotFound: the path does not exist. kInvalid: it is a device, a socket or a pipe. kRefused:
  /// no permission to read it.
  static base::Result<TarPacker> open(const std::string& path, OnCopyNote on_note);
  /// The owner written for every entry. Some programs that unpack the tar ignore it.
  void set_owner(uid_t user, gid_t group);
  /// A file that fails in its middle is padded with zeros and reported, as a file that shrinks is:
  /// for callers that would otherwise lose the other files.
  void pad_failed_files();
  TarPacker(TarPacker&&) noexcept;
  ~TarPacker();

  /// The next bytes, valid until the next call; empty at the end. Entries that cannot be read are
  /// reported and left out. Without pad_failed_files(), a file that fails in its middle is an error:
  /// an incomplete tar is better than a false copy, because the unpacker drops the file.
  base::Result<std::string_view> next();

  /// The totals so far.
  const CopyTotals& totals() const;

 private:
  class Packing;
  explicit TarPacker(std::unique_ptr<Packing> packing);
  std::unique_ptr<Packing> packing_;
};

}  // namespace muster::workspace
