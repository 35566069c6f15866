#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <deque>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/shim/channels.h"
#include "engine/shim/exec.h"
#include "engine/shim/modes.h"
#include "engine/shim/mpi_question.h"
#include "engine/shim/plan.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/process_usage.h"
#include "engine/shim/quick_acks.h"
#include "engine/shim/ranks.h"
#include "engine/shim/task_account.h"
#include "engine/shim/task_limits.h"

namespace muster::engine {

namespace {

constexpr std::chrono::milliseconds kLookForPrograms{50};

/// A rank sends right after it has connected; beyond so many connections, the oldest is dropped.
constexpr size_t kMostSilentRanks = 256;

/// Exit code of /usr/bin/env (and of a shell) if the program to run does not exist.
constexpr int kEnvNotFound = 127;

class Inner {
 public:
  explicit Inner(InnerPlan plan) : plan_(std::move(plan)) {}

  void run() {
    if (const auto settled = take_account(); !settled) {
      dprintf(STDERR_FILENO, "%s\n", settled.error().what.c_str());
      return;
    }
    if (const auto filtered = load_filter(); !filtered) return refuse(filtered.error());
    if (!plan_.rank_output_folder.empty()) listen();
    if (plan_.mpi) choose_mpi();
    send(std::string(kHello));
    if (!plan_.argv.empty()) start_program();
    while (!done_) wait_for_something();
    if (!plan_.own_process_tree) kill_descendants();
  }

 private:
  /// bubblewrap has loaded it in a sandbox, or take_account().
  base::Result<void> load_filter() const {
    if (plan_.account || plan_.own_process_tree || plan_.filter.empty()) return {};
    return filter_system_calls(plan_.filter);
  }

  /// A task that is to be filtered does not run without the filter.
  void refuse(const base::Error& error) {
    send(std::string(kHello));
    const job::ExitStatus status = status_of_failed_start(error);
    dprintf(STDERR_FILENO, "muster: cannot run the command: %s\n", status.error.c_str());
    finish(status);
  }

  /// From here on this process has the rights of the task, and no more.
  base::Result<void> take_account() {
    const bool has_users = plan_.account && plan_.account->has_namespace();
    if (plan_.account) MUSTER_CHECK(make_own_places(*plan_.account));
    if (has_users) MUSTER_CHECK(make_own_users(kInnerControl));
    MUSTER_CHECK(set_resource_limits(plan_.limits));
    const auto placed = set_cpus_and_niceness(plan_.limits);
    if (!placed) dprintf(STDERR_FILENO, "muster: %s\n", placed.error().what.c_str());
    if (!plan_.account) return {};
    MUSTER_CHECK(take_ids(*plan_.account));
    // The kernel has forgotten it with the change of ids: bubblewrap --die-with-parent.
    ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
    if (plan_.terminal) MUSTER_CHECK(open_own_terminal());
    return plan_.filter.empty() ? base::Result<void>() : filter_system_calls(plan_.filter);
  }

  static base::Result<void> open_own_terminal() {
    MUSTER_TRY(PseudoTerminal terminal, open_terminal());
    // Either end may have the number that the slave is to have.
    constexpr int kBeyond = 16;
    for (base::UniqueFd* end : {&terminal.master, &terminal.slave}) {
      *end = base::UniqueFd(::fcntl(end->get(), F_DUPFD_CLOEXEC, kBeyond));
    }
    if (::dup3(terminal.slave.get(), kInnerInput, O_CLOEXEC) < 0) {
      return base::system_error("cannot keep the terminal of the task", errno);
    }
    return send_terminal(kInnerControl, terminal.master);
  }

  // Without the socket, the output of ranks goes through mpirun: it loses its rank numbers only.
  void listen() {
    auto ranks = listen_for_ranks(plan_.rank_output_folder);
    if (ranks) ranks_ = *std::move(ranks);
  }

  // A stop that arrives meanwhile ends the question at once and is handled afterwards.
  void choose_mpi() {
    if (!enter_folder()) return;  // the start of the program reports this
    const auto answer = ask_mpi(plan_.mpi->program, {.environment = plan_.environment,
                                                     .folder = plan_.folder,
                                                     .interrupted_by = kInnerControl});
    if (!answer) return;
    const launch::MpiChoice::Variant& variant = variant_for(*plan_.mpi, *answer);
    add_variables(variant, plan_.environment);
    if (const auto copied = copy_files(variant, plan_.generated); !copied) {
      dprintf(STDERR_FILENO, "muster: %s\n", copied.error().what.c_str());
    }
    send(encode(*answer));
  }

