#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/shim/channels.h"
#include "engine/shim/environment.h"
#include "engine/shim/exec.h"
#include "engine/shim/inner.h"
#include "engine/shim/plan.h"
#include "engine/shim/poll_wait.h"
#include "engine/shim/pseudo_terminal.h"
#include "engine/shim/run.h"
#include "engine/shim/stdio_link.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;
using Steady = std::chrono::steady_clock;

namespace {

/// The near ends of a program's input and output; a terminal has one for all, twice.
struct NearEnds {
  UniqueFd input;
  UniqueFd output;
  UniqueFd error;
  UniqueFd control;
  base::Child helper;
};

Result<UniqueFd> inner_half_in(const TaskFolder& folder) {
  const Error not_running{.code = ErrorCode::kConflict, .what = "the task does not run"};
  const auto text = base::read_file(folder.running(), 4096);
  const auto running = text ? decode_running(*text) : Result<RunningRecord>(text.error());
  if (!running) return not_running;
  const auto inner = inner_half_of(running->pid);
  if (!inner) return not_running;
  return base::open_pidfd(*inner);
}

/// What is asked for, whole.
Result<InnerPlan> program_of(const RunStart& start, const TaskFolder& folder) {
  InnerPlan program{.argv = start.program.argv,
                    .environment = start.program.environment,
                    .folder = start.program.folder.empty() ? "/" : start.program.folder,
                    .terminal = start.program.terminal};
  if (!start.inherits) return program;
  MUSTER_TRY(const std::string text, base::read_file(folder.plan()));
  MUSTER_TRY(const ShimPlan task, decode_shim_plan(text));
  program.environment = merged(task.inner.environment, start.program.environment);
  if (start.program.folder.empty()) program.folder = task.inner.folder;
  return program;
}

/// Looked up as exec.h will, which is in the same place.
Result<void> check(const InnerPlan& program) {
  if (program.argv.empty()) {
    return Error{.code = ErrorCode::kInvalid, .what = "no program is named"};
  }
  if (::chdir(program.folder.c_str()) != 0) {
    return base::system_error("cannot enter the working folder '" + program.folder + "'", errno);
  }
  if (base::find_program(program.argv.front(), program.environment)) return {};
  return no_such_program(program.argv.front());
}

Result<NearEnds> start_exec_shim(const RunStart& start, const InnerPlan& program,
                                 const UniqueFd& inner) {
  NearEnds ends;
  std::vector<std::pair<UniqueFd, int>> theirs;
  if (program.terminal) {
    MUSTER_TRY(PseudoTerminal terminal, open_terminal());
    set_terminal_size(terminal.master, start.rows, start.columns);
    ::fcntl(terminal.master.get(), F_SETFL, ::fcntl(terminal.master.get(), F_GETFL) | O_NONBLOCK);
    ends.input = UniqueFd(::fcntl(terminal.master.get(), F_DUPFD_CLOEXEC, 0));
    ends.output = std::move(terminal.master);
    for (const int fd : {1, 2}) {
      theirs.emplace_back(UniqueFd(::fcntl(terminal.slave.get(), F_DUPFD_CLOEXEC, 0)), fd);
    }
    theirs.emplace_back(std::move(terminal.slave), 0);
  } else {
    MUSTER_TRY(Pair input, make_input_pipe());
    MUSTER_TRY(Pair output, make_output_pipe());
    MUSTER_TRY(Pair error, make_output_pipe());
    ends.input = std::move(input.here);
    ends.output = std::move(output.here);
    ends.error = std::move(error.here);
    theirs.emplace_back(std::move(input.there), 0);
    theirs.emplace_back(std::move(output.there), 1);
    theirs.emplace_back(std::move(error.there), 2);
  }
  MUSTER_TRY(Pair control, make_control());
  ends.control = std::move(control.here);
  MUSTER_TRY(const UniqueFd plan, in_memory_file(encode(program)));
  base::SpawnOptions options{.argv = {"muster-shim", "--exec"},
                             .program = "/proc/self/exe",
                             .environment = base::current_environment(),
                             .descriptors = {{control.there.get(), kExecControl},
                                             {plan.get(), kExecPlan},
                                             {inner.get(), kExecTask}},
                             .new_session = true,
                             .folder = "/"};
  for (const auto& [descriptor, number] : theirs) {
    options.descriptors.emplace_back(descriptor.get(), number);
  }
  MUSTER_TRY(ends.helper, base::spawn(options));
  return ends;
}

/// Between the messages and the program.
class Relay {
 public:
  Relay(StdioLink& link, NearEnds ends, bool terminal)
      : link_(link), ends_(std::move(ends)), terminal_(terminal) {}

  void run() {
    while (!link_.is_over() && !has_told_all()) turn();
    if (!link_.is_over()) link_.tell(RunEnded{{.status = *status_, .ended = {}}});
    link_.flush();
    // Where it was hung up on, this is what ends the program.
    ends_.control.reset();
    for (UniqueFd* end : {&ends_.input, &ends_.output, &ends_.error}) end->reset();
    [[maybe_unused]] const auto ended = base::wait_for(ends_.helper);
  }

