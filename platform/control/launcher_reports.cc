#include "control/launcher_reports.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>

namespace muster::control {

namespace {

constexpr std::string_view kOfHorovodrun = "horovodrun: rank";
constexpr std::string_view kIsGone = " is gone: ";

// The longest report: Hydra's, to its last line.
constexpr size_t kLongestReport = 14;

/// Removes the text up to and including `words` from `rest`; false: it does not contain them.
bool skip_past(std::string_view& rest, std::string_view words) {
  const size_t at = rest.find(words);
  if (at == std::string_view::npos) return false;
  rest.remove_prefix(at + words.size());
  return true;
}

/// Removes blanks and a number from the beginning of `rest`; returns the number.
std::optional<int> take_number(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  int number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  if (error != std::errc{}) return std::nullopt;
  rest.remove_prefix(static_cast<size_t>(end - rest.data()));
  return number;
}

std::optional<int> number_after(std::string_view line, std::string_view words) {
  return skip_past(line, words) ? take_number(line) : std::nullopt;
}

std::string word_of(std::string_view rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  return std::string(rest.substr(0, rest.find(' ')));
}

/// The lines of the report that begins at `begin`, joined by blanks.
std::string report_at(const LastLines& lines, size_t begin, size_t count) {
  std::string text;
  for (size_t i = begin; i < std::min(lines.size(), begin + count); ++i) text += lines[i] + " ";
  return text;
}

// "mpirun noticed that process rank 1 with PID 11 on node dist-worker-1 exited on signal 9
// (Killed)."
std::optional<RankEnd> open_mpi_signal(const LastLines& lines, size_t at) {
  if (lines[at].find(" noticed that process rank ") == std::string::npos) return std::nullopt;
  const std::string report = report_at(lines, at, 3);
  std::string_view rest = report;
  RankEnd end;
  skip_past(rest, "process rank ");
  end.rank = take_number(rest);
  if (skip_past(rest, " on node ")) end.host = word_of(rest);
  if (!end.rank || !skip_past(rest, "exited on") || !skip_past(rest, "signal ")) {
    return std::nullopt;
  }
  end.status.signal = take_number(rest).value_or(0);
  return end;
}

// "  Process name: [[58491,1],1]" (4), "   Process name: [prterun-host-12@1,1]" (5) or
// "Process name: 1" (horovodrun), and beside it "  Exit code:    3".
std::optional<RankEnd> named_process(const LastLines& lines, size_t at) {
  std::string_view name = lines[at];
  if (!skip_past(name, "Process name:")) return std::nullopt;
  while (name.ends_with(' ') || name.ends_with(']')) name.remove_suffix(1);
  name.remove_prefix(name.find_last_of(", ") + 1);
  RankEnd end{.rank = take_number(name)};
  const size_t before = at == 0 ? 0 : at - 1;
  const auto code = number_after(report_at(lines, before, 3), "Exit code:");
  if (!end.rank || !code) return std::nullopt;
  end.status.code = *code;
  return end;
}

// "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD", then "with errorcode 5." (4) or
// "  Errorcode: 5" (5).
std::optional<RankEnd> open_mpi_abort(const LastLines& lines, size_t at) {
  const auto rank = number_after(lines[at], "MPI_ABORT was invoked on rank ");
  if (!rank || lines[at].find("MPI_COMM_WORLD") == std::string::npos) return std::nullopt;
  const std::string report = report_at(lines, at, 5);
  auto code = number_after(report, "with errorcode ");
  if (!code) code = number_after(report, "Errorcode:");
  return RankEnd{.rank = rank, .host = {}, .status = {.code = code.value_or(1)}, .aborted = true};
}

// "mpirun has exited due to process rank 1 with PID 0 on", then "node dist-worker-1 exiting
// improperly. There are three reasons this could occur:".
std::optional<RankEnd> open_mpi_unfinalized(const LastLines& lines, size_t at) {
  if (lines[at].find(" has exited due to process rank ") == std::string::npos) return std::nullopt;
  const std::string report = report_at(lines, at, 2);
  std::string_view rest = report;
  skip_past(rest, "process rank ");
  RankEnd end{.rank = take_number(rest)};
  if (skip_past(rest, " on node ")) end.host = word_of(rest);
  if (!end.rank || rest.find("exiting improperly") == std::string_view::npos) return std::nullopt;
  end.unfinalized = true;
  return end;
}

// "Abort(5) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 5) ..."
std::optional<RankEnd> mpich_abort(const LastLines& lines, size_t at) {
  const auto code = number_after(lines[at], "Abort(");
  const auto rank = number_after(lines[at], ") on node ");
  if (!code || !rank || lines[at].find(" (rank ") == std::string::npos) return std::nullopt;
  return RankEnd{.rank = rank, .host = {}, .status = {.code = *code}, .aborted = true};
}

bool is_deadly(int signal) {
  constexpr std::array kDeadly{SIGINT,  SIGILL,  SIGABRT, SIGBUS, SIGFPE,
                               SIGKILL, SIGSEGV, SIGPIPE, SIGTERM};
  return std::find(kDeadly.begin(), kDeadly.end(), signal) != kDeadly.end();
}

// Hydra's frame: "=   PID 9 RUNNING AT dist-worker-1", "=   EXIT CODE: 9", and behind the frame
// "... THE EXIT STRING: Killed (signal 9)". Intel's: "=   RANK 1 PID 9 RUNNING AT dist-worker-1",
// "=   KILLED BY SIGNAL: 9 (Killed)" or "=   EXIT STATUS: 3".
std::optional<RankEnd> hydra_frame(const LastLines& lines, size_t at) {
  if (lines[at].find("BAD TERMINATION OF ONE OF YOUR") == std::string::npos) return std::nullopt;
  const std::string report = report_at(lines, at, kLongestReport);
  RankEnd end{.rank = number_after(report, "=   RANK ")};
  std::string_view rest = report;
  if (skip_past(rest, " RUNNING AT ")) end.host = word_of(rest);
  const auto code = number_after(report, "EXIT CODE:");
  auto signal = number_after(report, "KILLED BY SIGNAL:");
  if (!signal && skip_past(rest, "THE EXIT STRING: ")) signal = number_after(rest, "(signal ");
  // MPICH's code is the signal: it prints no frame for an exit. Its frame may name a process that
  // it killed itself.
  if (code && !signal && is_deadly(*code)) signal = code;
  if (code && signal && *code != *signal) end.host.clear();
  end.status.signal = signal.value_or(0);
  if (!signal) end.status.code = code ? *code : number_after(report, "EXIT STATUS:").value_or(1);
  return end;
}

// The first of several frames: after a process has died, Hydra kills the others, and Intel MPI
// prints a frame for each of them.
std::optional<RankEnd> first_hydra_frame(const LastLines& lines) {
  std::optional<RankEnd> first;
  for (size_t i = 0; i < lines.size(); ++i) {
    auto end = hydra_frame(lines, i);
    if (!end) continue;
    if (end->status.signal != SIGKILL) return end;
    if (!first) first = std::move(end);
  }
  return first;
}

// "Process 2 exit with status code 1."
std::optional<RankEnd> horovod_process(const LastLines& lines, size_t at) {
  const auto rank = number_after(lines[at], "Process ");
  const auto code = number_after(lines[at], " exit with status code ");
  if (!rank || !code) return std::nullopt;
  return RankEnd{.rank = rank, .host = {}, .status = {.code = *code}};
}

int signal_of(std::string_view name) {
  for (int signal = 1; signal < NSIG; ++signal) {
    const char* const abbreviation = sigabbrev_np(signal);
    if (abbreviation != nullptr && "SIG" + std::string(abbreviation) == name) return signal;
  }
  return 0;
}

// Muster's horovodrun: "horovodrun: rank 1 on dist-worker-1 was killed by SIGKILL: the system ...",
// "... ended with exit code 3; see its lines above" or "... is gone: its host was lost".
std::optional<RankEnd> muster_horovodrun(const LastLines& lines, size_t at) {
  std::string_view rest = lines[at];
  if (!rest.starts_with(kOfHorovodrun)) return std::nullopt;
  rest.remove_prefix(kOfHorovodrun.size());
  RankEnd end{.rank = take_number(rest)};
  if (!end.rank || !rest.starts_with(" on ")) return std::nullopt;
  rest.remove_prefix(4);
  end.host = word_of(rest);
  rest.remove_prefix(end.host.size());
  if (const auto code = number_after(rest, " ended with exit code ")) {
    end.status.code = *code;
  } else if (skip_past(rest, " was killed by ")) {
    const std::string_view name = rest.substr(0, rest.find_first_of(":; "));
    end.status.signal =
        name == "signal" ? number_after(rest, "signal").value_or(0) : signal_of(name);
    if (end.status.signal == 0) return std::nullopt;
  } else if (rest.starts_with(kIsGone)) {
    end.status.lost = true;
    end.status.error = rest.substr(kIsGone.size(), rest.find(';') - kIsGone.size());
  } else {
    return std::nullopt;
  }
  return end;
}

/// The text behind "name  : " in a line of torchrun's report.
std::optional<std::string_view> torch_field(std::string_view line, std::string_view name) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (!skip_past(line, ": ")) return std::nullopt;
  return line;
}

/// A rank in torchrun's report, and the second in which torchrun noticed its end.
struct TorchrunEnd {
  RankEnd end;
  std::string_view time;
};

// Fields: "  time      : 2026-11-22_01:56:04", "  rank      : 1 (local_rank: 1)",
// "  exitcode  : -9 (pid: 15477)".
TorchrunEnd torchrun_end(const LastLines& lines, size_t at) {
  TorchrunEnd found;
  for (size_t i = at; i < std::min(lines.size(), at + 7); ++i) {
    if (i > at + 1 && lines[i].starts_with('[')) break;  // the next rank
    if (auto time = torch_field(lines[i], "time ")) found.time = *time;
    if (auto rank = torch_field(lines[i], "rank ")) found.end.rank = take_number(*rank);
    auto code = torch_field(lines[i], "exitcode ");
    const int number = code ? take_number(*code).value_or(1) : 0;
    if (number < 0) found.end.status.signal = -number;
    if (number > 0) found.end.status.code = number;
  }
  return found;
}

/// The ranks that torchrun lists above its root cause, which is at `cause`: "[1]:" and its fields.
std::vector<TorchrunEnd> other_torchrun_ends(const LastLines& lines, size_t cause) {
  std::vector<TorchrunEnd> ends;
  for (size_t after = cause; after > 0; --after) {
    const auto& line = lines[after - 1];
    if (line.starts_with("Failures:")) break;
    if (line.starts_with('[') && line.ends_with("]:")) {
      ends.push_back(torchrun_end(lines, after - 1));
    }
  }
  return ends;
}

// torchrun looks at its ranks from time to time. If several have ended since the last look, its
// "Root Cause (first observed failure):" is the lowest of them. Of these, a rank that a signal
// killed did not end because it lost another one. Without such a rank, the first is unknown.
std::optional<RankEnd> torchrun_cause(const LastLines& lines, size_t at) {
  if (lines[at].find("Root Cause (first observed failure):") == std::string::npos) {
    return std::nullopt;
  }
  const TorchrunEnd root = torchrun_end(lines, at);
  if (!root.end.rank) return std::nullopt;
  const auto was_killed = [](const RankEnd& end) {
    return end.status.signal != 0 && end.status.signal != SIGTERM && end.status.signal != SIGABRT;
  };
  RankEnd cause = root.end;
  for (const TorchrunEnd& other : other_torchrun_ends(lines, at)) {
    if (!other.end.rank || other.time != root.time || other.end.status.signal == SIGTERM) continue;
    if (was_killed(other.end) && !was_killed(cause)) return other.end;
    if (was_killed(other.end) == was_killed(cause)) cause.rank.reset();
  }
  return cause;
}

bool is_rule(std::string_view line, char letter) {
  constexpr size_t kShortestRule = 70;
  return line.size() >= kShortestRule && line.find_first_not_of(letter) == std::string_view::npos;
}

bool begins_explanation(std::string_view line) {
  constexpr std::array<std::string_view, 8> kBeginnings{
      "ORTE was unable to reliably start one or more daemons",
      "PRTE was unable to reliably start one or more daemons",
      "ORTE does not know how to route a message",
      "Primary job  terminated normally",
      "MPI_ABORT was invoked on rank",
      "An MPI communication peer process has unexpectedly disconnected",
      "mpirun has exited due to process rank",
      "prterun has exited due to process rank"};
  return line.find(" noticed that process rank ") != std::string_view::npos ||
         line.find(" detected that one or more processes exited") != std::string_view::npos ||
         std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return line.starts_with(beginning); });
}