  void start_program() {
    look_for_ranks();
    auto child = start();
    if (!child) {
      const job::ExitStatus status = status_of_failed_start(child.error());
      dprintf(STDERR_FILENO, "muster: cannot run the command: %s\n", status.error.c_str());
      finish(status);
      return;
    }
    program_ = child->pid;
    // The end of a terminal is seen only when no process has the slave open.
    if (has_input()) ::close(kInnerInput);
  }

  bool has_input() const { return plan_.input || plan_.terminal; }

  /// The name of the program may be relative to the folder.
  base::Result<void> enter_folder() {
    if (::chdir(plan_.folder.c_str()) == 0) return {};
    base::Error error =
        base::system_error("cannot enter the working folder '" + plan_.folder + "'", errno);
    error.code = base::ErrorCode::kRefused;
    error.advice = "the folder must exist on the machine that the task runs on; choose another one";
    return error;
  }

  base::Result<base::Child> start() {
    MUSTER_CHECK(enter_folder());
    MUSTER_TRY(program_path_, base::find_program(plan_.argv.front(), plan_.environment));
    base::SpawnOptions options{
        .argv = plan_.argv,
        .program = program_path_,
        .environment = plan_.environment,
        .descriptors = {{STDOUT_FILENO, STDOUT_FILENO}, {STDERR_FILENO, STDERR_FILENO}},
        .new_session = true,
        .folder = plan_.folder};
    if (plan_.terminal) {
      MUSTER_TRY(options.terminal, path_of_terminal());
      options.descriptors.clear();
    } else if (plan_.input) {
      options.descriptors.emplace_back(kInnerInput, STDIN_FILENO);
    }
    return spawn_program(options);
  }

  /// The path of the program's terminal; the same in the sandbox, which has the machine's /dev/pts.
  static base::Result<std::string> path_of_terminal() {
    std::array<char, 64> path{};
    if (::ttyname_r(kInnerInput, path.data(), path.size()) != 0) {
      return base::system_error("cannot find the terminal", errno);
    }
    return std::string(path.data());
  }

  void wait_for_something() {
    std::vector<pollfd> watched{{kInnerControl, POLLIN, 0},
                                {children_.get(), POLLIN, 0},
                                {answers_ssh() ? kInnerListener : -1, POLLIN, 0},
                                {ranks_.get(), POLLIN, 0}};
    for (const base::UniqueFd& rank : silent_ranks_) watched.push_back({rank.get(), POLLIN, 0});
    if (::poll(watched.data(), watched.size(), milliseconds_to_wait()) < 0) return;
    if (rank_watch_.due() && RankWatch::Steady::now() >= *rank_watch_.due()) rank_watch_.look();
    // First, because the end of the program may end everything: the outputs of ranks must be sent
    // before that.
    const bool ranks_call = std::any_of(watched.begin() + 3, watched.end(),
                                        [](const pollfd& each) { return each.revents != 0; });
    if (ranks_call) take_rank_outputs();
    if (watched[0].revents != 0) receive();
    if (watched[1].revents != 0) reap();
    if (leaving_ && !done_) leave();
    if (watched[2].revents != 0 && !done_ && answers_ssh()) answer_ssh();
    quick_acks_.serve(QuickAcks::Steady::now());
  }

  bool answers_ssh() const { return !plan_.ssh_command.empty() && !leaving_; }

  /// A program starts that may start ranks.
  void look_for_ranks() {
    if (plan_.takes_ranks) rank_watch_.started(RankWatch::Steady::now());
  }

  int milliseconds_to_wait() const {
    if (leaving_) return milliseconds_of(kLookForPrograms);
    const int acks = quick_acks_.milliseconds_to_wait();
    const auto due = rank_watch_.due();
    return due ? sooner(acks, milliseconds_of(*due - RankWatch::Steady::now())) : acks;
  }

  void receive() {
    std::array<char, 64> buffer{};
    const ssize_t count = ::recv(kInnerControl, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0) return;
    const std::string_view word(buffer.data(), static_cast<size_t>(count));
    if (word == kTerminate) {
      terminate();
    } else {
      done_ = true;  // kKill, or the outer half is gone
    }
  }

  void terminate() {
    if (program_ > 0) {
      ::kill(-program_, SIGTERM);
      return;
    }
    leaving_ = true;
    leave();
  }

  /// Stops a task without a program of its own: sends SIGTERM to the programs that run in it. The
  /// task ends when the programs have ended, and the remote shells, which pass on their last
  /// output. Another program may be about to start, so this is called again and again.
  void leave() {
    const bool has_children = ::waitpid(-1, nullptr, WNOHANG) >= 0;
    const std::vector<pid_t> programs = programs_to_end();
    if (!has_children && programs.empty()) return finish({.signal = SIGTERM, .stopped = true});
    // A signalled program may start others to save its work: these, and those that they start, get
    // no signal.
    std::set<pid_t> warned = signalled_;
    for (const pid_t pid : programs) {
      if (!signalled_.insert(pid).second) continue;
      const auto stat = parse_stat(read_proc_file("/proc/" + std::to_string(pid) + "/stat"));
      if (stat && warned.contains(stat->second.parent)) {
        warned.insert(pid);
      } else {
        ::kill(pid, SIGTERM);
      }
    }
  }

