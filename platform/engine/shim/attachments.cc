#include "engine/shim/attachments.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <utility>

#include "base/units.h"
#include "engine/shim/channels.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

// --- messages on the socket

namespace {

constexpr char kInputPacket = 'i';
constexpr char kInputEndPacket = 'e';
constexpr char kSizePacket = 'r';
constexpr char kOutputPacket = 'o';
constexpr char kErrorOutputPacket = 'x';
constexpr char kLeftOutPacket = 'l';

/// Rows and columns are 16-bit numbers in struct winsize.
constexpr int kLargestSize = 65'535;

struct EncodeAttach {
  std::string operator()(const AttachInput& input) const {
    return packet(kInputPacket, input.bytes);
  }
  std::string operator()(const AttachInputEnd&) const { return packet(kInputEndPacket, ""); }
  std::string operator()(const AttachSize& size) const {
    return packet(kSizePacket, std::to_string(size.rows) + " " + std::to_string(size.columns));
  }
  std::string operator()(const AttachOutput& output) const {
    return packet(output.is_error ? kErrorOutputPacket : kOutputPacket, output.bytes);
  }
  std::string operator()(const AttachLeftOut& left_out) const {
    return packet(kLeftOutPacket, std::to_string(left_out.bytes));
  }
};

std::optional<int> dimension_of(std::string_view text) {
  const auto number = base::number_of<int>(text);
  return number && *number > 0 && *number <= kLargestSize ? number : std::nullopt;
}

std::optional<AttachMessage> attach_size_of(std::string_view text) {
  const size_t blank = text.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  const auto rows = dimension_of(text.substr(0, blank));
  const auto columns = dimension_of(text.substr(blank + 1));
  if (!rows || !columns) return std::nullopt;
  return AttachSize{.rows = *rows, .columns = *columns};
}

std::optional<AttachMessage> attach_message_of(char type, std::string_view rest) {
  switch (type) {
    case kInputPacket:
      return AttachInput{std::string(rest)};
    case kInputEndPacket:
      if (rest.empty()) return AttachInputEnd{};
      break;
    case kSizePacket:
      return attach_size_of(rest);
    case kOutputPacket:
    case kErrorOutputPacket:
      return AttachOutput{.bytes = std::string(rest), .is_error = type == kErrorOutputPacket};
    case kLeftOutPacket:
      if (const auto bytes = base::number_of<uint64_t>(rest)) return AttachLeftOut{*bytes};
      break;
    default:
      break;
  }
  return std::nullopt;
}

}  // namespace

std::string encode(const AttachMessage& message) {
  return std::visit(EncodeAttach{}, message);
}

base::Result<AttachMessage> decode_attach(std::string_view packet) {
  return packet.empty() ? decode_attach('\0', {}) : decode_attach(packet.front(), packet.substr(1));
}

base::Result<AttachMessage> decode_attach(char tag, std::string_view bytes) {
  auto message = attach_message_of(tag, bytes);
  if (message) return *std::move(message);
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "unknown packet on the attach socket"};
}

// --- the shim's end

namespace {

/// How long finish() waits for slow clients to read the last output: until then, the task's
/// resources are not free.
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

// serve() relies on this order: the listener, the program's input, the clients.
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
    if ((happened & ~POLLOUT) != 0) receive(attached_[i]);
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

/// Reads one packet in each turn, so that no client delays the others.
void Attachments::receive(Attached& one) {
  static std::array<char, kAttachPacket> buffer;
  const ssize_t count = ::recv(one.socket.get(), buffer.data(), buffer.size(), 0);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) return one.socket.reset();
  const auto message = decode_attach({buffer.data(), static_cast<size_t>(count)});
  if (!message) return one.socket.reset();
  take(*message);
}

void Attachments::take(const AttachMessage& message) {
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

// Full-screen programs redraw themselves when they get SIGWINCH, even if the size is unchanged.
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
      // Once output is left out, all of it is, until the client has caught up: one gap, not many.
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

// --- the program's end

namespace {

/// Size of a terminal until a client sends another one.
constexpr int kRows = 24;
constexpr int kColumns = 80;

}  // namespace

Result<ProgramInput> program_input_of(PseudoTerminal terminal) {
  set_terminal_size(terminal.master, kRows, kColumns);
  ::fcntl(terminal.master.get(), F_SETFL, ::fcntl(terminal.master.get(), F_GETFL) | O_NONBLOCK);
  ProgramInput input{.to_program = UniqueFd(::fcntl(terminal.master.get(), F_DUPFD_CLOEXEC, 0)),
                     .from_program = std::move(terminal.master),
                     .theirs = std::move(terminal.slave)};
  if (!input.to_program) return base::system_error("cannot make a terminal", errno);
  return input;
}

namespace {

Result<ProgramInput> terminal_input() {
  MUSTER_TRY(PseudoTerminal terminal, open_terminal());
  return program_input_of(std::move(terminal));
}

Result<ProgramInput> piped_input() {
  MUSTER_TRY(Pair pipe, make_input_pipe());
  return ProgramInput{
      .to_program = std::move(pipe.here), .from_program = {}, .theirs = std::move(pipe.there)};
}

}  // namespace

Result<ProgramInput> make_program_input(const InnerPlan& plan) {
  // With an account of its own, the task has terminals of its own, too.
  if (plan.terminal) return plan.account ? ProgramInput{} : terminal_input();
  if (plan.input) return piped_input();
  return ProgramInput{};
}

std::string TerminalText::plain(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + 1);
  for (const char byte : bytes) {
    if (returns_ && byte != '\n') text += '\r';
    returns_ = byte == '\r';
    if (!returns_) text += byte;
  }
  return text;
}

}  // namespace muster::engine