/// Matches a remark of a launcher in one line.
bool is_remark(std::string_view line) {
  constexpr std::array<std::string_view, 9> kBeginnings{
      kOfHorovodrun,
      "[proxy:",
      "[mpiexec@",
      "YOUR APPLICATION TERMINATED WITH THE EXIT STRING:",
      "This typically refers to a problem with your application.",
      "Please see the FAQ page for debugging suggestions",
      "WARNING:torch.distributed.",
      "ERROR:torch.distributed.elastic.",
      "Abort("};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return line.starts_with(beginning); });
}

/// The line after the frame that begins at `begin`; `begin`: no frame begins there.
size_t end_of_frame(const LastLines& lines, size_t begin) {
  if (begin + 1 >= lines.size()) return begin;
  const bool open_mpi = is_rule(lines[begin], '-') && begins_explanation(lines[begin + 1]);
  const bool hydra =
      is_rule(lines[begin], '=') && lines[begin + 1].find("BAD TERMINATION") != std::string::npos;
  if (!open_mpi && !hydra) return begin;
  const auto closing =
      std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(begin) + 1, lines.end(),
                   [&](const std::string& line) { return is_rule(line, open_mpi ? '-' : '='); });
  return static_cast<size_t>(closing - lines.begin()) + (closing == lines.end() ? 0 : 1);
}

