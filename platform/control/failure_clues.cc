#include "control/failure_clues.h"

#include <algorithm>
#include <string_view>

#include "control/port_taken.h"

namespace muster::control {

namespace {

struct Hint {
  std::string_view said;
  std::string_view words;
  std::string_view advice;
};

constexpr std::string_view kOutOfGpuMemory = "the memory of its GPU was used up";
constexpr std::string_view kLessGpuMemory =
    "use a smaller batch, or ask for GPUs with more memory or for a whole one";
constexpr std::string_view kOutOfMemory = "no memory was left";
constexpr std::string_view kLessMemory =
    "use a smaller batch or fewer processes on one machine, or ask for more --memory";
constexpr std::string_view kNotTheirKey =
    "the job's own keys are in /generated/ssh and ssh finds them by itself: take out ssh options, "
    "hostfiles and ssh_config of your own";
constexpr std::string_view kSharedMemory =
    "shared memory (/dev/shm) is too small for it: fewer or no loader processes (num_workers=0), "
    "or smaller batches";
constexpr std::string_view kNccl =
    "run it again with NCCL_DEBUG=INFO in its environment: the first 'NCCL WARN' names the cause";

constexpr std::string_view kCrlf = "a script has Windows line ends (CRLF)";
constexpr std::string_view kConvertLineEnds = "convert its line ends: sed -i 's/\\r$//' SCRIPT";
constexpr std::string_view kNoInterpreter =
    "the first line of a script names an interpreter that does not exist";
constexpr std::string_view kOtherInterpreter =
    "correct that line, or install the interpreter where the task runs; 'cat -A SCRIPT' shows "
    "'^M$' "
    "at the ends of lines that have Windows line ends (CRLF)";

constexpr std::string_view kPortTaken = "another program has the port that it wanted";
constexpr std::string_view kOtherPort =
    "listen on the port that the job was given (MASTER_PORT, TF_CONFIG), or on port 0";

constexpr std::string_view kBadInterpreter = " has a bad interpreter on the first line";
constexpr std::string_view kNotAccessible = "could not access";
constexpr std::string_view kNotResolved = "Could not resolve hostname ";
constexpr std::string_view kNotOfTheJob = "this job has no host ";
constexpr std::string_view kOnlyHostsOfTheJob =
    "name only hosts of the job: leave out -H, --host and hostfiles of your own; mpirun reads "
    "/generated/hostfile by itself";

// What mpirun says, and what a user of Muster does about it.
constexpr Hint kOfMpirun[] = {
    {"There are not enough slots available", "",
     "-np asks for more ranks than the workers have slots: raise --workers or --slots-per-worker, "
     "or lower -np"},
    {"unable to find the specified executable file", "mpirun did not find the program",
     "check its name, give its full path, or install it where the tasks run"},
    {kBadInterpreter, kNoInterpreter, kOtherInterpreter},
    {kNotAccessible, "mpirun could not execute the program",
     "give its full path, and make it executable (chmod +x); where the workers have files of their "
     "own, each of them needs it"},
    {kNotResolved, "ssh could not resolve the name of a host", kOnlyHostsOfTheJob},
    {kNotOfTheJob, "mpirun was to start ranks on a host that is not the job's", kOnlyHostsOfTheJob},
    {"execvp error on file", "mpiexec did not find the program",
     "check its name, give its full path, or install it where the tasks run"},
    {"unrecognized argument allow-run-as-root", "its mpirun is not Open MPI's",
     "leave out what only Open MPI knows (--allow-run-as-root, -bind-to, -mca), or take an image "
     "with Open MPI"},
    {"token slots not supported", "its mpirun cannot read a hostfile of Open MPI's",
     "leave out -f: the job's own hostfile is found by itself"},
    {"unrecognized argument", "", "mpirun does not know one of its options; see mpirun --help"},
    {"attempt to run as root", "", "add --allow-run-as-root to mpirun, or submit as a user"},
};

constexpr std::string_view kOtherProcessor = "it was built for another kind of processor";
constexpr std::string_view kLargerSharedMemory =
    "shared memory (/dev/shm) is too small for it: --shm-size gives it more";

// Of programs in an image all of which can be written.
constexpr Hint kInWritableImages[] = {
    {"insufficient shared memory", "", kLargerSharedMemory},
    {"unable to allocate shared memory", "", kLargerSharedMemory},
    {"Bus error", "", kLargerSharedMemory},
    {"xec format error", kOtherProcessor,
     "take an image, or a build of the program, for the processor of this machine"},
    {"\"no new privileges\" flag is set", "its container lets no program get more rights",
     "--allow-new-privileges lets it, or --user root where the image may be used so"},
    {"Operation not permitted", "",
     "its container has few of root's rights: --cap-add NAME adds one (capabilities(7) says which "
     "a call needs)"},
    {"No module named", "",
     "take an image that has the package, or bring it along: --workspace, and PYTHONPATH"},
    {"error while loading shared libraries", "a library of it is missing",
     "take an image that has the library, or set LD_LIBRARY_PATH"},
};

// And where only volumes can be written.
constexpr Hint kInImages[] = {
    {"Read-only file system", "",
     "only /tmp, /artifacts and volumes can be written: write there, or let it change the image's "
     "own files with --writable-root"},
};

// The more particular first.
constexpr Hint kOfPrograms[] = {
    {"CUDA out of memory", kOutOfGpuMemory, kLessGpuMemory},
    {"CUDA_ERROR_OUT_OF_MEMORY", kOutOfGpuMemory, kLessGpuMemory},
    {"CUDA error: out of memory", kOutOfGpuMemory, kLessGpuMemory},
    {"OOM when allocating tensor", kOutOfGpuMemory, kLessGpuMemory},
    {"no CUDA-capable device", "it found no GPU", "ask for GPUs: --gpus 1"},
    {"Found no NVIDIA driver", "it found no GPU", "ask for GPUs: --gpus 1"},
    {"No module named", "",
     "install the package where the tasks run, or bring it along: --workspace, and PYTHONPATH"},
    {"Host key verification failed", "ssh did not trust a host", kNotTheirKey},
    {"Permission denied (publickey", "ssh was not let in", kNotTheirKey},
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
    {"No space left on device", "a disk was full",
     "make room (df -h shows where), or write elsewhere"},
    {"Disk quota exceeded", "a disk quota was used up", "make room, or write elsewhere"},
    {"ddress already in use", kPortTaken, kOtherPort},
    {"EADDRINUSE", kPortTaken, kOtherPort},
    {"Could not start gRPC server", kPortTaken, kOtherPort},
    {"Connection refused", "nobody listened where it called",
     "see in the log of the task that it called whether that one ended first, or listens "
     "elsewhere"},
    {"error while loading shared libraries", "a library of it is missing",
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
     "the user that the job runs as may not do that; see who owns the file (ls -l)"},
    {"No such file or directory", "",
     "relative paths begin at the job's folder (FOLDER in 'muster get'); files of yours come along "
     "with --workspace"},
};

constexpr size_t kLongestWords = 200;

bool holds(std::string_view line, std::string_view words) {
  return line.find(words) != std::string_view::npos;
}

template <size_t kSize>
const Hint* hint_in(std::string_view line, const Hint (&hints)[kSize]) {
  if (is_harmless_remark(line)) return nullptr;
  const auto found = std::find_if(std::begin(hints), std::end(hints),
                                  [&](const Hint& hint) { return holds(line, hint.said); });
  return found == std::end(hints) ? nullptr : &*found;
}

/// Of a program in these surroundings; what is particular to them first.
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
          .outdoes_code = hint.words == kCrlf || hint.words == kNoInterpreter};
}

