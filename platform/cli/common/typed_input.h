// What a person types in answer to a question, and secrets that come from wherever they may.
//
// Blocking; I/O. A secret is in no error.
#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cli/common/terminal.h"

namespace muster::cli {

using base::Result;

enum class Echo { kOn, kOff };

/// One line typed on the terminal behind `descriptor`, without its newline, after `question` was
/// put on standard error. With Echo::kOff it is not shown; the terminal is then left as it was.
/// Nothing: Ctrl-C, or the end of the input.
///
/// kInvalid: the line is as long as a terminal takes, so there may have been more of it.
Result<std::optional<std::string>> ask(int descriptor, const std::string& question, Echo echo,
                                       Interrupts& interrupts);

/// All of a descriptor up to its end. kInvalid: there are more than `limit` bytes.
Result<std::string> read_to_end(int descriptor, size_t limit);

/// Without one newline at its end, as a shell takes the output of a command.
std::string without_last_newline(std::string text);

}  // namespace muster::cli
