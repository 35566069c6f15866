#include "dialects/gradient/pager.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/subprocess.h"
#include "base/unique_fd.h"
#include "cli/common/interrupts.h"
#include "cli/common/terminal.h"

namespace muster::dialects::gradient {

namespace {

using base::Result;

/// 0: not known.
size_t rows_of_terminal(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 ? size.ws_row : 0;
}

Result<void> print(const std::string& text) {
  auto written = base::write_all(STDOUT_FILENO, text);
  if (written) return {};
  base::Error error = std::move(written).error();
  error.code = base::ErrorCode::kInternal;  // kUnavailable would stand for the server
  return error;
}

/// $PAGER is a command line, which its owner's shell reads.
std::vector<std::string> pager_command() {
  const char* const pager = std::getenv("PAGER");
  const bool is_set = pager != nullptr && *pager != '\0';
  return {"/bin/sh", "-c", is_set ? pager : "exec less -R"};
}

/// Hands `text` to a pager and waits until the person leaves it. False: there is none.
Result<bool> show_in_pager(const std::string& text) {
  // Ctrl-C is the pager's; and whoever leaves it early closes the pipe, which is no failure.
  cli::Interrupts interrupts;
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return base::system_error("cannot make a pipe", errno);
  base::UniqueFd read_end(ends[0]);
  base::UniqueFd write_end(ends[1]);
  MUSTER_TRY(const base::Child child,
             base::spawn({.argv = pager_command(),
                          .environment = base::current_environment(),
                          .descriptors = {{read_end.get(), STDIN_FILENO},
                                          {STDOUT_FILENO, STDOUT_FILENO},
                                          {STDERR_FILENO, STDERR_FILENO}}}));
  read_end.reset();
  static_cast<void>(base::write_all(write_end.get(), text));
  write_end.reset();
  MUSTER_TRY(const int status, base::wait_for(child));
  constexpr int kNotFound = 127;
  return !(WIFEXITED(status) && WEXITSTATUS(status) == kNotFound);
}

}  // namespace

Result<void> show_table(const AsciiTable& table) {
  const cli::Terminal terminal = cli::terminal_of(STDOUT_FILENO);
  const std::string text = table.to_string(terminal.colour);
  const auto lines = static_cast<size_t>(std::count(text.begin(), text.end(), '\n'));
  const size_t rows = terminal.is_terminal ? rows_of_terminal(STDOUT_FILENO) : 0;
  if (rows == 0 || lines <= rows) return print(text);
  const auto shown = show_in_pager(text);
  return shown && *shown ? Result<void>() : print(text);
}

}  // namespace muster::dialects::gradient
