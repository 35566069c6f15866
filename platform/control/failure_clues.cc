#include "control/failure_clues.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <string_view>

#include "control/retry.h"

namespace muster::control {

namespace {

struct Hint {
  std::string_view printed;
  std::string_view words;
  std::string_view advice;
};

constexpr std::string_view kOutOfGpuMemory = "its GPU ran out of memory";
constexpr std::string_view kLessGpuMemory =
    "use a smaller batch, or request a whole GPU or GPUs with more memory";
constexpr std::string_view kOutOfMemory = "it ran out of memory";
constexpr std::string_view kLessMemory =
    "use a smaller batch or fewer processes on one machine, or request more --memory";
constexpr std::string_view kNotTheirKey =
    "ssh finds the job's keys (/generated/ssh) by itself: remove your own ssh options, hostfiles "
    "and ssh_config";
constexpr std::string_view kSharedMemory =
    "shared memory (/dev/shm) is too small: use fewer or no loader processes (num_workers=0), or "
    "smaller batches";
constexpr std::string_view kNccl =
    "run it again with NCCL_DEBUG=INFO in its environment: the first 'NCCL WARN' names the cause";

constexpr std::string_view kCrlf = "a script has Windows line ends (CRLF)";
constexpr std::string_view kConvertLineEnds = "convert its line ends: sed -i 's/\\r$//' SCRIPT";
constexpr std::string_view kNoInterpreter =
    "the first line of a script names an interpreter that does not exist";
constexpr std::string_view kOtherInterpreter =
    "correct that line, or install the interpreter where the task runs; 'cat -A SCRIPT' shows "
    "Windows line ends (CRLF) as '^M$'";

constexpr std::string_view kPortTaken = "its port is in use by another program";
constexpr std::string_view kOtherPort =
    "listen on the port that the job was given (MASTER_PORT, TF_CONFIG), or on port 0";

constexpr std::string_view kBadInterpreter = " has a bad interpreter on the first line";
constexpr std::string_view kNotAccessible = "could not access";
constexpr std::string_view kNotResolved = "Could not resolve hostname ";
constexpr std::string_view kNotOfTheJob = "this job has no host ";
constexpr std::string_view kOnlyHostsOfTheJob =
    "name only hosts of the job: remove -H, --host and your own hostfiles; mpirun reads "
    "/generated/hostfile by itself";

// Messages of mpirun, with advice for users of Muster.
constexpr Hint kOfMpirun[] = {
    {"There are not enough slots available", "",
     "-np requests more ranks than the workers have slots: raise --workers or --slots-per-worker, "
     "or lower -np"},
    {"unable to find the specified executable file", "mpirun did not find the program",
     "check its name, give its full path, or install it where the tasks run"},
    {kBadInterpreter, kNoInterpreter, kOtherInterpreter},
    {kNotAccessible, "mpirun could not execute the program",
     "give its full path, and make it executable (chmod +x); if the workers do not share files, "
     "each worker needs the program"},
    {kNotResolved, "ssh could not resolve the name of a host", kOnlyHostsOfTheJob},
    {kNotOfTheJob, "mpirun was given a host that is not part of the job", kOnlyHostsOfTheJob},
    {"execvp error on file", "mpiexec did not find the program",
     "check its name, give its full path, or install it where the tasks run"},
    {"unrecognized argument allow-run-as-root", "its mpirun is not Open MPI's",
     "remove the options of Open MPI (--allow-run-as-root, -bind-to, -mca), or use an image with "
     "Open MPI"},
    {"token slots not supported", "its mpirun cannot read the hostfile of Open MPI",
     "remove -f: mpirun finds the job's hostfile by itself"},
    {"unrecognized argument", "", "mpirun was given an unknown option; see mpirun --help"},
    {"attempt to run as root", "",
     "add --allow-run-as-root to mpirun, or submit as an ordinary user"},
};

constexpr std::string_view kOtherProcessor = "it was built for another type of CPU";
constexpr std::string_view kLargerSharedMemory =
    "shared memory (/dev/shm) is too small: enlarge it with --shm-size";

// For programs in a writable image.
constexpr Hint kInWritableImages[] = {
    {"insufficient shared memory", "", kLargerSharedMemory},
    {"unable to allocate shared memory", "", kLargerSharedMemory},
    {"Bus error", "", kLargerSharedMemory},
    {"xec format error", kOtherProcessor,
     "use an image, or a build of the program, for the CPU of this machine"},
    {"\"no new privileges\" flag is set", "its container lets no program gain privileges",
     "use --allow-new-privileges, or --user root if the image may run as root"},
    {"Operation not permitted", "",
     "its container has few of root's capabilities: --cap-add NAME adds a capability "
     "(capabilities(7) lists which call needs which)"},
    {"No module named", "",
     "use an image that has the package, or send it with --workspace and set PYTHONPATH"},
    {"error while loading shared libraries", "a shared library is missing",
     "use an image that has the library, or set LD_LIBRARY_PATH"},
};

// For images where only volumes are writable.
constexpr Hint kInImages[] = {
    {"Read-only file system", "",
     "only /tmp, /artifacts and volumes are writable: write there, or make the image writable with "
     "--writable-root"},
};

// The more specific first.
constexpr Hint kOfPrograms[] = {
    {"CUDA out of memory", kOutOfGpuMemory, kLessGpuMemory},
    {"CUDA_ERROR_OUT_OF_MEMORY", kOutOfGpuMemory, kLessGpuMemory},
    {"CUDA error: out of memory", kOutOfGpuMemory, kLessGpuMemory},
    {"OOM when allocating tensor", kOutOfGpuMemory, kLessGpuMemory},
    {"no CUDA-capable device", "it found no GPU", "request GPUs: --gpus 1"},
    {"Found no NVIDIA driver", "it found no GPU", "request GPUs: --gpus 1"},
    {"No module named", "",
     "install the package where the tasks run, or send it with --workspace and set PYTHONPATH"},
    {"Host key verification failed", "ssh could not verify a host key", kNotTheirKey},
    {"Permission denied (publickey", "an ssh login was refused", kNotTheirKey},
    {"insufficient shared memory", "", kSharedMemory},
    {"unable to allocate shared memory", "", kSharedMemory},
    {"Bus error", "", kSharedMemory},
    {"ncclSystemError", "", kNccl},
    {"ncclInternalError", "", kNccl},
    {"ncclUnhandledCudaError", "", kNccl},
    {"unhandled system error, NCCL", "", kNccl},
    {"NCCL WARN", "", kNccl},
    {"std::bad_alloc", kOutOfMemory, kLessMemory},
    {"MemoryError", kOutOfMemory, kLessMemory},
    {"Cannot allocate memory", kOutOfMemory, kLessMemory},
    {"No space left on device", "a disk was full", "free disk space (df -h), or write elsewhere"},
    {"Disk quota exceeded", "a disk quota was exceeded", "delete files, or write elsewhere"},
    {"ddress already in use", kPortTaken, kOtherPort},
    {"EADDRINUSE", kPortTaken, kOtherPort},
    {"Could not start gRPC server", kPortTaken, kOtherPort},
    {"Connection refused", "its connection was refused",
     "read the log of the task to which it connects: that task ended first, or listens on another "
     "address or port"},
    {"error while loading shared libraries", "a shared library is missing",
     "install the library where the tasks run, or set LD_LIBRARY_PATH"},
    {"Read-only file system", "", "write to the job's folder, /artifacts, /tmp or a volume"},
    {"(CRLF line ends)", kCrlf, kConvertLineEnds},
    {"names the interpreter '", kNoInterpreter, kOtherInterpreter},
    {"^M: bad interpreter", kCrlf, kConvertLineEnds},
    {"\\r': No such file or directory", kCrlf, kConvertLineEnds},
    {"\\r’: No such file or directory", kCrlf, kConvertLineEnds},
    {"bad interpreter: No such file or directory", kNoInterpreter, kOtherInterpreter},
    {"cannot execute: required file not found", kNoInterpreter, kOtherInterpreter},
    {"Permission denied", "",
     "the job's user lacks the permission: check the file's owner and mode (ls -l)"},
    {"No such file or directory", "",
     "relative paths begin at the job's folder (FOLDER in 'muster get'); --workspace sends your "
     "own files"},
};

constexpr size_t kLongestWords = 200;

bool holds(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

template <size_t kSize>
const Hint* hint_in(std::string_view line, const Hint (&hints)[kSize]) {
  if (is_harmless_remark(line)) return nullptr;
  const auto found = std::find_if(std::begin(hints), std::end(hints),
                                  [&](const Hint& hint) { return holds(line, hint.printed); });
  return found == std::end(hints) ? nullptr : &*found;
}

/// For a program in these surroundings; the specific ones first.
const Hint* hint_in(std::string_view line, Surroundings surroundings) {
  const Hint* hint = nullptr;
  if (surroundings == Surroundings::kImage) hint = hint_in(line, kInImages);
  if (hint == nullptr && surroundings != Surroundings::kMachine) {
    hint = hint_in(line, kInWritableImages);
  }
  return hint == nullptr ? hint_in(line, kOfPrograms) : hint;
}

Clue clue_of(const Hint& hint, size_t line) {
  return {.words = std::string(hint.words),
          .advice = std::string(hint.advice),
          .begin = line,
          .end = line,
          .overrides_code = hint.words == kCrlf || hint.words == kNoInterpreter};
}

/// The name, if the lines contain it.
void name_the_port(const LastLines& lines, Clue& clue) {
  if (clue.words != kPortTaken) return;
  const auto refused = refused_port_in(lines);
  if (!refused || refused->named.empty()) return;
  clue.words = "port " + std::to_string(*refused->named.begin()) + " is in use by another program";
}

/// The text behind "name" in one of the lines from `begin` on.
std::string field_behind(const LastLines& lines, size_t begin, std::string_view name) {
  constexpr size_t kLinesOfReport = 6;
  for (size_t i = begin; i < std::min(lines.size(), begin + kLinesOfReport); ++i) {
    if (lines[i].starts_with(name)) return lines[i].substr(name.size());
  }
  return "";
}

/// The subject of an explanation of mpirun, if its lines name it.
void name_the_subject(const LastLines& lines, const Hint& hint, Clue& clue) {
  const std::string& line = lines[clue.begin];
  if (hint.printed == kNotAccessible) {
    const std::string program = field_behind(lines, clue.begin, "Executable: ");
    const std::string node = field_behind(lines, clue.begin, "Node: ");
    if (program.empty() || node.empty()) return;
    clue.words = "mpirun could not execute '" + program + "' on " + node;
  } else if (hint.printed == kNotResolved) {
    const size_t begin = line.find(kNotResolved) + kNotResolved.size();
    clue.words =
        "ssh could not resolve host '" + line.substr(begin, line.find(':', begin) - begin) + "'";
  } else if (hint.printed == kNotOfTheJob) {
    const size_t begin = line.find(kNotOfTheJob);
    clue.words = line.substr(begin, kLongestWords);
  }
}

/// A traceback of Python: where it begins, and its last line, which names the exception.
struct Traceback {
  size_t begin = 0;
  size_t exception = 0;
};

/// The first traceback at or after `from`.
std::optional<Traceback> find_traceback(const LastLines& lines, size_t from) {
  for (size_t i = from; i < lines.size(); ++i) {
    if (!lines[i].starts_with("Traceback (most recent call last):")) continue;
    size_t end = i + 1;
    while (end < lines.size() && lines[end].starts_with(' ')) ++end;
    if (end == lines.size()) return std::nullopt;
    return Traceback{.begin = i, .exception = end};
  }
  return std::nullopt;
}

/// Whether `next` was raised while `first` was handled.
bool is_raised_from(const LastLines& lines, const Traceback& first, const Traceback& next) {
  for (size_t i = first.exception; i < next.begin; ++i) {
    if (holds(lines[i], "above exception")) return true;
  }
  return false;
}

/// The traceback that ended the program.
std::optional<Traceback> deciding_traceback(const LastLines& lines, Printers printers) {
  auto found = find_traceback(lines, 0);
  while (found) {
    const auto next = find_traceback(lines, found->exception + 1);
    if (!next) break;
    if (printers == Printers::kSeveral && !is_raised_from(lines, *found, *next)) break;
    found = next;
  }
  return found;
}

bool is_of_a_library(std::string_view file_line) {
  return holds(file_line, "/lib/python") || holds(file_line, "dist-packages/") ||
         holds(file_line, "site-packages/") || holds(file_line, "\"<frozen");
}

/// "train.py, line 4" from `  File "/home/ada/train.py", line 4, in main`.
std::string code_place_of(std::string_view file_line) {
  const size_t path = file_line.find('"');
  const size_t path_end = file_line.find('"', path + 1);
  const size_t number = file_line.find(", line ");
  if (path_end == std::string_view::npos || number == std::string_view::npos) return "";
  std::string_view name = file_line.substr(path + 1, path_end - path - 1);
  name.remove_prefix(name.rfind('/') + 1);
  std::string_view line = file_line.substr(number);
  line = line.substr(0, line.find(',', 1));
  return std::string(name) + std::string(line);
}

/// The innermost line of the user's code, else of any code.
std::string place_in(const LastLines& lines, const Traceback& traceback) {
  std::string place;
  bool is_own = false;
  for (size_t i = traceback.begin; i < traceback.exception; ++i) {
    const std::string& line = lines[i];
    if (!line.starts_with("  File \"")) continue;
    const bool own = !is_of_a_library(line);
    if (is_own && !own) continue;
    is_own = own;
    place = code_place_of(line);
  }
  return place;
}

Clue clue_of(const LastLines& lines, const Traceback& traceback, Surroundings surroundings) {
  const std::string& exception = lines[traceback.exception];
  Clue clue{.words = exception.substr(0, kLongestWords),
            .advice = {},
            .begin = traceback.begin,
            .end = traceback.exception};
  if (exception.size() > kLongestWords) clue.words += "...";
  const std::string place = place_in(lines, traceback);
  if (!place.empty()) clue.words += " (" + place + ")";
  if (const Hint* hint = hint_in(exception, surroundings)) clue.advice = hint->advice;
  return clue;
}

}  // namespace

std::optional<Clue> clue_in(const LastLines& lines, Printers printers, Surroundings surroundings) {
  if (const auto traceback = deciding_traceback(lines, printers)) {
    return clue_of(lines, *traceback, surroundings);
  }
  // Messages long before the end are not the cause.
  constexpr size_t kNearTheEnd = 20;
  const size_t count = std::min(lines.size(), kNearTheEnd);
  std::optional<Clue> clue;
  for (size_t i = lines.size(); i-- > lines.size() - count;) {
    const Hint* hint = hint_in(lines[i], surroundings);
    if (hint == nullptr) continue;
    clue = clue_of(*hint, i);
    if (printers == Printers::kOneProcess) break;
  }
  if (clue) name_the_port(lines, *clue);
  return clue;
}

std::optional<Clue> clue_of_mpirun(const LastLines& lines) {
  for (const Hint& hint : kOfMpirun) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!holds(lines[i], hint.printed)) continue;
      Clue clue = clue_of(hint, i);
      name_the_subject(lines, hint, clue);
      return clue;
    }
  }
  return std::nullopt;
}