  /// Without a remote shell, ranks come into the sandbox from outside (srun): they are not below this
  /// process. Without a sandbox, ranks of srun are not found, and the task does not wait for them.
  std::vector<pid_t> programs_to_end() const {
    if (!plan_.ssh_command.empty()) return reached_programs(plan_.ssh_command.front());
    return plan_.own_process_tree ? others_in_namespace() : reached_programs("");
  }

  void reap() {
    drain_signals(children_);
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
      if (pid == program_) finish(end_of_program(status));
      quick_acks_.ended(pid);
    }
  }

  job::ExitStatus end_of_program(int status) const {
    if (WIFSIGNALED(status)) return {.signal = WTERMSIG(status)};
    job::ExitStatus end{.code = WEXITSTATUS(status)};
    if (end.code != kEnvNotFound) return end;
    const auto fault = interpreter_fault(program_path_, plan_.environment);
    return fault ? status_of_failed_start(*fault) : end;
  }

  // Each connection gets an sshd of its own (inetd mode). The shim has bound the port before the
  // port was announced, so no other process can take it (docs/decisions/0003).
  void answer_ssh() {
    base::UniqueFd connection(::accept4(kInnerListener, nullptr, nullptr, SOCK_CLOEXEC));
    if (!connection) return;
    look_for_ranks();
    const auto child = base::spawn({.argv = plan_.ssh_command,
                                    .program = plan_.ssh_command.front(),
                                    .environment = plan_.environment,
                                    .descriptors = {{connection.get(), STDIN_FILENO},
                                                    {connection.get(), STDOUT_FILENO},
                                                    {STDERR_FILENO, STDERR_FILENO}},
                                    .new_session = true,
                                    .folder = "/"});
    if (!child) {
      dprintf(STDERR_FILENO, "muster: %s: install the package openssh-server\n",
              child.error().what.c_str());
      return;
    }
    quick_acks_.add(child->pid, connection, QuickAcks::Steady::now());
  }

  /// Any program of the task can connect, and need not send anything: nothing waits for it.
  void take_rank_outputs() {
    std::erase_if(silent_ranks_, [](const base::UniqueFd& rank) { return take_rank_output(rank); });
    while (true) {
      base::UniqueFd rank(::accept4(ranks_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!rank) return;
      if (!take_rank_output(rank)) silent_ranks_.push_back(std::move(rank));
      if (silent_ranks_.size() > kMostSilentRanks) silent_ranks_.pop_front();
    }
  }

  /// False: nothing has arrived yet.
  static bool take_rank_output(const base::UniqueFd& rank) {
    auto message = receive_message(rank.get());
    if (!message && message.error().code == base::ErrorCode::kUnavailable) return false;
    const auto output = message ? rank_output_of(*message) : std::nullopt;
    if (output && send_rank_output(kInnerControl, *output)) answer_rank(rank.get());
    return true;
  }

  void finish(const job::ExitStatus& status) {
    if (ranks_) take_rank_outputs();
    send(encode(ExitRecord{.status = status}));
    done_ = true;
  }

  static void send(const std::string& text) {
    [[maybe_unused]] const ssize_t sent =
        ::send(kInnerControl, text.data(), text.size(), MSG_NOSIGNAL);
  }

  InnerPlan plan_;
  base::UniqueFd children_ = watch_children();
  base::UniqueFd ranks_;
  std::deque<base::UniqueFd> silent_ranks_;  ///< connected, and nothing was received from them yet
  QuickAcks quick_acks_;
  RankWatch rank_watch_{std::filesystem::path(plan_.generated) / "ranks"};
  pid_t program_ = -1;
  std::string program_path_;
  bool leaving_ = false;       ///< the task has no program of its own and is stopping
  std::set<pid_t> signalled_;  ///< programs that got SIGTERM already
  bool done_ = false;
};

}  // namespace

int run_inner() {
  auto text = base::read_file("/proc/self/fd/" + std::to_string(kInnerPlan));
  auto plan = text ? decode_inner_plan(*text) : base::Result<InnerPlan>(text.error());
  if (!plan) {
    dprintf(STDERR_FILENO, "muster: %s\n", plan.error().what.c_str());
    return 1;
  }
  ::close(kInnerPlan);
  for (const int fd : {kInnerControl, kInnerListener, kInnerInput})
    ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  Inner(*std::move(plan)).run();
  return 0;
}

}  // namespace muster::engine
