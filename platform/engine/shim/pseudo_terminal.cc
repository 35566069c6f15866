#include "engine/shim/pseudo_terminal.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>

#include <array>
#include <cerrno>

namespace muster::engine {

using base::UniqueFd;

base::Result<PseudoTerminal> open_terminal() {
  PseudoTerminal terminal{.master = UniqueFd(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC)),
                          .slave = {}};
  std::array<char, 64> name{};
  if (!terminal.master || ::grantpt(terminal.master.get()) != 0 ||
      ::unlockpt(terminal.master.get()) != 0 ||
      ::ptsname_r(terminal.master.get(), name.data(), name.size()) != 0) {
    return base::system_error("cannot make a terminal", errno);
  }
  terminal.slave = UniqueFd(::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC));
  termios settings{};
  if (!terminal.slave || ::tcgetattr(terminal.slave.get(), &settings) != 0) {
    return base::system_error("cannot make a terminal", errno);
  }
  settings.c_iflag |= IUTF8;  // a backspace takes a letter away, not a byte of it
  ::tcsetattr(terminal.slave.get(), TCSANOW, &settings);
  return terminal;
}

void set_terminal_size(const UniqueFd& terminal, int rows, int columns) {
  winsize size{};
  size.ws_row = static_cast<unsigned short>(rows);
  size.ws_col = static_cast<unsigned short>(columns);
  ::ioctl(terminal.get(), TIOCSWINSZ, &size);
}

}  // namespace muster::engine
