#include "cli/connection/server_start.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "api/client.h"
#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "config/server_config.h"

namespace muster::cli {

namespace fs = std::filesystem;

namespace {

using base::Error;
using base::ErrorCode;
using base::UniqueFd;

constexpr int kReadyFd = 3;
constexpr const char* kIdleExit = "10m";

// A server that is shutting down no longer answers, but holds its lock for some milliseconds.
constexpr int kMoreAttempts = 2;
constexpr std::chrono::milliseconds kPause{200};

Result<UniqueFd> open_log(const fs::path& path) {
  UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd) return base::system_error("cannot open '" + path.string() + "'", errno);
  return fd;
}

std::string this_program() {
  std::error_code error;
  const std::string path = fs::read_symlink("/proc/self/exe", error).string();
  // After an upgrade replaced this program's file, the link still leads to the running version.
  return error || path.ends_with(" (deleted)") ? "/proc/self/exe" : path;
}

/// The server's log after its first `offset` bytes, at most a screenful.
std::vector<base::Fault> last_log_lines(const fs::path& log, off_t offset) {
  const auto content = base::read_file(log);
  if (!content || offset < 0 || content->size() < static_cast<size_t>(offset)) return {};
  std::vector<std::string> lines = base::split(content->substr(static_cast<size_t>(offset)), '\n');
  constexpr size_t kMost = 10;
  if (lines.size() > kMost) lines.erase(lines.begin(), lines.end() - kMost);
  std::vector<base::Fault> shown;
  for (std::string& line : lines) shown.push_back({.field = "", .what = std::move(line)});
  return shown;
}

// The first letter of a refusal. kForeign: the folder belongs to a server that was started otherwise.
constexpr char kRefusal = 'e';
constexpr char kForeign = 'f';

struct Readiness {
  enum class State { kReady, kEnded, kLate } state = State::kEnded;
  /// the output of server_refusal(); empty: the server ended without a message
  std::string refusal;
};

/// Waits for the message that the socket is open, or for the end of the pipe: the server has ended.
Readiness wait_until_ready(const UniqueFd& pipe) {
  Readiness readiness;
  const auto deadline = std::chrono::steady_clock::now() + kServerStartBound;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return {.state = Readiness::State::kLate, .refusal = {}};
    pollfd entry{.fd = pipe.get(), .events = POLLIN, .revents = 0};
    if (::poll(&entry, 1, static_cast<int>(left.count())) <= 0) continue;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(pipe.get(), bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return readiness;
    readiness.refusal.append(bytes.data(), static_cast<size_t>(count));
    if (readiness.refusal == kServerIsReady)
      return {.state = Readiness::State::kReady, .refusal = {}};
  }
}

/// Advice for a full disk of the state folder; otherwise empty.
std::string advice_on_room(const config::Paths& paths) {
  const std::string& state = paths.state_folder.string();
  return base::is_disk_full(state) ? "the disk under '" + state + "' is full: free space there"
                                   : "";
}

Error foreign_folder(const std::string& refusal) {
  const size_t end = refusal.find('\n');
  return {.code = ErrorCode::kUnavailable,
          .what = "no server runs: " + refusal.substr(0, end),
          .advice = end == std::string::npos ? "" : refusal.substr(end + 1),
          .detail = std::make_shared<config::StartedOtherwise>()};
}

Error refused_start(const config::Paths& paths, const std::string& refusal) {
  const size_t end = refusal.find('\n');
  return {.code = ErrorCode::kUnavailable,
          .what = "the server could not start: " + refusal.substr(0, end),
          .advice = end == std::string::npos ? advice_on_room(paths) : refusal.substr(end + 1)};
}

void set_variable(std::vector<std::string>& environment, const std::string& name,
                  const std::string& value) {
  std::erase_if(environment, [&](const std::string& line) { return line.starts_with(name + "="); });
  environment.push_back(name + "=" + value);
}

/// The engine to pass to the server; empty: none.
std::string engine_to_pass(const config::Paths& paths, const std::string& asked) {
  const char* variable = ::getenv("MUSTER_ENGINE");
  if (!asked.empty() || (variable != nullptr && *variable != '\0')) return asked;
  return config::recorded_engine(paths.state_folder / "jobs");
}

Result<void> spawn_server(const config::Paths& paths, const std::string& engine,
                          const UniqueFd& log, UniqueFd ready) {
  base::SpawnOptions options;
  options.argv = {this_program(), "server",     "--idle-exit",
                  kIdleExit,      "--ready-fd", std::to_string(kReadyFd)};
  options.environment = base::current_environment();
  options.descriptors = {{log.get(), STDERR_FILENO}, {ready.get(), kReadyFd}};
  options.new_session = true;
  options.folder = "/";  // so that no file system of the user is busy
  // The server finds its paths by the same rule and from the same environment.
  std::erase_if(options.environment,
                [](const std::string& line) { return line.starts_with("MUSTER_STATE_DIR="); });
  if (paths.socket.parent_path() == paths.state_folder) {
    options.environment.push_back("MUSTER_STATE_DIR=" + paths.state_folder.string());
  }
  const std::string passed = engine_to_pass(paths, engine);
  if (!passed.empty()) set_variable(options.environment, "MUSTER_ENGINE", passed);
  auto child = base::spawn(options);
  if (!child) return std::move(child).error();
  return {};
}

Result<void> start(const config::Paths& paths, const std::string& engine) {
  MUSTER_TRY(const UniqueFd log, open_log(paths.server_log()));
  const off_t log_begin = ::lseek(log.get(), 0, SEEK_END);
  int ends[2] = {-1, -1};
  if (::pipe2(ends, O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  const UniqueFd read_end(ends[0]);
  MUSTER_CHECK(spawn_server(paths, engine, log, UniqueFd(ends[1])));

  const Readiness readiness = wait_until_ready(read_end);
  if (readiness.state == Readiness::State::kReady) return {};
  const bool late = readiness.state == Readiness::State::kLate;
  if (readiness.refusal.starts_with(kForeign)) return foreign_folder(readiness.refusal.substr(1));
  if (readiness.refusal.starts_with(kRefusal)) {
    return refused_start(paths, readiness.refusal.substr(1));
  }
  const std::string room = advice_on_room(paths);
  return Error{
      .code = late ? ErrorCode::kTimeout : ErrorCode::kUnavailable,
      .what = late ? "the server was not ready within " +
                         std::to_string(kServerStartBound.count()) + " s"
                   : "the server could not start",
      .advice = room + (room.empty() ? "" : "; ") + "its log is " + paths.server_log().string(),
      .faults = last_log_lines(paths.server_log(), log_begin)};
}

}  // namespace

std::string server_refusal(const Error& error) {
  std::string what = error.what;
  for (const base::Fault& fault : error.faults) {
    what += "; " + (fault.field.empty() ? "" : fault.field + ": ") + fault.what;
  }
  std::replace(what.begin(), what.end(), '\n', ' ');
  const bool is_foreign = base::detail_of<config::StartedOtherwise>(error) != nullptr;
  return (is_foreign ? kForeign : kRefusal) + what +
         (error.advice.empty() ? "" : "\n" + error.advice);
}

Result<bool> server_answers(const config::Paths& paths) {
  const auto info = api::Client(paths.socket).info();
  if (info) return true;
  if (info.error().code == ErrorCode::kUnavailable) return false;
  return info.error();
}

namespace {

/// docs/exit-codes.md: the server cannot be started.
Error unusable_folder(Error error, const config::Paths& paths) {
  error.code = ErrorCode::kUnavailable;
  if (error.advice.empty()) {
    error.advice = "the server's state is in '" + paths.state_folder.string() +
                   "'; choose another folder with MUSTER_STATE_DIR";
  }
  return error;
}

}  // namespace

Result<void> check_socket_folder(const config::Paths& paths) {
  const std::string folder = paths.socket.parent_path().string();
  const std::string inside = folder + "/.";
  const int error = ::access(inside.c_str(), F_OK) == 0 ? 0 : errno;
  if (error == 0 || error == ENOENT) return {};
  return unusable_folder(base::system_error("cannot use folder '" + folder + "'", error), paths);
}

namespace {

/// Creates the folders, and takes the lock of starts.
Result<UniqueFd> lock_starts(const config::Paths& paths) {
  if (auto made = config::make_folders(paths); !made) {
    return unusable_folder(std::move(made).error(), paths);
  }
  auto lock = base::await_lock(paths.start_lock());
  if (!lock) return unusable_folder(std::move(lock).error(), paths);
  return lock;
}

/// Starts a server while the lock of starts is held.
Result<void> start_repeatedly(const config::Paths& paths, const std::string& engine) {
  Result<void> started = start(paths, engine);
  const auto may_be_repeated = [&started] {
    return !started && base::detail_of<config::StartedOtherwise>(started.error()) == nullptr;
  };
  for (int again = 0; may_be_repeated() && again < kMoreAttempts; ++again) {
    std::this_thread::sleep_for(kPause);
    // A `muster server` started by hand does not take this lock and may have come first.
    const auto answers_now = server_answers(paths);
    if (answers_now && *answers_now) return {};
    started = start(paths, engine);
  }
  return started;
}

}  // namespace

Result<void> ensure_server(const config::Paths& paths, const std::string& engine) {
  MUSTER_TRY(const UniqueFd lock, lock_starts(paths));
  MUSTER_TRY(const bool answers, server_answers(paths));
  if (answers) return {};
  return start_repeatedly(paths, engine);
}

Result<void> replace_server(const config::Paths& paths, const std::string& engine,
                            const std::function<Result<void>()>& stop) {
  MUSTER_TRY(const UniqueFd lock, lock_starts(paths));
  MUSTER_CHECK(stop());
  return start_repeatedly(paths, engine);
}

}  // namespace muster::cli