 private:
  void turn() {
    const bool has_room = link_.has_room();
    std::vector<pollfd> polled{{input_.empty() ? -1 : ends_.input.get(), POLLOUT, 0},
                               {has_room ? ends_.output.get() : -1, POLLIN, 0},
                               {has_room ? ends_.error.get() : -1, POLLIN, 0},
                               {status_ ? -1 : ends_.control.get(), POLLIN, 0}};
    const size_t linked = polled.size();
    link_.watch(polled, input_.size() < StdioLink::kHigh);
    if (::poll(polled.data(), polled.size(), milliseconds_to_wait()) < 0) return;
    link_.serve(std::span(polled).subspan(linked));
    while (const auto message = link_.next()) heed(*message);
    if (polled[0].revents != 0) write_input();
    if (polled[1].revents != 0) read(ends_.output, false);
    if (polled[2].revents != 0) read(ends_.error, true);
    if (polled[3].revents != 0) hear_end();
  }

  void heed(const RunMessage& message) {
    if (const auto* input = std::get_if<AttachInput>(&message)) {
      take_input(input->bytes);
    } else if (std::holds_alternative<AttachInputEnd>(message)) {
      if (terminal_) return take_input({&kTerminalEndOfInput, 1});
      input_ends_ = true;
      if (input_.empty()) ends_.input.reset();
    } else if (const auto* size = std::get_if<AttachSize>(&message)) {
      if (terminal_ && ends_.output) set_terminal_size(ends_.output, size->rows, size->columns);
    }
  }

  void take_input(std::string_view bytes) {
    if (!ends_.input || input_ends_) return;
    input_ += bytes;
    write_input();
  }

  void write_input() {
    const ssize_t count = ::write(ends_.input.get(), input_.data(), input_.size());
    if (count >= 0) {
      input_.erase(0, static_cast<size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {  // the program reads no more
      input_.clear();
      ends_.input.reset();
    }
    if (input_.empty() && input_ends_) ends_.input.reset();
  }

  /// Whether there may be more right now.
  bool read(UniqueFd& fd, bool is_error) {
    std::array<char, kAttachPiece> buffer;
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {  // a terminal ends with EIO, a pipe with 0
      fd.reset();
      if (!terminal_) link_.tell(RunOutputEnd{.is_error = is_error});
      return false;
    }
    link_.tell(
        AttachOutput{.bytes = {buffer.data(), static_cast<size_t>(count)}, .is_error = is_error});
    if (silent_at_) silent_at_ = Steady::now() + kTerminalLastWords;
    return true;
  }

  void hear_end() {
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(ends_.control.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const auto record =
        decode_exit({buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))});
    // Without a word: its task has ended and took it along.
    status_ = record ? record->status : job::ExitStatus{.signal = SIGKILL};
    if (terminal_) silent_at_ = Steady::now() + kTerminalLastWords;
  }

  /// The program has ended, and all that it has put into its output was told. What it left behind
  /// may keep a pipe open, but all of its own is there by then.
  bool has_told_all() {
    if (!status_) return false;
    if (terminal_) return !ends_.output || (link_.has_room() && Steady::now() >= *silent_at_);
    for (const bool is_error : {false, true}) {
      UniqueFd& fd = is_error ? ends_.error : ends_.output;
      while (fd && link_.has_room() && read(fd, is_error)) continue;
    }
    return link_.has_room();
  }

  int milliseconds_to_wait() const {
    return silent_at_ && link_.has_room() ? milliseconds_of(*silent_at_ - Steady::now()) : -1;
  }

  StdioLink& link_;
  NearEnds ends_;
  bool terminal_;
  std::string input_;
  bool input_ends_ = false;
  std::optional<job::ExitStatus> status_;
  std::optional<Steady::time_point> silent_at_;  ///< of a terminal whose program has ended
};

Result<NearEnds> begin_run(const RunStart& start, const TaskFolder& folder) {
  MUSTER_TRY(const UniqueFd inner, inner_half_in(folder));
  MUSTER_TRY(const InnerPlan program, program_of(start, folder));
  MUSTER_CHECK(check(program));
  return start_exec_shim(start, program, inner);
}

}  // namespace

int run_beside(const char* task_folder) {
  ::signal(SIGPIPE, SIG_IGN);
  StdioLink link;
  const auto first = link.await();
  const auto* start = first ? std::get_if<RunStart>(&*first) : nullptr;
  if (start == nullptr) return 1;
  auto ends = begin_run(*start, {task_folder});
  if (!ends) {
    link.tell(RunRefused{ends.error()});
    link.flush();
    return 1;
  }
  link.tell(RunBegun{});
  Relay(link, *std::move(ends), start->program.terminal).run();
  return 0;
}

}  // namespace muster::engine
