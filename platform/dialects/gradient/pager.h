// Long tables on a terminal go through a pager, as Gradient's own program has it.
//
// Blocking; I/O.
#pragma once

#include "base/result.h"
#include "dialects/gradient/ascii_table.h"

namespace muster::dialects::gradient {

/// Prints a table on standard output; where that is a terminal that cannot show all of its lines,
/// through $PAGER, or less. Where there is no pager, as it is.
base::Result<void> show_table(const AsciiTable& table);

}  // namespace muster::dialects::gradient
