#include "engine/process/process_exec.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "engine/engine_errors.h"
#include "engine/shim/attachments.h"
#include "engine/shim/channels.h"
#include "engine/shim/exec.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

// --- a program beside the task's own

InnerPlan exec_program(const ExecPlan& plan, const InnerPlan& task,
                       const std::filesystem::path& shim) {
  InnerPlan program{.argv = plan.argv,
                    .environment = {},
                    .folder = task.folder,
                    .own_process_tree = task.own_process_tree,
                    .filter = task.filter,
                    .account = task.account,
                    .limits = task.limits};
  if (plan.helper == Helper::kNone) {
    program.environment = merged(task.environment, plan.environment);
    return program;
  }
  const std::string helper = (shim.parent_path() / "muster-helper").string();
  program.argv.insert(program.argv.begin(), {helper, word_of(plan.helper)});
  return program;
}

namespace {

constexpr size_t kReadPiece = 64 << 10;

/// Both ends of the input, output, error output and control socket of a program.
struct ExecEnds {
  UniqueFd input, output, error;  ///< ours; a terminal: `input` duplicates `output`
  UniqueFd their_input, their_output, their_error;  ///< a terminal: only `their_input`
  UniqueFd control, their_control;
};

Result<void> make_terminal_ends(ExecEnds& ends, const ExecPlan& plan,
                                const std::optional<pid_t>& own_terminals_of) {
  MUSTER_TRY(PseudoTerminal terminal,
             own_terminals_of ? open_terminal_of(*own_terminals_of) : open_terminal());
  set_terminal_size(terminal.master, plan.rows, plan.columns);
  ::fcntl(terminal.master.get(), F_SETFL, ::fcntl(terminal.master.get(), F_GETFL) | O_NONBLOCK);
  ends.output = std::move(terminal.master);
  ends.their_input = std::move(terminal.slave);
  ends.input = UniqueFd(::fcntl(ends.output.get(), F_DUPFD_CLOEXEC, 0));
  if (!ends.input) return base::system_error("cannot make a terminal", errno);
  return {};
}

Result<void> make_pipe_ends(ExecEnds& ends) {
  MUSTER_TRY(Pair input, make_input_pipe());
  MUSTER_TRY(Pair output, make_output_pipe());
  MUSTER_TRY(Pair error, make_output_pipe());
  ends.input = std::move(input.here);
  ends.their_input = std::move(input.there);
  ends.output = std::move(output.here);
  ends.their_output = std::move(output.there);
  ends.error = std::move(error.here);
  ends.their_error = std::move(error.there);
  return {};
}

Result<ExecEnds> make_ends(const ExecPlan& plan, const std::optional<pid_t>& own_terminals_of) {
  ExecEnds ends;
  if (plan.terminal) {
    MUSTER_CHECK(make_terminal_ends(ends, plan, own_terminals_of));
  } else {
    MUSTER_CHECK(make_pipe_ends(ends));
  }
  MUSTER_TRY(Pair control, make_control());
  ends.control = std::move(control.here);
  ends.their_control = std::move(control.there);
  return ends;
}

class RunningExec : public std::enable_shared_from_this<RunningExec> {
 public:
  RunningExec(base::EventLoop& loop, ExecEnds ends, bool terminal, ExecHandlers handlers)
      : loop_(loop), ends_(std::move(ends)), terminal_(terminal), handlers_(std::move(handlers)) {}

  void begin() {
    control_ = loop_.when_readable(ends_.control.get(), calling(&RunningExec::receive));
    listen();
  }

  void drop() {
    for (auto* interest : {&control_, &output_, &error_, &writable_, &last_output_}) {
      interest->reset();
    }
    handlers_ = {};
    ends_ = {};
  }

  void write(std::string_view bytes) {
    if (!ends_.input || input_closed_) return;
    waiting_ += bytes;
    send();
  }

  size_t waiting() const { return waiting_.size(); }

  void close_input() {
    if (terminal_) return write({&kTerminalEndOfInput, 1});
    input_closed_ = true;
    if (waiting_.empty()) ends_.input.reset();
  }

  void resize(int rows, int columns) {
    if (terminal_ && ends_.output) set_terminal_size(ends_.output, rows, columns);
  }

  void pause(bool paused) {
    if (std::exchange(paused_, paused) == paused) return;
    if (!paused) return listen();
    output_.reset();
    error_.reset();
    last_output_.reset();
  }

 private:
  using Method = void (RunningExec::*)();