/// The beginning of torchrun's own traceback, which contains its report.
size_t begin_of_torchrun_report(const LastLines& lines) {
  const auto report = std::find_if(lines.begin(), lines.end(), [](const std::string& line) {
    return line.find("errors.ChildFailedError:") != std::string::npos;
  });
  if (report == lines.end()) return lines.size();
  for (auto line = report; line != lines.begin(); --line) {
    if (line->starts_with("Traceback (most recent call last):")) {
      return static_cast<size_t>(line - lines.begin());
    }
  }
  // Its beginning is not among the lines.
  return 0;
}

}  // namespace

std::optional<RankEnd> first_failed(const LastLines& lines) {
  constexpr std::array kReports{open_mpi_signal,      named_process,  open_mpi_abort,
                                open_mpi_unfinalized, torchrun_cause, muster_horovodrun};
  for (size_t i = lines.size(); i-- > 0;) {
    for (const auto report : kReports) {
      if (auto end = report(lines, i)) return end;
    }
  }
  // These have a line for each rank.
  for (const auto report : {mpich_abort, horovod_process}) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (auto end = report(lines, i)) return end;
    }
  }
  return first_hydra_frame(lines);
}

size_t end_of_explanation(const LastLines& lines, size_t begin) {
  const auto rule = std::find_if(lines.begin() + static_cast<std::ptrdiff_t>(begin), lines.end(),
                                 [](const std::string& line) { return is_rule(line, '-'); });
  return static_cast<size_t>(rule - lines.begin());
}

