// muster-rsh [options of ssh] HOST COMMAND...: runs a command on a host of the job, like ssh. The
//   folder rsh of $MUSTER_GENERATED contains the list of hosts and the job's key.
// muster-rsh --serve RSH_FOLDER FOLDER: serves the accepted connection on standard input and runs
// its command in FOLDER, with this process's environment.
//
// Linked statically, because it runs in images whose libraries are unknown.
#include "engine/rsh/program.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "engine/rsh/arguments.h"
#include "engine/rsh/ends.h"

namespace muster::engine::rsh {

namespace {

namespace fs = std::filesystem;

using base::Result;
using base::UniqueFd;

constexpr int kFailed = 255;  // ssh's code for its own failures

int complain(const std::string& whose, const base::Error& error) {
  const std::string line = "muster-rsh: " + (whose.empty() ? "" : whose + " ") + error.what +
                           (error.advice.empty() ? "" : "; " + error.advice) + "\n";
  static_cast<void>(base::write_all(STDERR_FILENO, line));
  return kFailed;
}

/// If a standard stream is closed, the connection could get its descriptor number.
void open_standard_streams() {
  int fd = 0;
  while ((fd = ::open("/dev/null", O_RDWR)) >= 0 && fd <= STDERR_FILENO) {
  }
  ::close(fd);
}

UniqueFd copy_of(int fd) {
  return UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1));
}

/// The signals that are forwarded to the remote command.
UniqueFd catch_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2}) {
    sigaddset(&signals, signal);
  }
  ::sigprocmask(SIG_BLOCK, &signals, nullptr);
  return UniqueFd(::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK));
}

Result<Key> key_in(const fs::path& folder) {
  MUSTER_TRY(const std::string text, base::read_file(folder / "key", 4096));
  return read_key(text);
}

int answer(const std::vector<std::string>& words) {
  if (words.size() != 3) {
    return complain("", {.what = "use: muster-rsh --serve RSH_FOLDER FOLDER"});
  }
  const auto key = key_in(words[1]);
  if (!key) return complain("", key.error());
  // A close-on-exec copy, so that the command does not inherit the connection.
  UniqueFd socket = copy_of(STDIN_FILENO);
  const UniqueFd nothing(::open("/dev/null", O_RDWR | O_CLOEXEC));
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO}) ::dup2(nothing.get(), fd);
  serve(std::move(socket), *key,
        {.folder = words[2],
         .environment = base::current_environment(),
         // See kReached in engine/rank_files.h.
         .reached = fs::path(words[1]).parent_path() / "ranks" / "-1"});
  return 0;
}

Result<Host> host_named(const fs::path& folder, const std::string& name) {
  MUSTER_TRY(const std::string text, base::read_file(folder / "hosts"));
  MUSTER_TRY(const std::vector<Host> hosts, read_hosts(text));
  return find_host(hosts, name);
}

int call(const std::vector<std::string>& words) {
  const auto request = read_arguments(words);
  if (!request) return complain("", request.error());
  const char* const generated = std::getenv("MUSTER_GENERATED");
  if (generated == nullptr) {
    return complain("", {.what = "MUSTER_GENERATED is not set",
                         .advice = "muster-rsh works only within the tasks of a job"});
  }
  const fs::path folder = fs::path(generated) / "rsh";
  const auto host = host_named(folder, request->host);
  if (!host) return complain("", host.error());
  const auto key = key_in(folder);
  if (!key) return complain("", key.error());
  auto socket = connect_to(*host);
  if (!socket) return complain(host->name + ":", socket.error());
  const auto code = run_far(*std::move(socket), *key, request->command,
                            {.input = request->no_input ? UniqueFd() : copy_of(STDIN_FILENO),
                             .output = copy_of(STDOUT_FILENO),
                             .errors = copy_of(STDERR_FILENO),
                             .signals = catch_signals()});
  return code ? *code : complain(host->name, code.error());
}

}  // namespace

int run_rsh(int argc, char** argv) {
  open_standard_streams();
  ::signal(SIGPIPE, SIG_IGN);
  const std::vector<std::string> words(argv + 1, argv + argc);
  return !words.empty() && words.front() == "--serve" ? answer(words) : call(words);
}

}  // namespace muster::engine::rsh
