// A terminal of our own making: what a program has as its terminal is read and written at the other
// end.
#pragma once

#include "base/result.h"
#include "base/unique_fd.h"

namespace muster::engine {

struct PseudoTerminal {
  base::UniqueFd master;  ///< the end that stays here
  base::UniqueFd slave;   ///< the program's
};

/// Both close-on-exec; neither controls this process.
base::Result<PseudoTerminal> open_terminal();

void set_terminal_size(const base::UniqueFd& terminal, int rows, int columns);

}  // namespace muster::engine
