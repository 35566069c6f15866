#include "notify/command_hook.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/files.h"
#include "base/log.h"
#include "job/exit_status.h"
#include "notify/payload.h"

namespace muster::notify {

using base::Result;
using base::UniqueFd;

namespace {

constexpr size_t kMostOutput = 2'000;

/// A file without a name for the payload: unlike a pipe, it takes the whole payload at once, even
/// if the program reads slowly.
Result<UniqueFd> input_with(const std::string& payload) {
  UniqueFd input(::memfd_create("notification", MFD_CLOEXEC));
  if (!input) return base::system_error("cannot make the input of the notify command", errno);
  MUSTER_CHECK(base::write_all(input.get(), payload));
  ::lseek(input.get(), 0, SEEK_SET);
  return input;
}

std::vector<std::string> environment_of(const CommandHook::Event& event) {
  return {"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8",
          "MUSTER_EVENT=" + event_name(event.happening, event.object),
          "MUSTER_PROJECT=" + event.project, "MUSTER_JOB=" + event.job};
}

/// The program's process group. Its number cannot be reused, because the program is not reaped yet.
void kill_group(const base::Child& child) {
  ::kill(-child.pid, SIGKILL);
}

std::string words_on(int status) {
  return WIFSIGNALED(status) ? "it was ended by signal " + std::to_string(WTERMSIG(status))
                             : "it ended with exit code " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

void CommandHook::set_command(std::vector<std::string> command) {
  command_ = std::move(command);
  if (command_.empty()) return;
  const std::string& program = command_.front();
  struct stat found{};
  const bool runs = ::stat(program.c_str(), &found) == 0 && S_ISREG(found.st_mode) &&
                    ::access(program.c_str(), X_OK) == 0;
  if (!runs)
    base::log_warning("notify.command: '" + program + "' is not a program that can be run");
}

CommandHook::~CommandHook() {
  for (auto& [number, run] : runs_) {
    kill_group(run.child);
    [[maybe_unused]] const auto reaped = base::wait_for(run.child);
  }
}

void CommandHook::add(Event event) {
  if (!is_set()) return;
  if (waiting_.size() >= kMostWaiting) {
    base::log_error("the queue of the notify command is full; an event is dropped",
                    {{"event", event_name(event.happening, event.object)},
                     {"project", event.project},
                     {"job", event.job}});
    return;
  }
  waiting_.push_back({.event = std::move(event)});
  start_next();
}

void CommandHook::start_next() {
  while (!waiting_.empty() && runs_.size() < kMostAtOnce) {
    Turn turn = std::move(waiting_.front());
    waiting_.pop_front();
    if (!is_set()) continue;
    Turn tried = turn;
    const auto started = start(std::move(turn));
    if (!started) failed(std::move(tried), started.error().what);
  }
}

Result<void> CommandHook::start(Turn turn) {
  MUSTER_TRY(const UniqueFd input, input_with(turn.event.payload));
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return base::system_error("cannot make the output of the notify command", errno);
  }
  UniqueFd output(ends[0]);
  const UniqueFd theirs(ends[1]);
  // Only this end: the program may expect that its own end blocks.
  if (::fcntl(output.get(), F_SETFL, O_NONBLOCK) != 0) {
    return base::system_error("cannot make the output of the notify command", errno);
  }
  MUSTER_TRY(base::Child child,
             base::spawn({.argv = command_,
                          .environment = environment_of(turn.event),
                          .descriptors = {{input.get(), 0}, {theirs.get(), 1}, {theirs.get(), 2}},
                          .new_session = true,
                          .folder = "/"}));
  const int number = next_number_++;
  Run& run = runs_[number];
  run.turn = std::move(turn);
  run.child = std::move(child);
  run.output = std::move(output);
  run.ended = loop_.when_readable(run.child.pidfd.get(), [this, number] { ended(number); });
  run.readable = loop_.when_readable(run.output.get(), [this, &run] { read_output(run); });
  run.timer = loop_.after(limits_.timeout, [&run] {
    run.timed_out = true;
    kill_group(run.child);
  });
  return {};
}

/// Reads the available output, and does not wait for output of grandchildren.
void CommandHook::read_output(Run& run) {
  std::array<char, 4096> piece;
  while (true) {
    const ssize_t count = ::read(run.output.get(), piece.data(), piece.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return;
    if (count == 0) return run.readable.reset();
    const size_t room = kMostOutput - std::min(run.printed.size(), kMostOutput);
    run.printed.append(piece.data(), std::min(room, static_cast<size_t>(count)));
    if (static_cast<size_t>(count) < piece.size()) return;
  }
}

void CommandHook::ended(int number) {
  auto node = runs_.extract(number);
  Run& run = node.mapped();
  read_output(run);
  kill_group(run.child);  // processes that it left behind
  const auto status = base::wait_for(run.child);
  const base::LogFields fields{
      {"event", event_name(run.turn.event.happening, run.turn.event.object)},
      {"job", run.turn.event.job}};
  if (!run.printed.empty()) base::log_info("output of the notify command: " + run.printed, fields);
  if (run.timed_out) {
    failed(std::move(run.turn),
           "it did not end within " + std::to_string(limits_.timeout.count()) + " ms");
  } else if (!status) {
    failed(std::move(run.turn), status.error().what);
  } else if (*status != 0) {
    failed(std::move(run.turn), words_on(*status));
  }
  start_next();
}

void CommandHook::failed(Turn turn, const std::string& why) {
  ++turn.attempts;
  const bool goes_on = turn.attempts < kAttempts;
  base::log_warning("the notify command failed: " + why + (goes_on ? "" : "; giving up"),
                    {{"event", event_name(turn.event.happening, turn.event.object)},
                     {"project", turn.event.project},
                     {"job", turn.event.job},
                     {"attempt", turn.attempts}});
  if (!goes_on) return;
  const int number = next_number_++;
  pauses_[number] = loop_.after(limits_.pause, [this, number, turn = std::move(turn)]() mutable {
    waiting_.push_back(std::move(turn));
    pauses_.erase(number);
    start_next();
  });
}

}  // namespace muster::notify
