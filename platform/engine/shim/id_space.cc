#include "engine/shim/id_space.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/text.h"
#include "base/units.h"
#include "engine/shim/channels.h"
#include "engine/shim/modes.h"
#include "engine/shim/plan.h"

namespace muster::engine {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::UniqueFd;

namespace {

std::string spans_text(const std::vector<IdSpan>& spans) {
  std::string text;
  for (const IdSpan& span : spans) {
    text +=
        (text.empty() ? "" : ",") + std::to_string(span.first) + "+" + std::to_string(span.count);
  }
  return text;
}

std::optional<std::vector<IdSpan>> decode_spans(std::string_view text) {
  std::vector<IdSpan> spans;
  for (const std::string& part : base::split(text, ',')) {
    const size_t plus = part.find('+');
    if (plus == std::string::npos) return std::nullopt;
    const auto first = base::number_of<uint32_t>(part.substr(0, plus));
    const auto count = base::number_of<uint32_t>(part.substr(plus + 1));
    if (!first || !count) return std::nullopt;
    spans.push_back({.first = *first, .count = *count});
  }
  return spans;
}

std::vector<std::string> map_command(const std::string& program, pid_t process, uint32_t own,
                                     const std::vector<IdSpan>& spans) {
  std::vector<std::string> argv{program, std::to_string(process), "0", std::to_string(own), "1"};
  for (const IdSpan& span : spans) {
    for (const uint32_t number : {span.first, span.first, span.count}) {
      argv.push_back(std::to_string(number));
    }
  }
  return argv;
}

bool succeeds(const std::vector<std::string>& argv) {
  const auto child =
      base::spawn({.argv = argv, .program = argv.front(), .environment = {}, .folder = "/"});
  const auto status = child ? base::wait_for(*child) : Result<int>(child.error());
  return status && *status == 0;
}

/// Runs newuidmap and newgidmap for `process` once the pipe ends. It stays outside of the namespace
/// that `process` makes meanwhile.
[[noreturn]] void map_from_outside(int pipe, pid_t process, uint32_t uid, uint32_t gid,
                                   const IdSpace& space) {
  char nothing = 0;
  [[maybe_unused]] const ssize_t ended = ::read(pipe, &nothing, 1);
  const bool mapped = succeeds(map_command(space.newuidmap, process, uid, space.uids)) &&
                      succeeds(map_command(space.newgidmap, process, gid, space.gids));
  ::_exit(mapped ? 0 : 1);
}

}  // namespace

std::string encode(const IdSpace& space) {
  return space.newuidmap + ":" + space.newgidmap + ":" + spans_text(space.uids) + ":" +
         spans_text(space.gids);
}

Result<IdSpace> decode_id_space(std::string_view text) {
  const std::vector<std::string> parts = base::split(text, ':');
  const Error invalid{.code = ErrorCode::kInternal, .what = "cannot read the ids of an account"};
  if (parts.size() != 4) return invalid;
  auto uids = decode_spans(parts[2]);
  auto gids = decode_spans(parts[3]);
  if (!uids || !gids) return invalid;
  return IdSpace{.newuidmap = parts[0],
                 .newgidmap = parts[1],
                 .uids = *std::move(uids),
                 .gids = *std::move(gids)};
}

std::vector<IdSpan> lent_ids(std::string_view text, std::string_view name, uint32_t number) {
  std::vector<IdSpan> spans;
  for (const std::string& line : base::split(text, '\n')) {
    const std::vector<std::string> parts = base::split(line, ':');
    if (parts.size() != 3) continue;
    if (parts[0] != name && parts[0] != std::to_string(number)) continue;
    const auto first = base::number_of<uint32_t>(parts[1]);
    const auto count = base::number_of<uint32_t>(parts[2]);
    if (first && count && *count > 0) spans.push_back({.first = *first, .count = *count});
  }
  return spans;
}

Result<void> enter_new_id_space(const IdSpace& space) {
  const uint32_t uid = ::geteuid();
  const uint32_t gid = ::getegid();
  const pid_t self = ::getpid();
  std::array<int, 2> ends{-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  const UniqueFd waits(ends[0]);
  UniqueFd made(ends[1]);
  const pid_t mapper = ::fork();
  if (mapper < 0) return base::system_error("cannot start a process", errno);
  if (mapper == 0) {
    made.reset();
    map_from_outside(waits.get(), self, uid, gid, space);
  }
  const int refused = ::unshare(CLONE_NEWUSER) == 0 ? 0 : errno;
  // A process that has changed its rights belongs to root in /proc, and newuidmap looks there.
  ::prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  made.reset();
  int status = 0;
  while (::waitpid(mapper, &status, 0) < 0 && errno == EINTR) continue;
  if (refused != 0) {
    Error error = base::system_error("cannot make a user namespace", refused);
    error.code = ErrorCode::kUnavailable;
    return error;
  }
  if (status == 0) return {};
  return Error{.code = ErrorCode::kRefused,
               .what = "newuidmap or newgidmap refuses the ids of /etc/subuid and /etc/subgid"};
}

Result<void> run_in_id_space(const std::string& shim, const IdSpace& space,
                             const std::vector<std::string>& arguments, std::string_view input) {
  MUSTER_TRY(const UniqueFd given, in_memory_file(input));
  MUSTER_TRY(const UniqueFd why, in_memory_file(""));
  std::vector<std::string> argv{shim, "--with-ids", encode(space)};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  MUSTER_TRY(const base::Child child,
             base::spawn({.argv = std::move(argv),
                          .environment = {},
                          .descriptors = {{given.get(), STDIN_FILENO}, {why.get(), STDERR_FILENO}},
                          .folder = "/"}));
  MUSTER_TRY(const int status, base::wait_for(child));
  if (status == 0) return {};
  ::lseek(why.get(), 0, SEEK_SET);
  const auto text = base::read_file("/proc/self/fd/" + std::to_string(why.get()));
  return read_refusal(text && !text->empty() ? *text : "internal\nmuster-shim ended");
}

int run_remove(const char* path) {
  const auto removed = base::remove_tree(path);
  if (removed) return 0;
  [[maybe_unused]] const auto written =
      base::write_all(STDERR_FILENO, refusal_text(removed.error()));
  return 1;
}

bool begin_in_id_space(const char* space) {
  const auto decoded = decode_id_space(space);
  const auto entered = decoded ? enter_new_id_space(*decoded) : Result<void>(decoded.error());
  if (entered) return true;
  [[maybe_unused]] const auto written =
      base::write_all(STDERR_FILENO, refusal_text(entered.error()));
  return false;
}

}  // namespace muster::engine
