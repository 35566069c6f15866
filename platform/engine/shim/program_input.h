// What a task's program reads, where it is to read anything: a pipe, or a terminal, which is what
// it writes to as well.
#pragma once

#include <string>
#include <string_view>

#include "base/result.h"
#include "base/unique_fd.h"
#include "engine/shim/plan.h"

namespace muster::engine {

struct ProgramInput {
  base::UniqueFd to_program;    ///< ours; non-blocking. Empty: it reads nothing
  base::UniqueFd from_program;  ///< ours, of a terminal: its output
  base::UniqueFd theirs;        ///< kInnerInput
};

/// As the plan asks; all empty where it asks for neither.
base::Result<ProgramInput> make_program_input(const InnerPlan& plan);

/// What goes to a terminal, as it goes into a log: lines end there with \r\n, here with \n.
class TerminalText {
 public:
  /// `bytes` may be cut anywhere.
  std::string plain(std::string_view bytes);

 private:
  bool returns_ = false;  ///< the last byte was \r, and is held back
};

}  // namespace muster::engine
