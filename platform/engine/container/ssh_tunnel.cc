#include "engine/container/ssh_tunnel.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/text.h"
#include "engine/pipe.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;
using std::chrono::milliseconds;
using std::chrono::steady_clock;

/// The end of an ssh process.
struct SshEnd {
  int exit_code = 0;   ///< 255: ssh itself failed; -1: it was killed
  std::string output;  ///< standard output, truncated if very long
  std::string errors;  ///< last lines of standard error
};

/// An ssh process of this machine. It ends with its owner, and with this process in any case.
class SshProcess {
 public:
  struct Handlers {
    std::function<void()> on_output = {};  ///< called after output
    std::function<void(SshEnd)> on_end;    ///< may drop the process
  };

  /// `arguments` follow the options that every ssh here gets: it never prompts and never shares a
  /// connection.
  static base::Result<std::unique_ptr<SshProcess>> start(base::EventLoop& loop,
                                                         const std::vector<std::string>& arguments,
                                                         Handlers handlers);
  ~SshProcess();
  SshProcess(const SshProcess&) = delete;
  SshProcess& operator=(const SshProcess&) = delete;

 private:
  struct Pipe {
    base::UniqueFd end;
    base::EventLoop::Interest interest;  ///< declared after `end`, to be destroyed first
    std::string text;
  };

  SshProcess(base::Child child, Handlers handlers);
  void watch(base::EventLoop& loop);
  void read_output();
  void read_errors();
  void ended();

  base::Child child_;
  Handlers handlers_;
  Pipe output_;
  Pipe errors_;
  bool reaped_ = false;
  base::EventLoop::Interest end_;
};

namespace {

/// After a tunnel has held for this time, the next one starts without a pause.
constexpr std::chrono::seconds kGood{10};

// For sh, within single quotes. Prints the first of the usual sockets that the user can use.
constexpr const char* kFindSocket =
    "exec sh -c 'd=${XDG_RUNTIME_DIR:-/run/user/$(id -u)}; "
    "for s in $d/podman/podman.sock $d/docker.sock /run/podman/podman.sock /run/docker.sock "
    "/var/run/docker.sock; do "
    "if [ -S $s ] && [ -w $s ]; then echo $s; exit 0; fi; done; exit 44'";
/// The exit code of the script that finds no usable socket.
constexpr int kNoSocket = 44;

/// The destination, after the options.
std::vector<std::string> destination(const SshEndpoint& endpoint) {
  std::vector<std::string> words;
  if (endpoint.port != 0) words.insert(words.end(), {"-p", std::to_string(endpoint.port)});
  if (!endpoint.user.empty()) words.insert(words.end(), {"-l", endpoint.user});
  words.insert(words.end(), {"--", endpoint.host});
  return words;
}

std::vector<std::string> forwarding(const SshEndpoint& endpoint, const std::string& near_end) {
  std::vector<std::string> words{"-N"};
  // ssh runs the local command when the tunnel is open; there is no other sign of that.
  for (const char* option :
       {"ExitOnForwardFailure=yes", "StreamLocalBindUnlink=yes", "StreamLocalBindMask=0177",
        "PermitLocalCommand=yes", "LocalCommand=echo open"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), {"-L", near_end + ":" + endpoint.socket.string()});
  const std::vector<std::string> whom = destination(endpoint);
  words.insert(words.end(), whom.begin(), whom.end());
  return words;
}

std::vector<base::Fault> last_lines_of(const std::string& text) {
  constexpr size_t kMost = 5;
  std::vector<std::string> lines = base::split(text, '\n');
  std::erase_if(lines, [](std::string& line) {
    while (!line.empty() && (line.back() == '\r' || line.back() == ' ')) line.pop_back();
    return line.empty();
  });
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  std::vector<base::Fault> faults;
  for (std::string& line : lines) faults.push_back({.field = "", .what = std::move(line)});
  return faults;
}

}  // namespace

