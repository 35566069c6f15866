#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/shim/attachments.h"
#include "engine/shim/channels.h"
#include "engine/shim/limit_watch.h"
#include "engine/shim/log_writer.h"
#include "engine/shim/modes.h"
#include "engine/shim/mpi_question.h"
#include "engine/shim/network.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/ranks.h"
#include "engine/shim/task_account.h"
#include "engine/shim/task_groups.h"
#include "engine/shim/task_limits.h"
#include "engine/shim/task_metrics.h"
#include "engine/shim/task_port.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

namespace {

using Steady = std::chrono::steady_clock;

// Limit of the output of a failed sandbox that the error quotes, in bytes.
constexpr size_t kQuotedOutput = 400;
// How long the output of an ended task is read while a program elsewhere holds it open, such as a
// service of systemd. The task's own processes have ended by then.
constexpr std::chrono::seconds kPatienceWithOthers{10};

UniqueFd watch_stop_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGQUIT}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

/// A stream of output that goes to the log: of the task's program, or of a rank in it.
struct Source {
  UniqueFd descriptor;
  job::LogStream stream = job::LogStream::kOutput;
  std::optional<int> rank;
  std::optional<TerminalText> terminal = std::nullopt;  ///< set for the output of a terminal
  MetricLines metrics = {};
  std::optional<RankTags> tags = std::nullopt;  ///< set for the output of a launcher
};

class Outer {
 public:
  Outer(TaskFolder folder, OuterSite site) : folder_(std::move(folder)), site_(std::move(site)) {
    if (site_.is_process_one) children_ = watch_children();
  }

  bool run() {
    if (auto prepared = prepare(); !prepared) return refuse(prepared.error());
    if (auto started = start(); !started) {
      remove_groups();
      let_the_server_collect(plan_.handed, generated().string());
      return refuse(started.error());
    }
    while (wrapper_running_ || !sources_.empty()) {
      serve_next();
      if (const auto end = end_of_output(); end && Steady::now() >= *end) leave_output();
    }
    kill_descendants();
    let_the_server_collect(plan_.handed, generated().string());
    if (!inner_is_up_ || failure_) {
      remove_groups();
      return refuse(failure_ ? *failure_ : wrapper_failure());
    }
    metrics_->finish();
    write_exit_record();
    remove_groups();
    attachments_.finish();  // after the record: clients read it when the socket closes
    return true;
  }

 private:
  // --- starting

