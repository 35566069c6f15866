// A tar becomes files again, below one folder and nowhere else, whatever the tar says: it may come
// from a task that is hostile. Each name is opened from its folder's descriptor and no link is
// followed on the way; a file appears under its name once it is whole; modes lose set-user-ID and
// the like, owners are not heeded, and devices are not made.
//
// Where the root of the tar goes, as cp -r has it:
//
//   `target` is      a file in the tar      a folder                its content (root ".")
//   a folder         target/NAME            target/NAME, merged     target, merged
//   a file           takes its place        kConflict               kConflict
//   not there        becomes target         becomes target          becomes target
//   not there, "/"   kNotFound              becomes target          becomes target
//   not there, "/."  kNotFound              kNotFound               kNotFound
//
// and the folder that target lies in must be there. A link at `target` that leads to a folder is
// followed; any other is replaced.
//
// Blocking; I/O.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "workspace/copy_report.h"

namespace muster::workspace {

struct UnpackWish {
  std::string target;
  /// What the root must be named, as copied_name() has it: who sends has no say in that. Nothing:
  /// it is named by the tar.
  std::optional<std::string> name = {};
};

/// The next bytes, valid until the next call; empty: that was all.
using ReadTar = std::function<base::Result<std::string_view>()>;

struct UnpackHandlers {
  OnCopyNote on_note;  ///< of entries that are left out; the others are unpacked
  std::function<void(const CopyTotals&)> on_progress = {};
};

/// Of a tar without entries nothing is made.
///
/// Errors: what `read` said. kInvalid: it is no tar, or has an entry that leads elsewhere.
/// kUnavailable: it breaks off. kExhausted: the disk is full. kNotFound, kConflict, kRefused: about
/// the target.
base::Result<CopyTotals> unpack_tar(const ReadTar& read, const UnpackWish& wish,
                                    const UnpackHandlers& handlers);

}  // namespace muster::workspace
