// Unpacks a tar below one folder and nowhere else, whatever the tar contains: it may come from a
// hostile task. Each name is opened from its folder's descriptor, and no link is followed on the
// way. A file gets its name only when it is complete. Modes lose set-user-ID and the like, owners
// are ignored, and devices are not created.
//
// Where the root of the tar goes (the rules of cp -r):
//
//   `target` is      a file in the tar      a folder                its content (root ".")
//   a folder         target/NAME            target/NAME, merged     target, merged
//   a file           replaces it            kConflict               kConflict
//   missing          becomes target         becomes target          becomes target
//   missing, "/"     kNotFound              becomes target          becomes target
//   missing, "/."    kNotFound              kNotFound               kNotFound
//
// The folder that contains the target must exist. A link at `target` to a folder is followed; any
// other link is replaced.
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

struct UnpackRequest {
  std::string target;
  /// The name that the root must have, as copied_name() gives it, so that the sender cannot choose
  /// it. nullopt: the name in the tar is used.
  std::optional<std::string> name = {};
};

/// Returns the next bytes, valid until the next call; empty at the end.
using ReadTar = std::function<base::Result<std::string_view>()>;

struct UnpackHandlers {
  OnCopyNote on_note;  ///< called for each entry that is left out; the other entries are unpacked
  std::function<void(const CopyTotals&)> on_progress = {};
};

/// A tar without entries creates nothing.
///
/// Errors: those of `read`. kInvalid: the input is not a tar, or an entry leads out of the target.
/// kUnavailable: the input is truncated. kExhausted: the disk is full. kNotFound, kConflict,
/// kRefused: about the target.
base::Result<CopyTotals> unpack_tar(const ReadTar& read, const UnpackRequest& request,
                                    const UnpackHandlers& handlers);

}  // namespace muster::workspace
