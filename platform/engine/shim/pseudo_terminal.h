// A terminal of our own making: what a program has as its terminal is read and written at the other
// end.
#pragma once

#include <chrono>

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

/// What a terminal takes for the end of the input.
inline constexpr char kTerminalEndOfInput = '\x04';
/// A terminal's last output takes its way through the kernel. Its end comes behind it, unless a
/// program in the background keeps the terminal: then nothing for so long is the end.
inline constexpr std::chrono::milliseconds kTerminalLastWords{500};

struct PseudoTerminal {
  base::UniqueFd master;  ///< the end that stays here
  base::UniqueFd slave;   ///< the program's
};

/// Both close-on-exec; neither controls this process.
base::Result<PseudoTerminal> open_terminal();

void set_terminal_size(const base::UniqueFd& terminal, int rows, int columns);

}  // namespace muster::engine