  /// A handler that is called back may drop this object: the callback keeps it alive until then.
  std::function<void()> calling(Method method) {
    return [weak = weak_from_this(), method] {
      if (const auto self = weak.lock()) ((*self).*method)();
    };
  }

  void listen() {
    if (ends_.output) {
      output_ = loop_.when_readable(ends_.output.get(), calling(&RunningExec::read_output));
    }
    if (ends_.error) {
      error_ = loop_.when_readable(ends_.error.get(), calling(&RunningExec::read_error));
    }
    if (status_) finish_if_silent();
  }

  void read_output() {
    read(ends_.output, output_, false);
    finish_if_silent();
  }

  void read_error() {
    read(ends_.error, error_, true);
    finish_if_silent();
  }

  /// True: there may be more to read right now.
  bool read(UniqueFd& fd, base::EventLoop::Interest& interest, bool is_error) {
    if (!fd || paused_) return false;
    std::array<char, kReadPiece> buffer;
    const ssize_t count = ::read(fd.get(), buffer.data(), buffer.size());
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    if (count <= 0) {  // a terminal ends with EIO, a pipe with 0
      interest.reset();
      fd.reset();
      const auto on_output_end = handlers_.on_output_end;
      if (on_output_end && !terminal_) on_output_end(is_error);
      return false;
    }
    (is_error ? left_of_error_ : left_of_output_) -= count;
    const auto on_output = handlers_.on_output;
    if (on_output) on_output({buffer.data(), static_cast<size_t>(count)}, is_error);
    return true;
  }

  void receive() {
    std::array<char, 4096> buffer;
    const ssize_t count = ::recv(ends_.control.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
    control_.reset();
    const auto record =
        decode_exit({buffer.data(), static_cast<size_t>(std::max<ssize_t>(count, 0))});
    // No record: the task has ended, and the kernel has killed the program with it.
    status_ = record ? record->status : job::ExitStatus{.signal = SIGKILL};
    left_of_output_ = bytes_in(ends_.output);
    left_of_error_ = bytes_in(ends_.error);
    finish_if_silent();
  }

  /// Finishes once all output is read. When a program has ended, its output is in the pipe; one more
  /// read finds the end of the pipe. A terminal may deliver the output later, so the terminal's end is
  /// awaited, or a moment of silence.
  void finish_if_silent() {
    if (!status_ || paused_) return;
    if (terminal_ && ends_.output) {
      last_output_ = loop_.after(kTerminalLastWords, calling(&RunningExec::finish));
      return;
    }
    while (!paused_ && left_of_output_ >= 0 && read(ends_.output, output_, false)) continue;
    while (!paused_ && left_of_error_ >= 0 && read(ends_.error, error_, true)) continue;
    if (!paused_) finish();
  }

  void finish() {
    const auto on_exit = std::exchange(handlers_.on_exit, nullptr);
    const job::ExitStatus status = *status_;
    drop();
    if (on_exit) on_exit(status);
  }

  void send() {
    writable_.reset();  // an interest uses its descriptor, so it must end before the descriptor
    const bool was_full = waiting_.size() > Exec::kHigh;
    const ssize_t count = ::write(ends_.input.get(), waiting_.data(), waiting_.size());
    if (count >= 0) {
      waiting_.erase(0, static_cast<size_t>(count));
    } else if (errno != EAGAIN && errno != EINTR) {
      waiting_.clear();  // the program has closed its input
      ends_.input.reset();
    }
    if (!waiting_.empty()) {
      writable_ = loop_.when_writable(ends_.input.get(), calling(&RunningExec::send));
    } else if (input_closed_) {
      ends_.input.reset();
    }
    const auto on_drain = handlers_.on_drain;
    if (was_full && waiting_.size() <= Exec::kHigh && on_drain) on_drain();
  }

  base::EventLoop& loop_;
  ExecEnds ends_;
  bool terminal_;
  ExecHandlers handlers_;
  std::string waiting_;  ///< input, not written yet
  bool input_closed_ = false;
  bool paused_ = false;
  std::optional<job::ExitStatus> status_;
  /// Bytes in the pipes that the ended program has written, and that are not read yet. Negative: bytes
  /// of another process were read, too.
  int64_t left_of_output_ = 0;
  int64_t left_of_error_ = 0;
  // After ends_, so that the interests are destroyed first.
  base::EventLoop::Interest control_;
  base::EventLoop::Interest output_;
  base::EventLoop::Interest error_;
  base::EventLoop::Interest writable_;
  base::EventLoop::Interest last_output_;
};

class ProcessExec : public Exec {
 public:
  explicit ProcessExec(std::shared_ptr<RunningExec> exec) : exec_(std::move(exec)) {}
  ~ProcessExec() override { exec_->drop(); }
  void write(std::string_view bytes) override { exec_->write(bytes); }
  size_t waiting() const override { return exec_->waiting(); }
  void close_input() override { exec_->close_input(); }
  void resize(int rows, int columns) override { exec_->resize(rows, columns); }
  void pause(bool paused) override { exec_->pause(paused); }