struct SshTunnel::Impl {
  base::EventLoop& loop;
  SshEndpoint endpoint;
  std::filesystem::path socket;
  std::function<void(Result<void>)> on_state;
  TunnelPatience patience;

  std::unique_ptr<SshProcess> ssh;
  base::EventLoop::Interest timer;  ///< until it is open, or until the next try
  milliseconds pause = patience.first_pause;
  std::optional<steady_clock::time_point> open_since;

  void begin() {
    open_since.reset();
    timer = loop.after(patience.opening, [this] { late(); });
    auto started = endpoint.socket.empty() ? ask_for_socket() : forward();
    if (!started) return failed(std::move(started).error());
  }

  Result<void> ask_for_socket() {
    std::vector<std::string> words = destination(endpoint);
    words.emplace_back(kFindSocket);
    MUSTER_TRY(ssh, SshProcess::start(loop, words, {.on_end = [this](SshEnd end) { asked(end); }}));
    return {};
  }

  void asked(const SshEnd& end) {
    ssh.reset();
    // The last line: a shell's greeting may precede it.
    const std::vector<std::string> lines = base::split(end.output, '\n');
    const std::string found = lines.empty() ? "" : lines.back();
    if (end.exit_code == kNoSocket) return failed(no_engine_there());
    if (end.exit_code != 0 || !found.starts_with('/')) return failed(broken(end));
    endpoint.socket = found;
    begin();
  }

  Result<void> forward() {
    MUSTER_TRY(ssh, SshProcess::start(loop, forwarding(endpoint, socket.string()),
                                      {.on_output = [this] { opened(); },
                                       .on_end = [this](SshEnd end) { failed(broken(end)); }}));
    return {};
  }

  void opened() {
    if (open_since) return;
    timer.reset();
    open_since = steady_clock::now();
    on_state({});
  }

  void late() {
    failed({.code = ErrorCode::kTimeout,
            .what = "the ssh connection to " + endpoint.host + " did not open within " +
                    std::to_string(patience.opening.count() / 1000) + " s",
            .advice = try_by_hand()});
  }

  void failed(Error error) {
    ssh.reset();
    if (open_since && steady_clock::now() - *open_since > kGood) pause = patience.first_pause;
    timer = loop.after(pause, [this] { begin(); });
    pause = std::min(2 * pause, patience.longest_pause);
    on_state(std::move(error));
  }

  std::string try_by_hand() const {
    std::vector<std::string> words{"ssh", "-o", "BatchMode=yes"};
    for (std::string& word : destination(endpoint)) words.push_back(std::move(word));
    words.emplace_back("true");
    return "try it by hand, as the user of the server: " + base::shell_joined(words);
  }

  Error broken(const SshEnd& end) const {
    return {.code = ErrorCode::kUnavailable,
            .what = (open_since ? "the ssh connection to " : "no ssh connection to ") +
                    endpoint.host + (open_since ? " has ended" : ""),
            .advice = try_by_hand(),
            .faults = last_lines_of(end.errors)};
  }

  Error no_engine_there() const {
    return {
        .code = ErrorCode::kNotFound,
        .what = "no Docker or Podman was found on " + endpoint.host +
                ": its user cannot use any of the usual sockets",
        .advice =
            "start Podman there (systemctl --user start podman.socket, and loginctl enable-linger "
            "to keep it running) or Docker; or name the socket: ssh://HOST/PATH/TO/SOCKET"};
  }
};

SshTunnel::SshTunnel(base::EventLoop& loop, SshEndpoint endpoint, std::filesystem::path socket,
                     std::function<void(Result<void>)> on_state, TunnelPatience patience)
    : impl_(new Impl{.loop = loop,
                     .endpoint = std::move(endpoint),
                     .socket = std::move(socket),
                     .on_state = std::move(on_state),
                     .patience = patience,
                     .ssh = {},
                     .timer = {},
                     .open_since = {}}) {
  // Later, so that the constructor has returned before `on_state` is called.
  impl_->timer = loop.after(milliseconds(0), [impl = impl_.get()] { impl->begin(); });
}

