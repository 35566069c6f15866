// cp: copies files from tasks and to tasks.

#include <sys/eventfd.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <iostream>
#include <optional>
#include <utility>

#include "api/terminal.h"
#include "base/unique_fd.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/files/files.h"
#include "job/validate.h"
#include "workspace/path_text.h"

namespace muster::cli::files {

namespace {

/// --task applies to each place that does not name a task.
CopyPlace read_place(Reading& in, const std::string& word) {
  CopyPlace place = copy_place_of(word);
  if (place.path.empty()) in.reader.fault("", "a file name is empty");
  if (!place.is_here() && place.task.empty()) place.task = in.reader.text("--task");
  return place;
}

void check_sides(Reading& in, const CopyCommand& command) {
  size_t here = 0;
  for (const CopyPlace& place : command.from) here += place.is_here() ? 1 : 0;
  const bool to_here = command.to.is_here();
  if (to_here && here == 0) return;
  if (!to_here && here == command.from.size()) return;
  if (to_here && here == command.from.size()) {
    in.reader.fault("", "neither side is in a job; write JOB:PATH for a path in a job");
  } else if (!to_here && here == 0) {
    in.reader.fault("", "cannot copy from job to job; copy to this machine first");
  } else {
    in.reader.fault("",
                    "some sources are local and some are in a job; copy them with two commands");
  }
}

Call read_copy(Reading& in) {
  CopyCommand command{.from = {}, .to = {}, .project = in.project_of_job()};
  const std::vector<std::string>& words = in.arguments.names;
  if (words.size() < 2) {
    if (in.reader.ok()) {
      in.reader.fault(
          "",
          "give a source and a destination: muster cp JOB:PATH LOCAL, or muster cp LOCAL JOB:PATH");
    }
    return command;
  }
  for (const std::string& word : words) command.from.push_back(read_place(in, word));
  command.to = std::move(command.from.back());
  command.from.pop_back();
  check_sides(in, command);
  return command;
}

}  // namespace

CopyPlace copy_place_of(std::string_view word) {
  const size_t colon = word.find(':');
  const std::string_view head = word.substr(0, colon);
  const size_t slash = head.find('/');
  const std::string_view job = head.substr(0, slash);
  const std::string_view task = slash == std::string_view::npos ? "" : head.substr(slash + 1);
  const bool names_task = slash == std::string_view::npos || job::is_job_name(task);
  if (colon == std::string_view::npos || !job::is_job_name(job) || !names_task) {
    return {.path = std::string(word)};
  }
  const std::string_view path = word.substr(colon + 1);
  return {.job = std::string(job),
          .task = std::string(task),
          .path = path.empty() ? "." : std::string(path)};
}

std::string to_text(const CopyPlace& place) {
  if (place.is_here()) return place.path;
  return place.job + (place.task.empty() ? "" : "/" + place.task) + ":" + place.path;
}

Command copy_command() {
  return {
      .name = "cp",
      .help = "copy files from or to a task of a running job",
      .read = read_copy,
      .positionals = {.name = "FROM... TO", .most = kAnyNumber, .offer = Offer::kFiles},
      .flags =
          task_flag("task to copy from or to (default: the task that decides the job's result)") +
          job_project_flag(),
      .example = "muster cp dist:/data/model.pt . && muster cp config.yaml dist/worker-1:"};
}

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
    // Several sources are copied into one existing folder: "x/." can only be a folder.
    if (command.from.size() > 1) to_.path += to_.path.ends_with('/') ? "." : "/.";
  }

  Result<int> run() {
    MUSTER_CHECK(check_folder_here());
    int code = kExitDone;
    for (const CopyPlace& from : command_.from) {
      const auto copied = from.is_here() ? send(from) : fetch(from);
      progress_.clear();
      if (interrupted_) return kExitInterrupted;
      if (!copied && (command_.from.size() == 1 || no_target_)) return copied.error();
      if (!copied) std::cerr << safe_lines(error_text(copied.error())) << std::flush;
      const int its_code = copied ? kExitDone : exit_code_of(copied.error());
      if (code == kExitDone) code = its_code;
    }
    std::cerr << "muster: copied " << amount_of(all_);
    if (all_.failed > 0) {
      std::cerr << "; " << workspace::count_text(all_.failed, "entry failed", "entries failed")
                << ", see above";
    }
    std::cerr << std::endl;
    return code == kExitDone && all_.failed > 0 ? kExitFailed : code;
  }

 private:
  /// Several sources need an existing folder: a local one is checked once, before the first copy.
  Result<void> check_folder_here() const {
    if (command_.from.size() == 1 || !command_.to.is_here()) return {};
    const std::string path = workspace::shown(command_.to.path);
    struct stat status{};
    const bool is_there = ::stat(command_.to.path.c_str(), &status) == 0;
    if (is_there && S_ISDIR(status.st_mode)) return {};
    if (!is_there && errno != ENOENT) return base::system_error("cannot copy to " + path, errno);
    return base::Error{
        .code = is_there ? base::ErrorCode::kConflict : base::ErrorCode::kNotFound,
        .what = is_there ? path +
                               " is not a folder, and several files cannot be "
                               "copied there"
                         : "there is no folder " + path,
        .advice = is_there ? "give a folder" : "create it first, or give another folder"};
  }

  Result<void> fetch(const CopyPlace& from) {
    const api::CopyRequest request{.task = from.task, .path = from.path};
    MUSTER_TRY(const auto socket, open(from.job, request));
    Interrupts interrupts;
    return add(copy_out(*socket, {.target = to_.path, .name = workspace::copied_name(from.path)},
                        interrupts, handlers()));
  }

  Result<void> send(const CopyPlace& from) {
    const CopyHandlers handlers = this->handlers();
    auto opened = workspace::TarPacker::open(from.path, handlers.on_note);
    if (!opened && opened.error().code == base::ErrorCode::kNotFound) {
      base::Error missing = std::move(opened).error();
      missing.what += " on this machine";
      return missing;
    }
    MUSTER_TRY(workspace::TarPacker packer, std::move(opened));
    const api::CopyRequest request{.task = to_.task, .path = to_.path, .into = true};
    auto socket = open(to_.job, request);
    no_target_ = !socket;
    if (!socket) return std::move(socket).error();
    auto sent = copy_in(**socket, packer, handlers);
    // The source exists, so the task reports a missing folder of the target.
    no_target_ = !sent && sent.error().code == base::ErrorCode::kNotFound;
    return add(std::move(sent));
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
  bool no_target_ = false;  ///< every further copy would fail for the same reason
};

}  // namespace

