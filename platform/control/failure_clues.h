// Clues in the last lines of a failed program: a Python traceback, or the message of a common
// mistake. What launchers report of their ranks is in launcher_reports.h.
//
// Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "control/launcher_reports.h"

namespace muster::control {

struct Clue {
  std::string words;   ///< follows "exited with code 1: "; empty: the exit code is enough
  std::string advice;  ///< what to try; empty: only the lines themselves help
  size_t begin = 0;    ///< the first of the lines that the clue is in
  size_t end = 0;      ///< and the last
  /// `words` explain why a program could not be run, which is more exact than code 126 or 127.
  bool overrides_code = false;
};

/// How many processes printed the lines. One process fails because of the last error in its log.
/// Where several print into one log, the later errors are consequences of the first.
enum class Printers { kOneProcess, kSeveral };

/// The surroundings of the program, which decides the advice: the machine itself, an image that is
/// mostly read-only, or an image that is writable everywhere.
enum class Surroundings { kMachine, kImage, kWritableImage };

/// The error message that explains the failure; nothing: the lines contain no known message.
std::optional<Clue> clue_in(const LastLines& printed, Printers printers,
                            Surroundings surroundings = Surroundings::kMachine);

/// Lines, and when each was printed.
struct TimedLines {
  LastLines lines;
  std::vector<base::Time> times;  ///< of the same size
};

/// The error that ended a program.
struct PrintedError {
  base::Time time;
  /// It only reports the loss of another process, which failed first.
  bool is_consequence = false;

  bool operator==(const PrintedError&) const = default;
};

/// Where several processes printed: the first error that is no consequence, of the last round (a
/// launcher may start its processes again). Nothing: the program printed no error that is known.
std::optional<PrintedError> error_in(const TimedLines& printed, Printers printers);

/// The clue in the messages of an mpirun that could not start the program.
std::optional<Clue> clue_of_mpirun(const LastLines& lines);

}  // namespace muster::control