namespace {

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

/// The text behind "name  : " in a line of torchrun's report.
std::optional<std::string_view> torch_field(std::string_view line, std::string_view name) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  if (!line.starts_with(name)) return std::nullopt;
  line.remove_prefix(name.size());
  if (!skip_past(line, ": ")) return std::nullopt;
  return line;
}

// "Root Cause (first observed failure):", then fields: "  rank      : 1 (local_rank: 1)",
// "  exitcode  : -9 (pid: 15477)".
std::optional<RankEnd> torchrun_cause(const LastLines& lines, size_t at) {
  if (lines[at].find("Root Cause (first observed failure):") == std::string::npos) {
    return std::nullopt;
  }
  RankEnd end;
  for (size_t i = at; i < std::min(lines.size(), at + 7); ++i) {
    if (auto rank = torch_field(lines[i], "rank ")) end.rank = take_number(*rank);
    auto code = torch_field(lines[i], "exitcode ");
    const int number = code ? take_number(*code).value_or(1) : 0;
    if (number < 0) end.status.signal = -number;
    if (number > 0) end.status.code = number;
  }
  return end.rank ? std::optional(end) : std::nullopt;
}

bool is_rule(std::string_view line, char letter) {
  constexpr size_t kShortestRule = 70;
  return line.size() >= kShortestRule && line.find_first_not_of(letter) == std::string_view::npos;
}

bool begins_explanation(std::string_view line) {
  constexpr std::array<std::string_view, 5> kBeginnings{
      "Primary job  terminated normally", "MPI_ABORT was invoked on rank",
      "An MPI communication peer process has unexpectedly disconnected",
      "mpirun has exited due to process rank", "prterun has exited due to process rank"};
  return line.find(" noticed that process rank ") != std::string_view::npos ||
         line.find(" detected that one or more processes exited") != std::string_view::npos ||
         std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view beginning) { return line.starts_with(beginning); });
}

/// Matches a remark of a launcher in one line.
bool is_remark(std::string_view line) {
  constexpr std::array<std::string_view, 8> kBeginnings{
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
  constexpr std::array kReports{open_mpi_signal, named_process, open_mpi_abort,
                                open_mpi_unfinalized, torchrun_cause};
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