Result<int> execute(const CopyCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  return Copying(connection, command).run();
}

using base::Error;
using base::ErrorCode;
using http::WebSocket;

namespace {

/// The messages of the helper in the task, in both directions of a copy.
class FarEnd {
 public:
  FarEnd(http::WebSocketClient& socket, const CopyHandlers& handlers)
      : socket_(socket), report_(handlers.on_note) {}

  /// The next piece of the helper's output; nothing: the output has ended, or `wake` became
  /// readable. A piece may be empty.
  Result<std::optional<std::string>> next(const http::Wake& wake) {
    while (!closed_) {
      MUSTER_TRY(auto message, socket_.receive(wake));
      closed_ = !message;
      if (closed_) break;
      if (message->kind == WebSocket::Kind::kText) {
        MUSTER_TRY(exit_, api::terminal_exit_from_json(message->data));
      } else if (message->data.starts_with(api::kErrorByte)) {
        report_.append(std::string_view(message->data).substr(1));
      } else if (!message->data.empty()) {
        message->data.erase(0, 1);
        return std::optional(std::move(message->data));
      }
    }
    return std::optional<std::string>();
  }

  bool has_ended() const { return exit_.has_value(); }
  size_t failed() const { return report_.failed(); }

  /// After next() returned nothing: the error of the helper, if any. Skipped entries are not
  /// errors.
  Result<void> outcome() {
    if (!exit_) {
      return Error{
          .code = ErrorCode::kUnavailable,
          .what = "the server ended the copy, with code " + std::to_string(socket_.close_code()),
          .advice =
              "check your roles with 'muster whoami', and whether the job still runs with 'muster "
              "get'"};
    }
    if (const auto& error = report_.error()) return *error;
    if (exit_->code == 0 && exit_->signal == 0 && exit_->error.empty()) return {};
    if (report_.failed() > 0 && exit_->signal == 0) return {};
    return Error{.code = ErrorCode::kConflict,
                 .what = exit_->error.empty() ? "the copy ended in the task before it was complete"
                                              : "cannot copy in the task: " + exit_->error,
                 .advice = "check with 'muster get' whether the task still runs"};
  }

