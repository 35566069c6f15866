// port-forward: ports of a task, as if they were of this machine.
#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <iostream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "cli/command/command.h"
#include "cli/common/interrupts.h"
#include "cli/common/report.h"
#include "cli/connection/commands.h"
#include "cli/sessions/forwarded_connections.h"
#include "cli/sessions/sessions.h"
#include "http/tcp_socket.h"

namespace muster::cli::sessions {

namespace {

constexpr int kLargestPort = 65'535;

std::optional<int> port_from(std::string_view text, int least) {
  const auto port = base::number_of<int>(text);
  return port && *port >= least && *port <= kLargestPort ? port : std::nullopt;
}

Call read_port_forward(Reading& in) {
  PortForwardCommand command{.name = in.name("job"),
                             .project = in.whose_job(),
                             .task = in.reader.text("--task"),
                             .address = in.reader.text("--address", "127.0.0.1"),
                             .ports = {}};
  const std::vector<std::string>& words = in.arguments.names;
  for (size_t i = 1; i < words.size(); ++i) {
    const auto ports = forwarded_port_of(words[i]);
    if (ports) command.ports.push_back(*ports);
    if (!ports) in.reader.fault("", ports.error().what);
  }
  if (words.size() == 1) in.reader.fault("", "say which port of it, as in: " + words[0] + " 8888");
  return command;
}

}  // namespace

Command port_forward_command() {
  return {
      .name = "port-forward",
      .help = "reach ports of a task as if they were of this machine",
      .read = read_port_forward,
      .positionals = {.name = "NAME [LOCAL:]PORT...", .most = kAnyNumber, .offer = Offer::kJobs},
      .flags = task_flag("of this task; else of the one that decides how the job ends") +
               Flags{{.name = "--address",
                      .value = "ADDRESS",
                      .help = "listen there (default: 127.0.0.1, for this machine alone)"}} +
               whose_job_flag(),
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
                         .advice = "muster get " + job.spec.name + " shows its tasks"};
    }
    const job::Task& task = command_.task.empty() ? job::deciding_task(job) : *found;
    if (task.phase != job::TaskPhase::kRunning) {
      return base::Error{.code = ErrorCode::kConflict,
                         .what = "'" + task.name + "' of job '" + job.spec.name +
                                 "' does not run: it is " + std::string(job::to_string(task.phase)),
                         .advice = "muster get " + job.spec.name + " shows what its tasks do"};
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
    std::cerr << command_.program << ": warning: whoever reaches " << at
              << " of this machine reaches the task\n";
  }

  void look_out_for(int fd) {
    epoll_event event{.events = EPOLLIN, .data = {.fd = fd}};
    ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  }

  /// Until the job has ended. Where the server goes away, what it carried breaks, and what comes
  /// next goes by the new one.
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
      if (ended && *ended) return tell_end(**ended);
      if (!ended && ended.error().code != ErrorCode::kUnavailable) return ended.error();
      MUSTER_CHECK(connection_.come_back());
    }
  }

  int tell_end(const job::Job& job) const {
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

  /// Whoever waits for room is not looked at meanwhile, or it would wake this for ever.
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

}  // namespace muster::cli::sessions
