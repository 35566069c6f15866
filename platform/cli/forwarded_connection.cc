#include "cli/forwarded_connection.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>

#include "base/files.h"
#include "workspace/copy_report.h"

namespace muster::cli {

using base::Error;
using base::ErrorCode;
using base::Result;
using http::WebSocket;

namespace {

constexpr size_t kForwardBufferBytes = 64 << 10;

class Carrying {
 public:
  Carrying(http::WebSocketClient& socket, const base::UniqueFd& local, int stop)
      : socket_(socket), local_(local), stop_(stop) {
    for (const int fd : {local_.get(), stop_}) {
      epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
    }
  }

  Result<void> run() {
    const http::Wake wake{.fd = epoll_.get(), .on_wake = [this] { return heed(); }};
    while (true) {
      MUSTER_TRY(const auto message, socket_.receive(wake));
      if (left_) return {};
      if (!message) break;
      if (message->kind == WebSocket::Kind::kText) {
        MUSTER_TRY(exit_, api::terminal_exit_from_json(message->data));
      } else if (!take(message->data)) {
        return {};
      }
    }
    return outcome();
  }

 private:
  /// False: nobody is there any more to whom it could matter.
  bool heed() {
    std::array<epoll_event, 2> events{};
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
      const bool goes_on = events[static_cast<size_t>(i)].data.fd != stop_ && pass_on();
      if (!goes_on) left_ = true;
    }
    return !left_;
  }

  bool pass_on() {
    std::array<char, kForwardBufferBytes> buffer;
    const ssize_t count = ::read(local_.get(), buffer.data(), buffer.size());
    if (count < 0) return errno == EINTR || errno == EAGAIN;
    if (count > 0) {
      return bool(
          socket_.send(WebSocket::Kind::kBinary, {buffer.data(), static_cast<size_t>(count)}));
    }
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, local_.get(), nullptr);
    return bool(
        socket_.send(WebSocket::Kind::kText, api::terminal_control_to_json(api::CloseInput{})));
  }

  bool take(std::string_view message) {
    if (message.starts_with(api::kErrorByte)) {
      report_.append(message.substr(1));
    } else if (message.size() > 1) {
      return bool(base::write_all(local_.get(), message.substr(1)));
    } else {
      ::shutdown(local_.get(), SHUT_WR);
    }
    return true;
  }

  Result<void> outcome() {
    if (const auto& error = report_.error()) return *error;
    if (!exit_) {
      return Error{.code = ErrorCode::kUnavailable,
                   .what = "the server closed the connection, with code " +
                           std::to_string(socket_.close_code())};
    }
    if (!exit_->error.empty()) return Error{.code = ErrorCode::kConflict, .what = exit_->error};
    return {};
  }

  http::WebSocketClient& socket_;
  const base::UniqueFd& local_;
  const int stop_;
  base::UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  workspace::CopyReport report_{[](const workspace::CopyNote&) {}};
  std::optional<job::ExitStatus> exit_;
  bool left_ = false;
};

}  // namespace

Result<void> carry(api::Client& client, const std::string& job, const api::ForwardRequest& request,
                   const base::UniqueFd& local, int stop) {
  MUSTER_TRY(const auto socket, client.forward(job, request));
  return Carrying(*socket, local, stop).run();
}

}  // namespace muster::cli