SshTunnel::~SshTunnel() {
  impl_->ssh.reset();
  std::error_code ignored;
  std::filesystem::remove(impl_->socket, ignored);
}

namespace {

/// The limit for each output of ssh.
constexpr size_t kMostText = 4096;

std::vector<std::string> command_line(const std::vector<std::string>& arguments) {
  // The ssh process must not survive a server that is killed.
  std::vector<std::string> words{"setpriv", "--pdeathsig", "TERM", "ssh", "-T"};
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3",
        "ControlMaster=no", "ControlPath=none", "ForwardAgent=no", "ForwardX11=no"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Reads the available bytes; false at the end.
bool drain(int fd, std::string& text) {
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t count = ::read(fd, buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return count < 0 && errno == EAGAIN;
    text.append(buffer.data(), static_cast<size_t>(count));
    if (text.size() > kMostText) text.erase(0, text.size() - kMostText);
  }
}

int exit_code_of(const Result<int>& status) {
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

}  // namespace

Result<std::unique_ptr<SshProcess>> SshProcess::start(base::EventLoop& loop,
                                                      const std::vector<std::string>& arguments,
                                                      Handlers handlers) {
  base::SpawnOptions options;
  options.environment = base::current_environment();
  const auto found = base::find_program("ssh", options.environment);
  if (!found) {
    return base::Error{.code = found.error().code,
                       .what = "cannot run ssh: " + found.error().what,
                       .advice = "install it: apt-get install openssh-client"};
  }
  options.argv = command_line(arguments);
  MUSTER_TRY(auto output, make_pipe());
  MUSTER_TRY(auto errors, make_pipe());
  options.descriptors = {{output.writer.get(), STDOUT_FILENO},
                         {errors.writer.get(), STDERR_FILENO}};
  // In its own session, so that Ctrl-C in the terminal of a server does not reach it.
  options.new_session = true;
  MUSTER_TRY(base::Child child, base::spawn(options));
  std::unique_ptr<SshProcess> process(new SshProcess(std::move(child), std::move(handlers)));
  process->output_.end = std::move(output.reader);
  process->errors_.end = std::move(errors.reader);
  process->watch(loop);
  return process;
}

SshProcess::SshProcess(base::Child child, Handlers handlers)
    : child_(std::move(child)), handlers_(std::move(handlers)) {}

SshProcess::~SshProcess() {
  if (reaped_) return;
  static_cast<void>(base::send_signal(child_.pidfd, SIGKILL));
  static_cast<void>(base::wait_for(child_));
}

void SshProcess::watch(base::EventLoop& loop) {
  output_.interest = loop.when_readable(output_.end.get(), [this] { read_output(); });
  errors_.interest = loop.when_readable(errors_.end.get(), [this] { read_errors(); });
  end_ = loop.when_readable(child_.pidfd.get(), [this] { ended(); });
}

void SshProcess::read_output() {
  const size_t before = output_.text.size();
  if (!drain(output_.end.get(), output_.text)) output_.interest.reset();
  if (output_.text.size() != before && handlers_.on_output) handlers_.on_output();
}

void SshProcess::read_errors() {
  if (!drain(errors_.end.get(), errors_.text)) errors_.interest.reset();
}

void SshProcess::ended() {
  end_.reset();
  const int code = exit_code_of(base::wait_for(child_));
  reaped_ = true;
  // A program that ssh has started (ProxyCommand) may keep the pipes open, so their end is not
  // awaited.
  drain(output_.end.get(), output_.text);
  drain(errors_.end.get(), errors_.text);
  const auto on_end = handlers_.on_end;
  on_end({.exit_code = code, .output = output_.text, .errors = errors_.text});
}

}  // namespace muster::engine
