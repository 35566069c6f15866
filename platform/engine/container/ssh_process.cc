#include "engine/container/ssh_process.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "engine/pipe.h"

namespace muster::engine {

namespace {

using base::Result;
using base::UniqueFd;

constexpr size_t kMostText = 4096;

std::vector<std::string> command_line(const std::vector<std::string>& arguments) {
  // Nothing of a server that was killed may go on holding connections.
  std::vector<std::string> words{"setpriv", "--pdeathsig", "TERM", "ssh", "-T"};
  for (const char* option :
       {"BatchMode=yes", "ConnectTimeout=10", "ServerAliveInterval=15", "ServerAliveCountMax=3",
        "ControlMaster=no", "ControlPath=none", "ForwardAgent=no", "ForwardX11=no"}) {
    words.insert(words.end(), {"-o", option});
  }
  words.insert(words.end(), arguments.begin(), arguments.end());
  return words;
}

/// Reads what is there; false at the end.
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
                       .what = "no ssh: " + found.error().what,
                       .advice = "install it: apt-get install openssh-client"};
  }
  options.argv = command_line(arguments);
  MUSTER_TRY(auto output, make_pipe());
  MUSTER_TRY(auto errors, make_pipe());
  options.descriptors = {{output.writer.get(), STDOUT_FILENO},
                         {errors.writer.get(), STDERR_FILENO}};
  // Away from the terminal of a server in the foreground, whose Ctrl-C is not meant for it.
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
  // A program that ssh has started (ProxyCommand) may hold the pipes open: their end is not waited
  // for.
  drain(output_.end.get(), output_.text);
  drain(errors_.end.get(), errors_.text);
  const auto on_end = handlers_.on_end;
  on_end({.exit_code = code, .output = output_.text, .errors = errors_.text});
}

}  // namespace muster::engine