 private:
  std::shared_ptr<RunningExec> exec_;
};

}  // namespace

Result<StartedExec> start_exec(base::EventLoop& loop, const std::string& shim,
                               const std::vector<std::string>& environment, const InnerPlan& inner,
                               const ExecTask& task, const ExecPlan& plan, ExecHandlers handlers) {
  // With an account of its own, the task has terminals of its own, too.
  const auto own_terminals_of = inner.account ? std::optional(task.inner) : std::nullopt;
  MUSTER_TRY(ExecEnds ends, make_ends(plan, own_terminals_of));
  // The environment contains secrets, so it is passed by a descriptor: argv is visible to others.
  MUSTER_TRY(const UniqueFd file, in_memory_file(encode(inner)));
  const UniqueFd& input = ends.their_input;
  base::SpawnOptions options{
      .argv = {shim, "--exec"},
      .environment = environment,
      .descriptors = {{input.get(), 0},
                      {plan.terminal ? input.get() : ends.their_output.get(), 1},
                      {plan.terminal ? input.get() : ends.their_error.get(), 2},
                      {ends.their_control.get(), kExecControl},
                      {file.get(), kExecPlan},
                      {task.pidfd.get(), kExecTask}},
      .new_session = true,
      .folder = "/"};
  MUSTER_TRY(base::Child helper, base::spawn(options));
  for (UniqueFd* theirs :
       {&ends.their_input, &ends.their_output, &ends.their_error, &ends.their_control}) {
    theirs->reset();
  }
  const auto running =
      std::make_shared<RunningExec>(loop, std::move(ends), plan.terminal, std::move(handlers));
  running->begin();
  return StartedExec{.exec = std::make_unique<ProcessExec>(running), .helper = std::move(helper)};
}

Result<void> check_program(pid_t inner, const InnerPlan& plan) {
  const std::string root =
      plan.own_process_tree ? "/proc/" + std::to_string(inner) + "/root" : std::string();
  std::string name = plan.argv.front();
  if (name.find('/') != std::string::npos) {
    name = root + (name.starts_with('/') ? name : plan.folder + "/" + name);
  }
  std::vector<std::string> environment;
  for (const std::string& entry : plan.environment) {
    if (!entry.starts_with("PATH=")) continue;
    std::string path = "PATH=";
    for (const std::string& folder : base::split(entry.substr(5), ':')) {
      path += (folder.starts_with('/') ? root + folder : root + plan.folder + "/" + folder) + ":";
    }
    environment.push_back(path);
  }
  const auto found = base::find_program(name, environment);
  if (found) return {};
  return no_such_program(plan.argv.front());
}

// --- the task's own program

namespace {

/// Limit of packets in one turn of the loop, so that others get their turn.
constexpr int kPacketsATurn = 16;

class Attachment : public std::enable_shared_from_this<Attachment> {
 public:
  Attachment(base::EventLoop& loop, UniqueFd socket, TaskFolder folder, ExecHandlers handlers)
      : loop_(loop),
        socket_(std::move(socket)),
        folder_(std::move(folder)),
        handlers_(std::move(handlers)) {}

  void listen() { readable_ = loop_.when_readable(socket_.get(), calling(&Attachment::receive)); }

  void drop() {
    readable_.reset();
    writable_.reset();
    handlers_ = {};
    socket_.reset();
  }

  void write(std::string_view bytes) {
    for (size_t at = 0; at < bytes.size(); at += kAttachPiece) {
      send_message(AttachInput{std::string(bytes.substr(at, kAttachPiece))});
    }
  }

  size_t waiting() const { return waiting_; }

  void send_message(const AttachMessage& message) {
    if (!socket_) return;
    packets_.push_back(encode(message));
    waiting_ += packets_.back().size();
    send();
  }

  void pause(bool paused) {
    if (std::exchange(paused_, paused) == paused || !socket_) return;
    if (paused) {
      readable_.reset();
    } else {
      listen();
    }
  }

 private:
  using Method = void (Attachment::*)();

  /// A handler that is called back may drop this object: the callback keeps it alive until then.
  std::function<void()> calling(Method method) {
    return [weak = weak_from_this(), method] {
      if (const auto self = weak.lock()) ((*self).*method)();
    };
  }

