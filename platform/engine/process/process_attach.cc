#include "engine/process/process_attach.h"

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <utility>

#include "base/files.h"
#include "engine/engine_errors.h"
#include "engine/shim/attach_wire.h"
#include "engine/shim/folder_socket.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

namespace {

/// So many packets in a turn of the loop: others have theirs.
constexpr int kPacketsATurn = 16;

class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  Attachment(base::EventLoop& loop, UniqueFd socket, TaskFolder folder, ExecHandlers handlers)
      : loop_(loop),
        socket_(std::move(socket)),
        folder_(std::move(folder)),
        handlers_(std::move(handlers)) {}

  void listen() { readable_ = loop_.when_readable(socket_.get(), calling(&Attachment::hear)); }

  void drop() {
    readable_.reset();
    writable_.reset();
    handlers_ = {};
    socket_.reset();
  }

  void write(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
      say(AttachInput{std::string(bytes.substr(at, kAttachPiece))});
    }
  }

  size_t waiting() const { return waiting_; }

  void say(const AttachMessage& message) {
    if (!socket_) return;
    packets_.push_back(encode(message));
    waiting_ += packets_.back().size();
    send();
  }

  void pause(bool paused) {
    if (std::exchange(paused_, paused) == paused || !socket_) return;
    if (paused) {
      readable_.reset();
    } else {
      listen();
    }
  }

 private:
  using Method = void (Attachment::*)();

  /// Whoever is called back may drop this in the midst of it: hence the hold on it.
  std::function<void()> calling(Method method) {
    return [weak = weak_from_this(), method] {
      if (const auto self = weak.lock()) ((*self).*method)();
    };
  }

  void hear() {
    static std::array<char, kAttachPacket> buffer;
    for (int i = 0; i < kPacketsATurn && socket_ && !paused_; ++i) {
      const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return ended();
      take({buffer.data(), static_cast<size_t>(count)});
    }
  }

  void take(std::string_view packet) {
    const auto on_output = handlers_.on_output;
    const auto message = decode_attach(packet);
    if (!on_output || !message) return;
    if (const auto* output = std::get_if<AttachOutput>(&*message)) {
      on_output(output->bytes, output->is_error);
    } else if (const auto* gap = std::get_if<AttachLeftOut>(&*message)) {
      on_output(left_out_text(gap->bytes), true);
    }
  }

  /// The shim lets go when the exit record stands; without one it is lost, or had too many.
  void ended() {
    const auto text = base::read_file(folder_.exit(), 64 << 10);
    const auto record = text ? decode_exit(*text) : Result<ExitRecord>(text.error());
    const job::ExitStatus status =
        record ? record->status
               : job::ExitStatus{.lost = true, .error = "the task's terminal is gone"};
    const auto on_exit = std::exchange(handlers_.on_exit, nullptr);
    drop();
    if (on_exit) on_exit(status);
  }

  void send() {
    writable_.reset();  // an interest holds its descriptor: it goes before that is closed
    const bool was_full = waiting_ > Exec::kHigh;
    while (!packets_.empty() && send_first()) continue;
    if (!packets_.empty()) {
      writable_ = loop_.when_writable(socket_.get(), calling(&Attachment::send));
    }
    const auto on_drain = handlers_.on_drain;
    if (was_full && waiting_ <= Exec::kHigh && on_drain) on_drain();
  }

  /// False: not now.
  bool send_first() {
    const std::string& packet = packets_.front();
    const ssize_t sent =
        ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) return true;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return false;
    waiting_ -= packet.size();
    packets_.pop_front();  // also where nobody takes it: its end is heard by reading
    return true;
  }

  base::EventLoop& loop_;
  UniqueFd socket_;
  TaskFolder folder_;
  ExecHandlers handlers_;
  std::deque<std::string> packets_;  ///< that wait to be sent
  size_t waiting_ = 0;               ///< bytes in them: new sizes of a terminal, too, take room
  bool paused_ = false;
  // After socket_: they must go first.
  base::EventLoop::Interest readable_;
  base::EventLoop::Interest writable_;
};

class ProcessAttach : public Exec {
 public:
  explicit ProcessAttach(std::shared_ptr<Attachment> attachment)
      : attachment_(std::move(attachment)) {}
  ~ProcessAttach() override { attachment_->drop(); }
  void write(std::string_view bytes) override { attachment_->write(bytes); }
  size_t waiting() const override { return attachment_->waiting(); }
  void close_input() override { attachment_->say(AttachInputEnd{}); }
  void resize(int rows, int columns) override {
    attachment_->say(AttachSize{.rows = rows, .columns = columns});
  }
  void pause(bool paused) override { attachment_->pause(paused); }

 private:
  std::shared_ptr<Attachment> attachment_;
};

}  // namespace

Result<std::unique_ptr<Exec>> attach_to(base::EventLoop& loop, const TaskFolder& folder,
                                        const std::string& task, ExecHandlers handlers) {
  auto socket = connect_in(folder.path.string(), "attach");
  if (!socket) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "task " + task + " does not run",
                 .advice = "muster logs shows what it printed"};
  }
  const auto attachment =
      std::make_shared<Attachment>(loop, *std::move(socket), folder, std::move(handlers));
  attachment->listen();
  return std::make_unique<ProcessAttach>(attachment);
}

}  // namespace muster::engine
