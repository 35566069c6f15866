// What the last lines of a program say about why it failed, where they say something that is known:
// a Python traceback, or the words of a common mishap.
//
// Pure.
#pragma once

#include <optional>
#include <string>

#include "control/launcher_words.h"

namespace muster::control {

struct Clue {
  std::string words;   ///< behind "exited with code 1: "; empty: the code says as much
  std::string advice;  ///< what to try; empty: nothing better than to read on
  size_t begin = 0;    ///< of the lines that say so, the first
  size_t end = 0;      ///< and the last
  /// `words` are why a program could not be run, which is more than 126 and 127 stand for.
  bool outdoes_code = false;
};

/// Whose lines they are decides what is the cause among several mishaps: a process fails by the
/// last, and where several print into one log those that come later echo the first.
enum class Printers { kOneProcess, kSeveral };

/// What they ran in decides what is to be done: on the machine itself, in an image of which little
/// can be written, or in one all of which can.
enum class Surroundings { kMachine, kImage, kWritableImage };

/// The mishap that explains the failure.
std::optional<Clue> clue_in(const Lines& lines, Printers printers,
                            Surroundings surroundings = Surroundings::kMachine);

/// The same of what mpirun says when it could not start the program at all.
std::optional<Clue> clue_of_mpirun(const Lines& lines);

}  // namespace muster::control
