// cp: files out of tasks, and into them.
#include <algorithm>
#include <iostream>
#include <utility>

#include "cli/commands.h"
#include "cli/copy_session.h"
#include "cli/progress_bar.h"
#include "cli/report.h"
#include "cli/terminal.h"
#include "workspace/path_text.h"

namespace muster::cli {

namespace {

using workspace::CopyNote;

std::string amount_of(const CopyTotals& totals) {
  return workspace::count_text(totals.files, "file", "files") + ", " +
         workspace::size_text(totals.bytes);
}

class Copying {
 public:
  Copying(Connection& connection, const CopyCommand& command)
      : connection_(connection), command_(command), to_(command.to) {
    // Several go below one folder, which must be there: "x/." is a folder or nothing.
    if (command.from.size() > 1) to_.path += "/.";
  }

  Result<int> run() {
    int code = kExitDone;
    for (const CopyPlace& from : command_.from) {
      const auto copied = from.is_here() ? send(from) : fetch(from);
      progress_.clear();
      if (interrupted_) return kExitInterrupted;
      if (!copied && command_.from.size() == 1) return copied.error();
      if (!copied) std::cerr << safe_lines(error_text(copied.error())) << std::flush;
      const int its_code = copied ? kExitDone : exit_code_of(copied.error());
      if (code == kExitDone) code = its_code;
    }
    std::cerr << "muster: copied " << amount_of(all_);
    if (all_.failed > 0) {
      std::cerr << "; " << workspace::count_text(all_.failed, "entry was not", "entries were not")
                << ", as said above";
    }
    std::cerr << std::endl;
    return code == kExitDone && all_.failed > 0 ? kExitFailed : code;
  }

 private:
  Result<void> fetch(const CopyPlace& from) {
    const api::CopyRequest request{.task = from.task, .path = from.path};
    MUSTER_TRY(const auto socket, open(from.job, request));
    Interrupts interrupts;
    return add(copy_out(*socket, {.target = to_.path, .name = workspace::copied_name(from.path)},
                        interrupts, handlers()));
  }

  Result<void> send(const CopyPlace& from) {
    const CopyHandlers handlers = this->handlers();
    MUSTER_TRY(workspace::TarPacker packer,
               workspace::TarPacker::open(from.path, handlers.on_note));
    const api::CopyRequest request{.task = to_.task, .path = to_.path, .into = true};
    MUSTER_TRY(const auto socket, open(to_.job, request));
    return add(copy_in(*socket, packer, handlers));
  }

  Result<std::unique_ptr<http::WebSocketClient>> open(const std::string& job,
                                                      const api::CopyRequest& request) {
    return connection_.call([&](api::Client& client) { return client.copy(job, request); });
  }

  Result<void> add(Result<CopyEnd> copied) {
    if (!copied) return std::move(copied).error();
    interrupted_ = copied->interrupted;
    all_.files += copied->totals.files;
    all_.bytes += copied->totals.bytes;
    all_.failed += copied->totals.failed;
    return {};
  }

  CopyHandlers handlers() {
    return {.on_note =
                [this](const CopyNote& note) {
                  progress_.clear();
                  const bool skipped = note.kind == CopyNote::Kind::kSkipped;
                  std::cerr << "muster: " << safe_lines(note.text) << (skipped ? ": skipped" : "")
                            << std::endl;
                },
            .on_progress =
                [this](const CopyTotals& totals) {
                  CopyTotals so_far = all_;
                  so_far.files += totals.files;
                  so_far.bytes += totals.bytes;
                  progress_.show("copying", amount_of(so_far));
                }};
  }

  Connection& connection_;
  const CopyCommand& command_;
  CopyPlace to_;
  ProgressBar progress_;
  CopyTotals all_;
  bool interrupted_ = false;
};

}  // namespace

Result<int> execute(const CopyCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  return Copying(connection, command).run();
}

}  // namespace muster::cli
