// A file, or a folder with all that is in it, as a tar (pax), piece by piece. The named path may be
// a link and is followed; links below it stay links. Modes, times, hard links and holes are kept,
// owners are not.
//
// The first entry is named after the path's last part, and what lies in a folder follows it. Of a
// path that ends in "." or ".." (or is the root) it is ".": the folder's content, and not the
// folder.
//
// A file is as long as it was when its turn came: of one that grows meanwhile a beginning is
// copied, one that shrinks is filled up with zeros, and told.
//
// Blocking; I/O; one owner. Holds a descriptor for each folder between the root and the last place.
#pragma once

#include <sys/types.h>

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workspace/copy_report.h"

namespace muster::workspace {

/// What the first entry of that path is named; "" for a folder's content. Pure.
std::string copied_name(std::string_view path);

class TarPacker {
 public:
  /// kNotFound: there is no such path. kInvalid: it is a device, a socket or a fifo. kRefused: it
  /// must not be read.
  static base::Result<TarPacker> open(const std::string& path, OnCopyNote on_note);
  /// Of everything in it: whose it is to be, where whoever unpacks it heeds that.
  void set_owner(uid_t user, gid_t group);
  TarPacker(TarPacker&&) noexcept;
  ~TarPacker();

  /// The next bytes, valid until the next call; empty: that was all. Entries that cannot be read
  /// are told, and left out.
  base::Result<std::string_view> next();

  /// So far.
  const CopyTotals& totals() const;

 private:
  class Packing;
  explicit TarPacker(std::unique_ptr<Packing> packing);
  std::unique_ptr<Packing> packing_;
};

}  // namespace muster::workspace