 private:
  http::WebSocketClient& socket_;
  workspace::CopyReport report_;
  std::optional<job::ExitStatus> exit_;
  bool closed_ = false;
};

}  // namespace

Result<CopyEnd> copy_out(http::WebSocketClient& socket, const workspace::UnpackRequest& request,
                         Interrupts& interrupts, const CopyHandlers& handlers) {
  FarEnd far(socket, handlers);
  bool interrupted = false;
  const http::Wake wake{.fd = interrupts.fd(), .on_wake = [&] {
                          interrupted = interrupts.take();
                          return !interrupted;
                        }};
  std::string piece;
  const workspace::ReadTar read = [&]() -> Result<std::string_view> {
    do {
      MUSTER_TRY(auto more, far.next(wake));
      if (interrupted) return Error{.code = ErrorCode::kRefused, .what = "interrupted"};
      if (!more) return std::string_view();
      piece = *std::move(more);
    } while (piece.empty());
    return std::string_view(piece);
  };
  auto unpacked = workspace::unpack_tar(
      read, request, {.on_note = handlers.on_note, .on_progress = handlers.on_progress});
  while (unpacked && !interrupted) {  // the bytes after the end of the tar
    const auto rest = read();
    if (!rest && !interrupted) return rest.error();
    if (!rest || rest->empty()) break;
  }
  if (interrupted) return CopyEnd{.totals = {}, .interrupted = true};
  // The sender's error is the better explanation of an incomplete tar.
  if (unpacked || far.has_ended()) MUSTER_CHECK(far.outcome());
  if (!unpacked) return std::move(unpacked).error();
  unpacked->failed += far.failed();
  return CopyEnd{.totals = *unpacked};
}

Result<CopyEnd> copy_in(http::WebSocketClient& socket, workspace::TarPacker& packer,
                        const CopyHandlers& handlers) {
  FarEnd far(socket, handlers);
  // Readable as long as there is more to send. Between two pieces, received messages are processed.
  base::UniqueFd more(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  std::optional<Error> failed;
  const auto send_some = [&] {
    const auto piece = packer.next();
    if (!piece) failed = piece.error();
    if (!piece) return false;
    if (!piece->empty()) {
      // The result of sending is visible in the messages received later.
      static_cast<void>(socket.send(WebSocket::Kind::kBinary, *piece));
      handlers.on_progress(packer.totals());
      return true;
    }
    eventfd_t taken = 0;
    ::eventfd_read(more.get(), &taken);
    static_cast<void>(
        socket.send(WebSocket::Kind::kText, api::terminal_control_to_json(api::CloseInput{})));
    return true;
  };
  const http::Wake wake{.fd = more.get(), .on_wake = send_some};
  while (true) {
    MUSTER_TRY(const auto output, far.next(wake));
    if (failed) return *failed;
    if (!output) break;
  }
  MUSTER_CHECK(far.outcome());
  CopyEnd end{.totals = packer.totals()};
  end.totals.failed += far.failed();
  return end;
}

}  // namespace muster::cli::files
