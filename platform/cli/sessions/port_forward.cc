// port-forward: makes ports of a task reachable on this machine.

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/output.h"
#include "cli/common/terminal.h"
#include "cli/connection/connection.h"
#include "cli/sessions/sessions.h"
#include "http/sockets.h"
#include "workspace/copy_report.h"

namespace muster::cli::sessions {

namespace {

constexpr int kLargestPort = 65'535;

std::optional<int> port_from(std::string_view text, int least) {
  const auto port = base::number_of<int>(text);
  return port && *port >= least && *port <= kLargestPort ? port : std::nullopt;
}

Call read_port_forward(Reading& in) {
  PortForwardCommand command{.name = in.name("job"),
                             .project = in.project_of_job(),
                             .task = in.reader.text("--task"),
                             .address = in.reader.text("--address", "127.0.0.1"),
                             .ports = {}};
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto ports = forwarded_port_of(words[i]);
    if (!ports) {
      in.reader.fault("", ports.error().what);
      continue;
    }
    const bool is_taken =
        std::any_of(command.ports.begin(), command.ports.end(), [&](const ForwardedPort& other) {
          return ports->local != 0 && other.local == ports->local;
        });
    if (is_taken) {
      in.reader.fault("", "'" + words[i] + "' uses the local port " + std::to_string(ports->local) +
                              " a second time; choose another, as in " + ":" +
                              std::to_string(ports->remote));
    }
    command.ports.push_back(*ports);
  }
  if (words.size() == 1) in.reader.fault("", "a port is missing, as in: " + words[0] + " 8888");
  return command;
}

}  // namespace

Command port_forward_command() {
  return {
      .name = "port-forward",
      .help = "forward local ports to ports of a task",
      .read = read_port_forward,
      .positionals = {.name = "NAME [LOCAL:]PORT...", .most = kAnyNumber, .offer = Offer::kJobs},
      .flags = task_flag("task to reach (default: the task that decides the job's result)") +
               Flags{{.name = "--address",
                      .value = "ADDRESS",
                      .help = "address to listen on (default: 127.0.0.1, this machine only)"}} +
               job_project_flag(),
      .example = "muster port-forward dist 8080:8888"};
}

base::Result<ForwardedPort> forwarded_port_of(std::string_view word) {
  const size_t colon = word.find(':');
  const auto remote = port_from(colon == std::string_view::npos ? word : word.substr(colon + 1), 1);
  std::string_view here = word.substr(0, colon);
  if (colon == 0) here = "0";
  const auto local = port_from(here, 0);
  if (remote && local) return ForwardedPort{.local = *local, .remote = *remote};
  return base::Error{.code = base::ErrorCode::kInvalid,
                     .what = "'" + std::string(word) +
                             "' is neither PORT nor LOCAL:REMOTE, of numbers up to 65535"};
}

using base::ErrorCode;
using base::UniqueFd;

namespace {

struct Listener {
  UniqueFd socket;
  int remote = 0;
  std::string name;  ///< "127.0.0.1:8080 -> launcher:8888"
};

class Forwarding {
 public:
  Forwarding(Connection& connection, const PortForwardCommand& command)
      : connection_(connection), command_(command), carried_(command.program) {}

  Result<int> run() {
    MUSTER_CHECK(find_task());
    for (const ForwardedPort& ports : command_.ports) MUSTER_CHECK(listen(ports));
    for (const Listener& listener : listeners_) {
      std::cout << "Forwarding " << listener.name << "\n";
    }
    std::cout << std::flush;
    warn_of_others();
    look_out_for(interrupts_.fd());
    look_out_for(carried_.room_fd());
    return serve();
  }

