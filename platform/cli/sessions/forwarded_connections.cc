#include "cli/sessions/forwarded_connections.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <utility>

#include "base/files.h"
#include "cli/common/report.h"
#include "cli/common/terminal.h"
#include "workspace/copy_report.h"

namespace muster::cli::sessions {

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

using base::UniqueFd;

namespace {

constexpr size_t kMostConnections = 64;
/// What connections have to end in when all is over.
constexpr std::chrono::seconds kFarewell{2};

}  // namespace

ForwardedConnections::ForwardedConnections(std::string program)
    : program_(std::move(program)),
      stop_(::eventfd(0, EFD_CLOEXEC)),
      room_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

ForwardedConnections::~ForwardedConnections() {
  ::eventfd_write(stop_.get(), 1);
  std::unique_lock lock(mutex_);
  for (const int local : locals_) ::shutdown(local, SHUT_RDWR);
  if (!ended_.wait_for(lock, kFarewell, [this] { return locals_.empty(); })) {
    std::cout.flush();
    std::_Exit(kExitInterrupted);
  }
  lock.unlock();
  for (std::thread& thread : threads_) thread.join();
}

void ForwardedConnections::begin(std::unique_ptr<api::Client> client, const std::string& job,
                                 const api::ForwardRequest& request, UniqueFd local,
                                 const std::string& name) {
  join_ended();
  const std::lock_guard lock(mutex_);
  locals_.insert(local.get());
  threads_.emplace_back(
      [this, client = std::move(client), job, request, local = std::move(local), name]() mutable {
        const auto carried = carry(*client, job, request, local, stop_.get());
        end(std::move(local), name, carried);
      });
}

bool ForwardedConnections::is_full() {
  const std::lock_guard lock(mutex_);
  return locals_.size() >= kMostConnections;
}

void ForwardedConnections::take_room() {
  eventfd_t count = 0;
  ::eventfd_read(room_.get(), &count);
}

/// On the thread of that connection.
void ForwardedConnections::end(UniqueFd local, const std::string& name,
                               const Result<void>& carried) {
  const std::lock_guard lock(mutex_);
  if (!carried) {
    std::cerr << program_ << ": " << name << ": " << safe_lines(carried.error().what) << std::endl;
  }
  locals_.erase(local.get());
  local.reset();
  over_.insert(std::this_thread::get_id());
  ::eventfd_write(room_.get(), 1);
  ended_.notify_all();
}

void ForwardedConnections::join_ended() {
  std::unique_lock lock(mutex_);
  const std::set<std::thread::id> over = std::exchange(over_, {});
  lock.unlock();
  std::erase_if(threads_, [&](std::thread& thread) {
    if (!over.contains(thread.get_id())) return false;
    thread.join();
    return true;
  });
}

}  // namespace muster::cli::sessions
