// Files on their way out of a task, or into it: a tar over a WebSocket (api/terminal.h).
//
// Blocking; I/O. Memory is bounded whatever is copied: neither end takes more than it has written.
#pragma once

#include <functional>
#include <string>

#include "base/result.h"
#include "cli/common/interrupts.h"
#include "http/websocket.h"
#include "workspace/copy_report.h"
#include "workspace/tar_pack.h"
#include "workspace/tar_unpack.h"

namespace muster::cli::files {

using base::Result;

/// `failed` counts what either end has left out.
using workspace::CopyTotals;

struct CopyHandlers {
  workspace::OnCopyNote on_note;  ///< of either end
  std::function<void(const CopyTotals&)> on_progress;
};

struct CopyEnd {
  CopyTotals totals;
  bool interrupted = false;  ///< by Ctrl-C: the file that was begun is not there
};

/// Unpacks what the task sends.
///
/// Errors: those of unpack_tar(), and what the other end said. kConflict: it was ended there.
/// kUnavailable: the connection broke.
Result<CopyEnd> copy_out(http::WebSocketClient& socket, const workspace::UnpackWish& wish,
                         Interrupts& interrupts, const CopyHandlers& handlers);

/// Sends what `packer` packs.
Result<CopyEnd> copy_in(http::WebSocketClient& socket, workspace::TarPacker& packer,
                        const CopyHandlers& handlers);

}  // namespace muster::cli::files