 private:
  Result<void> find_task() {
    MUSTER_TRY(const job::Job job,
               connection_.call([&](api::Client& client) { return client.get(command_.name); }));
    const auto named = [this](const job::Task& task) { return task.name == command_.task; };
    const auto found = std::find_if(job.tasks.begin(), job.tasks.end(), named);
    if (!command_.task.empty() && found == job.tasks.end()) {
      return base::Error{.code = ErrorCode::kNotFound,
                         .what = "job '" + job.spec.name + "' has no task '" + command_.task + "'",
                         .advice = "muster get " + job.spec.name + " lists its tasks"};
    }
    const job::Task& task = command_.task.empty() ? job::deciding_task(job) : *found;
    if (task.phase != job::TaskPhase::kRunning) {
      return base::Error{.code = ErrorCode::kConflict,
                         .what = "'" + task.name + "' of job '" + job.spec.name +
                                 "' does not run: it is " + std::string(job::to_string(task.phase)),
                         .advice = "muster get " + job.spec.name + " shows the state of its tasks"};
    }
    task_ = task.name;
    return {};
  }

  Result<void> listen(const ForwardedPort& ports) {
    Listener listener{.remote = ports.remote};
    MUSTER_TRY(listener.socket, http::listen_on({.host = command_.address, .port = ports.local}));
    MUSTER_TRY(const std::string here, http::listening_at(listener.socket.get()));
    listener.name = here + " -> " + task_ + ":" + std::to_string(ports.remote);
    look_out_for(listener.socket.get());
    listeners_.push_back(std::move(listener));
    return {};
  }

  void warn_of_others() const {
    const std::string& at = command_.address;
    if (at.starts_with("127.") || at == "::1" || at == "localhost") return;
    std::cerr << command_.program << ": warning: everyone who can reach " << at
              << " of this machine can reach the task\n";
  }

  void look_out_for(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  /// Runs until the job has ended. If the connection to the server is lost, open connections break,
  /// and new ones use the next connection.
  Result<int> serve() {
    const http::Wake wake{.fd = epoll_.get(), .on_wake = [this] { return heed(); }};
    const auto is_well = [this](const api::JobEvent&) {
      connection_.is_well();
      return true;
    };
    std::string place;
    while (true) {
      const auto ended =
          connection_.client().watch_events({.name = command_.name}, place, is_well, wake);
      if (left_) return kExitInterrupted;
      if (ended && *ended) return report_end(**ended);
      if (!ended && ended.error().code != ErrorCode::kUnavailable) return ended.error();
      MUSTER_TRY(const bool is_back, connection_.come_back(interrupts_.fd()));
      if (!is_back) return kExitInterrupted;
    }
  }

  int report_end(const job::Job& job) const {
    std::cerr << command_.program << ": job '" << job.spec.name
              << "' has ended: " << job::to_string(job.phase) << std::endl;
    return kExitDone;
  }

  bool heed() {
    if (interrupts_.take()) left_ = true;
    carried_.take_room();
    hold_back(carried_.is_full());
    for (const Listener& listener : listeners_) {
      if (!left_ && !held_back_) accept(listener);
    }
    return !left_;
  }

  void accept(const Listener& listener) {
    UniqueFd local(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (!local) return;
    http::send_at_once(local.get());
    carried_.begin(connection_.second_client(), command_.name,
                   {.task = task_, .port = listener.remote}, std::move(local), listener.name);
  }

  /// While all connections are in use, the listening sockets are not watched; otherwise they would
  /// wake the loop continuously.
  void hold_back(bool full) {
    if (std::exchange(held_back_, full) == full) return;
    for (const Listener& listener : listeners_) {
      epoll_event event{.events = full ? 0U : EPOLLIN, .data = {.fd = listener.socket.get()}};
      ::epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, listener.socket.get(), &event);
    }
  }

  Connection& connection_;
  const PortForwardCommand& command_;
  Interrupts interrupts_;  // before the threads, which inherit it
  std::string task_;
  UniqueFd epoll_{::epoll_create1(EPOLL_CLOEXEC)};
  std::vector<Listener> listeners_;
  bool held_back_ = false;
  bool left_ = false;
  ForwardedConnections carried_;
};

}  // namespace

Result<int> execute(const PortForwardCommand& command, const Hooks& hooks) {
  MUSTER_TRY(Connection connection, connect(hooks, command.project));
  return Forwarding(connection, command).run();
}

using base::Error;
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
  /// False: the connection has no reader left.
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

namespace {

constexpr size_t kMostConnections = 64;
/// The time in which connections must end at the end of the program.
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

/// Runs on the thread of the connection.
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
