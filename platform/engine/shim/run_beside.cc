#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/frame.h"
#include "base/subprocess.h"
#include "engine/shim/channels.h"
#include "engine/shim/exec.h"
#include "engine/shim/modes.h"
#include "engine/shim/plan.h"
#include "engine/shim/process_tree.h"
#include "engine/shim/run_wire.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

// --- the connection

namespace {

/// This process's standard input and output as a connection to the engine (run_wire.h).
///
/// Owned and called by the thread that polls: watch() before poll(2), serve() after.
class StdioLink {
 public:
  /// Bytes that may wait to be read by the engine; beyond that, has_room() is false.
  static constexpr size_t kHigh = 256 << 10;

  /// Makes both descriptors non-blocking.
  StdioLink();

  /// Appends the descriptors to poll. `reads_more`: read messages; otherwise only detect a hang-up.
  void watch(std::vector<pollfd>& polled, bool reads_more) const;
  /// `polled`: the entries that watch() appended, after poll(2).
  void serve(std::span<const pollfd> polled);

  /// The next message that has arrived.
  std::optional<RunMessage> next() { return reader_.next(); }
  /// Waits for the next message. nullopt: the engine has hung up.
  std::optional<RunMessage> await();

  /// The engine has hung up, or has sent something that is not a message.
  bool is_over() const { return over_ || reader_.is_broken(); }

  void send(const RunMessage& message) { out_ += encode_run(message); }
  /// Sends a packet of attachments.h, whose messages run_wire.h shares.
  void send_packet(std::string_view packet);
  bool has_room() const { return out_.size() < kHigh; }

  /// Blocks until everything is written, or the engine has hung up.
  void flush();

 private:
  void read();
  void write();

  RunReader reader_;
  std::string out_;
  bool over_ = false;
};

}  // namespace

namespace {

constexpr short kGone = POLLERR | POLLHUP | POLLNVAL;

}  // namespace

StdioLink::StdioLink() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) {
    ::fcntl(fd, F_SETFL, ::fcntl(fd, F_GETFL) | O_NONBLOCK);
  }
}

void StdioLink::watch(std::vector<pollfd>& polled, bool reads_more) const {
  const int input = POLLRDHUP | (reads_more ? POLLIN : 0);
  polled.push_back({STDIN_FILENO, static_cast<short>(input), 0});
  polled.push_back({STDOUT_FILENO, static_cast<short>(out_.empty() ? 0 : POLLOUT), 0});
}

void StdioLink::serve(std::span<const pollfd> polled) {
  const short input = polled[0].revents;
  const short output = polled[1].revents;
  // A hang-up counts at once: input that was sent before it is dropped.
  if ((input & (kGone | POLLRDHUP)) != 0 || (output & kGone) != 0) over_ = true;
  if (over_) return;
  if ((input & POLLIN) != 0) read();
  if ((output & POLLOUT) != 0) write();
}

void StdioLink::read() {
  std::array<char, 64 << 10> buffer;
  const ssize_t count = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (count <= 0) {
    over_ = true;
    return;
  }
  reader_.add({buffer.data(), static_cast<size_t>(count)});
}

void StdioLink::write() {
  const ssize_t count = ::write(STDOUT_FILENO, out_.data(), out_.size());
  if (count >= 0) {
    out_.erase(0, static_cast<size_t>(count));
  } else if (errno != EAGAIN && errno != EINTR) {
    over_ = true;
  }
}

void StdioLink::send_packet(std::string_view packet) {
  base::append_frame(out_, packet.front(), packet.substr(1));
}

std::optional<RunMessage> StdioLink::await() {
  while (true) {
    if (auto message = next()) return message;
    if (is_over()) return std::nullopt;
    std::vector<pollfd> polled;
    watch(polled, true);
    if (::poll(polled.data(), polled.size(), -1) >= 0) serve(polled);
  }
}

void StdioLink::flush() {
  while (!out_.empty() && !over_) {
    std::vector<pollfd> polled;
    watch(polled, false);
    if (::poll(polled.data(), polled.size(), -1) >= 0) serve(polled);
  }
}

// --- --attach

namespace {

/// Passes messages between the engine and the socket of the task's shim.
class Bridge {
 public:
  Bridge(StdioLink& link, UniqueFd socket) : link_(link), socket_(std::move(socket)) {}

  /// Runs until the shim closes the socket (true) or the engine hangs up.
  bool run() {
    while (!link_.is_over() && socket_) turn();
    return !link_.is_over();
  }

 private:
  void turn() {
    const int events = (link_.has_room() ? POLLIN : 0) | (packets_.empty() ? 0 : POLLOUT);
    // poll(2) reports the end of a socket even without events. A negative descriptor avoids that:
    // the end must wait until there is room for it.
    std::vector<pollfd> polled{{events == 0 ? -1 : socket_.get(), static_cast<short>(events), 0}};
    link_.watch(polled, waiting_ < StdioLink::kHigh);
    if (::poll(polled.data(), polled.size(), -1) < 0) return;
    link_.serve(std::span(polled).subspan(1));
    while (const auto message = link_.next()) take(*message);
    if ((polled[0].revents & POLLOUT) != 0) send();
    if ((polled[0].revents & ~POLLOUT) != 0 && link_.has_room()) receive();
  }

  void take(const RunMessage& message) {
    if (const auto* input = std::get_if<AttachInput>(&message)) {
      queue(*input);
    } else if (const auto* end = std::get_if<AttachInputEnd>(&message)) {
      queue(*end);
    } else if (const auto* size = std::get_if<AttachSize>(&message)) {
      queue(*size);
    }
  }

