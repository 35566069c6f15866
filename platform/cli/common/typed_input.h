// Answers to questions on the terminal, and values from standard input.
//
// Blocking; I/O. Errors never contain the text, which may be a secret.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/common/terminal.h"

namespace muster::cli {

using base::Result;

enum class Echo { kOn, kOff };

/// Prints `question` on standard error and reads one line from the terminal, without its newline. With
/// Echo::kOff, the terminal does not show the line. Nothing: Ctrl-C, or the end of the input.
///
/// Errors: kInvalid: the line has the maximum length of a terminal, so it may be incomplete.
Result<std::optional<std::string>> ask(int descriptor, const std::string& question, Echo echo,
                                       Interrupts& interrupts);

/// Reads a descriptor to its end. Errors: kInvalid: more than `limit` bytes.
Result<std::string> read_to_end(int descriptor, size_t limit);

/// The text of the file of a flag `-f FILE`: standard input for `-`, else the file. At most
/// kMaxYamlBytes.
///
/// Errors: all kInvalid, also for a missing file: for these commands kNotFound means a missing job or
/// sweep.
Result<std::string> read_flag_file(const std::string& file);

/// `text` without one newline at its end, as in a shell's $(...).
std::string without_last_newline(std::string text);

}  // namespace muster::cli
