#include "control/failure_clues.h"

#include <algorithm>
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
constexpr std::string_view kArtifactFolder =
    "submit the job with --artifacts, which creates /artifacts; folders below it are created by "
    "the program";
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
    {"No user exists for uid", "ssh found no name of the user that the job runs as",
     "ssh needs an entry of that user in /etc/passwd: submit as a user that has one, or add one to "
     "the image"},
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
    {"No such file or directory: '/artifacts", "", kArtifactFolder},
    {" /artifacts: No such file or directory", "", kArtifactFolder},
    {"'/artifacts': No such file or directory", "", kArtifactFolder},
    {"No such file or directory: '/", "",
     "give a path that exists where the tasks run; --volume mounts a file or folder there"},
    {"No such file or directory", "",
     "check the path where the tasks run: a relative path begins at the job's folder (FOLDER in "
     "'muster get'), and --workspace sends your own files"},
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

/// The lines without the "[rank1]: " that PyTorch prints before each line of a traceback.
LastLines without_ranks(LastLines lines) {
  constexpr std::string_view kRank = "[rank";
  for (std::string& line : lines) {
    if (!line.starts_with(kRank)) continue;
    const size_t end = line.find_first_not_of("0123456789", kRank.size());
    if (end != std::string::npos && line.compare(end, 3, "]: ") == 0) line.erase(0, end + 3);
  }
  return lines;
}

constexpr std::string_view kTraceback = "Traceback (most recent call last):";
// PyTorch appends the traceback of a DataLoader worker or of a DataParallel replica to the message
// of the exception that it raises in its place.
constexpr std::string_view kOriginalTraceback = "Original Traceback (most recent call last):";

/// The lines with the traceback of an exception group as the traceback of any exception. Those of
/// its members stay indented.
LastLines without_group_margins(LastLines lines) {
  constexpr std::string_view kGroup = "  + Exception Group Traceback (most recent call last):";
  constexpr std::string_view kMargin = "  | ";
  bool is_in_group = false;
  for (std::string& line : lines) {
    const bool is_head = line.starts_with(kGroup);
    is_in_group = is_head || (is_in_group && line.starts_with(kMargin));
    if (is_in_group) line = is_head ? std::string(kTraceback) : line.substr(kMargin.size());
  }
  return lines;
}

/// A traceback of Python: where it begins, and its last line, which names the exception.
struct Traceback {
  size_t begin = 0;
  size_t exception = 0;
};

bool begins_traceback(std::string_view line) {
  return line.starts_with(kTraceback) || line.starts_with(kOriginalTraceback);
}

/// The first traceback at or after `from`. If two processes print at once, the traceback of the
/// second may begin within that of the first. The exception that follows is that of one of them.
std::optional<Traceback> find_traceback(const LastLines& lines, size_t from) {
  std::optional<size_t> begin;
  for (size_t i = from; i < lines.size(); ++i) {
    if (begins_traceback(lines[i])) {
      begin = i;
    } else if (begin && !lines[i].starts_with(' ')) {
      return Traceback{.begin = *begin, .exception = i};
    }
  }
  return std::nullopt;
}

/// Whether `next` was raised while `first` was handled, or is the original of `first`.
bool is_raised_from(const LastLines& lines, const Traceback& first, const Traceback& next) {
  if (lines[next.begin].starts_with(kOriginalTraceback)) return true;
  for (size_t i = first.exception; i < next.begin; ++i) {
    if (holds(lines[i], "above exception")) return true;
  }
  return false;
}

/// Tracebacks of which each was raised while the one before it was handled. The last one ended the
/// program.
struct Chain {
  Traceback first;
  Traceback last;
};

/// torchrun's own tracebacks: it reports a failed rank, or was stopped.
bool is_of_torchrun(const LastLines& lines, const Chain& chain) {
  return lines[chain.last.exception].starts_with("torch.distributed.elastic.multiprocessing.");
}

std::vector<Chain> chains_in(const LastLines& lines) {
  std::vector<Chain> chains;
  for (auto next = find_traceback(lines, 0); next;
       next = find_traceback(lines, next->exception + 1)) {
    if (!chains.empty() && is_raised_from(lines, chains.back().last, *next)) {
      chains.back().last = *next;
    } else {
      chains.push_back({*next, *next});
    }
  }
  std::erase_if(chains, [&](const Chain& chain) { return is_of_torchrun(lines, chain); });
  return chains;
}