  void queue(const AttachMessage& message) {
    packets_.push_back(encode(message));
    waiting_ += packets_.back().size();
    send();
  }

  void send() {
    while (!packets_.empty()) {
      const std::string& packet = packets_.front();
      const ssize_t sent =
          ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return;
      waiting_ -= packet.size();
      packets_.pop_front();  // also after an error: receive() detects the end of the socket
    }
  }

  void receive() {
    std::array<char, kAttachPacket> buffer;
    const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (count <= 0) return socket_.reset();
    link_.send_packet({buffer.data(), static_cast<size_t>(count)});
  }

  StdioLink& link_;
  UniqueFd socket_;
  std::deque<std::string> packets_;  ///< not sent yet
  size_t waiting_ = 0;               ///< bytes in `packets_`
};

/// The shim closes the socket once the exit record is written. Without a record, the shim was
/// killed, or had too many clients.
ExitRecord end_of_run(const TaskFolder& folder) {
  const auto text = base::read_file(folder.exit(), 64 << 10);
  const auto record = text ? decode_exit(*text) : base::Result<ExitRecord>(text.error());
  if (record) return *record;
  return {.status = {.lost = true, .error = "the connection to the task's program is lost"},
          .ended = {}};
}

}  // namespace

int run_attach(const char* task_folder) {
  ::signal(SIGPIPE, SIG_IGN);
  StdioLink link;
  auto socket = connect_in(task_folder, "attach");
  if (!socket) {
    link.send(RunRefused{{.code = base::ErrorCode::kConflict, .what = "the task does not run"}});
    link.flush();
    return 1;
  }
  link.send(RunBegun{});
  if (!Bridge(link, *std::move(socket)).run()) return 0;
  link.send(RunEnded{end_of_run({task_folder})});
  link.flush();
  return 0;
}

// --- --run

using Steady = std::chrono::steady_clock;

namespace {

/// This process's ends of a program's input and output. A terminal has one end for both; `output`
/// is a duplicate of it.
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

/// The plan of the requested program, with the parts that it inherits from the task.
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
  program.filter = task.inner.filter;
  return program;
}

/// Checks that the program exists. This process sees the same files as the program will.
Result<void> check(const InnerPlan& program) {
  if (program.argv.empty()) {
    return Error{.code = ErrorCode::kInvalid, .what = "the request names no program"};
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

/// Passes messages between the engine and the program.
class Relay {
 public:
  Relay(StdioLink& link, NearEnds ends, bool terminal)
      : link_(link), ends_(std::move(ends)), terminal_(terminal) {}

  void run() {
    while (!link_.is_over() && !has_sent_all()) turn();
    if (!link_.is_over()) link_.send(RunEnded{{.status = *status_, .ended = {}}});
    link_.flush();
    // After a hang-up, this is what ends the program.
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
    while (const auto message = link_.next()) take(*message);
    if (polled[0].revents != 0) write_input();
    if (polled[1].revents != 0) read(ends_.output, false);
    if (polled[2].revents != 0) read(ends_.error, true);
    if (polled[3].revents != 0) receive_end();
  }

  void take(const RunMessage& message) {
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

  /// True: there may be more to read right now.
  bool read(UniqueFd& fd, bool is_error) {
    std::array<char, kAttachPiece> buffer;
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {  // a terminal ends with EIO, a pipe with 0
      fd.reset();
      if (!terminal_) link_.send(RunOutputEnd{.is_error = is_error});
      return false;
    }
    left_[is_error ? 1 : 0] -= count;
    link_.send(
        AttachOutput{.bytes = {buffer.data(), static_cast<size_t>(count)}, .is_error = is_error});
    if (silent_at_) silent_at_ = Steady::now() + kTerminalLastWords;
    return true;
  }

  void receive_end() {
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(ends_.control.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    const auto record =
        decode_exit({buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))});
    // No record: the task has ended, and the kernel has killed the program with it.
    status_ = record ? record->status : job::ExitStatus{.signal = SIGKILL};
    left_ = {bytes_in(ends_.output), bytes_in(ends_.error)};
    if (terminal_) silent_at_ = Steady::now() + kTerminalLastWords;
  }

  /// The program has ended, and all of its output was sent. A process that it has left behind may
  /// keep a pipe open and write to it; the program's own output is in the pipe by then. One more read
  /// finds the end of the pipe.
  bool has_sent_all() {
    if (!status_) return false;
    if (terminal_) return !ends_.output || (link_.has_room() && Steady::now() >= *silent_at_);
    for (const bool is_error : {false, true}) {
      UniqueFd& fd = is_error ? ends_.error : ends_.output;
      const int64_t& left = left_[is_error ? 1 : 0];
      while (fd && left >= 0 && link_.has_room() && read(fd, is_error)) continue;
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
  /// Bytes in the pipes (output, error output) that the ended program has written, and that are not
  /// read yet. Negative: bytes of another process were read, too.
  std::array<int64_t, 2> left_{};
  std::optional<Steady::time_point> silent_at_;  ///< when the terminal of an ended program is done
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
    link.send(RunRefused{ends.error()});
    link.flush();
    return 1;
  }
  link.send(RunBegun{});
  Relay(link, *std::move(ends), start->program.terminal).run();
  return 0;
}

}  // namespace muster::engine