bool is_harmless_remark(std::string_view line) {
  return line.find("plm:rsh: Warning: setpgid") != std::string_view::npos;
}

namespace {

/// The word between `before` and `behind`.
std::optional<std::string> word_between(std::string_view line, std::string_view before,
                                        std::string_view behind) {
  if (!skip_past(line, before)) return std::nullopt;
  const size_t end = line.find(behind);
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  return std::string(line.substr(0, end));
}

// "ORTE has lost communication with a remote daemon." (4) or "PRTE has lost ..." (5), and below it
// "  Remote daemon: [[14026,0],1] on node dist-worker-0".
std::optional<std::string> lost_daemon(const LastLines& lines) {
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find(" has lost communication with a remote daemon") == std::string::npos)
      continue;
    const std::string report = report_at(lines, i, 6);
    std::string_view rest = report;
    if (skip_past(rest, "Remote daemon:") && skip_past(rest, " on node ")) return word_of(rest);
  }
  return std::nullopt;
}

/// Messages of ssh, and of Muster's remote shell.
std::optional<std::string> closed_connection(std::string_view line) {
  if (auto host = word_between(line, "Connection to ", " closed by remote host")) return host;
  if (auto host = word_between(line, "Connection closed by ", " port ")) return host;
  if (auto host = word_between(line, "Connection reset by ", " port ")) return host;
  if (auto host = word_between(line, "Read from remote host ", ": ")) return host;
  if (auto host = word_between(line, "muster-rsh: ", " closed the connection")) return host;
  return word_between(line, "muster-rsh: ", " does not answer");
}

}  // namespace

std::optional<std::string> lost_host_in(const LastLines& lines) {
  if (auto host = lost_daemon(lines)) return host;
  // Connections are closed at every end of a job. It is the cause only if mpirun then reports a
  // lost daemon.
  std::optional<std::string> closed;
  for (const std::string& line : lines) {
    if (!closed) closed = closed_connection(line);
    const bool misses_daemon =
        line.find(" was unable to reliably start one or more daemons") != std::string::npos ||
        line.find(" daemon process exited abnormally") != std::string::npos;
    if (closed && misses_daemon) return closed;
  }
  return std::nullopt;
}

std::vector<std::string> without_launcher_words(const LastLines& lines) {
  const size_t end = begin_of_torchrun_report(lines);
  LastLines kept;
  for (size_t i = 0; i < end;) {
    const size_t behind = end_of_frame(lines, i);
    if (behind == i) {
      if (!is_remark(lines[i])) kept.push_back(lines[i]);
      ++i;
    } else {
      i = behind;
    }
  }
  while (!kept.empty() && kept.back().empty()) kept.pop_back();
  return kept;
}

}  // namespace muster::control
