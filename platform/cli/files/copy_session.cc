#include "cli/files/copy_session.h"

#include <sys/eventfd.h>

#include <optional>
#include <utility>

#include "api/terminal.h"
#include "base/unique_fd.h"

namespace muster::cli::files {

using base::Error;
using base::ErrorCode;
using http::WebSocket;

namespace {

/// What the helper in the task says, whichever way the files go.
class FarEnd {
 public:
  FarEnd(http::WebSocketClient& socket, const CopyHandlers& handlers)
      : socket_(socket), report_(handlers.on_note) {}

  /// The next piece of its output; nothing: it has ended, or `wake` has left. A piece may be empty.
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

  /// Once next() gave nothing: why not all is well there. What was left out is no error.
  Result<void> outcome() {
    if (!exit_) {
      return Error{
          .code = ErrorCode::kUnavailable,
          .what = "the server ended the copy, with code " + std::to_string(socket_.close_code()),
          .advice =
              "see with 'muster whoami' and 'muster get' whether you still may, and "
              "whether the job still runs"};
    }
    if (const auto& error = report_.error()) return *error;
    if (exit_->code == 0 && exit_->signal == 0 && exit_->error.empty()) return {};
    if (report_.failed() > 0 && exit_->signal == 0) return {};
    return Error{.code = ErrorCode::kConflict,
                 .what = exit_->error.empty()
                             ? "the copy was ended in the task before all was there"
                             : "nothing can be copied in the task: " + exit_->error,
                 .advice = "see with 'muster get' whether the task still runs"};
  }

 private:
  http::WebSocketClient& socket_;
  workspace::CopyReport report_;
  std::optional<job::ExitStatus> exit_;
  bool closed_ = false;
};

}  // namespace

Result<CopyEnd> copy_out(http::WebSocketClient& socket, const workspace::UnpackWish& wish,
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
      read, wish, {.on_note = handlers.on_note, .on_progress = handlers.on_progress});
  while (unpacked && !interrupted) {  // what comes behind the end of the tar
    const auto rest = read();
    if (!rest && !interrupted) return rest.error();
    if (!rest || rest->empty()) break;
  }
  if (interrupted) return CopyEnd{.totals = {}, .interrupted = true};
  // Whoever sends knows best why a tar broke off.
  if (unpacked || far.has_ended()) MUSTER_CHECK(far.outcome());
  if (!unpacked) return std::move(unpacked).error();
  unpacked->failed += far.failed();
  return CopyEnd{.totals = *unpacked};
}

Result<CopyEnd> copy_in(http::WebSocketClient& socket, workspace::TarPacker& packer,
                        const CopyHandlers& handlers) {
  FarEnd far(socket, handlers);
  // There is more to send as long as this can be read; between two pieces, what came is heard.
  base::UniqueFd more(::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK));
  std::optional<Error> failed;
  const auto send_some = [&] {
    const auto piece = packer.next();
    if (!piece) failed = piece.error();
    if (!piece) return false;
    if (!piece->empty()) {
      // Whether it arrives is told by what is received.
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
