#include "engine/shim/program_input.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "engine/shim/channels.h"
#include "engine/shim/pseudo_terminal.h"

namespace muster::engine {

using base::Result;
using base::UniqueFd;

namespace {

/// Until somebody with a terminal of another size is attached.
constexpr int kRows = 24;
constexpr int kColumns = 80;

Result<ProgramInput> terminal_input() {
  MUSTER_TRY(PseudoTerminal terminal, open_terminal());
  set_terminal_size(terminal.master, kRows, kColumns);
  ::fcntl(terminal.master.get(), F_SETFL, ::fcntl(terminal.master.get(), F_GETFL) | O_NONBLOCK);
  ProgramInput input{.to_program = UniqueFd(::fcntl(terminal.master.get(), F_DUPFD_CLOEXEC, 0)),
                     .from_program = std::move(terminal.master),
                     .theirs = std::move(terminal.slave)};
  if (!input.to_program) return base::system_error("cannot make a terminal", errno);
  return input;
}

Result<ProgramInput> piped_input() {
  MUSTER_TRY(Pair pipe, make_input_pipe());
  return ProgramInput{
      .to_program = std::move(pipe.here), .from_program = {}, .theirs = std::move(pipe.there)};
}

}  // namespace

Result<ProgramInput> make_program_input(const InnerPlan& plan) {
  if (plan.terminal) return terminal_input();
  if (plan.input) return piped_input();
  return ProgramInput{};
}

std::string TerminalText::plain(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + 1);
  for (const char byte : bytes) {
    if (returns_ && byte != '\n') text += '\r';
    returns_ = byte == '\r';
    if (!returns_) text += byte;
  }
  return text;
}

}  // namespace muster::engine
