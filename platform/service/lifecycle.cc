#include "service/lifecycle.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "api/routes.h"
#include "api/wire.h"
#include "base/unique_fd.h"
#include "server/router.h"

namespace muster::service {

namespace {

base::Error waits(const std::optional<std::string>& leader) {
  if (leader) {
    return {.code = base::ErrorCode::kUnavailable,
            .what = "this server is on standby; " + *leader + " leads",
            .advice = "send requests to the leader; this server takes over when the leader ends"};
  }
  return {.code = base::ErrorCode::kUnavailable,
          .what = "this server is on standby, and no server leads",
          .advice = "try again: a server takes over within seconds"};
}

http::Response unavailable(const Standby& standby) {
  http::Response response = server::problem(waits(standby.leader()));
  response.headers["retry-after"] = "1";
  return response;
}

std::string info_of(const Standby& standby) {
  return api::info_to_json({.version = standby.version,
                            .pid = ::getpid(),
                            .state_folder = standby.state_folder,
                            .engine = standby.engine});
}

}  // namespace

http::Handler standby_handler(Standby standby) {
  return
      [standby = std::move(standby)](const http::Request& request, const http::Respond& respond) {
        const bool is_owner = request.peer.user.has_value();
        const bool asks = request.method == "GET";
        if (asks && request.path == api::kHealthPath) {
          respond(server::json_answer(200, "{\"status\":\"waits\"}"));
        } else if (is_owner && asks && request.path == api::kInfoPath) {
          respond(server::json_answer(200, info_of(standby)));
        } else if (is_owner && request.method == "POST" && request.path == api::kShutdownPath) {
          respond({.status = 202});
          standby.leave();
        } else {
          respond(unavailable(standby));
        }
      };
}

http::Gate standby_gate(Standby standby) {
  return
      [standby = std::move(standby)](const http::Request& head) -> std::optional<http::Response> {
        if (head.peer.user) return std::nullopt;
        return unavailable(standby);
      };
}

namespace {

/// Whether standard input is a terminal that hung up: every request to it fails with EIO.
bool terminal_is_gone() {
  termios ignored{};
  return ::tcgetattr(STDIN_FILENO, &ignored) != 0 && errno == EIO;
}

}  // namespace

base::UniqueFd watch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  // A full pipe or a limit of file sizes (ulimit -f, LimitFSIZE=) is an error of that write. Children
  // get the default actions again (base::spawn()).
  for (const int ignored : {SIGPIPE, SIGXFSZ}) ::signal(ignored, SIG_IGN);
  return base::UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

SignalRequest next_request(int signals) {
  signalfd_siginfo info{};
  if (::read(signals, &info, sizeof(info)) != sizeof(info)) return SignalRequest::kNone;
  if (info.ssi_signo != SIGHUP) return SignalRequest::kEnd;
  return terminal_is_gone() ? SignalRequest::kEnd : SignalRequest::kReload;
}

bool notify(const std::string& socket, std::string_view state) {
  sockaddr_un address{.sun_family = AF_UNIX, .sun_path = {}};
  const bool is_known = socket.starts_with('/') || socket.starts_with('@');
  if (!is_known || socket.size() >= sizeof(address.sun_path)) return false;
  std::memcpy(address.sun_path, socket.data(), socket.size());
  // An abstract name is written with '@' and begins with a zero byte.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const base::UniqueFd fd(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return false;
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + socket.size());
  const ssize_t sent = ::sendto(fd.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                                reinterpret_cast<const sockaddr*>(&address), length);
  return sent == static_cast<ssize_t>(state.size());
}

std::string take_notify_socket() {
  const char* const value = std::getenv("NOTIFY_SOCKET");
  const std::string socket = value == nullptr ? "" : value;
  ::unsetenv("NOTIFY_SOCKET");
  return socket;
}

namespace {

http::Response not_yet() {
  return server::problem({.code = base::ErrorCode::kUnavailable,
                          .what = "the server is starting",
                          .advice = "try again in a moment"});
}

}  // namespace

http::Handler FrontDoor::handler() const {
  return [weak = std::weak_ptr(inside_)](http::Request request, http::Respond respond) {
    const auto inside = weak.lock();
    if (inside == nullptr || !inside->handler) return respond(not_yet());
    // A copy: the handler may be replaced while it runs.
    const http::Handler answer = inside->handler;
    answer(std::move(request), std::move(respond));
  };
}

http::Gate FrontDoor::gate() const {
  return
      [weak = std::weak_ptr(inside_)](const http::Request& head) -> std::optional<http::Response> {
        const auto inside = weak.lock();
        if (inside == nullptr || !inside->handler) return not_yet();
        if (!inside->gate) return std::nullopt;
        const http::Gate gate = inside->gate;
        return gate(head);
      };
}

void FrontDoor::let_answer(http::Handler who, http::Gate gate) {
  *inside_ = {.handler = std::move(who), .gate = std::move(gate)};
}

}  // namespace muster::service