// What a process prints that has lost another one: gloo, NCCL, Horovod and Muster's collectives, the
// store of torchrun, gRPC.
constexpr std::string_view kConsequences[] = {"gloo/transport/",
                                              "Connection closed by peer",
                                              "Connection reset by peer",
                                              "HorovodInternalError",
                                              " has left the session",
                                              " has left the world",
                                              " is gone: it",
                                              "ncclRemoteError",
                                              "remote process exited",
                                              "unexpected exit of a remote peer",
                                              "NCCL communicator was aborted",
                                              "Watchdog caught collective operation timeout",
                                              "torch.distributed.DistNetworkError",
                                              "torch.distributed.DistStoreError",
                                              "RendezvousConnectionError",
                                              "RendezvousClosedError",
                                              "Collective ops is aborted by",
                                              "Socket closed",
                                              "failed to connect to all addresses"};

bool is_consequence(std::string_view line) {
  return std::any_of(std::begin(kConsequences), std::end(kConsequences),
                     [&](std::string_view words) { return holds(line, words); });
}

// The message of an exception may have a few lines.
constexpr size_t kLinesOfMessage = 3;

/// Whether the loss of another process led to these exceptions.
bool is_consequence(const LastLines& lines, const Chain& chain, Printers printers) {
  for (size_t i = chain.first.begin; i < lines.size(); ++i) {
    const bool is_behind = i > chain.last.exception;
    const bool is_of_another = printers == Printers::kSeveral && lines[i].starts_with('[');
    if (is_behind && (i - chain.last.exception >= kLinesOfMessage || is_of_another ||
                      begins_traceback(lines[i]))) {
      break;
    }
    // The lines between are code and its places.
    if (!lines[i].starts_with("  ") && is_consequence(lines[i])) return true;
  }
  return false;
}

/// The traceback that ended the program.
std::optional<Traceback> deciding_traceback(const LastLines& lines, Printers printers) {
  const std::vector<Chain> chains = chains_in(lines);
  if (chains.empty()) return std::nullopt;
  if (printers == Printers::kOneProcess) return chains.back().last;
  const auto cause = std::find_if(chains.begin(), chains.end(), [&](const Chain& chain) {
    return !is_consequence(lines, chain, printers);
  });
  return (cause == chains.end() ? chains.front() : *cause).last;
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

/// The last line of the exception's message: the lines behind the first one are indented. Those of
/// the members of an exception group count as well, as far as they fit.
size_t end_of_message(const LastLines& lines, const Traceback& traceback) {
  constexpr size_t kLinesOfGroup = 10;
  size_t end = traceback.exception + 1;
  const bool is_group = end < lines.size() && lines[end].starts_with("  +-+");
  const size_t longest = is_group ? kLinesOfGroup : kLinesOfMessage;
  const size_t most = std::min(lines.size(), traceback.exception + longest);
  while (end < most && (lines[end].starts_with(' ') || lines[end].starts_with('\t'))) ++end;
  return end - 1;
}

Clue clue_of(const LastLines& lines, const Traceback& traceback, Surroundings surroundings) {
  const std::string& exception = lines[traceback.exception];
  Clue clue{.words = exception.substr(0, kLongestWords),
            .advice = {},
            .begin = traceback.begin,
            .end = end_of_message(lines, traceback)};
  if (exception.size() > kLongestWords) clue.words += "...";
  const std::string place = place_in(lines, traceback);
  if (!place.empty()) clue.words += " (" + place + ")";
  if (const Hint* hint = hint_in(exception, surroundings)) clue.advice = hint->advice;
  return clue;
}

/// The messages without a traceback that report the loss of another process, if it is near the end.
std::optional<PrintedError> loss_in(const TimedLines& printed) {
  constexpr size_t kNearTheEnd = 20;
  const size_t count = printed.lines.size();
  for (size_t i = count - std::min(count, kNearTheEnd); i < count; ++i) {
    if (is_consequence(printed.lines[i])) {
      return PrintedError{.time = printed.times[i], .is_consequence = true};
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Clue> clue_in(const LastLines& printed, Printers printers,
                            Surroundings surroundings) {
  const LastLines lines = without_group_margins(without_ranks(printed));
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

std::optional<PrintedError> error_in(const TimedLines& printed, Printers printers) {
  // After an error, a launcher needs longer than this to start its processes again.
  constexpr std::chrono::seconds kRound{5};
  std::vector<PrintedError> errors;
  const LastLines lines = without_group_margins(without_ranks(printed.lines));
  for (const Chain& chain : chains_in(lines)) {
    errors.push_back({.time = printed.times[chain.first.begin],
                      .is_consequence = is_consequence(lines, chain, printers)});
  }
  if (errors.empty()) return loss_in(printed);
  if (printers == Printers::kOneProcess) return errors.back();
  auto round = errors.end() - 1;
  while (round != errors.begin() && round->time - (round - 1)->time < kRound) --round;
  const auto cause = std::find_if(round, errors.end(),
                                  [](const PrintedError& error) { return !error.is_consequence; });
  return cause == errors.end() ? *round : *cause;
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

}  // namespace muster::control