  Result<void> prepare() {
    MUSTER_TRY(const std::string text, base::read_file(folder_.plan()));
    MUSTER_TRY(plan_, decode_shim_plan(text));
    UniqueFd log(::open(folder_.log().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
    if (!log) return base::system_error("cannot open the log", errno);
    log_.emplace(std::move(log), clock_,
                 LogQuota{.bytes = plan_.log_quota, .start = folder_.log_start()});
    for (const std::string& notice : plan_.notices) log_->notice(notice);
    metrics_.emplace(folder_, generated(), plan_.sampling, clock_,
                     [this](const std::string& line) { log_->notice(line); });
    MUSTER_CHECK(exit_.reserve(folder_.exit()));
    MUSTER_CHECK(running_.reserve(folder_.running()));
    // If the folder's file system has no sockets, users cannot attach to the task; it runs all the
    // same.
    [[maybe_unused]] const auto listens = attachments_.listen(folder_.path);
    if (plan_.port != 0) {
      MUSTER_TRY(listener_, listen_on(plan_.address, plan_.port));
    }
    for (const launch::ServedPort& served : plan_.serves) MUSTER_CHECK(check_is_free(served));
    return {};
  }

  Result<void> start() {
    MUSTER_TRY(Pair output, make_output_pipe());
    MUSTER_TRY(Pair error, make_output_pipe());
    MUSTER_TRY(control_, make_control());
    MUSTER_TRY(const UniqueFd inner, in_memory_file(encode(plan_.inner)));
    kills_before_ = out_of_memory_kills();
    group_kills_before_ = kills_in_group().value_or(0);
    make_ranks_folder();
    base::SpawnOptions options{.argv = plan_.wrapper,
                               .environment = base::current_environment(),
                               .descriptors = {{output.there.get(), STDOUT_FILENO},
                                               {error.there.get(), STDERR_FILENO},
                                               {control_.there.get(), kInnerControl},
                                               {inner.get(), kInnerPlan}},
                               .blocked_signals = {SIGTERM, SIGHUP, SIGINT, SIGUSR1, SIGUSR2}};
    if (listener_) options.descriptors.emplace_back(listener_.get(), kInnerListener);
    UniqueFd filter;
    if (!plan_.inner.filter.empty() && !plan_.inner.account) {
      MUSTER_TRY(filter, in_memory_file(plan_.inner.filter));
      options.descriptors.emplace_back(filter.get(), kInnerFilter);
    }
    MUSTER_TRY(ProgramInput input, make_program_input(plan_.inner));
    if (input.theirs) options.descriptors.emplace_back(input.theirs.get(), kInnerInput);
    metrics_->start();
    if (plan_.inner.account) MUSTER_CHECK(hand_over(plan_.handed, *plan_.inner.account));
    enter_groups();
    MUSTER_TRY(wrapper_, base::spawn(options));
    groups_.leave();
    watch_ = LimitWatch(plan_.inner.limits, wrapper_.pid);
    wrapper_running_ = true;
    for (UniqueFd* end : {&control_.there, &listener_}) end->reset();
    sources_.push_back({.descriptor = std::move(output.here)});
    sources_.push_back({.descriptor = std::move(error.here), .stream = job::LogStream::kError});
    for (Source& source : sources_) {
      if (plan_.tags_ranks) source.tags.emplace(source.stream, plan_.prepends_rank);
    }
    if (input.from_program) {
      sources_.push_back({.descriptor = std::move(input.from_program), .terminal = TerminalText()});
    }
    attachments_.set_input(std::move(input.to_program), plan_.inner.terminal);
    return {};
  }

  Result<void> make_and_enter_groups() {
    groups_ = TaskGroups(plan_.inner.limits.groups);
    MUSTER_CHECK(groups_.make());
    return groups_.enter();
  }

  /// If no group can bind the task to its CPUs, for example because one of them is offline, the groups
  /// enforce the other limits. If the groups cannot be made, the task is measured instead.
  void enter_groups() {
    auto entered = make_and_enter_groups();
    if (entered) return;
    const std::string why = entered.error().what;
    if (auto others = without_cpus(plan_.inner.limits.groups);
        others != plan_.inner.limits.groups) {
      remove_groups();
      plan_.inner.limits.groups = std::move(others);
      entered = make_and_enter_groups();
      if (entered) return log_->notice("no control group binds this task to its CPUs: " + why);
    }
    log_->notice("cannot use control groups for this task; Muster measures it instead: " +
                 entered.error().what);
    remove_groups();
    groups_ = TaskGroups({});
    plan_.inner.limits.groups.clear();
  }

  void remove_groups() const {
    groups_.go_home();
    groups_.remove_soon();
  }

  /// Makes the folder in which ranks sign in: watchers wait for it to exist.
  void make_ranks_folder() const {
    if (plan_.inner.takes_ranks) ::mkdir((generated() / "ranks").c_str(), 0700);
  }

  std::filesystem::path generated() const {
    return plan_.generated.empty() ? folder_.generated() : std::filesystem::path(plan_.generated);
  }

  uint64_t out_of_memory_kills() const {
    return site_.is_process_one ? kills_in_container() : kills_on_machine();
  }

  /// Reports why the task could not be started.
  bool refuse(const base::Error& error) {
    site_.report(&error);
    return false;
  }

  base::Error wrapper_failure() const {
    const std::string what = site_.is_process_one ? "its first process" : "the sandbox";
    base::Error error{.code = base::ErrorCode::kRefused,
                      .what = wrapper_output_.empty() ? what + " ended before the task started"
                                                      : wrapper_output_};
    // The exit code does not show that bubblewrap failed: it is 1 for every fault, and the program
    // in the sandbox can end with 1, too. So its output is examined, which is another program's
    // text.
    if (wrapper_output_.starts_with("bwrap: ")) {
      error.detail = std::make_shared<const SandboxFailed>();
    }
    return error;
  }

  Result<void> record_running() const {
    const pid_t self = ::getpid();
    return running_.write(
        {.pid = self, .start_ticks = start_ticks_of(self), .started = clock_.now()});
  }

  // --- running

  /// Waits until a descriptor is ready or a time has come, and handles whatever is due.
  void serve_next() {
    enum : size_t { kStops, kControl, kWrapper, kChildren, kLeash };
    std::vector<pollfd> watched{{stops_.get(), POLLIN, 0},
                                {control_.here.get(), POLLIN, 0},
                                {wrapper_running_ ? wrapper_.pidfd.get() : -1, POLLIN, 0},
                                {children_.get(), POLLIN, 0},
                                {leash(), POLLIN, 0}};
    const size_t first = watched.size();
    const size_t sources = sources_.size();
    for (const Source& source : sources_) watched.push_back({source.descriptor.get(), POLLIN, 0});
    const size_t measured = watched.size();
    metrics_->watch(watched);
    const size_t attached = watched.size();
    attachments_.watch(watched);
    const size_t probed = watched.size();
    probe_.watch(watched);
    if (::poll(watched.data(), watched.size(), milliseconds_to_wait()) < 0) return;
    if (kill_at_ && Steady::now() >= *kill_at_) kill();
    if (wrapper_running_ && !excess_) check_limits();
    if (watched[kStops].revents != 0) handle_stop();
    // Before the output is copied: a reader of output must find the record that the task runs.
    if (!inner_is_up_) receive();
    for (size_t i = 0; i < sources; ++i) {
      if (watched[first + i].revents != 0) copy(sources_[i]);
    }
    std::erase_if(sources_, [](const Source& source) { return !source.descriptor; });
    metrics_->serve(std::span(watched).subspan(measured));
    attachments_.serve(std::span(watched).subspan(attached, probed - attached));
    if (probe_.serve(std::span(watched).subspan(probed))) record_answer();
    if (watched[kControl].revents != 0) receive();
    if (watched[kWrapper].revents != 0) wrapper_ended();
    if (watched[kLeash].revents != 0) leash_ended();
    if (site_.is_process_one) reap_orphans();
  }

  /// Timeout of poll(2); -1: no timeout.
  int milliseconds_to_wait() const {
    int wait = sooner(metrics_->milliseconds_to_wait(), probe_.milliseconds_to_wait());
    if (wrapper_running_ && !excess_) wait = sooner(wait, watch_.milliseconds_to_wait());
    const auto end = end_of_output();
    if (end) wait = sooner(wait, milliseconds_of(*end - Steady::now()));
    if (!kill_at_) return wait;
    return sooner(wait, milliseconds_of(*kill_at_ - Steady::now()));
  }

  /// Reaps the orphans of other programs in the container. The shim's own children, the wrapper and
  /// the sampler, are reaped elsewhere. waitid() reports an ended own child first until it is
  /// reaped, so the orphans behind it are reaped in a later turn.
  void reap_orphans() {
    drain_signals(children_);
    siginfo_t ended{};
    while (::waitid(P_ALL, 0, &ended, WEXITED | WNOHANG | WNOWAIT) == 0 && ended.si_pid > 0) {
      const bool own =
          (wrapper_running_ && ended.si_pid == wrapper_.pid) || ended.si_pid == metrics_->sampler();
      if (own) return;
      ::waitpid(ended.si_pid, nullptr, WNOHANG);
      ended = {};
    }
  }

  void check_limits() {
    excess_ = watch_.look();
    if (!excess_) return;
    if (watch_.is_scratch_too_deep()) {
      log_->notice(
          "folders in $TMPDIR are nested more than 256 deep, so their size cannot be measured");
    }
    log_->notice("the task " + job::explain({.signal = SIGKILL, .limit = excess_}));
    kill();
  }

  void handle_stop() {
    signalfd_siginfo info{};
    if (::read(stops_.get(), &info, sizeof info) != sizeof info) return;
    const bool again = std::exchange(stopped_, true);
    if (info.ssi_signo == SIGQUIT) return kill();
    // Further requests to stop do not shorten the grace period.
    if (again) return;
    send(kTerminate);
    kill_at_ = Steady::now() + plan_.grace;
  }

  int leash() const { return plan_.is_leashed && !is_cut_loose_ ? kShimLeash : -1; }

  void leash_ended() {
    is_cut_loose_ = true;
    log_->notice("killed: the muster-node that held the task has ended");
    kill();
  }

  void kill() {
    kill_at_.reset();
    send(kKill);
    // A sandbox ends with its wrapper (bwrap --die-with-parent). Without a sandbox, the inner half
    // ends when it reads kKill, or the end of the socket. Only this direction of the socket is shut
    // down: the other may still carry the outputs of ranks.
    if (plan_.inner.own_process_tree && wrapper_running_) {
      [[maybe_unused]] const auto sent = base::send_signal(wrapper_.pidfd, SIGKILL);
    }
    if (wrapper_running_) groups_.kill();
    if (control_.here) ::shutdown(control_.here.get(), SHUT_WR);
  }

  void send(std::string_view message) {
    if (!control_.here) return;
    [[maybe_unused]] const ssize_t sent =
        ::send(control_.here.get(), message.data(), message.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }

  /// Returns the number of bytes.
  size_t copy(Source& source) {
    static std::array<char, 64 << 10> buffer;
    const ssize_t count = ::read(source.descriptor.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (count <= 0) {  // a terminal ends with EIO, a pipe with 0
      end_source(source);
      return 0;
    }
    const std::string_view bytes(buffer.data(), static_cast<size_t>(count));
    take_output(source, bytes);
    return bytes.size();
  }

  void end_source(Source& source) {
    if (source.tags) source.tags->finish(into_log());
    metrics_->printing_ended(source.metrics, source.rank);
    source.descriptor.reset();
  }

  void take_output(Source& source, std::string_view bytes) {
    if (!inner_is_up_) {
      wrapper_output_ +=
          bytes.substr(0, kQuotedOutput - std::min(kQuotedOutput, wrapper_output_.size()));
    }
    metrics_->printed(source.metrics, bytes, source.rank);
    attachments_.output(source.stream, bytes);
    if (source.terminal) return log_->write(source.stream, source.terminal->plain(bytes));
    if (source.tags) return source.tags->add(bytes, into_log());
    log_->write(source.stream, bytes, source.rank);
  }

  RankTags::Emit into_log() {
    return [this](std::optional<int> rank, job::LogStream stream, std::string_view bytes) {
      log_->write(stream, bytes, rank);
    };
  }

  /// When to stop reading output that has no end although the task has ended. A stop request
  /// shortens the wait to the time in which a terminal delivers its last output.
  std::optional<Steady::time_point> end_of_output() const {
    if (!wrapper_end_ || sources_.empty()) return std::nullopt;
    if (stopped_ || is_cut_loose_) return *wrapper_end_ + kTerminalLastWords;
    return *wrapper_end_ + kPatienceWithOthers;
  }

  /// The task's own processes have ended: what they have printed and the shim has not read yet is
  /// in the pipes, before whatever another program prints from now on.
  void leave_output() {
    for (Source& source : sources_) {
      for (int64_t left = bytes_in(source.descriptor); left > 0;) {
        const size_t copied = copy(source);
        if (copied == 0) break;
        left -= static_cast<int64_t>(copied);
      }
    }
    std::erase_if(sources_, [](const Source& source) { return !source.descriptor; });
    if (sources_.empty()) return;
    for (Source& source : sources_) end_source(source);
    sources_.clear();
    log_->notice("another program still holds the task's output; it is read no longer");
  }

  void receive() {
    while (control_.here) {
      auto message = receive_message(control_.here.get());
      if (!message) return;
      if (message->text.empty()) return control_.here.reset();
      if (message->text == kTerminal && message->descriptors.size() == 1) {
        take_terminal(std::move(message->descriptors.front()));
      } else if (auto output = rank_output_of(*message)) {
        take_rank(*std::move(output));
      } else {
        handle(message->text);
      }
    }
  }

  /// The inner half has made it in the sandbox and keeps the other end.
  void take_terminal(UniqueFd master) {
    auto input = program_input_of({.master = std::move(master), .slave = {}});
    if (!input) return;
    sources_.push_back({.descriptor = std::move(input->from_program), .terminal = TerminalText()});
    attachments_.set_input(std::move(input->to_program), true);
  }

  /// Nothing but the inner half runs in the sandbox yet.
  void give_ids() {
    const auto inner = inner_half_of(::getpid());
    auto mapped = inner ? map_ids(*inner, *plan_.inner.account) : Result<void>(inner.error());
    send(mapped ? kHasIds : std::string_view(mapped.error().what));
  }

  void take_rank(RankOutput output) {
    for (const UniqueFd* end : {&output.terminal, &output.error}) {
      ::fcntl(end->get(), F_SETFL, O_NONBLOCK);
    }
    sources_.push_back({.descriptor = std::move(output.terminal), .rank = output.rank});
    sources_.push_back({.descriptor = std::move(output.error),
                        .stream = job::LogStream::kError,
                        .rank = output.rank});
  }

  void handle(std::string_view text) {
    if (text == kHello) {
      begin();
    } else if (text == kNeedsIds && plan_.inner.account && !inner_is_up_) {
      give_ids();
    } else if (const auto mpi = read_mpi_answer(text)) {
      take_mpi(*mpi);
    } else if (auto record = decode_exit(text)) {
      status_ = record->status;
    }
  }

  void begin() {
    inner_is_up_ = true;
    if (auto recorded = record_running(); !recorded) {
      failure_ = std::move(recorded).error();
      return kill();
    }
    site_.report(nullptr);
    const bool is_out_of_reach = site_.is_process_one || site_.answered;
    if (is_out_of_reach && plan_.port != 0) probe_.start(plan_.address, plan_.port);
  }

  /// Stores what the MPI changes in the plan: programs beside the task's own get the variables,
  /// too, and a change of a file must also change its copy (InnerPlan::taken_from).
  void take_mpi(const MpiAnswer& answer) {
    if (!plan_.inner.mpi) return;
    if (!answer.is_known()) log_->notice(notice_of(answer, *plan_.inner.mpi));
    const launch::MpiChoice::Variant& variant = variant_for(*plan_.inner.mpi, answer);
    add_variables(variant, plan_.inner.environment);
    plan_.inner.taken_from = variant.files;
    [[maybe_unused]] const auto kept = base::write_file(folder_.plan(), encode(plan_));
    if (!answer.is_known()) return;
    [[maybe_unused]] const auto written =
        base::write_file(folder_.mpi(), job::to_string(*answer.version));
  }

  void record_answer() const {
    [[maybe_unused]] const auto written = base::write_file(folder_.answered(), "");
    if (site_.answered) site_.answered();
  }

  // --- ending

  void wrapper_ended() {
    // The last messages of the inner half may still wait in the socket.
    receive();
    const auto status = base::wait_for(wrapper_);
    wrapper_running_ = false;
    metrics_->stop_sampling();
    kill_descendants();
    wrapper_end_ = Steady::now();
    if (status_) return;
    const int how = status ? *status : 0;
    status_ = WIFSIGNALED(how) ? job::ExitStatus{.signal = WTERMSIG(how)}
                               : job::ExitStatus{.signal = SIGKILL};
  }

  void write_exit_record() {
    job::ExitStatus status = status_.value_or(job::ExitStatus{.signal = SIGKILL});
    status.stopped = stopped_;
    // Also for a stopped worker: the kernel may have killed one of its ranks.
    status.out_of_memory =
        status.shell_code() == 128 + SIGKILL && out_of_memory_kills() > kills_before_;
    add_limits(status);
    if (is_cut_loose_) status.error = "the muster-node that held it was killed";
    log_->finish();
    status.lost_log_bytes = static_cast<int64_t>(log_->lost_in_all());
    exit_.write({.status = std::move(status), .ended = clock_.now()});
  }

  /// After the kernel has killed a process of the task, the program may end in any way: only the
  /// counter of the control group shows the cause.
  void add_limits(job::ExitStatus& status) const {
    const TaskLimits& limits = plan_.inner.limits;
    status.limit = excess_;
    if (!status.limit && !status.succeeded()) status.limit = groups_.reached(limits);
    if (!status.limit && !status.succeeded()) status.limit = watch_.processes_reached();
    const bool was_refused = status.limit && status.limit->limit == job::Limit::kProcesses;
    if (was_refused && stopped_ && !excess_) status.limit.reset();
    const bool is_own_kill =
        site_.is_process_one || kills_in_group().value_or(0) > group_kills_before_;
    if (!status.limit && status.out_of_memory && is_own_kill) status.limit = limit_of_own_group();
    const bool is_too_large = status.shell_code() == 128 + SIGXFSZ && limits.file_bytes > 0;
    if (!status.limit && is_too_large) status.limit = {job::Limit::kFileSize, limits.file_bytes};
    if (status.limit && status.limit->limit == job::Limit::kMemory) status.out_of_memory = true;
  }

  /// The memory limit of the group that the shim itself runs in. A container and a step of Slurm have
  /// that of the task; elsewhere an administrator has set it.
  job::LimitReached limit_of_own_group() const {
    const int64_t claim = plan_.inner.limits.memory_bytes;
    const bool is_tasks = plan_.inner.limits.is_held_by_container || plan_.is_leashed;
    if (!is_tasks || claim == 0) return {.limit = job::Limit::kMemory};
    return {job::Limit::kMemory, claim, memory_peak_of_group()};
  }

  TaskFolder folder_;
  OuterSite site_;
  base::SystemClock clock_;
  ShimPlan plan_;
  std::optional<LogWriter> log_;
  RunningFile running_;
  ExitFile exit_;
  UniqueFd listener_;
  Attachments attachments_;
  std::optional<TaskMetrics> metrics_;
  PortProbe probe_;
  UniqueFd stops_ = watch_stop_signals();
  UniqueFd children_;  ///< signalfd for SIGCHLD; only if this is process 1
  std::vector<Source> sources_;
  Pair control_;
  base::Child wrapper_;
  TaskGroups groups_{{}};
  LimitWatch watch_;
  std::optional<job::LimitReached> excess_;  ///< the limit for which the task was killed
  bool wrapper_running_ = false;
  bool inner_is_up_ = false;
  bool stopped_ = false;
  bool is_cut_loose_ = false;
  uint64_t kills_before_ = 0;
  uint64_t group_kills_before_ = 0;
  std::string wrapper_output_;
  std::optional<Steady::time_point> kill_at_;
  std::optional<Steady::time_point> wrapper_end_;
  std::optional<base::Error> failure_;  ///< why the task is not held although its inner half was up
  std::optional<job::ExitStatus> status_;
};

}  // namespace

bool hold_task(const TaskFolder& folder, OuterSite site) {
  return Outer(folder, std::move(site)).run();
}

int run_outer(const std::filesystem::path& task_folder) {
  for (const int fd : {kShimLock, kShimStatus, kShimLeash}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  ::prctl(PR_SET_CHILD_SUBREAPER, 1);
  ::signal(SIGPIPE, SIG_IGN);
  for (const int meant_for_programs : {SIGHUP, SIGINT, SIGUSR1, SIGUSR2}) {
    ::signal(meant_for_programs, SIG_IGN);
  }
  // First: these three descriptors may be absent, and a file that is opened now would get their
  // numbers.
  const bool has_network = ::fcntl(kShimNetwork, F_SETFD, FD_CLOEXEC) == 0;
  const bool has_user = ::fcntl(kShimNetworkUser, F_SETFD, FD_CLOEXEC) == 0;
  ::fcntl(kShimNetworkUsers, F_SETFD, FD_CLOEXEC);
  // The engine reads a pipe that ends with this process.
  const auto report_to_engine = [has_network](const base::Error* refusal) {
    const std::string text(refusal == nullptr ? kShimStarted : refusal_text(*refusal));
    [[maybe_unused]] const auto written = base::write_all(kShimStatus, text);
    if (!has_network) ::close(kShimStatus);
  };
  OuterSite site{.report = report_to_engine, .answered = nullptr};
  if (has_network || has_user) {
    const auto entered =
        enter_network(has_network ? kShimNetwork : -1, has_user ? kShimNetworkUser : -1);
    if (!entered) {
      report_to_engine(&entered.error());
      return 1;
    }
  }
  if (has_network) {
    site.answered = [] {
      [[maybe_unused]] const auto written = base::write_all(kShimStatus, kShimAnswered);
    };
  }
  return hold_task({task_folder}, std::move(site)) ? 0 : 1;
}

}  // namespace muster::engine
