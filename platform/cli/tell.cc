#include "cli/tell.h"

#include <unistd.h>

#include <exception>
#include <iostream>

#include "cli/report.h"
#include "cli/terminal.h"

namespace muster::cli {

int tell(const base::Error& error, const std::string& program) {
  const std::string text = error_text(error, program);
  std::cerr << (terminal_of(STDERR_FILENO).is_terminal ? safe_lines(text) : text) << std::flush;
  return exit_code_of(error);
}

int run_and_tell(const std::string& program,
                 const std::function<base::Result<int>()>& command_line) {
  try {
    const base::Result<int> code = command_line();
    return code ? *code : tell(code.error(), program);
  } catch (const std::exception& error) {
    // Out of memory, or a defect: nothing above may throw by contract.
    return tell({.what = error.what(), .advice = "this is a defect in muster; please report it"},
                program);
  }
}

}  // namespace muster::cli