  void receive() {
    static std::array<char, kAttachPacket> buffer;
    for (int i = 0; i < kPacketsATurn && socket_ && !paused_; ++i) {
      const ssize_t count = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
      if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
      if (count <= 0) return ended();
      take({buffer.data(), static_cast<size_t>(count)});
    }
  }

  void take(std::string_view packet) {
    const auto on_output = handlers_.on_output;
    const auto message = decode_attach(packet);
    if (!on_output || !message) return;
    if (const auto* output = std::get_if<AttachOutput>(&*message)) {
      on_output(output->bytes, output->is_error);
    } else if (const auto* gap = std::get_if<AttachLeftOut>(&*message)) {
      on_output(left_out_text(gap->bytes), true);
    }
  }

  /// The shim closes the socket once the exit record is written. Without a record, the shim was
  /// killed, or had too many clients.
  void ended() {
    const auto text = base::read_file(folder_.exit(), 64 << 10);
    const auto record = text ? decode_exit(*text) : Result<ExitRecord>(text.error());
    const job::ExitStatus status =
        record ? record->status
               : job::ExitStatus{.lost = true,
                                 .error = "the connection to the task's program is lost"};
    const auto on_exit = std::exchange(handlers_.on_exit, nullptr);
    drop();
    if (on_exit) on_exit(status);
  }

  void send() {
    writable_.reset();  // an interest uses its descriptor, so it must end before the descriptor
    const bool was_full = waiting_ > Exec::kHigh;
    while (!packets_.empty() && send_first()) continue;
    if (!packets_.empty()) {
      writable_ = loop_.when_writable(socket_.get(), calling(&Attachment::send));
    }
    const auto on_drain = handlers_.on_drain;
    if (was_full && waiting_ <= Exec::kHigh && on_drain) on_drain();
  }

  /// False: the socket takes nothing now.
  bool send_first() {
    const std::string& packet = packets_.front();
    const ssize_t sent =
        ::send(socket_.get(), packet.data(), packet.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) return true;
    if (sent < 0 && (errno == EAGAIN || errno == ENOBUFS)) return false;
    waiting_ -= packet.size();
    packets_.pop_front();  // also after an error: receive() detects the end of the socket
    return true;
  }

  base::EventLoop& loop_;
  UniqueFd socket_;
  TaskFolder folder_;
  ExecHandlers handlers_;
  std::deque<std::string> packets_;  ///< not sent yet
  size_t waiting_ = 0;               ///< bytes in `packets_`, including sizes of the terminal
  bool paused_ = false;
  // After socket_, so that the interests are destroyed first.
  base::EventLoop::Interest readable_;
  base::EventLoop::Interest writable_;
};

class ProcessAttach : public Exec {
 public:
  explicit ProcessAttach(std::shared_ptr<Attachment> attachment)
      : attachment_(std::move(attachment)) {}
  ~ProcessAttach() override { attachment_->drop(); }
  void write(std::string_view bytes) override { attachment_->write(bytes); }
  size_t waiting() const override { return attachment_->waiting(); }
  void close_input() override { attachment_->send_message(AttachInputEnd{}); }
  void resize(int rows, int columns) override {
    attachment_->send_message(AttachSize{.rows = rows, .columns = columns});
  }
  void pause(bool paused) override { attachment_->pause(paused); }

 private:
  std::shared_ptr<Attachment> attachment_;
};

}  // namespace

Result<std::unique_ptr<Exec>> attach_to(base::EventLoop& loop, const TaskFolder& folder,
                                        const std::string& task, ExecHandlers handlers) {
  auto socket = connect_in(folder.path.string(), "attach");
  if (!socket) {
    return Error{.code = ErrorCode::kConflict,
                 .what = "task " + task + " does not run",
                 .advice = "muster logs shows what it printed"};
  }
  const auto attachment =
      std::make_shared<Attachment>(loop, *std::move(socket), folder, std::move(handlers));
  attachment->listen();
  return std::make_unique<ProcessAttach>(attachment);
}

// --- helpers

void ExecHelpers::keep(base::Child helper) {
  const pid_t pid = helper.pid;
  const int pidfd = helper.pidfd.get();
  Helper& kept = helpers_[pid];
  kept.process = std::move(helper);
  kept.end = loop_.when_readable(pidfd, [this, pid] {
    ::waitpid(pid, nullptr, WNOHANG);
    helpers_.erase(pid);
  });
}

}  // namespace muster::engine