/// Where the lines say which it is.
void name_the_port(const Lines& lines, Clue& clue) {
  if (clue.words != kPortTaken) return;
  const auto refused = refused_port_in(lines);
  if (!refused || refused->named.empty()) return;
  clue.words =
      "another program has port " + std::to_string(*refused->named.begin()) + ", which it wanted";
}

/// The text behind "name" in one of the lines from `begin` on.
std::string field_behind(const Lines& lines, size_t begin, std::string_view name) {
  constexpr size_t kLinesOfReport = 6;
  for (size_t i = begin; i < std::min(lines.size(), begin + kLinesOfReport); ++i) {
    if (lines[i].starts_with(name)) return lines[i].substr(name.size());
  }
  return "";
}

/// What an explanation of mpirun's is about, where its lines name that.
void name_the_subject(const Lines& lines, const Hint& hint, Clue& clue) {
  const std::string& line = lines[clue.begin];
  if (hint.said == kNotAccessible) {
    const std::string program = field_behind(lines, clue.begin, "Executable: ");
    const std::string node = field_behind(lines, clue.begin, "Node: ");
    if (program.empty() || node.empty()) return;
    clue.words = "mpirun could not execute '" + program + "' on " + node;
  } else if (hint.said == kNotResolved) {
    const size_t begin = line.find(kNotResolved) + kNotResolved.size();
    clue.words =
        "ssh could not resolve host '" + line.substr(begin, line.find(':', begin) - begin) + "'";
  } else if (hint.said == kNotOfTheJob) {
    const size_t begin = line.find(kNotOfTheJob);
    clue.words = line.substr(begin, kLongestWords);
  }
}

/// A traceback of Python: where it begins, and its last line, which names the exception.
struct Traceback {
  size_t begin = 0;
  size_t exception = 0;
};

/// The first at or after `from`.
std::optional<Traceback> find_traceback(const Lines& lines, size_t from) {
  for (size_t i = from; i < lines.size(); ++i) {
    if (!lines[i].starts_with("Traceback (most recent call last):")) continue;
    size_t end = i + 1;
    while (end < lines.size() && lines[end].starts_with(' ')) ++end;
    if (end == lines.size()) return std::nullopt;
    return Traceback{.begin = i, .exception = end};
  }
  return std::nullopt;
}

/// Whether `next` is what became of `first`: raised while it was handled.
bool is_raised_from(const Lines& lines, const Traceback& first, const Traceback& next) {
  for (size_t i = first.exception; i < next.begin; ++i) {
    if (holds(lines[i], "above exception")) return true;
  }
  return false;
}

/// The traceback that ended the program.
std::optional<Traceback> deciding_traceback(const Lines& lines, Printers printers) {
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

/// The innermost line of the user's own code, or else of any.
std::string place_in(const Lines& lines, const Traceback& traceback) {
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

Clue clue_of(const Lines& lines, const Traceback& traceback, Surroundings surroundings) {
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

std::optional<Clue> clue_in(const Lines& lines, Printers printers, Surroundings surroundings) {
  if (const auto traceback = deciding_traceback(lines, printers)) {
    return clue_of(lines, *traceback, surroundings);
  }
  // What was printed long before the end was no cause of it.
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

std::optional<Clue> clue_of_mpirun(const Lines& lines) {
  for (const Hint& hint : kOfMpirun) {
    for (size_t i = 0; i < lines.size(); ++i) {
      if (!holds(lines[i], hint.said)) continue;
      Clue clue = clue_of(hint, i);
      name_the_subject(lines, hint, clue);
      return clue;
    }
  }
  return std::nullopt;
}

}  // namespace muster::control
