#include "engine/shim/attachments.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "engine/shim/folder_socket.h"
#include "engine/shim/pseudo_terminal.h"

namespace muster::engine {

using base::UniqueFd;

namespace {

/// How long the last words wait for those who are slow: the room of the task is not free before.
constexpr std::chrono::milliseconds kSlowReaderPatience{300};

constexpr const char* kSocketName = "attach";

}  // namespace

base::Result<void> Attachments::listen(const std::string& task_folder) {
  MUSTER_TRY(listener_, listen_in(task_folder, kSocketName));
  path_ = task_folder + "/" + kSocketName;
  return {};
}

void Attachments::set_input(UniqueFd input, bool is_terminal) {
  to_program_ = std::move(input);
  is_terminal_ = is_terminal;
}

// The listener, the program's input, and those who are attached, in this order.
void Attachments::watch(std::vector<pollfd>& polled) const {
  polled.push_back({listener_.get(), POLLIN, 0});
  polled.push_back({input_.empty() ? -1 : to_program_.get(), POLLOUT, 0});
  for (const Attached& one : attached_) {
    const int events = (takes_input() ? POLLIN : 0) | (one.packets.empty() ? 0 : POLLOUT);
    polled.push_back({one.socket.get(), static_cast<short>(events), 0});
  }
}

void Attachments::serve(std::span<const pollfd> polled) {
  if (polled[1].revents != 0) write_input();
  for (size_t i = 0; i < attached_.size(); ++i) {
    const short happened = polled[i + 2].revents;
    if ((happened & POLLOUT) != 0) send_waiting(attached_[i]);
    if ((happened & ~POLLOUT) != 0) hear(attached_[i]);
  }
  std::erase_if(attached_, [](const Attached& one) { return !one.socket; });
  if (polled[0].revents != 0) accept_all();
}

void Attachments::accept_all() {
  while (true) {
    UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket) return;
    if (attached_.size() >= kMostAttached) continue;
    attached_.push_back({.socket = std::move(socket), .packets = {}});
    hint_redraw();
  }
}

/// One packet a turn: nobody talks the others down.
void Attachments::hear(Attached& one) {
  static std::array<char, kAttachPacket> buffer;
  const ssize_t count = ::recv(one.socket.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return one.socket.reset();
  const auto message = decode_attach({buffer.data(), static_cast<size_t>(count)});
  if (!message) return one.socket.reset();
  heed(*message);
}

void Attachments::heed(const AttachMessage& message) {
  if (!to_program_ || input_ends_) return;
  if (const auto* input = std::get_if<AttachInput>(&message)) {
    input_ += input->bytes;
  } else if (std::holds_alternative<AttachInputEnd>(message)) {
    if (is_terminal_) input_ += kTerminalEndOfInput;
    input_ends_ = !is_terminal_;
  } else if (const auto* size = std::get_if<AttachSize>(&message)) {
    resize(*size);
  }
  write_input();
}

void Attachments::write_input() {
  while (!input_.empty()) {
    const ssize_t count = ::write(to_program_.get(), input_.data(), input_.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EAGAIN) return;
    if (count <= 0) {  // the program reads no more
      input_.clear();
      return to_program_.reset();
    }
    input_.erase(0, static_cast<size_t>(count));
  }
  if (input_ends_) to_program_.reset();
}

void Attachments::resize(const AttachSize& size) {
  if (is_terminal_) set_terminal_size(to_program_, size.rows, size.columns);
}

// Full-screen programs draw themselves anew when they hear of a size, be it the one they have.
void Attachments::hint_redraw() const {
  if (!is_terminal_ || !to_program_) return;
  pid_t foreground = 0;
  if (::ioctl(to_program_.get(), TIOCGPGRP, &foreground) == 0 && foreground > 1) {
    ::kill(-foreground, SIGWINCH);
  }
}

void Attachments::output(job::LogStream stream, std::string_view bytes) {
  const bool is_error = stream == job::LogStream::kError;
  for (Attached& one : attached_) {
    if (!one.socket) continue;
    for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
      const std::string_view piece = bytes.substr(at, kAttachPiece);
      // Once something is left out, all is until the reader has caught up: one gap, not many.
      if (one.left_out > 0 || one.waiting + piece.size() > kMostWaiting) {
        one.left_out += piece.size();
        continue;
      }
      queue(one, encode(AttachOutput{.bytes = std::string(piece), .is_error = is_error}));
    }
    send_waiting(one);
  }
}

void Attachments::queue(Attached& one, std::string packet) {
  one.waiting += packet.size();
  one.packets.push_back(std::move(packet));
}

void Attachments::send_waiting(Attached& one) {
  while (one.socket) {
    if (one.packets.empty() && one.left_out > 0) {
      queue(one, encode(AttachLeftOut{std::exchange(one.left_out, 0)}));
    }
    if (one.packets.empty()) return;
    const std::string& next = one.packets.front();
    const ssize_t sent =
        ::send(one.socket.get(), next.data(), next.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return;
    if (sent < 0) return one.socket.reset();
    one.waiting -= next.size();
    one.packets.pop_front();
  }
}

void Attachments::finish() {
  listener_.reset();
  if (!path_.empty()) ::unlink(path_.c_str());
  to_program_.reset();
  const auto deadline = std::chrono::steady_clock::now() + kSlowReaderPatience;
  while (true) {
    std::vector<pollfd> polled;
    for (Attached& one : attached_) {
      if (!one.packets.empty() && one.socket) polled.push_back({one.socket.get(), POLLOUT, 0});
    }
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
    if (polled.empty() || left.count() <= 0) break;
    if (::poll(polled.data(), polled.size(), static_cast<int>(left.count())) <= 0) break;
    for (Attached& one : attached_) send_waiting(one);
  }
  attached_.clear();
}

}  // namespace muster::engine
